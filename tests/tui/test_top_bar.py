"""The bars of the app: the names of panes in the top one, the keys of the part with the focus in the other."""

from collections.abc import Iterator, Sequence
from typing import Any
from unittest.mock import Mock

import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.parameters import FIELD, Parameters
from attn_tui.tui.panes.capture.pane import CapturePane
from attn_tui.tui.panes.capture.requests import OpenCapture
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.panes.heads.pane import HeadsPane
from attn_tui.tui.panes.pane import Pane
from attn_tui.tui.views.bars import top_line
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import Line
from stage import SMALL, LocalEngine, Stage, played

WIDTHS = range(40, 201)
SHOW_PROGRESS = ("Lab", "Sweep", "Rules", "Capture")
D_KS = (1, 64, 100, 1000, int(FIELD["d_k"].high))

every_pane = pytest.mark.parametrize("name", PANES)


def host(d_k: int = 64, glyphs: Glyphs = UNICODE, as_left: bool = False) -> Any:
    """An app that is not running."""
    parameters = Parameters(d_k=d_k)
    return Mock(parameters=parameters, glyphs=glyphs, engine=LocalEngine(), as_left=as_left, keymap={})


def bar(pane: Pane, statuses: Sequence[Line], width: int) -> tuple[str, str]:
    """Return the names and numbers of the panes, and the status after them."""
    bare = "".join(text for text, _ in top_line(tuple(PANES), pane.NAME, (), width, UNICODE)).rstrip()
    line = "".join(text for text, _ in top_line(tuple(PANES), pane.NAME, statuses, width, UNICODE))
    return line[: len(bare)], line[len(bare) :].strip()


def bars(pane: Pane, width: int) -> Iterator[tuple[str, str]]:
    """Yield the bar when idle, and during a computation."""
    for progress in (None, 0.0, 0.34, 1.0):
        pane.progress = progress
        yield bar(pane, pane.statuses(), width)
    pane.progress = None


@pytest.mark.slow
@every_pane
def test_names_of_panes_stay_in_place_at_every_d_k_and_progress(name: str) -> None:
    for glyphs, as_left in ((UNICODE, False), (ASCII, True)):
        panes = [PANES[name].load()(host(d_k, glyphs, as_left)) for d_k in D_KS]
        for width in WIDTHS:
            assert len({names for pane in panes for names, _ in bars(pane, width)}) == 1


@every_pane
def test_the_status_and_the_progress_of_a_pane_are_shown_at_every_width(name: str) -> None:
    for d_k in D_KS:
        pane = PANES[name].load()(host(d_k))
        for width in WIDTHS:
            rest, *computing = [status for _, status in bars(pane, width)]
            assert rest or not pane.statuses()
            if name in SHOW_PROGRESS:
                assert [status[-5:].strip() for status in computing] == ["0 %", "34 %", "100 %"]


def test_an_impossible_layer_is_reported_at_every_width() -> None:
    pane = HeadsPane(host())
    pane.shape.values["heads"] = 7
    assert {bar(pane, pane.statuses(), width)[1] for width in WIDTHS} == {"impossible shape", "invalid"}


def test_the_name_of_a_capture_does_not_move_the_names_of_panes() -> None:
    pane = CapturePane(host())
    before = [bar(pane, pane.statuses(), width)[0] for width in WIDTHS]
    pane.heads.capture = open_capture(sample_path()).described()
    assert [bar(pane, pane.statuses(), width)[0] for width in WIDTHS] == before
    assert "MiniLM" in bar(pane, pane.statuses(), max(WIDTHS))[1]
    assert "heads" in bar(pane, pane.statuses(), 80)[1]


@played(size=(120, 40), settled=True)
async def test_the_fields_and_the_table_of_the_lab_show_their_own_keys(stage: Stage) -> None:
    assert "q quit" in stage.lines[-1]
    assert "Enter tour" in stage.lines[-1]
    await stage.press("tab")
    assert stage.lines[-1].startswith(
        " ↑↓ step   ←→ ±1   a-z 0-9 type   Enter accept, list   Tab next field   Esc back"
    )
    assert not any(words in stage.lines[-1] for words in ("quit", "scale", "export", "copy", "undo"))
    for words in ("a-z", "0-9"):
        await stage.click(words)
        assert stage.panel.editing is None, "a click on them types nothing"
    await stage.press("escape")
    assert "q quit" in stage.lines[-1]
    before: Parameters = stage.asked
    await stage.press("v", "shift+tab")
    assert stage.lines[-1].startswith(" ↑↓ row   PgUp PgDn page   Esc back   ←→ d_k ±1")
    assert "q quit" in stage.lines[-1]
    await stage.press("down", "escape")
    assert stage.asked == before == SMALL
    assert stage.lines[-1].startswith(" ←→ d_k   s scale")


@played(size=(120, 40), first_pane="Capture")
async def test_the_parts_of_the_capture_pane_show_their_own_keys_and_keep_their_places(stage: Stage) -> None:
    await stage.head()
    assert stage.lines[-1].startswith(" ←→ head   n N of note")
    await stage.press("tab")
    assert stage.lines[-1].startswith(" ↑↓ head   Esc back   n N of note")
    await stage.press("tab")
    assert stage.lines[-1].startswith(" ↑↓ query   ←→ key   + - zoom   Esc back")
    await stage.press("slash")
    assert stage.lines[-1].split() == ["Enter", "accept", "Esc", "cancel"]
    await stage.press("escape")
    assert stage.lines[-1].startswith(" ←→ head   n N of note")
    pane = await stage.head()
    before = {part: widget.region for part, widget in pane.parts.items()}
    for size in ((200, 60), (80, 24), (120, 40)):
        await stage.resize(*size)
    await stage.still()
    assert {part: widget.region for part, widget in pane.parts.items()} == before


@played(size=(80, 24), first_pane="Capture")
async def test_a_title_that_does_not_fit_is_shortened_instead_of_cut(stage: Stage) -> None:
    pane = await stage.head()
    y, x = pane.matrix.region.y, pane.matrix.region.x
    assert stage.lines[y][x:].startswith("── 0/0: 70 × 70 ─")
    await stage.press("+")
    assert stage.lines[y][x:].startswith("── 0/0 ─")
    assert "…" not in stage.lines[y]


@played(size=(120, 40), first_pane="Capture", hold=True)
async def test_no_head_is_counted_before_one_is_measured(stage: Stage) -> None:
    pane = await stage.opened(CapturePane)
    stage.engine.hand_on(stage.engine.held_for(OpenCapture))
    await stage.still()
    assert pane.heads.capture is not None
    assert not pane.list.ranking.heads
    assert "0 heads" not in stage.text
    assert stage.part(pane.list)[0].strip() == "measuring"
