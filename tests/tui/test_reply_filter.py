"""The terminal's replies are separated from keys."""

import pytest
from attn_tui.tui.terminal.driver import ReplyFilter
from hypothesis import given
from hypothesis import strategies as st

KEYS = [
    "a",
    "é",
    "词",
    "0",
    "\x1b[C",
    "\x1b[1;2R",
    "\x1b[1;16R",
    "\x1b[1;5C",
    "\x1bOP",
    "\x1b\x1b[D",
    "\x1b[<35;1;1M",
]
REPLIES = ["\x1b[1;1R", "\x1b[40;120R", "\x1b[2;2R", "\x1b[1;17R"]


@given(st.lists(st.sampled_from([*KEYS, *REPLIES])), st.lists(st.integers(1, 9)))
def test_replies_are_found_however_they_are_split(parts: list[str], cuts: list[int]) -> None:
    data, replies, typed, count = "".join(parts).encode(), ReplyFilter(), "", 0
    for cut in [*cuts, len(data)]:
        more, found = replies.feed(data[:cut], expecting=True)
        data, typed, count = data[cut:], typed + more, count + found
    assert typed == "".join(part for part in parts if part in KEYS)
    assert count == sum(part in REPLIES for part in parts)


@pytest.mark.parametrize("typed", ["\x1b", "\x1b["])
def test_held_text_that_can_be_a_key_is_returned_once(typed: str) -> None:
    replies = ReplyFilter()
    assert replies.feed(typed.encode(), expecting=True) == ("", 0)
    assert replies.flush() == typed
    assert replies.flush() == ""


def test_the_start_of_a_reply_stays_held() -> None:
    replies = ReplyFilter()
    assert replies.feed(b"\x1b[1;", expecting=True) == ("", 0)
    assert replies.flush() == ""
    assert replies.feed(b"1R", expecting=True) == ("", 1)


@pytest.mark.parametrize("typed", ["\x1b", "\x1b[1;"])
def test_nothing_is_held_when_no_reply_is_expected(typed: str) -> None:
    assert ReplyFilter().feed(typed.encode(), expecting=False) == (typed, 0)


def test_invalid_utf8_is_replaced() -> None:
    assert ReplyFilter().feed(b"a\xff\xc3(b", expecting=False) == ("a\ufffd\ufffd(b", 0)
