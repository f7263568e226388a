"""The command palette: it has everything that keys do, and does it."""

from dataclasses import replace
from typing import Any

import pytest
from attn_tui.tui.app import AttnApp
from attn_tui.tui.commands import all_commands
from attn_tui.tui.palette import Actions
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.settings import Settings
from attn_tui.tui.widgets.export_screen import ExportScreen
from test_app import Stage, play
from textual.command import CommandPalette

NAMED = [command for command in all_commands(AttnApp.BINDINGS) if command.name not in ("", "palette")]


async def discovered(screen: Any) -> dict[str, str]:
    """What is offered before anything is typed: title and help."""
    return {str(hit.display): hit.help or "" async for hit in Actions(screen).discover()}  # type: ignore[union-attr]


async def found(screen: Any, words: str) -> list[str]:
    """The names of what is found for these words."""
    return [(hit.help or "").split("   ")[-1] async for hit in Actions(screen).search(words)]


async def choose(stage: Stage, words: str) -> None:
    """Open the palette, search for these words, and take the first that is found."""
    await stage.press("ctrl+p")
    await stage.until(lambda: isinstance(stage.app.screen, CommandPalette), "the palette")
    await stage.press(*("space" if character == " " else character for character in words))
    await stage.still()
    await stage.press("enter")
    await stage.until(lambda: not isinstance(stage.app.screen, CommandPalette), "the end of the palette")
    await stage.still()


def test_every_action_of_every_pane_is_found() -> None:
    async def script(stage: Stage) -> None:
        for command in NAMED:
            assert command.name in await found(stage.app.screen, command.words)

    play(script)


@pytest.mark.parametrize("pane", PANES)
def test_what_works_in_a_pane_is_offered_before_anything_is_typed(pane: str) -> None:
    async def script(stage: Stage) -> None:
        stage.app.action_pane(pane)
        offered = await discovered(stage.app.screen)
        for command in NAMED:
            named = any(words.endswith(command.name) for words in offered.values())
            assert named == (command.place in (pane, "everywhere")), command
        assert {*PANES} <= {*offered}

    play(script)


def test_what_is_chosen_is_done() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        await choose(stage, "redraw")
        assert stage.app.parameters.seed == 1
        await choose(stage, "Softmax: temperature")
        assert stage.app.active == "Softmax"
        await stage.until(lambda: "T 2" in stage.text, "the temperature")
        await choose(stage, "quit")
        await stage.until(lambda: stage.app.return_code == 0, "the end")

    play(script)


def test_over_a_form_only_what_concerns_the_whole_app_is_offered() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        await stage.press("e")
        await stage.until(lambda: isinstance(stage.app.screen, ExportScreen), "the form")
        assert {*(await discovered(stage.app.screen))} == {"quit", "other colours: choose a theme"}

    play(script)


def test_keys_are_those_that_the_settings_give() -> None:
    async def script(stage: Stage) -> None:
        assert (await discovered(stage.app.screen))["redraw with a new seed"] == "N   lab.redraw"

    play(script, settings=replace(Settings(), keys={"lab.redraw": "N"}))
