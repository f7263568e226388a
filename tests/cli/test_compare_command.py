"""attn-tui compare: exit codes and formats."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.tui.cli.main import main
from cli_runner import SAMPLE, WRONG, Captured, refusal


def compared(words: list[str], capsys: Captured) -> tuple[int, str]:
    """The exit code and what is printed on stdout."""
    code = main(["compare", *words])
    return code, capsys.readouterr().out


def capture(folder: Path, name: str, **changed: Any) -> str:
    rng = np.random.default_rng(0)
    arrays: dict[str, Any] = {side: rng.normal(size=(1, 3, 20, 16)) for side in "qk"} | changed
    named: dict[str, Any] = {f"layers.3.attn.{side}": array for side, array in arrays.items()}
    np.savez(folder / f"{name}.npz", **named, causal="no", scale=0.25)
    return str(folder / f"{name}.npz")


def test_the_exit_code_says_whether_anything_differs(tmp_path: Path, capsys: Captured) -> None:
    code, out = compared([SAMPLE, SAMPLE], capsys)
    assert code == 0
    assert "72 heads, everything that can be compared is the same" in out
    code, out = compared([SAMPLE, WRONG, "--layer", "1"], capsys)
    assert code == 1
    for words in ("layer 1, heads 0–5", "multiplier: ", "× 1, ", "× 0.1768 "):
        assert words in out
    assert "no such file" in refusal(["compare", SAMPLE, str(tmp_path / "nothing.npz")], capsys)
    assert "no layer 99" in refusal(["compare", SAMPLE, SAMPLE, "--layer", "99"], capsys)
    assert "no head is in both" in refusal(["compare", SAMPLE, WRONG, "--layer", "5"], capsys)


def test_heads_are_chosen_by_their_number_in_the_reference(capsys: Captured) -> None:
    code, out = compared([SAMPLE, WRONG, "--layer", "0", "--head", "3", "--format", "json"], capsys)
    found = json.loads(out)
    assert code == 0
    assert [(each["layer"], each["head"]) for each in found["heads"]] == [("0", 3)]
    assert found["missing"] == []


def test_every_format_lists_every_head_the_most_changed_first(tmp_path: Path, capsys: Captured) -> None:
    q = np.random.default_rng(0).normal(size=(1, 3, 20, 16))
    q[0, 1] = 2 * q[0, 1]
    files = [capture(tmp_path, "one"), capture(tmp_path, "other", q=q)]
    rows = list(csv.DictReader(io.StringIO(compared([*files, "--format", "csv"], capsys)[1])))
    assert [row["head"] for row in rows] == ["1", "0", "2"]
    assert [row["first"] for row in rows] == ["multiplier", "", ""]
    assert rows[0]["qk"] == "same"
    assert float(rows[0]["divergence"]) > 0.1
    markdown = compared([*files, "--format", "markdown"], capsys)[1]
    assert "**FIRST DIFFERENCE**  \nlayer 3, head 1 (layers.3.attn)  \n" in markdown
    assert "multiplier: is × 0.5, × 0.25 in the reference" in markdown
    assert markdown.index("| 3 | 1 | 1 | multiplier |") < markdown.index("| 3 | 0 | 0 | — |")
    table = compared(files, capsys)[1]
    assert "layer 3, head 1 (layers.3.attn)\n" in table
    assert "multiplier: is × 0.5, × 0.25 in the reference\n" in table
    assert float(rows[0]["test_multiplier"]) == pytest.approx(2 * float(rows[0]["reference_multiplier"]))


@pytest.mark.parametrize("fault", ["q", "k"])
def test_one_head_that_is_not_finite_differs(fault: str, tmp_path: Path, capsys: Captured) -> None:
    spoiled = np.random.default_rng(0).normal(size=(1, 3, 20, 16))
    spoiled[0, 2, 0, 0] = np.inf
    files = [capture(tmp_path, "one"), capture(tmp_path, "other", **{fault: spoiled})]
    code, out = compared([*files, "--format", "json"], capsys)
    assert code == 1
    found = {each["head"]: each for each in json.loads(out)["heads"]}
    assert found[2]["stages"]["qk"]["state"] == "differs"
    assert "NaN or infinite" in found[2]["stages"]["qk"]["says"]
