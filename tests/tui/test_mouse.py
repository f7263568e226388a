"""The mouse: the app survives any click, drag or scroll."""

from pathlib import Path
from typing import Any

import pytest
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.panes.claims.requests import CheckClaims
from mouse_monkey import SIZES, run
from stage import Stage, played, untested_claims
from textual import events
from textual.geometry import Offset

EVENTS = 40  # `python tests/tui/mouse_monkey.py` sends thousands


def at(kind: type[Any], place: Offset) -> events.MouseEvent:
    """Return a mouse event with the left button, as a driver sends it."""
    x, y = place
    return kind(None, x, y, 0, 0, 1, False, False, False, screen_x=x, screen_y=y)


async def click(stage: Stage, place: Offset) -> None:
    stage.app.post_message(at(events.MouseDown, place))
    stage.app.post_message(at(events.MouseUp, place))
    await stage.answered()


@pytest.mark.slow
@pytest.mark.parametrize("size", [SIZES[0], *(pytest.param(size, marks=pytest.mark.soak) for size in SIZES[1:])])
@pytest.mark.parametrize("pane", PANES)
def test_no_click_drag_or_scroll_ends_the_app(
    pane: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # exports and screenshots are written here
    monkeypatch.setattr(CheckClaims, "work", untested_claims)
    done = run(len(pane) + size[0], EVENTS, size, pane)
    assert {"click", "drag", "scroll", "double click", "key"} <= {*done}


@played(size=(120, 40))
async def test_a_click_that_arrives_after_the_screen_became_smaller_closes_the_palette(stage: Stage) -> None:
    await stage.press("ctrl+p")
    place = Offset(stage.app.size.width - 1, stage.app.size.height - 1)
    await stage.resize(40, 12)
    await click(stage, place)
    await stage.still()
    assert len(stage.app.screen_stack) == 1
