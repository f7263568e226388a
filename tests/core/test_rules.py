"""The comparison of scale rules and of mechanisms: every number is what a single run measures, rules of n by row."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pytest
from attn_tui.core.attention.scores import AdditiveWeights
from attn_tui.core.errors import InputError, ParameterError
from attn_tui.core.lab import mechanisms, rule_curves, rules
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.results import MEASURED, SORTABLE, MechanismRow, Order, RuleCurves, RuleRow, listed_rules
from attn_tui.core.lab.scoring import weights_of
from attn_tui.core.parameters import Parameters, rows_differ
from attn_tui.core.scales import SCALE_RULES, RuleSetting, multiplier, row_multiplier
from attn_tui.core.statistics.measurement import Estimate
from attn_tui.core.theory.predict import predict
from attn_tui.core.work.engines import run as run_parts
from attn_tui.core.work.part import Part, results_of
from attn_tui.core.work.rules import mechanism_parts, row_parts
from cases import for_each

Row = TypeVar("Row")
WIDTHS = mechanisms.D_KS
SMALL = Parameters(d_k=8, n_keys=12, n_queries=6, batch=4, d_v=8)
QUESTIONS = {
    "as usual": SMALL,
    "capped": replace(SMALL, softcap=5.0, mask="causal", sink="logit", precision="float16", seed=3),
    "additive": replace(SMALL, mechanism="additive", gain=4.0),
    "shifted": replace(SMALL, mean_q=1.0, mean_k=-2.0, correlation=0.5, components="laplace", precision="float64"),
    "settings": replace(SMALL, layer=2, position=100_000, context_factor=40.0, multiplier=0.3),
    "too small": replace(SMALL, d_k=1, n_keys=1),
}
every_question = pytest.mark.parametrize("p", QUESTIONS.values(), ids=QUESTIONS)


@pytest.fixture(autouse=True, scope="module")
def short_grids() -> Iterator[None]:
    """Few d_k, to keep the tests short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rule_curves, "LAST", 128)
        patch.setattr(mechanisms, "D_KS", (16, 64, 256))
        yield


def complete(parts: Iterable[Part[Row]]) -> list[Row]:
    """The results of all parts, whose progress rises."""
    found = list(run_parts(parts))
    assert [done.seconds for done in found] == sorted(done.seconds for done in found)
    return [row for done in found for row in results_of(done)]


def measured(p: Parameters) -> dict[str, RuleRow]:
    rows = [*rules.faults(p), *complete(row_parts(p))]
    assert sorted(row.rule for row in rows) == sorted(SCALE_RULES)
    return {row.rule: row for row in rows}


def numbers(found: Estimate) -> list[float]:
    return [math.nan if number is None else number for number in found]


@every_question
def test_each_row_is_what_a_run_with_its_rule_measures(p: Parameters) -> None:
    found = measured(p)
    for rule, row in found.items():
        if row.fault:
            assert (row.multiplier, row.measured, row.value("logit_std")) == (None, {}, None)
            continue
        column = run(p.with_value("scale", rule)).columns[1]
        assert row.multiplier == column.multiplier
        assert list(row.measured) == list(column.measured)
        for name, estimate in column.measured.items():
            assert numbers(row.measured[name]) == pytest.approx(numbers(estimate), rel=2e-4, abs=1e-6, nan_ok=True)


def test_a_rule_without_a_multiplier_says_why() -> None:
    found = measured(QUESTIONS["too small"])
    assert "has no value at d_k = 1" in found["log_d_k"].fault
    assert "keys = 1" in found["ssmax"].fault
    assert not found["sqrt_d_k"].fault


@pytest.mark.parametrize("first", ["yarn", "rms_none", "no such rule"])
def test_the_rule_asked_for_first_comes_first_and_all_rows_are_the_same(first: str) -> None:
    rows = complete(row_parts(SMALL, first))
    assert (rows[0].rule == first) == (first in SCALE_RULES)
    usual = measured(SMALL)
    assert {row.rule for row in rows} == {row.rule for row in usual.values() if not row.fault}
    for row in rows:
        for name, estimate in row.measured.items():
            assert numbers(estimate) == pytest.approx(
                numbers(usual[row.rule].measured[name]), rel=2e-4, abs=1e-6, nan_ok=True
            )


def test_the_chosen_rule_does_not_matter() -> None:
    one, other = measured(SMALL), measured(replace(SMALL, scale="rms_none"))
    assert all(one[rule].measured == other[rule].measured for rule in SCALE_RULES)


def test_only_scores_beyond_the_number_format_overflow() -> None:
    p = replace(SMALL, precision="float16", arithmetic="eager", std_q=100.0, std_k=100.0)
    found, curves = measured(p), curves_of(p)
    plain, normalised = found["none"].value("score_overflow"), found["cosine_10"].value("score_overflow")
    assert plain is not None
    assert 0 < plain < 1
    assert normalised == 0
    assert curves.values["none"][2] == pytest.approx(0, abs=1e-3), "of the rows without NaN"
    assert ["custom" in listed_rules(replace(SMALL, multiplier=c)) for c in (Parameters.multiplier, 0.3)] == [
        False,
        True,
    ]


def row(rule: str, multiplier: float | None, entropy: float | None = None) -> RuleRow:
    return RuleRow(rule, multiplier, {"entropy_fraction": Estimate(entropy, None)})


ROWS = [
    row("two_sqrt_d_k", 2.0, 0.5),
    row("none", 1.0),
    row("d_k", 2.0, 0.75),
    row("log_d_k", None),
    row("sqrt_d_k", 3.0, 0.5),
]


@for_each(
    ("order", "names"),
    [
        (Order(), "none sqrt_d_k d_k log_d_k two_sqrt_d_k"),
        (Order(reverse=True), "two_sqrt_d_k log_d_k d_k sqrt_d_k none"),
        (Order("multiplier"), "sqrt_d_k d_k two_sqrt_d_k none log_d_k"),
        (Order("multiplier", reverse=True), "none d_k two_sqrt_d_k sqrt_d_k log_d_k"),
        (Order("entropy_fraction"), "d_k sqrt_d_k two_sqrt_d_k none log_d_k"),
        (Order("entropy_fraction", reverse=True), "sqrt_d_k two_sqrt_d_k d_k none log_d_k"),
    ],
)
def test_rows_are_sorted_by_value_then_as_declared_with_missing_values_last(order: Order, names: str) -> None:
    assert [each.rule for each in order.of(ROWS)] == names.split()
    assert [each.rule for each in order.of(ROWS[::-1])] == names.split()


def test_rows_cannot_be_sorted_by_other_statistics() -> None:
    assert ("rule", "multiplier", *MEASURED) == SORTABLE
    with pytest.raises(InputError, match="must be one of rule, multiplier"):
        Order("jacobian_norm")


def curves_of(p: Parameters) -> RuleCurves:
    *_, before, last = steps = list(rule_curves.stream(p))
    assert [step.fraction for step in steps] == sorted(step.fraction for step in steps)
    assert last.fraction == 1
    [found] = last.found
    assert before.found == ()
    assert set(found.values) == set(SCALE_RULES)
    return found


@pytest.mark.parametrize("name", ["as usual", "capped", "shifted"])
def test_a_curve_is_the_entropy_of_runs_over_d_k(name: str) -> None:
    p = replace(QUESTIONS[name], n_keys=6, batch=3)
    found = curves_of(p)
    assert (found.draws, found.rows, found.d_ks[0], found.d_ks[-1]) == (3, 6, 4, 128)
    for rule in ("none", "sqrt_d_k", "log_d_k", "layer_norm_sqrt_d_k"):
        for at in (0, 5):
            asked = replace(p, d_k=found.d_ks[at], scale=rule)
            expected = run(asked, full=False).columns[1].measured["entropy_fraction"].value
            assert found.values[rule][at] == pytest.approx(expected, rel=2e-4)


def test_curves_lie_near_their_exact_values() -> None:
    p = replace(SMALL, n_queries=64)
    found = curves_of(p)
    assert found.draws * found.rows == 256
    for rule in ("none", "sqrt_d_k"):
        for d_k, value in list(zip(found.d_ks, found.values[rule], strict=True))[::3]:
            exact = predict(replace(p, d_k=d_k, scale=rule)).columns[1].values["entropy_fraction"]
            assert value == pytest.approx(exact, abs=0.06)


def test_curves_depend_neither_on_d_k_nor_on_the_chosen_rule() -> None:
    one = curves_of(SMALL)
    other = curves_of(replace(SMALL, d_k=77, scale="none"))
    assert one.values == other.values
    assert set(curves_of(replace(SMALL, n_keys=1)).values["ssmax"]) == {None}


@pytest.mark.parametrize(
    ("changes", "last"),
    [({}, 4096), ({"n_keys": 8192}, 1024), ({"mechanism": "additive"}, 1024), ({"mechanism": "cosine"}, 4096)],
)
def test_curves_end_before_they_become_expensive(
    changes: dict[str, Any], last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_curves, "LAST", 4096)
    d_ks = rule_curves.grid(replace(SMALL, **changes))
    assert d_ks == tuple(2**power for power in range(2, last.bit_length()))


def test_mechanisms_are_compared_at_powers_of_two() -> None:
    assert tuple(2**power for power in range(4, 11)) == WIDTHS


@pytest.fixture(scope="module")
def compared() -> list[MechanismRow]:
    p = replace(SMALL, softcap=3.0, scale="d_k", mechanism="bilinear", gain=2.0)
    return complete(mechanism_parts(p))


def test_each_mechanism_is_what_a_run_measures(compared: list[MechanismRow]) -> None:
    assert [(r.d_k, r.mechanism, r.rule, r.with_sink) for r in compared] == [
        (d_k, *each) for d_k in mechanisms.D_KS for each in mechanisms.COMPARED
    ]
    for found in compared:
        asked = replace(SMALL, d_k=found.d_k, mechanism=found.mechanism, scale=found.rule, gain=2.0)
        asked = replace(asked, sink="logit" if found.with_sink else "none")
        column = run(asked, full=False).columns[1]
        assert found.multiplier == column.multiplier
        for name in mechanisms.MEASURED:
            assert numbers(found.measured[name]) == pytest.approx(numbers(column.measured[name]), rel=2e-4)
        ends = [column.measured[name].value for name in ("logit_min", "logit_max")]
        size = max(abs(end) for end in ends if end is not None) / column.multiplier
        assert found.largest == pytest.approx(size, rel=1e-5)


def test_a_sink_takes_weight_from_the_same_scores(compared: list[MechanismRow]) -> None:
    plain, sunk = ([r for r in compared if (r.rule, r.with_sink) == ("sqrt_d_k", with_sink)] for with_sink in (0, 1))
    plain = [r for r in plain if r.mechanism == "dot_product"]
    assert len(plain) == len(sunk) == len(mechanisms.D_KS)
    for one, other in zip(plain, sunk, strict=True):
        assert one.largest == other.largest
        assert numbers(one.measured["max_weight"])[0] > numbers(other.measured["max_weight"])[0]


def test_scores_stay_within_their_bounds(compared: list[MechanismRow]) -> None:
    for found in compared:
        if found.mechanism in ("dot_product", "bilinear"):
            assert found.bound is None
            continue
        assert found.bound is not None
        assert found.largest is not None
        assert 0 < found.largest <= found.bound * (1 + 1e-6)
        if found.mechanism == "cosine":
            assert found.bound == 1
            continue
        weights = weights_of(replace(SMALL, d_k=found.d_k, mechanism="additive", gain=2.0))
        assert isinstance(weights, AdditiveWeights)
        assert found.bound == pytest.approx(float(np.abs(weights.v).sum()), rel=1e-5)
        assert found.largest > 1


def test_the_bound_of_additive_scores_grows_like_the_root_of_d_k(compared: list[MechanismRow]) -> None:
    bounds = {found.d_k: found.bound for found in compared if found.mechanism == "additive"}
    for d_k, bound in bounds.items():
        expected, spread = 2 * math.sqrt(2 * d_k / math.pi), 2 * math.sqrt(1 - 2 / math.pi)
        assert bound == pytest.approx(expected, abs=4 * spread)


P = Parameters(d_k=9, n_keys=14, n_queries=11, batch=5, mask="causal", scale="ssmax", precision="float64")
SEEN = np.minimum(np.arange(P.n_queries) + 1, P.n_keys)


@pytest.mark.parametrize("name", ["ssmax", "log512_n"])
def test_each_row_has_its_own_multiplier(name: str) -> None:
    p = replace(P, scale=name)
    measured = run(p).columns[1]
    assert measured.multiplier == multiplier(name, p.setting)
    assert measured.multipliers == tuple(multiplier(name, RuleSetting(p.d_k, n)) for n in (2, p.n_queries))
    assert run(p).columns[0].multipliers is None
    assert run(replace(p, mask="none")).columns[1].multipliers is None
    [row] = [row for done in run_parts(row_parts(p)) for row in results_of(done) if row.rule == name]
    assert row.estimate("entropy_fraction") == measured.measured["entropy_fraction"]
    theory = predict(p).columns[1]
    assert theory.saturation is not None
    assert theory.saturation.saturated_at == ()
    assert theory.values["logit_variance"] is None
    assert theory.values["first_key_weight"] == pytest.approx((1 / SEEN).mean())


@pytest.mark.parametrize("name", ["ssmax", "log512_n"])
def test_the_exact_saturation_ratio_is_that_of_long_rows(name: str) -> None:
    p = replace(P, scale=name, d_k=64, n_keys=512, n_queries=512)
    exact, measured = predict(p).columns[1].saturation, run(p).columns[1].measured["saturation"]
    assert exact is not None
    assert measured.value == pytest.approx(exact.std / exact.threshold, rel=0.03)  # short rows spread less


@pytest.mark.usefixtures("short_rule_grids")
@pytest.mark.parametrize("sink", ["none", "logit"])
@pytest.mark.parametrize(("precision", "softcap"), [("float32", 0.0), ("bfloat16", 0.0), ("float32", 2.0)])
def test_the_curves_of_rules_use_the_rows_multipliers(precision: str, softcap: float, sink: Any) -> None:
    p = replace(P, precision=precision, softcap=softcap, sink=sink, batch=4, n_queries=14)
    *_, (_, [curves]) = rule_curves.stream(p)
    at = curves.d_ks.index(16)
    found = run(replace(p, d_k=16, batch=curves.draws)).columns[1].measured["entropy_fraction"].value
    assert curves.values["ssmax"][at] == pytest.approx(found, rel=2e-2 if precision == "bfloat16" else 1e-4)


def test_rows_differ_only_under_a_causal_mask_and_rules_of_n() -> None:
    assert rows_differ(P, "ssmax")
    assert not rows_differ(P, "sqrt_d_k")
    assert not rows_differ(replace(P, mask="none"), "ssmax")
    assert not rows_differ(P, "cosine_log2_n")  # its n is a length of training texts, the same for all rows
    assert row_multiplier("ssmax", RuleSetting(n_keys=1)) == 0
    with pytest.raises(ParameterError):
        row_multiplier("log_d_k", RuleSetting(d_k=1))
