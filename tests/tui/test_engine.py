"""The engine: which requests are sent, who receives which answer, and which answers are cached."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from attn_tui.core.errors import InputError
from attn_tui.core.parameters import Parameters
from attn_tui.core.questions.lab import Measure, Report
from attn_tui.core.questions.request import Crashed, Failed, Priority, Progress, Request
from attn_tui.tui.compute import engine as module
from attn_tui.tui.compute import process
from attn_tui.tui.compute.engine import Engine, Notification, Receiver, Reply, Submission
from attn_tui.tui.compute.measure import Prefetch
from stage import SMALL

TINY = replace(SMALL, d_k=4, n_keys=4, n_queries=2)


@dataclass(frozen=True)
class Count(Request):
    """A request of one kind."""

    PRIORITY: ClassVar[Priority] = Priority.KEYPRESS
    number: int


@dataclass(frozen=True)
class Name(Request):
    """A less urgent request of another kind."""

    name: str = ""


class Outbox(Engine):
    """Records submissions. Replies come from the test, or from `on_send`."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Submission] = []
        self.on_send: Callable[[Submission], object] = lambda _: None

    def send(self, submission: Submission) -> None:
        self.sent.append(submission)
        self.on_send(submission)

    def reply(self, *contents: object, to: int = -1) -> None:
        """Reply to submission `to`, by default the last one."""
        for content in contents:
            self.deliver(Reply(self.sent[to].number, content))

    @property
    def requests(self) -> list[Request | None]:
        """The requests submitted, in order; None for a withdrawal."""
        return [submission.request for submission in self.sent]


Found = list[tuple[Request, object]]


def into(found: Found) -> Receiver:
    """Return a receiver that appends to a list."""
    return lambda request, answer: found.append((request, answer))


ENDING = """
import os
from multiprocessing.connection import Connection
Connection({{}}).recv()
{end}
"""


@pytest.mark.parametrize(("end", "how"), [("os._exit(7)", "exit code 7"), ("os.kill(os.getpid(), 9)", "signal 9")])
def test_a_request_is_sent_to_a_second_process_but_not_to_a_third(
    end: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "PROGRAM", ENDING.format(end=end))
    monkeypatch.setattr(process, "_EXIT_TIMEOUT", 9.0)  # so that a busy machine, too, tells how it ended
    engine, notes = process.ProcessEngine(), list[Notification]()
    engine.notify = notes.append
    with pytest.raises(InputError, match=how):
        engine.fetch(Measure(SMALL))
    assert [how in str(note) for note in notes] == [True, True]
    engine.close()
    engine.ask(Measure(SMALL))
    assert engine.pid is None


@pytest.fixture
def engine() -> Outbox:
    return Outbox()


def answer(parameters: Parameters) -> Report:
    """Return the complete measurement."""
    return Measure(parameters).answer()


def at(d_k: int) -> Parameters:
    return replace(TINY, d_k=d_k)


def test_a_pending_request_is_not_sent_again_and_all_receivers_get_the_answers(engine: Outbox) -> None:
    early, late = Found(), Found()
    to_early = into(early)
    engine.ask(Count(1), to_early)
    engine.reply("a")
    engine.ask(Count(1), into(late))
    engine.ask(Count(1), to_early)
    engine.ask(Count(1))
    engine.reply("b")
    assert engine.requests == [Count(1)]
    assert early == [(Count(1), "a"), (Count(1), "b")]
    assert late == [(Count(1), "b")]


def test_a_request_is_sent_again_after_its_last_answer_or_another_of_its_kind(engine: Outbox) -> None:
    engine.ask(Count(1))
    engine.reply("a", None)
    engine.ask(Count(1))
    assert engine.requests == [Count(1), Count(1)]
    assert engine.sent[0].number != engine.sent[1].number
    engine = Outbox()
    for number in (1, 2, 1):
        engine.ask(Count(number))
    assert engine.requests == [Count(1), Count(2), Count(1)]


def test_each_answer_is_received_with_its_request(engine: Outbox) -> None:
    found = Found()
    for request in (Count(1), Name("x"), Count(2)):
        engine.ask(request, into(found))
    engine.reply("late", None, to=0)
    engine.reply("named", to=1)
    engine.reply("new", to=2)
    assert found == [(Count(1), "late"), (Name("x"), "named"), (Count(2), "new")]


def test_the_end_of_a_request_that_was_replaced_is_not_that_of_the_newer_one(engine: Outbox) -> None:
    engine.ask(Count(1))
    engine.ask(Count(2))
    engine.reply(None, to=0)
    engine.ask(Count(2))
    assert engine.requests == [Count(1), Count(2)]


def test_silence_is_progress_until_there_is_an_answer(engine: Outbox) -> None:
    found = Found()
    engine.ask(Count(1), into(found))
    for _ in range(2):
        engine.report_silence()
    assert found == [(Count(1), Progress(0.0))]


def test_replies_to_requests_that_are_not_pending_are_ignored(engine: Outbox) -> None:
    found = Found()
    engine.ask(Count(1), into(found))
    engine.reply(None, "too late", None)
    engine.deliver(Reply(1000, "unknown"))
    assert found == []


def test_a_withdrawn_request_is_sent_as_none_and_can_be_asked_again(engine: Outbox) -> None:
    engine.withdraw(Count)
    assert engine.sent == []
    engine.ask(Count(1))
    engine.withdraw(Count)
    engine.withdraw(Count)
    engine.ask(Count(1))
    assert engine.requests == [Count(1), None, Count(1)]
    assert engine.sent[1][:2] == engine.sent[0][:2]


# The cache


def partial(answer: Report) -> Report:
    """Return the answer as it was before the last draw."""
    return replace(answer, measurement=replace(answer.measurement, draws=answer.measurement.draws - 1))


@pytest.mark.parametrize("kind", [Measure, Prefetch])
@pytest.mark.parametrize(
    "content",
    [partial(answer(at(5))), Progress(0.9), Failed("no memory"), Crashed("error", "report")],
)
def test_a_request_that_ends_without_a_complete_answer_is_not_cached(
    content: object, kind: type[Measure], engine: Outbox
) -> None:
    engine.ask(kind(at(5)))
    engine.reply(content, None)
    assert engine.cached(at(5)) is None
    engine.ask(kind(at(5)))
    assert engine.requests == [kind(at(5))] * 2


def test_a_complete_measurement_is_cached_whether_requested_or_prefetched(engine: Outbox) -> None:
    for request in (Measure(at(5)), Prefetch(at(6))):
        found = answer(request.parameters)
        engine.ask(request)
        engine.reply(found)
        assert engine.cached(request.parameters) is found
    assert engine.cached(at(7)) is None


def test_only_the_last_measurements_are_cached(engine: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHED", 2)
    for d_k in (5, 6, 5, 7):
        engine.ask(Measure(at(d_k)))
        engine.reply(answer(at(d_k)), None)
    assert [d_k for d_k in (5, 6, 7) if engine.cached(at(d_k))] == [5, 7]


def test_a_measurement_is_prefetched_once(engine: Outbox) -> None:
    engine.ask(Measure(at(5)))
    for d_k in (5, 6, 6):
        engine.prefetch(Measure(at(d_k)))
    assert engine.requests == [Measure(at(5)), Prefetch(at(6))]
    engine.reply(answer(at(6)), None)
    engine.prefetch(Measure(at(6)))
    assert len(engine.sent) == 2, "it is cached"


def test_a_prefetched_measurement_answers_a_request_made_in_the_meantime(engine: Outbox) -> None:
    found = Found()
    engine.prefetch(Measure(at(6)))
    engine.ask(Measure(at(6)), into(found))
    measured = answer(at(6))
    engine.reply(measured, to=0)
    assert found == [(Measure(at(6)), measured)]
    assert engine.requests[-1] is None, "it is not measured again"


def test_a_prefetch_that_failed_or_was_not_requested_reaches_no_receiver(engine: Outbox) -> None:
    found = Found()
    engine.prefetch(Measure(at(6)))
    engine.ask(Measure(at(5)), into(found))
    engine.reply(answer(at(6)), Failed("no memory"), to=0)
    assert found == []


# When the process ends


def test_only_the_latest_requests_are_sent_again(engine: Outbox) -> None:
    found = Found()
    for request in (Count(1), Count(2), Name("x")):
        engine.ask(request, into(found))
    engine.withdraw(Name)
    before = len(engine.sent)
    engine.resend("lost")
    assert engine.requests[before:] == [Count(2)]
    for place in range(before):
        engine.reply("from before", to=place)
    engine.reply("after", None)
    assert found == [(Count(2), "after")]


def test_the_most_urgent_request_fails_when_it_is_lost_twice_and_others_are_sent_again(engine: Outbox) -> None:
    found = Found()
    engine.ask(Name("x"), into(found))
    engine.ask(Count(1), into(found))
    engine.resend("lost")
    assert found == []
    engine.resend("lost")
    assert found == [(Count(1), Failed("lost"))]
    for _ in range(2):
        assert engine.sent[-1].request == Name("x")
        engine.resend("lost")
    assert found == [(Count(1), Failed("lost")), (Name("x"), Failed("lost"))]
    before = len(engine.sent)
    engine.resend("lost")
    assert len(engine.sent) == before


def test_a_request_that_failed_can_be_sent_again(engine: Outbox) -> None:
    found = Found()
    engine.ask(Count(1), into(found))
    for _ in range(2):
        engine.resend("lost")
    engine.ask(Count(1), into(found))
    engine.reply("found")
    assert found == [(Count(1), Failed("lost")), (Count(1), "found")]


def test_requests_that_are_lost_on_sending_fail_once_each(engine: Outbox) -> None:
    found = Found()
    engine.on_send = lambda _: engine.resend("lost")
    engine.ask(Count(1), into(found))
    engine.ask(Name("x"), into(found))
    assert found == [(Count(1), Failed("lost")), (Name("x"), Failed("lost"))]


def test_fail_all_fails_each_pending_request_once(engine: Outbox) -> None:
    found = Found()
    for request in (Count(1), Count(2), Name("x")):
        engine.ask(request, into(found))
    engine.fail_all("no process")
    engine.fail_all("no process")
    assert found == [(Count(2), Failed("no process")), (Name("x"), Failed("no process"))]
