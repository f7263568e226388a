"""The verdict on a head."""

import pytest
from attn_tui.core.statistics.measurement import Estimate
from attn_tui.tui.views.verdict import Verdict, verdict


@pytest.mark.parametrize(
    ("max_weight", "entropy_fraction", "first_key_weight", "word"),
    [
        (None, None, None, "no keys"),
        (0.05, 0.99, 0.05, "nearly uniform"),
        (0.40, 0.99, 0.40, "nearly uniform"),  # with few keys the first one gets much
        (0.60, 0.40, 0.55, "sink"),
        (0.99, 0.01, 0.98, "sink"),  # low entropy, but not a look-up
        (0.99, 0.01, 0.03, "one-hot"),
        (1.00, None, 1.00, "one-hot"),  # one visible key
        (0.50, 0.60, 0.20, ""),
    ],
)
def test_the_first_verdict_that_applies_is_given(
    max_weight: float | None, entropy_fraction: float | None, first_key_weight: float | None, word: Verdict
) -> None:
    values = {"max_weight": max_weight, "entropy_fraction": entropy_fraction, "first_key_weight": first_key_weight}
    assert verdict({name: Estimate(value, None) for name, value in values.items()}) == word
