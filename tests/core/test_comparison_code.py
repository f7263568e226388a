"""The code of comparisons of mechanisms and of weightings: it prints the numbers that its comments say."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from attn_tui.core.export.code.compared.mechanisms import mechanisms_code
from attn_tui.core.export.code.compared.weightings import weightings_code
from attn_tui.core.export.code.program import Dialect, NoCodeError
from attn_tui.core.lab import mechanisms
from attn_tui.core.lab.mechanisms import COMPARED, D_KS
from attn_tui.core.lab.results import MechanismRow
from attn_tui.core.lab.weighting import comparison
from attn_tui.core.lab.weighting.results import WEIGHTINGS, WeightingRow
from attn_tui.core.parameters import Parameters
from printed_code import INSTALLED, compared, expected_in, lines_of

SMALL = Parameters(n_keys=12, n_queries=5, batch=3)


def mechanism_rows(p: Parameters, d_ks: tuple[int, ...]) -> list[MechanismRow]:
    work = [(d_k, each) for d_k in d_ks for each in COMPARED]
    found = [[*mechanisms.measure(p, d_k, each)][-1].found for d_k, each in work]
    return [row for row in found if row is not None]


def weighting_rows(p: Parameters) -> list[WeightingRow]:
    return next(step.found for step in comparison.stream(p) if step.found is not None)


@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"mask": "causal", "n_queries": 12},
        {"precision": "bfloat16"},
        {"precision": "float16", "arithmetic": "eager"},
        {"precision": "float64", "components": "laplace", "correlation": 0.3},
        {"sink": "logit", "sink_logit": -1.0, "gain": 2.0},
    ],
    ids=str,
)
def test_the_code_of_mechanisms_prints_their_statistics(asked: Mapping[str, Any], dialect: Dialect) -> None:
    p = replace(SMALL, **asked)
    text = mechanisms_code(p, mechanism_rows(p, (3, 65)), dialect, "attn-tui rules --mechanisms")
    assert len(expected_in(text)) == 2 * len(COMPARED)
    assert compared(text) == ""
    if "precision" not in asked:
        assert lines_of(text) <= 52


@pytest.mark.slow
def test_the_code_of_mechanisms_reaches_every_width() -> None:
    text = mechanisms_code(SMALL, mechanism_rows(SMALL, D_KS), "python", "attn-tui rules --mechanisms")
    assert compared(text) == ""


def test_mechanisms_whose_scores_may_overflow_have_no_code() -> None:
    p = replace(SMALL, precision="float16", arithmetic="eager", mean_q=20.0, mean_k=20.0)
    with pytest.raises(NoCodeError, match="overflow"):
        mechanisms_code(p, mechanism_rows(p, (256,)), "python", "attn-tui rules --mechanisms")


@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"mask": "causal", "n_queries": 12},
        {"mask": "causal", "n_queries": 20, "scale": "ssmax"},
        {"d_k": 15},
        {"scale": "none", "d_k": 256, "std_q": 4.0},
        {"scale": "rms_sqrt_d_k", "norm_gain": 2.0},
        {"scale": "cosine_10", "mask": "causal"},
        {"scale": "log(n)/sqrt(d)*layer", "layer": 3, "mask": "causal"},
        {"components": "rademacher", "scale": "none", "d_k": 4},
        {"n_keys": 2048, "n_queries": 512, "mask": "causal"},
    ],
    ids=str,
)
def test_the_code_of_weightings_prints_what_is_measured_of_each(asked: Mapping[str, Any], dialect: Dialect) -> None:
    p = replace(SMALL, **asked)
    rows = weighting_rows(p)
    text = weightings_code(p, rows, dialect, "attn-tui rules --weightings")
    assert [*expected_in(text)] == [WEIGHTINGS[row.name].label for row in rows if not row.fault]
    assert compared(text) == ""
    assert lines_of(text) <= 60
