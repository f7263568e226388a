"""The one sentence under a table that says what its numbers mean."""

from __future__ import annotations

from ...core.statistics.catalogue import SINK, STATISTIC, Statistic
from ...core.statistics.measurement import Column
from .glyphs import Glyphs
from .numbers import percent, short
from .table import Contents, column_word, is_far, measured_text, theory_text
from .verdict import UNIFORM


def sentence(contents: Contents, glyphs: Glyphs) -> str:
    """Computed from the values: Unscaled, logits have standard deviation 8: 30 % of rows one-hot, 13 % dead. …"""
    first, *others = contents.columns
    clauses = [_clause(first, "logits have standard deviation ", glyphs), *(_clause(c, "", glyphs) for c in others)]
    return glyphs.say(" ".join([*_disagreements(contents), *clauses]))


def row_words(statistic: Statistic, contents: Contents, glyphs: Glyphs, values: bool) -> str:
    """What a row is; with its `values`, where the table has no room to show them in full."""
    said: list[str] = []
    for index, column in enumerate(contents.columns if values else ()):
        value, rest = (text.strip() for text in measured_text(column, statistic, glyphs))
        exact = theory_text(contents, index, statistic, glyphs)[1].strip() if contents.theory else ""
        known = f", exact {exact}" if exact.strip("—- ") else ""
        said.append(f"{column_word(column.rule)} {' '.join((value + ' ' + rest).split())}{known}")
    numbers = f"{'; '.join(said)}. " if said else ""
    text = f"{statistic.label}: {numbers}{statistic.formula}. {statistic.definition} Source: {statistic.source}."
    return glyphs.say(text)


def _disagreements(contents: Contents) -> list[str]:
    """Which measured values are far from their exact ones, if any are."""
    found = [
        f"{column_word(column.rule)} {STATISTIC[name].label} by {abs(deviation):.1f} standard errors"
        for column, deviations in zip(contents.columns, contents.deviations, strict=False)
        for name, deviation in deviations.items()
        if deviation is not None and is_far(deviation)
    ]
    return [f"Not as theory says: {', '.join(found)}."] if found else []


def _clause(column: Column, quantity: str, glyphs: Glyphs) -> str:
    """What one column says."""
    scaled = f"Scaled × {short(column.multiplier, glyphs)}"
    who = {"none": "Unscaled", "file": "With the file's scale"}.get(column.rule, scaled)
    value = {name: estimate.value for name, estimate in column.measured.items()}
    std, one_hot, dead = value["logit_std"], value["one_hot_rows"], value["dead_rows"]
    if std is None or one_hot is None or dead is None:
        return f"{who}, no query sees a key."
    if one_hot == dead == 0:
        facts = ["no row one-hot or dead"]
    else:
        facts = [f"{_share(one_hot)} of rows one-hot", f"{_share(dead)} dead"]
    fraction, first, keys = value["entropy_fraction"], value["first_key_weight"], value["effective_keys"]
    if fraction is not None and fraction > UNIFORM:
        facts.append(f"attention nearly uniform ({percent(fraction)} of ln n)")
    if first is not None and first > SINK and keys is not None and keys > 1.001:
        facts.append(f"{percent(first)} on the first key")
    return f"{who}, {quantity}{short(std, glyphs)}: {', '.join(facts)}."


def _share(share: float) -> str:
    return "none" if share == 0 else percent(share)
