"""The process that measures first while the app is still being loaded: what it says, and what happens without it."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from attn_tui.core.lab import curves
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.measurement import Measurement
from attn_tui.tui import head_start, work
from attn_tui.tui.head_start import HeadStart
from attn_tui.tui.messages import MeasurementReady

SMALL = Parameters(d_k=8, n_keys=16, n_queries=8, batch=3)
LARGE = Parameters(d_k=512, n_keys=4096, n_queries=4096)
FOREVER = 60.0  # seconds until a test gives up


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeadStart]:
    """A head start, wherever tests run, that is waited for however long it takes."""
    monkeypatch.setattr(head_start, "_side_by_side", lambda: True)
    monkeypatch.setattr(head_start, "_PATIENCE", 1e6)
    started = HeadStart()
    yield started
    started.close()


def last(answers: Iterator[Any]) -> Any:
    """What there is when nothing more is awaited."""
    found, end = None, time.monotonic() + FOREVER
    for answer in answers:
        found = answer
        assert time.monotonic() < end, "the answer never came"
    return found


def numbers(measurement: Measurement[Any]) -> list[dict[str, object]]:
    return [dict(column.measured) for column in measurement.columns]


def test_it_measures_what_this_process_would(ahead: HeadStart) -> None:
    ahead.ask(SMALL)
    found, own = last(ahead.measurement(SMALL)), run(SMALL)
    assert found.subject == SMALL
    assert numbers(found) == numbers(own)
    for one, other in zip(found.columns, own.columns, strict=True):
        assert one.histograms.keys() == other.histograms.keys()
        for name, histogram in one.histograms.items():
            assert np.array_equal(histogram.counts, other.histograms[name].counts)


def test_its_numbers_come_without_histograms_which_would_need_numpy(ahead: HeadStart) -> None:
    ahead.ask(SMALL)
    own = last(ahead.measurement(SMALL))
    early = ahead.numbers(SMALL)
    assert early is not None
    assert numbers(early) == numbers(own)
    assert not any(column.histograms for column in early.columns)


def test_its_curves_are_those_that_this_process_would_compute(ahead: HeadStart) -> None:
    ahead.ask(SMALL)
    made, own = last(ahead.curves(SMALL)), curves.prepared(SMALL.n_keys, SMALL.mask)
    assert made.keys() == own.keys()
    for name, coefficients in made.items():
        assert np.array_equal(coefficients, own[name])


def test_another_question_gets_no_measurement_and_the_curves_where_its_rows_are_the_same(ahead: HeadStart) -> None:
    ahead.ask(SMALL)
    wider, longer = SMALL.with_value("d_k", 9), SMALL.with_value("n_keys", 17)
    assert list(ahead.measurement(wider)) == []
    assert ahead.numbers(wider) is None
    assert list(ahead.curves(longer)) == []
    assert last(ahead.curves(wider)).keys() == {SMALL.n_keys}


def test_a_question_that_takes_long_is_not_asked(ahead: HeadStart) -> None:
    ahead.ask(LARGE)
    assert list(ahead.measurement(LARGE)) == []
    assert ahead.numbers(LARGE) is None


@pytest.mark.parametrize(
    "program", ["", "raise SystemExit(3)", "import sys; sys.stdin.buffer.read(); print('nonsense')"]
)
def test_where_the_process_fails_there_is_no_answer(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_start, "_side_by_side", lambda: True)
    monkeypatch.setattr(head_start, "_PROGRAM", program)
    ahead = HeadStart()
    ahead.ask(SMALL)
    assert last(ahead.measurement(SMALL)) is None
    assert ahead.numbers(SMALL) is None


def test_a_process_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_start, "_side_by_side", lambda: True)
    monkeypatch.setattr(head_start, "_PROGRAM", "import time; time.sleep(1000)")
    ahead = HeadStart()
    ahead.ask(SMALL)
    process = ahead._process
    assert process is not None
    assert last(ahead.measurement(SMALL)) is None
    assert process.poll() is not None


def test_without_a_second_processor_there_is_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_start, "_side_by_side", lambda: False)
    ahead = HeadStart()
    ahead.ask(SMALL)
    assert ahead._process is None
    assert list(ahead.measurement(SMALL)) == []


def test_where_no_process_may_be_started_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError

    monkeypatch.setattr(head_start, "_side_by_side", lambda: True)
    monkeypatch.setattr("subprocess.Popen", refuse)
    ahead = HeadStart()
    ahead.ask(SMALL)
    assert list(ahead.measurement(SMALL)) == []


def test_it_can_be_ended_while_its_answer_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_start, "_side_by_side", lambda: True)
    monkeypatch.setattr(head_start, "_PATIENCE", 1e6)
    monkeypatch.setattr(head_start, "_PROGRAM", "import time; time.sleep(1000)")
    ahead = HeadStart()
    ahead.ask(SMALL)
    process, found = ahead._process, list[Any]()
    waiting = threading.Thread(target=lambda: found.append(last(ahead.measurement(SMALL))))
    waiting.start()
    ahead.close()
    waiting.join(FOREVER)
    assert found == [None]
    assert process is not None
    assert process.poll() is not None


def test_the_lab_takes_over_what_was_measured_ahead_and_goes_on_alone(ahead: HeadStart) -> None:
    ahead.ask(SMALL)
    lab = work.Lab(ahead)
    [first] = [each for each in lab.measure(SMALL) if isinstance(each, MeasurementReady)]
    assert numbers(first.measurement) == numbers(run(SMALL))
    assert first.theory is None
    [second] = [each for each in lab.predict(first.measurement) if isinstance(each, MeasurementReady)]
    assert second.theory is not None
    wider = SMALL.with_value("d_k", 9)
    [third] = [each for each in lab.measure(wider) if isinstance(each, MeasurementReady)]
    assert numbers(third.measurement) == numbers(run(wider))
    assert third.theory is not None
