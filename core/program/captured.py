"""The program of a captured head: its queries and keys from the file, and the statistics under its scales."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from ..attention.computation import Computation
from ..attention.visibility import Bias, Slope, Visibility
from ..captures.capture import HeadSubject
from ..message import message
from ..scales import SCALE_RULES, row_multiplier, scale_rule
from ..statistics.catalogue import STATISTIC
from ..statistics.measurement import Column, Measurement, column_names
from .attention import (
    call,
    is_rounded,
    logit_lines,
    norm_functions,
    rounding_functions,
    signature,
    stores_sink,
    weight_lines,
)
from .lab import VARIABLES, needed, rule_code
from .reading import HeadCode, loaded, without_unused
from .statistics import OF_REPORTS, has_nan_rows, printable, printed
from .text import CodePiece, Dialect, NoCodeError, assembled, estimated, number, returned, side_by_side

_FILE = "file"  # the rule that multiplies as the file says
_ENDS = ("logit_min", "logit_max", "score_overflow", "nan_rows")
_LARGE = 30_000  # half of the largest number of float16


def head_code(head: Measurement[HeadSubject], dialect: Dialect, command: str) -> str:
    """Return the program that prints the statistics of a head; raise NoCodeError if there is none."""
    columns, subject = head.columns, head.subject
    code = loaded(subject, dialect)
    groups = [[*alike] for _, alike in groupby(columns, key=lambda column: column.apart)]
    made = [[_computation(subject, column, code) for column in group] for group in groups]
    every = [printable(several[0], columns, OF_REPORTS) for several in made]
    names = [name for name in every[0] if all(name in column for column in every)]
    blocks: list[list[CodePiece]] = []
    calls: list[str] = []
    for group, several in zip(groups, made, strict=True):
        pieces, called = _block(subject, group, several, names, has_nan_rows(columns), dialect)
        if len(groups) > 1:  # what follows changes what is measured
            letters = string.ascii_lowercase[len(calls) : len(calls) + len(called)]
            kept = "\n".join(f"{letter} = {each}" for letter, each in zip(letters, called, strict=True))
            pieces, called = [*pieces, CodePiece(kept)], [*letters]
        blocks.append(pieces)
        calls += called
    shown = {STATISTIC[name].label: [estimated(column.measured[name]) for column in columns] for name in names}
    text = assembled([command], blocks, side_by_side(shown, calls, column_names(columns)), dialect)
    return without_unused(text)


def _computation(subject: HeadSubject, column: Column, code: HeadCode) -> Computation:
    """Return how a column is computed; raise NoCodeError if no short program computes it in its format."""
    apart: dict[str, Any] = {"precision": "float64", "softcap": subject.layer.softcap} | dict(column.apart)
    c = replace(computation_of(subject, code), **(apart | {"softcap": apart["softcap"] or None}))
    if column.rule != _FILE:
        rule = scale_rule(column.rule)
        c = replace(c, norms=(rule.normalise, rule.normalise), factor=0.0 if rule.on_vectors else 1.0)
    reasons = {
        message("it adds two biases in {word}", word=c.precision): len(c.biases) > 1,
        message("its q and k as stored have a factor, which this rule multiplies"): c.factor != 1
        and subject.layer.own_factor != 1,
        message("its scores overflow {word}", word=c.precision): _overflows(column, code.hides),
    }
    reason = next((reason for reason, holds in reasons.items() if holds and is_rounded(c)), None)
    if reason is not None:
        raise NoCodeError("No short program prints this head: {reason}.", reason=reason)
    return c


def computation_of(subject: HeadSubject, code: HeadCode) -> Computation:
    """Return what the file says of a head but its soft-cap, in float64; arrays, which a program names, are empty."""
    extras, nowhere = subject.extras, np.arange(0)
    biases = [Bias(np.zeros((1, 1, 0))) for mask in extras.masks if mask.adds]
    slopes = [] if extras.slope is None else [Slope(extras.slope, nowhere, 0)]
    return Computation(
        biases=(*biases, *slopes),
        visibility=Visibility(0, nowhere) if code.hides else None,
        sink=extras.sink,
    )


def _block(
    subject: HeadSubject,
    group: Sequence[Column],
    several: Sequence[Computation],
    names: Sequence[str],
    nan: bool,
    dialect: Dialect,
) -> tuple[list[CodePiece], list[str]]:
    """Return the pieces that measure columns computed alike, and the call of each."""
    c = several[0]
    by_row = [scale_rule(rule).by_row for rule in subject.by_row]
    by_position = any("position" in fields for fields in by_row)
    code = loaded(subject, dialect, by_position=by_position, short=c.precision != "float64")
    said = printed(c, names, some_rows=code.some_rows, nan=nan)
    body = [*logit_lines(several), *said.rows, *weight_lines(c), *said.lines, *returned(said.expressions)]
    lines = [*code.lines]
    if code.hides and any("n_keys" in fields for fields in by_row):
        lines.append("visible = (~hidden).sum(-1)  # keys that each query sees")
    values = {VARIABLES[field]: getattr(setting, field) for rule, (setting, _) in subject.by_row.items()
              for field in needed(rule) if field != "position"}  # fmt: skip
    lines += [f"{name} = {number(value)}" for name, value in values.items()]
    calls = [
        call(computation, several, "1.0", f"({rule_code(column.rule, column.multiplier)}) ** 0.5")
        if computation.factor != 1
        else call(computation, several, scale_of(subject, column.rule, column.multiplier, code), "")
        for computation, column in zip(several, group, strict=True)
    ]
    pieces = [
        CodePiece("\n".join(lines)),
        rounding_functions(c),
        CodePiece("sink = rounded(np.array(sink, dtype=np.float32))" if stores_sink(c) else ""),
        norm_functions(several),
        CodePiece("\n".join([signature(several), *(f"    {line}" for line in body)]), defines=True),
    ]
    return pieces, calls


def _overflows(column: Column, hides: bool) -> bool:
    """Return whether logits may be infinite where programs do not tell that from a hidden key, or from a score."""
    value = {name: column.measured[name].value or 0.0 for name in _ENDS}
    largest = max(abs(value["logit_min"]), abs(value["logit_max"]))
    infinite = value["score_overflow"] > 0 or value["nan_rows"] > 0
    return (hides and infinite) or (column.multiplier > 1 and largest > _LARGE)


def scale_of(subject: HeadSubject, name: str, multiplier: float, code: HeadCode) -> str:
    """Return what scores as stored are multiplied by under a rule, which is `multiplier` times q·k."""
    factor, extras = subject.layer.own_factor, subject.extras
    if name == _FILE and extras.scales is not None:
        return row_scales(subject, code)
    if name == _FILE:
        return number(multiplier / factor)
    rule = scale_rule(name)
    by_row = name in subject.by_row
    known = name in SCALE_RULES and name != "custom" and {*rule.needs} <= {"d_k", "n_keys"}
    text = rule_code(name, multiplier) if known or by_row else number(multiplier)
    text = _by_row(subject, name, text, code) if by_row else text
    in_vectors = factor != 1 and rule.normalise == "none"  # the factor that stored q and k contain
    return f"{text} / {number(factor)}" if in_vectors else text


def row_scales(subject: HeadSubject, code: HeadCode) -> str:
    """Return the multipliers of texts, heads and queries that the file has, as an array that broadcasts to scores."""
    assert subject.extras.scales is not None
    path, tensor, shape = subject.extras.scales
    head = subject.head if shape[1] > 1 else 0
    return code.reader.numbers(f"{code.reader.tensor(path, tensor)}.reshape{shape}[:, {head}, :, None]")


def _by_row(subject: HeadSubject, rule: str, text: str, code: HeadCode) -> str:
    """Return the multipliers of each row as an array that broadcasts to the scores."""
    setting, first = subject.by_row[rule]
    by_keys = "n_keys" in scale_rule(rule).by_row and code.hides
    by_position = "position" in scale_rule(rule).by_row
    if not by_keys and not by_position:  # every row sees all keys
        return text
    if by_keys:
        alone = row_multiplier(rule, setting._replace(n_keys=1)) == 0
        if alone or code.some_rows:  # the weights of a row that sees one key do not depend on its multiplier
            text = f"{text} if n > {1 if alone else 0} else 0"
    at = f"(at + {first}).tolist()" if first else "at.tolist()"
    one = {
        (True, False): "n in {rows}",
        (False, True): f"position in {at}",
        (True, True): f"n, position in zip({{rows}}, {at})",
    }[by_keys, by_position]
    listed = f"[[{text}] for {one.format(rows='visible.tolist()')}]"
    if by_keys and code.of_texts:
        listed = f"[[[{text}] for {one.format(rows='row')}] for row in visible.tolist()]"
    return f"np.array({listed}, dtype=np.float{32 if code.reader.short else 64})"
