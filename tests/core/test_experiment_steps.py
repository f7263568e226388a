"""A measurement in steps: its progress, the size of its steps and its early results."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from attn_tui.core.lab import one_pass, scoring
from attn_tui.core.lab.experiment import run, stream
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics import tally
from attn_tui.core.statistics.measurement import HISTOGRAMS
from measurements import assert_same, cut_into_blocks, numbers

P = Parameters(d_k=300, n_keys=16, n_queries=16, batch=6)


@pytest.fixture(params=["kept", "made again"])
def _small_steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of half a draw, from components that are kept or drawn again."""
    cut_into_blocks(monkeypatch, 128)
    monkeypatch.setattr(one_pass, "STRIDE", 64)
    if request.param == "made again":
        monkeypatch.setattr(scoring, "KEPT", 0)


@pytest.mark.usefixtures("_small_steps")
def test_progress_rises_to_one_through_every_draw() -> None:
    steps = list(stream(P))
    fractions, draws = [step.fraction for step in steps], [step.draws for step in steps]
    assert fractions == sorted(set(fractions))
    assert fractions[0] > 0
    assert fractions[-1] == 1
    assert draws == sorted(draws)
    assert {done for done in draws if done == int(done)} == set(range(7))
    assert len(steps) > 12


def test_a_step_makes_the_components_of_one_stride_or_measures_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def noted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def note(*arguments: Any, **named: Any) -> Any:
            calls.append(name)
            return function(*arguments, **named)

        return note

    cut_into_blocks(monkeypatch, 128)
    monkeypatch.setattr(scoring, "KEPT", 0)
    monkeypatch.setattr(one_pass, "STRIDE", 128)
    monkeypatch.setattr(one_pass, "components", noted("components", one_pass.components))
    monkeypatch.setattr(np, "matmul", noted("scores", np.matmul))
    monkeypatch.setattr(tally, "add", noted("statistics", tally.add))
    for _ in stream(replace(P, correlation=0.5)):
        done = {name: calls.count(name) for name in ("components", "scores", "statistics")}
        if done["statistics"]:  # which multiply matrices too
            assert (done["components"], done["statistics"]) == (0, 1)
        else:
            assert done["components"] <= 2
            assert done["scores"] <= 1
        calls.clear()


@pytest.mark.usefixtures("_small_steps")
def test_an_early_result_is_that_of_fewer_draws() -> None:
    """During a draw there may be no result, but there is never one with a part of that draw."""
    of_batches = {draws: run(replace(P, batch=draws)) for draws in range(2, 7)}
    complete = 0
    for step in stream(P):
        early = step.measurement()
        begun, complete = int(step.draws) > complete, int(step.draws)
        if complete < 2:
            assert early is None
            continue
        if early is None:
            assert not begun
            continue
        assert (early.draws, early.asked, early.complete) == (complete, 6, step.fraction == 1)
        assert_same(early, of_batches[complete])
        rows, pairs = 16 * complete, 16 * 16 * complete
        for column in early.columns:
            totals = {name: column.histograms[name].total for name in HISTOGRAMS}
            assert totals == {"logits": pairs, "weights": pairs, "entropy": rows, "jacobian_norm": rows}


def test_an_early_result_does_not_change_as_the_run_continues() -> None:
    p = replace(P, n_keys=1024, n_queries=1024, batch=3, d_k=1)  # blocks of one draw
    steps = stream(p)
    early = next(filter(None, (step.measurement() for step in steps)))
    before = numbers(early.columns)
    for _ in steps:
        pass
    assert early.draws == 2
    assert numbers(early.columns) == before
