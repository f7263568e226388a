"""Measurements at the bounds of their parameters: no warning, only finite numbers, and the right ones."""

from typing import Any

import numpy as np
import pytest
from attn_tui.core.errors import InputError, ParameterError
from attn_tui.core.field import Field
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import FIELDS, Parameters
from attn_tui.core.theory.predict import theory_of
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

SMALL: dict[str, Any] = {"batch": 3, "n_queries": 6, "n_keys": 12, "d_k": 8, "d_v": 4}
WITH_LEAST = [field for field in FIELDS if field.least]


@for_each("field", WITH_LEAST)
def test_a_number_of_a_tiny_size_is_refused(field: Field) -> None:
    for size in (field.least, field.high):
        Parameters().with_value(field.name, size)
    assert field.accepted.endswith(" (0 or at least 1e-06 in size)")
    for size in (5e-324, 1e-300, 1e-40, 9e-7, -5e-324):
        with pytest.raises(ParameterError, match="0 or at least 1e-06 in size"):
            Parameters().with_value(field.name, size)
        with pytest.raises(ParameterError, match="0 or at least 1e-06 in size"):
            field.parse(str(size))


@for_each("name", ["sqrt_d_k", "custom"])
@for_each("mechanism", ["dot_product", "bilinear"])
@for_each(
    "sizes",
    [
        {"std_q": 1e-6, "std_k": 1e-6, "multiplier": 1e-6, "gain": 1e-3},
        {"std_q": 100.0, "std_k": 100.0, "multiplier": 1_000.0, "gain": 1_000.0},
    ],
)
def test_the_shape_of_the_distribution_does_not_depend_on_its_size(
    sizes: dict[str, Any], mechanism: Any, name: str
) -> None:
    usual = run(Parameters(**SMALL, mechanism=mechanism, scale=name))
    found = run(Parameters(**SMALL, mechanism=mechanism, scale=name, **sizes))
    for one, other in zip(usual.columns, found.columns, strict=True):
        for statistic in ("logit_excess_kurtosis", "logit_within_3sd", "row_mean_share"):
            assert other.measured[statistic].value == pytest.approx(one.measured[statistic].value, rel=1e-4, abs=1e-5)
        std, spread = other.measured["logit_std"].value, one.measured["logit_std"].value
        assert std is not None
        assert spread is not None
        gain = sizes["gain"] if mechanism == "bilinear" else 1
        factor = sizes["std_q"] * sizes["std_k"] * gain * other.multiplier / one.multiplier
        assert std == pytest.approx(factor * spread, rel=1e-5)


def extremes(field: Field) -> st.SearchStrategy[Any]:
    """The default, the bounds and, if any, the smallest size."""
    if field.kind == "choice":
        return st.sampled_from(field.choices)
    if field.kind == "setting":
        return st.sampled_from(["unscaled", "none", "components=student_t,degrees-of-freedom=3,std-q=100"])
    kind = int if field.kind == "integer" else float
    bounds = {getattr(Parameters(), field.name), kind(field.low), kind(field.high)}
    return st.sampled_from(sorted(bounds | ({field.least, 0.0} if field.least else set())))


FREE = [field for field in FIELDS if field.name not in (*SMALL, "seed")]


@given(st.fixed_dictionaries({}, optional={field.name: extremes(field) for field in FREE}))
def test_every_measurement_at_the_bounds_is_finite_or_refused(values: dict[str, Any]) -> None:
    """Warnings are errors in tests."""
    try:
        found = run(Parameters(**SMALL, **values))
        theory_of(found)
    except InputError:  # a rule without a multiplier
        return
    numbers = [value for column in found.columns for value, _ in column.measured.values() if value is not None]
    assert np.isfinite(numbers).all()
