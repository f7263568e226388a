"""The parts of a program for settings that share their scores: sizes, functions, draws, and calls of `measure`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ....attention.formats import number_format
from ....parameters import Parameters
from ....statistics.measurement import Column
from ..program import Dialect, NoCodeError, Piece, returned
from .attention import call, logit_lines, mask, norm_functions, norm_of, signature, weight_lines
from .drawing import draw_function, draws_of, vectors, weights, weights_function
from .gradients import gradient_lines, prints_gradients, uses_autograd
from .rounding import is_rounded, rounding_functions
from .rule import VARIABLES, factor_code, needed, scale_code
from .statistics import OF_LOGITS, jackknife_function, seen_line, statistics_code


@dataclass(frozen=True)
class Parts:
    """What the program of some settings consists of, in this order."""

    values: Piece  # sizes, seed and what the rules need
    functions: Sequence[Piece]
    drawn: str  # lines that draw queries, keys and values, and make the mask
    measure: Piece
    calls: Sequence[str]  # of `measure`, one for each setting


def parts(
    sides: Sequence[Parameters],
    columns: Sequence[Column],
    names: Sequence[str],
    dialect: Dialect,
    swept: Collection[str] = (),
) -> Parts:
    """Return the parts of a program that prints these statistics; raise NoCodeError if there is none.

    Variables named in `swept`, d_k or n, are set elsewhere.
    """
    for side in sides:
        _check(side)
    p = sides[0]
    loss = prints_gradients(names)
    autograd = uses_autograd(p, names, dialect)
    needed_lines, expressions = statistics_code(p, names, columns, dialect)
    body = [
        *(["x = q.clone().requires_grad_()"] if autograd else []),
        *logit_lines(sides, dialect, "x" if autograd else "q"),
        *(weight_lines(p, dialect) if {*names} - OF_LOGITS else []),
        *gradient_lines(sides, names, dialect),
        *needed_lines,
        *returned(expressions),
    ]
    drawn = [vectors(p, dialect), weights(p, dialect), mask(p, dialect), seen_line(p, names)]
    if p.sink != "none" and _stores_sink(p):
        number = f"np.float32({p.sink_logit:g})" if dialect == "python" else f"torch.tensor({float(p.sink_logit):g})"
        drawn.append(f"sink = rounded({number})")
    if loss:
        drawn.append("v, g = draw(3, n, d_v), draw(4, m, d_v)  # values, and the gradient of the output")
    scales = [_scale(each, dialect, "n" in swept) for each in sides]
    return Parts(
        sizes(sides, loss, swept),
        [
            draw_function(p, dialect, loss),
            weights_function(p, dialect),
            rounding_functions(p, dialect),
            norm_functions(sides, dialect),
            jackknife_function(p, names, columns, dialect),
        ],
        "\n".join(filter(None, drawn)),
        Piece("\n".join([signature(sides), *(f"    {line}" for line in body)]), defines=True),
        [call(each, sides, scale) for each, scale in zip(sides, scales, strict=True)],
    )


def _scale(p: Parameters, dialect: Dialect, swept: bool) -> str:
    text = "1.0" if factor_code(p) else scale_code(p, swept)
    if not text.startswith("["):
        return text
    if dialect == "torch":
        return f"torch.tensor({text})" if p.precision != "float64" else f"torch.tensor({text}, dtype=torch.float64)"
    return f"np.array({text}, np.{'float64' if p.precision == 'float64' else 'float32'})"


def sizes(sides: Sequence[Parameters], loss: bool = False, swept: Collection[str] = ()) -> Piece:
    """Return the line with the sizes and the seed, and one with what the rules need."""
    p = sides[0]
    values = {"seed": p.seed, "batch": draws_of(p), "m": p.n_queries, "n": p.n_keys, "d_k": p.d_k}
    values |= {"d_v": p.d_v} if loss else {}
    values = {name: value for name, value in values.items() if name not in swept}
    more: dict[str, float] = {}
    for side in sides:
        for field in needed(side.scale):
            more[VARIABLES[field]] = getattr(side, field)
    if p.sink != "none" and not _stores_sink(p):
        more["sink"] = p.sink_logit
    of_keys = "" if "n" in swept else ", n keys"
    lines = [f"{', '.join(values)} = {', '.join(map(str, values.values()))}  # m queries{of_keys}"]
    if more:
        lines.append(f"{', '.join(more)} = {', '.join(f'{value:.10g}' for value in more.values())}")
    return Piece("\n".join(lines))


def _stores_sink(p: Parameters) -> bool:
    """Return whether the sink's logit is stored in the number format."""
    return is_rounded(p) and not number_format(p.precision).scaled


def remarks(sides: Sequence[Parameters]) -> list[str]:
    """Return what is to be said about the draws of a program."""
    fewer = next((p for p in sides if draws_of(p) < p.batch), None)
    if fewer is None:
        return []
    taken, all_draws = draws_of(fewer), fewer.batch
    return [
        f"The first {taken} draws; the expected values are of all {all_draws}, which take longer, or more memory."
    ]


def _check(p: Parameters) -> None:
    """Raise NoCodeError if normalised vectors are rounding alone."""
    constant = 0 in (p.std_q, p.std_k) and not p.correlation
    if (constant and norm_of(p) != "none") or (p.d_k == 1 and norm_of(p) == "layer_norm"):
        raise NoCodeError("No code: queries or keys are constant vectors, and normalising them is rounding.")
