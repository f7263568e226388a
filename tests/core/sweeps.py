"""Running sweeps in tests."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest
from attn_tui.core.lab import sweep
from attn_tui.core.lab.results import SweepPoint
from attn_tui.core.parameters import Parameters
from attn_tui.core.work import sweeps
from attn_tui.core.work.engines import run
from attn_tui.core.work.part import SERIAL, PartExecutor
from attn_tui.core.work.sweeps import Fold, SweepPlan, parts, sweep_plan
from measurements import numbers

SMALL = Parameters(n_keys=12, n_queries=8, batch=4)
D_KS = (2, 3, 17, 64, 65, 130)


def points(
    p: Parameters, d_ks: Sequence[int] = D_KS, engine: PartExecutor = SERIAL, **options: Any
) -> list[SweepPoint]:
    """Return the points of a sweep, whose progress rises to 1."""
    steps = [*steps_of(sweep_plan(p, d_ks, **options), engine)]
    fractions = [fraction for fraction, _ in steps]
    assert fractions == sorted(fractions)
    assert fractions[-1] == pytest.approx(1)
    return [point for _, found in steps for point in found]


def steps_of(plan: SweepPlan, engine: PartExecutor = SERIAL) -> Iterator[tuple[float, list[SweepPoint]]]:
    """Yield the finished fraction of a sweep after each step, and the points that are complete."""
    pieces, fold = [*parts(plan)], Fold(plan)
    total = sum(part.seconds for part in pieces)
    with closing(run(pieces, engine)) as steps:
        for done in steps:
            yield done.seconds / total, [point for point, _ in fold.add(done.results)]


def all_numbers(found: list[SweepPoint]) -> list[Any]:
    """All numbers of all points, to be compared bit for bit."""
    return [(point.parameters, point.reached, numbers(point.measurement.columns)) for point in found]


def measure_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every point measured by a separate run."""

    def never(_: Parameters) -> bool:
        return False

    monkeypatch.setattr(sweep, "nests", never)


def cut_small(monkeypatch: pytest.MonkeyPatch, most: int = 1 << 7) -> None:
    """Have even a small sweep cut into groups of d_k, and into cuts of at most `most` scores."""
    monkeypatch.setattr(sweep, "MOST", most)
    monkeypatch.setattr(sweeps, "_LEAST", 1e-6)
    monkeypatch.setattr(sweeps, "_MOST", 1e-6)
    monkeypatch.setattr(sweeps, "_GAIN", 1e-6)
