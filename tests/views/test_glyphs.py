"""Two sets of characters, and when the plain one is used."""

import io
import sys

import pytest
from attn_tui.core.attention.scales import SCALE_RULES
from attn_tui.core.parameters import FIELDS
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.tui.panes.capture import CapturePane
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.panes.lab import Lab
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs, ascii_cells, glyphs_for
from attn_tui.tui.views.help import ABOUT
from attn_tui.tui.views.help import WORDS as HELP_WORDS
from attn_tui.tui.views.histograms import TITLES
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.binding import Binding

WORDS = sorted(
    {text for f in FIELDS for text in (f.label, f.symbol, f.help, f.accepted, f.group)}
    | {text for s in STATISTICS for text in (s.label, s.formula, s.definition, s.source, s.group)}
    | {text for rule in SCALE_RULES.values() for text in (rule.formula, rule.used_by, rule.source, rule.note)}
    | set(TITLES.values())
    | {text for paragraphs in (*ABOUT.values(), HELP_WORDS) for text in paragraphs}
    | {word for pane in PANES.values() for key in pane().KEYS for word in key}
    | {binding.description for binding in (*Lab.BINDINGS, *CapturePane.BINDINGS) if isinstance(binding, Binding)}
)


@pytest.mark.parametrize("words", WORDS)
def test_every_word_of_the_program_can_be_said_in_ascii(words: str) -> None:
    said = ASCII.say(words)
    assert said.isascii()
    assert said.isprintable()
    assert said.count("?") == words.count("?"), "a character has no spelling"


@pytest.mark.parametrize("words", WORDS)
def test_unicode_says_words_as_they_are(words: str) -> None:
    assert UNICODE.say(words) is words


def test_formulas_stay_readable_in_ascii() -> None:
    assert ASCII.say("scaled × 0.125 (1/√d_k)") == "scaled x 0.125 (1/sqrt(d_k))"
    assert ASCII.say("‖J‖_F") == "||J||_F"
    assert ASCII.say("Σ p²") == "sum p^2"


def test_what_has_no_spelling_is_marked_rather_than_dropped() -> None:
    assert ASCII.say("模型") == "??"


@pytest.mark.parametrize("name", ["rule", "tick", "left", "right", "cursor", "dot"])
def test_both_sets_have_each_sign_in_one_cell(name: str) -> None:
    for glyphs in (UNICODE, ASCII):
        assert len(getattr(glyphs, name)) == 1
    assert getattr(ASCII, name).isascii()


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_bars_and_shades_grow_from_blank_by_different_signs(glyphs: Glyphs) -> None:
    for signs in (glyphs.bars, glyphs.lengths, glyphs.shades):
        assert signs[0] == " "
        assert len(set(signs)) == len(signs)
    assert (glyphs.bars + glyphs.lengths + glyphs.shades).isascii() == glyphs.ascii


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [("utf-8", UNICODE), ("utf-16", UNICODE), ("ascii", ASCII), ("latin-1", ASCII), ("cp1252", ASCII)],
)
def test_the_plain_set_is_used_where_the_encoding_cannot_show_the_other(
    encoding: str, expected: Glyphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    assert glyphs_for(False) is expected
    assert glyphs_for(True) is ASCII


def test_without_an_encoding_of_stdout_the_locale_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    for encoding, expected in (("ANSI_X3.4-1968", ASCII), ("UTF-8", UNICODE), ("no such encoding", ASCII)):
        monkeypatch.setattr("locale.getpreferredencoding", lambda _, encoding=encoding: encoding)
        assert glyphs_for(False) is expected


@given(st.characters(exclude_categories=("Cs", "Cc", "Mn", "Me", "Cf")))
def test_what_others_draw_takes_as_many_cells_in_ascii(character: str) -> None:
    plain = ascii_cells(character)
    assert plain.isascii()
    assert len(plain) == cell_len(character)


def test_what_others_draw_keeps_its_shape_and_its_escape_sequences() -> None:
    assert ascii_cells("\x1b[1;31m┌─┐ café ▁▂█ 词\x1b[m") == "\x1b[1;31m+-+ cafe __# ??\x1b[m"
    assert ascii_cells("e\u0301") == "e"


def test_two_arrows_side_by_side_are_two_words() -> None:
    assert ASCII.say("←→ ↑↓ ↑") == "left/right up/down up"
