"""The program of a report: queries and keys, the logits and weights of A and B, and their statistics."""

from __future__ import annotations

from collections.abc import Sequence

from ...against import apart, settings
from ...attention.formats import number_format
from ...parameters import Parameters
from ...statistics.catalogue import STATISTIC
from ...statistics.column_names import column_names
from ...statistics.measurement import Column, Measurement
from .attention import call, logit_lines, mask, norm_functions, norm_of, signature, weight_lines
from .drawing import draw_function, vectors, weights, weights_function
from .program import Dialect, NoCodeError, Piece, assembled, estimated, expected
from .rounding import is_rounded, needs_ml_dtypes, rounding_functions
from .rule import VARIABLES, needed, scale_code
from .statistics import chosen, gradient_lines, statistics_lines, std_function, uses_autograd

_LARGEST = 1 << 26  # scores of all draws that a program computes at once; of larger settings it takes fewer draws


def report_code(measurement: Measurement[Parameters], dialect: Dialect, command: str) -> str:
    """Return the program that prints the statistics of a report; raise NoCodeError if there is none."""
    a, b = settings(measurement.subject)
    columns = measurement.columns
    together = [([a, b], [*columns])]
    groups = [([a], [columns[0]]), ([b], [columns[1]])] if _apart(measurement.subject) else together
    return settings_code(groups, column_names(columns), dialect, command)


def settings_code(
    groups: Sequence[tuple[Sequence[Parameters], Sequence[Column]]],
    titles: Sequence[str],
    dialect: Dialect,
    command: str,
) -> str:
    """Return the program that prints the statistics of columns; those of a group share their scores."""
    for sides, _ in groups:
        _check(sides)
    every = [column for _, columns in groups for column in columns]
    names = [chosen(sides[0], every, dialect) for sides, _ in groups]
    printed = [name for name in names[0] if all(name in each for each in names)]
    blocks = [_block(sides, every, printed, dialect, _letters(groups, at)) for at, (sides, _) in enumerate(groups)]
    letters = [letter for at in range(len(groups)) for letter in _letters(groups, at)]
    rows = {STATISTIC[name].label: [estimated(column.measured[name]) for column in every] for name in printed}
    wide = max(map(len, rows)) + 2
    show = "".join(f"{{{letter}[name]:12.4g}}" for letter in letters)
    end = [
        f"for name in {letters[-1]}:",
        f'    print(f"{{name:{wide}}}{show}")',
        *expected(
            [
                f"{letter.upper()} {title}" if len(letters) == 2 else title
                for letter, title in zip(letters, titles, strict=True)
            ],
            rows,
        ),
    ]
    head = [command, *_remarks([side for sides, _ in groups for side in sides])]
    return assembled(head, _imports([side for sides, _ in groups for side in sides], dialect), blocks, end)


def _letters(groups: Sequence[tuple[Sequence[Parameters], Sequence[Column]]], at: int) -> list[str]:
    before = sum(len(sides) for sides, _ in groups[:at])
    return [chr(ord("a") + before + number) for number in range(len(groups[at][0]))]


def _apart(p: Parameters) -> bool:
    """Return whether A and B need their own scores: they differ in more than the rule."""
    return any({*own} - {"normalise"} for own in apart(p))


def _block(
    sides: Sequence[Parameters],
    columns: Sequence[Column],
    names: Sequence[str],
    dialect: Dialect,
    letters: Sequence[str],
) -> list[Piece]:
    """Return the pieces of settings that share their scores."""
    p = sides[0]
    loss = "grad_q_rms" in names
    autograd = uses_autograd(p, names, dialect)
    body = [
        *(["x = q.clone().requires_grad_()"] if autograd else []),
        *logit_lines(sides, dialect, "x" if autograd else "q"),
        *weight_lines(p, dialect),
        *gradient_lines(p, names, dialect),
        *statistics_lines(p, names, columns, dialect),
    ]
    measure = "\n".join([signature(sides), *(f"    {line}" for line in body)])
    drawn = [vectors(p, dialect), weights(p, dialect), mask(p, dialect)]
    if p.sink != "none" and _stores_sink(p):
        number = f"np.float32({p.sink_logit:g})" if dialect == "python" else f"torch.tensor({float(p.sink_logit):g})"
        drawn.append(Piece(f"sink = rounded({number})"))
    if loss:
        drawn.append(Piece("v, g = draw(3, n, d_v), draw(4, m, d_v)  # values, and the gradient of the output"))
    scales = [_scale(each, dialect) for each in sides]
    calls = [call(each, sides, scale) for each, scale in zip(sides, scales, strict=True)]
    made = "\n".join(f"{letter} = {text}" for letter, text in zip(letters, calls, strict=True))
    return [
        _values(sides, loss),
        draw_function(p, dialect, loss),
        weights_function(p, dialect),
        rounding_functions(p, dialect),
        norm_functions(sides, dialect),
        std_function(p, names, columns, dialect),
        Piece("\n".join(piece.text for piece in drawn if piece.text)),
        Piece(measure, defines=True),
        Piece(made),
    ]


def _scale(p: Parameters, dialect: Dialect) -> str:
    text = scale_code(p)
    if not text.startswith("["):
        return text
    if dialect == "torch":
        return f"torch.tensor({text})" if p.precision != "float64" else f"torch.tensor({text}, dtype=torch.float64)"
    return f"np.array({text}, np.{'float64' if p.precision == 'float64' else 'float32'})"


def _values(sides: Sequence[Parameters], loss: bool) -> Piece:
    """Return the line with the sizes and the seed, and one with what the rules need."""
    p = sides[0]
    values = {"seed": p.seed, "batch": draws_of(p), "m": p.n_queries, "n": p.n_keys, "d_k": p.d_k}
    values |= {"d_v": p.d_v} if loss else {}
    more: dict[str, float] = {}
    for side in sides:
        for field in needed(side.scale):
            more[VARIABLES[field]] = getattr(side, field)
    if p.sink != "none" and not _stores_sink(p):
        more["sink"] = p.sink_logit
    lines = [f"{', '.join(values)} = {', '.join(map(str, values.values()))}  # m queries, n keys"]
    if more:
        lines.append(f"{', '.join(more)} = {', '.join(f'{value:.10g}' for value in more.values())}")  # type: ignore
    return Piece("\n".join(lines))


def _stores_sink(p: Parameters) -> bool:
    """Return whether the sink's logit is stored in the number format."""
    return is_rounded(p) and not number_format(p.precision).scaled


def draws_of(p: Parameters) -> int:
    """Return the draws that a program takes: all, unless they are too large."""
    each = p.n_queries * p.n_keys * (p.d_k if p.mechanism == "additive" else 1)
    return min(p.batch, max(_LARGEST // each, 2))


def _remarks(sides: Sequence[Parameters]) -> list[str]:
    fewer = next((p for p in sides if draws_of(p) < p.batch), None)
    if fewer is None:
        return []
    return [
        f"The first {draws_of(fewer)} draws; the expected values are of all {fewer.batch}, which need more memory."
    ]


def _check(sides: Sequence[Parameters]) -> None:
    for p in sides:
        constant = 0 in (p.std_q, p.std_k) and not p.correlation
        if constant and norm_of(p) != "none":
            raise NoCodeError("No code: queries or keys are all the same, and normalising them is rounding.")


def _imports(sides: Sequence[Parameters], dialect: Dialect) -> str:
    scales = " ".join(scale_code(p) for p in sides)
    functions = [
        name
        for name in ("exp", "log", "log2", "sqrt")
        if f"{name}(" in scales.replace("log2(", "log2 (" if name == "log" else "log2(")
    ]
    lines = [f"from math import {', '.join(functions)}\n"] if functions else []
    if dialect == "python" and any(map(needs_ml_dtypes, sides)):
        lines.append("import ml_dtypes")
    lines.append("import numpy as np")
    if dialect == "torch":
        lines.append("import torch")
    return "\n".join(lines)
