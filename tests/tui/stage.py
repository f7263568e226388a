"""A running app for tests: what they do to it and what they see of it. Its engine runs in the process of the test."""

import asyncio
import base64
import re
import shlex
from collections.abc import Callable, Coroutine, Hashable, Sequence
from dataclasses import replace
from functools import partial, wraps
from inspect import Signature, signature
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import pytest
from attn_tui.core.errors import InputError
from attn_tui.core.lab.experiment import stream
from attn_tui.core.learning.items import AT, ITEMS
from attn_tui.core.learning.sources import Reading
from attn_tui.core.parameters import Parameters
from attn_tui.core.questions.lab import Measure
from attn_tui.core.questions.learn import ItemFigures, ReadItems
from attn_tui.core.questions.request import Cache, Request, Work
from attn_tui.core.questions.train import RunRace
from attn_tui.core.statistics.catalogue import EVERY, OF_FIRST_VIEW
from attn_tui.core.statistics.measurement import HISTOGRAMS, Measurement
from attn_tui.core.tables.table import Format
from attn_tui.core.theory.prediction import Theory
from attn_tui.tui.app.app import AttnApp
from attn_tui.tui.cli.main import main
from attn_tui.tui.compute.engine import Engine, Notification, Reply, Submission
from attn_tui.tui.compute.measure import Predict, PredictEntropy
from attn_tui.tui.compute.worker import Schedule
from attn_tui.tui.panes.capture.pane import CapturePane
from attn_tui.tui.panes.capture.requests import MeasureHeads, OpenCapture
from attn_tui.tui.panes.lab.pane import LabPane
from attn_tui.tui.panes.pane import Pane
from cases import present
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual._compositor import Compositor
from textual.app import App
from textual.css.stylesheet import Stylesheet
from textual.driver import Driver
from textual.drivers.headless_driver import HeadlessDriver
from textual.geometry import Offset, Size
from textual.keys import _character_to_key  # pyright: ignore[reportPrivateUsage]
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

SMALL = Parameters(d_k=64, n_keys=16, n_queries=8, batch=2)
FORMATS: tuple[Format, ...] = ("json", "csv", "markdown")
SIZES = [(80, 24), (120, 40), (200, 60)]
FOREVER = 120.0  # seconds until a test gives up
STEPS = 400  # of the engine, for which a test waits after a key; small experiments need fewer

Script = Callable[["Stage"], Coroutine[Any, Any, None]]
P = TypeVar("P", bound=Pane)
S = TypeVar("S", bound=Screen[Any])
A = ParamSpec("A")

_sheets: Any = Stylesheet
_parse = _sheets._parse_rules
_parsed: dict[Hashable, Any] = {}


def _parse_once(sheet: Any, css: str, **how: Any) -> Any:
    """Return the rules of a style sheet, which each app of a process would parse again."""
    key = css, *how.items(), *sheet._variables.items()
    if key not in _parsed:
        _parsed[key] = _parse(sheet, css, **how)
    return _parsed[key]


_sheets._parse_rules = _parse_once

_works: dict[type[Request], Any] = {
    kind: kind.work for kind in (Measure, Predict, PredictEntropy, MeasureHeads, RunRace, ReadItems)
}
_worked: dict[Request, list[object]] = {}


def _work_once(request: Any, cache: Cache) -> Work:
    """Take the steps of a request, or repeat them if an app of this process has: they depend on nothing else."""
    work = _works[Measure if isinstance(request, Measure) else type(request)](request, cache)
    if isinstance(request, ReadItems) and request.first.kind != "bug":
        request = replace(request, folder=Path())
    steps = _worked.get(request, [])
    yield from steps
    if not steps:
        for step in _with_answer(work):
            steps.append(step)
            yield step
        if getattr(request, "folder", Path()) == Path() and getattr(request, "file", OpenCapture()).path is None:
            _worked[request] = steps  # others write a file, or read one that may change


def _with_answer(work: Any) -> Work:
    """Yield the steps of some work, and the answer that it returns."""
    yield (yield from work)


class LocalEngine(Engine):
    """Answers requests in the event loop of the app, a step at a time; replies can be held back."""

    def __init__(self, hold: bool = False) -> None:
        super().__init__()
        self.hold = hold
        self.held: list[Reply] = []
        self.asked: list[Submission] = []  # all of them, in order
        self._schedule = Schedule()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.scheduled = False  # whether the loop is about to call `_step`

    def attach(self, loop: asyncio.AbstractEventLoop, notify: Callable[[Notification], object]) -> None:
        super().attach(loop, notify)
        self._loop = loop
        self._run()

    def close(self) -> None:
        self._loop = None

    def send(self, submission: Submission) -> None:
        self.asked.append(submission)
        for reply in self._schedule.submit(submission):
            self._hold_or_deliver(reply)
        self._run()

    def let_go(self) -> None:
        """Deliver the replies held back, and hold back no more."""
        self.hold = False
        held, self.held = self.held, []
        for reply in held:
            self.deliver(reply)

    def hand_on(self, replies: Sequence[Reply]) -> None:
        """Deliver some of the replies held back."""
        for reply in replies:
            self.held.remove(reply)
            self.deliver(reply)

    def held_for(self, kind: type[Request]) -> list[Reply]:
        """Return the replies held back for the latest request of a kind."""
        number = max(asked.number for asked in self.asked if asked.kind is kind)
        return [reply for reply in self.held if reply.number == number]

    @property
    def at_rest(self) -> bool:
        """Whether no work is left."""
        return self._schedule.idle

    def _run(self) -> None:
        if self._loop is not None and not self.scheduled and not self._schedule.idle:
            self.scheduled = True
            self._loop.call_soon(self._step)

    def _step(self) -> None:
        self.scheduled = False
        if self._loop is not None and not self._schedule.idle:
            for reply in self._schedule.step():
                self._hold_or_deliver(reply)
            self._run()

    def _hold_or_deliver(self, reply: Reply) -> None:
        if self.hold:
            self.held.append(reply)
        else:
            self.deliver(reply)


class Stage:
    """A running app: what tests do to it, and what they see of it."""

    def __init__(self, app: AttnApp, engine: LocalEngine, pilot: Pilot[Any]) -> None:
        self.app, self.engine, self.pilot = app, engine, pilot

    # Actions

    async def press(self, *keys: str) -> None:
        """Press keys, each once the one before has been handled."""
        for key in keys:
            self.send(key)
            await self.answered()

    async def answered(self) -> None:
        """Wait until everything typed has had its effect, no message is left, and everything is painted."""
        done = asyncio.Event()
        call = events.Callback(partial(self.app.do_last, done.set))
        driver_of(self.app).send_message(call)  # as keys from the terminal are; it must not overtake them
        while self.app.is_running and not done.is_set():
            await asyncio.sleep(0.001)
        await self._idle()
        self.app.show_answer()  # now: an idle engine sends none for which the frame waits
        while self.app.is_running and self._paint():
            await self._idle()

    async def _idle(self) -> None:
        """Wait until nothing is left to do before the next timer, except long work of the engine."""
        loop: Any = asyncio.get_running_loop()
        turns = 0
        await asyncio.sleep(0)
        while len(loop._ready) > self.engine.scheduled or (loop._ready and turns < STEPS):
            await asyncio.sleep(0)
            turns += 1

    def _paint(self) -> bool:
        """Lay out and paint now what would be at the next frame; return whether there was anything."""
        screen: Any = self.app.screen
        due: bool = screen._update_timer._active.is_set()
        if due:
            screen._on_timer_update()
        return due

    def send(self, *keys: str) -> None:
        """Press keys without waiting for the app."""
        for key in keys:
            name = key if len(key) > 1 or key.isalnum() else _character_to_key(key)
            self.app.post_message(events.Key(name, key if len(key) == 1 else None))

    def mouse(self, kind: type[events.MouseEvent], at: tuple[int, int], button: int = 1) -> None:
        """Send what a terminal reports of the mouse, without waiting for the app."""
        x, y = at
        self.app.post_message(kind(None, x, y, 0, 0, button, False, False, False, screen_x=x, screen_y=y))

    async def click(self, at: str | tuple[int, int], widget: Widget | None = None) -> None:
        """Click on words or at a place, of the screen or within the border of a widget."""
        place = self.place(at, widget) if isinstance(at, str) else self._corner(widget) + at
        self.mouse(events.MouseDown, place)
        self.mouse(events.MouseUp, place)
        await self.answered()

    async def scroll(self, kind: type[events.MouseEvent], at: tuple[int, int], widget: Widget | None = None) -> None:
        """Turn the wheel at a place, as `click` clicks."""
        self.mouse(kind, self._corner(widget) + at, 0)
        await self.answered()

    def place(self, words: str, widget: Widget | None = None) -> Offset:
        """Return where words are on screen, in a widget if one is given."""
        lines = self.part(widget) if widget else self.lines
        y = next(y for y, line in enumerate(lines) if words in line)
        return self._corner(widget) + Offset(lines[y].index(words), y)

    def _corner(self, widget: Widget | None) -> Offset:
        return widget.content_region.offset if widget else Offset(0, 0)

    async def resize(self, width: int, height: int) -> None:
        """Resize the terminal. `Pilot.resize_terminal` would wait for an idle processor, up to a second."""
        size = Size(width, height)
        driver = driver_of(self.app)
        assert isinstance(driver, HeadlessDriver)
        driver._size = size  # pyright: ignore[reportPrivateUsage]
        self.app.post_message(events.Resize(size, size))
        await self.until(lambda: [each.cell_length for each in rendered(self.app.screen)] == [width] * height, "size")
        await self.answered()

    async def still(self) -> "Stage":
        """Wait as `answered` does."""
        await self.answered()
        return self

    async def until(self, condition: Callable[[], object], what: str = "") -> None:
        """Wait for a condition."""
        for _ in range(int(FOREVER / 0.01)):
            if condition():
                return
            await asyncio.sleep(0.01)
        pytest.fail(f"no {what or 'such state'} within {FOREVER:g} s; the screen:\n" + "\n".join(self.lines))

    async def settled(self) -> "Stage":
        """Wait until the Lab shows the complete measurement of the parameters."""
        await self.until(lambda: self.is_settled, "the result")
        return await self.still()

    async def at_rest(self) -> "Stage":
        """Wait until no work is left, also for what was typed ahead, and everything is painted."""
        await self.until(lambda: self.engine.at_rest, "rest")
        return self if (await self.still()).engine.at_rest else await self.at_rest()

    async def opened(self, kind: type[P]) -> P:
        """Show a pane."""
        await self.show(kind.NAME)
        return self.pane(kind)

    async def show(self, pane: str) -> None:
        """Show the pane of this name."""
        self.app.action_pane(pane)
        await self.answered()

    def pane(self, kind: type[P]) -> P:
        """Return the pane on screen, which must be of this kind."""
        pane = self.app.pane
        assert isinstance(pane, kind)
        return pane

    def screen(self, kind: type[S]) -> S:
        """Return the screen above all others, which must be of this kind."""
        screen = self.app.screen
        assert isinstance(screen, kind)
        return screen

    async def complete(self, kind: type[P]) -> P:
        """Show a pane and wait until all its numbers are on screen."""
        return await self.known(await self.opened(kind))

    async def known(self, pane: P) -> P:
        """Wait until a pane shows all its numbers."""
        await self.until(lambda: succeeds(lambda: pane.numbers("csv")), "the numbers")
        await self.still()
        return pane

    async def head(self, place: tuple[int, int] | None = (0, 0)) -> CapturePane:
        """Open the Capture pane and wait for a head, by default the first one; None: the one that the pane selects.

        Or wait for the reason why there is no result.
        """
        pane = await self.opened(CapturePane)
        await self.until(lambda: pane.measurement or pane.results.why_stale, "the head")
        if place is not None and pane.heads.capture is not None:
            pane.home = None
            pane.map.go(*place)
            await self.until(lambda: pane.is_current or pane.results.why_stale, "the head")
        await self.still()
        return pane

    # What is on screen

    @property
    def lab(self) -> LabPane:
        pane = self.app.panes["Lab"]
        assert isinstance(pane, LabPane)
        return pane

    @property
    def panel(self) -> Any:
        return self.lab.panel

    @property
    def table(self) -> Any:
        return self.lab.results.table

    @property
    def is_settled(self) -> bool:
        return self.lab.is_current and not self.table.dimmed and self.lab.panel.parameters == self.app.parameters

    @property
    def asked(self) -> Parameters:
        return self.app.parameters

    @property
    def measurement(self) -> Measurement[Parameters]:
        return present(self.lab.answer).measurement

    @property
    def expected(self) -> Measurement[Parameters]:
        """What the Lab's answer is to hold, measured again."""
        wanted = (EVERY, HISTOGRAMS) if present(self.lab.answer).full else (OF_FIRST_VIEW, HISTOGRAMS[:2])
        *_, last = stream(self.asked, statistics=wanted[0], histograms=wanted[1])
        return present(last.measurement())

    @property
    def theory(self) -> Theory:
        return present(self.lab.answer).theory

    @property
    def lines(self) -> list[str]:
        return [strip.text for strip in rendered(self.app.screen)]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def part(self, widget: Widget) -> list[str]:
        """Return the lines of a widget, without its border."""
        region = widget.content_region
        return [line[region.x : region.right] for line in self.lines[region.y : region.bottom]]

    def words(self, widget: Widget) -> str:
        """Return the text of a paragraph."""
        return " ".join(" ".join(self.part(widget)).split())

    def segments(self, widget: Widget) -> list[Segment]:
        """Return the non-blank segments of a widget, without its border."""
        region = widget.content_region
        strips = rendered(self.app.screen)[region.y : region.bottom]
        return [piece for strip in strips for piece in strip.crop(region.x, region.right) if piece.text.strip()]

    def styles(self, widget: Widget) -> set[Style | None]:
        """Return the styles of a widget's characters."""
        return {piece.style for piece in self.segments(widget)}


def _drop_update(compositor: Any, **_: object) -> None:
    compositor._dirty_regions.clear()


def play(
    script: Script,
    parameters: Parameters = SMALL,
    size: tuple[int, int] = (120, 40),
    *,
    hold: bool = False,
    idle: bool = False,
    claims: bool = False,
    painted: bool = False,
    kind: type[AttnApp] = AttnApp,
    **arguments: Any,
) -> AttnApp:
    """Run a script with an app of this size; with `hold`, replies are held back from the start.

    An `idle` engine answers nothing from the script on. Unless `claims` are tested, each has an outcome at once.
    Textual itself knows what is on screen only if that is `painted`.
    """

    async def run() -> AttnApp:
        engine = LocalEngine(hold)
        app = kind(parameters, engine, **arguments)
        async with app.run_test(size=size) as pilot:
            if idle:
                patched.setattr(engine, "send", engine.asked.append)
            await script(Stage(app, engine, pilot))
            app.workers.cancel_all()  # as an app does that ends by itself
        engine.close()
        return app

    with pytest.MonkeyPatch.context() as patched:
        if (
            kind is AttnApp and not painted
        ):  # without a terminal, updates are dropped; tests compose what they look at
            patched.setattr(Compositor, "render_update", _drop_update)
        for asked, work in _works.items():
            if asked.work is work:
                patched.setattr(asked, "work", _work_once)
        if not claims and ReadItems.work in (_works[ReadItems], _work_once):
            patched.setattr(ReadItems, "work", untested_claims)
        return asyncio.run(run())


def played(
    *how: Any, settled: bool = False, **named: Any
) -> Callable[[Callable[Concatenate[Stage, A], Coroutine[Any, Any, None]]], Callable[A, None]]:
    """Make a test of a script, with arguments of `play`; those that the test is given under their names are added.

    With `settled`, the script begins when the Lab shows the complete measurement of the parameters.
    """

    def test_of(script: Callable[Concatenate[Stage, A], Coroutine[Any, Any, None]]) -> Callable[A, None]:
        @wraps(script)
        def test(*args: A.args, **kwargs: A.kwargs) -> None:
            async def begin(stage: Stage) -> None:
                if settled:
                    await stage.settled()
                await script(stage, *args, **kwargs)

            given = {name: kwargs[name] for name in ("parameters", "size", "glyphs") if name in kwargs}
            play(begin, *how, **named, **given)

        _, *others = signature(script).parameters.values()
        test.__dict__["__signature__"] = Signature(others)  # by which pytest finds the fixtures
        return test

    return test_of


def driver_of(app: App[Any]) -> Driver:
    """Return the driver of a running app."""
    return present(app._driver)  # pyright: ignore[reportPrivateUsage]


def rendered(screen: Screen[Any]) -> list[Strip]:
    """Return the lines that Textual composes for a screen."""
    return screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]


def numbers(measurement: Measurement[Any]) -> list[Any]:
    """Return every number of a measurement, to compare with ==."""
    return [
        (c.rule, c.multiplier, dict(c.measured), {name: [*h.counts] for name, h in c.histograms.items()})
        for c in measurement.columns
    ]


def untested_claims(request: ReadItems, cache: Cache) -> Work:
    """Answer what is asked about claims at once, for tests that do not need figures."""
    claims = [item for item in request.items if ITEMS[AT[item]].kind == "claim"]
    yield [ItemFigures(item, dict.fromkeys(ITEMS[AT[item]].figures, Reading(None))) for item in claims]
    others = tuple(item for item in request.items if item not in claims)
    if others:
        yield from _work_once(replace(request, items=others), cache)


def capture_file(folder: Path, q: np.ndarray, k: np.ndarray | None = None, name: str = "capture.npz") -> Path:
    """Save queries [head, token, d_k] and keys, by default the queries, to a file."""
    file = folder / name
    np.savez(file, q=q, k=q if k is None else k)
    return file


def some_heads(heads: int = 3, tokens: int = 6, d_k: int = 4, seed: int = 0) -> np.ndarray:
    """Return random queries or keys [head, token, d_k]."""
    return np.random.default_rng(seed).standard_normal((heads, tokens, d_k), dtype=np.float32)


def copies(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that receives everything copied to the clipboard from now on."""
    found: list[str] = []

    def write(data: str) -> None:
        parts = re.findall("\x1b\\]52;c;(.*?)\a", data)
        found.extend(base64.b64decode(part, validate=True).decode() for part in parts)

    monkeypatch.setattr(driver_of(stage.app), "write", write)
    return found


Taken = tuple[str, dict[str, str]]  # a pane's command, and its numbers in every format


def take(pane: Pane) -> Taken:
    """Return the command and the numbers of a pane."""
    return pane.command(), {kind: pane.numbers(kind) for kind in FORMATS}


def agree(taken: list[Taken], captured: pytest.CaptureFixture[str]) -> None:
    """Check that each command prints the numbers taken with it; call this after the app has closed."""
    assert taken
    for command, exported in taken:
        program, *words = shlex.split(command)
        assert program == "attn-tui"
        for kind, text in exported.items():
            assert main([*words, "--format", kind]) == 0
            out, err = captured.readouterr()
            assert out == text
            assert not [line for line in err.splitlines() if not line.startswith("attn-tui: note: ")]


def refusal(ask: Callable[[], str]) -> str:
    """Return the sentence that explains why there are no numbers, or no command."""
    with pytest.raises(InputError) as caught:
        ask()
    assert str(caught.value)[-1] == "."
    return str(caught.value)


def succeeds(ask: Callable[[], str]) -> bool:
    """Return whether there are numbers, or a command."""
    try:
        return bool(ask())
    except InputError:
        return False
