"""The output to a terminal and the keys from it: little, in order, and only what the terminal has."""

import re

import pytest
from attn_tui.tui.panes.catalogue import PANES
from digits import shows_number
from terminal_session import LEFT, RIGHT, Session, opened, running

slow = pytest.mark.slow

STEP = 2_400  # bytes of a step of d_k, at most


def test_idle_it_writes_nothing(session: Session) -> None:
    assert session.read(0.5) == b""


def test_a_step_of_d_k_writes_little(session: Session) -> None:
    before = len(session.written)
    for d_k in range(65, 75):
        session.send(RIGHT)
        session.shows(d_k).quiet()
    assert len(session.written) - before < 10 * STEP


def test_a_key_that_changes_nothing_writes_almost_nothing(session: Session) -> None:
    session.send(b"1\r")
    session.shows(1).quiet()
    session.send(LEFT)
    assert len(session.quiet()) < 100


@slow
@pytest.mark.parametrize("way", ["--ascii", "LANG=C"])
def test_only_ascii_is_written_with_ascii_and_in_the_c_locale(way: str) -> None:
    words, env = [way], dict[str, str]()
    if way == "LANG=C":
        words, env = [], {"LANG": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    with opened(*words, **env) as session:
        for keys, shown in ((b"?", "help: Lab"), (b"\x10", "filter:")):
            session.send(keys)
            session.sees(shown)
            session.send(b"\x1b")
            session.until(lambda shown=shown: shown not in session.text, "Escape")
        session.send(b">>V")
        session.sees("entropy over d_k")
        session.quit()
        assert session.written.isascii()


@slow
@pytest.mark.parametrize(
    ("term", "theme"), [("xterm-256color", "attn-dark"), ("linux", "attn-light"), ("xterm-256color", "ansi-dark")]
)
def test_no_color_leaves_only_shades_of_grey_and_none_of_the_terminal_s_own(term: str, theme: str) -> None:
    named = {"TERM": term, "COLORTERM": "truecolor" if theme == "attn-dark" else ""}
    with opened("--no-config", "--theme", theme, size=(80, 24), NO_COLOR="1", **named) as session:
        for keys, shown in ((b"v\x1b[Z", ""), (b"e", "SVG")):
            session.send(keys)
            session.sees(shown)
            session.quiet()
            colours = {colour for pen in session.screen.pens for colour in pen[:2]}
            if theme == "attn-dark":
                assert all(not colour or len({*colour.removeprefix("2;").split(";")}) == 1 for colour in colours)
            else:
                assert colours == {""}
        assert any("7" in attributes for _, _, attributes in session.screen.pens), "the cursor is invisible"


@slow
@pytest.mark.parametrize(
    ("term", "theme"),
    [
        ("xterm", "attn-dark"),
        ("xterm-256color", "attn-light"),
        ("tmux-256color", "attn-dark"),
        ("linux", "attn-light"),
    ],
)
def test_in_every_terminal_keys_work_and_only_its_colours_are_sent(term: str, theme: str) -> None:
    with opened("--no-config", "--theme", theme, size=(80, 24), TERM=term, COLORTERM="") as session:
        session.send(b"l")
        session.until(lambda: shows_number(session.screen.lines, 65), "d_k")
        session.quiet()
        assert b"8;2;" not in session.written
        many = term.endswith("-256color")
        assert (b"8;5;" in session.written) == many
        if not many:  # unscaled is yellow or red, scaled is cyan or blue, on the terminal's own background
            unscaled, scaled = ("33", "36") if theme == "attn-dark" else ("31", "34")
            colours = {pen[:2] for pen in session.screen.pens}
            assert {(unscaled, ""), (scaled, "")} <= colours
            assert {background for _, background in colours} == {""}
        session.quit()


OTHER_FRAMES = """
from textual import _compositor
for kind in (_compositor.ChopsUpdate, _compositor.LayoutUpdate):
    kind.__init__ = lambda self, *words, made=kind.__init__, **named: made(self, *words, **named)
"""
OTHER_DRIVER = """
from textual.drivers import linux_driver
linux_driver.XTermParser = lambda *words, made=linux_driver.XTermParser, **named: made(*words, **named)
"""


@slow
@pytest.mark.parametrize(
    ("code", "sends_differences", "sends_queries"),
    [(OTHER_FRAMES, False, True), (OTHER_DRIVER, True, False)],
    ids=["frames", "driver"],
)
def test_an_unknown_version_of_textual_paints_and_reads_itself(
    code: str, sends_differences: bool, sends_queries: bool
) -> None:
    with opened(first=code) as session:
        before = len(session.written)
        session.send(RIGHT * 3)
        session.shows(67)
        session.quiet()
        assert (len(session.written) - before < 3 * STEP) == sends_differences
        assert (session.queries > 0) == sends_queries
        session.send(b"?")
        session.sees(PANES["Lab"].about[0][:30])
        session.send(b"\x1b")
        session.until(lambda: PANES["Lab"].about[0][:30] not in session.text, "Escape")
        session.resize(100, 30)
        session.until(lambda: "quit" in session.screen.lines[29] and session.screen.is_filled, "every cell")
        session.stop()
        session.assert_restored()
        session.resume()
        session.until(lambda: shows_number(session.screen.lines, 67), "d_k")
        session.quit()
        session.assert_no_process_left()


@slow
def test_the_screen_is_on_stdout_if_stderr_is_redirected_and_no_mouse_asks_for_no_mouse() -> None:
    code = "import os; os.dup2(os.open(os.devnull, os.O_WRONLY), 2)"
    with opened("--no-config", "--no-mouse", first=code) as session:
        session.send(RIGHT)
        session.shows(65)
        session.quit()
        assert not re.search(rb"\x1b\[\?(1000|1002|1003|1006|1015|1016)h", session.written)


@slow
def test_reports_of_size_and_of_the_mouse_in_pixels_are_turned_off() -> None:
    with running("--no-config") as session:
        session.until(lambda: b"\x1b[?2048$p" in session.written, "query")
        session.send(b"\x1b[?2048;2$y")
        session.until(lambda: b"\x1b[?2048h" in session.written, "mode for reports of the size")
        session.ready()
        session.send(b"\x1b[48;30;100;600;1000t" + RIGHT)
        session.until(lambda: shows_number(session.screen.lines, 65), "d_k")
        session.quit()
        assert b"\x1b[?1016h" in session.written


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
    for key, words in ((b"\x1b[112;5u", "filter:"), (mark, PANES["Lab"].about[0][:30])):
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
