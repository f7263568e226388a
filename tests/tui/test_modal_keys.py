"""Keys that arrive together with one that closes a form, the help or the palette are for what is below."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from attn_tui.tui.app.export_screen import ExportScreen
from attn_tui.tui.terminal.themes import DARK
from attn_tui.tui.widgets.modal import HelpScreen
from attn_tui.tui.widgets.picker import ChoiceScreen
from monkey import Endless
from stage import SMALL, Stage, played

CLOSING = ["escape", "ctrl+c", "enter", "tab", "?", "y", "q"]
OTHERS = ["right", "7", "?", "enter", "escape"]  # typed after it


async def help_opened(stage: Stage) -> None:
    await stage.press("?")


async def all_keys_opened(stage: Stage) -> None:
    await stage.press("K")


async def form_opened(stage: Stage) -> None:
    for file in Path().glob("attn-tui-lab-d64*"):
        file.unlink()
    await stage.press("e")


async def question_opened(stage: Stage) -> None:
    await stage.press("e")
    screen = stage.screen(ExportScreen)
    Path(screen.form.path.text).touch()
    await stage.press("enter")
    assert screen.form.question


async def palette_opened(stage: Stage) -> None:
    await stage.press("ctrl+p")
    await listed(stage)


async def themes_opened(stage: Stage) -> None:
    stage.app.search_themes()
    await listed(stage)


async def listed(stage: Stage) -> None:
    """Wait until a list is shown."""
    await stage.until(lambda: isinstance(stage.app.screen, ChoiceScreen), "the list")
    await stage.answered()


Opening = Callable[[Stage], Awaitable[None]]
MODALS: list[Opening] = [help_opened, all_keys_opened, form_opened, question_opened, palette_opened, themes_opened]

every_modal = pytest.mark.parametrize("opening", MODALS, ids=lambda opening: opening.__name__)


async def reset(stage: Stage) -> None:
    """Show the Lab with the first parameters and nothing over it."""
    while len(stage.app.screen_stack) > 1:
        await stage.press("escape")
    if stage.app.theme != DARK.name:
        stage.app.theme = DARK.name
    await stage.opened(type(stage.lab))
    stage.app.screen.set_focus(stage.lab)
    stage.app.change(SMALL)
    await stage.press("escape")


async def effect(stage: Stage, opening: Opening, *bursts: Sequence[str]) -> tuple[Any, ...]:
    """Return the state of everything below after bursts of keys in a modal."""
    await reset(stage)
    await opening(stage)
    assert len(stage.app.screen_stack) == 2
    for keys in bursts:
        stage.send(*keys)
        await stage.answered()
    app, lab = stage.app, stage.lab
    assert app.is_running
    assert app.return_code is None
    state = app.parameters, app.active, app.theme, [type(screen) for screen in app.screen_stack]
    return *state, lab.panel.cursor, lab.panel.editing, app.screen_stack[0].focused is lab


@pytest.mark.slow
@every_modal
@played(kind=Endless)
async def test_a_key_after_one_that_may_close_a_modal_does_what_it_does_later(
    stage: Stage, opening: Opening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stage.engine.hold = True
    for number, closing in enumerate(CLOSING, MODALS.index(opening)):
        other = OTHERS[number % len(OTHERS)]  # the modals together try all pairs
        later = await effect(stage, opening, [closing], [other])
        assert await effect(stage, opening, [closing, other]) == later, (closing, other)


@played()
async def test_what_closes_a_modal_twice_does_nothing_below(stage: Stage) -> None:
    await form_opened(stage)
    stage.send("ctrl+c", "ctrl+c")
    await stage.answered()
    assert len(stage.app.screen_stack) == 1
    await stage.press("right")
    assert stage.asked.d_k == 65
    await palette_opened(stage)
    await stage.press(*"redraw")
    stage.send("enter", "enter", "enter")
    await stage.until(lambda: stage.asked.seed == 1, "the new seed")
    await stage.still()
    assert stage.asked.seed == 1
    assert len(stage.app.screen_stack) == 1
    await palette_opened(stage)
    for _ in range(2):
        await stage.click((1, 1))
    assert len(stage.app.screen_stack) == 1
    assert stage.app.is_running
    await help_opened(stage)
    stage.send("escape", "ctrl+p", "escape", "ctrl+p")
    await stage.still()
    assert stage.app.is_running
    kinds = [type(screen) for screen in stage.app.screen_stack[1:]]
    assert kinds.count(HelpScreen) <= 1


@played()
async def test_two_enters_write_one_file(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    await stage.settled()
    await stage.press("e")
    stage.send("enter", "enter")
    await stage.still()
    assert len(stage.app.screen_stack) == 1
    assert len([*tmp_path.iterdir()]) == 1


@pytest.mark.parametrize(
    ("key", "size"),
    [
        ("pageup", (20, 3)),
        ("pagedown", (120, 40)),
        ("up", (120, 40)),
        ("down", (20, 3)),
        ("ctrl+end", (120, 40)),
        ("enter", (20, 3)),
    ],
)
@played()
async def test_the_palette_takes_keys_before_it_is_laid_out(stage: Stage, key: str, size: tuple[int, int]) -> None:
    stage.send("ctrl+p")
    await stage.until(lambda: isinstance(stage.app.screen, ChoiceScreen), "the list")
    stage.send(key, key)
    await stage.still()
    assert stage.app.is_running
