"""The Unicode and the ASCII set of characters, and when ASCII is used."""

import io
import sys

import pytest
from attn_tui.core.parameters import FIELDS
from attn_tui.core.scales import SCALE_RULES
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.tui.app.keys import all_commands
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs, ascii_cells, glyphs_for
from attn_tui.tui.views.help import WORDS as HELP_WORDS
from attn_tui.tui.views.plots.histograms import TITLES
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

WORDS = sorted(
    {text for f in FIELDS for text in (f.label, f.symbol, f.help, f.accepted, f.group)}
    | {text for s in STATISTICS for text in (s.label, s.formula, s.definition, s.source, s.group)}
    | {text for rule in SCALE_RULES.values() for text in (rule.formula, rule.used_by, rule.source, rule.note)}
    | set(TITLES.values())
    | {
        text
        for help in (*(row.about for row in PANES.values()), HELP_WORDS)
        for part in help
        for text in ([part] if isinstance(part, str) else part)
    }
    | {word for row in PANES.values() for key in row.load().KEYS for word in key}
    | {command.words for command in all_commands()}
)


def test_all_texts_of_the_program_have_an_ascii_spelling() -> None:
    said = {words: ASCII.say(words) for words in WORDS}
    assert not {words for words, text in said.items() if not (text.isascii() and text.isprintable())}
    assert not {words for words, text in said.items() if text.count("?") != words.count("?")}, "without a spelling"


def test_unicode_does_not_change_texts() -> None:
    assert not [words for words in WORDS if UNICODE.say(words) is not words]


def test_formulas_stay_readable_in_ascii_and_other_characters_become_question_marks() -> None:
    assert ASCII.say("scaled × 0.125 (1/√d_k)") == "scaled x 0.125 (1/sqrt(d_k))"
    assert ASCII.say("‖J‖_F d^−¼") == "||J||_F d^(-1/4)"
    assert ASCII.say("Σ p²") == "sum p^2"
    assert ASCII.say("模型") == "??"
    assert ASCII.say("←→ ↑↓ ↑") == "left/right up/down up"


@pytest.mark.parametrize("name", ["rule", "tick", "left", "right", "cursor"])
def test_every_sign_of_both_sets_is_one_character(name: str) -> None:
    for glyphs in (UNICODE, ASCII):
        assert len(getattr(glyphs, name)) == 1
    assert getattr(ASCII, name).isascii()


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_bars_and_shades_begin_with_a_blank_and_repeat_no_sign(glyphs: Glyphs) -> None:
    for signs in (glyphs.bars, glyphs.lengths, glyphs.shades):
        assert signs[0] == " "
        assert len(set(signs)) == len(signs)
    assert (glyphs.bars + glyphs.lengths + glyphs.shades).isascii() == glyphs.ascii


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [("utf-8", UNICODE), ("utf-16", UNICODE), ("ascii", ASCII), ("latin-1", ASCII), ("cp1252", ASCII)],
)
def test_ascii_is_used_if_the_encoding_lacks_other_characters(
    encoding: str, expected: Glyphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    assert glyphs_for(False) is expected
    assert glyphs_for(True) is ASCII


@pytest.mark.parametrize(
    ("encoding", "expected"), [("ANSI_X3.4-1968", ASCII), ("UTF-8", UNICODE), ("no such encoding", ASCII)]
)
def test_the_locale_decides_if_stdout_has_no_encoding(
    encoding: str, expected: Glyphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def preferred(do_setlocale: bool = True) -> str:
        return encoding

    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr("locale.getpreferredencoding", preferred)
    assert glyphs_for(False) is expected


@given(st.characters(exclude_categories=("Cs", "Cc", "Mn", "Me", "Cf")))
def test_ascii_cells_keep_the_width_of_a_character(character: str) -> None:
    plain = ascii_cells(character)
    assert plain.isascii()
    assert len(plain) == cell_len(character)


def test_ascii_cells_keep_lines_bars_and_escape_sequences() -> None:
    assert ascii_cells("\x1b[1;31m┌─┐ café ▁▂█ 词\x1b[m") == "\x1b[1;31m+-+ cafe __# ??\x1b[m"
    assert ascii_cells("e\u0301") == "e"
