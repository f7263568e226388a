"""The code of sweeps, rules, mechanisms and worked examples: it prints the numbers that its comments say."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from attn_tui.core.attention.worked_example import Example, relevant, work_out_sides
from attn_tui.core.lab import mechanisms
from attn_tui.core.lab.mechanisms import COMPARED, D_KS
from attn_tui.core.lab.results import MechanismRow, RuleRow, Target
from attn_tui.core.lab.rules import faults
from attn_tui.core.parameters import Parameters
from attn_tui.core.program.lab import softmax_code
from attn_tui.core.program.statistics import CODE
from attn_tui.core.program.sweep import mechanisms_code, rules_code, sweep_code
from attn_tui.core.program.text import Dialect, NoCodeError
from attn_tui.core.scales import SCALE_RULES
from attn_tui.core.tables.lab import SweepResult
from attn_tui.core.theory.predict import predict
from attn_tui.core.work.engines import run as run_parts
from attn_tui.core.work.part import results_of
from attn_tui.core.work.rules import row_parts
from cases import for_each
from printed_code import INSTALLED, compared, expected_in
from sweeps import points

SMALL = Parameters(d_k=16, n_keys=12, n_queries=10, batch=3, d_v=8)


def swept(p: Parameters, d_ks: tuple[int, ...] = (1, 8, 70), **asked: Any) -> SweepResult:
    statistics = asked.pop("statistics", ())
    found = [(point, predict(point.parameters)) for point in points(p, d_ks, full=True, **asked)]
    vary, target, n_keys = asked.get("vary"), asked.get("target"), asked.get("n_keys", ())
    return SweepResult(p, d_ks, found, vary, target, statistics, n_keys)


@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"d_ks": (8,)},
        {"d_ks": (8, 16)},
        {"n_keys": (4, 9, 14)},
        {"vary": ("scale", ["none", "ssmax", "d_k"])},
        {"vary": ("precision", ["float32", "bfloat16"])},
        {"vary": ("seed", [0, 3])},
        {"vary": ("mask", ["none", "causal"]), "n_keys": (4, 30)},
        {"n_keys": (2, 9, 30), "statistics": ("saturation", "grad_q_median")},  # as a map
        {"statistics": tuple(CODE)},
        {"statistics": tuple(CODE), "vary": ("mask", ["none", "causal"])},
        {"statistics": tuple(CODE), "vary": ("sink", ["none", "logit"])},
        {"statistics": tuple(CODE), "vary": ("precision", ["bfloat16", "float64"])},
    ],
    ids=str,
)
def test_the_code_of_a_sweep_prints_its_points(asked: dict[str, Any], dialect: Dialect) -> None:
    found = swept(SMALL, **asked)
    text = sweep_code(found, dialect, "attn-tui sweep")
    assert len(expected_in(text)) == 2 * len(found.points)  # A and B
    assert compared(text) == ""


@pytest.mark.parametrize("dialect", INSTALLED)
@for_each("against", ["d_k", "precision=bfloat16", "n_keys=5"])
def test_the_code_of_a_sweep_prints_both_settings(against: str, dialect: Dialect) -> None:
    assert (
        compared(sweep_code(swept(replace(SMALL, against=against, mask="causal")), dialect, "attn-tui sweep")) == ""
    )


def test_a_sweep_to_a_standard_error_has_no_code() -> None:
    with pytest.raises(NoCodeError, match="--stderr"):
        sweep_code(swept(SMALL, (4,), target=Target(0.5)), "python", "attn-tui sweep")


def test_statistics_without_code_are_named() -> None:
    found = swept(SMALL, statistics=("entropy", "grad_q_top1_share"))
    assert "# Not printed: share of the top 1 % of rows." in sweep_code(found, "python", "attn-tui sweep")
    with pytest.raises(NoCodeError, match="grad_q_top1_share"):
        sweep_code(swept(SMALL, statistics=("grad_q_top1_share",)), "python", "attn-tui sweep")


@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize(
    "changed",
    [{}, {"mask": "causal"}, {"scale": "log(n)/d"}, {"precision": "float16", "arithmetic": "eager"},
     {"mechanism": "bilinear", "gain": 2.0}, {"softcap": 3.0, "norm_gain": 1.5}],
    ids=str,
)  # fmt: skip
def test_the_code_of_rules_prints_every_rule(changed: dict[str, Any], dialect: Dialect) -> None:
    p = replace(SMALL, **changed)
    rows: list[RuleRow] = [*faults(p), *(row for done in run_parts(row_parts(p)) for row in results_of(done))]
    text = rules_code(p, rows, dialect, "attn-tui rules")
    assert len(expected_in(text)) == len([row for row in rows if row.multiplier]) >= len(SCALE_RULES) - 1
    assert compared(text) == ""


@pytest.mark.parametrize("dialect", INSTALLED)
@for_each(
    ("example", "changed"),
    [(Example(), {}), (Example((1.0, 2.5), 0.5, 30.0), {"scale": "d_k", "d_k": 3}),
     (Example((8.8, 4.4, 4.4)), {"scale": "yarn", "against": "log(n)/sqrt(d)"})],
)  # fmt: skip
def test_the_code_of_a_worked_example_prints_its_weights(
    example: Example, changed: dict[str, Any], dialect: Dialect
) -> None:
    p = relevant(replace(Parameters(), **changed))
    text = softmax_code(example, p, work_out_sides(example, p), dialect, "attn-tui softmax")
    assert len(expected_in(text)) == len(example.scores) + 3
    assert compared(text, least=1e-12) == ""


FEW = Parameters(n_keys=12, n_queries=5, batch=3)


def mechanism_rows(p: Parameters, d_ks: tuple[int, ...]) -> list[MechanismRow]:
    work = [(d_k, each) for d_k in d_ks for each in COMPARED]
    return [row for d_k, each in work for step in mechanisms.measure(p, d_k, each) for row in step.found]


@pytest.mark.parametrize("dialect", INSTALLED)
@for_each(
    "asked",
    [
        {},
        {"mask": "causal", "n_queries": 12},
        {"precision": "bfloat16"},
        {"precision": "float16", "arithmetic": "eager"},
        {"precision": "float64", "components": "laplace", "correlation": 0.3},
        {"sink": "logit", "sink_logit": -1.0, "gain": 2.0},
    ],
)
def test_the_code_of_mechanisms_prints_their_statistics(asked: Mapping[str, Any], dialect: Dialect) -> None:
    p = replace(FEW, **asked)
    text = mechanisms_code(p, mechanism_rows(p, (3, 65)), dialect, "attn-tui rules --mechanisms")
    assert len(expected_in(text)) == 2 * len(COMPARED)
    assert compared(text) == ""


@pytest.mark.slow
def test_the_code_of_mechanisms_reaches_every_width() -> None:
    text = mechanisms_code(FEW, mechanism_rows(FEW, D_KS), "python", "attn-tui rules --mechanisms")
    assert compared(text) == ""


def test_mechanisms_whose_scores_may_overflow_have_no_code() -> None:
    p = replace(FEW, precision="float16", arithmetic="eager", mean_q=20.0, mean_k=20.0)
    with pytest.raises(NoCodeError, match="overflow"):
        mechanisms_code(p, mechanism_rows(p, (256,)), "python", "attn-tui rules --mechanisms")
