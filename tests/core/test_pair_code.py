"""The code of a comparison: it prints the figures of both heads, and how far they are apart."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.comparing.compare import compare
from attn_tui.core.export.code.captured.pairs import pair_code
from attn_tui.core.export.code.program import Dialect, NoCodeError
from capture_files import Array, numbers, save
from evidence_files import TOKENS, WIDTH, attended
from printed_code import INSTALLED, compared, expected_in, lines_of, printed_by

KINDS = "weights", "lse", "o"


def program(one: Path, other: Path, dialect: Dialect = "python", head: int = 1) -> str:
    captures = open_capture(one), open_capture(other)
    found = compare(*captures)
    return pair_code(*captures, found.heads[head], dialect, "attn-tui compare")


def both(folder: Path, *sides: dict[str, Any]) -> list[Path]:
    paths: list[Path] = []
    for name, side in zip("ab", sides, strict=True):
        (folder / name).mkdir(exist_ok=True)
        paths.append(attended(folder / name, side.pop("kind", "weights"), side.pop("done", {}), **side))
    return paths


PAIRS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "same": ({}, {}),
    "multiplier": ({}, {"done": {"scale": 1.0}}),
    "mask": ({"done": {"ahead": 0}}, {"said": {"causal": True}}),
    "causal": ({"done": {"ahead": 0}}, {"done": {"ahead": 0, "scale": 0.1}}),
    "soft-cap": ({"done": {"softcap": 1.0}, "said": {"softcap": 1.0}}, {"said": {"softcap": 1.0}}),
    "sink": ({"done": {"sink": 1.0}, "said": {"sinks": [1.0] * 4}}, {"said": {"sinks": [1.0] * 4}}),
    "soft-cap extra": ({}, {"done": {"softcap": 0.8}}),
    "sink extra": ({"done": {"sink": 1.0}}, {}),
    "key heads": ({"kv_heads": 2}, {"kv_heads": 2, "done": {"tiled": True}}),
    "format": ({}, {"dtype": np.float16}),
}


@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*PAIRS])
def test_the_code_of_a_pair_prints_its_figures(name: str, kind: str, dialect: Dialect, tmp_path: Path) -> None:
    one, other = both(tmp_path, *({"kind": kind, **side} for side in PAIRS[name]))
    text = program(one, other, dialect)
    assert compared(text) == ""
    assert "KL, nats" in expected_in(text)
    assert lines_of(text) <= 48
    if name == "same":
        assert lines_of(text) <= 26


def plain(path: Path, seed: int = 0, tokens: int = TOKENS, shift: float = 0.0, **about: Any) -> Path:
    """Write a capture of queries and keys alone."""
    q, k = (np.random.default_rng(seed + at).standard_normal((2, 4, tokens, WIDTH)) for at in range(2))
    k = k + shift * np.random.default_rng(9).standard_normal(k.shape)
    return save(path, {"q": q.astype(np.float32), "k": k.astype(np.float32)}, scale=0.3, **about)


@pytest.mark.parametrize("dialect", INSTALLED)
def test_scores_that_differ_have_their_correlation(dialect: Dialect, tmp_path: Path) -> None:
    text = program(plain(tmp_path / "a.safetensors"), plain(tmp_path / "b.safetensors", shift=0.2), dialect)
    [(correlation, _)] = expected_in(text)["correlation of q·kᵀ in rows"]
    assert 0.9 < correlation < 0.999
    assert compared(text) == ""


@pytest.mark.parametrize("dialect", INSTALLED)
def test_of_many_rows_those_that_are_compared_are_taken(dialect: Dialect, tmp_path: Path) -> None:
    one = plain(tmp_path / "a.safetensors", tokens=100, causal=True)
    assert (
        compared(program(one, plain(tmp_path / "b.safetensors", tokens=100, shift=0.1, causal=True), dialect)) == ""
    )


@pytest.mark.parametrize("dialect", INSTALLED)
def test_of_other_texts_the_figures_of_both_are_printed(dialect: Dialect, tmp_path: Path) -> None:
    one = plain(tmp_path / "a.safetensors", text=["one", "two"])
    text = program(one, plain(tmp_path / "b.safetensors", seed=5, text=["three", "four"]), dialect)
    assert "KL, nats" not in expected_in(text)
    assert compared(text) == ""


@pytest.mark.parametrize("dialect", INSTALLED)
def test_rows_that_see_no_key_are_left_out(dialect: Dialect, tmp_path: Path) -> None:
    masks: dict[str, Array] = {"key_padding_mask": np.arange(6) >= np.array([[6], [4]])}
    paths = [
        save(tmp_path / f"{name}.safetensors", {"q": numbers(2, 4, 6, 8), "k": numbers(2, 4, 6, 8, seed=at), **masks},
             scale=0.3) for at, name in enumerate("ab", 1)
    ]  # fmt: skip
    assert compared(program(paths[0], paths[1], dialect)) == ""


def test_a_program_of_the_sample_compares_it_with_itself() -> None:
    text = program(sample_path(), sample_path(), head=5)
    assert compared(text) == ""
    assert [line.split()[-1] for line in printed_by(text)[-3:]] == ["0", "0", "1"]


def test_part_of_the_rows_has_no_code(tmp_path: Path) -> None:
    tokens = [[f"w{at}" for at in range(TOKENS)]] * 2
    other = [[*tokens[0][:10], "x", "y", "z", "w"]] * 2
    first, second = (tmp_path / f"{name}.safetensors" for name in "ab")
    for path, words in ((first, tokens), (second, other)):
        q, k = numbers(2, 4, TOKENS, 8), numbers(2, 4, TOKENS, 8, seed=1)
        save(path, {"q": q, "k": k}, scale=0.3, causal=True, tokens=words)
    with pytest.raises(NoCodeError, match="only some of the rows"):
        program(first, second)
