"""The app's end of the connection to the engine: what waits for room, arrives in parts, or is not taken."""

import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection as Blocking
from socket import socketpair
from typing import NamedTuple
from unittest.mock import Mock

import pytest
from attn_tui.core.questions.request import Request
from attn_tui.tui.compute import connection as module
from attn_tui.tui.compute.connection import Connection
from attn_tui.tui.compute.engine import Reply, Submission


@dataclass(frozen=True)
class Count(Request):
    """A request of one kind."""


@dataclass(frozen=True)
class Name(Request):
    """A request of another kind."""

    name: str = ""


class Ends(NamedTuple):
    """Both ends of a connection."""

    app: Connection
    engine: Blocking

    def send(self, *submissions: Submission) -> None:
        for submission in submissions:
            self.app.put(submission)
            self.app.flush()

    def fill(self) -> int:
        """Send until there is no room; return the number of the last request, part of which is sent or waits."""
        number = 0
        while not self.app.is_full:
            number += 1
            self.send(count(number))
        return number

    def taken(self, number: int) -> list[Submission]:
        """Return the next so many submissions, which the engine takes while the app sends them."""
        with ThreadPoolExecutor() as pool:
            found = pool.submit(lambda: [self.engine.recv() for _ in range(number)])
            while not found.done():
                self.app.flush()
        return found.result()


@pytest.fixture
def ends() -> Iterator[Ends]:
    ours, theirs = socketpair()
    with Blocking(theirs.detach()) as engine:
        app = Connection(ours)
        yield Ends(app, engine)
        app.close()


def count(number: int) -> Submission:
    return Submission(number, Count, Count())


def test_everything_is_sent_in_order_while_there_is_room(ends: Ends) -> None:
    sent = [count(1), Submission(2, Name, Name("x")), Submission(1, Count, None), count(3)]
    ends.send(*sent)
    assert ends.taken(len(sent)) == sent


def test_without_room_only_the_latest_of_each_kind_wait_and_what_they_replace_is_returned(ends: Ends) -> None:
    last = ends.fill()
    name, end = Submission(last + 2, Name, Name("x" * 1_000_000)), Submission(last + 3, Count, None)
    given = [count(last + 1), name, count(last + 3), end, count(last + 4)]
    assert [ends.app.put(each) for each in given] == [None, None, given[0], given[2], end]
    expected = [*map(count, range(1, last + 1)), name, given[-1]]
    assert ends.taken(len(expected)) == expected
    assert not ends.app.is_full


def test_a_message_that_arrives_in_parts_is_received_when_it_is_whole(ends: Ends) -> None:
    messages = [[Reply(1, "x" * 100_000)], [Reply(2, None)]]
    pickled = [*map(pickle.dumps, messages)]
    sent = b"".join(len(data).to_bytes(4, "big") + data for data in pickled)
    end = 4 + len(pickled[0])
    with open(ends.engine.fileno(), "wb", 0, closefd=False) as stream:
        for part, expected in ((sent[:3], None), (sent[3 : end - 1], None), (sent[end - 1 :], messages[0])):
            stream.write(part)
            assert ends.app.receive() == expected
    assert [ends.app.receive(), ends.app.receive()] == [messages[1], None]


@pytest.mark.parametrize("part", [b"", b"\0\0\1\0half"], ids=["between messages", "in a message"])
def test_the_end_of_the_engine_is_an_error(part: bytes, ends: Ends) -> None:
    with open(ends.engine.fileno(), "wb", 0, closefd=False) as stream:
        stream.write(part)
    ends.engine.close()
    with pytest.raises(EOFError):
        ends.app.receive()
    with pytest.raises(OSError, match="Broken pipe"):
        ends.send(count(1))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system does not say what is unread")
def test_a_request_that_is_not_taken_is_noticed_until_something_is(ends: Ends) -> None:
    ends.send(count(1), count(2))
    assert [ends.app.count_ignored() for _ in range(3)] == [1, 2, 3]
    ends.send(count(3))
    assert ends.app.count_ignored() == 4
    ends.engine.send([Reply(1, None)])
    assert not ends.app.has_reply
    assert ends.app.receive() == [Reply(1, None)]
    assert ends.app.has_reply
    assert [ends.app.count_ignored() for _ in range(2)] == [1, 2], "it has replied since"
    ends.engine.recv()
    ends.send(*map(count, range(4, 9)))
    assert ends.app.count_ignored() == 1, "it has taken one since, although more are unread than before"
    ends.engine.send([Reply(1, None)])
    ends.app.receive()
    assert ends.app.count_ignored() == 1, "it has replied"
    ends.taken(7)
    assert [ends.app.count_ignored() for _ in range(3)] == [0, 0, 0]


def test_a_full_connection_is_noticed_where_the_system_does_not_say_what_is_unread(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ioctl", Mock(side_effect=OSError))
    ends.send(count(1))
    assert ends.app.count_ignored() == 0
    ends.fill()
    assert [ends.app.count_ignored() for _ in range(3)] == [1, 2, 3]
    while ends.app.is_full:
        ends.taken(1)
    ends.fill()
    assert ends.app.count_ignored() == 1, "it has made room since"
    while ends.app.is_full:
        ends.taken(1)
    assert ends.app.count_ignored() == 0
