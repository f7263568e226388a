"""Undo and redo walk through whatever was set, in every pane."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from attn_tui.core.parameters import Parameters
from attn_tui.tui.app.keys import all_commands
from attn_tui.tui.app.undo import LONGEST, TOGETHER, History
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.panes.pane import FileHead
from attn_tui.tui.panes.softmax.pane import SoftmaxPane
from attn_tui.tui.panes.sweep.pane import SweepPane
from attn_tui.tui.terminal.themes import LIGHT
from stage import SMALL, Stage, capture_file, played, some_heads
from textual import events

# The history itself


def test_history_goes_back_and_forward_and_forgets_what_was_undone() -> None:
    history = History(0)
    for state in (1, 2, 3):
        history = history.noted(state, f"to {state}", 0.0)
    back = history.undone().undone()
    assert (back.present, back.past, back.future) == (1, (0,), (2, 3))
    assert back.redone().redone().present == 3
    other = back.noted(9, "to 9", 1.0)
    assert other.redone() is other
    assert other.undone().present == 1
    assert History(0).undone().present == 0


def test_a_run_of_one_key_is_one_step_until_it_pauses() -> None:
    history = History(0)
    for at in range(1, 50):
        history = history.noted(at, "right", 0.1 * at)
    assert history.past == (0,)
    assert history.showing(-1).noted(50, "right", 5.0).past == (0,)
    paused = History(0).noted(49, "right", 1.0).noted(50, "right", 1.0 + TOGETHER)
    assert paused.past == (0, 49)
    assert paused.noted(51, "left", 2.0).past == (0, 49, 50)


def test_what_does_not_change_is_no_step() -> None:
    history = History(0).noted(1, "a", 0)
    assert history.noted(1, "b", 0) is history


def test_the_history_is_bounded() -> None:
    history = History(0)
    for state in range(1, 2 * LONGEST):
        history = history.noted(state, str(state), state)
    assert len(history.past) == LONGEST
    assert history.past[-1] == 2 * LONGEST - 2


# The app


class Clock:
    """The app's clock, which a test moves: a slow machine makes no pause."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("attn_tui.tui.app.paned_app.time", found)
    return found


@played()
async def test_undo_and_redo_walk_through_the_parameters(stage: Stage) -> None:
    await stage.press("S", "C", "up")
    end = stage.asked
    for d_k, law, scale in ((64, "uniform", "d_k"), (64, "normal", "d_k"), (64, "normal", "sqrt_d_k")):
        await stage.press("u")
        assert (stage.asked.d_k, stage.asked.components, stage.asked.scale) == (d_k, law, scale)
    await stage.press("u")
    assert stage.asked == SMALL
    await stage.still()
    assert "Nothing to undo" in stage.text
    await stage.press(*["ctrl+r"] * 3)
    assert stage.asked == end
    await stage.press("ctrl+r")
    assert stage.asked == end
    await stage.still()
    assert "Nothing to redo" in stage.text


@played(Parameters(d_k=8, n_keys=16, n_queries=8, batch=2, softcap=30))
async def test_a_reset_is_undone(stage: Stage) -> None:
    before = stage.asked
    await stage.press("R")
    assert stage.asked == Parameters()
    await stage.press("u")
    assert stage.asked == before


@played()
async def test_a_typed_value_is_one_step_however_it_ends(stage: Stage) -> None:
    for end in ("enter", "s", "tab", "u"):
        await stage.press("1", "2", "8", end)
        assert stage.asked.d_k == (64 if end == "u" else 128)
        await stage.press("escape", *["u"] * {"s": 2, "u": 0}.get(end, 1))
        assert stage.asked == SMALL, end


@played()
async def test_a_held_key_is_one_step_until_it_pauses(stage: Stage, clock: Clock) -> None:
    for pause, times in ((0, 29), (0.75 * TOGETHER, 1), (0.75 * TOGETHER, 1), (TOGETHER, 1)):
        clock.now += pause
        await stage.press(*["right"] * times)
    for d_k in (96, 95, 64):
        assert stage.asked.d_k == d_k
        await stage.press("u")
    assert stage.asked == SMALL


@played()
async def test_typed_values_are_one_step_until_they_pause(stage: Stage, clock: Clock) -> None:
    for pause, text in ((0, "128"), (0.5 * TOGETHER, "256"), (TOGETHER, "512")):
        clock.now += pause
        await stage.press(*text, "enter")
    for d_k in (512, 256, 64):
        assert stage.asked.d_k == d_k
        await stage.press("u")


@played()
async def test_scores_are_restored_with_the_pane_that_shows_them(stage: Stage) -> None:
    pane = await stage.opened(SoftmaxPane)
    before = pane.example
    await stage.press("up", "t", "]")
    stage.app.action_pane("Lab")
    await stage.press("S", "u")
    assert (stage.app.active, stage.asked) == ("Lab", SMALL)
    await stage.press("u")
    assert stage.app.active == "Softmax"
    await stage.press("u")
    assert len(pane.example.scores) == len(before.scores)
    await stage.press("u", "u")
    assert pane.example == before
    assert stage.app.active == "Softmax"
    await stage.until(lambda: pane.is_current)
    await stage.press("ctrl+r")
    assert pane.example.scores[-1] == before.scores[-1] + 1


@played()
async def test_what_enter_carries_to_the_lab_is_undone(stage: Stage) -> None:
    pane = await stage.opened(SweepPane)
    statistic = pane.plot.statistic
    await stage.press("M", "S", "enter", "C", "u")
    assert (stage.app.active, stage.asked) == ("Lab", replace(SMALL, scale="d_k"))
    await stage.press("u")
    assert stage.app.active == "Sweep"
    await stage.press("u")
    assert stage.asked == SMALL
    assert pane.plot.statistic is not statistic
    await stage.press("u")
    assert pane.plot.statistic is statistic


@played()
async def test_changes_of_pane_theme_and_executor_are_steps(stage: Stage) -> None:
    app = stage.app
    theme = app.theme
    await stage.press("8", ">")
    app.theme = LIGHT.name
    await stage.press("<")
    app.use_executor("serial")
    await stage.press("S", "u", "u")
    assert (app.executor, app.active) == ("threads", "Lab")
    await stage.press("u")
    assert (app.theme, app.active) == (LIGHT.name, "Softmax")
    await stage.press("u")
    assert (app.theme, app.active) == (theme, "Softmax")
    await stage.press("u")
    assert (app.active, stage.asked.d_k) == ("Lab", 8)
    await stage.press("u")
    assert stage.asked == SMALL
    await stage.press(*["ctrl+r"] * 6)
    assert (app.theme, app.executor, stage.asked) == (LIGHT.name, "serial", replace(SMALL, d_k=8, scale="d_k"))


@played(settled=True)
async def test_a_turn_of_the_wheel_is_one_step_until_it_pauses(stage: Stage, clock: Clock) -> None:
    """When the wheel turned counts, not when the next key or turn came."""
    await stage.press("p")
    await stage.still()
    first = next(y for y, line in enumerate(stage.part(stage.panel)) if line.split()[:1] == ["d_k"])
    for pause, row in ((0, 0), (0, 0), (1.5 * TOGETHER, 0), (0.25 * TOGETHER, 1), (0, 1)):
        clock.now += pause
        await stage.scroll(events.MouseScrollUp, (0, first + row), stage.panel)
    clock.now += 0.25 * TOGETHER
    for d_k, n_keys in ((512, 64), (512, 16), (256, 16)):
        assert (stage.asked.d_k, stage.asked.n_keys) == (d_k, n_keys)
        await stage.press("u")
    assert stage.asked == SMALL


@played()
async def test_a_file_and_what_capture_showed_of_the_one_before_are_restored(stage: Stage, tmp_path: Path) -> None:
    pane = await stage.head()
    await stage.press("O", "v", "down")
    before = pane.undo_state
    stage.app.to_pane("Capture", FileHead(capture_file(tmp_path, some_heads()), (0, 2), None, "Watch"))
    stage.app.note("open")
    await stage.at_rest()
    after = pane.undo_state
    assert after != before
    for key, state in (("u", before), ("ctrl+r", after), ("u", before)):
        await stage.press(key)
        await stage.at_rest()
        assert pane.undo_state == state
        assert pane.is_current
    await stage.press("u", "u", "u")
    await stage.at_rest()
    assert (pane.heads.cursor, pane.views.shown, pane.heads.order) == ((0, 0), "attention", 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", PANES)
@played()
async def test_nothing_that_a_key_sets_is_beyond_undo(
    stage: Stage, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Press random keys of a pane; undo all of it, then redo all of it.

    Panes that the keys opened, as another view of the tab, then stand as they do when first opened.
    """
    stage.app.action_pane(name)
    await stage.at_rest()
    first = state(stage)
    monkeypatch.setattr(stage.engine, "send", stage.engine.asked.append)  # measure nothing more
    keys = [
        key for command in all_commands() if command.place == name and command.name for key in command.keys.split(",")
    ]
    chance = random.Random(name)
    pressed = chance.choices([*keys, "5"], k=60)
    await stage.press(*pressed)
    await stage.press("escape", "escape", "escape")
    await stage.at_rest()
    last = state(stage)
    for key, before in (("u", first), ("ctrl+r", last)):
        stage.send(*[key] * len(pressed))
        await stage.answered()
        parameters, panes = before
        opened = {name: PANES[name].load()(stage.app).undo_state for name in stage.app.panes if name not in panes}
        assert state(stage) == (parameters, panes | opened)


def state(stage: Stage) -> Any:
    return replace(stage.asked), {name: pane.undo_state for name, pane in stage.app.panes.items()}
