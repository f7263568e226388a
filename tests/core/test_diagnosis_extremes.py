"""Heads whose numbers are extreme get a verdict, or are refused in one line, without a warning of NumPy."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from attn_tui.core.captures.files import CaptureError
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.comparing.compare import compare
from attn_tui.core.diagnosis.fitting.evidence import FittingEvidence
from attn_tui.core.diagnosis.replay import replay
from attn_tui.core.diagnosis.subject import Evidence, StatedFacts, Subject
from attn_tui.core.diagnosis.verdict import diagnose_head
from capture_files import save
from cases import for_each

Array = npt.NDArray[np.float64]


def tokens(rng: np.random.Generator, count: int, width: int, decades: float) -> Array:
    """Tokens of any size: all enlarged, each number on its own, all the same, or a few that are enormous."""
    x = rng.standard_normal((1, 1, count, width))
    match int(rng.integers(5)):
        case 0:
            return x * 10.0 ** rng.uniform(-decades, decades)
        case 1:
            return x * 10.0 ** rng.uniform(-decades, decades, size=x.shape)
        case 2:
            return np.broadcast_to(x[..., :1, :], x.shape)
        case 3:
            return np.where(rng.random(x.shape) < 0.3, 10.0**decades, x)
        case _:
            return x


def extreme_head(seed: int, folder: Path) -> Path:
    """A capture of one head in float16, float32 or float64 with its evidence, at any multiplier, and with dropout."""
    rng = np.random.default_rng(seed)
    dtype, decades = [(np.float16, 4), (np.float32, 37), (np.float64, 150)][seed % 3]
    count, width = int(rng.integers(2, 24)), int(rng.choice([1, 2, 4, 8, 16]))
    most = float(np.finfo(dtype).max)
    q, k, v = (np.clip(tokens(rng, count, width, decades), -most, most) for _ in "qkv")
    with np.errstate(all="ignore"):
        multiplier = float(
            10.0 ** rng.uniform(-50, 50) if rng.random() < 0.5 else rng.choice([0.1, 1, 8]) / width**0.5
        )
        z = np.nan_to_num(q @ k.mT * multiplier)
        z = np.where(np.tri(count, dtype=np.bool_) | (rng.random() < 0.5), z, -np.inf)
        largest = z.max(axis=-1, keepdims=True)
        p: Array = np.exp(z - largest)
        total = p.sum(axis=-1, keepdims=True)
        lse, p = (largest + np.log(total))[..., 0], p / total
        if rng.random() < 0.4:
            p *= (rng.random(p.shape) > 0.1) / 0.9
        found: dict[str, Array] = {"q": q, "k": k, "v": v, "lse": lse, "weights": p, "o": np.nan_to_num(p @ v)}
        kept = {"q", "k", *(["lse"] * (rng.random() < 0.5)), *(["weights"] * (rng.random() < 0.5))}
        kept |= {"v", "o"} if rng.random() < 0.6 else set()
        stored = {f"layers.0.attn.{name}": np.clip(found[name], -most, most).astype(dtype) for name in sorted(kept)}
    return save(folder / "head.safetensors", stored)


@pytest.mark.parametrize("seed", [*range(20), 33, 110, 116, 122, 131, 134, 143, 239, 269, 314, 333])
def test_extreme_numbers_are_diagnosed_without_a_warning(seed: int, tmp_path: Path) -> None:
    capture = open_capture(extreme_head(seed, tmp_path))
    try:
        verdict = diagnose_head(capture, capture.layers[0], 0, None, None)
    except CaptureError as error:
        said = str(error)
    else:
        said = verdict.says
    assert said


@pytest.mark.parametrize("seed", [404, 407, 413, 425, 434, 458, 473, 482])
def test_no_rule_is_replayed_beyond_float64(seed: int, tmp_path: Path) -> None:
    capture = open_capture(extreme_head(seed, tmp_path))
    with pytest.raises(CaptureError, match="float64"):
        replay(capture, capture.layers[0], 0)


@pytest.mark.parametrize("seed", range(5))
def test_an_extreme_head_is_the_same_as_itself(seed: int, tmp_path: Path) -> None:
    capture = open_capture(extreme_head(seed, tmp_path))
    assert not compare(capture, capture).differs


@pytest.mark.parametrize("seed", [5, 14, 17, 23, 29])
def test_heads_beyond_float64_are_not_called_the_same(seed: int, tmp_path: Path) -> None:
    capture = open_capture(extreme_head(seed, tmp_path))
    with pytest.raises(CaptureError, match="float64"):
        compare(capture, capture)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("role", ["q", "k", "v", "o", "lse", "weights"])
@pytest.mark.parametrize("suffix", ["safetensors", "npz"])
def test_numbers_that_are_not_finite_are_read_and_named(suffix: str, role: str, value: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    tensors = {name: rng.normal(size=(1, 2, 8, 4)).astype(np.float32) for name in ("q", "k", "v")}
    logits = tensors["q"] @ tensors["k"].mT / 2
    lse = np.log(np.exp(logits).sum(-1, keepdims=True))
    weights = np.exp(logits - lse)
    tensors |= {"o": weights @ tensors["v"], "lse": lse[..., 0]} if role != "weights" else {"weights": weights}
    tensors[role][0, 1, 3] = value
    path = tmp_path / f"x.{suffix}"
    if suffix == "npz":
        named: dict[str, Any] = {**tensors, "scale": 0.5}
        np.savez(path, **named)
    else:
        save(path, tensors, scale=0.5)
    capture = open_capture(path)
    healthy, broken = (diagnose_head(capture, capture.layers[0], head, None, None) for head in (0, 1))
    assert healthy.word == "healthy"
    assert "not-finite" in [each.cause for each in broken.findings]
    assert role in broken.says


TWICE = np.array([[[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.1, 0.2, 0.7]]])


@for_each(
    ("kind", "values", "keys", "seen", "used", "numbers", "errors"),
    [
        ("lse", np.array([[1.0, 2.0, 2.0]]), 6, None, 3, 2, 2),
        ("lse", np.array([[1.0, 2.0, 3.0]]), 6, None, 2, 2, 2),
        ("weights", TWICE, 3, None, 3, 3, 3), ("weights", TWICE, 3, None, 2, 1, 1),
        ("o", TWICE, 6, None, 3, 6, 3), ("o", TWICE, 3, None, 3, 4, 3), ("o", TWICE, 1, None, 3, 0, 3),
        ("o", TWICE, 6, 2, 3, 2, 3), ("o", TWICE, 6, None, 2, 3, 2),
    ],
)  # fmt: skip
def test_equal_numbers_of_evidence_say_the_same(
    kind: Any, values: Any, keys: int, seen: int | None, used: int, numbers: int, errors: int
) -> None:
    """Of outputs, no more components are independent in a row than keys that it sees, less one."""
    visible = None if seen is None else np.broadcast_to(np.arange(keys) < seen, (1, 3, keys))
    q, k = np.zeros((1, 3, 4)), np.zeros((1, keys, 4))
    subject = Subject(q, k, "float32", StatedFacts(4), (), np.arange(3), visible)
    weight = np.where(np.arange(3) < used, 1.0, 0.0).reshape(1, 3, *(1,) * (values.ndim - 2)) * np.ones_like(values)
    found = FittingEvidence(subject, Evidence(kind, values, "float32"), values, weight)
    assert (found.numbers, found.errors, found.rows) == (numbers, errors, used)
