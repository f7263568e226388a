"""Numbers for other parameters are dimmed, or their successors are on the way; they are never exported."""

import json
from functools import partial

import pytest
from attn_tui.core.questions.lab import Measure
from attn_tui.core.questions.softmax import WorkOut
from attn_tui.tui.panes.lab.pane import LabPane
from attn_tui.tui.panes.softmax.pane import SoftmaxPane
from attn_tui.tui.panes.sweep.pane import SweepPane
from monkey import Monkey
from stage import SMALL, Stage, driver_of, played, refusal
from textual import events


@pytest.mark.parametrize(
    ("burst", "hold"),
    [("LLS<", False), ("S<>L<", False), ("S<>L<", True)],
)
@played()
async def test_a_change_and_another_pane_in_one_read(stage: Stage, burst: str, hold: bool) -> None:
    await stage.opened(SoftmaxPane)
    await stage.at_rest()
    stage.engine.hold = hold
    Monkey(stage, 0).read(burst)
    await stage.answered()
    assert stage.app.pane is stage.lab
    if hold:
        assert stage.lab.is_current or refusal(lambda: stage.lab.numbers("json"))
        stage.engine.let_go()
    await stage.settled()
    await stage.known(stage.lab)
    assert json.loads(stage.lab.numbers("json"))["parameters"]["d_k"] == stage.asked.d_k
    assert stage.measurement.subject == stage.asked


@played(settled=True)
async def test_a_call_that_follows_keys_from_the_terminal_comes_after_their_effect(stage: Stage) -> None:
    found: list[int] = []
    Monkey(stage, 0).read("\x1b[C" * 20)
    call = partial(stage.app.do_last, lambda: found.append(stage.asked.d_k))
    driver_of(stage.app).send_message(events.Callback(call))
    await stage.until(lambda: found, "the call")
    assert found == [SMALL.d_k + 20]


@played()
async def test_a_pane_that_is_left_while_it_handles_a_key_takes_no_answer_from_the_next(stage: Stage) -> None:
    sweep = await stage.opened(SweepPane)
    await stage.at_rest()
    stage.engine.hold = True
    await stage.opened(LabPane)
    await stage.press("S")
    sweep.action_grid()
    stage.engine.let_go()
    await stage.settled()
    assert stage.measurement.subject == stage.asked


@played()
async def test_numbers_are_dimmed_while_the_engine_is_silent(stage: Stage) -> None:
    await stage.settled()
    stage.engine.hold = True
    await stage.press("S")
    assert not stage.lab.is_stale
    stage.engine.report_silence()
    await stage.answered()
    assert stage.lab.is_stale
    assert "Computing scale" in stage.text
    assert "shown are for scale" in stage.text
    stage.engine.let_go()
    await stage.settled()


@played()
async def test_a_late_full_answer_to_earlier_parameters_is_not_shown(stage: Stage) -> None:
    pane = await stage.complete(LabPane)
    late = pane.answered()
    await stage.press("S")
    await stage.settled()
    pane.show_answer(Measure(late.parameters), late)
    await stage.still()
    assert late.full
    assert pane.is_current
    assert stage.measurement.subject == stage.asked != late.parameters


@played()
async def test_silence_is_not_reported_after_an_answer_nor_a_key_held_at_a_bound_requested(stage: Stage) -> None:
    await stage.settled()
    stage.engine.report_silence()
    await stage.answered()
    assert not stage.lab.is_stale
    assert stage.lab.progress is None
    await stage.press("R", "1", "enter")
    await stage.until(lambda: stage.lab.is_current)
    before = [submission for submission in stage.engine.asked if submission.kind is Measure]
    await stage.press(*["down"] * 5)
    assert [submission for submission in stage.engine.asked if submission.kind is Measure] == before


@played()
async def test_the_sweep_shows_no_reading_of_another_rule_where_the_rule_has_no_value(stage: Stage) -> None:
    pane = await stage.complete(SweepPane)
    pane.set_value("d_k", 1)
    await stage.until(lambda: pane.is_current)
    pane.set_value("scale", "log_d_k")
    await stage.at_rest()
    assert pane.plot.reading == (stage.asked, None)
    assert "has no value at d_k = 1" in stage.text


@played()
async def test_a_late_answer_changes_nothing_in_softmax(stage: Stage) -> None:
    pane = await stage.opened(SoftmaxPane)
    await stage.until(lambda: pane.is_current)
    stage.engine.hold = True
    await stage.press("up", "up")
    await stage.until(lambda: len(stage.engine.held) >= 2)
    await stage.until(lambda: stage.engine.at_rest)
    late = [reply for reply in stage.engine.held if reply not in stage.engine.held_for(WorkOut)]
    stage.engine.hand_on(stage.engine.held_for(WorkOut))
    await stage.until(lambda: pane.is_current)
    stage.engine.hand_on(late)
    await stage.still()
    assert pane.is_current
    assert not pane.is_stale
