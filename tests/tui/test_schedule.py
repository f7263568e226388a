"""The schedule of the engine's process: the order of work, what is cancelled, and that no result depends on it."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from unittest.mock import Mock

import pytest
from attn_tui.core.errors import NO_MEMORY, InputError
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.results import RuleRow
from attn_tui.core.parameters import Parameters
from attn_tui.core.questions import lab
from attn_tui.core.questions import request as requests
from attn_tui.core.questions.lab import Measure, Report
from attn_tui.core.questions.request import Cache, Crashed, Failed, Priority, Progress, Request, Work
from attn_tui.core.questions.sweep import Points, SweepQuestion
from attn_tui.core.theory.predict import theory_of
from attn_tui.core.work.engines import run as run_parts
from attn_tui.core.work.part import results_of
from attn_tui.core.work.rules import row_parts
from attn_tui.tui.compute import worker
from attn_tui.tui.compute.engine import Reply, Submission
from attn_tui.tui.compute.measure import Prefetch
from attn_tui.tui.compute.worker import REPLACE_WITH_RESULT, REPLACE_WITHOUT_RESULT, Schedule
from attn_tui.tui.panes.rules.requests import MeasureRules, RuleRows
from stage import SMALL, numbers

NEXT = replace(SMALL, d_k=65)  # its last component is in a chunk that SMALL does not need
SEVERAL_BLOCKS = replace(SMALL, n_keys=512, n_queries=512, batch=8)


@dataclass(frozen=True)
class Task(Request):
    """A request whose steps yield these values, or raise them if they are exceptions."""

    PRIORITY: ClassVar[Priority] = Priority.KEYPRESS
    name: str = ""
    yields: tuple[object, ...] = (None, "result")

    def work(self, cache: Cache) -> Work:
        for each in self.yields:
            if isinstance(each, Exception):
                raise each
            yield each


class Visible(Task):
    PRIORITY = Priority.VISIBLE


class Ahead(Task):
    PRIORITY = Priority.PREFETCH


class Background(Task):
    PRIORITY = Priority.BACKGROUND


class Bench:
    """A schedule with a clock that the test sets, and its replies."""

    def __init__(self) -> None:
        self.now = 0.0
        self.schedule = Schedule()
        self.requests: dict[int, Request] = {}
        self.replies: list[Reply] = []

    def monotonic(self) -> float:
        return self.now

    def ask(self, *requests: Request) -> None:
        for request in requests:
            number = len(self.requests) + 1
            self.requests[number] = request
            self.replies += self.schedule.submit(Submission(number, type(request), request))

    def withdraw(self, kind: type[Request]) -> None:
        self.replies += self.schedule.submit(Submission(len(self.requests), kind, None))

    def step(self, times: int = 1) -> None:
        for _ in range(times):
            if not self.schedule.idle:
                self.replies += self.schedule.step()

    def finish(self) -> int:
        """Do all the work; return the number of steps."""
        steps = 0
        while not self.schedule.idle:
            self.step()
            steps += 1
        return steps

    def replies_to(self, request: Request) -> list[Any]:
        """Return the replies to a request; the last one is None."""
        return [reply.content for reply in self.replies if self.requests[reply.number] == request]

    @property
    def results(self) -> list[Request]:
        """The requests that were answered, apart from progress, in order of their answers."""
        answers = (each for each in self.replies if not isinstance(each.content, (Progress, type(None))))
        return [self.requests[reply.number] for reply in answers]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench = Bench()
    for module in (worker, requests, lab):
        monkeypatch.setattr(module, "time", bench)
    return bench


def check(answer: Report) -> None:
    """Check that an answer is complete, and equal to a separate run and its theory."""
    expected = run(answer.parameters)
    theory = theory_of(expected)
    assert answer.measurement.subject == answer.parameters
    assert answer.measurement.complete
    assert numbers(answer.measurement) == numbers(expected)
    assert answer.theory.prediction == theory.prediction
    assert answer.theory.deviations == theory.deviations


# The order


def test_the_most_urgent_request_is_answered_first(bench: Bench) -> None:
    for task in (Background(), Ahead(), Visible(), Task()):
        bench.ask(task)
        bench.step()
    bench.finish()
    assert bench.results == [Task(), Visible(), Ahead(), Background()]


def test_every_request_ends_once_after_its_answers(bench: Bench) -> None:
    tasks = [Task("a", (1, None, 2)), Visible("b", ()), Background("c", (3,))]
    bench.ask(*tasks)
    bench.finish()
    assert [bench.replies_to(task) for task in tasks] == [[1, 2, None], [None], [3, None]]


def test_a_waiting_request_ends_when_a_newer_one_of_its_kind_is_submitted(bench: Bench) -> None:
    for name in "abc":
        bench.ask(Task(name))
        if name == "a":
            bench.step()
    assert bench.replies_to(Task("b")) == [None]
    bench.finish()
    assert bench.results == [Task("a"), Task("c")]


def test_withdrawn_work_is_cancelled_at_once_running_or_waiting(bench: Bench) -> None:
    bench.ask(Task("running"), Visible("other"))
    bench.step()
    bench.ask(Task("waiting"))
    bench.withdraw(Task)
    assert bench.replies_to(Task("running")) == bench.replies_to(Task("waiting")) == [None]
    bench.finish()
    assert bench.results == [Visible("other")]


@pytest.mark.parametrize("early", [True, False], ids=["at once", "later"])
@pytest.mark.parametrize(
    ("error", "expected"),
    [(InputError("why"), Failed("why")), (MemoryError(), Failed(NO_MEMORY)), (KeyError("x"), "KeyError: 'x'")],
    ids=["refused", "memory", "unexpected"],
)
def test_an_error_is_the_last_answer_and_other_work_continues(
    error: Exception, expected: object, early: bool, bench: Bench
) -> None:
    failing = Task("failing", (error,) if early else (None, "early", error))
    bench.ask(failing, Visible())
    bench.finish()
    *before, found, end = bench.replies_to(failing)
    assert (before, end) == ([] if early else ["early"], None)
    if isinstance(found, Crashed):
        assert found.error == expected
        assert "in work" in found.report
    else:
        assert found == expected
    assert bench.results[-1] == Visible()


# Replacing running work


@pytest.mark.parametrize(
    ("kind", "content", "seconds", "replaced"),
    [
        (Task, None, REPLACE_WITHOUT_RESULT - 0.01, False),
        (Task, None, REPLACE_WITHOUT_RESULT + 0.01, True),
        (Task, Progress(0.5), REPLACE_WITHOUT_RESULT - 0.01, False),
        (Task, "result", REPLACE_WITH_RESULT - 0.01, False),
        (Task, "result", REPLACE_WITH_RESULT + 0.01, True),
        (Ahead, None, 0.0, True),
    ],
)
def test_a_newer_request_of_its_kind_replaces_running_work(
    kind: type[Task], content: object, seconds: float, replaced: bool, bench: Bench
) -> None:
    old, new = kind("old", (content, *[None] * 9, "end")), kind("new")
    bench.ask(old)
    bench.step()
    bench.now = seconds
    bench.ask(new)
    bench.step()
    assert (None in bench.replies_to(old)) is replaced
    bench.finish()
    assert ("end" in bench.replies_to(old)) is not replaced
    assert bench.results[-1] == new


@pytest.mark.parametrize(
    "yields",
    [(*[None] * 7, "all"), (*[Progress(0.1)] * 7, "all"), (*[None] * 4, "first", *[None] * 30, "all"), ("all",)],
    ids=["slow", "slow with progress", "very slow with a first result", "fast"],
)
def test_under_a_held_key_results_come_in_order_and_at_least_every_second(
    yields: Sequence[object], bench: Bench
) -> None:
    times: list[float] = []
    for key in range(200):
        bench.ask(Task(f"{key:03}", tuple(yields)))
        found = len(bench.results)
        bench.step()
        bench.now += 0.1
        times += [bench.now] * (len(bench.results) > found)
    assert max(later - earlier for earlier, later in zip([0.0, *times], [*times, bench.now], strict=True)) < 1.1
    shown = [task.name for task in bench.results if isinstance(task, Task)]
    assert shown == sorted(shown)
    bench.finish()
    assert bench.results[-1] == Task("199", tuple(yields))


# Measurements


def test_a_long_measurement_reports_progress_and_answers_for_its_first_draws(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab, "PARTIAL_INTERVAL", -1.0)
    for name in ("PROGRESS_INTERVAL", "BATCH_INTERVAL"):
        monkeypatch.setattr(requests, name, -1.0)
    bench.ask(Measure(SEVERAL_BLOCKS))
    bench.finish()
    *replies, end = bench.replies_to(Measure(SEVERAL_BLOCKS))
    assert end is None
    fractions = [each.fraction for each in replies if isinstance(each, Progress)]
    assert fractions == sorted({*fractions})
    assert 0 < fractions[0] < fractions[-1] < 1
    answers = [each for each in replies if isinstance(each, Report)]
    draws = [each.measurement.draws for each in answers]
    assert draws == sorted({*draws})
    assert 1 < draws[0] < draws[-1] == SEVERAL_BLOCKS.batch
    check(answers[-1])


def prefetched(bench: Bench, share: float) -> int:
    """Measure SMALL, then prefetch a share of NEXT; return the number of steps left."""
    whole, steps = Bench(), 0
    for each in (whole, bench):
        for small in (replace(SMALL, seed=99), SMALL):  # so that what NEXT shares with SMALL alone is drawn
            each.ask(Measure(small))
            each.finish()
        if each is whole:
            whole.ask(Prefetch(NEXT))
            steps = whole.finish()
    bench.ask(Prefetch(NEXT))
    done = 1 + round(share * (steps - 2))  # from one step to all but one
    bench.step(done)
    return steps - done


@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_a_prefetch_continues_when_it_is_requested(share: float, bench: Bench) -> None:
    left = prefetched(bench, share)
    bench.ask(Measure(NEXT))
    assert bench.finish() == left
    prefetch, request = bench.replies_to(Prefetch(NEXT)), bench.replies_to(Measure(NEXT))
    assert prefetch.pop() is request.pop() is None
    [answer] = prefetch + request  # the engine accepts either
    check(answer)


def test_a_prefetch_that_was_requested_is_replaced_like_other_work(bench: Bench) -> None:
    prefetched(bench, 0)
    bench.now = 10.0
    bench.ask(Measure(NEXT))
    bench.step()
    bench.ask(Measure(SMALL))
    bench.finish()
    *_, answer, end = bench.replies_to(Measure(NEXT))
    assert end is None
    check(answer)


def test_a_scale_without_a_value_fails_only_at_that_d_k(bench: Bench) -> None:
    further = replace(SMALL, d_k=1, scale="log_d_k")
    for request in (Prefetch(further), Measure(further), Measure(replace(further, d_k=2))):
        bench.ask(request)
        bench.finish()
    assert bench.replies_to(Measure(further)) == bench.replies_to(Prefetch(further))
    assert "no value at d_k = 1" in bench.replies_to(Measure(further))[0].reason
    check(bench.replies_to(Measure(replace(further, d_k=2)))[0])


# Work interrupted by other work


@pytest.mark.parametrize(
    ("other", "share"),
    [
        ({"d_k": 63}, 0),
        ({"d_k": 130}, 0.5),
        ({"seed": 1}, 1),
        ({"seed": 1, "d_k": 130}, 0.5),
        ({"n_keys": 32}, 0),
        ({"components": "laplace"}, 1),
    ],
    ids=str,
)
def test_another_measurement_in_between_changes_no_number(other: dict[str, Any], share: float, bench: Bench) -> None:
    prefetched(bench, share)
    asked = replace(SMALL, **other)
    asks = [Measure(asked), Measure(replace(asked, d_k=asked.d_k + 100)), Measure(NEXT)]
    for request in asks:
        bench.ask(request)
        bench.finish()
    for request in (Prefetch(NEXT), *asks):
        check(bench.replies_to(request)[0])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_numbers_do_not_depend_on_what_else_is_computed(
    seed: int, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab, "PARTIAL_INTERVAL", 1e9)
    chance = random.Random(seed)
    kinds = (Measure, Prefetch, MeasureRules)
    rows: dict[Parameters, list[RuleRow]] = {}
    for _ in range(25):
        asked = replace(SMALL, d_k=chance.choice([10, 65, 200, 700]), seed=chance.choice([0, 0, 0, 1]))
        bench.ask(chance.choice(kinds)(asked))
        bench.step(chance.randrange(40))
        bench.now += chance.choice([0.0, 0.0, 10.0])  # so that some are replaced
    bench.finish()
    answered: set[Request] = set()
    for number, content in bench.replies:
        request = bench.requests[number]
        if isinstance(content, Report):
            check(content)
            answered.add(request)
        elif isinstance(content, RuleRows) and isinstance(request, MeasureRules):
            rows.setdefault(request.parameters, []).extend(content.rows)
    assert answered
    for parameters, found in rows.items():
        expected = {row.rule: row for done in run_parts(row_parts(parameters)) for row in results_of(done)}
        assert all(row.measured == expected[row.rule].measured for row in found)


def test_a_withdrawn_or_failed_sweep_continues_with_its_next_point(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = SweepQuestion(SMALL, "2,8,32,64")
    monkeypatch.setattr("attn_tui.core.questions.request.BATCH_INTERVAL", -1.0)
    monkeypatch.setattr("attn_tui.core.questions.request.PROGRESS_INTERVAL", math.inf)

    def points() -> list[int]:
        found = [point for _, content in bench.replies if isinstance(content, Points) for point in content.points]
        return [point.point.parameters.d_k for point in found]

    bench.ask(sweep)
    while len(points()) < 2:
        bench.step()
    bench.withdraw(SweepQuestion)
    bench.ask(replace(sweep, known=len(points())))
    with monkeypatch.context() as patch:
        patch.setattr("attn_tui.core.theory.predict.deviations", Mock(side_effect=MemoryError))
        bench.finish()
    assert bench.replies_to(sweep)[-2:] == [Failed(NO_MEMORY), None]
    bench.ask(replace(sweep, known=2))
    bench.finish()
    assert points() == [2, 8, 32, 64]
