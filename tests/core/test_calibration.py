"""A short battery of simulated heads: no healthy one is accused, and faults are named."""

from __future__ import annotations

import pytest
from calibrate import FAULTS, calibrate, causes_of, faulty, healthy


@pytest.mark.slow
def test_healthy_heads_are_not_accused_and_faults_are_named() -> None:
    counts = (108, 2 * len(FAULTS), 20)
    totals = calibrate(1, counts)
    assert totals["accused"][0] == 0
    assert totals["unexplained"][0] <= counts[0] / 100
    assert totals["named"][0] >= 0.95 * counts[1]
    assert totals["both"][0] >= 0.7 * counts[2]
    assert totals["either"][0] >= 0.9 * counts[2]  # all but one or two of twenty


def test_a_few_healthy_heads_of_each_family_are_not_accused() -> None:
    assert {verdict.word for _, verdict, _ in healthy(2, range(18))} <= {"healthy", "undecided"}


def test_common_errors_of_an_output_s_components_accuse_no_head() -> None:
    assert [verdict.word for _, verdict, _ in healthy(8101, (4679, 8403))] == ["healthy", "healthy"]


@pytest.mark.slow
def test_of_two_faults_one_of_which_is_the_scale_both_are_findings() -> None:
    found = [(names, verdict) for names, _, verdict in faulty(3, 8, 2) if "scale missing" in names]
    assert found
    for names, verdict in found:
        assert {FAULTS[name][0] for name in names} <= causes_of(verdict)
