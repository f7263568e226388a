"""The terminal's contents after each frame of a running app."""

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attn_tui.tui.app import app as app_module
from attn_tui.tui.app.app import AttnApp
from attn_tui.tui.panes import stepping
from attn_tui.tui.terminal import paced_app
from attn_tui.tui.terminal.diff_screen import DiffApp, strips_of
from attn_tui.tui.terminal.paced_app import PacedApp
from attn_tui.tui.terminal.pacing import Pacing
from attn_tui.tui.views.glyphs import UNICODE
from attn_tui.tui.views.numbers import short
from digits import shows_number
from emulator import Terminal, repainted
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from stage import Stage, played, rendered
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.geometry import Region
from textual.screen import ModalScreen, Screen
from textual.timer import Timer
from textual.widgets import Static

CONSOLE = Console(color_system="truecolor", force_terminal=True)


class Shown(DiffApp[Any]):
    """An app that sends its frames to an emulated terminal."""

    terminal = Terminal(0, 0)

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        if renderable is None or self._batch_count:
            return
        if (self.terminal.width, self.terminal.height) != screen.size:
            self.terminal = Terminal(*screen.size)
        self.terminal.feed(self.difference(strips_of(renderable), screen.size, CONSOLE))
        self.frame_shown()

    def frame_shown(self) -> None:
        """Hook called after each frame."""

    async def compare(self) -> None:
        """Wait until the terminal shows what a full repaint would show."""
        expected = Terminal(0, 0)
        for _ in range(200):
            expected = repainted([[line] for line in rendered(self.screen)], self.screen.size)
            if self.terminal.places == expected.places:
                return
            await asyncio.sleep(0.01)
        assert self.terminal.lines == expected.lines
        pytest.fail("the terminal shows other styles")


# Any widgets


class Scene(Shown):
    """Widgets side by side and overlapping, some partly visible."""

    CSS = """
    Screen { layers: below above; background: #101319; }
    #back { layer: below; width: 30; height: 6; background: #203040; }
    #front { layer: above; width: 10; height: 3; offset: 4 1; background: #402020; }
    #beside { layer: below; width: 30; height: 2; }
    VerticalScroll { layer: below; width: 20; height: 3; }
    Dialog { align: center middle; background: #000000 40%; }
    Dialog Static { width: 12; height: 2; }
    """

    def compose(self) -> ComposeResult:
        yield Static("back " * 30, id="back")
        yield Static("beside", id="beside")
        with VerticalScroll():
            yield Static("one\ntwo", id="one")
            yield Static("three\nfour", id="two")
        yield Static("front", id="front")

    def part(self, name: str) -> Any:
        """Return a widget of the scene, even while a dialog is open."""
        return self.screen_stack[0].query_one(name)


class Dialog(ModalScreen[None]):
    def compose(self) -> ComposeResult:
        yield Static("dialog")


CHANGES: dict[str, Callable[[Scene], object]] = {
    **{
        f"{text} in {name}": lambda app, name=name, text=text: app.part(name).update(text, layout=False)
        for name in ("#back", "#beside", "#one", "#two", "#front")
        for text in ("a", "bcd 词語 " * 9, "1\n2\n3")
    },
    "a line of back": lambda app: app.part("#back").refresh(Region(2, 1, 9, 1)),
    "front elsewhere": lambda app: app.part("#front").set_styles("offset: 9 3;"),
    "front back": lambda app: app.part("#front").set_styles("offset: 4 1;"),
    "front hidden": lambda app: app.part("#front").set_styles("display: none;"),
    "front shown": lambda app: app.part("#front").set_styles("display: block;"),
    "scrolled": lambda app: app.part("VerticalScroll").scroll_to(y=1, animate=False),
    "scrolled back": lambda app: app.part("VerticalScroll").scroll_to(y=0, animate=False),
    "dialog": lambda app: app.push_screen(Dialog()) if len(app.screen_stack) == 1 else app.pop_screen(),
}


@settings(max_examples=25)
@given(st.lists(st.lists(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=3), max_size=6))
def test_whatever_changes_the_terminal_is_as_after_a_full_repaint(rounds: list[list[str]]) -> None:
    async def run() -> None:
        app = Scene()
        async with app.run_test(size=(40, 12)) as pilot:
            await app.compare()
            for names in rounds:
                for name in names:
                    CHANGES[name](app)
                await pilot.pause()
                await app.compare()

    asyncio.run(run())


class Undrained(PacedApp[None]):
    """An app that repaints everything after each delay, on a terminal that always owes it a reply."""

    tries = 0

    def all_sent(self) -> bool:
        return False

    @property
    def is_headless(self) -> bool:
        return False  # else Textual sends nothing

    def on_mount(self) -> None:
        self.pacing = Pacing(self.caught_up)
        self.pacing.query(0)
        self.pacing.replied(1)
        self.pacing.query(0)

    def set_timer(self, delay: float, callback: Any = None, **_: Any) -> Timer:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self.pacing:
            self.pacing.replied(1)  # to the first of two queries, once a frame waits
        return super().set_timer(delay, callback)

    def delay_or_paint(self) -> None:
        self.tries += 1
        super().delay_or_paint()


def test_a_frame_without_differences_is_the_last_one() -> None:
    async def run() -> None:
        app = Undrained()
        async with app.run_test() as pilot:
            for text in ("one", "one\ntwo") * 4:  # another layout each time, and at last the same
                await app.screen.remove_children()
                await app.screen.mount(Static(text))
                app.delay_or_paint()
            await pilot.pause(0.2)
            tries = app.tries
            await pilot.pause(0.2)
            assert 8 < tries == app.tries

    asyncio.run(run())


# The app


class ShownApp(AttnApp, Shown):
    """attn-tui with the text of all frames."""

    CSS_PATH = Path(app_module.__file__).with_name("app.tcss")

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.frames: list[str] = []

    def frame_shown(self) -> None:
        self.frames.append("\n".join(self.terminal.lines))

    def shown_by(self, frame: str) -> tuple[bool, bool]:
        """Return whether the headline shows the app's d_k, and whether the numbers are for it."""
        p = self.parameters
        title = f"× {short(p.d_k**-0.5, UNICODE)} (1/√d_k)"
        return shows_number(frame.splitlines(), p.d_k), title in frame


KEYS = ("right", "up", "down", "s", "c", "x", "v", "t", "?", "escape", ">", "<", "tab", "4", "e", "m", "f")


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (50, 14)])
@settings(max_examples=3)
@given(keys=st.lists(st.sampled_from(KEYS), min_size=4, max_size=12))
@played(kind=ShownApp)
async def test_whatever_is_typed_the_terminal_is_as_after_a_full_repaint(
    stage: Stage, size: tuple[int, int], keys: list[str]
) -> None:
    assert isinstance(stage.app, ShownApp)
    for key in keys:
        await stage.press(key)
        await stage.app.compare()


async def frames_after(stage: Stage, key: str) -> list[tuple[bool, bool]]:
    """Press a key; return what the following frames show."""
    app = stage.app
    assert isinstance(app, ShownApp)
    app.frames.clear()
    stage.send(key)
    await stage.until(lambda: app.frames, "a frame")
    await stage.still()
    return [app.shown_by(frame) for frame in app.frames]


@played(kind=ShownApp, settled=True)
async def test_a_result_is_in_the_frame_of_its_key_unless_it_is_late(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.press("v")
    stage.app.last_frame = math.inf  # no earlier answer waits to be painted
    for wait, shown in ((100.0, (True, True)), (0.0, (True, False))):
        monkeypatch.setattr(paced_app, "EXPECTED", wait)
        stage.engine.hold = True
        if wait:
            asyncio.get_running_loop().call_later(0.1, stage.engine.let_go)
        assert set(await frames_after(stage, "right")) == {shown}


@played(kind=ShownApp, settled=True)
async def test_a_prefetched_result_is_in_the_same_frame_as_the_new_value(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepping, "HELD", math.inf)
    await stage.press("v", "right", "right")
    await stage.at_rest()
    assert set(await frames_after(stage, "right")) == {(True, True)}


@played(kind=ShownApp, settled=True)
async def test_a_key_that_waits_for_its_result_does_not_delay_the_last_one(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = stage.app
    assert isinstance(app, ShownApp)
    for name in ("EXPECTED", "_DUE"):  # seconds, more than a test waits
        monkeypatch.setattr(paced_app, name, 1000.0)
    stage.engine.hold = True
    stage.send("right")
    await stage.until(lambda: stage.engine.held, "a result")
    app.frames.clear()
    stage.engine.let_go()
    stage.engine.hold = True
    stage.send("right")
    await stage.until(lambda: app.frames, "a frame")
    stage.engine.let_go()
