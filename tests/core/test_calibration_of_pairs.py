"""A short battery of simulated pairs: two healthy computations of a head are the same, one with a fault is not."""

from __future__ import annotations

import pytest
from compare_pairs import faulty_pairs, healthy_pairs, is_coarse, rates


def test_two_healthy_computations_of_a_head_are_the_same() -> None:
    for words, found in healthy_pairs(4, range(36)):
        assert found.first is None or is_coarse(found), words


def test_halved_outputs_and_weights_are_found_whatever_the_arithmetic() -> None:
    for fault, words, found in faulty_pairs(4, 2):
        assert found.first is not None, (fault, words)


@pytest.mark.slow
def test_few_healthy_pairs_differ_and_faults_are_found() -> None:
    totals = rates(5, (540, 80))
    assert totals["differing"][0] <= 2
    assert totals["found"][0] >= 0.9 * totals["found"][1]
