"""Resizing: below the least size only a message is shown; afterwards the screen is as before."""

import asyncio
from typing import Any

import pytest
from attn_tui.core.parameters import Parameters
from attn_tui.tui.terminal.paced_app import LEAST
from stage import Stage, numbers, played
from textual import events
from textual.geometry import Size
from textual.widget import Widget


@pytest.mark.parametrize("size", [(LEAST[0] - 1, LEAST[1]), (LEAST[0], LEAST[1] - 1), (20, 5)])
@played()
async def test_below_the_least_size_a_message_states_the_needed_size(stage: Stage, size: tuple[int, int]) -> None:
    await stage.still()
    said = " ".join(stage.text.split())
    assert said == f"Too small: {size[0]}x{size[1]}. attn-tui needs {LEAST[0]}x{LEAST[1]}."


@pytest.mark.parametrize("focus", ["lab", "panel", "table"])
@played(settled=True)
async def test_after_being_too_small_screen_and_focus_are_as_before(stage: Stage, focus: str) -> None:
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
    await stage.press("escape", "r")
    assert stage.asked.seed == 1


@played(size=(20, 5))
async def test_an_app_started_too_small_works_once_enlarged(stage: Stage) -> None:
    await stage.still()
    await stage.resize(100, 30)
    await stage.settled()
    assert "keys matter" in stage.text
    await stage.press("right")
    assert stage.asked.d_k == 65


@played(settled=True)
async def test_two_sizes_on_their_way_end_with_the_newest(stage: Stage) -> None:
    """Each brought back the other, without end: Textual tells a screen its size after each layout."""
    screen, held = stage.app.screen, asyncio.Event()
    layouts: list[Size] = []
    screen.screen_layout_refresh_signal.subscribe(stage.app, lambda _: layouts.append(screen.outer_size))  # pyright: ignore
    with stage.app.batch_update():  # as while frames are delayed
        for size in (Size(100, 30), Size(90, 26)):
            screen.call_later(held.wait)
            stage.app.post_message(events.Resize(size, size))
            await asyncio.sleep(0.05)
        screen.call_later(held.wait)  # else Textual would join what follows to the last size
        held.set()
        await asyncio.sleep(0.2)
    assert layouts[-2:] == [Size(90, 26)] * 2
    assert len(layouts) < 10


@played(Parameters(d_k=8, n_keys=128, n_queries=128, batch=1_024))
async def test_resizing_during_a_computation_keeps_the_screen_whole(stage: Stage) -> None:
    await stage.until(lambda: "computing" in stage.lines[0], "progress")
    for size in ((80, 24), (200, 60), (100, 20), (81, 21), (120, 40)):
        await stage.resize(*size)
        whole = [size[0]] * size[1]
        await stage.until(lambda whole=whole: [len(line) for line in stage.lines] == whole, f"{size}")
    stage.send("1", "6", "enter", "p", *["["] * 3, *["tab"] * 3, "8", "tab", "2", "enter")
    await stage.until(lambda: stage.asked == Parameters(d_k=16, n_keys=16, n_queries=8, batch=2))
    await stage.settled()
    assert numbers(stage.measurement) == numbers(stage.expected)
    assert "computing" not in stage.text


@played(settled=True)
async def test_a_new_widget_is_told_its_size_though_another_was_asked_for_its_own_before(stage: Stage) -> None:
    """Else its pane stayed as it was arranged without a size: the Rules pane had no description."""
    told: list[Size] = []

    class Added(Widget):
        def on_resize(self, event: events.Resize) -> None:
            told.append(event.size)

    screen: Any = stage.app.screen
    with stage.app.batch_update():  # no layout
        await screen.mount(added := Added(), before=stage.app.keys)
        screen._compositor.update_widgets({added})  # as a frame does
        assert stage.lab.results.size
    await stage.until(lambda: told, "size")
