"""Prefetching: while a key is held, the parameters after its next repeat are measured in advance."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from attn_tui.core.errors import NO_MEMORY
from attn_tui.core.parameters import FIELD, Parameters
from attn_tui.core.questions.lab import Measure, Report
from attn_tui.core.questions.request import Failed, Request
from attn_tui.core.theory.predict import theory_of
from attn_tui.tui.compute.measure import Prefetch
from attn_tui.tui.panes import stepping
from rich.segment import Segment
from stage import SMALL, Stage, numbers, play, played, rendered


@pytest.fixture(autouse=True)
def keys_that_come_again_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepping, "HELD", math.inf)  # however slow the machine is
    monkeypatch.setattr(stepping, "SLOW", math.inf)


def at(d_k: int, **others: Any) -> Parameters:
    return replace(SMALL, d_k=d_k, **others)


def requests(stage: Stage, start: int = 0) -> list[Request]:
    """Return the requests sent, in order."""
    return [asked.request for asked in stage.engine.asked[start:] if asked.request is not None]


def shown(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Parameters, Parameters]]:
    """Return a list that gets the parameters of every result that the Lab shows, and the app's parameters then."""
    seen: list[tuple[Parameters, Parameters]] = []
    show = stage.lab.results.show

    def note(*contents: Any) -> None:
        seen.append((stage.measurement.subject, stage.asked))
        show(*contents)

    monkeypatch.setattr(stage.lab.results, "show", note)
    return seen


def check(stage: Stage) -> None:
    """Check that the Lab shows a complete measurement of the parameters, equal to a separate run, with its theory."""
    expected = stage.expected
    assert stage.measurement.subject == stage.asked
    assert numbers(stage.measurement) == numbers(expected)
    assert stage.theory.prediction == theory_of(expected).prediction
    assert stage.theory.deviations == theory_of(expected).deviations


@played(settled=True)
async def test_the_same_key_again_is_answered_at_once_without_being_computed(stage: Stage) -> None:
    await stage.press("right", "right")
    for d_k in (67, 68):
        await stage.at_rest()
        before, stage.engine.hold = len(stage.engine.asked), True
        await stage.press("right")
        assert stage.asked == at(d_k)
        assert stage.is_settled
        check(stage)
        assert requests(stage, before) == [Prefetch(at(d_k + 1), full=False)]
        stage.engine.let_go()


@played()
async def test_a_prefetched_measurement_changes_nothing_on_screen(stage: Stage) -> None:
    await stage.press("right", "right")
    await stage.at_rest()
    stage.engine.hold = True
    await stage.press("right")
    await stage.at_rest()
    before = stage.text
    assert stage.engine.cached(at(68), full=False) is None
    stage.engine.let_go()
    await stage.still()
    assert stage.engine.cached(at(68), full=False) is not None
    assert stage.text == before
    check(stage)


LOWEST, HIGHEST = int(FIELD["d_k"].low), int(FIELD["d_k"].high)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parameters", "keys", "following"),
    [
        (SMALL, ["right"], None), (SMALL, ["right", "left"], None), (SMALL, ["left", "left"], 61),
        (SMALL, ["up", "up"], 512), (SMALL, ["down", "down"], 8), (SMALL, ["pageup", "pageup"], 128),
        (at(LOWEST + 2), ["left", "left"], None), (at(HIGHEST // 4), ["up", "up"], None),
    ],
)  # fmt: skip
@played(settled=True)
async def test_only_while_a_key_is_held_its_next_step_within_bounds_is_prefetched(
    stage: Stage, parameters: Parameters, keys: list[str], following: int | None
) -> None:
    for key in keys:
        await stage.press(key)
        await stage.settled()
    await stage.at_rest()
    ahead = [request for request in requests(stage) if isinstance(request, Prefetch)]
    assert ahead == ([] if following is None else [Prefetch(at(following), full=False)])


@played()
async def test_keys_that_change_no_parameter_request_only_what_the_view_lacks(stage: Stage) -> None:
    await stage.at_rest()
    before = len(stage.engine.asked)
    await stage.press("tab", "tab", "escape", "t", "v", "?", "escape")
    await stage.resize(80, 24)
    await stage.at_rest()
    assert requests(stage, before) == [Measure(SMALL)]


@played(settled=True)
async def test_parameters_that_were_measured_before_are_not_measured_again(stage: Stage) -> None:
    before = stage.text
    await stage.press("r")
    await stage.settled()
    assert stage.text != before
    await stage.at_rest()
    asked = len(stage.engine.asked)
    stage.app.change(SMALL)
    await stage.settled()
    assert stage.text == before
    assert Measure(SMALL, full=False) not in requests(stage, asked)


@played(settled=True)
async def test_under_a_held_key_results_are_shown_in_order_up_to_the_last(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepping, "HELD", 0)  # else steps wait for their pictures
    seen = shown(stage, monkeypatch)
    for turn in range(40):
        stage.send("right")
        for _ in range(turn % 7):
            await asyncio.sleep(0)
    await stage.answered()
    assert stage.asked == at(SMALL.d_k + 40)
    await stage.settled()
    d_ks = [parameters.d_k for parameters, _ in seen]
    assert d_ks == sorted(d_ks)
    assert all(parameters.d_k <= asked.d_k for parameters, asked in seen)
    assert len(set(d_ks)) > 1
    check(stage)


@pytest.mark.parametrize("wait", [True, False], ids=["slowly", "at once"])
@played(settled=True)
async def test_a_prefetched_measurement_for_another_seed_is_not_shown(
    stage: Stage, wait: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.press("right", "right")
    await stage.at_rest()
    seen = shown(stage, monkeypatch)
    for key in ("r", "right"):
        await stage.press(key)
        if wait:
            await stage.settled()
            check(stage)
    await stage.settled()
    check(stage)
    assert stage.asked == at(67, seed=1)
    assert {parameters.seed for parameters, _ in seen} == {1}


@played(settled=True)
async def test_an_earlier_answer_does_not_replace_a_prefetched_one(stage: Stage) -> None:
    await stage.press("right", "right")
    await stage.at_rest()
    stage.engine.hold = True
    await stage.press("r")
    await stage.until(lambda: any(isinstance(reply.content, Report) for reply in stage.engine.held))
    stage.app.change(at(67))
    assert stage.measurement.subject == at(67)
    stage.engine.let_go()
    await stage.at_rest()
    assert stage.engine.cached(at(66, seed=1), full=False) is not None
    check(stage)


# Failures


@played(at(4, scale="log_d_k"))
async def test_a_prefetch_that_fails_is_reported_only_when_its_parameters_are_requested(stage: Stage) -> None:
    await stage.press("left", "left")
    await stage.settled()
    await stage.at_rest()
    assert Prefetch(at(1, scale="log_d_k"), full=False) in requests(stage)
    assert "no value" not in stage.text
    await stage.press("left")
    assert "no value at d_k = 1" in stage.lab.results.why_stale
    assert stage.table.dimmed


@played()
async def test_a_lack_of_memory_is_reported_and_the_next_key_is_answered(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def runs_out(*_: object, **__: object) -> None:
        raise MemoryError

    await stage.at_rest()
    with monkeypatch.context() as patch:
        patch.setattr(Measure, "work", runs_out)
        await stage.press("up")
        await stage.at_rest()
        assert stage.table.dimmed
        assert NO_MEMORY[:20] in stage.lab.results.why_stale
    await stage.press("right")
    await stage.settled()
    check(stage)


@pytest.mark.parametrize("keys", [[], ["s"]], ids=["current", "rejected"])
@played(at(1, scale="d_k"), settled=True)
async def test_a_failure_for_earlier_parameters_is_not_reported(stage: Stage, keys: Sequence[str]) -> None:
    await stage.press(*keys)
    before = stage.text
    stage.lab.show_answer(Measure(at(100)), Failed("too much memory"))
    await stage.still()
    assert stage.text == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "size"),
    [
        ([], (60, 20)),
        (["tab"], (80, 24)),
        (["v", "shift+tab", "down"], (60, 20)),
        (["t"], (80, 24)),
        (["v"], (80, 24)),
        (["0", "escape"], (60, 20)),
    ],
    ids=str,
)
def test_the_screen_equals_that_of_a_fresh_start(keys: Sequence[str], size: tuple[int, int]) -> None:
    found: list[list[list[Segment]]] = []

    async def painted(stage: Stage) -> None:
        await stage.resize(*size)
        await stage.settled()
        found.append([list(strip.simplify()) for strip in rendered(stage.app.screen)])

    async def stepped(stage: Stage) -> None:
        await stage.press("right")
        await stage.at_rest()
        await stage.press(*keys)
        await stage.press("right")
        assert stage.asked == at(66)
        await painted(stage)

    async def fresh(stage: Stage) -> None:
        await stage.settled()
        await stage.press(*keys)
        await painted(stage)

    play(stepped)
    play(fresh, at(66))
    assert found[0] == found[1]
