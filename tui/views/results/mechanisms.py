"""The table of mechanisms over d_k."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ....core.message import joined, message
from ....core.scales import scale_rule
from ....core.statistics.catalogue import STATISTIC
from ....core.tables.rules import mechanism_word
from ...language.cells import to_left, to_right
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, wrapped
from ..numbers import on_the_point, short

if TYPE_CHECKING:
    from ....core.lab.results import MechanismRow

_NAME = 22
_CELL = 8  # cells of a value
_SHOWN = ("logit_std", "entropy_fraction", "max_weight")


def mechanism_lines(rows: Sequence[MechanismRow], width: int, glyphs: Glyphs) -> list[Line]:
    """Return a block for each statistic, with a line for each mechanism, and sentences on the bounds.

    If the width does not suffice for all d_k, the smallest are left out.
    """
    if not rows:
        return [((glyphs.say("Measuring mechanisms…"), "dim"),)]
    d_ks = sorted({row.d_k for row in rows})
    room = max((width - _NAME) // _CELL, 1)
    left_out, d_ks = d_ks[:-room], d_ks[-room:]
    lines: list[Line] = []
    for name in _SHOWN:
        label, factor = STATISTIC[name].label, 100 if STATISTIC[name].unit == "share" else 1
        title = label if factor == 1 else joined([label, "%"], ", ")
        values = {id(row): (value := row.measured[name].value) and factor * value for row in rows}
        lines += _block(title, rows, d_ks, lambda row, values=values: values[id(row)], glyphs)
    scores = [row for row in rows if (row.mechanism, row.rule) != ("dot_product", "sqrt_d_k")]  # the unscaled one's
    lines += _block(message("largest |score|"), scores, d_ks, lambda row: row.largest, glyphs, scaled=False)
    bounded = [row for row in rows if row.bound is not None]
    lines += _block(message("bound of |score|"), bounded, d_ks, lambda row: row.bound, glyphs, scaled=False)
    if left_out:
        words = glyphs.say("Not shown at this width: d_k {left_out}.", left_out=", ".join(map(str, left_out)))
        lines += wrapped(words, width, "dim")
    lines.append(())
    for sentence in bound_sentences(rows):
        lines += wrapped(glyphs.say(sentence), width)
    return lines


def bound_sentences(rows: Sequence[MechanismRow]) -> list[str]:
    """Return sentences on the bounds of additive and cosine attention."""
    sentences: list[str] = []
    additive = [row for row in rows if row.mechanism == "additive" and row.bound and row.largest is not None]
    if additive:
        last = max(additive, key=lambda row: row.d_k)
        bound, largest = last.bound or 0.0, last.largest or 0.0
        beyond = sum((row.largest or 0) > 1 for row in additive)
        sentences.append(
            message(
                "Scores of additive attention lie within ±‖v‖₁, not within ±1 as each tanh does: at d_k "
                "{d_k} ‖v‖₁ is {bound:.4g}, and the largest |score| drawn is {largest:.3g}, {share:.0f} % "
                "of it. The largest |score| exceeds 1 at {beyond} of {count} d_k. ‖v‖₁ grows like √d_k, "
                "because v has d_k entries that shrink like 1/√d_k; the standard deviation of the scores "
                "does not grow.",
                d_k=last.d_k,
                bound=bound,
                largest=largest,
                share=100 * largest / bound,
                beyond=beyond,
                count=len(additive),
            )
        )
    if any(row.mechanism == "cosine" for row in rows):
        sentences.append(
            message(
                "Scores of cosine attention lie within ±1, and their standard deviation falls like 1/√d_k: without a "
                "temperature, attention becomes uniform."
            )
        )
    return sentences


def _texts(values: Sequence[float | None], glyphs: Glyphs) -> Sequence[str]:
    """Return values with aligned decimal points, unless that makes them too wide for their cells."""
    if not values:
        return ()
    texts = on_the_point(values, 3, glyphs)
    return texts if len(texts[0]) < _CELL else [short(value, glyphs) for value in values]


def _block(
    title: str,
    rows: Sequence[MechanismRow],
    d_ks: Sequence[int],
    value: Callable[[MechanismRow], float | None],
    glyphs: Glyphs,
    scaled: bool = True,
) -> list[Line]:
    """Return a heading with the d_k, and a line for each mechanism, with its scale rule if `scaled`."""
    ends: list[Span] = [(to_right(str(d_k), _CELL), "dim") for d_k in d_ks]
    lines: list[Line] = [((to_left(glyphs.say(title), _NAME), "heading"), *ends)]
    known = [row for row in rows if row.d_k in d_ks]
    texts = dict(zip(map(id, known), _texts([value(row) for row in known], glyphs), strict=True))
    for kind in dict.fromkeys(map(_kind, rows)):
        mechanism, rule, with_sink = kind
        found = {row.d_k: row for row in rows if _kind(row) == kind}
        word = mechanism_word(next(row for row in rows if _kind(row) == kind))
        if not with_sink and scaled and mechanism in ("dot_product", "bilinear"):
            word = joined([word, scale_rule(rule).label], " × ")
        role: Role = "unscaled" if rule == "none" and mechanism == "dot_product" else "label"
        role = "scaled" if kind == ("dot_product", "sqrt_d_k", False) else role
        cells = [texts[id(found[d_k])] if d_k in found else glyphs.say("…") for d_k in d_ks]
        values: list[Span] = [(to_right(text, _CELL), "text") for text in cells]
        lines.append(((" " + to_left(glyphs.say(word), _NAME - 1), role), *values))
    return lines


def _kind(row: MechanismRow) -> tuple[str, str, bool]:
    return row.mechanism, row.rule, row.with_sink
