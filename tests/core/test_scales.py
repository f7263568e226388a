"""The scale rules against figures computed by hand from their sources."""

import math
from dataclasses import fields
from typing import Any, get_args

import pytest
from attn_tui.core.attention.scales import SCALE_RULES, ScaleRule, Setting, multiplier
from attn_tui.core.parameters import FIELD, ParameterError, Parameters, ScaleName

every_rule = pytest.mark.parametrize("rule", SCALE_RULES.values(), ids=lambda rule: rule.name)

# At the widths, lengths and positions of those who use the rule, where there are some.
FIGURES: list[tuple[str, dict[str, float], float]] = [
    ("none", {}, 1),
    ("sqrt_d_k", {"d_k": 64}, 0.125),
    ("sqrt_d_k", {"d_k": 80}, 0.111803398875),
    ("d_k", {"d_k": 80}, 0.0125),
    ("mup", {"d_k": 64}, 0.125),
    ("mup", {"d_k": 128}, 0.0625),
    ("log_d_k", {"d_k": 64}, 0.240449173481),
    ("two_sqrt_d_k", {"d_k": 96}, 0.051031036308),
    ("sqrt_half_d_k", {"d_k": 224}, 0.094491118252),
    ("sqrt_three_d_k", {"d_k": 64}, 0.072168783649),
    ("inverse_layer", {"d_k": 64, "layer": 0}, 0.125),
    ("inverse_layer", {"d_k": 64, "layer": 11}, 0.010416666667),
    ("gemma", {"d_k": 256}, 0.0625),
    ("gemma2_27b", {"d_k": 128}, 0.083333333333),
    ("gemma3_27b", {"d_k": 128}, 0.077151674981),
    ("granite_2b", {"d_k": 64}, 0.015625),
    ("granite_8b", {"d_k": 128}, 0.0078125),
    ("yarn", {"d_k": 64, "context_factor": 1}, 0.125),
    ("yarn", {"d_k": 128, "context_factor": 8}, 0.12897000835),
    ("yarn", {"d_k": 192, "context_factor": 40}, 0.135233778861),  # DeepSeek-V3: 1.3688879² / √192
    ("deepseek_v2", {"d_k": 192, "context_factor": 40}, 0.114721386793),
    ("longrope", {"d_k": 96, "context_factor": 32}, 0.144587936206),  # Phi-3-mini-128k: 1.4167 / √96
    ("llama4_position", {"d_k": 128, "position": 8190}, 0.088388347648),
    ("llama4_position", {"d_k": 128, "position": 8191}, 0.094514961045),
    ("llama4_position", {"d_k": 128, "position": 16_383}, 0.098098800138),
    ("llama4_position", {"d_k": 128, "position": 9_999_999}, 0.151209707017),
    ("ministral3_position", {"d_k": 128, "position": 16_383}, 0.088388347648),
    ("ministral3_position", {"d_k": 128, "position": 16_384}, 0.094514961045),
    ("ministral3_position", {"d_k": 128, "position": 262_143}, 0.112894801235),
    ("ssmax", {"d_k": 64, "n_keys": 1024}, 0.372566609551),
    ("ssmax", {"d_k": 16, "n_keys": 9}, 0.236201642064),
    ("log512_n", {"d_k": 64, "n_keys": 512}, 0.125),
    ("log512_n", {"d_k": 64, "n_keys": 4096}, 0.166666666667),  # 12/9 of 1/8
    ("rms_sqrt_d_k", {"d_k": 64}, 0.125),
    ("rms_none", {"d_k": 64}, 1),
    ("layer_norm_sqrt_d_k", {"d_k": 64}, 0.125),
    ("cosine_sqrt_d_k", {"d_k": 96}, 9.797958971133),
    ("cosine_10", {"d_k": 32}, 10),
    ("cosine_100", {"d_k": 32}, 100),
    ("cosine_log2_n", {"n_keys": 72}, 12.319672120947),  # the paper's English to Vietnamese: log₂ 5112
    ("cosine_log2_n", {"n_keys": 2}, 1),
    ("custom", {"d_k": 64, "multiplier": 0.3}, 0.3),
]


@pytest.mark.parametrize(("name", "given", "expected"), FIGURES, ids=lambda value: str(value))
def test_a_rule_has_the_multiplier_that_its_source_gives(name: str, given: dict[str, Any], expected: float) -> None:
    assert multiplier(name, Setting(**given)) == pytest.approx(expected, abs=1e-12)


def test_the_figures_leave_no_rule_out() -> None:
    assert {name for name, _, _ in FIGURES} == set(SCALE_RULES)


class Recording:
    """A setting that notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.asked.add(name)
        return getattr(Setting(), name)


@every_rule
def test_a_rule_says_everything_that_its_multiplier_needs(rule: ScaleRule) -> None:
    recording = Recording()
    rule.multiplier(recording)
    assert recording.asked == set(rule.needs)


@every_rule
def test_a_parameter_of_rules_applies_where_a_rule_needs_it(rule: ScaleRule) -> None:
    parameters = Parameters()
    object.__setattr__(parameters, "scale", rule.name)  # the lab does not take them all
    for name in ("multiplier", "layer", "position", "context_factor"):
        assert FIELD[name].applies(parameters) == (name in rule.needs), name


def test_a_setting_is_a_part_of_the_parameters() -> None:
    assert Setting.of(Parameters()) == Setting()
    other: dict[str, Any] = {
        "d_k": 7,
        "n_keys": 9,
        "multiplier": 0.5,
        "layer": 2,
        "position": 5,
        "context_factor": 3.0,
    }
    assert set(other) == {field.name for field in fields(Setting)}
    assert Setting.of(Parameters(**other)) == Setting(**other)


def test_by_default_what_a_rule_needs_makes_a_difference() -> None:
    plain = multiplier("sqrt_d_k", Setting())
    for rule in SCALE_RULES.values():
        if {"layer", "position", "context_factor"} & set(rule.needs):
            assert abs(multiplier(rule.name, Setting()) / plain - 1) > 0.05, rule.name


@pytest.mark.parametrize(
    ("name", "setting", "message"),
    [
        ("log_d_k", Setting(d_k=1), "scale 1/ln d_k has no value at d_k = 1; choose another"),
        ("ssmax", Setting(n_keys=1), "scale 0.43 ln n/√d_k is 0 at d_k = 64, keys = 1; choose another"),
        ("log512_n", Setting(d_k=8, n_keys=1), "scale log₅₁₂ n/√d_k is 0 at d_k = 8, keys = 1; choose another"),
        ("cosine_log2_n", Setting(n_keys=1), "scale log₂(n² − n)·cos(q, k) has no value at keys = 1; choose another"),
    ],
)
def test_a_rule_without_a_multiplier_is_one_clear_line(name: str, setting: Setting, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        multiplier(name, setting)
    assert str(caught.value) == message


def test_every_name_has_a_rule_with_its_user_and_source() -> None:
    assert list(SCALE_RULES) == list(get_args(ScaleName))
    for name, rule in SCALE_RULES.items():
        assert rule.name == name
        assert rule.formula
        assert len(rule.formula) <= 22
        assert len(rule.label) <= 15
        assert rule.used_by
        assert rule.source
        assert not rule.note.endswith(".")


def test_no_two_rules_look_alike() -> None:
    assert len({rule.formula for rule in SCALE_RULES.values()}) == len(SCALE_RULES)
    assert len({rule.label for rule in SCALE_RULES.values()}) == len(SCALE_RULES)


def test_every_rule_can_be_chosen() -> None:
    assert set(FIELD["scale"].choices) == set(SCALE_RULES)


@every_rule
def test_multipliers_are_finite_at_the_bounds_of_the_parameters(rule: ScaleRule) -> None:
    for end in ("low", "high"):
        bounds = {name: getattr(FIELD[name], end) for name in rule.needs}
        try:
            value = multiplier(rule.name, Setting(**bounds))
        except ParameterError:
            assert end == "low"
        else:
            assert 0 < value < math.inf
