"""Export the results of training races, one a d_k."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeAlias

from ..message import in_sense, message
from .formats import NONE, Say, csv_text, digits, existing, json_text, markdown_table, version

if TYPE_CHECKING:
    from ..training.settings import Race, Result

# A race, its results, and what weights trained under one rule recall under another.
Ended: TypeAlias = "tuple[Race, Sequence[Result], Sequence[Sequence[float]] | None]"

_RACE = "attn-tui/training-1"
_COLUMNS = (
    "d_k", "rule", "multiplier", "loss", "loss_error", "recalled", "steps_to_learn", "diverged", "entropy_before",
    "entropy_after", "gradient_before",
)  # fmt: skip
HEADER = ("d_k", "rule", "final loss", "recalled", "steps to 90 %", "diverged", "entropy", message("first gradient"))


def training_json(races: Sequence[Ended]) -> str:
    """Return one JSON object with the results at each d_k."""
    first, *_ = races
    race = first[0]
    return json_text(
        {
            "schema": _RACE,
            "version": version(),
            "learning_rate": race.rate,
            "optimizer": race.optimiser,
            "warm_up": race.warm_up,
            "steps": race.steps,
            "seeds": race.seeds,
            "seed": race.seed,
            "task": asdict(race.task),
            "races": [
                {
                    "d_k": each.d_k,
                    "results": [dict(zip(_COLUMNS[1:], _cells(each, one)[1:], strict=True)) for one in results],
                    "used_with": _used(each, used),
                }
                for each, results, used in races
            ],
        }
    )


def _used(race: Race, used: Sequence[Sequence[float]] | None) -> list[dict[str, Any]]:
    if used is None:
        return []
    rules = race.rules
    return [
        {"trained_with": one, "used_with": other, "recalled": existing(float(used[row][column]))}
        for row, one in enumerate(rules)
        for column, other in enumerate(rules)
    ]


def training_csv(races: Sequence[Ended]) -> str:
    """Return a line for each rule at each d_k."""
    return csv_text(_COLUMNS, [_cells(race, each) for race, results, _ in races for each in results])


def _cells(race: Race, each: Result) -> list[Any]:
    values = asdict(each)
    return [race.d_k, *(_value(values[name]) for name in _COLUMNS[1:])]


def _value(value: Any) -> Any:
    return existing(value) if isinstance(value, float) else value


def training_markdown(races: Sequence[Ended], say: Say) -> str:
    """Return a table with a line for each rule at each d_k."""
    return markdown_table(HEADER, training_rows(races), say)


def training_rows(races: Sequence[Ended]) -> list[list[str]]:
    """Return the cells of a line for each rule at each d_k, in words, as HEADER names them."""
    return [_words(race.d_k, each) for race, results, _ in races for each in results]


def _words(d_k: int, each: Result) -> list[str]:
    return [
        str(d_k),
        each.rule,
        NONE if math.isnan(each.loss) else each.loss_text,
        NONE if math.isnan(each.recalled) else f"{100 * each.recalled:.0f} %",
        in_sense("never", "learned") if each.steps_to_learn is None else f"{each.steps_to_learn:.0f}",
        f"{100 * each.diverged:.0f} %" if each.diverged else "none",
        f"{100 * each.entropy_before:.0f} → {100 * each.entropy_after:.0f} %",
        digits(float(f"{each.gradient_before:.2g}")),
    ]
