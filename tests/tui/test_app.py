"""The app as people use it: keys in, a screen out."""

import asyncio
import random
import re
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from attn_tui.core.attention.scales import SCALE_RULES
from attn_tui.core.lab.experiment import run
from attn_tui.core.landmarks import next_width
from attn_tui.core.parameters import FIELD, ParameterError, Parameters
from attn_tui.core.statistics.catalogue import ALWAYS, STATISTIC, STATISTICS
from attn_tui.core.statistics.measurement import Measurement
from attn_tui.tui import app as app_module
from attn_tui.tui import work
from attn_tui.tui.app import AttnApp
from attn_tui.tui.messages import Computed, MeasurementReady
from attn_tui.tui.panes.capture import CapturePane
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.panes.pane import Pane
from attn_tui.tui.settings import Settings
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.numbers import aligned, short
from attn_tui.tui.views.panel import applicable
from attn_tui.tui.views.table import LABEL
from attn_tui.tui.widgets.help_screen import HelpScreen, HelpText
from rich.style import Style
from textual import events
from textual.drivers.headless_driver import HeadlessDriver
from textual.geometry import Size
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.widget import Widget

SMALL = Parameters(d_k=64, n_keys=16, n_queries=8, batch=2)
SIZES = [(80, 24), (120, 40), (200, 60)]
FOREVER = 20.0  # seconds until a test gives up

Script = Callable[["Stage"], Coroutine[Any, Any, None]]
P = TypeVar("P", bound=Pane)


class Held(AttnApp):
    """The app, with results that can be held back on their way to it."""

    CSS_PATH = Path(app_module.__file__).with_name("app.tcss")

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.hold = named.pop("hold", False)
        super().__init__(*arguments, **named)
        self.held: list[Computed] = []
        self.through = self.lab.deliver
        self.lab.deliver = self.deliver  # type: ignore[method-assign]

    def deliver(self, message: Computed) -> None:
        if self.hold:
            self.held.append(message)
        else:
            self.through(message)

    def let_go(self) -> None:
        self.hold = False
        for message in self.held:
            self.through(message)
        self.held.clear()


class Stage:
    """A running app, with what tests do to it and see of it."""

    def __init__(self, app: Held, pilot: Pilot[Any]) -> None:
        self.app, self.pilot = app, pilot
        self.lab, self.panel, self.table = app.lab, app.lab.panel, app.lab.results.table

    # Do

    async def press(self, *keys: str) -> None:
        """Press keys and wait until each has been answered."""
        for key in keys:
            self.send(key)
            await self.answered()

    async def answered(self) -> None:
        """Wait until a key and its messages have gone through all queues: down to the focus and up, twice."""
        for _ in range(4):
            shown = (widget for widget in self.app.screen.walk_children() if widget.region)
            for pump in (self.app, self.app.screen, *shown):
                through = asyncio.Event()
                if pump.call_later(through.set):
                    await asyncio.wait_for(through.wait(), FOREVER)

    def send(self, *keys: str) -> None:
        """Press keys faster than the app can answer."""
        for key in keys:
            named = len(key) > 1 or key.isalnum()
            self.app.post_message(
                events.Key(key if named else _character_to_key(key), key if len(key) == 1 else None)
            )

    async def resize(self, width: int, height: int) -> None:
        """Resize the terminal; the pilot's own way waits a second for an idle processor."""
        size = Size(width, height)
        assert isinstance(self.app._driver, HeadlessDriver)
        self.app._driver._size = size
        self.app.post_message(events.Resize(size, size))
        await self.answered()

    async def still(self) -> "Stage":
        """Wait until everything is painted."""
        seen = [""]
        while len(set(seen[-3:])) != 1 or len(seen) < 4:
            await self.answered()
            await self.pilot.pause(0.005)
            seen.append(self.text)
        return self

    async def until(self, condition: Callable[[], object], what: str = "") -> None:
        """Wait for a condition."""
        for _ in range(int(FOREVER / 0.01)):
            if condition():
                return
            await asyncio.sleep(0.01)
        pytest.fail(f"{what or 'the condition'} never came about; the screen:\n" + "\n".join(self.lines))

    async def settled(self) -> "Stage":
        """Wait until the lab shows what is asked for, complete and with its theory."""
        await self.until(lambda: self.is_settled, "the result")
        return await self.still()

    async def opened(self, kind: type[P]) -> P:
        """Show a pane."""
        self.app.action_pane(kind.NAME)
        await self.answered()
        pane = self.app.panes[kind.NAME]
        assert isinstance(pane, kind)
        return pane

    async def head(self) -> CapturePane:
        """Open the Capture pane, and wait for the head with the cursor."""
        self.app.action_pane("Capture")
        await self.until(lambda: self.pane.results._contents.columns or self.pane.results._stale, "the head")
        await self.still()
        return self.pane

    async def head_of(self, file: Path) -> CapturePane:
        """Wait for the first head of the file that the app was opened with, or for the reason why there is none."""
        await self.until(
            lambda: "Capture" in self.app.panes and (self.pane.results._contents.columns or self.pane.results._stale)
        )
        await self.still()
        assert self.pane.path == file
        return self.pane

    # See

    @property
    def is_settled(self) -> bool:
        shown, theory = self.lab.measurement, self.lab.theory
        return bool(
            shown
            and theory
            and shown.complete
            and shown.subject == theory.prediction.parameters == self.app.parameters == self.lab.parameters
            and not self.table.dimmed
        )

    @property
    def pane(self) -> CapturePane:
        pane = self.app.panes["Capture"]
        assert isinstance(pane, CapturePane)
        return pane

    @property
    def asked(self) -> Parameters:
        return self.app.parameters

    @property
    def measurement(self) -> Measurement[Parameters]:
        assert self.lab.measurement is not None
        return self.lab.measurement

    @property
    def lines(self) -> list[str]:
        return [strip.text for strip in self.app.screen._compositor.render_strips()]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def part(self, widget: Widget) -> list[str]:
        """What a widget shows."""
        region = widget.region
        return [line[region.x : region.right] for line in self.lines[region.y : region.bottom]]

    def words(self, widget: Widget) -> str:
        """What a paragraph says."""
        return " ".join(" ".join(self.part(widget)).split())

    def styles(self, widget: Widget) -> set[Style | None]:
        """All styles that a widget's signs have on screen."""
        region, found = widget.region, set()
        for strip in self.app.screen._compositor.render_strips()[region.y : region.bottom]:
            found |= {s.style for s in strip.crop(region.x, region.right) if s.text.strip()}
        return found


def play(
    script: Script, parameters: Parameters = SMALL, size: tuple[int, int] = (120, 40), **arguments: Any
) -> AttnApp:
    """Run a script against an app of this size."""

    async def run_it() -> AttnApp:
        app = Held(parameters, **arguments)
        async with app.run_test(size=size) as pilot:
            await script(Stage(app, pilot))
        return app

    return asyncio.run(run_it())


def numbers(measurement: Measurement[Any]) -> list[Any]:
    """Every number of a measurement, to compare with ==."""
    return [
        (
            column.rule,
            column.multiplier,
            dict(column.measured),
            {k: [*h.counts] for k, h in column.histograms.items()},
        )
        for column in measurement.columns
    ]


def capture_file(folder: Path, q: np.ndarray, k: np.ndarray | None = None, name: str = "capture.npz") -> Path:
    """A file of these queries [head, token, d_k] and keys."""
    file = folder / name
    np.savez(file, q=q, k=q if k is None else k)
    return file


def some_heads(heads: int = 3, tokens: int = 6, d_k: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((heads, tokens, d_k), dtype=np.float32)


# The Lab's keys


@pytest.mark.parametrize(
    ("keys", "changes"),
    [
        (["right", "l", "right"], [{"d_k": 65}, {"d_k": 66}, {"d_k": 67}]),
        (["left", "h", "left"], [{"d_k": 63}, {"d_k": 62}, {"d_k": 61}]),
        (["up", "k", "right", "up"], [{"d_k": 128}, {"d_k": 256}, {"d_k": 257}, {"d_k": 512}]),
        (["down", "j", "left", "down"], [{"d_k": 32}, {"d_k": 16}, {"d_k": 15}, {"d_k": 8}]),
        (["pageup", "pageup", "pageup"], [{"d_k": 80}, {"d_k": 96}, {"d_k": 128}]),
        (["pagedown", "pagedown", "pagedown"], [{"d_k": 32}, {"d_k": 16}, {"d_k": 16}]),
        (["]", "]", "["], [{"n_keys": 32}, {"n_keys": 64}, {"n_keys": 32}]),
        (["s", "s", "S"], [{"scale": "d_k"}, {"scale": "log_d_k"}, {"scale": "d_k"}]),
        (["S", "S"], [{"scale": "none"}, {"scale": "custom"}]),
        (["c", "c"], [{"components": "uniform"}, {"components": "laplace"}]),
        (["x", "x"], [{"mask": "causal"}, {"mask": "none"}]),
        (["r", "r"], [{"seed": 1}, {"seed": 2}]),
        (["5", "1", "2"], [{"d_k": 5}, {"d_k": 51}, {"d_k": 512}]),
        (["5", "1", "backspace", "7"], [{"d_k": 5}, {"d_k": 51}, {"d_k": 5}, {"d_k": 57}]),
        (["5", "enter", "7"], [{"d_k": 5}, {"d_k": 5}, {"d_k": 7}]),
        (["5", "right", "7"], [{"d_k": 5}, {"d_k": 6}, {"d_k": 7}]),
        (["5", "1", "escape"], [{"d_k": 5}, {"d_k": 51}, {"d_k": 64}]),
        (
            ["x", "5", "escape", "escape"],
            [{"mask": "causal"}, {"mask": "causal", "d_k": 5}, *[{"mask": "causal"}] * 2],
        ),
        (["enter", "escape", "backspace"], [{}, {}, {}]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value[0], str) else "",
)
def test_a_key_of_the_lab_asks_for_what_it_says(keys: list[str], changes: list[dict[str, Any]]) -> None:
    async def script(stage: Stage) -> None:
        for key, change in zip(keys, changes, strict=True):
            await stage.press(key)
            await stage.until(lambda change=change: stage.asked == replace(SMALL, **change), f"{change} after {key}")
        await stage.settled()
        row = stage.part(stage.panel)[0]
        assert row.split()[:2] == ["d_k", f"{stage.asked.d_k}{'_' if stage.panel.editing else ''}"]
        assert f"d_k {stage.asked.d_k} " in stage.lines[0] + " "

    play(script)


def test_every_value_is_measured_as_if_it_had_been_asked_for_alone() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        for key in ("right", "up", "]", "s", "c", "x", "r", "9"):
            await stage.press(key)
            await stage.settled()
            assert numbers(stage.measurement) == numbers(run(stage.asked)), key

    play(script)


@pytest.mark.parametrize(
    ("parameters", "key", "back"),
    [
        (replace(SMALL, d_k=1), "left", "right"),
        (replace(SMALL, d_k=1), "down", "right"),
        (replace(SMALL, d_k=16_384), "right", "left"),
        (replace(SMALL, d_k=16_384), "up", "left"),
        (replace(SMALL, d_k=576), "pageup", "left"),
        (replace(SMALL, d_k=16), "pagedown", "left"),
        (replace(SMALL, n_keys=1), "[", "right"),
        (replace(SMALL, n_keys=8_192, n_queries=1), "]", "right"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_at_a_bound_a_key_stops(parameters: Parameters, key: str, back: str) -> None:
    async def script(stage: Stage) -> None:
        await stage.press(key, key)
        assert stage.asked == parameters
        await stage.press(back)
        assert stage.asked.d_k == parameters.d_k + (1 if back == "right" else -1)
        assert stage.asked.n_keys == parameters.n_keys

    play(script, parameters)


def test_t_swaps_standard_errors_for_theory_where_there_is_no_room_for_both() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        before = stage.part(stage.table)
        assert all("±" in line for line in before if line.startswith((" entropy", " max weight")))
        assert "theory" not in before[0]
        await stage.press("t")
        await stage.still()
        swapped = stage.part(stage.table)
        assert "theory" in swapped[0]
        assert not any("±" in line for line in swapped[1:-1])
        await stage.press("t")
        await stage.still()
        assert stage.part(stage.table) == before

    play(script, size=(80, 24))


def test_v_shows_the_table_the_histograms_or_both() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        both = stage.text
        seen = []
        for _ in range(3):
            await stage.press("v")
            await stage.still()
            seen.append(("entropy / ln n" in stage.text, "row entropy" in stage.text))
        assert seen == [(True, False), (False, True), (True, True)]
        assert stage.text == both

    play(script)


def test_after_v_from_a_row_of_the_table_keys_still_work() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        stage.app.screen.set_focus(stage.table)
        await stage.press("v", "v")  # the table is gone
        await stage.still()
        assert not stage.table.size
        await stage.press("v")
        await stage.still()
        assert stage.table.size
        await stage.press("right")
        assert stage.asked.d_k == 65

    play(script)


def test_panes_are_turned_by_signs_and_outside_the_lab_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "check_claims", lambda: iter(()))

    async def script(stage: Stage) -> None:
        panes, app = tuple(PANES), stage.app
        for pane in (*panes[1:], panes[0]):
            await stage.press(">")
            await stage.until(lambda pane=pane: app.active == pane, pane)
        for pane in reversed(panes):
            await stage.press("<")
            await stage.until(lambda pane=pane: app.active == pane, pane)
        await stage.press("2")
        assert (app.active, stage.asked.d_k) == ("Lab", 2)
        await stage.press(">", str(panes.index("Claims") + 1))
        assert app.active == "Claims"
        await stage.press("1")
        assert app.active == "Lab"
        assert app.focused is stage.lab
        await stage.press("right")
        assert stage.asked.d_k == 3

    play(script)


def test_q_quits() -> None:
    async def script(stage: Stage) -> None:
        stage.send("q")
        await stage.until(lambda: not stage.app.is_running)

    assert play(script).return_code == 0


# Fields


def test_tab_goes_through_the_fields_that_have_an_effect_and_on_to_the_table() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        for field in applicable(SMALL):
            await stage.press("tab")
            await stage.still()
            assert stage.app.focused is stage.panel
            assert stage.panel.cursor == field.name
            marked = [line for line in stage.part(stage.panel) if "◂" in line]
            assert len(marked) == 1
            assert marked[0].split()[0] == field.label.split()[0]
        await stage.press("tab")
        assert stage.app.focused is stage.table
        await stage.press("shift+tab")
        assert stage.app.focused is stage.panel
        await stage.press("shift+tab")
        assert stage.panel.cursor == applicable(SMALL)[-2].name
        await stage.press("escape")
        assert stage.app.focused is stage.lab

    play(script)


FIRST = ["tab"]  # to the field d_k


def to_field(name: str, parameters: Parameters = SMALL) -> list[str]:
    names = [field.name for field in applicable(parameters)]
    return FIRST + ["tab"] * names.index(name)


@pytest.mark.parametrize(
    ("name", "keys", "value"),
    [
        ("d_k", ["up"], 128),
        ("d_k", ["down"], 32),
        ("d_k", ["right", "right"], 66),
        ("d_k", ["left"], 63),
        ("n_keys", ["up"], 32),
        ("n_keys", ["right"], 17),
        ("n_queries", ["left"], 7),
        ("batch", ["down"], 2),
        ("batch", ["up", "right"], 5),
        ("scale", ["up"], "d_k"),
        ("scale", ["left"], "none"),
        ("mask", ["up", "up"], "none"),
        ("components", ["down"], "student_t"),
        ("mean_q", ["up", "up", "up"], 0.3),
        ("mean_q", ["left"], -0.1),
        ("mean_k", ["-", "2", ".", "5"], -2.5),
        ("std_q", ["0", ".", "5", "enter"], 0.5),
        ("std_k", ["1", "e", "-", "2"], 0.01),
        ("correlation", ["down"], -0.05),
        ("seed", ["4", "2"], 42),
        ("seed", ["down"], 0),
        ("n_keys", ["2", "0", "backspace"], 2),
        ("n_keys", ["backspace"], 1),  # of 16, the last digit
        ("n_keys", ["3", "2", "escape"], 16),
        ("n_keys", ["3", "tab"], 3),
        ("n_keys", ["l"], 16),  # letters that move elsewhere are d_k's in the Lab
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_field_with_the_focus_is_stepped_and_typed_into(name: str, keys: list[str], value: object) -> None:
    async def script(stage: Stage) -> None:
        await stage.press(*to_field(name), *keys)
        await stage.until(lambda: getattr(stage.asked, name) == value, f"{name} {value}")

    play(script)


def test_fields_of_choices_appear_and_go_with_what_they_depend_on() -> None:
    async def script(stage: Stage) -> None:
        await stage.press(*to_field("scale"), "down", "down", "tab")
        assert stage.asked.scale == "custom"
        assert stage.panel.cursor == "multiplier"
        await stage.press("2", ".", "5")
        await stage.settled()
        assert stage.measurement.columns[1].multiplier == 2.5
        assert "scaled × 2.5" in stage.part(stage.table)[0]
        await stage.press("shift+tab", "up")
        await stage.settled()
        assert not any(line.startswith("multiplier") for line in stage.part(stage.panel))

    play(script)


def test_digits_in_the_table_or_on_a_choice_set_d_k() -> None:
    async def script(stage: Stage) -> None:
        stage.app.screen.set_focus(stage.table)
        await stage.press("9", "enter")
        assert stage.asked.d_k == 9
        stage.app.screen.set_focus(stage.panel)
        stage.panel.cursor = "mask"
        await stage.press("7")
        assert stage.asked.d_k == 7

    play(script)


def test_a_click_puts_the_cursor_on_a_field() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        for name in ("mask", "n_keys", "seed"):
            at = next(
                y for y, line in enumerate(stage.part(stage.panel)) if line.strip().startswith(FIELD[name].label)
            )
            await stage.pilot.click(offset=(stage.panel.region.x + 3, stage.panel.region.y + at))
            await stage.until(lambda name=name: (stage.app.focused, stage.panel.cursor) == (stage.panel, name))
            await stage.still()
            assert "◂" in stage.part(stage.panel)[at]
        await stage.press("4", "2", "enter")
        assert stage.asked == replace(SMALL, seed=42)

    play(script)


# What is not accepted


@pytest.mark.parametrize(
    ("keys", "typed", "mend", "value"),
    [
        (["0"], "0_", ["backspace", "9"], 9),
        (["5", "backspace"], "_", ["9"], 9),
        (["9", "9", "9", "9", "9"], "99999_", ["backspace", "backspace", "backspace", "backspace"], 9),
        ([*FIRST, "-"], "-_", ["backspace", "9"], 9),
        ([*FIRST, "1", "e", "1"], "1e1_", ["backspace", "backspace"], 1),
        (["0"], "0_", ["escape"], 64),
        (["0"], "0_", ["right"], 65),
        ([*FIRST, "-"], "-_", ["escape"], 64),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_edit_that_is_not_accepted_keeps_the_last_numbers_dimmed_with_the_reason_and_recovers(
    keys: list[str], typed: str, mend: list[str], value: int
) -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        for key in keys:
            last = stage.asked
            await stage.press(key)
            if stage.panel.editing and stage.panel.editing.objection is None:
                await stage.settled()
        assert stage.asked == last, "nothing is bent into bounds"
        assert stage.measurement.subject == last
        await stage.until(lambda: stage.table.dimmed)
        await stage.still()
        assert stage.table.dimmed
        assert stage.lab.results.histograms.dimmed
        assert len(stage.styles(stage.table)) == 1
        entropy = stage.measurement.columns[0].measured["entropy"].value
        assert aligned(entropy, UNICODE).strip() in "".join(stage.part(stage.table)), "the numbers stay"
        assert stage.part(stage.panel)[0].split()[-1 if "◂" not in stage.part(stage.panel)[0] else -2] == typed
        for widget in (stage.panel, stage.lab.results.words):
            assert "it takes a whole number from 1 to 16384" in stage.words(widget)
        await stage.press(*mend)
        await stage.until(lambda: stage.asked.d_k == value)
        await stage.settled()
        assert len(stage.styles(stage.table)) > 1
        assert "it takes" not in stage.text

    play(script)


@pytest.mark.parametrize("key", ["enter", "tab"])
def test_what_is_not_accepted_cannot_be_left_behind(key: str) -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        await stage.press(*FIRST, "0", key)
        assert stage.panel.editing is not None
        assert stage.panel.cursor == "d_k"
        assert "0_" in stage.part(stage.panel)[0]

    play(script)


def test_a_result_that_comes_late_does_not_pass_for_what_is_being_typed() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        stage.app.hold = True
        await stage.press("right")
        await stage.until(lambda: any(isinstance(message, MeasurementReady) for message in stage.app.held))
        await stage.press("0")
        await stage.until(lambda: stage.table.dimmed)
        stage.app.let_go()
        await stage.until(lambda: stage.measurement.subject.d_k == 65)
        await stage.press("0")  # another one that is not accepted
        assert stage.panel.editing is not None
        assert stage.table.dimmed
        assert "it takes" in stage.words(stage.lab.results.words)

    play(script)


def test_theory_that_comes_late_does_not_pass_for_what_is_being_typed() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        await stage.press("0")
        await stage.until(lambda: stage.table.dimmed)
        stage.app.deliver(MeasurementReady("theory", stage.measurement, stage.lab.theory))
        await stage.still()
        assert stage.table.dimmed
        assert "it takes" in stage.words(stage.lab.results.words)

    play(script)


@pytest.mark.parametrize("way", ["s", "left"])
def test_a_scale_without_a_value_is_refused_with_a_reason_and_the_numbers_stay(way: str) -> None:
    start = replace(SMALL, d_k=1, scale="d_k") if way == "s" else replace(SMALL, d_k=2, scale="log_d_k")

    async def script(stage: Stage) -> None:
        await stage.settled()
        before = stage.part(stage.table)
        await stage.press(way)
        await stage.until(lambda: stage.table.dimmed)
        await stage.still()
        said = stage.words(stage.lab.results.words)
        assert "1/ln d_k has no value at d_k = 1" in said
        assert f"The numbers shown are for d_k {start.d_k}." in said
        assert stage.part(stage.table) == before
        await stage.press("up")
        await stage.settled()
        assert numbers(stage.measurement) == numbers(run(stage.asked))
        assert "no value" not in stage.text

    play(script, start)


def test_a_scale_without_a_value_can_be_stepped_past() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        for _ in FIELD["scale"].choices:
            await stage.press("s")
        await stage.settled()
        assert stage.asked == replace(SMALL, d_k=1)

    play(script, replace(SMALL, d_k=1))


# Held keys


def test_a_held_key_ends_on_the_right_number_with_the_right_measurement() -> None:
    async def script(stage: Stage) -> None:
        stage.send(*["right"] * 100)
        await stage.until(lambda: stage.asked.d_k == 164, "d_k 164")
        await stage.settled()
        assert numbers(stage.measurement) == numbers(run(replace(SMALL, d_k=164)))
        row = next(line for line in stage.part(stage.table) if line.split()[:1] == ["variance"])
        assert aligned(stage.measurement.columns[0].measured["logit_variance"].value, UNICODE).strip() in row

    play(script)


def test_a_held_key_loses_no_step_however_fast_it_repeats() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        for turns in (0, 1, 2, 3, 5):
            start = stage.asked.d_k
            for _ in range(50):
                stage.send("right")
                for _ in range(turns):
                    await asyncio.sleep(0)
            await stage.answered()
            assert stage.asked.d_k == start + 50, turns
        await stage.settled()
        assert numbers(stage.measurement) == numbers(run(stage.asked))

    play(script)


class Hands:
    """What the Lab's keys come to, when each is answered before the next."""

    STEPS = {"s": ("scale", 1), "S": ("scale", -1), "c": ("components", 1), "x": ("mask", 1), "r": ("seed", 1)}  # noqa: RUF012
    DOUBLES = {"up": ("d_k", 1), "down": ("d_k", -1), "]": ("n_keys", 1), "[": ("n_keys", -1)}  # noqa: RUF012

    def __init__(self, parameters: Parameters) -> None:
        self.asked = self.before = parameters
        self.typed: str | None = None

    def press(self, key: str) -> None:
        if key.isdigit() or (key == "backspace" and self.typed is not None):
            if self.typed is None:
                self.before = self.asked
            self.typed = (self.typed or "")[:-1] if key == "backspace" else (self.typed or "") + key
            with suppress(ParameterError):
                self.change("d_k", FIELD["d_k"].parse(self.typed))
            return
        if key == "escape" and self.typed is not None:
            self.asked = self.before
        self.typed = None
        if key in self.STEPS or key in self.DOUBLES:
            name, direction = (self.STEPS | self.DOUBLES)[key]
            self.change(name, FIELD[name].stepped(getattr(self.asked, name), direction))  # type: ignore[arg-type]
        elif key in ("pageup", "pagedown"):
            self.change("d_k", next_width(self.asked.d_k, 1 if key == "pageup" else -1))
        elif key in ("left", "right"):
            d_k = self.asked.d_k + (1 if key == "right" else -1)
            if 1 <= d_k <= 16_384:
                self.change("d_k", d_k)

    def change(self, name: str, value: Any) -> None:
        self.asked = self.asked.with_value(name, value)


STEPPING = ["right", "left", "up", "down", "pageup", "pagedown", "]", "[", "s", "S", "c", "x", "r"]
TYPING = [*STEPPING, *"0123456789", "backspace", "escape"]


def pressed_fast(keys: Sequence[str], pauses: random.Random) -> tuple[Parameters, Parameters]:
    """What is asked for after keys that come in bursts, and what should be."""
    hands, found = Hands(SMALL), []

    async def script(stage: Stage) -> None:
        await stage.settled()
        for key in keys:
            hands.press(key)
            stage.send(key)
            for _ in range(pauses.choice([0, 0, 0, 1, 2, 3, 8])):
                await asyncio.sleep(0)
        await stage.answered()
        found.append(stage.asked)

    play(script)
    return found[0], hands.asked


@pytest.mark.parametrize("seed", range(4))
def test_stepping_keys_in_bursts_come_to_what_they_come_to_one_by_one(seed: int) -> None:
    chance = random.Random(seed)
    found, expected = pressed_fast(chance.choices(STEPPING, k=80), chance)
    assert found == expected


@pytest.mark.parametrize("seed", range(4))
def test_typing_and_stepping_in_bursts_come_to_what_they_come_to_one_by_one(seed: int) -> None:
    chance = random.Random(seed)
    found, expected = pressed_fast(chance.choices(TYPING, k=80), chance)
    assert found == expected


def test_a_field_that_is_tabbed_to_takes_what_is_typed_at_once() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        stage.send("tab", "tab", "3", "2", "enter")
        await stage.answered()
        assert stage.asked == replace(SMALL, n_keys=32)
        await stage.settled()

    play(script)


def test_the_way_to_a_value_does_not_change_its_numbers() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        before, screen = numbers(stage.measurement), stage.text
        await stage.press("up", "up", "up")
        await stage.settled()
        assert stage.asked.d_k == 512
        assert stage.text != screen
        await stage.press("down", "down", "down")
        await stage.settled()
        assert numbers(stage.measurement) == before
        assert stage.text == screen

    play(script)


# The screen


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_table_and_histograms_are_both_on_screen_at_every_size(size: tuple[int, int], glyphs: Glyphs) -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        assert [len(line) for line in stage.lines] == [size[0]] * size[1]
        for words in ("1 Lab", "unscaled × 1", "entropy", "dead rows", "Unscaled, logits"):
            assert glyphs.say(words) in stage.text
        for title in ("logits", "attention weights", "row entropy", "‖∂L/∂q‖ of rows"):
            assert glyphs.say(title) in "\n".join(stage.part(stage.lab.results.histograms))
        assert any(bar in "\n".join(stage.part(stage.lab.results.histograms)) for bar in glyphs.bars[1:])
        for field in applicable(SMALL):
            assert any(line.split()[:1] == field.label.split()[:1] for line in stage.part(stage.panel))
        assert stage.text.isascii() == glyphs.ascii

    play(script, size=size, glyphs=glyphs)


@pytest.mark.parametrize("size", [(120, 50), (200, 60)])
def test_large_screens_show_every_statistic_beside_its_theory(size: tuple[int, int]) -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        shown = stage.part(stage.table)
        for statistic in STATISTICS:
            assert any(line[1:].startswith(statistic.label) for line in shown), statistic.name
        assert shown[0].count("theory") == 2
        assert stage.lab.theory is not None
        exact = stage.lab.theory.prediction.columns[0].values["entropy"]
        row = next(line for line in shown if line.split()[0] == "entropy")
        assert aligned(exact, UNICODE).strip() in row

    play(script, size=size)


def test_where_some_rows_have_no_room_the_table_says_how_many() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        shown = stage.part(stage.table)
        out = [one for one in STATISTICS if not any(line[1:].startswith(one.label + " ") for line in shown)]
        assert 0 < len(out) < 8
        assert shown[0].split()[:3] == [str(len(out)), "more:", "Tab"]

    play(script, size=(120, 40))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_theory_appears_when_it_is_ready_without_moving_the_measured_values(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attn_tui.core.lab.kept.KEPT_CURVES", ())  # so that they have to be made

    async def script(stage: Stage) -> None:
        await stage.until(lambda: stage.app.held)
        first = stage.app.held[0]
        assert isinstance(first, MeasurementReady)
        assert first.theory is None
        stage.lab.show_measurement(first.measurement, None)
        await stage.still()
        before = stage.part(stage.table)
        stage.app.let_go()
        await stage.settled()
        after = stage.part(stage.table)
        assert after[0].count("theory") == (2 if size[0] >= 100 else 0)
        assert after[0] == before[0]
        assert before != after
        for old, new in zip(before, after, strict=True):
            assert new[:LABEL] == old[:LABEL]
            if not new.startswith(" freezing"):
                stays = "".join(was if was != " " else now for was, now in zip(old, new, strict=True))
                assert stays == new, "theory comes where nothing was"

    play(script, hold=True, size=size)


def test_a_later_value_has_its_theory_from_the_start() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        await stage.press("right")  # the rows that theory has prepared
        await stage.settled()
        stage.app.hold = True
        await stage.press("r")  # not the same key again: what that leads to may be there already
        await stage.until(lambda: any(message.kind == "lab" for message in stage.app.held))
        first = next(message for message in stage.app.held if message.kind == "lab")
        assert isinstance(first, MeasurementReady)
        assert first.theory is not None
        assert first.theory.prediction.parameters == stage.asked

    play(script)


def test_a_terminal_that_is_too_small_is_told_so_in_one_sentence() -> None:
    async def script(stage: Stage) -> None:
        await stage.still()
        shown = [line.strip() for line in stage.lines if line.strip()]
        assert " ".join(shown) == "attn-tui needs 40 x 12, not 20 x 5."

    play(script, size=(20, 5))


@pytest.mark.parametrize("focus", ["lab", "panel", "table"])
def test_after_being_too_small_the_app_goes_on_where_it_was(focus: str) -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        widget = {"lab": stage.lab, "panel": stage.panel, "table": stage.table}[focus]
        stage.app.screen.set_focus(widget)
        await stage.still()
        before = stage.text
        await stage.resize(20, 5)
        await stage.until(lambda: "attn-tui needs" in " ".join(stage.text.split()))
        assert "entropy" not in stage.text
        await stage.resize(120, 40)
        await stage.until(lambda: "entropy" in stage.text)
        await stage.still()
        assert stage.app.focused is widget
        assert stage.text == before
        await stage.press("r")
        assert stage.asked.seed == 1

    play(script)


def test_started_too_small_the_app_works_once_there_is_room() -> None:
    async def script(stage: Stage) -> None:
        await stage.still()
        await stage.resize(100, 30)
        await stage.settled()
        await stage.until(lambda: "entropy" in stage.text)
        await stage.press("right")
        assert stage.asked.d_k == 65

    play(script, size=(20, 5))


def test_resizing_while_computing_keeps_the_screen_whole() -> None:
    long = Parameters(d_k=8, n_keys=1_024, n_queries=1_024, batch=512)

    async def script(stage: Stage) -> None:
        await stage.until(lambda: "computing" in stage.lines[0], "progress")
        for size in ((80, 24), (200, 60), (100, 20), (81, 21), (120, 40)):
            await stage.resize(*size)
            whole = [size[0]] * size[1]
            await stage.until(lambda whole=whole: [len(line) for line in stage.lines] == whole, f"{size}")
        stage.send("1", "6", *["["] * 6, *FIRST, "tab", "tab", "8", "tab", "2", "enter")
        await stage.until(lambda: stage.asked == Parameters(d_k=16, n_keys=16, n_queries=8, batch=2))
        await stage.settled()
        assert numbers(stage.measurement) == numbers(run(stage.asked))
        assert "computing" not in stage.text

    play(script, long)


def test_long_work_shows_progress_and_its_first_draws_and_is_overtaken() -> None:
    long = Parameters(d_k=8, n_keys=1_024, n_queries=1_024, batch=4_096)

    async def script(stage: Stage) -> None:
        await stage.until(lambda: "computing" in stage.lines[0], "progress")
        await stage.until(lambda: stage.lab.measurement is not None, "an early result")
        await stage.until(lambda: " of 4096 draws: " in stage.words(stage.lab.results.words))
        stage.send(*FIRST, *["tab"] * 3, "2", "enter", "escape")
        await stage.until(lambda: stage.measurement.subject.batch == 2 and stage.measurement.complete, "the next")
        assert "draws: " not in stage.words(stage.lab.results.words)

    play(script, long)


def test_an_ascii_app_shows_nothing_but_ascii() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        seen = [stage.text]

        async def look(*keys: str) -> None:
            await stage.press(*keys)
            await stage.pilot.pause(0)
            seen.append(stage.text)

        for field in applicable(SMALL):
            await look("tab")
            await look("?")
            await look("escape")
            if field.name == "scale":
                await look("0")  # d_k, not accepted
                await look("escape")
        await look("tab")
        await look("t")
        await stage.resize(120, 40)
        for _ in STATISTICS:
            await look("down")
        await look("?")
        await look("escape", "v", "v", "v")
        for _ in FIELD["scale"].choices:
            await look("s")
        await look("c", "c", "c", "c")
        await stage.head()
        await look("right")
        await stage.until(lambda: "measuring" not in stage.text)
        for _ in STATISTICS:
            await look("m")
        await look("?")
        await look("escape", "tab")
        await stage.resize(80, 24)
        await look("down")
        await stage.still()
        seen.append(stage.text)
        assert not [line for screen in seen for line in screen.splitlines() if not line.isascii()]

    play(script, size=(80, 24), glyphs=ASCII)


# Help


def test_help_is_about_what_has_the_focus_and_closes() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        before = stage.text
        for closing in ("escape", "q", "?", "f1", "enter"):
            await stage.press("?" if closing != "f1" else "f1")
            await stage.until(
                lambda: isinstance(stage.app.screen, HelpScreen) and "Scores are dot products" in stage.text
            )
            await stage.press(closing)
            await stage.until(lambda: not isinstance(stage.app.screen, HelpScreen), closing)
        await stage.still()
        assert stage.text == before

        await stage.press(*to_field("n_keys"), "?")
        await stage.until(lambda: FIELD["n_keys"].option in stage.text)
        assert "keys (n)" in stage.text
        await stage.press("escape")
        assert stage.app.focused is stage.panel

        stage.app.screen.set_focus(stage.table)
        await stage.press("down", "?")
        await stage.until(lambda: STATISTICS[1].name in stage.text)
        assert STATISTICS[1].formula in stage.text
        await stage.press("escape")
        assert stage.app.focused is stage.table

    play(script)


def test_help_is_scrolled_to_its_last_key() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        await stage.press("?")
        await stage.until(lambda: "more lines: down" in stage.text)
        await stage.press(*["pagedown"] * 8)
        await stage.until(lambda: "Esc closes" in stage.text)
        assert "quit" in stage.text
        await stage.press(*["pageup"] * 8, "down", "up")
        await stage.until(lambda: "Scores are dot products" in stage.text)

    play(script, size=(80, 24))


def test_keys_that_come_before_the_help_has_the_focus_do_not_reach_what_is_behind_it() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        await stage.press("?")
        await stage.until(lambda: isinstance(stage.app.screen, HelpScreen))
        stage.app.screen.set_focus(None)  # as it is while the help opens
        await stage.resize(100, 30)
        await stage.still()
        await stage.press("right", "escape")
        assert stage.asked == SMALL
        assert not isinstance(stage.app.screen, HelpScreen)

    play(script)


def test_the_row_with_the_cursor_is_explained_under_the_table() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        stage.app.screen.set_focus(stage.table)
        for statistic in STATISTICS:
            await stage.still()
            marked = [line for line in stage.part(stage.table) if line.startswith("▌")]
            assert len(marked) == 1
            assert marked[0][1:].startswith(statistic.label)
            words = stage.words(stage.lab.results.words)
            assert words.startswith(f"{statistic.label}: ")
            await stage.press("down")
        await stage.press("escape")
        await stage.until(lambda: stage.words(stage.lab.results.words).startswith("Unscaled"))
        assert not any(line.startswith("▌") for line in stage.part(stage.table))

    play(script)


def test_every_row_can_be_reached_on_the_smallest_screen() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        stage.app.screen.set_focus(stage.table)
        await stage.press("pagedown")
        for key in [*["pageup"] * 3, *["down"] * 25, *["up"] * 25]:
            await stage.press(key)
            marked = [line for line in stage.part(stage.table) if line.startswith("▌")]
            assert len(marked) == 1, key
            assert stage.table.statistic is not None
            assert marked[0][1:].startswith(stage.table.statistic.label)

    play(script, size=(80, 20))


# The Capture pane


def test_the_capture_pane_opens_the_sample_and_maps_all_its_heads() -> None:
    async def script(stage: Stage) -> None:
        pane = await stage.head()
        assert "layer 0 · head 0" in stage.text
        assert "MiniLM" in stage.lines[0]
        await stage.until(lambda: len(pane.map.measured) == 72, "the whole map")
        await stage.still()
        assert None not in pane.map.measured.values()
        assert "entropy / ln n, by head" in stage.text
        assert "the file's × 0.177" in stage.part(pane.results.table)[0]
        assert "With the file's scale" in stage.words(pane.results.words)
        for title in ("logits", "row entropy"):
            assert title in "\n".join(stage.part(pane.results.histograms))

    play(script)


def test_arrows_move_over_the_heads_and_stop_at_the_edges() -> None:
    async def script(stage: Stage) -> None:
        pane = await stage.head()
        for key, cursor in [
            ("right", (0, 1)), ("l", (0, 2)), ("left", (0, 1)), ("h", (0, 0)), ("left", (0, 0)), ("up", (0, 0)),
            ("down", (1, 0)), ("j", (2, 0)), ("up", (1, 0)), ("k", (0, 0)),
        ]:  # fmt: skip
            await stage.press(key)
            assert pane.map.cursor == cursor, key
        await stage.press(*["right"] * 20, *["down"] * 20)
        assert pane.map.cursor == (5, 11)
        await stage.until(lambda: "layer 5 · head 11" in stage.text)
        await stage.until(lambda: not pane.results._stale)

    play(script)


def test_the_head_under_the_cursor_is_the_one_that_is_shown() -> None:
    async def script(stage: Stage) -> None:
        pane = await stage.head()
        await stage.until(lambda: len(pane.map.measured) == 72)
        stage.send(*["right"] * 7, *["down"] * 3)
        await stage.until(lambda: pane.map.cursor == (3, 7))
        wanted = pane.map.measured[3, 7]
        assert wanted is not None
        await stage.until(lambda: dict(pane.results._contents.columns[1].measured) == dict(wanted), "the head")

    play(script)


def test_the_map_goes_through_all_statistics_and_back() -> None:
    async def script(stage: Stage) -> None:
        pane = await stage.head()
        await stage.until(lambda: len(pane.map.measured) == 72)
        for _ in ALWAYS:
            await stage.press("m")
            await stage.until(lambda: f"{pane.map.statistic.label}, by head" in stage.text)
        assert pane.map.statistic is STATISTIC["entropy_fraction"]
        await stage.press("M")
        assert pane.map.statistic is ALWAYS[ALWAYS.index(STATISTIC["entropy_fraction"]) - 1]

    play(script)


def test_the_file_s_scale_stands_beside_any_rule() -> None:
    async def script(stage: Stage) -> None:
        pane = await stage.head()
        rules = [name for name in SCALE_RULES if name != "custom"]
        for rule in (*rules[1:], rules[0]):
            await stage.press("s")
            await stage.until(lambda rule=rule: pane.results._contents.columns[0].rule == rule, rule)
            assert pane.results._contents.columns[1].rule == "file"
        await stage.press("S")
        await stage.until(lambda: pane.results._contents.columns[0].rule == rules[-1])

    play(script)


def test_enter_takes_the_shape_of_the_head_to_the_lab() -> None:
    async def script(stage: Stage) -> None:
        await stage.head()
        await stage.press("enter")
        await stage.until(lambda: stage.app.active == "Lab")
        await stage.settled()
        assert stage.asked == replace(SMALL, d_k=32, n_keys=70, n_queries=70)
        assert stage.app.focused is stage.lab
        assert "d_k 32" in stage.lines[0]

    play(script)


def test_a_shape_beyond_the_lab_s_bounds_is_refused_in_words(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    keys = rng.standard_normal((1, 9_000, 2), dtype=np.float32)
    file = capture_file(tmp_path, rng.standard_normal((1, 4, 2), dtype=np.float32), keys)

    async def script(stage: Stage) -> None:
        await stage.until(lambda: "Capture" in stage.app.panes and stage.pane.results._contents.columns)
        await stage.press("enter")
        await stage.until(lambda: "cannot take this shape over" in stage.words(stage.pane.results.words))
        await stage.still()
        assert "8192" in stage.words(stage.pane.results.words)
        assert stage.app.active == "Capture"
        assert stage.asked == SMALL

    play(script, capture=file)


def test_a_broken_file_says_why_in_the_pane_and_the_lab_still_works(tmp_path: Path) -> None:
    file = tmp_path / "broken.npz"
    file.write_bytes(b"PK\x03\x04 not much of an archive")

    async def script(stage: Stage) -> None:
        await stage.until(lambda: "Capture" in stage.app.panes and "broken.npz" in "".join(stage.text.split()))
        assert stage.app.active == "Capture"
        for key in ("right", "down", "m", "s", "enter", "v", "tab", "?", "escape"):
            await stage.press(key)
        await stage.press("1")
        await stage.settled()
        await stage.press("right")
        assert stage.asked.d_k == 65

    play(script, capture=file)


@pytest.mark.parametrize("size", SIZES)
def test_a_reason_is_shown_to_its_end(size: tuple[int, int], tmp_path: Path) -> None:
    folder = tmp_path / "captures of a model with a long name" / "evening run"
    folder.mkdir(parents=True)
    q = some_heads()
    q[0, 0, 0] = np.nan
    file = capture_file(folder, q)

    async def script(stage: Stage) -> None:
        pane = await stage.head_of(file)
        end = "1of24valuesthatareNaNorinfinite;finitenumbersareaccepted"  # a path may be broken anywhere
        await stage.until(lambda: end in stage.words(pane.results.words).replace(" ", ""), "the end of the reason")

    play(script, size=size, capture=file)


def test_a_head_with_nan_is_marked_on_the_map_and_explained_when_it_is_chosen(tmp_path: Path) -> None:
    q = some_heads()
    q[1, 2, 3] = np.nan
    file = capture_file(tmp_path, q)

    async def script(stage: Stage) -> None:
        pane = await stage.head_of(file)
        await stage.until(lambda: len(pane.map.measured) == 3)
        await stage.still()
        row = next(line for line in stage.part(pane.map) if "!" in line)
        assert row.split() == ["0", "█9", "!", "░0"]
        assert not pane.results.table.dimmed
        await stage.press("right")
        await stage.until(lambda: pane.results.table.dimmed and "NaN" in stage.words(pane.results.words))
        await stage.press("right")
        await stage.until(lambda: not pane.results.table.dimmed)
        assert "NaN" not in stage.text

    play(script, capture=file)


def test_a_file_replaced_while_it_is_open_says_so_and_is_read_again(tmp_path: Path) -> None:
    file = capture_file(tmp_path, some_heads(heads=3, tokens=6, d_k=4))

    async def script(stage: Stage) -> None:
        pane = await stage.head_of(file)
        await stage.until(lambda: len(pane.map.measured) == 3)
        capture_file(tmp_path, some_heads(heads=2, tokens=9, d_k=8, seed=1), name="other.npz").replace(file)
        await stage.press("right", "right")
        await stage.until(lambda: "changed" in stage.words(pane.results.words))
        assert pane.results.table.dimmed
        await stage.press("R")
        await stage.until(lambda: pane.map.capture and pane.map.capture.layers[0].d_k == 8)
        await stage.until(lambda: not pane.results.table.dimmed and len(pane.map.measured) == 2)
        assert pane.map.cursor == (0, 1), "the last head that there is"
        assert "9 queries" in stage.words(pane.map)
        assert "changed" not in stage.text

    play(script, capture=file)


def test_a_file_that_went_away_says_so_and_comes_back(tmp_path: Path) -> None:
    file = capture_file(tmp_path, some_heads())

    async def script(stage: Stage) -> None:
        pane = await stage.head_of(file)
        file.rename(tmp_path / "elsewhere.npz")
        await stage.press("R")
        await stage.until(lambda: pane.results.table.dimmed)
        assert "capture.npz" in "".join(stage.part(pane.results.words)).replace(" ", "")
        (tmp_path / "elsewhere.npz").rename(file)
        await stage.press("R")
        await stage.until(lambda: not pane.results.table.dimmed)

    play(script, capture=file)


def test_the_file_on_the_command_line_is_opened_at_once(tmp_path: Path) -> None:
    file = capture_file(tmp_path, some_heads())

    async def script(stage: Stage) -> None:
        pane = await stage.head_of(file)
        assert stage.app.active == "Capture"
        assert "capture.npz" in stage.lines[0]
        assert stage.app.focused is pane
        assert pane.map.capture is not None
        assert pane.map.capture.layers[0].heads == 3

    play(script, capture=file)


def test_help_of_the_capture_pane_is_its_own() -> None:
    async def script(stage: Stage) -> None:
        await stage.head()
        await stage.press("?")
        await stage.until(lambda: "Each cell of the map is one attention head" in stage.text)
        await stage.press("escape", "tab", "down", "?")
        await stage.until(lambda: STATISTICS[1].name in stage.text)

    play(script)


def test_what_the_status_says_is_short_and_true() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        assert stage.lines[0].rstrip().endswith("d_k 64 as in the Transformer, BERT, GPT-2 · 16 keys · seed 0")
        multiplier = short(stage.measurement.columns[1].multiplier, UNICODE)
        assert f"× {multiplier} (1/√d_k)" in stage.part(stage.table)[0]
        assert "? help" in stage.lines[-1]

    play(script, size=(140, 40))


# What is remembered


def test_what_was_remembered_is_said_until_something_else_is_asked_for() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        assert "as you left it, R resets" in stage.lines[0]
        await stage.press("right")
        await stage.settled()
        assert "as you left it" not in stage.text

    play(script, settings=Settings(parameters={"n_keys": 16}))


def test_the_last_parameters_are_what_lasts_and_r_leaves_nothing_of_them() -> None:
    async def script(stage: Stage) -> None:
        await stage.press("up", "s")
        changed = {"d_k": 128, "n_keys": 16, "n_queries": 8, "batch": 2, "scale": "d_k"}
        assert stage.app.lasting() == {"parameters": changed}
        await stage.press("5", "R")
        assert stage.asked == Parameters()
        assert stage.app.lasting() == {"parameters": {}}
        assert stage.panel.editing is None
        await stage.settled()

    play(script)


def test_a_theme_lasts_once_it_is_another() -> None:
    async def script(stage: Stage) -> None:
        assert stage.app.theme == "attn-light"
        assert "theme" not in stage.app.lasting()
        stage.app.theme = "nord"
        assert stage.app.lasting()["theme"] == "nord"

    play(script, settings=Settings(theme="attn-light"))


# Other keys


def test_with_other_keys_those_work_and_are_shown_and_the_old_ones_are_free() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        assert "n redraw" in stage.lines[-1]
        assert "F3 help" in stage.lines[-1]
        assert "←d d_k ±1" in stage.lines[-1]
        await stage.press("n", "d", "r", "right")
        assert stage.asked == replace(SMALL, seed=1, d_k=65)
        await stage.press("f3")
        await stage.until(lambda: "Scores are dot products" in stage.text)
        await stage.press(*["pagedown"] * 9)
        await stage.until(lambda: "n  redraw with a new seed" in stage.text)
        await stage.press("escape", "K")
        await stage.until(lambda: re.search(r" n  redraw with a new seed +lab.redraw", stage.text))

    keys = {"lab.redraw": "n", "help": "f3", "lab.more": "d"}
    play(script, size=(200, 60), settings=Settings(keys=keys))


def test_the_overview_shows_this_pane_first_and_then_all() -> None:
    async def script(stage: Stage) -> None:
        await stage.head()
        await stage.press("K")
        await stage.until(lambda: "All keys" in stage.text)
        await stage.still()
        seen: list[str] = []
        for _ in range(16):
            seen += [row.strip() for row in stage.part(stage.app.screen.query_one(HelpText))]
            await stage.press("pagedown")
        assert sorted(PANES, key=seen.index)[0] == "Capture"
        await stage.press("K")
        await stage.until(lambda: not isinstance(stage.app.screen, HelpScreen))

    play(script, size=(80, 24))
