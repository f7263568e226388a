"""Runs of training: how races ended, and the newest step of a run that is watched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..message import counted, in_sense, message
from .formats import NONE, digits
from .table import Cell, Table, TextGrid, columns_of, entry, grid, row, table_of, text_cell

if TYPE_CHECKING:
    from ..training.settings import RaceResult
    from ..training.snapshot import RaceSnapshot as RaceSnapshot
    from ..watching.limits import HeadTrend
    from ..watching.snapshot import RunSnapshot

_MANIFOLD = 10  # a factor with one decimal
_LONG = 10_000  # a number that is shown with a power of ten

RESULT: Sequence[Cell[RaceResult]] = (
    Cell("rule", str, label="rule"),
    Cell("multiplier", float),
    Cell(
        "loss", float, label=message("final loss"), room=15,
        words=lambda row: NONE if math.isnan(row.loss) else row.loss_text,
    ),
    Cell("loss_error", float),
    Cell("recalled", float, label=message("recalled"), words=lambda row: _share(row.recalled)),
    Cell(
        "steps_to_learn", float, label=message("steps to 90 %"),
        words=lambda row: in_sense("never", "learned")
        if row.steps_to_learn is None
        else f"{row.steps_to_learn:.0f}",
    ),
    Cell(
        "diverged", float, label=message("diverged"),
        words=lambda row: _share(row.diverged) if row.diverged else "none",
    ),
    Cell("entropy_before", float),
    Cell("entropy_after", float),
    text_cell(
        message("entropy"), lambda row: f"{100 * row.entropy_before:.0f} → {_share(row.entropy_after)}", room=11
    ),
    Cell(
        "gradient_before", float, label=message("first gradient"),
        words=lambda row: digits(float(f"{row.gradient_before:.2g}")),
    ),
)  # fmt: skip


def training_table(races: Sequence[RaceSnapshot]) -> Table[RaceSnapshot]:
    """Return the results at each d_k; CSV has a line for each rule there."""
    race = races[0].race

    def element(ended: RaceSnapshot) -> dict[str, Any]:
        race, used = ended.race, ended.used
        recalled = [
            {"trained_with": one, "used_with": other, "recalled": float(used[row][column])}
            for row, one in enumerate(race.rules)
            for column, other in enumerate(race.rules)
        ] if used is not None else []  # fmt: skip
        return {
            "d_k": race.d_k,
            "results": [entry(RESULT, result) for result in ended.results],
            "used_with": recalled,
        }

    head = {
        "learning_rate": race.rate,
        "optimizer": race.optimiser,
        "warm_up": race.warm_up,
        "steps": race.steps,
        "seeds": race.seeds,
        "seed": race.seed,
        "task": asdict(race.task),
    }
    return Table(
        "training-1", head, "races", races, lambda ended: [element(ended)],
        {"d_k": int, **columns_of(RESULT)},
        lambda ended: ([ended.race.d_k, *row(RESULT, result)] for result in ended.results),
        lambda: [results_grid(races)],
    )  # fmt: skip


def results_grid(races: Sequence[RaceSnapshot]) -> TextGrid:
    """Return a table with a line for each rule at each d_k."""
    each = [(race.race.d_k, grid(RESULT, race.results)) for race in races]
    return TextGrid(["d_k", *each[0][1].header], [[f"{d_k}", *line] for d_k, found in each for line in found.lines])


def _share(share: float) -> str:
    return NONE if math.isnan(share) else f"{100 * share:.0f} %"


def watch_table(path: str, shown: RunSnapshot) -> Table[HeadTrend]:
    """Return all heads of a step, the worst or most changed first; a logit that is not finite is over the limit."""
    cells = trend_cells(shown)
    head = {
        "run": path,
        **{name: getattr(shown, name) for name in ("step", "time", "scale", "scaled")},
        "says": shown.says_scale,
        **{name: getattr(shown, name) for name in ("limit", "baseline", "over", "came_back", "others_over")},
    }
    return table_of(
        "watched-2", head, "heads", shown.ranked, cells, lambda: [grid(cells, shown.ranked)], {"step": shown.step}
    )


def trend_cells(shown: RunSnapshot) -> list[Cell[HeadTrend]]:
    """Return the values of a head; those of its past are in tables for people if a head was over the limit."""

    def change(trend: HeadTrend) -> float | None:
        return shown.change(trend.layer, trend.head)

    labels = {"first_over": message("first over"), "peak": message("peak"), "peak_step": message("at step")}
    past = labels if shown.passed else dict.fromkeys(labels, "")
    since = "" if shown.changes is None else message("since {baseline}", baseline=shown.baseline)
    per = counted("per step", "per {number:,} steps", shown.per)
    limit = message("steps to {limit:g}", limit=shown.limit)
    return [
        Cell("layer", str, lambda head: shown.layers[head.layer], "layer"),
        Cell("head", int, label="head"),
        Cell("max_logit", float, "value", "largest |logit|", lambda head: logit_words(head.value), short="|logit|"),
        Cell("over", bool),
        Cell("first_over", int, label=past["first_over"]),
        Cell("peak", float, label=past["peak"], words=lambda head: logit_words(head.peak)),
        Cell("peak_step", int, label=past["peak_step"]),
        Cell(
            "growth_per_1000_steps", float, lambda head: head.growth(), per,
            lambda head: growth_words(head, shown.per), short=message("per {steps:,}", steps=shown.per),
        ),
        Cell(
            "passes_limit_in", float, "passes_in", limit, passes_words,
            short=message("to {limit:g}", limit=shown.limit),
        ),
        Cell("change", float, change, since, lambda head: change_words(change(head)), short=message("change")),
    ]  # fmt: skip


def growth_words(trend: HeadTrend, per: int) -> str:
    """Return the factor by which the largest |logit| grows over `per` steps."""
    growth = trend.growth(per)
    return NONE if growth is None else f"× {_fixed(growth, 3 if growth < _MANIFOLD else 1)}"


def passes_words(trend: HeadTrend) -> str:
    """Return in how many steps a head passes the limit."""
    if trend.over:
        return message("passed")
    if trend.passes_in is None or trend.passes_in > 1e9:
        return NONE
    return f"{float(f'{trend.passes_in:.2g}'):,.0f}"


def logit_words(value: float) -> str:
    """Return a largest |logit| with one decimal."""
    if math.isnan(value):
        return NONE
    return message("not finite") if math.isinf(value) else _fixed(value, 1)


def change_words(change: float | None) -> str:
    """Return the change of a largest |logit|, with its sign."""
    if change is None:
        return NONE
    if math.isinf(change):
        return message("not finite") if change > 0 else message("finite again")
    return f"{change:+.1f}" if abs(change) < _LONG else f"{change:+.1e}"


def _fixed(number: float, decimals: int) -> str:
    """Return a number with these decimals, so that a column is aligned; a large one with four digits."""
    return f"{number:.{decimals}f}" if 0.1 <= number < _LONG else digits(number)
