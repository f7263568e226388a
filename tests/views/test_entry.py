"""Typing into a field: what a text means, and that a refused one leaves no trace."""

from dataclasses import replace

import pytest
from attn_tui.core.errors import ParameterError
from attn_tui.core.parameters import FIELD, FIELDS, Parameters
from attn_tui.tui.views.fields.entry import entered, names_of, typed
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

CHOICES = [(field.name, value) for field in FIELDS if field.kind == "choice" for value in field.choices]
P = Parameters()


@for_each(("name", "value"), CHOICES)
def test_every_name_of_a_choice_selects_it_or_one_of_the_same_name(name: str, value: str) -> None:
    field = FIELD[name]
    assert entered(field, value) == value
    for word in names_of(field, value):
        other = str(entered(field, f" {word.upper()} "))
        assert word.casefold() in [each.casefold() for each in names_of(field, other)]


def test_the_exact_name_wins_over_the_beginning_of_another() -> None:
    assert entered(FIELD["scale"], "d_k") == "d_k"
    assert entered(FIELD["mask"], "c") == "causal"
    assert entered(FIELD["precision"], "16") == "float16"


def test_a_beginning_wins_over_what_another_contains() -> None:
    assert FIELD["components"].choices[0] == "normal"
    assert entered(FIELD["components"], "l") == "laplace"


def test_a_model_is_not_taken_before_it_is_accepted() -> None:
    parameters, editing = typed(P, "model", "gpt")
    assert parameters is P
    assert editing.pending is not None
    assert editing.pending.model.startswith("gpt")


def test_a_text_that_names_no_choice_is_refused_with_the_nearest() -> None:
    with pytest.raises(ParameterError, match=r"no choice contains 'casual' \(did you mean causal\?\)"):
        entered(FIELD["mask"], "casual")
    with pytest.raises(ParameterError, match="step through all"):
        entered(FIELD["mask"], "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [("bf16", "did you mean precision=bfloat16?"), ("precision=bf", "must be one of float64, float32")],
)
def test_a_text_that_is_no_setting_of_a_is_refused_with_what_to_type(text: str, reason: str) -> None:
    assert reason in (typed(P, "against", text)[1].objection or "")


@given(st.text("0123456789eE.-+ n", max_size=6), st.sampled_from(["d_k", "std_q", "seed"]))
def test_a_refused_text_leaves_what_stood_before(text: str, name: str) -> None:
    parameters, editing = typed(P, name, text)
    if editing.objection is None:
        assert parameters == replace(P, **{name: FIELD[name].parse(text)})
    else:
        assert parameters is P
        assert FIELD[name].label in editing.objection


def test_signs_between_settings_name_no_rule() -> None:
    assert typed(P, "against", ", ")[1].objection is not None


def test_a_text_longer_than_any_number_is_refused_and_cut() -> None:
    assert entered(FIELD["mean_q"], "0" * 40) == 0
    parameters, editing = typed(P, "mean_q", "0" * 41)
    assert parameters is P
    assert len(editing.text) == 40
    assert "at most 40 characters" in (editing.objection or "")
