"""Widths that models use, where stepping through d_k stops."""

import pytest
from attn_tui.core.models import MODEL_WIDTHS, landmarks, next_width


def test_landmarks_are_the_widths_of_models_and_powers_of_two_beyond() -> None:
    widest = max(MODEL_WIDTHS)
    powers = [2**power for power in range(20) if widest < 2**power < 5000]
    assert landmarks(range(1, 5000)) == [*MODEL_WIDTHS, *powers]
    assert landmarks([8, 64, 65, 1000]) == [64]


@pytest.mark.parametrize("d_k", [1, 64, 65, 100, 9999])
def test_the_next_width_is_the_nearest_on_that_side_or_the_same(d_k: int) -> None:
    assert next_width(d_k, 1) == min((width for width in MODEL_WIDTHS if width > d_k), default=d_k)
    assert next_width(d_k, -1) == max((width for width in MODEL_WIDTHS if width < d_k), default=d_k)
