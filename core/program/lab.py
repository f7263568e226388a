"""The programs of the Lab and of a worked example; the parts that sweeps and comparisons of rules share.

Programs draw the same numbers as the Lab: components come in chunks of 64, each from a generator seeded by (seed,
side, draw, chunk), as `core/lab/sampling.py` draws them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..against import apart, settings
from ..attention.computation import Computation
from ..attention.worked_example import Example, WorkedExample
from ..errors import ParameterError
from ..lab.scoring import sink_of, visibility
from ..parameters import ComponentLaw, Parameters, rows_differ, scales_vectors, setting_a
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
    store,
    stores_sink,
    weight_lines,
)
from .statistics import GRADIENTS, OF_REPORTS, has_nan_rows, printable, printed
from .text import CodePiece, Dialect, NoCodeError, assembled, estimated, number, returned, shown, side_by_side

LARGEST = 1 << 26  # scores of all draws that a program computes at once; of larger settings it takes fewer draws
_COMPONENTS = 150_000_000  # of queries and keys
_TANHS = 1 << 28  # of additive scores, which a program computes for one query after another

# A chunk of standardised components, with `rng` and the number of `vectors`.
_SAMPLE: dict[ComponentLaw, str] = {
    "normal": "rng.standard_normal((64, vectors), dtype=np.float32)",
    "uniform": "(rng.random((64, vectors), dtype=np.float32) - 0.5) * 12**0.5",
    "laplace": "rng.laplace(scale=0.5**0.5, size=(64, vectors)).astype(np.float32)",
    "rademacher": "rng.integers(0, 2, (64, vectors), dtype=np.int8).astype(np.float32) * 2 - 1",
    "student_t": "(rng.standard_t({nu}, (64, vectors)) * ({nu_less} / {nu}) ** 0.5).astype(np.float32)",
}
_SQUARE = """\
def square(rng, size):  # normal entries, drawn shell by shell: a larger matrix contains this one
    w = np.empty((size, size), np.{dtype})
    for i in range(size):
        shell = rng.standard_normal(2 * i + 1) * size**-0.5{gain}
        w[:i, i], w[i, : i + 1] = shell[:i], shell[i:]
    return w"""
_VECTOR = """\
def vector(rng, size):
    return (rng.standard_normal(size) * size**-0.5{gain}).astype(np.{dtype})"""


def draws_of(p: Parameters) -> int:
    """Return the draws that a program takes: all, unless they are too large."""
    pairs, vectors = p.n_queries * p.n_keys, (p.n_queries + p.n_keys) * p.d_k
    most = min(LARGEST // pairs, _COMPONENTS // vectors)
    if p.mechanism == "additive":
        most = min(most, _TANHS // (pairs * p.d_k), LARGEST // (p.n_keys * p.d_k))
    return min(p.batch, max(most, 2))


def remarks(sides: Sequence[Parameters]) -> list[str]:
    """Return what is to be said about the draws of a program."""
    fewer = next((p for p in sides if draws_of(p) < p.batch), None)
    if fewer is None:
        return []
    said = "The first {} draws; the expected values are of all {}, which take longer, or more memory."
    return [said.format(draws_of(fewer), fewer.batch)]


def draw_functions(p: Parameters, gradients: bool) -> Sequence[CodePiece]:
    """Return the functions that draw vectors and learned weights.

    With `gradients`, values and gradients are drawn too, which are normal whatever the law of components is.
    """
    law, normal = (_SAMPLE[name].format(nu=p.degrees_of_freedom, nu_less=p.degrees_of_freedom - 2)
                   for name in (p.components, "normal"))  # fmt: skip
    drawn = f"    x = [{law} for rng in rngs]"
    if gradients and p.components != "normal":
        drawn = f"    if stream < 3:\n    {drawn}\n    else:  # values, and the gradient of the output\n"
        drawn += f"        x = [{normal} for rng in rngs]"
    exact = ".astype(np.float64)" if p.precision == "float64" else ""
    lines = [
        "def draw(stream, vectors, width):  # a generator for each draw and every 64 components, as in attn-tui",
        "    seeds = [SeedSequence(seed, spawn_key=(stream, *at)) for at in np.ndindex(batch, -(-width // 64))]",
        "    rngs = [Generator(SFC64(each)) for each in seeds]",
        drawn,
        f"    return np.reshape(x, (batch, -1, vectors))[:, :width].mT{exact}",
    ]
    gain = "" if p.gain == 1 else f" * {number(p.gain)}"
    dtype = "float64" if p.precision == "float64" else "float32"
    square = _SQUARE.format(gain=gain * (p.mechanism == "bilinear"), dtype=dtype)
    learned = {"bilinear": [square], "additive": [square, _VECTOR.format(gain=gain, dtype=dtype)]}
    texts = "\n".join(lines), "\n\n\n".join(learned.get(p.mechanism, ()))
    return [CodePiece(text, defines=True, drawn=True) for text in texts]


def drawn_lines(p: Parameters, c: Computation, gradients: bool) -> str:
    """Return the lines that draw queries, keys and learned weights, and say which keys are hidden."""
    wide = (p.mean_q or p.mean_k) and p.precision == "float32" and p.mechanism == "dot_product"
    precise = ".astype(np.float64)" if wide else ""
    lines = [f"q, k = draw(0, m, d_k){precise}, draw(1, n, d_k){precise}"]
    if p.correlation:
        size, sign = number(abs(p.correlation)), "+" if p.correlation > 0 else "-"
        lines += [
            f"shared = {size}**0.5 * draw(2, 1, d_k)  # what all q and k have in common: correlation "
            f"{number(p.correlation)}",
            f"q, k = (1 - {size}) ** 0.5 * q + shared, (1 - {size}) ** 0.5 * k {sign} shared",
        ]
    placed = [_placed("q", p.mean_q, p.std_q), _placed("k", p.mean_k, p.std_k)]
    lines += [f"q, k = {', '.join(placed)}"] if placed != ["q", "k"] else []
    stored = f"{store(c)}({{}})" if is_rounded(c) else "{}"
    rng = "rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(5,)))"
    if p.mechanism == "bilinear":
        lines += [rng, f"w = {stored.format('square(rng, d_k)')}"]
    elif p.mechanism == "additive":
        both = (stored.format(f"square(rngs[{at}], d_k)") for at in (0, 1))
        v = "vector(rngs[2], d_k)"
        v = f"{stored.format(f'{v}[None]')}[0]" if is_rounded(c) else v
        lines += [rng, "rngs = rng.spawn(3)", f"w_q, w_k = {', '.join(both)}", f"w_v = {v}"]
    lines += ["hidden = np.arange(n) > np.arange(m)[:, None]  # the causal mask"] if p.mask != "none" else []
    if gradients:
        lines.append("v, g = draw(3, n, d_v), draw(4, m, d_v)  # values, and the gradient of the output")
    return "\n".join(lines)


def _placed(name: str, mean: float, std: float) -> str:
    found = name if std == 1 else f"{number(std)} * {name}"
    return found if mean == 0 else f"{number(mean)} + {found}"


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
    blocks: list[list[CodePiece]] = []
    calls: list[str] = []
    for sides, names_of in groups:
        lines = parts(sides, names_of, names)
        blocks.append([lines.values, *lines.functions, CodePiece(lines.drawn), lines.measure])
        calls += lines.calls
        if len(groups) > 1:  # what follows changes what is measured
            letter = "ab"[len(blocks) - 1]
            blocks[-1].append(CodePiece(f"{letter} = {lines.calls[0]}"))
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
    plain = p.mechanism == "dot_product" and all(scale_rule(column.rule).normalise == "none" for column in columns)
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

    values: CodePiece  # sizes, seed and what the rules need
    functions: Sequence[CodePiece]
    drawn: str  # lines that draw queries, keys and values, and make the mask
    measure: CodePiece
    calls: Sequence[str]  # of `measure`, one for each setting


def parts(
    sides: Sequence[Parameters], columns: Sequence[Column], names: Sequence[str], swept: Collection[str] = ()
) -> Parts:
    """Return the parts of a program that prints these statistics; raise NoCodeError if there is none.

    Variables named in `swept`, d_k or n, are set elsewhere.
    """
    several = [computation_of(side) for side in sides]
    p, c = sides[0], several[0]
    for side, column in zip(sides, several, strict=True):
        constant = 0 in (side.std_q, side.std_k) and not side.correlation
        if (constant and column.norms[0] != "none") or (side.d_k == 1 and column.norms[0] == "layer_norm"):
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
        CodePiece("\n".join([signature(several), *(f"    {line}" for line in body)]), defines=True),
        [_call(*side, several, "n" in swept) for side in zip(sides, several, strict=True)],
    )


def _is_biased(p: Parameters, columns: Sequence[Column]) -> bool:
    """Return whether the bias of a sample's standard deviation shows in four digits."""
    spreads = [column.measured["logit_std"] for column in columns if "logit_std" in column.measured]
    return p.batch < _MANY or any(
        (estimate.stderr or math.inf) > 0.01 * abs(estimate.value or 0) for estimate in spreads
    )


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
        alone = row_multiplier(p.scale, p.setting._replace(n_keys=1)) != 0
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


def sizes(sides: Sequence[Parameters], gradients: bool = False, swept: Collection[str] = ()) -> CodePiece:
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
    return CodePiece("\n".join(lines))


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
    pieces = [CodePiece("\n".join(lines)), CodePiece(_OF_SCORES, defines=True)]
    figures = [
        {
            **{f"weight {place}": weight for place, weight in enumerate(each.weights, 1)},
            "entropy": each.entropy,
            "sum of p^2": each.sum_squared_weights,
            "norm of the Jacobian": each.jacobian_norm,
        }
        for each in sides
    ]
    rows = {name: [shown(figure[name]) for figure in figures] for name in figures[0]}
    calls = [f"measure({rule_code(p.scale, p.multiplier)})" for p in settings]
    return assembled([command], [pieces], side_by_side(rows, calls, ("A", "B")), dialect)
