"""The help explains what has the focus, and every key."""

import pytest
from attn_tui.core.attention.scales import SCALE_RULES
from attn_tui.core.parameters import FIELD, FIELDS, Field
from attn_tui.core.statistics.catalogue import DEAD, ONE_HOT, STATISTICS, Statistic
from attn_tui.tui.panes.capture import CapturePane
from attn_tui.tui.panes.lab import Lab
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.help import CAPTURE, LAB, help_lines, key_overview
from attn_tui.tui.views.lines import Line, line_width
from textual.binding import Binding

KEYS = [
    ("right,l", "d_k + 1", "lab.more"),
    ("greater_than_sign", "next pane", "next_pane"),
    ("s", "next scale rule", "lab.next_scale"),
]
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
    keys = [(binding.key, binding.description, "") for binding in pane.BINDINGS if isinstance(binding, Binding)]
    assert len(keys) == len(pane.BINDINGS)
    lines = [text_of(line) for line in help_lines(None, (), keys, 80, UNICODE)]
    listed = lines[lines.index("Keys  K shows those of all panes") + 1 :]
    assert all(does for _, does, _ in keys)
    assert not any("_" in line.split("  ")[0] or "bracket" in line for line in listed)


@pytest.mark.parametrize("width", [36, 60, 90])
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_the_overview_has_every_key_with_its_name_and_fits(width: int, glyphs: Glyphs) -> None:
    lines = key_overview({"Lab": KEYS, "everywhere": [("Q,ctrl+x", "a way out " * 8, "quit")]}, "/a/b", width, glyphs)
    assert all(line_width(line) <= width for line in lines)
    text = [text_of(line) for line in lines]
    assert text.index("Lab") < text.index("everywhere")
    for _, does, name in KEYS:
        at = next(at for at, row in enumerate(text) if does in row)
        assert any(row.endswith(f" {name}") for row in text[at : at + 2])
    assert any(row.split()[:2] == ["Q", "Ctrl+X"] for row in text)
    assert sum(row.endswith(" quit") for row in text) == 1


def test_digits_and_what_does_the_same_stand_on_one_line() -> None:
    keys = [(digit, "type d_k", "") for digit in "0123456789"] + [("a", "same", ""), ("b", "same", "")]
    lines = [text_of(line).split() for line in help_lines(None, (), keys, 80, UNICODE)]
    assert ["0-9", "type", "d_k"] in lines
    assert ["a", "b", "same"] in lines
