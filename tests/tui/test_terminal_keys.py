"""Keys as terminals send them: in bursts, in pieces, by kitty's protocol, and with broken text between them."""

import re

import pytest
from attn_tui.tui.panes.lab.help import ABOUT
from terminal_session import RIGHT, opened

pytestmark = pytest.mark.slow


def test_a_burst_of_200_keys_ends_on_the_right_number() -> None:
    with opened() as session:
        session.send(RIGHT * 200)
        session.shows(264)


def test_keys_that_arrive_in_pieces_all_count() -> None:
    with opened() as session:
        for number in range(60):
            session.send(RIGHT * (1 + number % 3))
            session.read(0.001 * (number % 7))
        session.shows(64 + 120)


def test_keys_in_kitty_s_protocol_are_the_same_keys() -> None:
    with opened() as session:
        [flags] = re.findall(rb"\x1b\[>([0-9]+)u", session.written)
        texts = int(flags) & 16  # letters come with their code and text too; otherwise as letters
        ell, mark, q = (b"\x1b[108;1;108u", b"\x1b[63;2;63u", b"\x1b[113;1;113u") if texts else (b"l", b"?", b"q")
        for number, key in enumerate([b"\x1b[C", b"\x1b[1;1C", ell], start=65):
            session.send(key)
            session.shows(number)
        for key, words in ((b"\x1b[112;5u", "Search for commands"), (mark, ABOUT[0][:30])):
            session.send(key)  # Ctrl+P, and ?
            session.sees(words)
            session.send(b"\x1b[27u")
            session.until(lambda words=words: words not in session.text, "Escape")
        session.quit(q)


def test_bytes_that_are_not_text_are_ignored() -> None:
    with opened() as session:
        session.send(b"\xff\xfe\xc3(\x80")
        session.quiet()
        session.send(RIGHT)
        session.shows(65)
