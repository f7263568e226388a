"""The code of a diagnosis: it finds the multiplier that the diagnosis found, from what attention returned."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.learning.bugs import BUGS, Bug
from attn_tui.core.learning.examine import write_capture
from attn_tui.core.program.diagnosis import diagnosis_code
from attn_tui.core.program.text import Dialect, NoCodeError
from cases import for_each
from evidence_files import TOKENS, WIDTH, attended
from printed_code import INSTALLED, expected_in, lines_of, printed_by

KINDS = "weights", "lse", "o"


def program(path: Path, dialect: Dialect, head: int = 1) -> str:
    capture = open_capture(path)
    return diagnosis_code(capture, capture.layers[0], head, None, dialect, "attn-tui diagnose")


def assert_found(text: str, wanted: float | None = None) -> None:
    """Run a program of a diagnosis; its multiplier is the diagnosis's, within its error and four digits."""
    for line, (name, [(value, stderr)]) in zip(printed_by(text), expected_in(text).items(), strict=True):
        assert float(line.removeprefix(name)) == pytest.approx(value, rel=1e-3, abs=3 * stderr)
        if wanted is not None and name.startswith("multiplier"):
            assert value == pytest.approx(wanted, rel=2e-3, abs=3 * stderr)
    assert lines_of(text) <= 27


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], float]] = {
    "healthy": ({}, {}, WIDTH**-0.5),
    "missing": ({"scale": 1.0}, {}, 1.0),
    "twice": ({"scale": 1 / WIDTH}, {}, 1 / WIDTH),
    "fixed": ({"scale": 1 / 16}, {}, 1 / 16),
    "causal": ({"ahead": 0, "scale": 0.9}, {}, 0.9),
    "causal lost": ({}, {"causal": True}, WIDTH**-0.5),
    "causal extra": ({"ahead": 0}, {"causal": False}, WIDTH**-0.5),
    "future key": ({"ahead": 1}, {"causal": True}, WIDTH**-0.5),
    "soft-cap": ({"softcap": 1.5}, {"softcap": 1.5}, WIDTH**-0.5),
    "soft-cap missing": ({}, {"softcap": 1.0}, WIDTH**-0.5),
    "soft-cap and scale": ({"softcap": 2.0, "scale": 0.25}, {"softcap": 2.0, "causal": False}, 0.25),
    "sink": ({"sink": 1.0}, {"sinks": [1.0] * 4}, WIDTH**-0.5),
    "soft-cap extra": ({"softcap": 0.8}, {}, WIDTH**-0.5),
    "soft-cap other": ({"softcap": 0.8}, {"softcap": 2.0}, WIDTH**-0.5),
    "sink extra": ({"sink": 2.0}, {}, WIDTH**-0.5),
    "sink extra and causal": ({"sink": 1.0, "ahead": 0}, {}, WIDTH**-0.5),
    "swapped": ({"swapped": True}, {}, WIDTH**-0.5),
    "over queries": ({"over_queries": True}, {}, WIDTH**-0.5),
}


@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind) if (i + j) % 3 == 0 else pytest.param(name, kind, marks=pytest.mark.slow)
        for i, name in enumerate(CASES)
        for j, kind in enumerate(KINDS)
        if (name, kind) != ("over queries", "lse")  # the file has a log-sum-exp for each row
    ],
)
def test_the_code_of_a_diagnosis_finds_the_multiplier(name: str, kind: str, dialect: Dialect, tmp_path: Path) -> None:
    done, said, multiplier = CASES[name]
    assert_found(program(attended(tmp_path, kind, done, said), dialect), multiplier)


@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize("kind", KINDS)
def test_padding_key_groups_and_formats_are_read(kind: str, dialect: Dialect, tmp_path: Path) -> None:
    lengths = {"key_padding_mask": np.arange(TOKENS) >= np.array([[9], [9]])}
    padded = attended(tmp_path, kind, {"length": 9, "scale": 0.5}, beside=lengths)
    assert_found(program(padded, dialect), 0.5)
    assert_found(program(attended(tmp_path, kind, {"scale": 0.5}, kv_heads=2), dialect, head=3), 0.5)
    assert_found(program(attended(tmp_path, kind, {"tiled": True}, kv_heads=2), dialect), WIDTH**-0.5)
    for dtype in (np.float16, ml_dtypes.bfloat16):
        assert_found(program(attended(tmp_path, kind, {"scale": 0.5}, dtype=dtype), dialect), 0.5)


@pytest.mark.parametrize("dialect", INSTALLED)
def test_a_log_sum_exp_in_base_2_is_read_as_such(dialect: Dialect, tmp_path: Path) -> None:
    text = program(attended(tmp_path, "lse", {"lse": np.log2(np.e)}), dialect)
    assert_found(text, WIDTH**-0.5)
    assert "base 2" in text


@pytest.mark.parametrize("dialect", INSTALLED)
@for_each("kind", KINDS)
def test_multipliers_of_rows_are_relative_to_their_median(kind: str, dialect: Dialect, tmp_path: Path) -> None:
    own = np.linspace(0.2, 0.6, TOKENS)
    beside = {"scales": np.tile(own, (4, 1)).astype(np.float32)}
    path = attended(tmp_path, kind, {"scale": 1.0, "rows": own[:, None]}, {"scale": None}, beside=beside)
    assert_found(program(path, dialect), float(np.median(own)))


@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize("bug", BUGS, ids=[bug.id for bug in BUGS])
def test_the_bugs_to_find_have_code(bug: Bug, dialect: Dialect, tmp_path: Path) -> None:
    write_capture(bug, tmp_path / "bug.safetensors")
    assert_found(program(tmp_path / "bug.safetensors", dialect, bug.head))


def test_a_program_of_another_scale_is_another_one(tmp_path: Path) -> None:
    text = program(attended(tmp_path, "weights", {"scale": 0.5}), "python")
    [line] = printed_by(text.replace("scale * (q @ k.mT)", "scale * 2 * (q @ k.mT)"))
    assert float(line.split()[-1]) == pytest.approx(0.25)


def test_what_no_short_program_finds_is_said(tmp_path: Path) -> None:
    with pytest.raises(NoCodeError, match="q and k alone"):
        program(sample_path(), "python")
    with pytest.raises(NoCodeError, match="bias-extra"):
        program(attended(tmp_path, "weights", {"slope": 0.3}), "python")
