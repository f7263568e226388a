"""The page of a model: what is wrong with the selected head, what q·k was multiplied by, and all heads by verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from ....core.captures.capture import Layer
from ....core.diagnosis.comparing.results import Comparison
from ....core.diagnosis.groups import FaultGroup, HeadVerdict
from ....core.diagnosis.results import Consequence
from ....core.message import counted, joined, message, sentence_case
from ....core.tables.formats import digits
from ...language.cells import cells, to_left
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, ends, fitted, line_width, window, wrapped
from ..page import large, section_line
from ..plots.dots import dots_line, saturation_axis, zone_line
from ..plots.head_map import Place, map_window
from ..plots.lab_pictures import share_bar
from .comparison import LEGEND, difference_lines, stage_lines
from .diagnosis import multiplier_lines, verdict_rows

_MARGIN: Span = (" ", "text")
_NAME = 13  # cells of the name of a layer on the map
_NUMBERS = 12  # cells before the words of what it does to a row
_LEAST = 14  # lines from which there are large digits
_TALL = 160  # columns from which digits are larger
_BETWEEN, _AFTER = 6, 4  # cells beside a number in large digits and its word, and those after the number
_RANGE = 16  # cells of the least and the largest saturation of a layer
# What a head is on the map: wrong, right, undecided, downstream of an earlier layer.
_MARKS: Mapping[str, tuple[str, Role]] = {
    "wrong": ("×", "wrong"), "right": ("·", "dim"), "undecided": ("?", "unscaled"), "downstream": ("↓", "dim"),
}  # fmt: skip


class ModelPage(NamedTuple):
    """What the page shows."""

    layers: Sequence[Layer]
    heads: Sequence[HeadVerdict]  # those judged so far, in the order of the file
    groups: Sequence[FaultGroup]  # what is said of them
    cursor: Place
    comparison: Comparison | None = None  # with the baseline
    baseline: str = ""  # its name
    saturations: Mapping[Place, float] = MappingProxyType({})  # of the heads measured so far


def model_lines(page: ModelPage, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return the page, exactly `height` lines of `width`."""
    lines, _ = _drawn(page, width, height, glyphs)
    return [fitted(line, width) for line in [*lines, *[()] * height][:height]]


def head_on_page(page: ModelPage, width: int, height: int, glyphs: Glyphs, x: int, y: int) -> Place | None:
    """Return the head at a cell of the lines that `model_lines` returns for the same size, if there is one."""
    _, targets = _drawn(page, width, height, glyphs)
    return targets[y](x) if y in targets else None


_Targets: TypeAlias = "dict[int, Callable[[int], Place | None]]"  # what a click on a line selects, by its cell


def _drawn(page: ModelPage, width: int, height: int, glyphs: Glyphs) -> tuple[list[Line], _Targets]:
    """Return the lines of the page, and what a click selects, by line."""
    lines: list[Line] = [()] if height >= _LEAST else []
    targets: _Targets = {}
    if page.comparison is not None:
        lines += _compared(page, page.comparison, width, height - len(lines), glyphs)
    elif not page.heads:
        lines.append(((" " + glyphs.say("judging the evidence"), "dim"),))
    else:
        _add_judged(page, width, height, glyphs, lines, targets)
    return lines, targets


def _compared(page: ModelPage, comparison: Comparison, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return the first difference from the baseline, then the stages of layers around the cursor."""
    lines: list[Line] = [*((_MARGIN, *line) for line in difference_lines(comparison, glyphs, width - 2)), ()]
    head = None if comparison.first is None or comparison.first[0].name != "multiplier" else comparison.first[1][0]
    if head is not None and head.reference is not None and head.test is not None and height >= _LEAST:
        is_now: Shown = (message("is"), head.test.multiplier, "alert")
        lines += [*_digits([is_now, (message("baseline"), head.reference.multiplier, "good")], "", width, glyphs), ()]
    against = message("against {name}", name=page.baseline)
    lines.append(section_line(message("stage by stage"), against, width, glyphs))
    header, *stages = stage_lines(comparison, glyphs, width - 2)
    legend = wrapped(glyphs.say(LEGEND).replace("   ", "; "), width - 2, "dim")
    room = max(height - len(lines) - len(legend) - 1, 1)
    first = window(page.cursor[0], len(stages), room)
    return [*lines, *((_MARGIN, *line) for line in (header, *stages[first : first + room], *legend))]


def _add_judged(
    page: ModelPage, width: int, height: int, glyphs: Glyphs, lines: list[Line], targets: _Targets
) -> None:
    """Add the verdict, what q·k was multiplied by, what that does, and the map, as far as they have room."""
    shown = _of_cursor(page)
    lines += _headline(page, shown, width, height - len(lines), glyphs)
    rows = verdict_rows([group for group in page.groups if group.used is not None])
    left = height - len(lines)
    if rows and left > 3:
        at = next((n for n, row in enumerate(rows) if _has(row, page.cursor)), 0)
        table = multiplier_lines(rows, page.heads, glyphs, width - 2, at)
        note = message("dot: is · line: should be · log axis")
        lines += [(), section_line(message("what q·k was multiplied by"), note, width, glyphs)]
        room = max(min(left - 4, len(rows)), 1)
        first = window(at, len(rows), room)
        lines.append((_MARGIN, *table[0]))
        for row, line in zip(rows[first : first + room], table[1 + first :], strict=False):
            layer, head = row.heads[0]
            targets[len(lines)] = lambda _, place=(layer.position, head): place
            lines.append((_MARGIN, *line))
    effect = _effect(page, width, glyphs)
    left = height - len(lines)
    if effect and left >= len(effect) + 2:
        layer, head = page.layers[page.cursor[0]], page.cursor[1]
        title = message("what it does to a row")
        note = message("layer {layer} head {head}, mean over rows", layer=layer.index, head=head)
        lines += [(), section_line(title, note, width, glyphs), *effect]
        left -= len(effect) + 2
    if left > 4:
        lines.append(())
        _add_map(page, width, left - 1, glyphs, lines, targets)
    # A head that is wrong saturates otherwise than at the multiplier of its file.
    as_stated = not any(head.verdict.is_doubtful for head in page.heads)
    if as_stated and page.saturations and height - len(lines) > 4:
        lines += [(), *_saturations(page, width, height - len(lines) - 1, glyphs)]


def _saturations(page: ModelPage, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return how near heads are to saturation: the layers around the cursor, with a dot for each head."""
    lines = [section_line(message("saturation"), message("a dot a head"), width, glyphs)]
    axis = saturation_axis(max(width - _NAME - _RANGE, 0))
    first = window(page.cursor[0], len(page.layers), height - 2)
    for layer in page.layers[first : first + height - 2]:
        heads = ((layer.position, head) for head in range(layer.heads))
        known = [page.saturations[head] for head in heads if head in page.saturations]
        name: Span = (to_left(" " + glyphs.say("layer {index}", index=layer.index), _NAME), "label")
        span = glyphs.say(message("{low:.2g} to {high:.2g}", low=min(known), high=max(known))) if known else ""
        lines.append((name, *dots_line(axis, known, 1.0, "scaled", glyphs), ("  " + span, "text")))
    return [*lines, ((" " * _NAME + zone_line(axis.cells, glyphs), "dim"),)]


def _has(group: FaultGroup, cursor: Place) -> bool:
    return any(layer.position == cursor[0] and head == cursor[1] for layer, head in group.heads)


def _of_cursor(page: ModelPage) -> FaultGroup:
    """Return the fault of the selected head, the first one that is wrong if it has several."""
    of_head = [group for group in page.groups if _has(group, page.cursor)] or page.groups
    return min(of_head, key=lambda group: (not group.fault.severe, group.rule == "healthy"))


def _headline(page: ModelPage, group: FaultGroup, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return the label of a fault and where it is, the two numbers in large digits, and why."""
    fault, healthy = group.fault, group.rule == "healthy"
    role: Role = "right" if healthy else "wrong" if fault.severe else "cursor"
    label = f" {glyphs.say(fault.label)} "
    side = glyphs.say(_others(page, group))
    room = width - cells(label) - 5
    beside = room - cells(side) - 3
    where = glyphs.fitting([group.place, group.short_place], beside)
    fits = cells(where) <= beside
    where = where if fits else glyphs.fitting([group.place, group.short_place], room)
    first: Line = (_MARGIN, (label, role), ("   ", "text"), (where, "heading"))
    lines: list[Line] = [ends(first, ((side, "dim"), (" ", "text")), width) if fits else fitted(first, width)]
    [expected] = [head.verdict.expected for head in page.heads if (head.layer, head.head) == group.heads[0]]
    numbers: list[Line] = []
    if height >= _LEAST and group.used is not None and group.used[0] == group.used[1]:
        severe = fault.severe
        shown: list[Shown] = [
            (message("is"), group.used[0], "good" if healthy else "alert" if severe else "unscaled")
        ]
        if not healthy and expected.multiplier is not None:
            word = message("should be") if severe else message("usual is")
            shown.append((word, expected.multiplier, "good"))
        numbers = _digits(shown, expected.formula, width, glyphs)
    if numbers:
        lines += [(), *numbers, ()]
    elif group.amounts:
        text = joined([text for text in (message("is {used}", used=group.amounts), fault.expected) if text], "  ")
        lines += [(_MARGIN, *line) for line in wrapped(glyphs.say(text), width - 2, "heading")]
    elif height >= _LEAST:
        lines.append(())
    is_number = message("It is {why}.", why=group.why)
    said = is_number if group.why[:1].isdigit() else message("{why}.", why=sentence_case(group.why))
    why = [] if healthy else [said]
    if not healthy and group.modules:
        why.append(message("Look at {modules}.", modules=group.modules))
    if healthy and group.fault.expected:
        why = [joined([group.fault.expected, group.why], ", ")]
    lines += [(_MARGIN, *line) for text in why for line in wrapped(glyphs.say(text), width - 2)]
    return lines


Shown: TypeAlias = "tuple[str, float, Role]"  # a word, its number in large digits, and their role


def _digits(shown: Sequence[Shown], formula: str, width: int, glyphs: Glyphs) -> list[Line]:
    """Return `is × 0.03125   should be × 0.1768` in large digits; empty where they have no room."""
    words = [glyphs.say(word) for word, _, _ in shown]
    numbers = [large(f"×{number:.4g}", width >= _TALL, glyphs) for _, number, _ in shown]
    room = (cells(word) + len(number[0]) + _BETWEEN for word, number in zip(words, numbers, strict=True))
    if sum(room) - _AFTER > width:
        return []
    lines: list[Line] = []
    for row in range(len(numbers[0])):
        last = row == len(numbers[0]) - 1
        spans: list[Span] = []
        for word, number, (_, _, role) in zip(words, numbers, shown, strict=True):
            spans.append((to_left(f" {word if last else ''}", cells(word) + 2), "label"))
            spans.append((number[row] + " " * _AFTER, role))
        end = f"= {glyphs.say(formula)}" if last and formula else ""
        fits = line_width(tuple(spans)) + cells(end) <= width  # else the axis below has the formula
        lines.append((*spans, (end if fits else "", "dim")))
    return lines


def _others(page: ModelPage, group: FaultGroup) -> str:
    """Return what is said of the other heads: how many are wrong, or that they are right."""
    count = sum(layer.heads for layer in page.layers)
    if len(page.heads) < count:
        return message("{judged} of {count} heads judged", judged=len(page.heads), count=count)
    faults = [group for group in page.groups if group.fault.severe and group.rule != "healthy"]
    others = {(layer.position, head) for fault in faults for layer, head in fault.heads}
    others -= {(layer.position, head) for layer, head in group.heads}
    if others:
        return counted("{number} other head is wrong (n)", "{number} other heads are wrong (n)", len(others))
    right = sum(head.verdict.word == "healthy" for head in page.heads)
    if group.rule == "healthy" or not right:
        return ""
    left = count - len(group.heads)
    if right == left:
        return counted("the other head is right", "the other {number} heads are right", right)
    return message("{right} of the other {left} heads are right", right=right, left=left)


def _effect(page: ModelPage, width: int, glyphs: Glyphs) -> list[Line]:
    """Return what a fault does to attention, if that is known of the selected head."""
    of: dict[Place, Consequence | None] = {
        (head.layer.position, head.head): head.verdict.consequence for head in page.heads
    }
    effect = of.get(page.cursor)
    if effect is None:
        return []
    rows: tuple[tuple[str, float, Sequence[float], Role], ...] = (
        (message("is"), effect.entropy, effect.row, "alert"),
        (message("should be"), effect.expected_entropy, effect.expected_row, "good"),
    )
    words = [glyphs.say(message("{keys:.3g} keys matter", keys=math.exp(entropy))) for _, entropy, _, _ in rows]
    room = max(width - _NUMBERS - 4 - max(map(cells, words)), 0)
    lines: list[Line] = [
        (
            (" " + to_left(glyphs.say(name), _NUMBERS), role),
            *share_bar(row, room, role, glyphs),
            ("  " + said, "text"),
        )
        for (name, _, row, role), said in zip(rows, words, strict=True)
    ]
    of_keys = message("KL {divergence} nats", divergence=digits(effect.divergence))
    if (changed := round(100 * effect.changed_rows)) > 0:
        of_keys = message(
            "{divergence}; another largest key in {changed} % of rows", divergence=of_keys, changed=changed
        )
    return [*lines, ((" " * (_NUMBERS + 1) + glyphs.say(of_keys), "dim"),)]


def _add_map(page: ModelPage, width: int, height: int, glyphs: Glyphs, lines: list[Line], targets: _Targets) -> None:
    """Add the heads by verdict: a row a layer, around the cursor if they do not fit, and what the marks mean."""
    of = {(head.layer.position, head.head): _word(head) for head in page.heads}
    shown = map_window([layer.heads for layer in page.layers], page.cursor, _NAME, width - 1, max(height - 2, 1))
    count = counted("{number} head", "{number} heads", sum(shown.counts))
    lines.append(section_line(count, message("by verdict"), width, glyphs))
    targets |= {len(lines) + row: partial(shown.place_at, y=row) for row in range(len(shown.layers))}

    def cell(place: Place) -> Span:
        mark, role = _MARKS.get(of.get(place, ""), (" ", "dim"))
        return to_left(glyphs.say(mark), shown.cell), "cursor" if place == page.cursor else role

    names = [to_left(" " + glyphs.say("layer {index}", index=layer.index), _NAME) for layer in page.layers]
    lines += shown.lines(names, cell)
    meanings = "   ".join(
        f"{glyphs.say(mark)} {glyphs.say(word)}" for word, (mark, _) in _MARKS.items() if word in of.values()
    )
    lines.append(((" " + meanings, "dim"),))


def _word(head: HeadVerdict) -> str:
    verdict = head.verdict
    return "wrong" if verdict.is_wrong else "right" if verdict.word == "healthy" else "undecided"
