"""Verdicts on heads, as lines: neighbouring heads with the same verdict together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....core.message import Message, joined, message
from ....core.tables.formats import digits
from ...language.cells import cells, to_left
from ..glyphs import Glyphs

if TYPE_CHECKING:
    from ....core.tables.diagnosis import HeadVerdict

_WORDS = 12  # cells of the widest verdict, and a space


def diagnosis_lines(heads: Sequence[HeadVerdict], glyphs: Glyphs) -> list[tuple[str, tuple[str, ...]]]:
    """Return a line for each run of heads with the same verdict, and the sentences below it that explain it."""
    found: list[tuple[str, tuple[str, ...]]] = []
    runs = _runs(heads)
    places = [glyphs.say(_place(run)) for run in runs]
    wide = max(map(cells, places), default=0)
    for run, place in zip(runs, places, strict=True):
        verdict = run[0].verdict
        parts = [to_left(place, wide), to_left(glyphs.say(verdict.verdict), _WORDS), glyphs.say(_multipliers(run))]
        if verdict.evidence is not None:
            worst = max((each.verdict.misfit or 0.0 for each in run), default=0.0)
            parts.append(glyphs.say("{evidence}, misfit {misfit}", evidence=verdict.evidence, misfit=digits(worst)))
        found.append(("  ".join(parts).rstrip(), () if verdict.verdict == "healthy" else _explanation(run)))
    return found


def _explanation(run: Sequence[HeadVerdict]) -> tuple[str, ...]:
    verdict = run[0].verdict
    lines: list[str] = []
    cause, says = verdict.cause, verdict.says
    if cause is not None:
        also = joined(verdict.also, ", ")
        lines.append(message("{cause} (or {also})", cause=cause, also=also) if verdict.also else cause)
    lines.append(says if len(run) == 1 or cause is None else _of_all(says))
    effect = verdict.consequence
    if effect is not None:
        text = message(
            "entropy {entropy} nats (expected {expected_entropy}), largest weight {max_weight} "
            "({expected_max_weight}), KL {divergence} nats, another largest key in {changed:.0f} % of rows",
            entropy=digits(effect.entropy),
            expected_entropy=digits(effect.expected_entropy),
            max_weight=digits(effect.max_weight),
            expected_max_weight=digits(effect.expected_max_weight),
            divergence=digits(effect.divergence),
            changed=100 * effect.changed_rows,
        )
        lines.append(text if len(run) == 1 else message("head {head}: {text}", head=run[0].head, text=text))
    return tuple(lines)


def _of_all(says: str) -> str:
    """Return what a verdict says of all heads of a run: without the multiplier, which stands before a colon."""
    words = says.values.get("words") if isinstance(says, Message) else None
    return words if isinstance(words, str) else says.rpartition(": ")[2]


def _runs(heads: Sequence[HeadVerdict]) -> list[list[HeadVerdict]]:
    """Group neighbouring heads of a layer with the same verdict, causes and expected multiplier."""
    runs: list[list[HeadVerdict]] = []
    for each in heads:
        if runs and _alike(runs[-1][-1], each):
            runs[-1].append(each)
        else:
            runs.append([each])
    return runs


def _alike(one: HeadVerdict, other: HeadVerdict) -> bool:
    a, b = one.verdict, other.verdict
    same = (a.verdict, a.cause, a.also, a.evidence, a.expected) == (
        b.verdict,
        b.cause,
        b.also,
        b.evidence,
        b.expected,
    )
    return one.layer is other.layer and same


def _place(run: Sequence[HeadVerdict]) -> str:
    first, last = run[0], run[-1]
    heads = (
        message("head {head}", head=first.head)
        if first is last
        else message("heads {first} to {last}", first=first.head, last=last.head)
    )
    return joined([first.layer.place, heads], ", ")


def _multipliers(run: Sequence[HeadVerdict]) -> str:
    """Return the multiplier, or the range of those of a run, and the expected one."""
    numbers = [each.verdict.multiplier for each in run]
    known = sorted(number for number in numbers if number is not None)
    expected = run[0].verdict.expected.multiplier
    if not known:
        return "" if expected is None else message("expected × {expected}", expected=digits(expected))
    low, high = digits(known[0]), digits(known[-1])
    shown = f"× {low}" if low == high else message("× {low} to {high}", low=low, high=high)
    if expected is None:
        return shown
    if run[0].verdict.expected.assumed and run[0].verdict.verdict == "undecided":
        return message("{multiplier}, assumed × {expected}", multiplier=shown, expected=digits(expected))
    return message("{multiplier}, expected × {expected}", multiplier=shown, expected=digits(expected))
