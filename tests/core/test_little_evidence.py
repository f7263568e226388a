"""Evidence that tells little or nothing of the scale is no fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.reading import read_subject
from attn_tui.core.diagnosis.results import Verdict
from attn_tui.core.diagnosis.verdict import diagnose
from capture_files import Array, save
from cases import for_each
from injection import KINDS, Case, case_of, random_head, subject_of

TOKENS = 16


def verdicts(folder: Path, tensors: dict[str, Array], **metadata: Any) -> list[Verdict]:
    """The verdict on each head of a layer."""
    named = {f"layers.0.attn.{name}": array for name, array in tensors.items()}
    capture = open_capture(save(folder / "x.safetensors", named, schema="attn-tui/qk-2", **metadata))
    layer = capture.layers[0]
    return [diagnose(read_subject(capture, layer, head, None, None)) for head in range(layer.heads)]


@for_each("softcap", [0, 0.7, 30.0])
@for_each("kind", ["weights", "o"])
def test_rows_of_one_key_do_not_tell_the_scale(tmp_path: Path, kind: str, softcap: float) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(2, 8, TOKENS, 8)).astype(np.float32) for _ in "qkv")
    weights = np.broadcast_to(np.eye(TOKENS, dtype=np.float32), (2, 8, TOKENS, TOKENS))
    evidence = {"weights": weights} if kind == "weights" else {"v": v, "o": v}
    told = {"causal": "false", "window": [0, 0], "scale": list(np.linspace(0.1, 2, 8)), "softcap": softcap}
    found = verdicts(tmp_path, {"q": q, "k": k, **evidence}, **told)
    assert {each.verdict for each in found} == {"undecided"}


@pytest.mark.parametrize("kind", ["weights", "o", "lse"])
def test_a_head_without_visible_keys_is_undecided(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(1)
    side = rng.normal(size=(1, 2, TOKENS, 8))
    of = {"weights": (1, 2, TOKENS, TOKENS), "o": side.shape, "lse": side.shape[:3]}
    tensors = {"q": side, "k": side, "v": side, kind: np.zeros(of[kind])}
    bias = np.full((1, 2, TOKENS, TOKENS), -np.inf)
    found = verdicts(tmp_path, {**tensors, "bias": bias}, causal="false", scale=0.5, attention="cross")
    assert [(each.verdict, each.says) for each in found] == [("undecided", "no query sees a key")] * 2


def _shifted(case: Case, window: int) -> None:
    """Align a causal window at the top left, where the file says bottom right."""
    tokens = len(case.k)
    rows = tokens // 2
    case.shift = tokens - rows
    case.q = case.used_q = case.q[:rows]
    case.positions = np.arange(rows) + case.shift
    away = np.arange(tokens) - case.positions[:, np.newaxis]
    case.seen = (away <= 0) & (away > -window)
    moved = away + case.shift
    case.used_seen = (moved <= 0) & (moved > -window)
    case.say(window=window)


@pytest.mark.parametrize("kind", KINDS)
def test_a_window_moves_with_the_corner_of_a_causal_mask(kind: Any) -> None:
    case = case_of(random_head(64, 96, True), "float32")
    _shifted(case, 12)
    found = diagnose(subject_of(case, "float32", kind))
    assert (found.verdict, found.cause) == ("cause", "causal-shifted")
    assert found.multiplier == pytest.approx(1 / 8, rel=1e-4)


@pytest.mark.parametrize(("said", "kind"), [(None, "weights"), (20, "lse"), (11, "o"), (13, "lse")])
def test_the_length_of_a_window_is_found(kind: Any, said: int | None) -> None:
    case = case_of(random_head(64, 96, True), "float32")
    before = np.arange(96)[:, np.newaxis] - np.arange(96)
    case.used_seen = case.seen & (before < 12)
    if said is not None:
        case.seen = case.seen & (before < said)
        case.say(window=said)
    found = diagnose(subject_of(case, "float32", kind))
    words = "a window of 12 keys" if said is None else f"the window has 12 keys, not {said}"
    assert words in found.says
