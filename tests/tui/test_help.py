"""The help and the overview of all keys, also with keys changed in the settings."""

import re

import pytest
from attn_tui.core.parameters import FIELD
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.tui.app.keys import all_commands
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.settings.declared import Settings
from attn_tui.tui.widgets.modal import HelpScreen, HelpText
from stage import SMALL, Stage, played

LAB, CAPTURE = (PANES[name].about[0][:22] for name in ("Lab", "Capture"))  # the start of each help


def is_open(stage: Stage) -> bool:
    return isinstance(stage.app.screen, HelpScreen)


async def opened(stage: Stage, key: str) -> HelpText:
    """Open the help or the overview, and return its text."""
    await stage.press(key)
    await stage.until(lambda: is_open(stage))
    await stage.still()
    return stage.app.screen.query_one(HelpText)


@played(settled=True)
async def test_help_opens_and_closes_without_changing_the_screen(stage: Stage) -> None:
    before = stage.text
    for opening, closing in (("?", "escape"), ("f1", "q"), ("?", "?"), ("f1", "f1"), ("?", "enter")):
        await stage.press(opening)
        await stage.until(lambda: is_open(stage) and LAB in stage.text)
        await stage.press(closing)
        await stage.until(lambda: not is_open(stage))
        await stage.still()
        assert stage.text == before, closing


@played(settled=True)
async def test_help_starts_with_the_field_or_row_that_has_the_cursor(stage: Stage) -> None:
    await stage.press("tab", "tab", "?")
    await stage.until(lambda: FIELD["n_keys"].option in stage.text)
    assert FIELD["n_keys"].label in stage.text
    await stage.press("escape")
    assert stage.app.focused is stage.panel
    stage.app.screen.set_focus(stage.table)
    await stage.press("down", "?")
    await stage.until(lambda: STATISTICS[1].name in stage.text)
    assert STATISTICS[1].formula in stage.text
    await stage.press("escape")
    assert stage.app.focused is stage.table
    await stage.head()
    await stage.press("?")
    await stage.until(lambda: CAPTURE in stage.text)
    await stage.press("escape", "v", "tab", "down", "?")
    await stage.until(lambda: STATISTICS[1].name in stage.text)


# Keys that choose what the help of a pane begins with, and its label.
TOPICS = {
    "Lab": ("tab tab", "keys"),
    "Sweep": ("M", "entropy / ln n"),
    "Softmax": ("t )", "shift"),
    "Rules": ("O O", "logit std"),
    "Heads": ("down down down", "d_k"),
    "Train": ("down", "optimizer"),
}


@pytest.mark.parametrize("name", PANES)
@played(size=(120, 60), idle=True)
async def test_the_help_explains_what_the_cursor_of_a_pane_is_on_and_the_pane(stage: Stage, name: str) -> None:
    stage.app.action_pane(name)
    keys, label = TOPICS.get(name, ("", ""))
    await stage.press(*keys.split())
    shown = stage.words(await opened(stage, "?"))
    assert shown.startswith(label)
    assert PANES[name].about[0][:22] in shown


@pytest.mark.slow
@pytest.mark.parametrize(("key", "size"), [("?", (40, 12)), ("K", (60, 20)), ("?", (80, 24)), ("K", (40, 12))])
@played(settled=True)
async def test_help_and_the_overview_scroll_to_their_end_and_back(
    stage: Stage, key: str, size: tuple[int, int]
) -> None:
    text = await opened(stage, key)
    first = stage.text
    assert text.region.width >= min(size[0], 40)
    pages = 0
    while text.below:
        before = stage.text
        await stage.press("pagedown")
        assert stage.text != before, "every key scrolls until the end"
        pages += 1
    last = stage.text
    await stage.press("pagedown")
    assert stage.text == last
    assert ("query" if key == "?" else all_commands()[-1].name) in stage.text
    await stage.press(*["pageup"] * pages, "down", "up")
    assert stage.text == first
    await stage.press("escape")
    await stage.until(lambda: not is_open(stage))


@played(settled=True)
async def test_keys_do_not_reach_the_pane_behind_the_help_before_it_has_the_focus(stage: Stage) -> None:
    await stage.press("?")
    await stage.until(lambda: is_open(stage))
    stage.app.screen.set_focus(None)  # as while the help opens
    await stage.resize(100, 30)
    await stage.press("right", "escape")
    assert stage.asked == SMALL
    assert not is_open(stage)


@played(size=(80, 24))
async def test_the_overview_shows_the_keys_of_this_pane_first_and_then_all(stage: Stage) -> None:
    await stage.head()
    text = await opened(stage, "K")
    seen = [row.strip() for row in stage.part(text)]
    while text.below:
        await stage.press("pagedown")
        seen += [row.strip() for row in stage.part(text)]
    others = [pane for pane in PANES if pane != "Capture"]
    assert sorted(PANES, key=seen.index) == ["Capture", *others]
    await stage.press("K")
    await stage.until(lambda: not is_open(stage))


@played(size=(240, 60), settings=Settings(keys={"lab.redraw": "n", "help": "f3", "lab.more": "d"}), settled=True)
async def test_changed_keys_work_and_are_shown_and_the_old_ones_are_unused(stage: Stage) -> None:
    for shown in ("n redraw", "F3 help", "←d d_k"):
        assert shown in stage.lines[-1]
    await stage.press("n", "d", "r", "right", "?")
    assert stage.asked.seed == 1
    assert stage.asked.d_k == 65
    assert not is_open(stage)
    await opened(stage, "f3")
    assert re.search(r"\bn  redraw\b", stage.text)
    await stage.press("K")
    await stage.until(lambda: re.search(r" n  redraw with a new seed +lab.redraw", stage.text))
    await stage.press("escape", "escape")  # to the help, and out of it
    assert not is_open(stage)


@pytest.mark.parametrize(("key", "title"), [("?", "help: Lab"), ("K", "all keys")])
@played(size=(80, 24), settled=True)
async def test_a_border_has_the_title_and_a_scroll_bar_and_home_and_end_go_to_the_ends(
    stage: Stage, key: str, title: str
) -> None:
    text = await opened(stage, key)
    first, region = stage.text, text.region
    assert f"╭─ {title} ─" in stage.lines[region.y]
    assert stage.lines[region.y + 1][region.right - 1] == "┃"
    await stage.press("end")
    assert not text.below
    assert stage.lines[region.bottom - 2][region.right - 1] == "┃"
    assert stage.lines[region.y + 1][region.right - 1] == "│"
    await stage.press("home")
    assert stage.text == first
