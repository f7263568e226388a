"""Switching panes, quitting, and the settings to be saved."""

import pytest
from attn_tui.core.parameters import Parameters
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.panes.claims.requests import CheckClaims
from attn_tui.tui.settings.declared import Settings
from stage import Stage, play, played, untested_claims


@played()
async def test_panes_are_switched_with_angle_brackets_and_numbers(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CheckClaims, "work", untested_claims)
    panes, app = tuple(PANES), stage.app
    for pane in (*panes[1:], panes[0]):
        await stage.press(">")
        assert app.active == pane
        assert [name for name, each in app.panes.items() if each.display] == [pane]
    for pane in reversed(panes):
        await stage.press("<")
        assert app.active == pane
    await stage.press("2")
    assert (app.active, stage.asked.d_k) == ("Lab", 2)
    await stage.press(">", str(panes.index("Claims") + 1))
    assert app.active == "Claims"
    await stage.press("1")
    assert app.active == "Lab"
    assert app.focused is stage.lab
    await stage.press("right")
    assert stage.asked.d_k == 3


def test_q_quits() -> None:
    async def script(stage: Stage) -> None:
        stage.send("q")
        await stage.until(lambda: not stage.app.is_running)

    assert play(script).return_code == 0


@played(settings=Settings(parameters={"n_keys": 16}), settled=True)
async def test_the_top_bar_says_that_parameters_are_saved_ones_until_one_changes(stage: Stage) -> None:
    assert "as you left it, R resets" in stage.lines[0]
    await stage.press("right")
    await stage.settled()
    assert "as you left it" not in stage.text


@played()
async def test_changed_parameters_are_saved_until_reset(stage: Stage) -> None:
    await stage.press("up", "s")
    changed = {"d_k": 128, "n_keys": 16, "n_queries": 8, "batch": 2, "scale": "d_k"}
    assert stage.app.lasting() == {"parameters": changed}
    await stage.press("5", "R")
    assert stage.asked == Parameters()
    assert stage.app.lasting() == {"parameters": {}}
    assert stage.panel.editing is None
    await stage.settled()


@played(settings=Settings(theme="attn-light"))
async def test_a_theme_is_saved_if_it_has_changed(stage: Stage) -> None:
    assert stage.app.theme == "attn-light"
    assert "theme" not in stage.app.lasting()
    stage.app.theme = "nord"
    assert stage.app.lasting()["theme"] == "nord"
