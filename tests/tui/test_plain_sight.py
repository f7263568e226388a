"""A change is painted as a full repaint would show it, and what lies behind it is left alone."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from attn_tui.core.parameters import Parameters
from attn_tui.tui import app as app_module
from attn_tui.tui import frugal
from attn_tui.tui.app import AttnApp
from attn_tui.tui.frugal import FrugalApp, FrugalScreen
from hypothesis import given, settings
from hypothesis import strategies as st
from test_frugal import CONSOLE, Terminal, repainted
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.geometry import Region
from textual.pilot import Pilot
from textual.screen import ModalScreen, Screen
from textual.strip import Strip
from textual.widgets import Static

SMALL = Parameters(n_keys=16, n_queries=8, batch=2)


class Sent(FrugalApp[None]):
    """An app with a terminal: what would be sent to it, it shows."""

    terminal = Terminal(0, 0)
    in_sight = 0  # updates without what lies behind

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        if renderable is None or self._batch_count:
            return
        self.in_sight += isinstance(renderable, frugal._Changed)
        if (self.terminal.width, self.terminal.height) != screen.size:
            self.terminal = Terminal(*screen.size)
        self.terminal.feed(self._difference(frugal._strips(renderable), screen.size, CONSOLE))

    async def compare(self, pilot: Pilot[None]) -> None:
        """As soon as everything is painted, the terminal shows what a full repaint would."""
        for _ in range(200):
            whole = [[line] for line in self.screen._compositor.render_strips()]
            if self.terminal.places == repainted(whole, self.screen.size).places:
                return
            await pilot.pause(0.01)
        shown = ["".join(character for character, _ in line) for line in self.terminal.places]
        assert shown == [line.text for [line] in whole]
        pytest.fail("the terminal has other colours")


class Behind(Static):
    """Counts how often it is painted."""

    painted = 0

    def render_lines(self, crop: Region) -> list[Strip]:
        self.painted += 1
        return super().render_lines(crop)


class Scene(Sent):
    """Widgets beside, behind and in front of each other, and some that are seen in part."""

    CSS = """
    Screen { layers: below above; background: #101319; }
    #back { layer: below; width: 30; height: 6; background: #203040; }
    #front { layer: above; width: 10; height: 3; offset: 4 1; background: #402020; }
    #beside { layer: below; width: 30; height: 2; }
    VerticalScroll { layer: below; width: 20; height: 3; }
    Box { height: 2; }
    Dialog { align: center middle; background: #000000 40%; }
    Dialog Static { width: 12; height: 2; }
    """

    def get_default_screen(self) -> Screen[object]:
        return FrugalScreen(id="_default")

    def compose(self) -> ComposeResult:
        yield Behind("back " * 30, id="back")
        yield Static("beside", id="beside")
        with VerticalScroll():
            yield Static("one\ntwo", id="one")
            yield Static("three\nfour", id="two")
        yield Static("front", id="front")


class Dialog(ModalScreen[None]):
    def compose(self) -> ComposeResult:
        yield Static("dialog", id="dialog")


def part(app: Scene, name: str) -> Any:
    """A widget of the scene, also where a dialog lies over it."""
    return app.screen_stack[0].query_one(name)


CHANGES: dict[str, Callable[[Scene], object]] = {
    **{
        f"{text} in {name}": lambda app, name=name, text=text: part(app, name).update(text, layout=False)
        for name in ("#back", "#beside", "#one", "#two", "#front")
        for text in ("a", "bcd 词語 " * 9, "1\n2\n3")
    },
    "a line of back": lambda app: part(app, "#back").refresh(Region(2, 1, 9, 1)),
    "front elsewhere": lambda app: part(app, "#front").set_styles("offset: 9 3;"),
    "front back": lambda app: part(app, "#front").set_styles("offset: 4 1;"),
    "front away": lambda app: part(app, "#front").set_styles("display: none;"),
    "front there": lambda app: part(app, "#front").set_styles("display: block;"),
    "scrolled": lambda app: part(app, "VerticalScroll").scroll_to(y=1, animate=False),
    "scrolled back": lambda app: part(app, "VerticalScroll").scroll_to(y=0, animate=False),
    "dialog": lambda app: app.push_screen(Dialog()) if len(app.screen_stack) == 1 else app.pop_screen(),
}


def played(
    app: App[None], script: Callable[[Pilot[None]], Awaitable[None]], size: tuple[int, int] = (40, 12)
) -> None:
    async def play() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await script(pilot)

    asyncio.run(play())


@settings(max_examples=40)
@given(st.lists(st.lists(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=3), max_size=6))
def test_whatever_changes_the_terminal_shows_what_a_full_repaint_would(rounds: list[list[str]]) -> None:
    app = Scene()

    async def script(pilot: Pilot[None]) -> None:
        await app.compare(pilot)
        for names in rounds:
            for name in names:
                CHANGES[name](app)
            await pilot.pause()
            await app.compare(pilot)

    played(app, script)


def test_what_lies_behind_a_change_is_not_painted() -> None:
    app = Scene()

    async def script(pilot: Pilot[None]) -> None:
        back, before = app.query_one(Behind), app.in_sight
        painted = back.painted
        app.query_one("#front", Static).update("new", layout=False)
        await pilot.pause()
        assert app.in_sight == before + 1
        assert back.painted == painted
        await app.compare(pilot)

    played(app, script)


@pytest.mark.parametrize("name", ["back", "two"])
def test_a_change_that_is_seen_in_part_is_left_to_textual(name: str) -> None:
    app = Scene()

    async def script(pilot: Pilot[None]) -> None:
        before = app.in_sight
        app.query_one(f"#{name}", Static).update("new", layout=False)
        await pilot.pause()
        assert app.in_sight == before
        await app.compare(pilot)

    played(app, script)


class Lab(AttnApp, Sent):
    """The whole app with a terminal."""

    CSS_PATH = Path(app_module.__file__).with_name("app.tcss")


KEYS = ("right", "up", "down", "s", "c", "x", "v", "t", "?", "escape", ">", "<", "tab", "4", "e", "m", "f")


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (50, 14)])
@settings(max_examples=4)
@given(data=st.data())
def test_whatever_is_typed_the_terminal_shows_what_a_full_repaint_would(
    size: tuple[int, int], data: st.DataObject
) -> None:
    keys = data.draw(st.lists(st.sampled_from(KEYS), min_size=4, max_size=12))
    app = Lab(SMALL)

    async def script(pilot: Pilot[None]) -> None:
        for key in keys:
            await pilot.press(key)
            await app.compare(pilot)

    played(app, script, size)
