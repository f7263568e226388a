"""The statistics that programs print: the code of each row of STATISTICS, and the lines that it needs before it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..attention.computation import Computation
from ..statistics.catalogue import STATISTICS
from ..statistics.measurement import NOTHING, Column
from .attention import is_eager, is_rounded
from .text import CodePiece

CODE = {statistic.name: statistic.code for statistic in STATISTICS if statistic.code}
# What the program of a report or a head prints, if it exists: rows that the screen leads with, gradients, and of a
# sink or a rounded format their own. Sweeps and rules print what their tables show.
OF_REPORTS = (
    "logit_std", "logit_max", "entropy", "effective_keys", "max_weight", "one_hot_rows", "first_key_weight",
    "dead_rows", "grad_q_median", "grad_q_rms", "sink_weight", "nan_rows", "weight_lost",
)  # fmt: skip
GRADIENTS = ("grad_q_median", "grad_q_mean", "grad_q_rms")
_OF_NAN = ("entropy", "effective_keys", "max_weight", "jacobian_norm", "weight_lost", "nan_rows")
_FINITE = ("logit_mean", "logit_variance", "logit_std", "logit_min", "logit_max", "logit_variance_within_row",
           "saturation")  # fmt: skip
_NOT_LINEAR = ("logit_variance", "logit_std")  # in the sums of draws, so that those of few draws are biased

# The names in the code of statistics, and the lines that make them. A name may need earlier ones.
_LINES = {
    "seen": "seen = np.isfinite(z).sum(-1)  # keys of each row",
    "first": "first = (1.0 * np.isfinite(z)).argmax(-1, keepdims=True)  # key that a row sees",
    "away": "away = np.where(np.isfinite(z), z, np.nan)",
    "variance": "variance = z.var(-1)  # within rows",
    "entropy": "entropy = -(p * np.log(p.clip(1e-30))).sum(-1)",
    "jacobian": "jacobian = np.sqrt((p**2 * ((1 - p) ** 2 + (p**2).sum(-1, keepdims=True) - p**2)).sum(-1))",
    "share": "share = 1 - p.sum(-1)  # of the sink",
}
_VARIANCE = "variance = np.nanmean((away - np.nanmean(away, -1, keepdims=True)) ** 2, -1)  # within rows"
_JACKKNIFE = """\
def unbiased(of, x):  # the jackknife over draws removes a bias of order 1/batch
    x = x.reshape(batch, -1)
    without = sum(of(np.concatenate([x[:b], x[b + 1 :]])) for b in range(batch)) / batch
    return batch * of(x) - (batch - 1) * without"""


def printable(c: Computation, columns: Sequence[Column], wanted: Sequence[str], gradients: bool = False) -> list[str]:
    """Return which of the wanted statistics a program can print for these columns, in the catalogue's order.

    `gradients`: it can print those of queries, of plain dot products.
    """
    measured = [column.measured for column in columns]
    names = [name for name in CODE if name in wanted]
    names = [name for name in names if all(column.get(name, NOTHING).value is not None for column in measured)]
    if has_nan_rows(columns):
        return [name for name in names if name in _OF_NAN]
    left_out = {"nan_rows"}
    if not is_rounded(c):
        left_out.add("weight_lost")
    elif is_eager(c) and any(map(_may_overflow, columns)):
        left_out |= {*_FINITE}
    if not gradients:
        left_out |= {*GRADIENTS}
    return [name for name in names if name not in left_out]


def has_nan_rows(columns: Sequence[Column]) -> bool:
    """Return whether a row of these columns is NaN."""
    return any((column.measured.get("nan_rows", NOTHING).value or 0) > 0 for column in columns)


def _may_overflow(column: Column) -> bool:
    """Return whether scores may be infinite in float16."""
    if "logit_min" not in column.measured:  # of a comparison
        return False
    ends = (column.measured["logit_min"].value, column.measured["logit_max"].value)
    return any(end is None or abs(end) / column.multiplier > 30_000 for end in ends)


@dataclass(frozen=True)
class StatisticsCode:
    """The statistics of a program."""

    functions: CodePiece
    rows: Sequence[str]  # lines after the logits, which leave out rows without a key
    lines: Sequence[str]  # after the weights
    expressions: Sequence[str]
    weights: bool  # whether they are of weights


def printed(
    c: Computation,
    names: Sequence[str],
    *,
    some_rows: bool = False,
    nan: bool = False,
    biased: bool = False,
) -> StatisticsCode:
    """Return the code of these statistics of logits z and weights p.

    `some_rows`: a row may see no key. `nan`: a row may be NaN. `biased`: what is not linear is of few draws.
    """
    masked = c.visibility is not None
    z = "z[np.isfinite(z)]" if masked else "z"
    several = "[seen > 1]" if masked else ""
    found = [
        CODE[name].format(
            z=z,
            several=several,
            log=f"np.log(seen{several})" if masked else "log(n)",
            first="np.take_along_axis(p, first, -1)" if some_rows else "p[..., 0]",
            share=" - share" if c.sink is not None else "",
        )
        for name in names
    ]
    for at, name in enumerate(names):
        if name == "logit_excess_kurtosis" or (biased and name in _NOT_LINEAR):
            found[at] = f"unbiased(lambda x: {CODE[name].format(z='x')}, {z})"
    made: list[str] = []
    for name, line in reversed(_LINES.items()):
        if _names(name, [*found, *made]) and not (name == "share" and is_rounded(c)):
            made.append(_VARIANCE if name == "variance" and masked else line)
    lines = made[::-1]
    if nan:
        kept = ["z", "p", *(["share"] if is_rounded(c) and c.sink is not None else [])]
        line = f"{', '.join(kept)} = {', '.join(f'{name}[~lost]' for name in kept)}"
        lines = ["lost = np.isnan(p[..., 0])", *([line] if {*names} - {"nan_rows"} else []), *lines]
    functions = CodePiece(_JACKKNIFE if _names("unbiased", found) else "", defines=True)
    rows = ["z = z[np.isfinite(z).any(-1)]  # rows that see a key"] if some_rows else []
    weights = any(_names(name, [*found, *lines]) for name in ("p", "dq", "share"))
    return StatisticsCode(functions, rows, lines, found, weights)


def _names(name: str, texts: Sequence[str]) -> bool:
    """Return whether a name stands in one of these texts of code."""
    return any(re.search(rf"(?<![\w.]){name}\b", text) for text in texts)
