"""Advice in one line: the status of a setting, why, and what would mend it, from the numbers in the table."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ....core.errors import ParameterError
from ....core.message import joined, message
from ....core.parameters import FIELD, ROUNDED, Parameters, choice_word, rows_differ
from ....core.scales import SCALE_RULES, Normalise, ScaleName, multiplier, scale_rule
from ....core.statistics.catalogue import MUCH_LOST
from ....core.statistics.measurement import NOTHING, Column
from ....core.statistics.status import SATURATED, SATURATING
from ....core.theory.prediction import Saturation, ratio_given, status_given
from ..glyphs import Glyphs
from ..numbers import percent, short

# The rule that keeps the variance of logits for each way to normalise q and k.
_USUAL: Mapping[Normalise, ScaleName] = {
    "none": "sqrt_d_k", "rms": "rms_sqrt_d_k", "layer_norm": "layer_norm_sqrt_d_k", "l2": "cosine_sqrt_d_k",
}  # fmt: skip
_AIM = 1 / 3  # the ratio to aim at; that of 1/√d_k for standard normal components and 128 keys is 0.32
_GOOD = (0.2, 0.6)  # ratios that are far from uniform and from saturation


def advice(p: Parameters, column: Column, saturation: Saturation | None, glyphs: Glyphs) -> str:
    """Return `healthy: σ is 0.321 of saturation, and stays below it at every d_k`, …; empty if no row sees two keys.

    `p` are the parameters of the column.
    """
    word, ratio = status_given(saturation, column.measured), ratio_given(saturation, column.measured)
    if word is None:
        return ""
    reason = _reason(word, p, column, saturation, ratio, glyphs)
    said: list[str] = [message("a sink: {reason}", reason=reason) if word == "sink" else joined([word, reason], ": ")]
    if word == "saturated" and saturation is not None and _covers(saturation, p.d_k):
        said = [joined([saturation.words()[0], _spread(ratio or 0.0, glyphs)], ": ")]
    lost = _value(column, "weight_lost")
    if word != "NaN" and abs(lost) > MUCH_LOST:
        values = {"precision": choice_word(p.precision), "share": percent(abs(lost)), "n": p.n_keys}
        said.append(
            message("; {precision} loses {share} of the weight at n {n}", **values)
            if lost > 0
            else message("; {precision} adds {share} of the weight at n {n}", **values)
        )
    said.append(_suggestion(word, p, column, ratio, glyphs))
    return glyphs.say("{advice}.", advice=joined(said, ""))


def ratio_words(ratio: float, glyphs: Glyphs) -> str:
    """Return `0.321 of saturation` or `2.57 times saturation`; a ratio below 1 is never rounded to 1."""
    if ratio < SATURATED:
        return message("{ratio} of saturation", ratio=ratio_text(ratio, glyphs))
    return message("{ratio} times saturation", ratio=ratio_text(ratio, glyphs))


def _spread(ratio: float, glyphs: Glyphs) -> str:
    return message("σ is {ratio}", ratio=ratio_words(ratio, glyphs))


def ratio_text(ratio: float | None, glyphs: Glyphs) -> str:
    """Return a ratio in three digits; one below 1 is never rounded to 1."""
    return short(min(ratio, 0.999) if ratio is not None and ratio < SATURATED else ratio, glyphs)


def _reason(
    word: str, p: Parameters, column: Column, saturation: Saturation | None, ratio: float | None, glyphs: Glyphs
) -> str:
    """Return why the status is this one."""
    spread = "" if ratio is None else _spread(ratio, glyphs)
    match word:
        case "NaN":
            rows = percent(_value(column, "nan_rows"))
            return message(
                "logits overflow {precision} in {rows} of rows", precision=choice_word(p.precision), rows=rows
            )
        case "sink":
            sink = _value(column, "sink_weight")
            if sink:
                return message("the sink gets {share}", share=percent(sink))
            return message("the first key gets {share}", share=percent(_value(column, "first_key_weight")))
        case "one-hot":
            return message(
                "{share} of rows put everything on one key; {spread}",
                share=percent(_value(column, "one_hot_rows")),
                spread=spread,
            )
        case "uniform" if not ratio:
            return message("all logits of a row are equal")
        case "saturating" if ratio is not None and ratio < SATURATING:
            return message(
                "entropy is {share} of ln n, although {spread}",
                share=percent(_value(column, "entropy_fraction")),
                spread=spread,
            )
        case "healthy" if ratio is not None and ratio >= SATURATING:
            return message(
                "{spread}, but the largest weight is only {share}",
                spread=spread,
                share=percent(_value(column, "max_weight")),
            )
        case "healthy" if saturation is not None and not _covers(saturation, p.d_k):
            if not saturation.saturated_at:
                return message("{spread}, and stays below it at every d_k", spread=spread)
            return joined([spread, saturation.words()[0]], "; ")
        case _:
            return spread


def _suggestion(word: str, p: Parameters, column: Column, ratio: float | None, glyphs: Glyphs) -> str:
    """Return what multiplier would bring the ratio between uniform and saturation, if logits are multiples of it."""
    capped = p.softcap > 0 or (p.precision in ROUNDED and p.arithmetic == "eager")
    if (
        word not in ("uniform", "saturating", "saturated", "one-hot")
        or capped
        or rows_differ(p, p.scale)
        or not ratio
    ):
        return ""
    if _GOOD[0] <= ratio <= _GOOD[1]:
        return ""
    usual = _USUAL[scale_rule(p.scale).normalise]
    try:
        other = ratio * multiplier(usual, p.setting) / column.multiplier
    except ParameterError:
        other = math.nan
    if usual != p.scale and _GOOD[0] <= other <= _GOOD[1]:
        return message("; {rule} would make it {ratio}", rule=SCALE_RULES[usual].label, ratio=short(other, glyphs))
    needed = column.multiplier * _AIM / ratio
    field = FIELD["multiplier"]
    return (
        message("; × {multiplier} would make it a third", multiplier=short(needed, glyphs))
        if field.low <= needed <= field.high
        else ""
    )


def _covers(saturation: Saturation, d_k: int) -> bool:
    """Return whether softmax is saturated at this d_k."""
    return any(first <= d_k <= last for first, last in saturation.saturated_at)


def _value(column: Column, name: str) -> float:
    """Return a measured value; 0 if there is none."""
    return column.measured.get(name, NOTHING).value or 0.0
