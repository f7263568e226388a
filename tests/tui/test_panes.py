"""Switching panes, quitting, and the settings to be saved."""

import pytest
from attn_tui.core.parameters import Parameters
from attn_tui.tui.panes.catalogue import PANES, TABS
from attn_tui.tui.settings.declared import Settings
from attn_tui.tui.terminal.reader import Background
from digits import shows_number
from stage import Stage, play, played
from textual import events


@pytest.mark.parametrize("pane", [pane for pane in PANES if pane not in ("Heads", "Softmax")])
@pytest.mark.usefixtures("short_rule_grids")
@played(idle=True)
async def test_digits_type_d_k_or_nothing_and_never_change_panes(stage: Stage, pane: str) -> None:
    typed = pane in ("Lab", "Sweep", "Rules")
    stage.app.action_pane(pane)
    await stage.press("3", "2")
    assert stage.app.active == pane
    assert stage.asked.d_k == (32 if typed else 64)
    await stage.press("9", "9", "9")  # 32999 is refused, and 3299 was nothing but its beginning
    assert stage.asked.d_k == 64
    await stage.still()
    if typed:
        assert stage.app.pane.is_stale
        assert "16384" in " ".join(stage.text.split())
        assert shows_number(stage.lines, "32999_") or "32999_" in stage.text
    await stage.press("backspace", "backspace", "enter")
    assert stage.app.active == pane or not typed
    if typed:
        assert stage.asked.d_k == 329
        await stage.press("right", "5", "escape")
        assert stage.asked.d_k == 330


@played(idle=True)
async def test_tabs_are_switched_with_angle_brackets_and_alt(stage: Stage) -> None:
    tabs, app = tuple(TABS), stage.app
    for tab in (*tabs[1:], tabs[0]):
        await stage.press(">")
        assert app.tab == tab
        assert [name for name, each in app.panes.items() if each.display] == [app.active]
    for tab in reversed(tabs):
        await stage.press("<")
        assert app.tab == tab
    for number, tab in enumerate(tabs, start=1):
        await stage.press(f"alt+{number}")
        assert app.tab == tab
    await stage.press("inverted_exclamation_mark")  # as terminals that send Alt as Esc are read
    assert app.active == "Lab"
    assert app.focused is stage.lab
    await stage.press("right")
    assert stage.asked.d_k == 65


@pytest.mark.parametrize("tab", [tab for tab, views in TABS.items() if len(views) > 1])
@played(idle=True)
async def test_v_and_clicks_turn_to_views_of_a_tab_which_keeps_the_last_one(stage: Stage, tab: str) -> None:
    app, views = stage.app, TABS[tab]
    app.action_tab(tab)
    await stage.press("escape", "escape")  # leaves the field of a guess
    for view in (*views[1:], views[0]):
        await stage.press("V")
        assert app.view == view
    await stage.still()
    await stage.click((stage.lines[0].index(f" {views[-1][1]} ") + 2, 0))
    assert app.view == views[-1]
    await stage.press(">", "<")
    assert app.view == views[-1]


@played()
async def test_alt_and_a_digit_leave_a_focused_field(stage: Stage) -> None:
    for pane, keys in (("Lab", ["tab"]), ("Learn", ["alt+6", "9"])):
        stage.app.action_pane(pane)
        await stage.press(*keys)
        assert "a-z 0-9 type" in stage.lines[-1]
        stage.app.post_message(events.Key("trade_mark_sign", "™"))  # Alt+2 of terminals that send Alt as Esc
        await stage.answered()
        assert stage.app.active == "Softmax", pane


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
    await stage.press("up", "S")
    changed = {"d_k": 128, "n_keys": 16, "n_queries": 8, "batch": 2, "scale": "d_k"}
    assert stage.app.changed_settings() == {"parameters": changed}
    await stage.press("5", "R")
    assert stage.asked == Parameters()
    assert stage.app.changed_settings() == {"parameters": {}}
    assert stage.panel.editing is None
    await stage.settled()


@played()
async def test_the_theme_is_that_of_the_background_unless_one_is_chosen(stage: Stage) -> None:
    app = stage.app
    assert app.theme == "attn-dark"
    app.post_message(Background(light=True))
    await stage.until(lambda: app.theme == "attn-light")
    await stage.press("right", "u")
    assert (app.theme, "theme" in app.changed_settings()) == ("attn-light", False)
    app.theme = "attn-dark"
    assert app.changed_settings()["theme"] == "attn-dark"
    app.theme = "nord"
    app.post_message(Background(light=False))
    await stage.press("right")
    assert app.theme == "nord"


@played(settings=Settings(theme="attn-light"))
async def test_a_theme_is_saved_if_it_has_changed(stage: Stage) -> None:
    stage.app.post_message(Background(light=False))
    await stage.press("right")
    assert stage.app.theme == "attn-light"
    assert "theme" not in stage.app.changed_settings()
    stage.app.theme = "nord"
    assert stage.app.changed_settings()["theme"] == "nord"
