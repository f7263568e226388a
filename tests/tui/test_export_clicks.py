"""Clicks in the form that exports a pane."""

from pathlib import Path

import pytest
from attn_tui.tui.widgets.export_screen import ExportScreen
from stage import Stage, played

pytestmark = pytest.mark.slow


async def click(stage: Stage, words: str) -> None:
    y = next(y for y, line in enumerate(stage.lines) if words in line)
    await stage.pilot.click(offset=(stage.lines[y].index(words), y))
    await stage.still()


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (120, 40)], ids=str)
@played()
async def test_fields_and_keys_of_the_form_can_be_clicked(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.chdir(tmp_path)
    await stage.settled()
    await stage.press("e")
    await stage.still()
    screen = stage.app.screen
    assert isinstance(screen, ExportScreen)
    await click(stage, " CSV ")
    assert screen.form.kind == "csv"
    await click(stage, "lab-d64.csv")
    await stage.press("x")
    assert screen.form.path.text == "attn-tui-xlab-d64.csv"
    await click(stage, "Enter write")
    await stage.until(lambda: stage.app.screen is not screen, "closing the form")
    assert [path.name for path in tmp_path.iterdir()] == ["attn-tui-xlab-d64.csv"]
    await stage.press("e", "tab", "tab", "end", "ctrl+u", *"attn-tui-xlab-d64.csv")
    screen = stage.app.screen
    assert isinstance(screen, ExportScreen)
    await click(stage, "Enter write")
    assert screen.form.question
    await click(stage, "n keep")
    assert not screen.form.question
    assert isinstance(stage.app.screen, ExportScreen)
