"""The sentence under the table says what the numbers say."""

import re
from dataclasses import replace

import pytest
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.measurement import Column, Estimate
from attn_tui.tui.views.glyphs import ASCII, UNICODE
from attn_tui.tui.views.sentence import sentence
from attn_tui.tui.views.table import Contents

HEALTHY = {
    "logit_std": 1.0,
    "one_hot_rows": 0.0,
    "dead_rows": 0.0,
    "entropy_fraction": 0.9,
    "first_key_weight": 0.01,
    "effective_keys": 80.0,
}
SATURATED = HEALTHY | {"logit_std": 8.0, "one_hot_rows": 0.3, "dead_rows": 0.13, "effective_keys": 3.0}


def column(rule: str = "none", multiplier: float = 1.0, **values: float | None) -> Column:
    return Column(rule, multiplier, {name: Estimate(value, 0.0) for name, value in values.items()}, {})


def say(*columns: Column) -> str:
    return sentence(Contents(columns), UNICODE)


def test_a_saturated_and_a_healthy_column_side_by_side() -> None:
    said = say(column(**SATURATED), column("sqrt_d_k", 0.125, **HEALTHY))
    assert said == (
        "Unscaled, logits have standard deviation 8: 30 % of rows one-hot, 13 % dead. "
        "Scaled × 0.125, 1: no row one-hot or dead."
    )


def test_one_of_two_can_be_none() -> None:
    assert "4.0 % of rows one-hot, none dead" in say(column(**HEALTHY | {"one_hot_rows": 0.04}))
    assert "none of rows one-hot, 4.0 % dead" in say(column(**HEALTHY | {"dead_rows": 0.04}))


def test_the_smallest_share_is_not_none() -> None:
    assert "< 0.1 % of rows one-hot, none dead" in say(column(**HEALTHY | {"one_hot_rows": 1e-6}))


def test_nearly_uniform_attention_is_named() -> None:
    uniform = say(column(**HEALTHY | {"entropy_fraction": 0.999}))
    assert "attention nearly uniform (99.9 % of ln n)" in uniform
    assert "uniform" not in say(column(**HEALTHY))
    assert "uniform" not in say(column(**HEALTHY | {"entropy_fraction": None}))


def test_a_first_key_that_holds_much_is_named_unless_it_is_alone() -> None:
    sink = HEALTHY | {"first_key_weight": 0.62}
    assert "62 % on the first key" in say(column(**sink))
    assert "first key" not in say(column(**HEALTHY))
    assert "first key" not in say(column(**sink | {"first_key_weight": 1.0, "effective_keys": 1.0}))


@pytest.mark.parametrize("missing", ["logit_std", "one_hot_rows", "dead_rows"])
def test_rows_without_a_key_are_said_to_have_none(missing: str) -> None:
    assert say(column(**HEALTHY | {missing: None})) == "Unscaled, no query sees a key."


def test_each_column_is_called_by_its_rule() -> None:
    said = say(column(**HEALTHY), column("file", 0.177, **HEALTHY))
    assert "With the file's scale, 1: " in said
    assert "Scaled × 2.5, 1: " in say(column(**HEALTHY), column("custom", 2.5, **HEALTHY))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("logit_std", 2.5, "standard deviation 2.5:"),
        ("one_hot_rows", 0.5, "50 % of rows one-hot"),
        ("dead_rows", 0.5, "50 % dead"),
        ("entropy_fraction", 0.99, "nearly uniform"),
        ("first_key_weight", 0.9, "90 % on the first key"),
    ],
)
def test_a_changed_value_changes_the_words(name: str, value: float, words: str) -> None:
    assert words not in say(column(**HEALTHY))
    assert words in say(column(**HEALTHY | {name: value}))


def test_a_real_measurement_says_what_its_table_shows() -> None:
    measured = run(Parameters(d_k=256, n_keys=64, n_queries=32, batch=4))
    said = sentence(Contents(measured.columns), UNICODE)
    one_hot = measured.columns[0].measured["one_hot_rows"].value
    assert one_hot is not None
    assert f"{100 * one_hot:.0f} % of rows one-hot" in said
    assert said.endswith("Scaled × 0.0625, 1: no row one-hot or dead.") or re.search(
        r"Scaled × 0\.0625, [01]\.?\d*:", said
    )


def test_disagreement_with_theory_goes_first_and_names_each_value() -> None:
    columns = [column(**HEALTHY), column("sqrt_d_k", 0.125, **HEALTHY)]
    far = [{"logit_std": -5.21, "dead_rows": 3.9, "one_hot_rows": None}, {"one_hot_rows": 12.0}]
    said = sentence(Contents(columns, (), far), UNICODE)
    assert said.startswith(
        "Not as theory says: unscaled std deviation by 5.2 standard errors, scaled one-hot rows by 12.0 standard "
        "errors. Unscaled, "
    )
    near = [dict.fromkeys(HEALTHY, 4.0)] * 2
    assert "theory" not in sentence(Contents(columns, (), near), UNICODE)


def test_ascii_sentences_are_ascii() -> None:
    small = replace(column("sqrt_d_k", 6.1e-5, **HEALTHY))
    said = sentence(Contents([column(**SATURATED), small]), ASCII)
    assert said.isascii()
    assert "Scaled x 6.10e-5" in said
