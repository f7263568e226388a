"""The sentence under a table that sums up its numbers."""

from __future__ import annotations

from ....core.message import message
from ....core.statistics.catalogue import MUCH_LOST, STATISTIC, UNIFORM, Statistic
from ....core.statistics.column_names import column_names
from ....core.statistics.measurement import Column
from ....core.statistics.status import is_sink
from ..glyphs import Glyphs
from ..numbers import percent, short
from .table import Contents, is_far, measured_text, multiplier_text, theory_text


def sentence(contents: Contents, glyphs: Glyphs) -> str:
    """Return `Unscaled, logits spread to σ 8: 27 % of rows put everything on one key and 11 % pass no gradient. …`"""
    columns, names = contents.columns, column_names(contents.columns)
    clauses = [
        _clause(column, name, columns[0] if number else None, glyphs)
        for number, (column, name) in enumerate(zip(columns, names, strict=True))
    ]
    exact = ["Theory is that of exact arithmetic."] if contents.rounded and contents.theory else []
    return glyphs.say(" ".join([*_disagreements(contents), *clauses, *exact]))


def row_words(statistic: Statistic, contents: Contents, glyphs: Glyphs, values: bool) -> str:
    """Return the explanation of a row, with its values if `values` is set, for tables too narrow for them."""
    said: list[str] = []
    names = column_names(contents.columns)
    for index, column in enumerate(contents.columns if values else ()):
        value, rest = (text.strip() for text in measured_text(column, statistic, glyphs))
        exact = theory_text(contents, index, statistic, glyphs)[1].strip() if contents.theory else ""
        known = message(", exact {exact}", exact=exact) if exact.strip("—- ") else ""
        said.append(f"{names[index]} {' '.join((value + ' ' + rest).split())}{known}")
    numbers = f"{'; '.join(said)}. " if said else ""
    text = message(
        "{label}: {numbers}{formula}. {definition} Source: {source}.",
        label=statistic.label,
        numbers=numbers,
        formula=statistic.formula,
        definition=statistic.definition,
        source=statistic.source,
    )
    return glyphs.say(text)


def _disagreements(contents: Contents) -> list[str]:
    """Return a sentence on the measured values that are far from theory, if there are any."""
    found = [
        message(
            "{who} {label} by {deviation:.1f} standard errors",
            who=who,
            label=STATISTIC[name].label,
            deviation=abs(deviation),
        )
        for who, deviations in zip(column_names(contents.columns), contents.deviations, strict=False)
        for name, deviation in deviations.items()
        if deviation is not None and is_far(deviation)
    ]
    return [message("Differs from theory: {found}.", found=", ".join(found))] if found else []


def _who(column: Column, name: str, glyphs: Glyphs) -> str:
    """Return the subject of the sentence on a column with this name: `Unscaled`, `With × 0.125`, `With 1/d_k`."""
    if name == "file":
        return "With the file's scale"
    if name == "scaled":
        return message("With × {multiplier_text}", multiplier_text=multiplier_text(column, glyphs))
    return f"U{name[1:]}" if name.startswith("unscaled") else message("With {name}", name=name)


def _clause(column: Column, name: str, before: Column | None, glyphs: Glyphs) -> str:
    """Return the sentence on a column; shorter after the one on the column `before`."""
    who = _who(column, name, glyphs)
    value = {name: estimate.value for name, estimate in column.measured.items()}
    failed, lost = value.get("nan_rows") or 0, value.get("weight_lost") or 0
    if failed == 1:
        return message("{who}, every row is NaN: logits overflow.", who=who)
    std, rows = value["logit_std"], _extreme_rows(column)
    if std is None:
        return message("{who}, no query sees a key.", who=who)
    if rows is None:
        return message("{who}, no query sees more than one key.", who=who)
    spread = f"{who}, {'logits spread to σ' if before is None else 'σ is'} {short(std, glyphs)}"
    facts = _facts(rows, before and _extreme_rows(before))
    link = " and " if facts.startswith("no row does") else ", " if facts == _LIKEWISE else ": "
    fraction, first, sink = value["entropy_fraction"], value["first_key_weight"], value.get("sink_weight")
    if fraction is not None and fraction > UNIFORM:
        facts += message("; attention is nearly uniform ({fraction} of ln n)", fraction=percent(fraction))
    if is_sink(column.measured):
        facts += (
            message("; the sink gets {sink}", sink=percent(sink))
            if sink
            else message("; the first key gets {percent}", percent=percent(first or 0))
        )
    if abs(lost) > MUCH_LOST:
        facts += message(
            "; rounding {value} {percent} of the weight",
            value="loses" if lost > 0 else "adds",
            percent=percent(abs(lost)),
        )
    if failed:
        why = "" if before is not None and before.measured["nan_rows"].value else " (logits overflow) and not counted"
        facts += message("; {failed} of rows are NaN{why}", failed=percent(failed), why=why)
    return f"{spread}{link}{facts}."


_LIKEWISE = "likewise"


def _extreme_rows(column: Column) -> tuple[float, float] | None:
    """Return the shares of one-hot and of dead rows; None if no row sees two keys."""
    one_hot, dead = column.measured["one_hot_rows"].value, column.measured["dead_rows"].value
    return None if one_hot is None or dead is None else (one_hot, dead)


def _facts(rows: tuple[float, float], before: tuple[float, float] | None) -> str:
    """Return what share of rows is one-hot and dead, in terms of the sentence on the shares `before` if possible."""
    one_hot, dead = map(percent, rows)
    if before is not None and not any(rows):
        return "no row does" if any(before) else _LIKEWISE
    if before is not None and all(before):
        return message("{one_hot} and {dead} do", one_hot=one_hot, dead=dead)
    if not any(rows):
        return "no row puts everything on one key, and all pass gradients"
    if not rows[0]:
        return message("{dead} of rows pass no gradient", dead=dead)
    return message("{one_hot} of rows put everything on one key", one_hot=one_hot) + (
        message(" and {dead} pass no gradient", dead=dead) if rows[1] else ""
    )
