"""The mouse: the app survives any click, drag or scroll."""

import random
from typing import Any

import pytest
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.panes.claims.requests import CheckClaims
from monkey import Endless
from stage import Stage, play, untested_claims
from textual import events
from textual.geometry import Offset

pytestmark = pytest.mark.slow


def at(kind: type[Any], place: Offset) -> events.MouseEvent:
    """Return a mouse event with the left button, as a driver sends it."""
    x, y = place
    return kind(None, x, y, 0, 0, 1, False, False, False, screen_x=x, screen_y=y)


async def click(stage: Stage, place: Offset) -> None:
    stage.app.post_message(at(events.MouseDown, place))
    stage.app.post_message(at(events.MouseUp, place))
    await stage.answered()


async def drag(stage: Stage, start: Offset, end: Offset) -> None:
    stage.app.post_message(at(events.MouseDown, start))
    stage.app.post_message(at(events.MouseMove, end))
    stage.app.post_message(at(events.MouseUp, end))
    await stage.answered()


@pytest.mark.parametrize("pane", PANES)
def test_clicks_double_clicks_and_drags_leave_the_app_running(pane: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CheckClaims, "work", untested_claims)

    async def script(stage: Stage) -> None:
        stage.app.action_pane(pane)
        await stage.still()
        width, height = stage.app.size
        chance = random.Random(pane)
        for _ in range(25):
            one, other = (Offset(chance.randrange(width), chance.randrange(height)) for _ in range(2))
            for place in (one, one, one, other):  # a triple click, and one elsewhere
                await click(stage, place)
            await drag(stage, one, other)
            await click(stage, other)
            for kind in (events.MouseScrollDown, events.MouseScrollUp):
                stage.app.post_message(at(kind, one))
            await stage.answered()
            if len(stage.app.screen_stack) > 1:
                await stage.press("escape")
        assert stage.app.is_running
        assert stage.app.screen.selections is not None

    play(script, kind=Endless)


def test_a_click_that_arrives_after_the_screen_became_smaller_closes_the_palette() -> None:
    async def script(stage: Stage) -> None:
        await stage.press("ctrl+p")
        place = Offset(stage.app.size.width - 1, stage.app.size.height - 1)
        await stage.resize(40, 12)
        await click(stage, place)
        await stage.still()
        assert len(stage.app.screen_stack) == 1

    play(script, size=(120, 40))
