"""The comparison of two captures, as lines: what differs first, where, and which heads changed most."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ....core.diagnosis.comparing.results import difference_in_words
from ....core.diagnosis.groups import place_in_words
from ....core.diagnosis.results import ORDER, STAGES
from ....core.message import joined, message
from ....core.tables.diagnosis import changed, difference_statements
from ....core.tables.formats import digits
from ....core.tables.table import Statement, TextGrid
from ..glyphs import Glyphs
from ..grid import table_lines
from ..lines import Line, wrapped
from .diagnosis import statement_lines

if TYPE_CHECKING:
    from ....core.diagnosis.comparing.results import Comparison, HeadComparison
    from ....core.diagnosis.results import StageName

_MOST = 10  # heads that are listed
_FIGURES = ("multiplier", "spread", "entropy", "first_key_weight")
_TITLES = ("σ in row", "entropy", "first key")


def difference_lines(comparison: Comparison, glyphs: Glyphs, width: int) -> list[Line]:
    """Return the first difference as a block, what is downstream of it, and what is in one capture only."""
    lines: list[Line] = []
    for block in difference_statements(comparison):
        if isinstance(block, Statement):
            lines += statement_lines([block], glyphs, width)
        else:
            lines += wrapped(glyphs.say(block), width)
    return lines


def stage_lines(comparison: Comparison, glyphs: Glyphs, width: int | None = None) -> list[Line]:
    """Return a table of layers and stages: how many heads differ, or ~ and how many follow from a difference.

    Where it is wider than `width`, stages that were not compared are left out, and then the last columns.
    """
    header = [message("layer"), *STAGES.values(), message("median KL")]
    lines: list[list[str]] = []
    for heads in _layers(comparison):
        cells = [_cell([head.stages[number].state for head in heads], glyphs) for number in range(len(ORDER))]
        known = sorted(head.divergence for head in heads if head.divergence is not None)
        lines.append([str(heads[0].layer.index), *cells, digits(known[len(known) // 2] if known else None)])
    return table_lines(TextGrid(header, lines), glyphs, width)


LEGEND = message(
    "number: heads that differ   ~: as a stage before does   ↓: as an earlier layer does   =: same   blank: not "
    "compared"
)


def reasons(comparison: Comparison) -> list[tuple[str, str]]:
    """Return each other first difference of a layer: the heads and the stage, and what differs there."""
    result: list[tuple[str, str]] = []
    first = None if comparison.first is None else comparison.first[0]
    for heads in _layers(comparison):
        by_stage: dict[StageName, list[HeadComparison]] = {}
        for head in heads:
            if head.first is not None:
                by_stage.setdefault(head.first.name, []).append(head)
        for name in ORDER:
            if name not in by_stage:
                continue
            alike = by_stage[name]
            if any(head.first is first for head in alike):
                continue
            place = place_in_words([(head.layer, head.head) for head in alike])
            result.append((joined([place, STAGES[name]], "  "), difference_in_words(alike)))
    return result


def change_lines(comparison: Comparison, glyphs: Glyphs, width: int | None = None) -> list[Line]:
    """Return the heads that changed most; empty if none changed. The last columns are left out beyond `width`."""
    most = [head for head in comparison.ranked if head.change > 0 or head.first is not None][:_MOST]
    if not most:
        return []
    header = [message("layer"), message("head"), message("first difference"), message("KL, nats")]
    header += [message("other top key"), message("multiplier"), *_TITLES]
    lines: list[list[str]] = []
    for each in most:
        head = str(each.head) if each.head == each.test_head else f"{each.head} / {each.test_head}"
        rows = "—" if each.changed_rows is None else message("{share:.0f} % of rows", share=100 * each.changed_rows)
        first = "—" if each.first is None else STAGES[each.first.name]
        cells = [str(each.layer.index), head, first, digits(each.divergence), rows]
        cells += [changed(each, name) for name in _FIGURES]
        lines.append(cells)
    return table_lines(TextGrid(header, lines), glyphs, width)


def _layers(comparison: Comparison) -> list[list[HeadComparison]]:
    by_layer: dict[int, list[HeadComparison]] = {}
    for head in comparison.heads:
        by_layer.setdefault(head.layer.position, []).append(head)
    return [by_layer[position] for position in sorted(by_layer)]


def _cell(states: list[str], glyphs: Glyphs) -> str:
    count = Counter(states)
    if count["differs"]:
        return str(count["differs"])
    if count["downstream"]:
        return glyphs.say("↓")
    if count["follows"]:
        return f"~{count['follows']}"
    return "=" if count["same"] else ""
