"""Running sweeps in tests."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from typing import Any

import pytest
from attn_tui.core.lab import sweep
from attn_tui.core.lab.results import Point
from attn_tui.core.parameters import Parameters
from measurements import numbers

SMALL = Parameters(n_keys=12, n_queries=8, batch=4)
D_KS = (2, 3, 17, 64, 65, 130)


class Inline(Executor):
    """Runs each task as it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


INLINE = Inline()


def points(
    p: Parameters, d_ks: Sequence[int] = D_KS, executor: Executor | None = INLINE, **options: Any
) -> list[Point]:
    return [*sweep.sweep(p, d_ks, executor=executor, **options)]


def all_numbers(found: list[Point]) -> list[Any]:
    """All numbers of all points, to be compared bit for bit."""
    return [(point.parameters, point.reached, numbers(point.measurement.columns)) for point in found]


def measure_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every point measured by a separate run."""

    def never(_: Parameters) -> bool:
        return False

    monkeypatch.setattr(sweep, "nests", never)


def cut_small(monkeypatch: pytest.MonkeyPatch, held: int = 1 << 9, most: int = 1 << 7) -> None:
    """Have even a small sweep cut into parts and regions."""
    for name, value in (("HELD", held), ("LEAST", most // 2), ("MOST", most), ("GROUP", 4)):
        monkeypatch.setattr(sweep, name, value)
