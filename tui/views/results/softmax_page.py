"""The page of the Softmax pane: the largest weights in large digits, all weights, and what a score does to each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ....core.attention.worked_example import relevant, start_scores
from ....core.message import joined, message
from ....core.statistics.catalogue import DEAD
from ...language.cells import to_left, to_right
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, fitted, wrapped
from ..numbers import percent, short, signed
from ..page import LOW, large, section_line
from .softmax import ScoreEntry, in_cells, score_lines, side_names, side_title, state_lines
from .softmax_sentence import softmax_sentence
from .table import COLUMN_ROLES

if TYPE_CHECKING:
    from ....core.attention.worked_example import WorkedExample
    from ....core.questions.softmax import SoftmaxSteps

NARROWEST = 72  # cells of the narrowest page
FIRST = LOW + 4  # the line of the first score
_LEFT = 10  # cells of a score
_LOGIT, _SHARE = 8, 9  # cells of a logit, and of a weight or a slope
_WORDS = 3  # lines of the sentence at most
_LARGEST_SLOPE = 0.25  # of a weight by a logit, at a weight of a half


def page_height(scores: int) -> int:
    """Return the lines of a page of this many scores."""
    return FIRST + 2 * scores + 4


def page_lines(worked: SoftmaxSteps, width: int, glyphs: Glyphs, editing: ScoreEntry, tall: bool) -> list[Line]:
    """Return the page; if `tall`, with a blank line after each weight."""
    side, at = (width - _LEFT) // 2, editing.at
    pairs = list(zip(worked.sides, COLUMN_ROLES, strict=True))
    stale = bool(editing.objection)

    def rows(
        left: Sequence[Line], part: Callable[[WorkedExample, Role], Sequence[Line]], gap: Sequence[Line] = ()
    ) -> list[Line]:
        """Return a line for each score, with a part of both columns beside it, and a gap after each."""
        both = [part(marks, role) for marks, role in pairs]
        return [
            line
            for name, a, b in zip(left, *both, strict=True)
            for line in ((*fitted(name, _LEFT), *fitted(a, side), *fitted(b, side)), *gap)
        ]

    marked = [_right(line) for line in score_lines(worked.example, glyphs, editing)]
    still = [_right(line) for line in score_lines(worked.example, glyphs, None)]
    titles = [glyphs.say(side_title(worked, number, side - 2, glyphs)) for number in range(len(pairs))]
    head: list[Span] = [(to_left(f"  {glyphs.say('score')}", _LEFT), "dim")]
    head.extend((to_left(title, side), role) for title, role in zip(titles, COLUMN_ROLES, strict=True))
    lines: list[Line] = [(), *_headline(worked, width, glyphs), ()]
    lines += [section_line("weights", message("logit → e^(x − max) → ÷ sum → weight"), width, glyphs), tuple(head)]
    lines += rows(marked, lambda each, role: _weights(each, side, role, glyphs), [()] if tall else [])
    lines += [section_line("gradient", message("a small rise of the marked score moves each weight"), width, glyphs)]
    lines += rows(still, lambda each, role: _slopes(each, at, side, role, glyphs))
    norms: Line = tuple((to_left(_norm(column, glyphs), side), role) for column, role in pairs)
    indent, margin = _blank(_LEFT), _blank(1)
    lines += [(indent, *norms)]
    lines += [(margin, *line) for line in _words(worked, width - 2, glyphs, editing)]
    if stale:
        kept = {FIRST + at * (1 + tall), *range(len(lines) - _WORDS, len(lines))}
        lines = [line if n in kept else tuple((text, "dim") for text, _ in line) for n, line in enumerate(lines)]
    return [fitted(line, width) for line in lines]


def _blank(width: int) -> Span:
    return " " * width, "text"


def _right(line: Line) -> Line:
    """Return a score with a blank before and after it."""
    return (*line[:1], (" ", "text"), *line[1:])


def _headline(worked: SoftmaxSteps, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the largest weight of each column in large digits, with how many keys matter."""
    side = (width - _LEFT) // 2
    labels = [message("d_k {d_k}", d_k=relevant(worked.parameters).d_k), "", message("largest")]
    lines: list[Line] = []
    shown = [large(_whole_percent(each.max_weight), False, glyphs) for each in worked.sides]
    for row, label in enumerate(labels):
        line: list[Span] = [(to_left(f" {glyphs.say(label)}", _LEFT), "label")]
        for each, digits, role in zip(worked.sides, shown, COLUMN_ROLES, strict=True):
            n = len(each.weights)
            number = f"{each.effective_keys:.1f}"
            keys = [message("{keys} of {n} keys matter", keys=number, n=n), message("{n} keys matter", n=number)]
            forms = ([""], keys, [message("% of the attention")])[row]
            words = glyphs.fitting(forms, side - len(digits[row]) - 3)
            line.append((to_left(f"{digits[row]} {words}", side), role))
        lines.append(tuple(line))
    return lines


def _whole_percent(weight: float) -> str:
    """Return a weight in per cent, without decimals; one below 1 is never 100."""
    value = 100 * weight
    return f"{value:.0f}" if value < 99.5 or value == 100 else f"{math.floor(10 * value) / 10:.1f}"


def _weights(example: WorkedExample, side: int, role: Role, glyphs: Glyphs) -> list[Line]:
    """Return logits and weights of a column, a bar for each weight."""
    room = side - _LOGIT - _SHARE - 2
    logits = in_cells(example.logits, _LOGIT - 2, glyphs)
    return [
        (
            (to_right(logit, _LOGIT - 1) + " ", "text"),
            (glyphs.bar(float(weight), room), role),
            (to_right(percent(float(weight)), _SHARE), role),
        )
        for logit, weight in zip(logits, example.weights, strict=True)
    ]


def _slopes(example: WorkedExample, at: int, side: int, role: Role, glyphs: Glyphs) -> list[Line]:
    """Return the derivative of each weight by the logit of score `at`: a bar to the left or right of 0."""
    half = (side - _LOGIT - _SHARE - 3) // 2
    lines: list[Line] = []
    for row in example.jacobian:
        slope = float(row[at])
        length = min(round(abs(slope) / _LARGEST_SLOPE * half), half)
        stroke, rest = glyphs.axis[0] * length, "·" if not glyphs.ascii else "."
        before = rest * (half - length) + stroke if slope < 0 else rest * half
        after = stroke + rest * (half - length) if slope > 0 else rest * half
        text = f"{slope:+.3f}" if abs(slope) >= 0.0005 else "0"
        lines.append(
            (
                (" " * _LOGIT, "text"),
                (before[: half - length] if slope < 0 else before, "frame"),
                (before[half - length :] if slope < 0 else "", role),
                (glyphs.uprights[1], "dim"),
                (after[:length] if slope > 0 else "", role),
                (after[length:] if slope > 0 else after, "frame"),
                (to_right(signed(text, glyphs), _SHARE), role),
            )
        )
    return lines


def _norm(example: WorkedExample, glyphs: Glyphs) -> str:
    """Return the norm of the Jacobian and what it means for gradients."""
    word = message("vanishes") if example.jacobian_norm < DEAD else message("flows")
    norm = joined([glyphs.say("‖J‖_F"), short(example.jacobian_norm, glyphs)])
    return " " * _LOGIT + glyphs.say(joined([norm, word], "  "))


def _words(worked: SoftmaxSteps, width: int, glyphs: Glyphs, editing: ScoreEntry) -> list[Line]:
    """Return the sentence below: an objection, how to end typing, or what the numbers mean."""
    if editing.draft is not None or editing.note or editing.objection:
        return [line[1:] for line in state_lines(worked, width, glyphs, editing) if line][:_WORDS]
    d_k, example = relevant(worked.parameters).d_k, worked.example
    if example.scores == start_scores(d_k) and example.temperature == 1 and not example.shift and not worked.remark:
        said = message(
            "Scores of 0, ±1.25 and ±3 times their spread, √d_k. L doubles d_k: unscaled softmax then attends to one "
            "key."
        )
    else:
        names = side_names(worked)
        said = softmax_sentence(example, names, worked.sides, worked.remark, glyphs)
    return wrapped(glyphs.say(said), width)[:_WORDS]
