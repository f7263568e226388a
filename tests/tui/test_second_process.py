"""The process that measures while this one paints: what it says, and what happens without it."""

import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.errors import InputError
from attn_tui.core.lab import curves
from attn_tui.core.lab.comparison import theory_of
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.service import FIRST, Explained
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.measurement import Measurement
from attn_tui.tui import second_process, work
from attn_tui.tui.messages import MeasurementReady, Progress
from attn_tui.tui.second_process import SecondProcess, UnansweredError

SMALL = Parameters(d_k=8, n_keys=16, n_queries=8, batch=3)
ODD = SMALL.with_value("n_keys", 17)  # theory has no curves for so many keys at hand
LARGE = Parameters(d_k=512, n_keys=4096, n_queries=4096, batch=512)  # takes longer than FOREVER
NO_MULTIPLIER = Parameters(d_k=1, n_keys=16, n_queries=8, batch=3, scale="log_d_k")
FOREVER = 60.0  # seconds until a test gives up


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second process is there wherever tests run, and waited for however long it takes."""
    monkeypatch.setattr(second_process, "_side_by_side", lambda: True)
    monkeypatch.setattr(second_process, "_PATIENCE", 1e12)


@pytest.fixture
def second(patient: None) -> Iterator[SecondProcess]:
    started = SecondProcess()
    yield started
    started.close()


def at(d_k: int) -> Parameters:
    return SMALL.with_value("d_k", d_k)


def last(answers: Iterator[Any]) -> Any:
    """What there is when nothing more is awaited."""
    found = None
    for answer in bounded(answers):
        found = answer
    return found


def all_answered(second: SecondProcess) -> None:
    """Wait for everything that is said of the first question."""
    wait_for(lambda: not (second._look(0) or second._busy))


def begun(answers: Iterator[Any]) -> Any:
    """The first thing that is said; it takes a while, so that it is being measured then."""
    return next(answer for answer in bounded(answers) if answer is not None)


def bounded(answers: Iterator[Any]) -> Iterator[Any]:
    end = time.monotonic() + FOREVER
    for answer in answers:
        yield answer
        assert time.monotonic() < end, "the answer never came"


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + FOREVER
    while not condition():
        assert time.monotonic() < end, "it never comes about"
        time.sleep(0.01)


def numbers(measurement: Measurement[Any]) -> list[dict[str, object]]:
    return [dict(column.measured) for column in measurement.columns]


def test_it_measures_what_this_process_would(second: SecondProcess) -> None:
    second.begin(SMALL)
    found, own = last(second.measure(SMALL)), run(SMALL)
    assert found.subject == SMALL
    assert numbers(found) == numbers(own)
    for one, other in zip(found.columns, own.columns, strict=True):
        assert one.histograms.keys() == other.histograms.keys()
        for name, histogram in one.histograms.items():
            assert np.array_equal(histogram.counts, other.histograms[name].counts)


def test_what_it_found_first_can_be_read_without_numpy(second: SecondProcess) -> None:
    second.begin(SMALL)
    all_answered(second)
    program = (
        "import pickle, sys; sys.modules['numpy'] = None; print(*map(pickle.loads, pickle.load(sys.stdin.buffer)))"
    )
    answers = pickle.dumps(second._heard[FIRST][:2])
    read = subprocess.run([sys.executable, "-c", program], input=answers, capture_output=True, check=False)
    assert read.stdout.count(b"Histogram(") == 10, read.stderr
    assert b"ScoreCurve(" in read.stdout


def test_as_much_of_what_it_found_first_is_shown_as_is_there(second: SecondProcess) -> None:
    assert second.first(SMALL) is None
    second.begin(SMALL)
    all_answered(second)
    own, theory = run(SMALL), theory_of(SMALL)
    found = second.first(SMALL)
    assert isinstance(found, Explained)
    assert numbers(found.measurement) == numbers(own)
    assert found.theory.deviations == theory(own).deviations
    del second._heard[FIRST][1:]
    second.close()
    early = second.first(SMALL)
    assert isinstance(early, Measurement)
    assert numbers(early) == numbers(own)
    assert second.first(at(9)) is None


def test_for_the_first_frame_only_the_measurement_is_read(
    second: SecondProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert second.first_measurement(SMALL) is None
    second.begin(SMALL)
    all_answered(second)
    read: list[bytes] = []
    loads = pickle.loads
    monkeypatch.setattr(pickle, "loads", lambda answer: read.append(answer) or loads(answer))
    found = second.first_measurement(SMALL)
    assert isinstance(found, Measurement)
    assert numbers(found) == numbers(run(SMALL))
    assert read == second._heard[FIRST][:1]
    assert second.first_measurement(at(9)) is None


def test_its_curves_are_those_that_this_process_would_compute(second: SecondProcess) -> None:
    second.begin(ODD)
    made, own = last(second.curves(ODD)), curves.prepared(ODD.n_keys)
    assert made.keys() == own.keys()
    for name, coefficients in made.items():
        assert np.array_equal(coefficients, own[name])


def test_another_question_gets_no_numbers_and_the_curves_where_its_rows_are_the_same(second: SecondProcess) -> None:
    second.begin(ODD)
    wider = ODD.with_value("d_k", 9)
    assert second.first(wider) is None
    for other in (ODD.with_value("n_keys", 19), ODD.with_value("mask", "causal"), SMALL):
        assert list(second.curves(other)) == []
    assert last(second.curves(wider)).keys() == {ODD.n_keys}


def test_a_question_that_takes_long_is_no_first_one_and_says_how_far_it_is(second: SecondProcess) -> None:
    second.begin(LARGE)
    assert second.first(LARGE) is None
    assert list(second.curves(LARGE)) == []
    said = begun(second.measure(LARGE))
    assert isinstance(said, float)
    assert 0 < said < 1


def ready(second: SecondProcess) -> SecondProcess:
    """When all that is asked first has been answered."""
    second.begin(SMALL)
    all_answered(second)
    return second


def test_later_questions_are_measured_as_this_process_would(second: SecondProcess) -> None:
    ready(second)
    for d_k in (9, 300, 9):
        question = at(d_k)
        found = last(second.measure(question))
        assert found.subject == question
        assert numbers(found) == numbers(run(question))


def test_what_is_asked_for_with_its_theory_comes_with_what_this_process_would_find(second: SecondProcess) -> None:
    ready(second)
    for d_k in (9, 300):
        question = at(d_k)
        measurement, theory = last(second.measure(question, explained=True))
        assert numbers(measurement) == numbers(run(question))
        own = theory_of(question)(measurement)
        assert theory.prediction == own.prediction
        assert theory.deviations == own.deviations
        assert np.array_equal(theory.curve.below, own.curve.below)


def test_theory_rests_on_the_curves_that_it_was_told(second: SecondProcess) -> None:
    ready(second)
    [(n_keys, made)] = curves.prepared(ODD.n_keys).items()
    second.adopt({n_keys: np.zeros_like(made)})  # no curves that it would come to by itself
    values = last(second.measure(ODD, explained=True)).theory.prediction.columns[0].values
    assert (values["entropy"], values["max_weight"]) == (0, 1)


def test_a_newer_question_takes_the_place_of_one_that_is_being_answered(second: SecondProcess) -> None:
    ready(second)
    for _ in range(3):
        begun(second.measure(LARGE))
    wider = at(9)
    assert numbers(last(second.measure(wider))) == numbers(run(wider))


def test_before_it_has_answered_what_came_first_nothing_else_is_asked(second: SecondProcess) -> None:
    second.begin(SMALL)
    with pytest.raises(UnansweredError):
        next(second.measure(at(9)))


def test_what_cannot_be_measured_is_left_to_this_process_and_the_next_question_is_answered(
    second: SecondProcess,
) -> None:
    ready(second)
    with pytest.raises(UnansweredError):
        last(second.measure(NO_MULTIPLIER))
    with pytest.raises(InputError):
        last(work.Lab(second).measure(NO_MULTIPLIER))
    assert last(second.measure(at(9))) is not None


@pytest.fixture
def asked(second: SecondProcess, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The d_k that the second process is asked for; 0 where it is told to end what it is at."""
    d_ks: list[int] = []
    ask = second._ask

    def noted(question: Parameters | None, explained: bool = False) -> int:
        d_ks.append(question.d_k if question else 0)
        return ask(question, explained)

    monkeypatch.setattr(second, "_ask", noted)
    return d_ks


def lab_of(second: SecondProcess) -> work.Lab:
    """The lab's measurements, when the first one has been shown with its theory."""
    lab = work.Lab(ready(second))
    first = last(lab.measure(SMALL))
    last(lab.predict(first.measurement))
    return lab


def test_what_is_to_come_then_is_asked_for_before_what_has_come_is_handed_over(
    second: SecondProcess, asked: list[int]
) -> None:
    lab = lab_of(second)
    for step in lab.measure(at(9), at(10)):
        if isinstance(step, MeasurementReady):
            assert asked == [9, 10]
    found = last(lab.measure(at(10)))
    assert asked == [9, 10]
    assert found.theory is not None
    assert numbers(found.measurement) == numbers(run(at(10)))


def test_what_is_measured_ahead_asks_for_what_comes_then_and_is_not_measured_again(
    second: SecondProcess, asked: list[int]
) -> None:
    lab = lab_of(second)
    last(lab.measure(at(9), at(10)))
    found = last(lab.measure_next(at(10), at(11)))
    assert (found.kind, found.measurement.subject) == ("next", at(10))
    assert list(lab.measure_next(at(10), at(11))) == [], "it has been found"
    again = last(lab.measure(at(10), at(11)))
    assert again.measurement is found.measurement
    assert asked == [9, 10, 11]
    assert numbers(last(lab.measure(at(11))).measurement) == numbers(run(at(11)))
    assert asked == [9, 10, 11]


@pytest.fixture
def explained(second: SecondProcess, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The n_keys and the d_k of what the second process is asked for with its theory."""
    questions: list[tuple[int, int]] = []
    measure = second.measure

    def noted(question: Parameters, explained: bool = False) -> Iterator[Any]:
        if explained:
            questions.append((question.n_keys, question.d_k))
        return measure(question, explained)

    monkeypatch.setattr(second, "measure", noted)
    return questions


def test_theory_comes_with_what_is_measured(second: SecondProcess, explained: list[tuple[int, int]]) -> None:
    lab = lab_of(second)
    for measured in (lab.measure(at(9), at(10)), lab.measure(at(10)), lab.measure_next(at(11)), lab.measure(at(300))):
        found = last(measured)
        own = theory_of(found.measurement.subject)(found.measurement)
        assert found.theory.prediction == own.prediction
        assert found.theory.deviations == own.deviations
    assert [d_k for _, d_k in explained] == [9, 10, 11, 300]


def test_theory_is_left_to_it_once_it_knows_the_curves_of_such_rows(
    second: SecondProcess, explained: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "AHEAD", FOREVER)
    lab, told, adopt = lab_of(second), list[Any](), second.adopt
    monkeypatch.setattr(second, "adopt", lambda curves: (told.append(curves), adopt(curves)))
    first = last(lab.measure(ODD))
    assert (first.theory, explained) == (None, [])
    last(lab.predict(first.measurement))
    [curves_told] = told
    assert curves_told.keys() == {17}
    assert last(lab.measure_next(ODD.with_value("d_k", 9))).theory is not None
    assert explained == [(17, 9)]
    assert last(lab.measure(ODD.with_value("n_keys", 18).with_value("components", "laplace"))).theory is not None
    assert explained == [(17, 9), (18, SMALL.d_k)], "other laws need no curves"
    assert told == [curves_told]


def test_something_else_takes_the_place_of_what_was_to_come_then(second: SecondProcess, asked: list[int]) -> None:
    lab = lab_of(second)
    last(lab.measure(at(9), LARGE))
    found = last(lab.measure(at(7), NO_MULTIPLIER))
    assert numbers(found.measurement) == numbers(run(at(7)))
    with pytest.raises(InputError):
        last(lab.measure(NO_MULTIPLIER))
    assert numbers(last(lab.measure(at(9))).measurement) == numbers(run(at(9)))


def test_where_the_process_is_lost_what_was_to_come_then_is_measured_when_it_is_asked_for(
    second: SecondProcess,
) -> None:
    lab = lab_of(second)
    process = second._process
    assert process is not None
    process.kill()
    for d_k in (9, 10, 9):
        found = last(lab.measure(at(d_k), at(d_k + 1)))
        assert numbers(found.measurement) == numbers(run(at(d_k)))


def test_where_the_process_is_lost_the_lab_measures_for_itself(second: SecondProcess) -> None:
    lab = work.Lab(ready(second))
    last(lab.measure(SMALL))
    messages = lab.measure(LARGE)
    assert next(messages) is None
    process = second._process
    assert process is not None
    assert lab.apart
    process.kill()
    found = next(each for each in messages if each is not None)
    assert isinstance(found, Progress)
    assert not lab.apart
    wider = at(9)
    assert numbers(last(lab.measure(wider)).measurement) == numbers(run(wider))


def test_a_process_that_falls_silent_is_given_up(second: SecondProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    ready(second)
    process = second._process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    monkeypatch.setattr(second_process, "_SILENCE", 0.1)
    with pytest.raises(UnansweredError):
        last(second.measure(at(9)))
    assert process.poll() is not None


def test_it_ends_when_nobody_can_ask_it_any_more(second: SecondProcess) -> None:
    ready(second)
    process = second._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(FOREVER) == 0


def test_it_ends_in_the_midst_of_measuring_when_nobody_can_ask_it_any_more(second: SecondProcess) -> None:
    ready(second)
    process = second._process
    assert process is not None
    assert process.stdin is not None
    begun(second.measure(LARGE))
    process.stdin.close()
    assert process.wait(FOREVER) == 0


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("defective", ["run", "stream"])
def test_an_error_that_is_no_refusal_ends_it_and_the_lab_measures_for_itself(
    defective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    defect = f"from attn_tui.core.lab import experiment; experiment.{defective} = None; "
    monkeypatch.setattr(second_process, "_PROGRAM", defect + second_process._PROGRAM)
    second = SecondProcess()
    process = second._process
    assert process is not None
    second.begin(SMALL if defective == "run" else LARGE)
    lab, wider = work.Lab(second), at(9)
    if defective == "stream":
        wait_for(lambda: not (second._look(0) or second._busy))
    assert numbers(last(lab.measure(wider)).measurement) == numbers(run(wider))
    wait_for(lambda: not second._look(0) and not lab.apart)
    assert process.returncode is not None


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize(
    "program", ["", "raise SystemExit(3)", "import sys; sys.stdin.buffer.read(10); print('nonsense')"]
)
def test_where_the_process_fails_there_is_no_answer(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_process, "_PROGRAM", program)
    second = SecondProcess()
    second.begin(SMALL)
    with pytest.raises(UnansweredError):
        last(second.measure(SMALL))
    assert second.first(SMALL) is None
    wait_for(lambda: not second._look(0) and not second.there)


def test_a_process_that_does_not_answer_first_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_process, "_side_by_side", lambda: True)
    monkeypatch.setattr(second_process, "_PROGRAM", "import time; time.sleep(1000)")
    second = SecondProcess()
    second.begin(SMALL)
    process = second._process
    assert process is not None
    with pytest.raises(UnansweredError):
        last(second.measure(SMALL))
    with pytest.raises(UnansweredError):
        last(second.measure(at(9)))
    second.close()
    assert process.poll() is not None


def test_without_a_second_processor_there_is_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_process, "_side_by_side", lambda: False)
    second = SecondProcess()
    second.begin(SMALL)
    assert not second.there
    with pytest.raises(UnansweredError):
        next(second.measure(SMALL))


@pytest.mark.usefixtures("patient")
def test_where_no_process_may_be_started_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError

    monkeypatch.setattr("subprocess.Popen", refuse)
    second = SecondProcess()
    second.begin(SMALL)
    with pytest.raises(UnansweredError):
        next(second.measure(SMALL))


@pytest.mark.usefixtures("patient")
def test_it_can_be_ended_while_its_answer_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_process, "_PROGRAM", "import time; time.sleep(1000)")
    second = SecondProcess()
    second.begin(SMALL)
    process, found = second._process, list[Any]()

    def wait() -> None:
        try:
            last(second.measure(SMALL))
        except UnansweredError as error:
            found.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    second.close()
    waiting.join(FOREVER)
    assert len(found) == 1
    assert process is not None
    assert process.poll() is not None


def test_the_lab_takes_over_what_was_measured_first_and_goes_on_asking(second: SecondProcess) -> None:
    second.begin(SMALL)
    lab = work.Lab(second)
    [first] = [each for each in lab.measure(SMALL) if isinstance(each, MeasurementReady)]
    assert numbers(first.measurement) == numbers(run(SMALL))
    assert first.theory is None
    [with_theory] = [each for each in lab.predict(first.measurement) if isinstance(each, MeasurementReady)]
    assert with_theory.theory is not None
    wider = at(9)
    [third] = [each for each in lab.measure(wider) if isinstance(each, MeasurementReady)]
    assert numbers(third.measurement) == numbers(run(wider))
    assert third.theory is not None


def test_a_first_question_that_cannot_be_measured_leaves_it_free_for_others(second: SecondProcess) -> None:
    second.begin(NO_MULTIPLIER)
    with pytest.raises(UnansweredError):
        last(second.measure(NO_MULTIPLIER))
    all_answered(second)
    found = last(second.measure(SMALL))
    assert numbers(found) == numbers(run(SMALL))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not say what a process uses")
def test_what_nobody_waits_for_any_more_is_not_gone_on_with(second: SecondProcess) -> None:
    ready(second)
    process = second._process
    assert process is not None
    begun(second.measure(LARGE))
    idle: list[float] = []

    def is_idle() -> bool:
        while second._look(0.05):  # or else it would be idle for want of somebody who hears it
            pass
        stat = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        idle.append(float(stat[11]) + float(stat[12]))
        return len(idle) > 4 and len({*idle[-4:]}) == 1

    wait_for(is_idle)
    assert second.there


def test_after_it_was_suspended_it_is_still_there(second: SecondProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    ready(second)
    monkeypatch.setattr(second_process, "_SILENCE", 5.0)
    said = second.measure(at(9))
    assert next(said) is None
    real = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: real() + 3600)
    assert numbers(last(said)) == numbers(run(at(9)))
    assert second.there
