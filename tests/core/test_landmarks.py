"""Widths that are worth a stop."""

import pytest
from attn_tui.core.landmarks import MODEL_WIDTHS, landmarks, next_width


def test_landmarks_are_the_widths_of_models_and_powers_of_two_beyond() -> None:
    assert landmarks(range(1, 5000)) == [*MODEL_WIDTHS, 1024, 2048, 4096]
    assert landmarks([8, 64, 65, 1000]) == [64]


@pytest.mark.parametrize(
    ("d_k", "direction", "found"),
    [(64, 1, 80), (64, -1, 32), (65, -1, 64), (1, -1, 1), (576, 1, 576), (9999, -1, 576)],
)
def test_the_next_width_is_the_nearest_on_that_side(d_k: int, direction: int, found: int) -> None:
    assert next_width(d_k, direction) == found
