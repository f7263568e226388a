"""The code of comparisons of mechanisms: it prints the numbers that its comments say."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from attn_tui.core.lab import mechanisms
from attn_tui.core.lab.mechanisms import COMPARED, D_KS
from attn_tui.core.lab.results import MechanismRow
from attn_tui.core.parameters import Parameters
from attn_tui.core.program.sweep import mechanisms_code
from attn_tui.core.program.text import Dialect, NoCodeError
from cases import for_each
from printed_code import INSTALLED, compared, expected_in

SMALL = Parameters(n_keys=12, n_queries=5, batch=3)


def mechanism_rows(p: Parameters, d_ks: tuple[int, ...]) -> list[MechanismRow]:
    work = [(d_k, each) for d_k in d_ks for each in COMPARED]
    found = [[*mechanisms.measure(p, d_k, each)][-1].found for d_k, each in work]
    return [row for row in found if row is not None]


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
    p = replace(SMALL, **asked)
    text = mechanisms_code(p, mechanism_rows(p, (3, 65)), dialect, "attn-tui rules --mechanisms")
    assert len(expected_in(text)) == 2 * len(COMPARED)
    assert compared(text) == ""


@pytest.mark.slow
def test_the_code_of_mechanisms_reaches_every_width() -> None:
    text = mechanisms_code(SMALL, mechanism_rows(SMALL, D_KS), "python", "attn-tui rules --mechanisms")
    assert compared(text) == ""


def test_mechanisms_whose_scores_may_overflow_have_no_code() -> None:
    p = replace(SMALL, precision="float16", arithmetic="eager", mean_q=20.0, mean_k=20.0)
    with pytest.raises(NoCodeError, match="overflow"):
        mechanisms_code(p, mechanism_rows(p, (256,)), "python", "attn-tui rules --mechanisms")
