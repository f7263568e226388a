"""The Capture pane compares a file with a baseline."""

import shlex
from pathlib import Path

import numpy as np
import pytest
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.comparing.compare import compare
from attn_tui.tui.cli.main import main
from attn_tui.tui.panes.capture.heads import CHANGE
from attn_tui.tui.panes.capture.pane import CapturePane
from attn_tui.tui.panes.capture.requests import ComparedHeads, CompareHeads
from stage import Script, Stage, play, some_heads


def two_files(folder: Path) -> tuple[Path, Path]:
    """A file and one in which head 1 has another scale and head 2 other queries."""
    q, k = some_heads(heads=3, tokens=12, d_k=8), some_heads(heads=3, tokens=12, d_k=8, seed=1)
    other = q.copy()
    other[2] = some_heads(heads=1, tokens=12, d_k=8, seed=2)[0]
    for name, queries in (("old", q), ("new", other)):
        np.savez(folder / f"{name}.npz", q=queries, k=k, scale=0.35, tokens=[f"t{n}" for n in range(12)])
    return folder / "old.npz", folder / "new.npz"


def play_with(file: Path, script: Script) -> None:
    play(script, size=(120, 40), first_pane="Capture", given={"path": file})


async def opened(stage: Stage) -> CapturePane:
    pane = await stage.head()
    await stage.at_rest()
    return pane


def test_b_compares_with_a_file_and_an_empty_answer_ends_it(tmp_path: Path) -> None:
    old, new = two_files(tmp_path)

    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        await stage.press("b", *str(old), "enter")
        await stage.at_rest()
        found = compare(open_capture(old), open_capture(new))
        assert {place: each.change for place, each in pane.heads.compared.items()} == {
            (each.test_layer.position, each.test_head): each.change for each in found.heads
        }
        assert pane.heads.statistic is CHANGE
        assert pane.heads.places[0] == (0, 2)
        assert pane.list.ranking.heads[0].because[0].startswith("q·kᵀ differs: ")
        assert "against old.npz: q·kᵀ differs first, layer 0, head 2" in stage.lines[1]
        assert [place for place in pane.heads.places if pane.heads.is_of_note(place)] == [(0, 2)]
        await stage.press("n")
        await stage.at_rest()
        assert pane.heads.cursor == (0, 2)
        assert "change from the baseline" in stage.text
        assert old in pane.files_read
        await stage.press("b", *["backspace"] * len(str(old)), "enter")
        await stage.at_rest()
        assert not pane.heads.compared
        assert pane.heads.statistic is not CHANGE
        assert "against" not in stage.lines[1]
        late = ComparedHeads(old, found.heads, ())
        pane.show_answer(CompareHeads(pane.file, old), late)
        assert not pane.heads.compared

    play_with(new, script)


def test_a_baseline_that_cannot_be_read_is_explained_and_the_file_stays(tmp_path: Path) -> None:
    _, new = two_files(tmp_path)

    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        await stage.press("b", *"/nowhere.npz", "enter")
        await stage.at_rest()
        assert "/nowhere.npz" in stage.lines[1]
        assert pane.heads.baseline is None
        assert pane.bars.region.area

    play_with(new, script)


def test_y_copies_the_comparison_while_there_is_a_baseline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = two_files(tmp_path)
    commands: list[str] = []

    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        assert pane.command().startswith("attn-tui inspect ")
        await stage.press("b", *str(old), "enter")
        await stage.at_rest()
        commands.append(pane.command())
        pane.views.bring("replay")
        await stage.at_rest()
        assert pane.command().endswith("--rules all")

    play_with(new, script)
    program, *words = shlex.split(commands[0])
    assert (program, words) == ("attn-tui", ["compare", str(old), str(new)])
    assert main(words) == 1
    assert "first difference: q·kᵀ in layer 0, head 2" in capsys.readouterr().out


@pytest.mark.parametrize(("keys", "place"), [([], (0, 2)), (["right"], (0, 1))])
def test_the_head_that_changed_most_is_shown_unless_another_was_chosen(
    keys: list[str], place: tuple[int, int], tmp_path: Path
) -> None:
    old, new = two_files(tmp_path)

    async def script(stage: Stage) -> None:
        pane = await opened(stage)
        assert pane.heads.cursor == (0, 0)  # of a file without evidence, no head is in doubt
        stage.engine.hold = True
        await stage.press("b", *str(old), "enter", *keys)
        stage.engine.let_go()
        await stage.at_rest()
        assert pane.heads.places[0] == (0, 2)
        assert pane.heads.cursor == place

    play_with(new, script)
