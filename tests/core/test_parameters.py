"""The declared parameters: the values that they accept, their text and their steps."""

import itertools
import math
from typing import Any

import pytest
from attn_tui.core.errors import InputError, ParameterError, nearest
from attn_tui.core.field import Field, next_of, next_power_of_two
from attn_tui.core.formula import FormulaError
from attn_tui.core.parameters import FIELD, FIELDS, Parameters
from attn_tui.core.scales import SCALE_RULES, RuleSetting
from cases import for_each
from hypothesis import example, given
from hypothesis import strategies as st

NUMBERS = [field for field in FIELDS if field.kind in ("integer", "real")]
DOUBLING = [field for field in NUMBERS if field.step == "double"]
NO_NUMBERS = [None, True, "64", 1j, math.nan, math.inf, -math.inf, 10**400]
SETTINGS = ["unscaled", "none", "0.05", "custom", "precision=bfloat16", "d_k,components=laplace,mean-q=0.5"]
STEPPING = [field for field in NUMBERS if field.step != "double"]


def values(field: Field) -> st.SearchStrategy[Any]:
    """Every value that a field accepts."""
    if field.kind == "choice":
        return st.sampled_from(field.choices)
    if field.kind == "setting":
        return st.sampled_from(SETTINGS)
    if field.kind == "integer":
        return st.integers(int(field.low), int(field.high))
    return st.floats(field.low, field.high).filter(lambda x: x == 0 or abs(x) >= field.least)


fields_with_values = st.sampled_from(FIELDS).flatmap(lambda field: st.tuples(st.just(field), values(field)))
numbers_with_values = st.sampled_from(NUMBERS).flatmap(lambda field: st.tuples(st.just(field), values(field)))


def by_name(fields: list[Field]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("field", fields, ids=lambda field: field.name)


@given(fields_with_values)
def test_a_formatted_value_is_parsed_back_unchanged(case: tuple[Field, Any]) -> None:
    field, value = case
    assert field.parse(field.format(value)) == value
    assert field.parse(f"  {field.format(value)}\n") == value


@given(fields_with_values)
def test_every_accepted_value_makes_parameters(case: tuple[Field, Any]) -> None:
    field, value = case
    assert getattr(Parameters().with_value(field.name, value), field.name) == value


@given(st.sampled_from(FIELDS), st.text())
@example(FIELD["d_k"], "")
@example(FIELD["d_k"], "-")
@example(FIELD["d_k"], "0")
@example(FIELD["d_k"], "1e9")
@example(FIELD["d_k"], "64.0")
@example(FIELD["d_k"], "1" + "0" * 400)
@example(FIELD["d_k"], "9" * 10_000)
@example(FIELD["mean_q"], "1e999")
@example(FIELD["std_q"], "nan")
@example(FIELD["multiplier"], "0")
@example(FIELD["components"], "normal, or\nuniform")
def test_text_is_either_a_value_or_refused_in_one_line(field: Field, text: str) -> None:
    try:
        value = field.parse(text)
    except FormulaError as error:
        message, where = str(error), error.pointer
        assert message.startswith("scale: character ")
        assert len(where.splitlines()) == 2
    except ParameterError as error:
        message = str(error)
        assert len(message.splitlines()) == 1
        assert message.startswith(f"{field.label}: ")
        assert f"must be {field.accepted}" in message or field.kind == "setting"
    else:
        field.check(value)


def test_the_power_of_two_above_zero_is_one_and_below_one_are_parts() -> None:
    assert [next_power_of_two(number, 1) for number in (-3, 0, 0.3, 1, 3, 4)] == [1, 1, 0.5, 2, 4, 8]
    assert [next_power_of_two(number, -1) for number in (-3, 0, 0.3, 1, 3, 4)] == [0, 0, 0.25, 0.5, 2, 2]


@for_each(
    ("word", "known", "found"),
    [
        ("gpt_oss", ["gpt2", "gpt-oss-20b"], "gpt-oss-20b"), ("lla", ["gpt2", "llama"], "llama"),
        ("ll", ["llama"], ""), ("l-l", ["llama"], ""), ("ab-c", ["abcd", "ab-cx"], "ab-cx"),
        ("softcpa", ["window", "softcap"], "softcap"), ("SOFT CAP", ["softcap"], "softcap"), ("xyz", ["softcap"], ""),
        ("Causel-Mask", ["causal_mask"], "causal_mask"), ("mask", ["causal mask", "mask2", "mask"], "mask2"),
        ("x", [], ""),
    ],
)  # fmt: skip
def test_the_word_that_was_meant_begins_with_what_was_typed_or_is_close_to_it(
    word: str, known: list[str], found: str
) -> None:
    assert nearest(word, known) == found


def test_k_and_m_are_binary_in_whole_numbers_only() -> None:
    assert [FIELD["position"].parse(text) for text in ("8k", "128k", "1M")] == [2**13, 2**17, 2**20]
    for name, text in (("position", "k"), ("position", "1.5k"), ("position", "1K"), ("mean_q", "1k")):
        with pytest.raises(ParameterError):
            FIELD[name].parse(text)


def test_a_refused_value_is_an_input_error() -> None:
    with pytest.raises(InputError):
        Parameters(batch=1)


@for_each("field", NUMBERS)
@for_each("value", NO_NUMBERS)
def test_a_number_accepts_only_finite_numbers(field: Field, value: Any) -> None:
    with pytest.raises(ParameterError):
        Parameters().with_value(field.name, value)


@by_name(NUMBERS)
def test_a_number_accepts_its_bounds_and_nothing_beyond(field: Field) -> None:
    number = int if field.kind == "integer" else float
    for bound, outside in ((field.low, field.low - 1), (field.high, field.high + 1)):
        field.check(number(bound))
        with pytest.raises(ParameterError):
            field.check(number(outside))
        assert field.format(number(bound)).lstrip("-") in field.accepted


@given(numbers_with_values, st.sampled_from([-1, 1]))
def test_a_step_stays_in_bounds_and_goes_in_its_direction(case: tuple[Field, Any], direction: Any) -> None:
    field, value = case
    stepped = field.stepped(value, direction)
    field.check(stepped)
    assert (stepped - value) * direction >= 0
    assert stepped != value or value in (field.low, field.high)


@by_name(DOUBLING)
def test_doubling_steps_through_the_powers_of_two_and_back(field: Field) -> None:
    powers = [2**i for i in range(15) if field.low <= 2**i <= field.high]
    for lower, upper in itertools.pairwise(powers):
        assert field.stepped(lower, 1) == upper
        assert field.stepped(upper, -1) == lower
        if upper - lower > 1:
            assert field.stepped(lower + 1, 1) == upper
            assert field.stepped(upper - 1, -1) == lower


@by_name(STEPPING)
@given(data=st.data())
def test_a_step_up_and_a_step_down_cancel(field: Field, data: st.DataObject) -> None:
    step = float(field.step)
    index = data.draw(st.integers(round(field.low / step) + 1, round(field.high / step) - 1))
    value = field.parse(
        field.format(round(index * step) if field.kind == "integer" else float(f"{index * step:.10g}"))
    )
    assert field.stepped(field.stepped(value, 1), -1) == value
    assert field.stepped(field.stepped(value, -1), 1) == value


@for_each(
    ("name", "value", "below", "above"),
    [
        ("mean_q", 0.05, 0.0, 0.1),
        ("mean_q", -0.05, -0.1, 0.0),
        ("mean_q", 0.26, 0.2, 0.3),
        ("mean_q", 0.34, 0.3, 0.4),
        ("multiplier", 0.125, 0.1, 0.15),
        ("multiplier", 1e-6, 1e-6, 0.05),
        ("correlation", 0.07, 0.05, 0.1),
    ],
)
def test_a_step_from_between_two_values_of_the_grid_skips_neither(
    name: str, value: float, below: float, above: float
) -> None:
    assert FIELD[name].stepped(value, -1) == below
    assert FIELD[name].stepped(value, 1) == above


def test_many_small_steps_stay_on_the_grid() -> None:
    value = 0.0
    for _ in range(3):
        value = float(FIELD["mean_q"].stepped(value, 1))
    assert value == 0.3


def test_choices_wrap_around() -> None:
    field = FIELD["scale"]
    value = field.choices[0]
    seen = [value := str(field.stepped(value, 1)) for _ in field.choices]
    assert sorted(seen) == sorted(field.choices)
    assert value == field.choices[0]
    assert field.stepped(value, -1) == field.choices[-1]


def test_the_next_of_some_values_goes_around_the_ends_and_begins_at_one() -> None:
    assert [next_of("abc", value) for value in "abc"] == ["b", "c", "a"]
    assert [next_of("abc", value, -1) for value in "abc"] == ["c", "a", "b"]
    assert (next_of("abc", "x"), next_of("abc", "x", -1)) == ("a", "c")


def test_options_are_named_after_parameters() -> None:
    assert FIELD["d_k"].option == "--d-k"
    assert FIELD["degrees_of_freedom"].option == "--degrees-of-freedom"


def test_parameters_without_effect_are_known() -> None:
    idle = {field.name for field in FIELDS if not field.applies(Parameters())}
    of_rules = {*RuleSetting._fields} - {"d_k", "n_keys"}
    assert idle == of_rules | {"degrees_of_freedom", "gain", "norm_gain", "sink_logit", "arithmetic"}
    for rule in SCALE_RULES.values():
        assert FIELD["norm_gain"].applies(Parameters(scale=rule.name)) == (rule.normalise != "none")
    assert FIELD["multiplier"].applies(Parameters(scale="custom"))
    assert FIELD["degrees_of_freedom"].applies(Parameters(components="student_t"))
    assert FIELD["arithmetic"].applies(Parameters(precision="bfloat16"))
    assert not FIELD["arithmetic"].applies(Parameters(precision="float64"))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_eager_arithmetic_in_float8_is_refused_whichever_is_set_last(name: Any) -> None:
    reason = "^arithmetic: must be fused with format float8 .*; no kernel rounds scores to it$"
    Parameters(precision=name)
    with pytest.raises(ParameterError, match=reason):
        Parameters(precision=name).with_value("arithmetic", "eager")
    with pytest.raises(ParameterError, match=reason):
        Parameters(arithmetic="eager").with_value("precision", name)
