"""The scale rules: what every declaration must have; `test_sources.py` has their multipliers."""

import math
from typing import Any, cast

import pytest
from attn_tui.core.errors import ParameterError
from attn_tui.core.parameters import FIELD, Parameters
from attn_tui.core.scales import SCALE_RULES, RuleSetting, ScaleRule, multiplier
from cases import for_each

SETTINGS = {*RuleSetting._fields}
every_rule = for_each("rule", SCALE_RULES.values())


class Recording:
    """A setting that notes which attributes are read."""

    def __init__(self) -> None:
        self.read: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.read.add(name)
        return getattr(RuleSetting(), name)


@every_rule
def test_a_rule_declares_everything_that_its_multiplier_needs(rule: ScaleRule) -> None:
    recording = Recording()
    rule.multiplier(cast(RuleSetting, recording))
    assert recording.read == set(rule.needs)


@every_rule
def test_a_parameter_applies_under_the_rules_that_need_it(rule: ScaleRule) -> None:
    for name in SETTINGS - {"d_k", "n_keys"}:
        assert FIELD[name].applies(Parameters(scale=rule.name)) == (name in rule.needs), name


def test_a_setting_is_part_of_the_parameters() -> None:
    assert Parameters().setting == RuleSetting()
    other = {name: FIELD[name].stepped(getattr(RuleSetting(), name), 1) for name in SETTINGS}
    p = Parameters()
    for name, value in other.items():
        p = p.with_value(name, value)
    assert p.setting._asdict() == other


def test_the_default_layer_position_and_context_factor_matter() -> None:
    plain = multiplier("sqrt_d_k", RuleSetting())
    for rule in SCALE_RULES.values():
        if {"layer", "position", "context_factor"} & set(rule.needs):
            assert abs(multiplier(rule.name, RuleSetting()) / plain - 1) > 0.05, rule.name


@pytest.mark.parametrize(
    ("name", "setting", "fault"),
    [
        ("log_d_k", RuleSetting(d_k=1), "has no value at d_k = 1"),
        ("ssmax", RuleSetting(n_keys=1), "is 0 at d_k = 64, keys = 1"),
        ("log512_n", RuleSetting(d_k=8, n_keys=1), "is 0 at d_k = 8, keys = 1"),
        ("cosine_log2_n", RuleSetting(n_keys=1), "has no value at keys = 1"),
        ("yarn", RuleSetting(context_factor=0), "has no value at d_k = 64, context factor = 0"),
    ],
)
def test_a_rule_without_a_multiplier_is_refused_in_one_line(name: str, setting: RuleSetting, fault: str) -> None:
    with pytest.raises(ParameterError) as caught:
        multiplier(name, setting)
    assert str(caught.value) == f"scale {SCALE_RULES[name].formula} {fault}; choose another"


@every_rule
def test_a_rule_has_short_names_a_user_and_a_source(rule: ScaleRule) -> None:
    assert SCALE_RULES[rule.name] is rule
    assert 0 < len(rule.formula) <= 33
    assert 0 < len(rule.label) <= 15
    assert rule.used_by
    assert rule.source
    assert not rule.note.endswith(".")


def test_formulas_and_labels_of_rules_are_unique() -> None:
    assert len({rule.formula for rule in SCALE_RULES.values()}) == len(SCALE_RULES)
    assert len({rule.label for rule in SCALE_RULES.values()}) == len(SCALE_RULES)


def test_every_rule_can_be_chosen() -> None:
    assert set(FIELD["scale"].choices) == set(SCALE_RULES)


@every_rule
def test_a_multiplier_is_positive_and_finite_within_the_bounds_of_the_parameters(rule: ScaleRule) -> None:
    for end in ("low", "high"):
        bounds = {name: getattr(FIELD[name], end) for name in rule.needs}
        try:
            value = multiplier(rule.name, RuleSetting(**bounds))
        except ParameterError:
            assert end == "low"
        else:
            assert 0 < value < math.inf


@pytest.mark.parametrize(
    ("name", "instead"), [("mup", "8/d"), ("sqrt-half-d-k", "1/sqrt(d/2)"), ("cosine_100", "cosine_learned")]
)
def test_a_rule_that_is_a_value_says_what_to_type_instead(name: str, instead: str) -> None:
    with pytest.raises(ParameterError, match="not a rule any more") as refused:
        FIELD["scale"].parse(name)
    assert f"type {instead}" in str(refused.value)
    FIELD["scale"].parse(instead)
