"""A formula as a scale rule: the same numbers as the rule of the catalogue with that formula, everywhere."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from attn_tui.core.errors import ParameterError
from attn_tui.core.grid import parse_values
from attn_tui.core.lab import rule_curves
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.results import RULES, Order, rules_for
from attn_tui.core.parameters import FIELD, Parameters, changes, setting_a
from attn_tui.core.scales import SCALE_RULES, RuleSetting, multiplier, multipliers, row_multiplier, scale_rule
from attn_tui.core.theory.predict import predict
from attn_tui.core.theory.saturation import saturation
from attn_tui.core.work.engines import run as run_parts
from attn_tui.core.work.part import results_of
from attn_tui.core.work.rules import row_parts
from cases import for_each
from sweeps import points

SSMAX = "0.43*log(n)/sqrt(d)"
SAME = [
    ("1/sqrt(d)", "sqrt_d_k"),
    ("1/log(d)", "log_d_k"),
    (SSMAX, "ssmax"),
    ("0.43·ln n_keys ÷ √d_k", "ssmax"),
    ("1/√(d_k)", "sqrt_d_k"),
    ("1/(sqrt(d)*(layer+1))", "inverse_layer"),
]
SMALL = Parameters(d_k=16, n_keys=24, n_queries=8, batch=4)
same = for_each(("formula", "rule"), SAME)


def alike(found: float | None, expected: float | None, rel: float) -> bool:
    """Return whether two values agree, or neither exists."""
    if found is None or expected is None:
        return found is expected
    return found == pytest.approx(expected, rel=rel, abs=1e-9)


@same
def test_a_formula_has_the_multiplier_of_the_same_rule(formula: str, rule: str) -> None:
    for setting in (RuleSetting(), RuleSetting(d_k=80, n_keys=1000, layer=3)):
        assert multiplier(formula, setting) == pytest.approx(multiplier(rule, setting), rel=1e-14)
    d_ks = np.array([4.0, 64.0])
    assert multipliers(formula, RuleSetting(), d_ks) == pytest.approx(
        multipliers(rule, RuleSetting(), d_ks), rel=1e-14
    )
    ours, theirs = scale_rule(formula), SCALE_RULES[rule]
    assert (set(ours.needs), ours.by_row, ours.normalise) == (set(theirs.needs), theirs.by_row, theirs.normalise)


@same
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_a_formula_measures_what_the_same_rule_measures(formula: str, rule: str, mask: str) -> None:
    p = SMALL.with_value("mask", mask)
    ours, theirs = (run(p.with_value("scale", name)).columns[1] for name in (formula, rule))
    assert ours.rule == formula
    for name, estimate in theirs.measured.items():
        assert alike(ours.measured[name].value, estimate.value, 1e-5), name


@same
def test_a_formula_has_the_theory_of_the_same_rule(formula: str, rule: str) -> None:
    ours, theirs = (predict(SMALL.with_value("scale", name)).columns[1] for name in (formula, rule))
    for name, exact in theirs.values.items():
        assert alike(ours.values[name], exact, 1e-12), name
    ours, theirs = saturation(SMALL, formula), saturation(SMALL, rule)
    assert ours is not None
    assert theirs is not None
    assert ours.saturated_at == theirs.saturated_at
    assert alike(ours.ratio, theirs.ratio, 1e-12)


def test_each_row_of_a_causal_mask_has_its_own_n() -> None:
    assert row_multiplier("log(n)/sqrt(d)", RuleSetting(n_keys=1)) == 0
    assert row_multiplier("log(n)/sqrt(d)", RuleSetting(n_keys=9)) == pytest.approx(2.1972245773 / 8)


def test_a_sweep_measures_a_formula_beside_rules() -> None:
    values = parse_values("sqrt_d_k, max(1/d, 0.1) ,1/sqrt(d)", FIELD["scale"])
    assert values == ("sqrt_d_k", "max(1/d, 0.1)", "1/sqrt(d)")
    found = points(SMALL, [8, 16], vary=("scale", values))
    entropy = {(p.parameters.scale, p.parameters.d_k): p.measurement.columns[1].measured["entropy"] for p in found}
    assert entropy["1/sqrt(d)", 16] == entropy["sqrt_d_k", 16]
    assert entropy["max(1/d, 0.1)", 8] != entropy["sqrt_d_k", 8]


def test_a_chosen_formula_has_a_row_after_those_of_the_catalogue() -> None:
    p = SMALL.with_value("scale", "1/sqrt(d)")
    found = {row.rule: row for done in run_parts(row_parts(p)) for row in results_of(done)}
    assert [row.rule for row in Order().of(found.values())] == [*RULES, "1/sqrt(d)"] == [*rules_for(p.scale)]
    assert found["1/sqrt(d)"].measured == found["sqrt_d_k"].measured
    *_, (_, [curves]) = rule_curves.stream(p)
    assert curves.values["1/sqrt(d)"] == curves.values["sqrt_d_k"]
    assert rules_for("ssmax") == RULES


@for_each(
    ("formula", "fault"),
    [
        ("1/(n-128)", "has no value at keys = 128; choose another"),
        ("n-200", "is -72 at keys = 128; choose another"),
        ("log(d/64)", "is 0 at d_k = 64; choose another"),
        ("exp(d)^9", "is 1.42437e+250 at d_k = 64; it must be from 1e-09 to 1e+06"),
        ("exp(d)^99", "has no value at d_k = 64"),
        ("exp(-d)", "is 1.60381e-28 at d_k = 64; it must be from 1e-09 to 1e+06"),
        ("(0-d)^.5", "has no value"),
        ("0", "is 0; choose another"),
    ],
)
def test_a_formula_without_a_multiplier_here_is_refused_in_one_line(formula: str, fault: str) -> None:
    with pytest.raises(ParameterError) as caught:
        multiplier(formula, Parameters().setting)
    assert str(caught.value).startswith(f"scale {formula} {fault}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("formula", ["1e6*d/d", "1e-9*d/d"])
def test_the_largest_and_the_smallest_multiplier_can_be_measured(formula: str) -> None:
    p = replace(SMALL, std_q=100.0, std_k=100.0, scale=formula)
    column = run(p).columns[1]
    uniform = formula.startswith("1e-9")
    entropy = column.measured["entropy_fraction"].value
    assert entropy == pytest.approx(1.0 if uniform else 0.0, abs=1e-6)


def _checked(scale: str) -> Callable[[], object]:
    return lambda: Parameters(scale=scale)


@pytest.mark.parametrize("scale", ["sqrt_dk", "sqrt-d-k", "", "file", "SQRT_D_K"])
def test_a_misspelt_name_is_refused_with_the_accepted_names_and_formulas(scale: str) -> None:
    with pytest.raises(ParameterError, match=r"scale: must be one of none, .* or a formula of d, n, layer, pos,"):
        _checked(scale)()


def test_stepping_from_a_formula_leads_to_the_ends_of_the_catalogue() -> None:
    assert FIELD["scale"].stepped("1/sqrt(d)", 1) == RULES[0]
    assert FIELD["scale"].stepped("1/sqrt(d)", -1) == RULES[-1]


def test_parameters_apply_under_a_formula_that_names_them() -> None:
    assert FIELD["layer"].applies(Parameters(scale="1/(layer+d)"))
    assert FIELD["position"].applies(Parameters(scale="1/sqrt(d+pos)"))
    assert not FIELD["layer"].applies(Parameters(scale="1/sqrt(d+pos)"))


def test_a_long_formula_has_a_short_label() -> None:
    assert scale_rule("1/sqrt(d)").label == "1/sqrt(d)"
    assert scale_rule("min(1/sqrt(d), 0.2)").label == "min(1/…, 0.2)"


def test_a_may_be_a_formula_beside_b() -> None:
    p = replace(SMALL, against="1/sqrt(d),components=laplace")
    assert setting_a(p) == replace(SMALL, scale="1/sqrt(d)", components="laplace")
    assert changes("max(1/d, 0.1)") == {"scale": "max(1/d, 0.1)"}
    a, b = run(replace(SMALL, against="1/sqrt(d)")).columns
    assert (a.rule, b.rule) == ("1/sqrt(d)", "sqrt_d_k")
    assert a.measured == b.measured
    assert FIELD["layer"].applies(replace(SMALL, against="1/(layer+d)"))
    assert FIELD["against"].stepped("1/sqrt(d)", 1) == "unscaled"


def test_a_faulty_formula_for_a_is_refused_at_its_character() -> None:
    with pytest.raises(
        ParameterError, match=r"against: character 8 of 'log\(n\)/sqr\(d\)': unknown name sqr"
    ) as caught:
        changes("log(n)/sqr(d)")
    assert caught.value.pointer.endswith("       ^")
