"""What is said of a measurement: the sentence under the table, and advice that never contradicts the numbers."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from attn_tui.core.errors import ParameterError
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import FIELD, Parameters
from attn_tui.core.scales import SCALE_RULES
from attn_tui.core.statistics.measurement import Column, Estimate
from attn_tui.core.theory.predict import theory_of
from attn_tui.core.theory.prediction import status_given
from attn_tui.tui.views.glyphs import ASCII, UNICODE
from attn_tui.tui.views.results.sentence import lab_sentence, sentence
from attn_tui.tui.views.results.table import TableContents, with_theory
from hypothesis import HealthCheck, example, given
from hypothesis import settings as examples
from hypothesis import strategies as st

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
    return sentence(TableContents(columns), UNICODE)


def test_what_stands_out_is_named_and_nothing_else() -> None:
    said = say(column(SATURATED), column(HEALTHY, "sqrt_d_k", 0.125))
    assert said == (
        "Unscaled, one key takes 76 % of a row, and 13 % of rows pass no gradient. "
        "With × 0.125, some 80 keys share a row, and all pass gradients."
    )
    assert say(column(HEALTHY)) == "Unscaled, some 80 keys share a row."
    assert say(column(HEALTHY | {"dead_rows": 0.04})).endswith(", and 4.0 % of rows pass no gradient.")
    assert say(column(HEALTHY | {"dead_rows": 1e-6})).endswith(", and < 0.1 % of rows pass no gradient.")
    assert "gradient" not in say(column(HEALTHY), column(HEALTHY, "sqrt_d_k", 0.5))
    uniform = say(column(HEALTHY | {"entropy_fraction": 0.999}))
    assert "attention is nearly uniform (99.9 % of ln n)" in uniform
    assert "uniform" not in say(column(HEALTHY))
    assert "uniform" not in say(column(HEALTHY | {"entropy_fraction": None}))
    sink = HEALTHY | {"first_key_weight": 0.62, "first_key_over_uniform": 62.0}
    assert "the first key takes 62 % of a row" in say(column(sink))
    assert "first key" not in say(column(HEALTHY))
    assert "first key" not in say(column(sink | {"first_key_over_uniform": 1.24}))
    assert "the sink takes 40 % of a row" in say(column(HEALTHY | {"sink_weight": 0.4}))


@pytest.mark.parametrize(
    ("missing", "words"),
    [("logit_std", "a key"), ("max_weight", "more than one key"), ("one_hot_rows", "more than one key")],
)
def test_rows_without_a_choice_of_keys_are_reported(missing: str, words: str) -> None:
    assert say(column(HEALTHY | {missing: None})) == f"Unscaled, no query sees {words}."


def test_each_column_is_named_by_its_rule_in_ascii_too() -> None:
    said = say(column(HEALTHY), column(HEALTHY, "file", 0.177))
    assert "With the file's scale, some 80 keys" in said
    assert "With × 2.5, some 80 keys" in say(column(HEALTHY), column(HEALTHY, "custom", 2.5))
    small = column(HEALTHY, "sqrt_d_k", 6.1e-5)
    said = sentence(TableContents([column(SATURATED), small]), ASCII)
    assert said.isascii()
    assert "With x 6.10e-5, some 80 keys" in said


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("max_weight", 0.5, "one key takes 50 % of a row"),
        ("effective_keys", 3.4, "some 3 keys share a row"),
        ("dead_rows", 0.5, "50 % of rows pass no gradient"),
        ("entropy_fraction", 0.99, "nearly uniform"),
        ("sink_weight", 0.9, "the sink takes 90 % of a row"),
    ],
)
def test_a_changed_value_changes_the_words(name: str, value: float, words: str) -> None:
    assert words not in say(column(HEALTHY))
    assert words in say(column(HEALTHY | {name: value}))


def test_a_sink_that_takes_all_is_said_first_and_nothing_of_one_keys() -> None:
    said = say(column(HEALTHY | {"sink_weight": 1.0, "effective_keys": 1.0, "max_weight": 0.0, "dead_rows": 1.0}))
    assert said == "Unscaled, the sink takes 100 % of a row, and 100 % of rows pass no gradient."
    assert say(column(HEALTHY | {"effective_keys": 1.2})) == "Unscaled, 1 key takes a row."


def test_the_sentence_on_a_real_measurement_agrees_with_it() -> None:
    measured = run(Parameters(d_k=256, n_keys=64, n_queries=32, batch=4))
    said = sentence(TableContents(measured.columns), UNICODE)
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
    said = sentence(TableContents(columns, (), far), UNICODE)
    assert said.startswith(
        "Differs from theory: unscaled logit std by 5.2 standard errors, scaled one-hot rows by 12.0 standard "
        "errors. Unscaled, "
    )
    near = [dict.fromkeys(HEALTHY, 4.0)] * 2
    assert "theory" not in sentence(TableContents(columns, (), near), UNICODE)


def test_lost_weight_and_nan_rows_are_named_if_they_matter() -> None:
    lost = HEALTHY | {"weight_lost": 0.92, "nan_rows": 0.0}
    assert say(column(lost)).endswith("share a row; rounding loses 92 % of the weight.")
    assert "rounding adds 2.0 % of the weight" in say(column(HEALTHY | {"weight_lost": -0.02}))
    assert "rounding" not in say(column(HEALTHY | {"weight_lost": 0.001, "nan_rows": None}))
    some = say(column(HEALTHY | {"nan_rows": 0.25}))
    assert some.endswith("; 25 % of rows are NaN (logits overflow) and not counted.")
    both = say(column(HEALTHY | {"nan_rows": 0.25}), column(HEALTHY | {"nan_rows": 0.1}, "sqrt_d_k", 0.125))
    assert both.endswith("; 10 % of rows are NaN.")
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


SMALL: dict[str, Any] = {"n_queries": 8, "batch": 4, "d_v": 4}
LABELS = {rule.label: name for name, rule in SCALE_RULES.items()}

parameters = st.builds(
    Parameters,
    d_k=st.sampled_from([1, 2, 4, 8, 16, 64, 256]),
    n_keys=st.sampled_from([1, 2, 3, 16, 128, 512]),
    n_queries=st.just(8),
    batch=st.just(4),
    d_v=st.just(4),
    scale=st.sampled_from(FIELD["scale"].choices),
    multiplier=st.sampled_from([1e-6, 0.05, 1.0, 1000.0]),
    against=st.sampled_from(["unscaled", "none", "d_k", "components=laplace", "precision=float8_e4m3fn,mask=causal"]),
    components=st.sampled_from(FIELD["components"].choices),
    mean_q=st.sampled_from([0.0, 0.0, 3.0]),
    std_k=st.sampled_from([0.0, 0.1, 1.0, 1.0, 30.0]),
    correlation=st.sampled_from([0.0, 0.0, 0.5, 1.0]),
    mask=st.sampled_from(FIELD["mask"].choices),
    mechanism=st.sampled_from(FIELD["mechanism"].choices),
    softcap=st.sampled_from([0.0, 0.0, 5.0]),
    sink=st.sampled_from(["none", "none", "logit"]),
    sink_logit=st.sampled_from([0.0, 5.0]),
    precision=st.sampled_from(["float32", "float32", "float16", "bfloat16", "float8_e5m2"]),
)  # fmt: skip


def contents_of(p: Parameters) -> TableContents:
    return with_theory(measured := run(p), theory_of(measured))


def statuses(contents: TableContents) -> list[str | None]:
    both = zip(contents.theory, contents.columns, strict=True)
    return [status_given(known.saturation, column.measured) for known, column in both]


def value(column: Column, name: str) -> float:
    return column.measured[name].value or 0.0


@pytest.mark.slow
@examples(max_examples=4 * examples().max_examples, suppress_health_check=[HealthCheck.too_slow])
@given(parameters)
@example(Parameters(d_k=10, n_keys=128, **SMALL))
@example(Parameters(scale="d_k", **SMALL))
@example(Parameters(precision="float16", arithmetic="eager", std_q=100, std_k=100, scale="none", **SMALL))
@example(Parameters(components="rademacher", d_k=1, n_keys=512, scale="custom", multiplier=4, **SMALL))
def test_no_sentence_contradicts_the_numbers_beside_it(p: Parameters) -> None:
    try:
        contents = contents_of(p)
    except ParameterError:  # a rule without a multiplier
        return
    said, words = lab_sentence(p, contents, UNICODE), statuses(contents)
    assert said.endswith(".")
    if "looks up one key" in said:
        assert "one-hot" in words
    if "nearly uniform" in said and " of ln n" not in said:
        assert "uniform" in words
    if "Both are healthy" in said:
        assert words == ["healthy", "healthy"]
    if "one key takes most of a row" in said:
        assert any(value(each, "max_weight") >= 0.5 for each in contents.columns)
    for number in re.findall(r"1 row in (\d+) ", said):
        assert any(0.6 < (value(each, "dead_rows") or 0) * int(number) < 1.7 for each in contents.columns)
    if "would be healthy" in said:
        assert words[1] not in ("healthy", None, "NaN", "sink")


@pytest.mark.parametrize(
    "change",
    [
        {"scale": "none"},
        {"scale": "none", "d_k": 9},
        {"scale": "d_k"},
        {"scale": "d_k", "d_k": 256},
        {"scale": "8/d", "d_k": 4},
        {"scale": "cosine_1"},
        {"scale": "rms_none"},
        {"scale": "layer_norm_none", "d_k": 32},
        {"std_q": 20.0},
        {"std_k": 0.01},
        {"scale": "custom", "multiplier": 10.0, "n_keys": 16},
        {"scale": "none", "mechanism": "bilinear"},
        {"scale": "none", "components": "laplace"},
        {"scale": "none", "mask": "causal"},
        {"scale": "none", "precision": "bfloat16"},
    ],
)
def test_what_it_suggests_is_healthy(change: dict[str, Any]) -> None:
    p = replace(Parameters(d_k=64, n_keys=128, n_queries=16, batch=4, d_v=4), **change)
    said = lab_sentence(p, contents_of(p), UNICODE)
    suggested = re.search(r" (× )?([^ ]+|cosine [^ ]+|rms [^ ]+|LN [^ ]+) would be healthy\.$", said)
    assert suggested is not None, said
    times, text = suggested.groups()
    changed = {"scale": "custom", "multiplier": float(text)} if times else {"scale": LABELS[text]}
    assert statuses(contents_of(replace(p, **changed)))[1] == "healthy"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"d_k": 4}, "Both are healthy here: many keys share a row."),
        ({}, "Unscaled, one key takes most of a row, and 1 row in "),
        ({"d_k": 400}, "Unscaled, attention looks up one key, and "),
        ({"d_k": 400}, " Divided by √d_k, nothing has moved."),
        ({"scale": "d_k"}, " With 1/d_k, attention is nearly uniform. 1/√d_k would be healthy."),
        ({"std_k": 0.0}, "Unscaled, attention is nearly uniform."),
        ({"n_keys": 1}, "Unscaled, no query sees more than one key."),
        ({"correlation": 0.5}, "With 1/√d_k, "),
    ],
)
def test_the_sentences_of_the_lab(change: dict[str, Any], words: str) -> None:
    p = replace(Parameters(**SMALL), **change)
    assert words in lab_sentence(p, contents_of(p), UNICODE)
    assert lab_sentence(p, contents_of(p), ASCII, brief=True).isascii()


def test_overflow_and_sinks_are_said_with_numbers() -> None:
    eager = Parameters(precision="float16", arithmetic="eager", std_q=100, std_k=100, scale="none", **SMALL)
    assert "logits overflow" in lab_sentence(eager, contents_of(eager), UNICODE)
    sink = Parameters(sink="logit", sink_logit=8.0, **SMALL)
    assert re.search(r"the sink takes 9\d % of a row", lab_sentence(sink, contents_of(sink), UNICODE))
