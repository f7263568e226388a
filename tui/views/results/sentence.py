"""The sentences that sum up the numbers of a table; those of the Lab's page change when a status does."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ....core.against import words
from ....core.errors import ParameterError
from ....core.message import Message, counted, joined, message
from ....core.parameters import FIELD, ROUNDED, Parameters, context_note, model_title, rows_differ
from ....core.scales import SCALE_RULES, Normalise, ScaleName, multiplier, scale_rule
from ....core.statistics.catalogue import MUCH_LOST, STATISTIC, UNIFORM, Statistic
from ....core.statistics.measurement import NOTHING, Column, column_names
from ....core.statistics.status import GATHERED, SATURATED, Status, is_sink, status
from ....core.theory.prediction import ratio_given, status_given
from ..glyphs import Glyphs
from ..numbers import percent, short
from .table import TableContents, is_far, measured_text, multiplier_text, theory_text


def sentence(contents: TableContents, glyphs: Glyphs) -> str:
    """Return `Unscaled, one key takes 76 % of a row, and 11 % of rows pass no gradient. With × 0.125, 80 keys …`"""
    columns, names = contents.columns, column_names(contents.columns)
    clauses = [
        _clause(column, name, columns[0] if number else None, glyphs)
        for number, (column, name) in enumerate(zip(columns, names, strict=True))
    ]
    exact = [message("Theory is that of exact arithmetic.")] if contents.rounded and contents.theory else []
    return glyphs.say(joined([*disagreements(contents), *clauses, *exact]))


def row_words(statistic: Statistic, contents: TableContents, glyphs: Glyphs, values: bool) -> str:
    """Return the explanation of a row, with its values if `values` is set, for tables too narrow for them."""
    said: list[str] = []
    names = column_names(contents.columns)
    for index in range(len(contents.columns) if values else 0):
        value, rest = (text.strip() for text in measured_text(contents, index, statistic, glyphs))
        exact = theory_text(contents, index, statistic, glyphs)[1].strip() if contents.theory else ""
        known = message(", exact {exact}", exact=exact) if exact.strip("—- ") else ""
        said.append(joined([names[index], joined([" ".join((value + " " + rest).split()), known], "")]))
    numbers = message("{numbers}. ", numbers=joined(said, "; ")) if said else ""
    text = message(
        "{label}: {numbers}{formula}. {definition} Source: {source}.",
        label=statistic.label,
        numbers=numbers,
        formula=statistic.formula,
        definition=statistic.definition,
        source=statistic.source,
    )
    return glyphs.say(text)


def disagreements(contents: TableContents) -> list[str]:
    """Return a sentence on the measured values that are far from theory, if there are any."""
    found = [
        message(
            "{who} {label} by {deviation:.1f} standard errors",
            who=name_of,
            label=STATISTIC[name].label,
            deviation=abs(deviation),
        )
        for name_of, deviations in zip(column_names(contents.columns), contents.deviations, strict=False)
        for name, deviation in deviations.items()
        if deviation is not None and is_far(deviation)
    ]
    return [message("Differs from theory: {found}.", found=joined(found, ", "))] if found else []


def who(column: Column, name: str, glyphs: Glyphs) -> str:
    """Return the subject of the sentence on a column with this name: `Unscaled`, `With × 0.125`, `With 1/d_k`."""
    if column.rule == "file":
        other = words(column.apart)
        return message("With the file's scale, {other}", other=other) if other else message("With the file's scale")
    if name == "scaled":
        return message("With × {multiplier_text}", multiplier_text=multiplier_text(column, glyphs))
    if name.startswith("unscaled"):
        other = words(column.apart)
        return message("Unscaled, {other}", other=other) if other else message("Unscaled")
    return message("With {name}", name=name)


def _clause(column: Column, name: str, before: Column | None, glyphs: Glyphs) -> str:
    """Return the sentence on a column; shorter after the one on the column `before`."""
    subject = who(column, name, glyphs)
    value = {name: estimate.value for name, estimate in column.measured.items()}
    failed, lost = value.get("nan_rows") or 0, value.get("weight_lost") or 0
    if failed == 1:
        return message("{who}, every row is NaN: logits overflow.", who=subject)
    if value["logit_std"] is None:
        return message("{who}, no query sees a key.", who=subject)
    most, effective, dead = value["max_weight"], value["effective_keys"], value["dead_rows"]
    if most is None or effective is None or value["one_hot_rows"] is None:
        return message("{who}, no query sees more than one key.", who=subject)
    first, sink, takes = value["first_key_weight"], value.get("sink_weight"), is_sink(column.measured)
    if takes and sink:
        facts: list[str] = [message("{who}, the sink takes {share} of a row", who=subject, share=percent(sink))]
    elif takes:
        facts = [message("{who}, the first key takes {share} of a row", who=subject, share=percent(first or 0))]
    else:
        facts = [_shared(subject, most, effective)]
    if dead:
        facts.append(message(", and {share} of rows pass no gradient", share=percent(dead)))
    elif before is not None and before.measured["dead_rows"].value:
        facts.append(message(", and all pass gradients"))
    fraction = value["entropy_fraction"]
    if fraction is not None and fraction > UNIFORM:
        facts.append(message("; attention is nearly uniform ({fraction} of ln n)", fraction=percent(fraction)))
    if lost > MUCH_LOST:
        facts.append(message("; rounding loses {share} of the weight", share=percent(lost)))
    elif lost < -MUCH_LOST:
        facts.append(message("; rounding adds {share} of the weight", share=percent(-lost)))
    if failed and before is not None and before.measured["nan_rows"].value:
        facts.append(message("; {share} of rows are NaN", share=percent(failed)))
    elif failed:
        facts.append(message("; {share} of rows are NaN (logits overflow) and not counted", share=percent(failed)))
    facts.append(_despite(column))
    return message("{facts}.", facts=joined(facts, ""))


def _despite(column: Column) -> str:
    """Return why not all numbers are those of a saturated softmax although σ says so; empty if they are."""
    value = {name: estimate.value or 0.0 for name, estimate in column.measured.items()}
    if value.get("saturation", 0.0) < SATURATED:
        return ""
    word = status(column.measured)
    if word == "healthy" or (word == "saturating" and value["max_weight"] <= GATHERED):
        return message(
            "; σ passes saturation, but the largest weight is only {share}", share=percent(value["max_weight"])
        )
    if word == "saturated" and value["entropy_fraction"] > 0.5:
        return message(
            "; σ passes saturation, but entropy is still {share} of ln n", share=percent(value["entropy_fraction"])
        )
    return ""


def _shared(who: str, most: float, effective: float) -> str:
    """Return how a row divides its attention: `Unscaled, one key takes 76 % of a row`."""
    if most >= GATHERED:
        return message("{who}, one key takes {share} of a row", who=who, share=percent(most))
    number = round(effective)
    return counted("{who}, {number} key takes a row", "{who}, some {number} keys share a row", number, who=who)


# The rule that keeps the variance of logits for each way to normalise q and k.
_USUAL: Mapping[Normalise, ScaleName] = {
    "none": "sqrt_d_k", "rms": "rms_sqrt_d_k", "layer_norm": "layer_norm_sqrt_d_k", "l2": "cosine_sqrt_d_k",
}  # fmt: skip
_AIM = 1 / 3  # the ratio to aim at; that of 1/√d_k for standard normal components and 128 keys is 0.32
_GOOD = (0.2, 0.6)  # ratios that are far from uniform and from saturation
_FEWEST_DEAD = 0.005  # the least share of rows without gradient that is said
# How it is said, to a quarter at worst: an exact number would change at every step of a held key.
_ONE_IN = (200, 150, 100, 70, 50, 40, 30, 25, 20, 15, 12, 10, 9, 8, 7, 6, 5, 4, 3, 2)
_MEANINGS: Mapping[Status, Message] = {
    "uniform": message("{who}, attention is nearly uniform"),
    "healthy": message("{who}, many keys share a row"),
    "saturating": message("{who}, a few keys take over a row"),
    "saturated": message("{who}, few keys take most of a row"),
    "one-hot": message("{who}, attention looks up one key"),
}
_HOLD = message(
    "Both are healthy here: many keys share a row. A score is a sum of d_k products: the wider the "
    "vectors, the wider unscaled scores spread."
)
_SAME = message("Divided by √d_k, the picture is that of d_k 4: that is all the scale does.")
_STILL = message("Divided by √d_k, nothing has moved.")


def lab_sentence(p: Parameters, contents: TableContents, glyphs: Glyphs, brief: bool = False) -> str:
    """Return what the statuses of both columns mean, and what would mend that of B; if `brief`, that of A alone.

    Where a status does not say it all, as with NaN rows, a sink or lost weight, the sentence with numbers instead.
    """
    columns, names = contents.columns, column_names(contents.columns)
    saturation = [theory.saturation for theory in contents.theory] or [None] * len(columns)
    both = zip(saturation, columns, strict=True)
    words: list[Status | None] = [status_given(theory, column.measured) for theory, column in both]
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
    said = [_in_words(columns[0], names[0], a, glyphs)]
    if as_usual and a != "uniform":
        said.append(_STILL if a == "one-hot" else _SAME)
    else:
        said.append(_in_words(columns[1], names[1], b, glyphs))
    return joined([*said, *notes])


def _in_words(column: Column, name: str, word: Status, glyphs: Glyphs) -> str:
    """Return `Unscaled, one key takes most of a row, and 1 row in 10 passes no gradient.`"""
    meaning, dead = _meaning(column, name, word, glyphs), column.measured.get("dead_rows", NOTHING).value or 0.0
    if dead < _FEWEST_DEAD:
        return message("{meaning}.", meaning=meaning)
    if dead < 0.55:
        n = min(_ONE_IN, key=lambda count: abs(math.log(count * dead)))
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
