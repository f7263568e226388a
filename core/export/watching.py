"""Export the newest step of a run, and the heads that come near the limit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..message import message
from .formats import NONE, Say, csv_text, digits, json_text, markdown_table, version

if TYPE_CHECKING:
    from ..watching.limits import Offender
    from ..watching.snapshot import Snapshot

_MANIFOLD = 10  # a factor with one decimal
_LONG = 10_000  # a number that is shown with a power of ten
_WATCHED = "attn-tui/watched-1"
_COLUMNS = ("step", "layer", "head", "largest_logit", "over", "growth_per_1000_steps", "passes_limit_in", "change")


def watching_json(path: str, shown: Snapshot) -> str:
    """Return one JSON object with all heads, worst first or by change.

    A logit that is not finite is null, and over the limit.
    """
    return json_text(
        {
            "schema": _WATCHED,
            "version": version(),
            "run": path,
            "step": shown.step,
            "time": shown.time,
            "scale": shown.scale,
            "scaled": shown.scaled,
            "says": shown.says_scale,
            "limit": shown.limit,
            "baseline": shown.baseline,
            "over": shown.over,
            "heads": [dict(zip(_COLUMNS[1:], _cells(shown, each)[1:], strict=True)) for each in shown.ranked],
        }
    )


def watching_csv(shown: Snapshot) -> str:
    """Return a line for each head, worst first."""
    return csv_text(_COLUMNS, [_cells(shown, each) for each in shown.ranked])


def _cells(shown: Snapshot, each: Offender) -> list[Any]:
    value = each.value if math.isfinite(each.value) else None
    change = shown.change(each.layer, each.head)
    change = None if change is None or math.isinf(change) else change
    place = [shown.step, shown.layers[each.layer], each.head]
    return [*place, value, each.over, each.growth(), each.passes_in, change]


def watching_markdown(shown: Snapshot, say: Say) -> str:
    """Return a table of all heads, worst first."""
    header = ["layer", "head", "largest |logit|", f"per {shown.per:,} steps", f"steps to {shown.limit:g}"]
    lines = [[shown.layers[each.layer], str(each.head), *offender_words(each, shown.per)] for each in shown.ranked]
    if shown.changes is not None:
        header.append(f"since {shown.baseline}")
        for line, each in zip(lines, shown.ranked, strict=True):
            line.append(change_words(shown.change(each.layer, each.head)))
    return markdown_table(header, lines, say)


def offender_words(each: Offender, per: int) -> tuple[str, str, str]:
    """Return the largest |logit|, its growth over `per` steps, and when it passes the limit, in words."""
    value = _fixed(each.value, 1) if math.isfinite(each.value) else message("not finite")
    found = each.growth(per)
    growth = NONE if found is None else f"× {_fixed(found, 3 if found < _MANIFOLD else 1)}"
    if each.over:
        return value, growth, message("passed")
    if each.passes_in is None or each.passes_in > 1e9:
        return value, growth, NONE
    return value, growth, f"{float(f'{each.passes_in:.2g}'):,.0f}"


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
