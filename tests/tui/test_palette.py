"""The command palette: it offers and runs every command that has keys."""

from dataclasses import replace
from typing import Any

import pytest
from attn_tui.tui.keymap import EVERYWHERE, all_commands
from attn_tui.tui.palette import Actions
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.settings.declared import Settings
from attn_tui.tui.widgets.export_screen import ExportScreen
from stage import Stage, play
from textual.command import CommandPalette, DiscoveryHit
from textual.screen import Screen

pytestmark = pytest.mark.slow

NAMED = [command for command in all_commands() if command.name not in ("", "palette")]


async def discovered(screen: Screen[Any]) -> dict[str, str]:
    """Return what is offered before anything is typed: titles and their help."""
    hits = [hit async for hit in Actions(screen).discover()]
    return {str(hit.display): hit.help or "" for hit in hits if isinstance(hit, DiscoveryHit)}


async def found(screen: Screen[Any], words: str) -> list[str]:
    """Return the names of the commands found for these words."""
    return [(hit.help or "").split("   ")[-1] async for hit in Actions(screen).search(words)]


async def choose(stage: Stage, words: str) -> None:
    """Open the palette, search for these words, and run the first result."""
    await stage.press("ctrl+p")
    await stage.until(lambda: isinstance(stage.app.screen, CommandPalette), "the palette")
    await stage.press(*("space" if character == " " else character for character in words))
    await stage.still()
    await stage.press("enter")
    await stage.until(lambda: not isinstance(stage.app.screen, CommandPalette), "closing the palette")
    await stage.still()


def test_a_search_finds_the_commands_of_every_pane() -> None:
    async def script(stage: Stage) -> None:
        for command in NAMED:
            assert command.name in await found(stage.app.screen, command.words)

    play(script)


@pytest.mark.parametrize("pane", PANES)
def test_the_commands_of_the_pane_are_offered_before_anything_is_typed(pane: str) -> None:
    async def script(stage: Stage) -> None:
        stage.app.action_pane(pane)
        offered = await discovered(stage.app.screen)
        names = {words.split("   ")[-1] for words in offered.values()}
        for command in NAMED:
            assert (command.name in names) == (command.place in (pane, EVERYWHERE)), command
        assert {*PANES} <= {*offered}

    play(script)


def test_the_chosen_command_is_run() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        await choose(stage, "redraw")
        assert stage.app.parameters.seed == 1
        await choose(stage, "Softmax: temperature")
        assert stage.app.active == "Softmax"
        await stage.until(lambda: "T 2" in stage.text, "the temperature")
        await choose(stage, "quit")
        await stage.until(lambda: stage.app.return_code == 0, "quitting")

    play(script)


def test_over_a_form_only_commands_for_the_whole_app_are_offered() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        await stage.press("e")
        await stage.until(lambda: isinstance(stage.app.screen, ExportScreen), "the form")
        offered = [*await discovered(stage.app.screen)]
        assert len(offered) == 2
        assert "quit" in offered
        assert any("theme" in title for title in offered)

    play(script)


def test_keys_from_the_settings_are_shown() -> None:
    async def script(stage: Stage) -> None:
        assert "N   lab.redraw" in (await discovered(stage.app.screen)).values()

    play(script, settings=replace(Settings(), keys={"lab.redraw": "N"}))
