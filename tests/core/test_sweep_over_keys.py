"""A sweep over numbers of keys, alone and with d_k: each point is a single report, and the exports say its place."""

import csv
import io
import json
from dataclasses import replace

import pytest
from attn_tui.core.errors import InputError
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.tables.lab import SweepResult, place_titles, sweep_table
from attn_tui.core.tables.table import written
from attn_tui.core.theory.predict import predict
from attn_tui.tui.panes.sweep.print_table import sweep_sentences
from measurements import assert_same
from sweeps import SMALL, all_numbers, points

pytestmark = pytest.mark.usefixtures("one_blas_thread")
N_KEYS = (3, 24, 100)


@pytest.mark.parametrize(
    "change", [{}, {"mask": "causal"}, {"scale": "ssmax"}, {"precision": "bfloat16"}, {"softcap": 20.0}], ids=str
)
def test_a_point_is_what_a_single_report_measures(change: dict[str, object]) -> None:
    p = replace(Parameters(d_k=32, n_queries=8, batch=4), **change)  # pyright: ignore[reportArgumentType]
    found = points(p, [32], n_keys=N_KEYS)
    assert [point.parameters for point in found] == [replace(p, n_keys=n) for n in N_KEYS]
    for point in found:
        assert_same(point.measurement, run(point.parameters, full=False), 1e-5)


def test_both_axes_make_a_grid_with_d_k_inside() -> None:
    found = points(SMALL, [17, 3], n_keys=[24, 5, 24])
    assert [(point.parameters.n_keys, point.parameters.d_k) for point in found] == [
        (5, 3),
        (5, 17),
        (24, 3),
        (24, 17),
    ]
    alone = [point for n in (5, 24) for point in points(replace(SMALL, n_keys=n), [3, 17])]
    assert all_numbers(found) == all_numbers(alone)


def test_a_second_axis_repeats_the_grid_for_each_of_its_values() -> None:
    found = points(SMALL, [3], vary=("scale", ("d_k", "log(n)/d")), n_keys=[5, 24])
    places = [(point.parameters.scale, point.parameters.n_keys) for point in found]
    assert places == [("d_k", 5), ("d_k", 24), ("log(n)/d", 5), ("log(n)/d", 24)]


def test_a_rule_without_a_multiplier_at_a_number_of_keys_is_refused() -> None:
    with pytest.raises(InputError, match="at d_k = 3, keys = 1"):
        points(replace(SMALL, scale="ssmax"), [3], n_keys=[1, 5])


@pytest.fixture(scope="module")
def swept() -> SweepResult:
    p = Parameters(n_queries=8, batch=4)
    found = [(point, predict(point.parameters)) for point in points(p, [4], n_keys=N_KEYS)]
    return SweepResult(p, (4,), found, "attn-tui sweep", n_keys=N_KEYS)


def test_json_and_csv_name_the_keys_of_each_point(swept: SweepResult) -> None:
    found = json.loads(written(sweep_table(swept), "json"))
    assert found["n_keys"] == [*N_KEYS]
    assert found["complete"] is True
    assert [point["n_keys"] for point in found["points"]] == [*N_KEYS]
    assert "n_keys" not in found["parameters"]
    rows = [
        row
        for row in csv.DictReader(io.StringIO(written(sweep_table(swept), "csv")))
        if row["statistic"] == "entropy"
    ]
    assert [row["n_keys"] for row in rows[::2]] == [str(n) for n in N_KEYS]
    assert place_titles(swept) == ["keys", "d_k"]
    assert "| 3 | 4 |" in written(sweep_table(swept), "markdown")


def test_the_sentence_says_at_which_numbers_of_keys_softmax_is_saturated(swept: SweepResult) -> None:
    """σ is 2 unscaled and 1 scaled; √(2 ln n) is 1.48 for 3 keys and 2.52 for 24."""
    none: dict[str, float | None] = {}
    assert sweep_sentences(swept, [(none, none)] * 3) == [
        "Unscaled, softmax is saturated at 3 keys; scaled, it stays below saturation at all these numbers of keys."
    ]
    one = replace(swept, points=swept.points[:1], n_keys=N_KEYS[:1])
    assert sweep_sentences(one, [(none, none)]) == []
