"""Frames that wait for a result, so that a key and what it leads to are seen together."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from attn_tui.core.parameters import Parameters
from attn_tui.tui import app as app_module
from attn_tui.tui.app import AttnApp
from attn_tui.tui.messages import Computed
from textual.pilot import Pilot
from textual.screen import Screen

SMALL = Parameters(d_k=64, n_keys=16, n_queries=8, batch=2)


class Watched(AttnApp):
    """The app, with the frames it makes, and results that can be kept from it."""

    CSS_PATH = Path(app_module.__file__).with_name("app.tcss")

    def __init__(self) -> None:
        super().__init__(SMALL)
        self.frames: list[str] = []
        self.kept: list[Computed] | None = None
        self.through = self.lab.deliver
        self.lab.deliver = self.deliver  # type: ignore[method-assign]

    def deliver(self, message: Computed) -> None:
        if self.kept is None:
            self.through(message)
        else:
            self.kept.append(message)

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        if renderable is not None and not self._batch_count:
            self.frames.append(f"d_k {self.lab.parameters.d_k}, measured {self.measured}")
        super()._display(screen, renderable)

    @property
    def measured(self) -> int:
        return self.lab.measurement.subject.d_k if self.lab.measurement else 0


async def until(pilot: Pilot[Any], condition: Callable[[], object]) -> None:
    for _ in range(2000):
        if condition():
            await pilot.pause()
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never comes about")


def played(script: Callable[[Watched, Pilot[Any]], Awaitable[None]]) -> Watched:
    """The app after this, begun when its first result is there with its theory."""

    async def play() -> Watched:
        app = Watched()
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: app.lab.theory)
            app.frames.clear()
            await script(app, pilot)
        return app

    return asyncio.run(play())


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, a result comes soon."""
    monkeypatch.setattr("attn_tui.tui.panes.pane.SOON", 1000.0)
    monkeypatch.setattr("attn_tui.tui.panes.lab.SOON", 1000.0)


def test_a_key_is_shown_in_one_frame_with_its_result() -> None:
    async def script(app: Watched, pilot: Pilot[Any]) -> None:
        await pilot.press("right")
        await until(pilot, lambda: app.measured == 65)
        app.frames.clear()
        await pilot.press("up")  # which nobody has measured ahead
        await until(pilot, lambda: app.measured == 128)

    assert played(script).frames == ["d_k 128, measured 128"]


@pytest.mark.parametrize(
    ("where", "seconds"),
    [
        pytest.param("lab", 0.0, id="where-the-last-one-came-late"),
        pytest.param("pane", 0.01, id="longer-than-a-moment"),
    ],
)
def test_a_result_that_does_not_come_is_not_waited_for(
    where: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"attn_tui.tui.panes.{where}.SOON", seconds)

    async def script(app: Watched, pilot: Pilot[Any]) -> None:
        await pilot.press("right")
        await until(pilot, lambda: app.measured == 65)
        app.frames.clear()
        app.kept = []
        await pilot.press("up")  # which nobody has measured ahead
        await until(pilot, lambda: app.frames)

    assert played(script).frames == ["d_k 128, measured 65"]


def test_a_key_that_is_held_waits_for_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(app: Watched, pilot: Pilot[Any]) -> None:
        await pilot.press("right")
        await until(pilot, lambda: app.measured == 65)
        app.frames.clear()
        app.kept = []
        await pilot.press("up")  # which nobody has measured ahead, and which is waited for
        assert not app.frames
        monkeypatch.setattr("attn_tui.tui.panes.lookahead._HELD", 1000.0)
        await pilot.press("up")
        await until(pilot, lambda: app.frames)

    assert {*played(script).frames} == {"d_k 256, measured 65"}


def test_a_refusal_ends_the_wait() -> None:
    async def script(app: Watched, pilot: Pilot[Any]) -> None:
        await pilot.press("right")
        await until(pilot, lambda: app.measured == 65)
        app.kept = []
        await pilot.press("up")  # which nobody has measured ahead
        app.frames.clear()
        await pilot.press("0", "0", "0", "0", "0", "0")
        await until(pilot, lambda: app.frames)

    assert played(script).frames
