"""The bar at the top stays where it is, whatever a pane has to say there."""

from collections.abc import Sequence

import pytest
from attn_tui.core.captures.reader import open_capture, sample_path
from attn_tui.core.parameters import FIELD, Parameters
from attn_tui.tui.panes.capture import CapturePane
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.panes.heads import HeadsPane
from attn_tui.tui.panes.pane import Pane
from attn_tui.tui.views.bars import top_line
from attn_tui.tui.views.glyphs import ASCII, UNICODE
from attn_tui.tui.views.lines import Line

WIDTHS = range(40, 201)
SAY_HOW_FAR = ("Lab", "Sweep", "Rules", "Capture")  # what they compute takes a while
D_KS = (1, 64, 100, 1000, FIELD["d_k"].high)

every_pane = pytest.mark.parametrize("name", PANES)


def bar(pane: Pane, statuses: Sequence[Line], width: int) -> tuple[str, str]:
    """The panes' names and numbers, and the status behind them."""
    bare = "".join(text for text, _ in top_line(tuple(PANES), pane.NAME, (), width)).rstrip()
    line = "".join(text for text, _ in top_line(tuple(PANES), pane.NAME, statuses, width))
    return line[: len(bare)], line[len(bare) :].strip()


def said(pane: Pane, width: int) -> list[tuple[str, str]]:
    """The bar at rest, and while something is being computed."""
    bars: list[tuple[str, str]] = []
    for pane.progress in (None, 0.0, 0.34, 1.0):
        bars.append(bar(pane, pane.statuses(), width))
    return bars


@every_pane
def test_names_of_panes_stay_where_they_are_whatever_is_computed_at_whichever_d_k(name: str) -> None:
    for glyphs in (UNICODE, ASCII):
        panes = [PANES[name]()(Parameters(d_k=int(d_k)), glyphs) for d_k in D_KS]
        for width in WIDTHS:
            assert len({names for pane in panes for names, _ in said(pane, width)}) == 1


@every_pane
def test_whatever_a_pane_has_to_say_is_said_at_every_width(name: str) -> None:
    for d_k in D_KS:
        pane = PANES[name]()(Parameters(d_k=int(d_k)), UNICODE)
        for width in WIDTHS:
            rest, *computing = [status for _, status in said(pane, width)]
            pane.progress = None
            assert rest or not pane.statuses()
            if name in SAY_HOW_FAR:
                assert [status[-5:].strip() for status in computing] == ["0 %", "34 %", "100 %"]


def test_a_shape_that_is_none_is_said_at_every_width() -> None:
    pane = HeadsPane(Parameters(), UNICODE)
    pane.shape.values["heads"] = 7
    assert all("layer" in bar(pane, pane.statuses(), width)[1] for width in WIDTHS)


def test_a_capture_s_name_moves_no_pane_s() -> None:
    pane = CapturePane(Parameters(), UNICODE)
    before = [bar(pane, pane.statuses(), width)[0] for width in WIDTHS]
    pane.map.capture = open_capture(sample_path())
    assert [bar(pane, pane.statuses(), width)[0] for width in WIDTHS] == before
    assert "MiniLM" in bar(pane, pane.statuses(), 120)[1]
    assert bar(pane, pane.statuses(), 80)[1] == "72 heads"
