"""q and k of float32 that were multiplied in 16 bits, as torch.autocast does, and bfloat16 saved as float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.reading import format_of, read_subject
from attn_tui.core.diagnosis.results import Verdict
from attn_tui.core.diagnosis.subject import Evidence, Kind, StatedFacts, Subject
from attn_tui.core.diagnosis.verdict import diagnose
from capture_files import save
from cases import for_each

D_K, TOKENS = 32, 48
DTYPES: dict[str, Any] = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16, "float32": np.float32}
KINDS: tuple[Kind, ...] = ("lse", "weights", "o")


def rounded(x: Any, to: str) -> Any:
    return x.astype(DTYPES[to]).astype(np.float64)


def verdict(short: str, kind: Kind, declared: bool, multiplier: float = D_K**-0.5, seed: int = 4) -> Verdict:
    """The verdict on a head that is stored in float32 and was multiplied in a short format."""
    rng = np.random.default_rng(seed)
    q, k, v = (rounded(1.5 * x, "float32") for x in rng.standard_normal((3, 1, TOKENS, D_K)))
    scores = rounded(rounded(q, short) @ rounded(k, short).mT, short)
    z = rounded(scores * multiplier, short)
    lse = np.log(np.exp(z).sum(axis=-1))
    p = np.exp(z - lse[..., None])
    o = rounded(rounded(p, short) @ rounded(v, short), short)
    values = {"lse": rounded(lse, "float32"), "weights": rounded(p, "float32"), "o": o}[kind]
    evidence = Evidence(kind, values, short if kind == "o" else "float32", v if kind == "o" else None)
    facts = StatedFacts(D_K, scale=D_K**-0.5, scores=short if declared else None)
    return diagnose(Subject(q, k, "float32", facts, (evidence,), np.arange(TOKENS, dtype=np.intp)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_head_under_autocast_is_not_accused(kind: Kind, seed: int) -> None:
    assert verdict("bfloat16", kind, True, seed=seed).word == "healthy"
    found = verdict("bfloat16", kind, False, seed=seed)
    assert found.word in ("healthy", "undecided")
    if kind != "o":  # outputs of bfloat16 tell it by their own format
        assert "bfloat16" in str(found.says)
    assert verdict("float16", kind, True, seed=seed).word == "healthy"


@for_each(("short", "declared"), [("bfloat16", False), ("bfloat16", True), ("float16", True)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_scale_that_is_missing_under_autocast_is_found(short: str, declared: bool, kind: Kind) -> None:
    found = verdict(short, kind, declared, 1.0)
    assert found.cause == "scale-missing"
    assert found.multiplier == pytest.approx(1, rel=0.02)


def saved_as_float32(path: Path, multiplier: float) -> Path:
    rng = np.random.default_rng(0)
    q, k, v = (x.astype(ml_dtypes.bfloat16).astype(np.float32) for x in rng.standard_normal((3, 1, 2, TOKENS, D_K)))
    z = rounded(rounded(q @ k.mT, "bfloat16") * multiplier, "bfloat16")
    p = np.exp(z - z.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    o = rounded(rounded(p, "bfloat16") @ v, "bfloat16").astype(np.float32)
    tensors = {f"layers.0.attn.{name}": x for name, x in {"q": q, "k": k, "v": v, "o": o}.items()}
    layer = {"name": "0", "index": 0, "causal": False, "scale": D_K**-0.5}
    return save(path, tensors, schema="attn-tui/qk-2", layers=[layer])


@pytest.mark.parametrize(("multiplier", "expected"), [(D_K**-0.5, "healthy"), (1.0, "cause")])
def test_bfloat16_that_is_saved_as_float32_is_read_as_bfloat16(
    multiplier: float, expected: str, tmp_path: Path
) -> None:
    capture = open_capture(saved_as_float32(tmp_path / "a.safetensors", multiplier))
    subject = read_subject(capture, capture.layers[0], 1, None, None)
    assert (subject.format, subject.evidence[0].format, subject.evidence[0].v_format) == ("bfloat16",) * 3
    assert diagnose(subject).word == expected


def test_whole_numbers_and_few_numbers_are_float32() -> None:
    rng = np.random.default_rng(1)
    short = rng.standard_normal(64).astype(ml_dtypes.bfloat16).astype(np.float32)
    assert format_of(short, "float32") == "bfloat16"
    assert format_of(short, "float16") == "float16"
    for values in (short[:20], np.sign(short), np.round(4 * short), np.zeros(64), rng.standard_normal(64)):
        assert format_of(values.astype(np.float32), "float32") == "float32"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("ratio", "expected"), [(1.0, "healthy"), (1.02, "undecided"), (1.1, "cause")])
def test_two_percent_off_is_not_as_expected_where_rounding_hides_it(kind: Kind, ratio: float, expected: str) -> None:
    """Peaked heads of bfloat16, whose logits have a standard deviation of 3.6."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        q, k, v = (rounded(1.9 * x, "bfloat16") for x in rng.standard_normal((3, 1, 96, 128)))
        z = rounded(rounded(q @ k.mT, "bfloat16") * ratio * 128**-0.5, "bfloat16")
        lse = np.log(np.exp(z - z.max(-1, keepdims=True)).sum(axis=-1)) + z.max(-1)
        p = rounded(np.exp(z - lse[..., None]), "bfloat16")
        values = {"lse": rounded(lse, "float32"), "weights": p, "o": rounded(p @ v, "bfloat16")}[kind]
        evidence = Evidence(
            kind, values, "float32" if kind == "lse" else "bfloat16", v if kind == "o" else None, "bfloat16"
        )
        facts = StatedFacts(128, scale=128**-0.5, scores="bfloat16")
        found = diagnose(Subject(q, k, "bfloat16", facts, (evidence,), np.arange(96, dtype=np.intp)))
        assert found.word == expected
        if expected == "undecided":
            assert "× 0.08839 = 1/√128" in found.says
            assert found.multiplier == pytest.approx(ratio * 128**-0.5, rel=5e-3)
