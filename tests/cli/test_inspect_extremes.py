"""attn-tui inspect with finite but extreme files: numbers for the heads that have some, one line for the others."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from attn_tui.tui.cli.main import main
from cases import for_each
from cli_runner import Captured


def extreme_file(folder: Path, sizes: tuple[float, ...] = (1.0,), **metadata: Any) -> str:
    """A file in float64 with a head of each size."""
    q = np.random.default_rng(0).normal(size=(len(sizes), 5, 4))
    arrays: dict[str, Any] = {"q": q * np.array(sizes)[:, np.newaxis, np.newaxis], "k": q, "causal": False}
    np.savez(folder / "extreme.npz", **arrays, **metadata)
    return str(folder / "extreme.npz")


@for_each("words", [(), ("--format", "json"), ("--layer", "0", "--head", "0"), ("--format", "csv")])
@for_each("metadata", [{"scale": 1e308}, {"scale": 5e-324}, {"scale": 1.0, "softcap": 5e-324}])
def test_an_extreme_scale_or_soft_cap_takes_one_line(
    tmp_path: Path, metadata: dict[str, Any], words: tuple[str, ...], capsys: Captured
) -> None:
    assert main(["inspect", extreme_file(tmp_path, **metadata), *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    *notes, line = err.splitlines()
    assert re.search(
        r"extreme\.npz: layer 0, head 0: logits (over|under)flow float64: the (scale|soft-cap) must", line
    )
    assert all("note: " in note for note in notes)


def test_heads_that_overflow_are_left_out_and_the_others_printed(tmp_path: Path, capsys: Captured) -> None:
    path = extreme_file(tmp_path, (1.0, 1e308, 1e-320, 1e20), scale=0.5)
    for form in ("table", "markdown", "csv", "json"):
        assert main(["inspect", path, "--format", form]) == 2
        out, err = capsys.readouterr()
        assert "no keys" not in out
        assert not re.search(r"\bnan\b", out.lower())
        assert "head 1: logits overflow float64" in err.splitlines()[-1]
        assert err.endswith("(2 of 4 heads are left out)\n")
        if form == "json":
            heads = json.loads(out)["heads"]
            assert [head["head"] for head in heads] == [0, 3]
            assert all(head["measured"]["entropy"]["value"] is not None for head in heads)


def test_the_largest_and_smallest_logits_are_printed_in_full(tmp_path: Path, capsys: Captured) -> None:
    for scale in (1e-49, 1e48):
        path = extreme_file(tmp_path, scale=scale)
        for words in ([], ["--format", "markdown"], ["--format", "csv"]):
            assert main(["inspect", path, *words]) == 0
            assert not re.search(r"\b(nan|inf)\b", capsys.readouterr().out)


def test_a_scale_by_hand_is_bounded(tmp_path: Path, capsys: Captured) -> None:
    for scale in ("1e308", "5e-324"):
        assert main(["inspect", extreme_file(tmp_path), "--scale", scale]) == 2
        assert f"--scale: must be a number from 1e-06 to 1000, not '{scale}'" in capsys.readouterr().err
