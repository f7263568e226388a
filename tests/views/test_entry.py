"""Typing: how a line of text is edited, what it means in a field, and that a refused one leaves no trace."""

from dataclasses import replace

import pytest
from attn_tui.core.errors import ParameterError
from attn_tui.core.parameters import FIELD, FIELDS, Parameters
from attn_tui.tui.views.fields.entry import Draft, FieldEntry, edited, entered, names_of, typed
from cases import for_each, present
from hypothesis import given
from hypothesis import strategies as st

CHOICES = [(field.name, value) for field in FIELDS if field.kind == "choice" for value in field.choices]
P = Parameters()


def entry_of(name: str, text: str) -> FieldEntry[Parameters]:
    return typed(None, P, FIELD[name], text, Parameters.with_value)


@for_each(("name", "value"), CHOICES)
def test_every_name_of_a_choice_selects_it_or_one_of_the_same_name(name: str, value: str) -> None:
    field = FIELD[name]
    assert entered(field, value) == value
    for word in names_of(field, value):
        other = str(entered(field, f" {word.upper()} "))
        assert word.casefold() in [each.casefold() for each in names_of(field, other)]


def test_names_and_beginnings_of_choices_select_them() -> None:
    assert entered(FIELD["scale"], "d_k") == "d_k"
    assert entered(FIELD["mask"], "c") == "causal"
    assert entered(FIELD["precision"], "16") == "float16"
    assert FIELD["components"].choices[0] == "normal"
    assert entered(FIELD["components"], "l") == "laplace"
    entry = entry_of("model", "gpt")
    assert entry.value is P
    assert present(entry.pending).model.startswith("gpt")


def test_a_text_that_names_no_choice_or_is_too_long_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"no choice contains 'casual' \(did you mean causal\?\)"):
        entered(FIELD["mask"], "casual")
    with pytest.raises(ParameterError, match="step through all"):
        entered(FIELD["mask"], "")
    assert entered(FIELD["mean_q"], "0" * 40) == 0
    entry = entry_of("mean_q", "0" * 41)
    assert entry.value is P
    assert len(entry.text) == 40
    assert "at most 40 characters" in (entry.objection or "")
    assert entry_of("against", ", ").objection is not None


@pytest.mark.parametrize(
    ("text", "reason"),
    [("bf16", "did you mean precision=bfloat16?"), ("precision=bf", "must be one of float64, float32")],
)
def test_a_text_that_is_no_setting_of_a_is_refused_with_what_to_type(text: str, reason: str) -> None:
    assert reason in (entry_of("against", text).objection or "")


@given(st.text("0123456789eE.-+ n", max_size=6), st.sampled_from(["d_k", "std_q", "seed"]))
def test_a_refused_text_leaves_what_stood_before(text: str, name: str) -> None:
    entry = entry_of(name, text)
    if entry.objection is None:
        assert entry.value == replace(P, **{name: FIELD[name].parse(text)})
    else:
        assert entry.value is P
        assert FIELD[name].label in entry.objection


KEYS = ("left", "right", "home", "end", "ctrl+a", "ctrl+e", "backspace", "delete", "ctrl+u", "ctrl+k", "ctrl+w")


def draft(shown: str) -> Draft:
    """Return a draft from its text, with | for the cursor."""
    before, _, after = shown.partition("|")
    return Draft(before + after, len(before))


@for_each(
    ("before", "key", "after"),
    [
        ("ab|c", "left", "a|bc"),
        ("|ab", "left", "|ab"),
        ("a|b", "right", "ab|"),
        ("ab|", "right", "ab|"),
        ("ab|c", "home", "|abc"),
        ("a|bc", "end", "abc|"),
        ("ab|c", "backspace", "a|c"),
        ("|ab", "backspace", "|ab"),
        ("a|bc", "delete", "a|c"),
        ("ab|", "delete", "ab|"),
        ("ab|c", "ctrl+u", "|c"),
        ("ab|c", "ctrl+k", "ab|"),
        ("a/b-c.svg|", "ctrl+w", "a/b-c.|"),
        ("a/b-c.|", "ctrl+w", "a/b-|"),
        ("a_bc_|", "ctrl+w", "a_|"),
        ("a/b|/c", "ctrl+w", "a/|/c"),
        ("|a", "ctrl+w", "|a"),
    ],
)
def test_a_key_edits_as_in_a_shell(before: str, key: str, after: str) -> None:
    assert edited(draft(before), key) == draft(after)


def test_other_keys_edit_nothing() -> None:
    assert edited(draft("a|"), "f5") is None


@given(st.text(), st.lists(st.sampled_from(KEYS) | st.text(max_size=3)))
def test_the_cursor_stays_within_a_printable_text(text: str, keys: list[str]) -> None:
    found = Draft("", 0).typed(text)
    for key in keys:
        found = present(edited(found, key) if key in KEYS else found.typed(key))
        assert 0 <= found.at <= len(found.text)
        assert found.text.isprintable()


@given(st.text(), st.text(), st.text())
def test_typed_characters_are_erased_one_by_one(before: str, typed: str, after: str) -> None:
    start = Draft(before + after, len(before))
    found = start.typed(typed)
    for _ in range(len(found.text) - len(start.text)):
        erased = present(edited(found, "backspace"))
        found = erased
    assert found == start
