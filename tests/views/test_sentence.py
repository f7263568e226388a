"""The sentence under the table."""

from collections.abc import Mapping

import pytest
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.measurement import Column, Estimate
from attn_tui.core.theory.predict import theory_of
from attn_tui.tui.views.glyphs import ASCII, UNICODE
from attn_tui.tui.views.results.sentence import sentence
from attn_tui.tui.views.results.table import Contents, with_theory

HEALTHY: dict[str, float | None] = {
    "logit_std": 1.0,
    "one_hot_rows": 0.0,
    "dead_rows": 0.0,
    "grad_q_median": 1.0,
    "entropy_fraction": 0.9,
    "first_key_weight": 0.01,
    "first_key_over_uniform": 1.0,
    "effective_keys": 80.0,
    "max_weight": 0.07,
}
SATURATED = HEALTHY | {
    "logit_std": 8.0,
    "one_hot_rows": 0.3,
    "dead_rows": 0.13,
    "effective_keys": 3.0,
    "max_weight": 0.76,
}


def column(values: Mapping[str, float | None], rule: str = "none", multiplier: float = 1.0) -> Column:
    return Column(rule, multiplier, {name: Estimate(value, 0.0) for name, value in values.items()}, {})


def say(*columns: Column) -> str:
    return sentence(Contents(columns), UNICODE)


def test_a_saturated_and_a_healthy_column_side_by_side() -> None:
    said = say(column(SATURATED), column(HEALTHY, "sqrt_d_k", 0.125))
    assert said == (
        "Unscaled, one key takes 76 % of a row, and 13 % of rows pass no gradient. "
        "With × 0.125, some 80 keys share a row, and all pass gradients."
    )


def test_dead_rows_are_named_however_few_and_that_there_are_none_only_beside_some() -> None:
    assert say(column(HEALTHY)) == "Unscaled, some 80 keys share a row."
    assert say(column(HEALTHY | {"dead_rows": 0.04})).endswith(", and 4.0 % of rows pass no gradient.")
    assert say(column(HEALTHY | {"dead_rows": 1e-6})).endswith(", and < 0.1 % of rows pass no gradient.")
    assert "gradient" not in say(column(HEALTHY), column(HEALTHY, "sqrt_d_k", 0.5))


def test_nearly_uniform_attention_is_named() -> None:
    uniform = say(column(HEALTHY | {"entropy_fraction": 0.999}))
    assert "attention is nearly uniform (99.9 % of ln n)" in uniform
    assert "uniform" not in say(column(HEALTHY))
    assert "uniform" not in say(column(HEALTHY | {"entropy_fraction": None}))


def test_a_large_share_on_the_first_key_is_named_unless_there_are_few_keys() -> None:
    sink = HEALTHY | {"first_key_weight": 0.62, "first_key_over_uniform": 62.0}
    assert "the first key gets 62 %" in say(column(sink))
    assert "first key" not in say(column(HEALTHY))
    assert "first key" not in say(column(sink | {"first_key_over_uniform": 1.24}))
    assert "the sink gets 40 %" in say(column(HEALTHY | {"sink_weight": 0.4}))


@pytest.mark.parametrize(
    ("missing", "words"),
    [("logit_std", "a key"), ("max_weight", "more than one key"), ("one_hot_rows", "more than one key")],
)
def test_rows_without_a_choice_of_keys_are_reported(missing: str, words: str) -> None:
    assert say(column(HEALTHY | {missing: None})) == f"Unscaled, no query sees {words}."


def test_each_column_is_named_by_its_rule() -> None:
    said = say(column(HEALTHY), column(HEALTHY, "file", 0.177))
    assert "With the file's scale, some 80 keys" in said
    assert "With × 2.5, some 80 keys" in say(column(HEALTHY), column(HEALTHY, "custom", 2.5))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("max_weight", 0.5, "one key takes 50 % of a row"),
        ("effective_keys", 3.4, "some 3 keys share a row"),
        ("dead_rows", 0.5, "50 % of rows pass no gradient"),
        ("entropy_fraction", 0.99, "nearly uniform"),
        ("sink_weight", 0.9, "the sink gets 90 %"),
    ],
)
def test_a_changed_value_changes_the_words(name: str, value: float, words: str) -> None:
    assert words not in say(column(HEALTHY))
    assert words in say(column(HEALTHY | {name: value}))


def test_the_sentence_on_a_real_measurement_agrees_with_it() -> None:
    measured = run(Parameters(d_k=256, n_keys=64, n_queries=32, batch=4))
    said = sentence(Contents(measured.columns), UNICODE)
    most, keys = (
        measured.columns[0].measured["max_weight"].value,
        measured.columns[1].measured["effective_keys"].value,
    )
    assert most is not None
    assert keys is not None
    assert f"Unscaled, one key takes {100 * most:.0f} % of a row, and " in said
    assert said.endswith(f"With × 0.0625, some {keys:.0f} keys share a row, and all pass gradients.")


def test_deviations_from_theory_come_first_and_name_each_value() -> None:
    columns = [column(HEALTHY), column(HEALTHY, "sqrt_d_k", 0.125)]
    far = [{"logit_std": -5.21, "dead_rows": 3.9, "one_hot_rows": None}, {"one_hot_rows": 12.0}]
    said = sentence(Contents(columns, (), far), UNICODE)
    assert said.startswith(
        "Differs from theory: unscaled logit std by 5.2 standard errors, scaled one-hot rows by 12.0 standard "
        "errors. Unscaled, "
    )
    near = [dict.fromkeys(HEALTHY, 4.0)] * 2
    assert "theory" not in sentence(Contents(columns, (), near), UNICODE)


def test_ascii_sentences_are_ascii() -> None:
    small = column(HEALTHY, "sqrt_d_k", 6.1e-5)
    said = sentence(Contents([column(SATURATED), small]), ASCII)
    assert said.isascii()
    assert "With x 6.10e-5, some 80 keys" in said


def test_lost_weight_and_nan_rows_are_named_if_they_matter() -> None:
    lost = HEALTHY | {"weight_lost": 0.92, "nan_rows": 0.0}
    assert say(column(lost)).endswith("share a row; rounding loses 92 % of the weight.")
    assert "rounding adds 2.0 % of the weight" in say(column(HEALTHY | {"weight_lost": -0.02}))
    assert "rounding" not in say(column(HEALTHY | {"weight_lost": 0.001, "nan_rows": None}))
    some = say(column(HEALTHY | {"nan_rows": 0.25}))
    assert some.endswith("; 25 % of rows are NaN (logits overflow) and not counted.")
    both = say(column(HEALTHY | {"nan_rows": 0.25}), column(HEALTHY | {"nan_rows": 0.1}, "sqrt_d_k", 0.125))
    assert both.endswith("; 10 % of rows are NaN.")


def test_a_column_of_nan_rows_has_no_other_facts() -> None:
    nothing = dict.fromkeys(HEALTHY) | {"nan_rows": 1.0}
    said = say(column(nothing), column(HEALTHY, "sqrt_d_k", 0.125))
    assert said.startswith("Unscaled, every row is NaN: logits overflow. With × 0.125, some 80 keys")


def test_theory_beside_rounded_numbers_is_that_of_exact_arithmetic() -> None:
    measured = run(Parameters(d_k=8, n_keys=8, batch=4, precision="bfloat16"))
    for rounded in (True, False):
        contents = with_theory(measured, theory_of(measured))
        assert contents.rounded
        said = sentence(contents._replace(rounded=rounded), UNICODE)
        assert said.endswith("Theory is that of exact arithmetic.") == rounded


def test_a_status_that_a_ratio_past_saturation_does_not_explain_is_explained() -> None:
    past = HEALTHY | {"saturation": 2.89, "nan_rows": 0.0}
    said = say(column(past | {"max_weight": 0.15, "entropy_fraction": 0.4}))
    assert said.endswith("; σ passes saturation, but the largest weight is only 15 %.")
    said = say(column(past | {"max_weight": 0.3, "entropy_fraction": 0.61}))
    assert said.endswith("; σ passes saturation, but entropy is still 61 % of ln n.")
    assert "saturation" not in say(column(past | {"max_weight": 0.7, "entropy_fraction": 0.4}))
    assert "saturation" not in say(column(past | {"saturation": 0.9, "max_weight": 0.1}))
