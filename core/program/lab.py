"""The programs of the Lab and of a worked example; the parts that sweeps and comparisons of rules share."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..against import apart, settings
from ..attention.computation import Computation
from ..attention.worked_example import Example, WorkedExample
from ..errors import ParameterError
from ..lab.scoring import sink_of, visibility
from ..parameters import Parameters, rows_differ, scales_vectors, setting_a
from ..scales import row_multiplier, scale_rule
from ..statistics.catalogue import STATISTIC
from ..statistics.measurement import Column, Measurement, column_names
from .attention import (
    call,
    gradient_lines,
    is_rounded,
    logit_lines,
    norm_functions,
    rounding_functions,
    signature,
    stores_sink,
    weight_lines,
)
from .drawing import draw_functions, drawn_lines, draws_of, remarks
from .statistics import GRADIENTS, OF_REPORTS, has_nan_rows, printable, printed
from .text import Dialect, NoCodeError, Piece, assembled, estimated, number, returned, shown, side_by_side

Group: TypeAlias = tuple[Sequence[Parameters], Sequence[Column]]  # settings with the same scores, and their columns

# The names of the programs' variables, by the names of the fields that a rule may need.
VARIABLES = {"layer": "layer", "position": "position", "context_factor": "s", "temperature": "t"}
_OF_SCORES = """\
def measure(scale):
    x = scale * scores / temperature + shift  # logits
    p = np.exp(x - x.max())
    p = p / p.sum()
    entropy = -(p * np.log(p.clip(1e-300))).sum()
    return *p, entropy, (p**2).sum(), np.linalg.norm(np.diag(p) - np.outer(p, p))"""
_DIFFERENTIATED = 256  # rows of a draw whose gradients are measured (core/statistics/tally.py)
_MANY = 8  # draws that tell the standard error of a standard deviation


def report_code(measurement: Measurement[Parameters], dialect: Dialect, command: str) -> str:
    """Return the program that prints the statistics of a report; raise NoCodeError if there is none."""
    groups = groups_of(measurement.subject, measurement.columns)
    columns = measurement.columns
    names = printed_names(groups, OF_REPORTS)
    blocks: list[list[Piece]] = []
    calls: list[str] = []
    for sides, own in groups:
        found = parts(sides, own, names)
        blocks.append([found.values, *found.functions, Piece(found.drawn), found.measure])
        calls += found.calls
        if len(groups) > 1:  # what follows changes what is measured
            letter = "ab"[len(blocks) - 1]
            blocks[-1].append(Piece(f"{letter} = {found.calls[0]}"))
            calls[-1] = letter
    rows = {STATISTIC[name].label: [estimated(column.measured[name]) for column in columns] for name in names}
    titles = [f"{letter} {title}" for letter, title in zip("AB", column_names(columns), strict=True)]
    said = remarks([side for sides, _ in groups for side in sides])
    return assembled([command, *said], blocks, side_by_side(rows, calls, titles), dialect)


def groups_of(p: Parameters, columns: Sequence[Column]) -> list[Group]:
    """Return A and B with their columns: together if they share their scores, else apart."""
    a, b = settings(p)
    if any({*own} - {"normalise"} for own in apart(p)):  # they differ in more than the rule
        return [([a], [columns[0]]), ([b], [columns[1]])]
    return [([a, b], [*columns])]


def printed_names(groups: Sequence[Group], wanted: Sequence[str]) -> list[str]:
    """Return the wanted statistics that a program can print for all settings."""
    every = [column for _, columns in groups for column in columns]
    found = [_printable(sides, every, wanted) for sides, _ in groups]
    return [name for name in found[0] if all(name in names for names in found)]


def _printable(sides: Sequence[Parameters], columns: Sequence[Column], wanted: Sequence[str]) -> list[str]:
    p = sides[0]
    plain = p.mechanism == "dot_product" and all(scale_rule(each.rule).normalise == "none" for each in columns)
    names = printable(computation_of(p), columns, wanted, plain)
    usual = Parameters()
    fields = ("mean_q", "std_q", "mean_k", "std_k", "correlation", "mask", "mechanism", "softcap")
    same = all(getattr(p, name) == getattr(usual, name) for name in fields)
    left_out: set[str] = set()
    if not same or computation_of(p).norms[0] != "none" or is_rounded(computation_of(p)):
        left_out |= {"logit_excess_kurtosis", "logit_within_3sd"}  # measured about the law's own mean and spread
    if draws_of(p) < p.batch:
        left_out |= {"logit_min", "logit_max"}
    if p.mask == "none" and p.sink == "none" and wanted is OF_REPORTS:
        left_out.add("first_key_weight")
    return [name for name in names if name not in left_out]


def computation_of(p: Parameters) -> Computation:
    """Return how weights are computed in a setting; a program has the multipliers and learned weights by name."""
    norm = scale_rule(p.scale).normalise
    return Computation(
        norms=(norm, norm),
        gain=p.norm_gain,
        factor=0.0 if scales_vectors(p, p.scale) else 1.0,  # not 1: a program has it by name, too
        mechanism=p.mechanism,
        softcap=p.softcap or None,
        visibility=visibility(p),
        sink=sink_of(p),
        precision=p.precision,
        arithmetic=p.arithmetic,
    )


@dataclass(frozen=True)
class Parts:
    """What the program of some settings consists of, in this order."""

    values: Piece  # sizes, seed and what the rules need
    functions: Sequence[Piece]
    drawn: str  # lines that draw queries, keys and values, and make the mask
    measure: Piece
    calls: Sequence[str]  # of `measure`, one for each setting


def parts(
    sides: Sequence[Parameters], columns: Sequence[Column], names: Sequence[str], swept: Collection[str] = ()
) -> Parts:
    """Return the parts of a program that prints these statistics; raise NoCodeError if there is none.

    Variables named in `swept`, d_k or n, are set elsewhere.
    """
    several = [computation_of(side) for side in sides]
    p, c = sides[0], several[0]
    for side, each in zip(sides, several, strict=True):
        constant = 0 in (side.std_q, side.std_k) and not side.correlation
        if (constant and each.norms[0] != "none") or (side.d_k == 1 and each.norms[0] == "layer_norm"):
            raise NoCodeError("No code: queries or keys are constant vectors, and normalising them is rounding.")
    gradients = bool({*GRADIENTS} & {*names})
    found = printed(c, names, nan=has_nan_rows(columns), biased=_is_biased(p, columns))
    every = -(-p.n_queries // _DIFFERENTIATED)
    rows = "" if every == 1 else f"[:, {every // 2}::{every}]  # of at most {_DIFFERENTIATED} rows"
    body = [
        *logit_lines(several),
        *(weight_lines(c) if found.weights else []),
        *(gradient_lines(several, rows) if gradients else []),
        *found.lines,
        *returned(found.expressions),
    ]
    drawn = drawn_lines(p, c, gradients)
    if stores_sink(c):
        drawn += f"\nsink = rounded(np.array({p.sink_logit:g}, dtype=np.float32))"
    return Parts(
        sizes(sides, gradients, swept),
        [*draw_functions(p, gradients), rounding_functions(c), norm_functions(several), found.functions],
        drawn,
        Piece("\n".join([signature(several), *(f"    {line}" for line in body)]), defines=True),
        [_call(*each, several, "n" in swept) for each in zip(sides, several, strict=True)],
    )


def _is_biased(p: Parameters, columns: Sequence[Column]) -> bool:
    """Return whether the bias of a sample's standard deviation shows in four digits."""
    found = [column.measured["logit_std"] for column in columns if "logit_std" in column.measured]
    return p.batch < _MANY or any((each.stderr or math.inf) > 0.01 * abs(each.value or 0) for each in found)


def _call(p: Parameters, c: Computation, several: Sequence[Computation], n_swept: bool) -> str:
    """Return the call of `measure` for a setting."""
    code = rule_code(p.scale, p.multiplier)
    return call(c, several, "1.0" if c.factor != 1 else scale_code(p, n_swept), f"({code}) ** 0.5")


def rule_code(name: str, multiplier: float) -> str:
    """Return the expression of a rule's multiplier; `multiplier` is that of the rule `custom`."""
    return scale_rule(name).code or repr(float(multiplier))


def scale_code(p: Parameters, n_swept: bool = False) -> str:
    """Return the multiplier of a setting's rule: a number, or a column with one for each row where rows differ.

    With `n_swept`, the program runs over numbers of keys.
    """
    text = rule_code(p.scale, p.multiplier)
    if not rows_differ(p, p.scale):
        return text
    last = "min(m, n)" if n_swept else "m" if p.n_queries <= p.n_keys else "n"
    try:
        alone = row_multiplier(p.scale, replace(p.setting, n_keys=1)) != 0
    except ParameterError:
        alone = True
    # A row with one key has weight 1 whatever its multiplier is.
    rows = f"[[{text}{'' if alone else ' if n > 1 else 0'}] for n in range(1, {last} + 1)]"
    if p.n_queries > p.n_keys or n_swept:
        rows += f" + [[{text}]] * {'max(m - n, 0)' if n_swept else '(m - n)'}"
    return f"np.array({rows}, dtype=np.{'float64' if p.precision == 'float64' else 'float32'})"


def needed(name: str) -> list[str]:
    """Return the fields that a rule's code needs besides d_k and the number of keys."""
    return [need for need in scale_rule(name).needs if need in VARIABLES]


def sizes(sides: Sequence[Parameters], gradients: bool = False, swept: Collection[str] = ()) -> Piece:
    """Return the line with the sizes and the seed, and one with what the rules need."""
    p, c = sides[0], computation_of(sides[0])
    values = {"seed": p.seed, "batch": draws_of(p), "m": p.n_queries, "n": p.n_keys, "d_k": p.d_k}
    values |= {"d_v": p.d_v} if gradients else {}
    values = {name: value for name, value in values.items() if name not in swept}
    more = {VARIABLES[field]: getattr(side, field) for side in sides for field in needed(side.scale)}
    more |= {"sink": p.sink_logit} if c.sink is not None and not stores_sink(c) else {}
    of_keys = "" if "n" in swept else ", n keys"
    lines = [f"{', '.join(values)} = {', '.join(map(str, values.values()))}  # m queries{of_keys}"]
    if more:
        lines.append(f"{', '.join(more)} = {', '.join(f'{value:.10g}' for value in more.values())}")
    return Piece("\n".join(lines))


def softmax_code(
    example: Example, parameters: Parameters, sides: Sequence[WorkedExample], dialect: Dialect, command: str
) -> str:
    """Return the program that prints the weights, their entropy and their Jacobian under A and B."""
    lines = [
        f"scores = np.array([{', '.join(map(number, example.scores))}], dtype=np.float64)",
        f"temperature, shift = {number(example.temperature)}, {number(example.shift)}",
    ]
    settings, names = (setting_a(parameters), parameters), {"d_k": "d_k", "n_keys": "n"} | VARIABLES
    needs = [need for side in settings for need in scale_rule(side.scale).needs if need in names]
    lines += [f"{names[need]} = {number(getattr(parameters, need))}" for need in dict.fromkeys(needs)]
    pieces = [Piece("\n".join(lines)), Piece(_OF_SCORES, defines=True)]
    figures = [
        {
            **{f"weight {place}": weight for place, weight in enumerate(each.weights, 1)},
            "entropy": each.entropy,
            "sum of p^2": each.sum_squared_weights,
            "norm of the Jacobian": each.jacobian_norm,
        }
        for each in sides
    ]
    rows = {name: [shown(each[name]) for each in figures] for name in figures[0]}
    calls = [f"measure({rule_code(p.scale, p.multiplier)})" for p in settings]
    return assembled([command], [pieces], side_by_side(rows, calls, ("A", "B")), dialect)
