"""The sentences of the Lab: what the statuses of both columns mean. They change when a status does."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ....core.errors import ParameterError
from ....core.message import Message, joined, message
from ....core.parameters import FIELD, ROUNDED, Parameters, context_note, model_title, rows_differ
from ....core.scales import SCALE_RULES, Normalise, ScaleName, multiplier, scale_rule
from ....core.statistics.catalogue import MUCH_LOST
from ....core.statistics.measurement import NOTHING, Column, column_names
from ....core.statistics.status import Status
from ....core.theory.prediction import ratio_given, status_given
from ..glyphs import Glyphs
from ..numbers import short
from .sentence import disagreements, sentence, who
from .table import TableContents

# The rule that keeps the variance of logits for each way to normalise q and k.
_USUAL: Mapping[Normalise, ScaleName] = {
    "none": "sqrt_d_k", "rms": "rms_sqrt_d_k", "layer_norm": "layer_norm_sqrt_d_k", "l2": "cosine_sqrt_d_k",
}  # fmt: skip
_AIM = 1 / 3  # the ratio to aim at; that of 1/√d_k for standard normal components and 128 keys is 0.32
_GOOD = (0.2, 0.6)  # ratios that are far from uniform and from saturation
_FEWEST_DEAD = 0.005  # the least share of rows without gradient that is said
_ONE_IN = (200, 100, 50, 20, 10, 5, 3)  # how it is said: an exact number would change at every step of a held key
_MEANINGS: Mapping[Status, Message] = {
    "uniform": message("{who}, attention is nearly uniform"),
    "healthy": message("{who}, many keys share a row"),
    "saturating": message("{who}, a few keys take over a row"),
    "saturated": message("{who}, few keys take most of a row"),
    "one-hot": message("{who}, attention looks up one key"),
}
_HOLD = message(
    "Both are healthy here: many keys share a row. Now hold →. A score is a sum of d_k products: the wider the "
    "vectors, the wider unscaled scores spread."
)
_SAME = message("Divided by √d_k, the picture is that of d_k 4: that is all the scale does.")
_STILL = message("Divided by √d_k, nothing has moved.")


def lab_sentence(p: Parameters, contents: TableContents, glyphs: Glyphs, brief: bool = False) -> str:
    """Return what the statuses of both columns mean, and what would mend that of B; if `brief`, that of A alone.

    Where a status does not say it all, as with NaN rows, a sink or lost weight, the sentence with numbers instead.
    """
    columns, names = contents.columns, column_names(contents.columns)
    saturation = [each.saturation for each in contents.theory] or [None] * len(columns)
    both = zip(saturation, columns, strict=True)
    words: list[Status | None] = [status_given(each, column.measured) for each, column in both]
    a, b = words
    note = context_note(p)
    notes = [message("{title}: {note}.", title=model_title(p), note=note)] if note else []
    notes = [*notes, *([remedy] if (remedy := _remedy(p, contents, b, glyphs)) else [])]
    unsaid = a not in _MEANINGS or b not in _MEANINGS
    if a is None or b is None or unsaid or disagreements(contents) or any(map(_loses, columns)):
        return joined([sentence(contents, glyphs), *notes])
    if brief:
        return message("{meaning}.", meaning=_meaning(columns[0], names[0], a, glyphs))
    plain = p.mechanism == "dot_product" and not (p.correlation or p.mean_q * p.mean_k or p.softcap)
    as_usual = names == ["unscaled", "scaled"] and columns[1].rule == "sqrt_d_k" and b == "healthy" and plain
    if as_usual and a == "healthy" and saturation[0] is not None:
        return joined([_HOLD, *notes])
    said = [_clause(columns[0], names[0], a, glyphs)]
    if as_usual and a != "uniform":
        said.append(_STILL if a == "one-hot" else _SAME)
    else:
        said.append(_clause(columns[1], names[1], b, glyphs))
    return joined([*said, *notes])


def _clause(column: Column, name: str, word: Status, glyphs: Glyphs) -> str:
    """Return `Unscaled, one key takes most of a row, and 1 row in 10 passes no gradient.`"""
    meaning, dead = _meaning(column, name, word, glyphs), column.measured.get("dead_rows", NOTHING).value or 0.0
    if dead < _FEWEST_DEAD:
        return message("{meaning}.", meaning=meaning)
    if dead < 0.3:
        n = min(_ONE_IN, key=lambda each: abs(math.log(each * dead)))
        return message("{meaning}, and 1 row in {n} passes no gradient.", meaning=meaning, n=n)
    if dead == 1:
        return message("{meaning}, and no row passes a gradient.", meaning=meaning)
    return message("{meaning}, and {n} rows in 10 pass no gradient.", meaning=meaning, n=min(round(10 * dead), 9))


def _meaning(column: Column, name: str, word: Status, glyphs: Glyphs) -> str:
    """Return what the status of a column means for a row: `Unscaled, one key takes most of a row`."""
    rule = scale_rule(column.rule) if name == "scaled" else None
    called = name if rule is None or rule.name == "custom" else rule.label
    subject, most = who(column, called, glyphs), column.measured.get("max_weight", NOTHING).value or 0.0
    if word == "saturated" and most >= 0.5:
        return message("{who}, one key takes most of a row", who=subject)
    return message(_MEANINGS[word].template, who=subject)


def _loses(column: Column) -> bool:
    """Return whether rounding loses or adds much weight."""
    return abs(column.measured.get("weight_lost", NOTHING).value or 0.0) > MUCH_LOST


def _remedy(p: Parameters, contents: TableContents, word: Status | None, glyphs: Glyphs) -> str:
    """Return what multiplier would bring B between uniform and saturation, if logits are multiples of it."""
    column, saturation = contents.columns[1], contents.theory[1].saturation if contents.theory else None
    ratio = ratio_given(saturation, column.measured)
    capped = p.softcap > 0 or (p.precision in ROUNDED and p.arithmetic == "eager")
    if word in (None, "healthy", "sink", "NaN") or capped or rows_differ(p, p.scale) or not ratio:
        return ""
    if _GOOD[0] <= ratio <= _GOOD[1]:
        return ""
    usual = _USUAL[scale_rule(p.scale).normalise]
    try:
        other = ratio * multiplier(usual, p.setting) / column.multiplier
    except ParameterError:
        other = 0.0
    if usual != p.scale and _GOOD[0] <= other <= _GOOD[1]:
        return message("{rule} would be healthy.", rule=SCALE_RULES[usual].label)
    needed, field = column.multiplier * _AIM / ratio, FIELD["multiplier"]
    if not field.low <= needed <= field.high:
        return ""
    return message("× {multiplier} would be healthy.", multiplier=short(needed, glyphs))
