"""The program of a captured head: its queries and keys from the file, and the statistics under its scales."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from types import MappingProxyType
from typing import Any

from ....attention.formats import number_format
from ....captures.capture import HeadSubject
from ....errors import InputError
from ....message import message
from ....parameters import Parameters, Value
from ....scales import SCALE_RULES, ScaleName, row_multiplier, scale_rule
from ....statistics.catalogue import STATISTIC
from ....statistics.column_names import column_names
from ....statistics.measurement import Column, Estimate, Measurement
from ..parts.attention import call, logit_lines, norm_functions, signature, weight_lines
from ..parts.rounding import is_eager, is_rounded, rounding_functions
from ..parts.rule import VARIABLES, factor_code, needed, rule_code
from ..parts.statistics import OF_REPORTS, Rows, chosen, statistics_code
from ..program import Dialect, NoCodeError, Piece, assembled, estimated, number, returned, side_by_side
from .hidden import Hiding
from .loading import Loaded, loaded, without_unused
from .tensors import Reader

_ENDS = ("logit_min", "logit_max", "score_overflow", "nan_rows")
_LARGE = 30_000  # half of the largest number of float16


def head_code(head: Measurement[HeadSubject], dialect: Dialect, command: str) -> str:
    """Return the program that prints the statistics of a head; raise NoCodeError if there is none."""
    columns = [_without_errors(column) for column in head.columns]
    groups = [[*alike] for _, alike in groupby(columns, key=lambda column: column.apart)]
    hides = loaded(head.subject, dialect).hides.hides
    sides = [[_side(head.subject, column, hides) for column in group] for group in groups]
    chosen_of = [chosen(own[0], columns, OF_REPORTS, dialect) for own in sides]
    names = [name for name in chosen_of[0] if all(name in each for each in chosen_of)]
    blocks: list[list[Piece]] = []
    calls: list[str] = []
    for group, own in zip(groups, sides, strict=True):
        pieces, called = _block(head.subject, group, own, columns, names, dialect)
        if len(groups) > 1:  # what follows changes what is measured
            letters = string.ascii_lowercase[len(calls) : len(calls) + len(called)]
            kept = "\n".join(f"{letter} = {each}" for letter, each in zip(letters, called, strict=True))
            pieces, called = [*pieces, Piece(kept)], [*letters]
        blocks.append(pieces)
        calls += called
    shown = {STATISTIC[name].label: [estimated(column.measured[name]) for column in head.columns] for name in names}
    return without_unused(
        assembled([command], blocks, side_by_side(shown, calls, column_names(head.columns)), dialect)
    )


def _side(subject: HeadSubject, column: Column, hides: bool) -> Parameters:
    """Return what stands for a column; raise NoCodeError if no short program computes it in its format.

    `hides`: keys are hidden.
    """
    p = side_of(subject, column.rule, hides, column.apart)
    understood = subject.understood
    biases = sum(each.adds for each in understood.masks) + (understood.slope is not None)
    reasons = {
        message("it adds two biases in {word}", word=p.precision): biases > 1,
        message("its q and k as stored have a factor, which this rule multiplies"): bool(factor_code(p))
        and subject.layer.own_factor != 1,
        message("its scores overflow {word}", word=p.precision): _overflows(column, hides),
    }
    reason = next((reason for reason, holds in reasons.items() if holds and is_rounded(p)), None)
    if reason is not None:
        raise NoCodeError("No short program prints this head: {reason}.", reason=reason)
    return p


def _overflows(column: Column, hides: bool) -> bool:
    """Return whether logits may be infinite where programs do not tell that from a hidden key, or from a score."""
    value = {name: column.measured[name].value or 0.0 for name in _ENDS}
    largest = max(abs(value["logit_min"]), abs(value["logit_max"]))
    infinite = value["score_overflow"] > 0 or value["nan_rows"] > 0
    return (hides and infinite) or (column.multiplier > 1 and largest > _LARGE)


def _block(
    subject: HeadSubject,
    group: Sequence[Column],
    sides: Sequence[Parameters],
    columns: Sequence[Column],
    names: Sequence[str],
    dialect: Dialect,
) -> tuple[list[Piece], list[str]]:
    """Return the pieces that measure columns computed alike, and the call of each."""
    by_position = any("position" in scale_rule(rule).by_row for rule in subject.by_row)
    found = loaded(subject, dialect, by_position, short=sides[0].precision != "float64")
    hides, drawn = found.hides, [*found.lines]
    p, rows = sides[0], Rows(hides.some_rows, hides.hides)
    needs, expressions = statistics_code(p, names, columns, dialect, rows)
    body = [
        *logit_lines(sides, dialect, "q", _bias(subject, p, dialect) if hides.biased else ""),
        *rows.lines(names, dialect),
        *weight_lines(p, dialect),
        *needs,
        *returned(expressions),
    ]
    if any("n_keys" in scale_rule(rule).by_row for rule in subject.by_row) and hides.hides:
        drawn.append("visible = (~hidden).sum(-1)  # keys that each query sees")
    drawn += values_of(subject)
    calls = [
        call(side, sides, "1.0" if factor_code(side) else scale_of(subject, column.rule, column.multiplier, found))
        for side, column in zip(sides, group, strict=True)
    ]
    stored = ""
    if subject.understood.sink is not None and is_rounded(p) and not number_format(p.precision).scaled:
        stored = f"sink = rounded({'np.float32' if dialect == 'python' else 'torch.tensor'}(sink))"
    pieces = [
        Piece("\n".join(drawn)),
        rounding_functions(p, dialect),
        Piece(stored),
        norm_functions(sides, dialect),
        Piece("\n".join([signature(sides), *(f"    {line}" for line in body)]), defines=True),
    ]
    return pieces, calls


def _bias(subject: HeadSubject, p: Parameters, dialect: Dialect) -> str:
    """Return the bias as it is added: in a format as it is stored there, ALiBi only in eager arithmetic."""
    if p.precision == "float64":
        return "bias"
    stored = is_eager(p) or (is_rounded(p) and subject.understood.slope is None)
    if stored and not number_format(p.precision).scaled:
        return "rounded(bias)"
    return "bias.astype(np.float32)" if dialect == "python" else "bias.float()"


def _without_errors(column: Column) -> Column:
    """Return the column without standard errors: statistics of captures are of these texts, with no bias removed."""
    return replace(column, measured={name: Estimate(each.value, None) for name, each in column.measured.items()})


def side_of(
    subject: HeadSubject, rule: ScaleName, hides: bool, apart: Mapping[str, Value] = MappingProxyType({})
) -> Parameters:
    """Return parameters that stand for the head under a rule: what its lines depend on.

    `apart` are a number format, its arithmetic and a soft-cap, where they are not as in the file.
    """
    values: dict[str, Any] = {"precision": "float64", "softcap": subject.layer.softcap or 0.0} | dict(apart)
    try:
        return Parameters(
            scale=rule if rule != "file" else "none",
            mask="causal" if hides else "none",
            sink="none" if subject.understood.sink is None else "logit",
            **values,
        )
    except InputError as error:
        raise NoCodeError("No short program prints this head: {reason}.", reason=error) from None


def values_of(subject: HeadSubject) -> list[str]:
    """Return lines with what rules by row depend on beside d_k, keys and positions."""
    values: dict[str, float] = {}
    for rule, (setting, _) in subject.by_row.items():
        for field in needed(rule):
            if field != "position":
                values[VARIABLES[field]] = getattr(setting, field)
    return [f"{name} = {number(value)}" for name, value in values.items()]


def scale_of(subject: HeadSubject, name: ScaleName, multiplier: float, found: Loaded) -> str:
    """Return what scores as stored are multiplied by under a rule, which is `multiplier` times q·k."""
    layer, understood = subject.layer, subject.understood
    if name == "file" and understood.scales is not None:
        path, tensor, shape = understood.scales
        of_head = subject.head if shape[1] > 1 else 0
        reader = found.reader
        return reader.numbers(f"{reader.tensor(path, tensor)}.reshape{shape}[:, {of_head}, :, None]")
    if name == "file":
        return number(multiplier / layer.own_factor)
    rule = scale_rule(name)
    by_row = name in subject.by_row
    known = name in SCALE_RULES and name != "custom" and {*rule.needs} <= {"d_k", "n_keys"}
    text = rule_code(name, multiplier) if known or by_row else number(multiplier)
    if by_row:
        text = _by_row(subject, name, text, found.hides, found.reader)
    if rule.normalise != "none" or layer.own_factor == 1:
        return text
    return f"{text} / {number(layer.own_factor)}"  # a factor that the stored q and k contain


def _by_row(subject: HeadSubject, rule: str, text: str, hides: Hiding, reader: Reader) -> str:
    """Return the multipliers of each row as an array that broadcasts to the scores."""
    setting, first = subject.by_row[rule]
    by_keys = "n_keys" in scale_rule(rule).by_row and hides.hides
    by_position = "position" in scale_rule(rule).by_row
    if not by_keys and not by_position:  # every row sees all keys
        return text
    if by_keys:
        alone = row_multiplier(rule, replace(setting, n_keys=1)) == 0
        if alone or hides.some_rows:  # the weights of a row that sees one key do not depend on its multiplier
            text = f"{text} if n > {1 if alone else 0} else 0"
    at = f"({'at' if not first else f'at + {first}'}).tolist()" if first else "at.tolist()"
    one = {
        (True, False): "n in {rows}",
        (False, True): f"position in {at}",
        (True, True): f"n, position in zip({{rows}}, {at})",
    }[by_keys, by_position]
    if by_keys and hides.of_texts:
        listed = f"[[[{text}] for {one.format(rows='row')}] for row in visible.tolist()]"
    else:
        listed = f"[[{text}] for {one.format(rows='visible.tolist()')}]"
    if reader.dialect == "torch":
        return reader.numbers(f"torch.tensor({listed})")
    return f"np.array({listed}{', np.float32' if reader.short else ''})"
