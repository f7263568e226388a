"""Text that the mouse selects: it is marked, copied and reported, and nothing under it is clicked."""

import re

import pytest
from attn_tui.tui.panes.catalogue import PANES, TABS
from attn_tui.tui.panes.rules.pane import RulesPane
from attn_tui.tui.widgets.bars import Notice
from attn_tui.tui.widgets.modal import HelpScreen, HelpText
from stage import Stage, copies, played
from textual import events
from textual.geometry import Offset

pytestmark = pytest.mark.usefixtures("short_rule_grids")


async def drag(stage: Stage, start: tuple[int, int], end: tuple[int, int]) -> None:
    for kind, at in ((events.MouseDown, start), (events.MouseMove, end), (events.MouseUp, end)):
        stage.mouse(kind, at)
        await stage.answered()


def selected_cells(stage: Stage) -> str:
    """Return the text that is painted as selected: all that is in reverse, but marks and curves over bars."""
    found = (segment for segment in stage.segments(stage.app.screen) if segment.style and segment.style.reverse)
    return re.sub("[•┊\u2800-\u28ff]", "", "".join(segment.text for segment in found))


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (120, 40)], ids=str)
@played(settled=True)
async def test_dragging_over_words_marks_and_copies_them(
    stage: Stage, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = copies(stage, monkeypatch)
    for words in ("one key takes", "Lab"):
        start = stage.place(words)
        await drag(stage, start, Offset(start.x + len(words) - 1, start.y))
        await stage.still()
        assert copied.pop() == words
        assert not copied
        assert selected_cells(stage) == words
        assert stage.app.notice.display
        assert "Copied" in stage.words(stage.app.notice)
        assert words in stage.words(stage.app.notice)
        await stage.press("S", "u")
        assert selected_cells(stage) == ""
        assert not stage.app.notice.display


@played(settled=True)
async def test_lines_are_copied_without_the_blanks_that_fill_them(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.press("v")
    await stage.settled()
    copied = copies(stage, monkeypatch)
    table = stage.table.content_region
    await drag(stage, (table.right - 1, table.y + 3), (table.x, table.y + 1))  # backwards
    (text,) = copied
    assert text.split("\n")[1] == stage.part(stage.table)[2].rstrip()
    assert len(text.split("\n")) == 3
    await stage.still()
    assert "3 lines" in stage.words(stage.app.notice)


@played(settled=True)
async def test_selecting_clicks_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    copied, pane = copies(stage, monkeypatch), await stage.complete(RulesPane)
    cursor, table = pane.cursor, pane.table.region
    await drag(stage, (table.x + 2, table.y + 8), (table.x + 9, table.y + 8))
    assert len(copied) == 1
    assert pane.cursor == cursor
    for _ in range(2):  # a double click is two clicks, and selects no text
        await stage.click((table.x + 2, table.y + 8))
    assert pane.cursor != cursor
    assert len(copied) == 1
    await stage.still()
    assert selected_cells(stage) == ""


@played(settled=True)
async def test_text_of_the_help_can_be_copied(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = copies(stage, monkeypatch)
    await stage.press("?")
    await stage.until(lambda: isinstance(stage.app.screen, HelpScreen))
    await stage.still()
    text = stage.app.screen.query_one(HelpText)
    y, line = next((y, line) for y, line in enumerate(stage.part(text)) if len((line.split() or [""])[0]) > 3)
    words = line.split()[0]
    start = Offset(text.content_region.x + line.index(words), text.content_region.y + y)
    await drag(stage, start, Offset(start.x + len(words) - 1, start.y))
    await stage.still()
    assert copied == [words]
    assert "Copied" in stage.words(stage.app.screen.query_one(Notice))


@pytest.mark.slow
@pytest.mark.parametrize("pane", PANES)
@played()
async def test_a_drag_over_everything_copies_what_the_screen_shows(
    stage: Stage, pane: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.app.action_pane(pane)
    for _ in range(3):  # one answer leads to the next request
        await stage.at_rest()
    copied = copies(stage, monkeypatch)
    shown = re.sub("[╭╮╰╯│─┃]", " ", stage.text)  # borders are not text
    await drag(stage, (0, 0), (stage.app.size.width - 1, stage.app.size.height - 1))
    (text,) = copied
    tab = PANES[pane].tab
    for name in (*TABS, *(view for _, view in TABS[tab])):
        assert name in text
    text = re.sub("[│─]", " ", text)
    for word in text.split():
        assert word in shown, word
    words = len(shown.split())
    assert len(text.split()) > 0.85 * words  # titles stand in borders
