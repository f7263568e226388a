"""attn-tui examples: captures with known verdicts, which a script of the repository makes."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import attn_tui
import numpy as np
import pytest
import safetensors
from attn_tui.core.captures.capture import EXAMPLES, example_path
from attn_tui.tui.cli.main import main
from cli_runner import Captured, assert_refused, printed

SCRIPT = Path(__file__).parents[2] / "examples" / "make_captures.py"
MADE = [name for name in EXAMPLES if name != "minilm"]  # by the script
CAUSES = {"right": None, "scale-twice": "scale-twice", "d-model": "scale-d-model", "mask-added": "mask-added"}
WRONG = {"right": 0, "scale-twice": 4, "d-model": 8, "mask-added": 8}  # heads


def contents(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    library: Any = safetensors
    with library.safe_open(path, "numpy") as file:
        metadata = {name: text for name, text in file.metadata().items() if name != "versions"}
        return {name: file.get_tensor(name) for name in file.keys()}, metadata  # noqa: SIM118


def test_the_script_makes_the_files_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(tmp_path)])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    for name in MADE:
        (made, said), (there, meant) = contents(tmp_path / f"{name}.safetensors"), contents(example_path(name))
        assert said == meant
        assert made.keys() == there.keys()
        for tensor, array in made.items():
            np.testing.assert_allclose(array, there[tensor], rtol=1e-4, atol=1e-5)
    assert sum(example_path(name).stat().st_size for name in MADE) < 1_000_000


def test_each_has_its_verdict() -> None:
    assert [*CAUSES] == MADE
    for name, cause in CAUSES.items():
        found = [each.verdict for each in attn_tui.diagnose(example_path(name))]
        assert len(found) == 8
        assert [each.cause for each in found if each.word != "healthy"] == [cause] * WRONG[name]


def test_they_are_listed_and_opened_by_name(capsys: Captured) -> None:
    shown = printed(["examples"], capsys)
    assert all(name in shown for name in (*EXAMPLES, "exploding", str(example_path("right").parent)))
    for name in EXAMPLES:
        shown = printed(["examples", name], capsys)
        assert shown == printed(["diagnose", str(example_path(name))], capsys)
        assert shown == printed(["diagnose", f"example:{name}"], capsys)
    assert main(["examples", "exploding"]) == 1
    assert "over 100" in capsys.readouterr().out
    assert_refused(["examples", "scale-twise"], "NAME: must be one of … scale-twice", capsys)


def test_every_command_and_the_library_take_them_by_name(capsys: Captured) -> None:
    shown = printed(["inspect", str(example_path("right"))], capsys)
    assert printed(["inspect", "example:right"], capsys) == shown
    assert printed(["example:right"], capsys) == shown
    assert main(["compare", "example:right", "example:scale-twice"]) == 1
    assert main(["check", "example:right", "--baseline", "example:scale-twice"]) == 1
    capsys.readouterr()
    assert attn_tui.check("example:right").ok
    assert len(attn_tui.open("example:d-model")) == 8
    assert attn_tui.watch("example:exploding").value.step == 120
    assert main(["watch", "example:exploding", "--once"]) == 1
    capsys.readouterr()
    for words in (["diagnose", "example:other"], ["example:other"], ["compare", "example:right", "example:other"]):
        assert_refused(words, "example:other: must be one of minilm", capsys)
