from typing import Any

import numpy as np
import pytest
from attn_tui.core.attention.normalisation import EPSILON, Normalisation, normalise, normalise_backward
from attn_tui.core.errors import InputError

X = np.random.default_rng(0).normal(2, 3, (4, 5, 16))


def test_rms_norm_gives_each_vector_a_root_mean_square_of_one() -> None:
    y = normalise(X, "rms")
    assert np.sqrt((y**2).mean(axis=-1)) == pytest.approx(1, abs=1e-6)
    assert y[0, 0] / X[0, 0] == pytest.approx(y[0, 0, 0] / X[0, 0, 0])


def test_layer_norm_gives_each_vector_mean_zero_and_variance_one() -> None:
    y = normalise(X, "layer_norm")
    assert y.mean(axis=-1) == pytest.approx(0, abs=1e-12)
    assert y.var(axis=-1) == pytest.approx(1, abs=1e-5)


def test_l2_norm_gives_each_vector_length_one() -> None:
    assert np.linalg.norm(normalise(X, "l2"), axis=-1) == pytest.approx(1, abs=1e-14)


def test_l2_and_rms_differ_by_the_root_of_the_width() -> None:
    assert normalise(X, "rms") == pytest.approx(4 * normalise(X, "l2"), rel=1e-6)


def test_none_changes_nothing() -> None:
    assert normalise(X, "none") is X


@pytest.mark.parametrize("how", ["rms", "layer_norm", "l2"])
def test_components_may_lie_along_any_axis(how: Normalisation) -> None:
    assert normalise(X.swapaxes(1, 2), how, axis=1) == pytest.approx(normalise(X, how).swapaxes(1, 2), abs=1e-14)


@pytest.mark.parametrize("how", ["rms", "layer_norm", "l2"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zero_and_tiny_vectors_stay_finite(how: Normalisation, dtype: str) -> None:
    tiny = np.array([[0.0, 0.0], [1e-30, -1e-30], [1e-13, 0.0]], dtype)
    with np.errstate(all="raise", under="ignore"):
        y = normalise(tiny, how)
        d = normalise_backward(np.ones_like(tiny), tiny, how)
    assert y.dtype == d.dtype == dtype
    assert np.all(y[0] == 0)
    assert np.all(np.isfinite(y))
    assert np.all(np.isfinite(d))


@pytest.mark.parametrize("how", ["none", "rms", "layer_norm", "l2"])
@pytest.mark.parametrize("size", [1.0, 1e-3, 1e-14])
def test_the_way_back_is_the_derivative(how: Normalisation, size: float) -> None:
    rng = np.random.default_rng(1)
    x, upstream, direction = (rng.standard_normal((3, 6)) for _ in range(3))
    x, step = size * x, 1e-5 * size

    def along(t: float) -> Any:
        return (upstream * normalise(x + t * direction, how)).sum()

    expected = (along(step) - along(-step)) / (2 * step)
    assert (normalise_backward(upstream, x, how) * direction).sum() == pytest.approx(expected, rel=1e-6)


def test_an_unknown_normalisation_is_named_with_those_that_are_known() -> None:
    with pytest.raises(InputError, match="'batch' is not known; choose one of none, rms, layer_norm, l2"):
        normalise(X, "batch")  # type: ignore[arg-type]
    assert set(EPSILON) == {"none", "rms", "layer_norm", "l2"}
