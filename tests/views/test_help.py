"""The help explains what has the focus, and every key."""

import pytest
from attn_tui.core.attention.scales import SCALE_RULES
from attn_tui.core.parameters import FIELD, FIELDS, Field
from attn_tui.core.statistics.catalogue import DEAD, ONE_HOT, STATISTICS, Statistic
from attn_tui.tui.panes.capture import CapturePane
from attn_tui.tui.panes.lab import Lab
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.help import CAPTURE, LAB, help_lines
from attn_tui.tui.views.lines import Line, line_width
from textual.binding import Binding

KEYS = [("right,l", "d_k + 1"), ("greater_than_sign", "next pane"), ("s", "next scale rule")]
THINGS: list[Field | Statistic | None] = [None, *FIELDS, *STATISTICS]


def text_of(line: Line) -> str:
    return "".join(text for text, _ in line)


def paragraphs(about: Field | Statistic | None, width: int = 80, glyphs: Glyphs = UNICODE) -> str:
    """The whole help, unwrapped."""
    return " ".join(text_of(line) for line in help_lines(about, LAB, KEYS, width, glyphs))


@pytest.mark.parametrize("about", THINGS, ids=lambda about: about.name if about else "nothing")
def test_help_fits_and_can_be_said_in_ascii(about: Field | Statistic | None) -> None:
    for pane in (LAB, CAPTURE):
        for width in (66, 88):
            for glyphs in (UNICODE, ASCII):
                lines = help_lines(about, pane, KEYS, width, glyphs)
                assert all(line_width(line) <= width for line in lines)
                assert all(text_of(line).isascii() for line in lines) or not glyphs.ascii


@pytest.mark.parametrize("statistic", STATISTICS, ids=lambda statistic: statistic.name)
def test_a_statistic_is_explained_with_formula_source_and_name(statistic: Statistic) -> None:
    text = paragraphs(statistic)
    for words in (statistic.label, statistic.formula, statistic.definition, statistic.source, statistic.name):
        assert " ".join(words.split()) in text


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_a_field_is_explained_with_what_it_takes_and_its_option(field: Field) -> None:
    text = paragraphs(field)
    for words in (field.label, field.symbol, field.help, field.accepted, field.option):
        assert words in text


def test_the_scale_s_help_names_every_rule_who_uses_it_and_its_source() -> None:
    text = paragraphs(FIELD["scale"])
    for rule in (SCALE_RULES[name] for name in FIELD["scale"].choices):
        assert rule.formula in text
        assert rule.note in text
        assert rule.used_by in text
        assert rule.source in text


def test_what_has_the_focus_goes_before_the_pane_and_the_keys() -> None:
    text = paragraphs(FIELD["seed"])
    assert text.index("seed") < text.index("Scores are dot products") < text.index("Keys")


def test_the_words_of_the_table_are_defined_with_their_thresholds() -> None:
    text = paragraphs(None)
    assert f"above {ONE_HOT}" in text
    assert f"below {DEAD}" in text


def test_keys_are_called_as_they_are_labelled() -> None:
    lines = [text_of(line).split() for line in help_lines(None, LAB, KEYS, 80, UNICODE)]
    assert ["→", "l", "d_k", "+", "1"] in lines
    assert [">", "next", "pane"] in lines
    ascii_lines = [text_of(line).split() for line in help_lines(None, LAB, KEYS, 80, ASCII)]
    assert ["right", "l", "d_k", "+", "1"] in ascii_lines


@pytest.mark.parametrize("pane", [Lab, CapturePane])
def test_no_key_of_a_pane_goes_by_the_library_s_name_for_it(pane: type[Lab] | type[CapturePane]) -> None:
    keys = [(binding.key, binding.description) for binding in pane.BINDINGS if isinstance(binding, Binding)]
    assert len(keys) == len(pane.BINDINGS)
    lines = [text_of(line) for line in help_lines(None, (), keys, 80, UNICODE)]
    listed = lines[lines.index("Keys") + 1 :]
    assert all(does for _, does in keys)
    assert not any("_" in line.split("  ")[0] or "bracket" in line for line in listed)
