"""The program of a captured head: its queries and keys from the file, and the statistics under its scales."""

from __future__ import annotations

from dataclasses import replace

from ....captures.capture import HeadSubject
from ....errors import InputError
from ....parameters import Parameters
from ....scales import SCALE_RULES, row_multiplier, scale_rule
from ....statistics.catalogue import STATISTIC
from ....statistics.column_names import column_names
from ....statistics.measurement import Column, Estimate, Measurement
from ..attention import call, logit_lines, norm_functions, signature, weight_lines
from ..program import Dialect, NoCodeError, Piece, assembled, estimated, expected, number
from ..rule import VARIABLES, needed, rule_code
from ..statistics import OF_REPORTS, chosen, row_lines, statistics_lines
from .hidden import Hiding, hiding
from .tensors import Reader, opened, reader_of


def head_code(head: Measurement[HeadSubject], dialect: Dialect, command: str) -> str:
    """Return the program that prints the statistics of a head; raise NoCodeError if there is none."""
    subject = head.subject
    layer, at = subject.layer, subject.head
    reader = reader_of(subject, dialect)
    by_position = any("position" in scale_rule(rule).by_row for rule in subject.by_row)
    hides = hiding(subject, reader, by_position)
    columns = [_without_errors(column) for column in head.columns]
    sides = [_side(subject, column, hides.hides) for column in columns]
    p = sides[0]
    names = chosen(p, columns, OF_REPORTS, dialect)
    rows = row_lines(names, dialect, hides.some_rows, hides.hides)
    body = [
        *logit_lines(sides, dialect, "q", biased=hides.biased),
        *rows,
        *weight_lines(p, dialect),
        *statistics_lines(p, names, columns, dialect, rows),
    ]
    drawn = [
        *([f"file = {opened(reader.alone)}"] if reader.alone else []),
        reader.vectors("q", layer.q, at),
        reader.vectors("k", layer.k, at // (layer.heads // layer.kv_heads)),
        "m, n, d_k = q.shape[1], k.shape[1], q.shape[2]",
        *hides.lines,
    ]
    if subject.understood.sink is not None:
        drawn.append(f"sink = {number(subject.understood.sink)}  # the logit of no key, of this head")
    if any("n_keys" in scale_rule(rule).by_row for rule in subject.by_row) and hides.hides:
        drawn.append("visible = (~hidden).sum(-1)  # keys that each query sees")
    drawn += _values(subject)
    letters = "ab"[: len(columns)]
    calls = [
        f"{letter} = {call(side, sides, _scale(subject, column, reader, hides))}"
        for letter, side, column in zip(letters, sides, columns, strict=True)
    ]
    shown = {STATISTIC[name].label: [estimated(column.measured[name]) for column in head.columns] for name in names}
    wide = max(map(len, shown)) + 2
    show = "".join(f"{{{letter}[name]:12.4g}}" for letter in letters)
    end = [f"for name in {letters[-1]}:", f'    print(f"{{name:{wide}}}{show}")']
    pieces = [
        Piece("\n".join(drawn)),
        norm_functions(sides, dialect),
        Piece("\n".join([signature(sides), *(f"    {line}" for line in body)]), defines=True),
        Piece("\n".join(calls)),
    ]
    return assembled([command], [pieces], [*end, *expected(column_names(head.columns), shown)], dialect)


def _without_errors(column: Column) -> Column:
    """Return the column without standard errors: statistics of captures are of these texts, with no bias removed."""
    return replace(column, measured={name: Estimate(each.value, None) for name, each in column.measured.items()})


def _side(subject: HeadSubject, column: Column, hides: bool) -> Parameters:
    """Return parameters that stand for the head under the rule of a column: what its lines depend on."""
    try:
        return Parameters(
            scale=column.rule if column.rule != "file" else "none",
            mask="causal" if hides else "none",
            softcap=subject.layer.softcap or 0.0,
            sink="none" if subject.understood.sink is None else "logit",
            precision="float64",
        )
    except InputError as error:
        raise NoCodeError("No short program prints this head: {reason}.", reason=error) from None


def _values(subject: HeadSubject) -> list[str]:
    """Return lines with what rules by row depend on beside d_k, keys and positions."""
    values: dict[str, float] = {}
    for rule, (setting, _) in subject.by_row.items():
        for field in needed(rule):
            if field != "position":
                values[VARIABLES[field]] = getattr(setting, field)
    return [f"{name} = {number(value)}" for name, value in values.items()]


def _scale(subject: HeadSubject, column: Column, reader: Reader, hides: Hiding) -> str:
    """Return what scores as stored are multiplied by."""
    layer, understood = subject.layer, subject.understood
    if column.rule == "file" and understood.scales is not None:
        path, name, shape = understood.scales
        of_head = subject.head if shape[1] > 1 else 0
        return reader.numbers(f"{reader.tensor(path, name)}.reshape{shape}[:, {of_head}, :, None]")
    if column.rule == "file":
        return number(column.multiplier / layer.own_factor)
    rule = scale_rule(column.rule)
    by_row = column.rule in subject.by_row
    known = column.rule in SCALE_RULES and column.rule != "custom" and {*rule.needs} <= {"d_k", "n_keys"}
    text = rule_code(column.rule, column.multiplier) if known or by_row else number(column.multiplier)
    if by_row:
        text = _by_row(subject, column.rule, text, hides, reader)
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
    return f"np.array({listed})" if reader.dialect == "python" else f"torch.tensor({listed}).double()"
