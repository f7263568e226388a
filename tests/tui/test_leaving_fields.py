"""In every pane with numbers, a refused text leaves what stood before, and whatever leaves the field says why."""

from dataclasses import replace

import pytest
from attn_tui.tui.panes.rules.pane import RulesPane
from attn_tui.tui.panes.sweep.pane import SweepPane
from attn_tui.tui.widgets.field_list import FieldList
from attn_tui.tui.widgets.parameter_panel import ParameterPanel
from stage import SMALL, Stage, played
from textual import events
from textual.widget import Widget

pytestmark = pytest.mark.usefixtures("short_rule_grids")

REFUSED = {
    "Lab": "99999",
    "Sweep": "99999",
    "Rules": "99999",
    "Softmax": "99999",
    "Heads": "99999999",
    "Train": "99999",
}


async def refused(stage: Stage, pane: str) -> str:
    """Show a pane, type a number digit by digit that is refused in the end, and return the reason.

    Nothing of it is in what undo restores, or in the settings to be saved.
    """
    await stage.show(pane)
    before = stage.app.state, stage.app.changed_settings()
    stage.send(*REFUSED[pane])
    await stage.answered()
    assert stage.app.pane.is_typing
    assert (stage.app.state, stage.app.changed_settings()) == before
    assert stage.app.pane.refusal
    return stage.app.pane.refusal


def assert_said(stage: Stage, reason: str) -> None:
    assert reason in stage.words(stage.app.notice)


@pytest.mark.parametrize("pane", REFUSED)
@played(idle=True)
async def test_a_refused_number_leaves_what_stood_before(stage: Stage, pane: str) -> None:
    await stage.show(pane)
    await stage.still()
    before = stage.text
    for key in ("escape", "enter", "tab"):
        reason = await refused(stage, pane)
        await stage.press(key)
        assert not stage.app.pane.is_typing
        await stage.still()
        assert stage.app.notice.display == (key != "escape")
        assert stage.text == before or key != "escape"
        if key != "escape":
            assert_said(stage, reason)
        assert stage.app.parameters == SMALL


@played(replace(SMALL, d_k=1638), idle=True)
async def test_without_the_digit_that_is_refused_the_screen_is_as_before_it(stage: Stage) -> None:
    for pane in ("Sweep", "Rules"):
        await stage.show(pane)
        stage.send(*"1638")
        await stage.answered()
        await stage.still()
        before = stage.text
        await stage.press("5")
        assert stage.app.pane.refusal
        await stage.press("backspace")
        await stage.still()
        assert stage.text == before


@pytest.mark.slow
@pytest.mark.parametrize("pane", REFUSED)
@played(idle=True)
async def test_a_key_that_steps_starts_from_what_stood_before_a_refused_number(stage: Stage, pane: str) -> None:
    for key in ("u", "right", "left", "up", "down", "greater_than_sign"):
        stage.app.action_pane(pane)
        await stage.press(key)
        stepped = stage.app.state
        await stage.press("escape", "u", "escape")  # the first leaves a field, into which `u` would be typed
        await refused(stage, pane)
        await stage.press(key)
        assert not stage.app.pane.is_typing
        if key != "u":
            assert stage.app.state == stepped
            await stage.press("escape", "u", "escape")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [events.MouseDown, events.MouseScrollUp])
@pytest.mark.parametrize(("pane", "part"), {"Lab": ParameterPanel, "Heads": FieldList, "Train": FieldList}.items())
@played()
async def test_a_click_or_the_wheel_on_another_field_says_why_a_number_is_refused(
    stage: Stage, pane: str, part: type[Widget], kind: type[events.MouseEvent]
) -> None:
    if pane == "Lab":
        await stage.press("p")  # its panel
    reason = await refused(stage, pane)
    await stage.still()
    for each in (kind, events.MouseUp):
        await stage.scroll(each, (3, 2), stage.app.pane.query_one(part))
    assert not stage.app.pane.is_typing
    assert_said(stage, reason)


@played(idle=True)
async def test_a_key_or_a_click_that_leaves_the_number_says_why_it_is_refused(stage: Stage) -> None:
    pane = await stage.opened(SweepPane)
    pane.view = "map"
    for name, key in (("Heads", "P"), ("Train", "r"), ("Sweep", "right"), ("Rules", "")):
        reason = await refused(stage, name)
        if key:
            await stage.press(key)
        else:
            await stage.click((3, 5), stage.pane(RulesPane).table)
        assert not stage.app.pane.is_typing
        assert_said(stage, reason)
