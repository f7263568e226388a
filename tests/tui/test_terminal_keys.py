"""Keys as terminals send them: in bursts, in pieces, by kitty's protocol, and with broken text between them."""

import re

from attn_tui.tui.panes.help import ABOUT
from terminal_session import RIGHT, Session


def test_a_burst_of_200_keys_ends_on_the_right_number(session: Session) -> None:
    session.send(RIGHT * 200)
    session.shows(264)


def test_keys_that_arrive_in_pieces_all_count(session: Session) -> None:
    for number in range(60):
        session.send(RIGHT * (1 + number % 3))
        session.read(0.001 * (number % 7))
    session.shows(64 + 120)


def test_keys_in_kitty_s_protocol_are_the_same_keys(session: Session) -> None:
    flags, *_ = re.findall(rb"\x1b\[>([0-9]+)u", session.written)
    texts = int(flags) & 16  # letters come with their code and text too; otherwise as letters
    ell, mark = (b"\x1b[108;1;108u", b"\x1b[63;2;63u") if texts else (b"l", b"?")
    for number, key in enumerate([b"\x1b[C", b"\x1b[1;1C", ell], start=65):
        session.send(key)
        session.shows(number)
    for key, words in ((b"\x1b[112;5u", "Search for commands"), (mark, ABOUT["Lab"][0][:30])):
        session.send(key)  # Ctrl+P, and ?
        session.sees(words)
        session.send(b"\x1b[27u")
        session.until(lambda words=words: words not in session.text, "Escape")


# What once ended or saturated the app.
KILLERS = [
    *(b"\x1b[97:65;5u", b"\x1b[97;5:3u", b"\x1b[1114112u", b"\x1b[55296;1;55296u", b"\x1b[<0;99999;99999M"),
    *(b"\x1b]11;rgb:1010/1313/1919\x1b\\", b"\x1b[?62;1;6c", b"\x1b[1;1:3R", b"\x1b[<64;200;9M"),
    b"\xff\xfe\xc3(\x80",
]


def test_a_key_after_a_sequence_that_nothing_understands_has_its_effect(session: Session) -> None:
    for sequence in KILLERS:
        session.send(sequence + RIGHT)
    session.shows(64 + len(KILLERS))
    for sequence in KILLERS:
        session.send(sequence)
        session.read(0.01)
        session.send(RIGHT)
    session.shows(64 + 2 * len(KILLERS))
