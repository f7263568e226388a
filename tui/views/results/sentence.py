"""The sentence under a table that sums up its numbers."""

from __future__ import annotations

from ....core.against import words
from ....core.message import counted, joined, message
from ....core.statistics.catalogue import MUCH_LOST, STATISTIC, UNIFORM, Statistic
from ....core.statistics.measurement import Column, column_names
from ....core.statistics.status import GATHERED, SATURATED, is_sink, status
from ..glyphs import Glyphs
from ..numbers import percent
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
