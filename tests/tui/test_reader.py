"""Bytes from a terminal become messages: however they are split, whatever they contain."""

import pytest
from attn_tui.tui.terminal.reader import Background, Reader
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.message import Message

KEYS = {
    "a": "a",
    "é": "é",
    "词": "词",
    "0": "0",
    "\x1b[C": "right",
    "\x1b[1;5C": "ctrl+right",
    "\x1bOP": "f1",
    "\x1b[[A": "f1",
    "\x1b[7$": "shift+home",
    "\x1b[97;5u": "ctrl+a",
    "\x1b[27u": "escape",
    "\r": "enter",
}
REPLIES = ["\x1b[1;1R", "\x1b[40;120R", "\x1b[2;2R", "\x1b[1;17R"]
DROPPED = [
    "\x1b[97:65;5u",  # kitty's other keys of a key
    "\x1b[97;5:3u",  # a released key
    "\x1b[1114112u",  # beyond Unicode
    "\x1b[99999999999999999999u",
    f"\x1b[{'1' * 40}u",
    f"\x1b[<0;{'9' * 40};1M",
    "\x1b[?62;1;6c",  # replies that nothing has asked for
    "\x1b[>1;10;0c",
    "\x1b[?997;1n",
    "\x1b[8;40;120t",
    "\x1b]10;rgb:1010/1313/1919\x1b\\",
    "\x1b]11;rgb:1010/1313\x1b\\",
    "\x1b]52;c;cXF1aXQ=\x07",
    "\x1bP>|xterm(370)\x1b\\",
    "\x1b_Gi=1;OK\x1b\\",
    "\x1b[M !!",
    "\x1b[<0;-5;3M",
]


def read(reader: Reader, data: bytes) -> list[Message]:
    return reader.feed(data)[0]


def names(messages: list[Message]) -> list[str]:
    """Return the names of keys; every message must be a key."""
    assert all(isinstance(message, events.Key) for message in messages), messages
    return [message.key for message in messages if isinstance(message, events.Key)]


@for_each(
    ("colour", "light"),
    [
        ("rgb:fbfb/fafa/f7f7\x1b\\", True), ("rgb:1010/1313/1919\x07", False), ("rgba:f/f/f/f\x07", True),
        ("rgb:80/80/80\x07", True), ("rgb:7f/7f/7f\x07", False), ("rgb:f/0/f\x07", False), ("rgb:0/f/0\x07", True),
    ],
)  # fmt: skip
def test_the_reply_on_the_background_says_whether_it_is_light_and_no_key_is_lost(colour: str, light: bool) -> None:
    before, reply, after = read(Reader(), f"x\x1b]11;{colour}\x1b[C".encode())
    assert isinstance(reply, Background)
    assert reply.light is light
    assert names([before, after]) == ["x", "right"]


@given(st.lists(st.sampled_from([*KEYS, *REPLIES, *DROPPED])), st.lists(st.integers(1, 9)))
def test_keys_and_replies_are_read_and_the_rest_is_dropped_however_they_are_split(
    parts: list[str], cuts: list[int]
) -> None:
    data, reader = "".join(parts).encode(), Reader()
    messages: list[Message] = []
    count = 0
    for cut in [*cuts, len(data)]:
        more, replies = reader.feed(data[:cut])
        data, messages, count = data[cut:], messages + more, count + replies
    assert names(messages) == [KEYS[part] for part in parts if part in KEYS]
    assert count == sum(part in REPLIES for part in parts)
    assert reader.wait is None


@for_each("sequence", DROPPED)
def test_a_sequence_that_is_not_understood_is_dropped_and_the_next_key_works(sequence: str) -> None:
    assert names(read(Reader(), f"{sequence}x\x1b[C".encode())) == ["x", "right"]


@pytest.mark.parametrize(
    ("typed", "key"), [("\x1b", "escape"), ("\x1b[", "left_square_bracket"), ("\x1bx", "alt+x"), ("\x1b]", None)]
)
def test_escape_and_alt_are_keys_if_nothing_follows(typed: str, key: str | None) -> None:
    reader = Reader()
    messages = read(reader, typed.encode())
    if reader.wait is not None:
        messages += reader.pause()
    assert names(messages) == [key or "right_square_bracket"]
    assert reader.wait is None
    assert reader.pause() == []


@pytest.mark.parametrize("key", ["\x1b[1;2R", "\x1b[1;16R"])
def test_f3_with_modifiers_is_no_reply(key: str) -> None:
    assert Reader().feed(key.encode())[1] == 0


def test_escape_before_another_sequence_is_a_key_and_invalid_utf8_is_replaced() -> None:
    assert names(read(Reader(), b"\x1b\x1b[D")) == ["escape", "left"]
    keys = read(Reader(), b"a\xff\xc3(b")
    assert [key.character for key in keys if isinstance(key, events.Key)] == ["a", "\ufffd", "\ufffd", "(", "b"]


@for_each("start", ["\x1b[1", "\x1b[<0;5", "\x1b]52;c;", "\x1bPq#0", "\x1b_G", "\x1b[M!", "\x1b[" + "9" * 5000])
def test_the_start_of_a_sequence_is_dropped_if_its_rest_does_not_come(start: str) -> None:
    reader = Reader()
    assert read(reader, start.encode()) == []
    assert reader.wait == 2
    assert reader.pause() == []
    assert reader.wait is None
    assert names(read(reader, b"qx")) == ["q", "x"]


@for_each("start", ["\x1b[1;", "\x1b]52;c;text", "\x1bP"])
@for_each("after", ["\x1b[C", "\r"])
def test_escape_or_enter_cuts_a_sequence_short(start: str, after: str) -> None:
    messages = read(Reader(), (start + after).encode())
    assert names(messages)[-1] == KEYS[after]


@pytest.mark.parametrize("chunk", [1, 3, 7, 4096])
def test_a_paste_is_one_message_however_it_is_split(chunk: int) -> None:
    text = "one\tline\n\x1b[48;1;1;1;1t\x07two \x00词 "
    data = f"\x1b[200~{text}\x1b[201~x".encode()
    reader = Reader()
    messages = [m for at in range(0, len(data), chunk) for m in read(reader, data[at : at + chunk])]
    (paste, key) = messages
    assert isinstance(paste, events.Paste)
    assert paste.text == "one\tline\n[48;1;1;1;1ttwo 词 "
    assert names([key]) == ["x"]


def test_a_paste_without_its_end_ends_after_a_pause() -> None:
    reader = Reader()
    assert read(reader, b"\x1b[200~some text") == []
    assert reader.wait is not None
    (paste,) = reader.pause()
    assert isinstance(paste, events.Paste)
    assert paste.text == "some text"
    assert names(read(reader, b"q")) == ["q"]


@for_each("start", ["\x1b[200~", "\x1b]52;c;", "\x1bP", "\x1b[", "\x1b[1;", "\x1b[48;"])
def test_what_is_held_is_bounded(start: str) -> None:
    reader = Reader()
    read(reader, start.encode())
    for _ in range(200):
        read(reader, b"1" * 4096)
        held = [value for value in vars(reader).values() if isinstance(value, str)]
        assert sum(map(len, held)) < 1 << 17


def test_the_end_of_a_paste_that_is_too_long_is_found() -> None:
    reader = Reader()
    data = b"\x1b[200~" + b"a" * 500_000 + b"\x1b[201~x"
    messages = [m for at in range(0, len(data), 4096) for m in read(reader, data[at : at + 4096])]
    (paste, key) = messages
    assert isinstance(paste, events.Paste)
    assert {*paste.text} == {"a"}
    assert len(paste.text) == 1 << 16
    assert names([key]) == ["x"]


@pytest.mark.parametrize("cut", range(1, 6))
def test_the_end_of_a_paste_that_is_too_long_may_come_in_two_reads(cut: int) -> None:
    reader, end = Reader(), b"\x1b[201~"
    assert read(reader, b"\x1b[200~" + b"a" * 100_000 + end[:cut]) == []
    (paste, key) = read(reader, end[cut:] + b"x")
    assert isinstance(paste, events.Paste)
    assert paste.text == "a" * (1 << 16)
    assert names([key]) == ["x"]


def test_mouse_reports_keep_their_unit_after_a_dropped_sequence() -> None:
    """The size in pixels, by which reports are divided, outlives the parser that a sequence has ended."""
    reader = Reader()
    read(reader, b"\x1b[48;40;120;800;1200t")
    before = read(reader, b"\x1b[<0;601;401M")
    read(reader, b"\x1b[1114112u\x1bx\x1b[?1c")
    for report in (before, read(reader, b"\x1b[<0;601;401M")):
        (mouse,) = report
        assert isinstance(mouse, events.MouseDown)
        assert (mouse.x, mouse.y) == (60, 20)


def test_a_size_of_nothing_does_not_stop_the_mouse_for_ever() -> None:
    reader = Reader()
    read(reader, b"\x1b[48;0;0;0;0t\x1b[<0;1;1M")
    read(reader, b"\x1b[48;40;120;800;1200t")
    assert len(read(reader, b"\x1b[<0;601;401M")) == 1
