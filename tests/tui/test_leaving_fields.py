"""In every pane with numbers, a refused text leaves what stood before, and any key that leaves the field says why."""

import pytest
from attn_tui.tui.undo import state_of
from stage import SMALL, Stage, played

pytestmark = pytest.mark.slow

REFUSED = {
    "Lab": "99999",
    "Sweep": "99999",
    "Rules": "99999",
    "Softmax": "99999",
    "Heads": "99999999",
    "Train": "99999",
}


async def refused(stage: Stage, pane: str) -> object:
    """Show a pane, type a number digit by digit that is refused in the end, and return the state before it."""
    stage.app.action_pane(pane)
    await stage.answered()
    before = state_of(stage.app)
    await stage.press(*REFUSED[pane])
    assert stage.app.pane.is_typing
    return before


@pytest.mark.parametrize("key", ["enter", "tab", "escape"])
@pytest.mark.parametrize("pane", REFUSED)
@played()
async def test_a_refused_number_leaves_what_stood_before(stage: Stage, pane: str, key: str) -> None:
    before = await refused(stage, pane)
    assert state_of(stage.app) == before
    assert not stage.app.changed_settings()["parameters"].get("d_k")
    await stage.press(key)
    assert not stage.app.pane.is_typing
    await stage.still()
    assert stage.app.notice.display == (key != "escape")
    assert key == "escape" or "must be" in stage.words(stage.app.notice)
    assert stage.app.parameters == SMALL


@pytest.mark.parametrize("key", ["right", "left", "up", "down", "greater_than_sign", "u"])
@pytest.mark.parametrize("pane", REFUSED)
@played()
async def test_a_key_that_moves_or_steps_starts_from_what_stood_before_a_refused_number(
    stage: Stage, pane: str, key: str
) -> None:
    stage.app.action_pane(pane)
    await stage.press(key)
    stepped = state_of(stage.app)
    await stage.press("u", "escape")
    await refused(stage, pane)
    await stage.press(key)
    assert not stage.app.pane.is_typing
    if key != "u":
        assert state_of(stage.app) == stepped
