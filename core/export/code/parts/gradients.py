"""The lines of programs that compute the gradients of queries."""

from __future__ import annotations

from collections.abc import Sequence

from ....parameters import Parameters
from ....statistics.measurement import Column, Estimate
from ..program import Dialect
from .attention import norm_of
from .rounding import is_rounded, store_function
from .rule import factor_code

_MISSING = Estimate(None, None)
_MOST_ROWS = 256  # of a draw whose gradients are measured (core/statistics/tally.py)


def has_gradients(columns: Sequence[Column], p: Parameters, dialect: Dialect) -> bool:
    """Return whether a program computes gradients: in NumPy, of plain dot products only."""
    if any(column.measured.get("grad_q_median", _MISSING).value is None for column in columns):
        return False
    plain = p.mechanism == "dot_product" and all(
        norm_of(p.with_value("scale", column.rule)) == "none" for column in columns
    )
    return plain or (dialect == "torch" and not is_rounded(p))


def prints_gradients(names: Sequence[str]) -> bool:
    """Return whether these statistics include some of gradients."""
    return any(name.startswith("grad_q") for name in names)


def uses_autograd(p: Parameters, names: Sequence[str], dialect: Dialect) -> bool:
    """Return whether gradients are those of PyTorch, and not written out."""
    return dialect == "torch" and not is_rounded(p) and prints_gradients(names)


def gradient_lines(sides: Sequence[Parameters], names: Sequence[str], dialect: Dialect) -> list[str]:
    """Return the lines that compute the norms dq of the gradient of every query."""
    p = sides[0]
    if not prints_gradients(names):
        return []
    every = -(-p.n_queries // _MOST_ROWS)
    rows = "" if every == 1 else f"[:, {every // 2}::{every}]"
    why = "" if every == 1 else f"  # of at most {_MOST_ROWS} rows"
    if uses_autograd(p, names, dialect):
        return [
            "(dq,) = torch.autograd.grad(p @ v.double(), x, g.double())  # L = (g * output).sum()",
            f"dq = dq{rows}.norm(dim=-1){why}",
            "z, p = z.detach(), p.detach()",
        ]
    values = f"{store_function(p)}(v)" if is_rounded(p) else "v"
    keys = "y" if is_rounded(p) else "k"
    summed = "keepdims=True" if dialect == "python" else "keepdim=True"
    product = f"g @ {values}.mT" if dialect == "python" else f"(g @ {values}.mT).double()"
    dz = f"p * (dp - (p * dp).sum(-1, {summed}))"
    lines = [f"dp = {product}  # of L = (g * output).sum()"]
    if p.softcap:
        cap = f"{p.softcap:g}"
        slope = f"(1 - (z / {cap}) ** 2)"
        if p.mask != "none":
            hide = "np.where(hidden, 0, z)" if dialect == "python" else "z.masked_fill(hidden, 0)"
            slope = f"(1 - ({hide} / {cap}) ** 2)"
        lines.append(f"dz = {dz} * {slope}")
        dz = "dz"
    scale = "factor * scale" if any(map(factor_code, sides)) else "scale"
    if dialect == "python":
        return [*lines, f"dq = np.linalg.norm({scale} * {dz} @ {keys}, axis=-1){rows}{why}"]
    return [*lines, f"dq = ({scale} * {dz} @ {keys}.double()).norm(dim=-1){rows}{why}"]
