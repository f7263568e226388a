"""The statistics that programs print: for each, an expression of the logits z and the weights p."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ....parameters import Parameters
from ....statistics.catalogue import DEAD, ONE_HOT
from ....statistics.measurement import Column
from ..program import Dialect, Piece
from .attention import norm_of
from .drawing import draws_of
from .gradients import has_gradients
from .rounding import is_rounded

_MANY = 8  # draws that tell the standard error of a standard deviation


class Code(NamedTuple):
    """The expressions of one statistic in both dialects; `{of}` takes rows that see at least two keys."""

    python: str
    torch: str


# The lines that some statistics need, before them.
_ENTROPY = Code("entropy = -(p * np.log(np.maximum(p, 1e-30))).sum(-1)", "entropy = torch.special.entr(p).sum(-1)")
_JACOBIAN = Code(
    "jacobian = np.sqrt((p**2 * ((1 - p) ** 2 + (p**2).sum(-1, keepdims=True) - p**2)).sum(-1))",
    "jacobian = (p**2 * ((1 - p) ** 2 + (p**2).sum(-1, keepdim=True) - p**2)).sum(-1).sqrt()",
)
_WITH_ENTROPY = frozenset({"entropy", "effective_keys", "entropy_fraction"})
_WITH_JACOBIAN = frozenset({"jacobian_norm", "dead_rows"})

CODE: dict[str, Code] = {
    "logit_mean": Code("{z}.mean()", "{z}.mean()"),
    "logit_variance": Code("{z}.var()", "{z}.var(correction=0)"),
    "logit_std": Code("{std}", "{std}"),
    "logit_excess_kurtosis": Code("{kurtosis}", "{kurtosis}"),
    "logit_min": Code("{z}.min()", "{z}.min()"),
    "logit_max": Code("z.max()", "z.max()"),
    "logit_within_3sd": Code(
        "(abs(z) <= 3 * scale * d_k**0.5).mean()", "(abs(z) <= 3 * scale * d_k**0.5).double().mean()"
    ),
    "logit_variance_within_row": Code("{row_variance}.mean()", "{row_variance}.mean()"),
    "saturation": Code("({row_std} / {limit}).mean()", "({row_std} / {limit}).mean()"),
    "entropy": Code("entropy.mean()", "entropy.mean()"),
    "entropy_fraction": Code("({entropy} / {log}).mean()", "({entropy} / {log}).mean()"),
    "effective_keys": Code("np.exp(entropy).mean()", "entropy.exp().mean()"),
    "max_weight": Code("p.max(-1).mean()", "p.amax(-1).mean()"),
    "one_hot_rows": Code(f"(p{{of}}.max(-1) > {ONE_HOT}).mean()", f"(p{{of}}.amax(-1) > {ONE_HOT}).double().mean()"),
    "first_key_weight": Code("{first}.mean()", "{first}.mean()"),
    "sink_weight": Code("{sunk}.mean()", "{sunk}.mean()"),
    "jacobian_norm": Code("jacobian.mean()", "jacobian.mean()"),
    "dead_rows": Code(f"(jacobian{{of}} < {DEAD}).mean()", f"(jacobian{{of}} < {DEAD}).double().mean()"),
    "grad_q_median": Code("np.median(dq)", "dq.quantile(0.5)"),
    "grad_q_rms": Code("np.sqrt((dq**2).mean())", "dq.pow(2).mean().sqrt()"),
    "nan_rows": Code("np.isnan(p[..., 0]).mean()", "p[..., 0].isnan().double().mean()"),
    "weight_lost": Code("(1 - p.sum(-1){share}).mean()", "(1 - p.double().sum(-1){share}).mean()"),
}
# Those of logits: weights are not needed.
OF_LOGITS = frozenset(name for name in CODE if name.startswith("logit_") or name == "saturation")
# What the program of a report or a head prints, if it exists: the rows that the screen leads with, and of a sink or a
# rounded format their own. Sweeps and rules print what their tables show.
OF_REPORTS = (
    "logit_std", "logit_max", "entropy", "effective_keys", "max_weight", "one_hot_rows", "first_key_weight",
    "dead_rows", "grad_q_median", "grad_q_rms", "sink_weight", "nan_rows", "weight_lost",
)  # fmt: skip
_OF_NAN = ("entropy", "effective_keys", "max_weight", "jacobian_norm", "weight_lost", "nan_rows")
_OF_LAW = ("logit_excess_kurtosis", "logit_within_3sd")  # measured about the law's own mean and spread
_EXTREMES = ("logit_min", "logit_max")


def chosen(p: Parameters, columns: Sequence[Column], wanted: Sequence[str], dialect: Dialect) -> list[str]:
    """Return which of the wanted statistics a program can print for these columns, in the order of CODE."""
    measured = [column.measured for column in columns]
    names = [name for name in CODE if name in wanted]
    names = [name for name in names if all(each[name].value is not None for each in measured if name in each)]
    names = [name for name in names if all(name in each for each in measured)]
    if has_nan_rows(columns):
        return [name for name in names if name in _OF_NAN]
    left_out = {"nan_rows"}
    if not is_rounded(p):
        left_out.add("weight_lost")
    elif p.arithmetic == "eager" and any(_may_overflow(column) for column in columns):
        left_out |= {"logit_std", "logit_min", "logit_max", "logit_variance_within_row", "saturation"}
    if draws_of(p) < p.batch:
        left_out |= {*_EXTREMES}
    if not _is_plain(p):
        left_out |= {*_OF_LAW}
    if p.mask == "none" and p.sink == "none" and wanted is OF_REPORTS:
        left_out.add("first_key_weight")
    if not has_gradients(columns, p, dialect):
        left_out |= {"grad_q_median", "grad_q_rms"}
    return [name for name in names if name not in left_out]


def _is_plain(p: Parameters) -> bool:
    """Return whether scores are dot products of standardised components, without mask or rounding."""
    usual = Parameters()
    names = ("mean_q", "std_q", "mean_k", "std_k", "correlation", "mask", "mechanism", "softcap")
    same = all(getattr(p, name) == getattr(usual, name) for name in names)
    return same and norm_of(p) == "none" and not is_rounded(p)


def has_nan_rows(columns: Sequence[Column]) -> bool:
    """Return whether a row of these columns is NaN."""
    return any((each.measured["nan_rows"].value or 0) > 0 for each in columns if "nan_rows" in each.measured)


def _may_overflow(column: Column) -> bool:
    """Return whether scores may be infinite in float16."""
    if "logit_min" not in column.measured:  # of a comparison
        return False
    ends = (column.measured["logit_min"].value, column.measured["logit_max"].value)
    return any(end is None or abs(end) / column.multiplier > 30_000 for end in ends)


def jackknife_function(p: Parameters, names: Sequence[str], columns: Sequence[Column], dialect: Dialect) -> Piece:
    """Return the functions that remove the bias of a statistic, if one is printed whose bias shows."""
    texts: list[str] = []
    if "logit_excess_kurtosis" in names:
        texts.append(_KURTOSIS[dialect])
    if "logit_excess_kurtosis" in names or ("logit_std" in names and _is_biased(p, columns)):
        texts.append(_JACKKNIFE[dialect])
    return Piece("\n\n\n".join(texts), defines=True)


_KURTOSIS: dict[Dialect, str] = {
    "python": "def kurtosis(x):\n    return ((x - x.mean()) ** 4).mean() / x.var() ** 2 - 3",
    "torch": "def kurtosis(x):\n    return ((x - x.mean()) ** 4).mean() / x.var(correction=0) ** 2 - 3",
}
_JACKKNIFE: dict[Dialect, str] = {
    "python": """\
def unbiased(of, x):  # the jackknife over draws removes a bias of order 1/batch
    x = x.reshape(batch, -1)
    return batch * of(x) - (batch - 1) * np.mean([of(np.delete(x, b, 0)) for b in range(batch)])""",
    "torch": """\
def unbiased(of, x):  # the jackknife over draws removes a bias of order 1/batch
    x = x.reshape(batch, -1)
    without = sum(of(torch.cat([x[:b], x[b + 1 :]])) for b in range(batch)) / batch
    return batch * of(x) - (batch - 1) * without""",
}
_STD: dict[Dialect, str] = {
    "python": "unbiased(np.std, {z})",
    "torch": "unbiased(lambda x: x.std(correction=0), {z})",
}


def _is_biased(p: Parameters, columns: Sequence[Column]) -> bool:
    """Return whether the bias of a sample's standard deviation shows in four digits."""
    found = [column.measured["logit_std"] for column in columns]
    if all(each.stderr is None for each in found):  # a capture, of which no bias is removed
        return False
    if p.batch < _MANY:
        return True
    return any((each.stderr or math.inf) > 0.01 * abs(each.value or 0) for each in found)


def seen_line(p: Parameters, names: Sequence[str]) -> str:
    """Return the line with the number of keys that rows see, if it is needed; the first row sees only one."""
    if p.mask == "none" or not {"saturation", "entropy_fraction"} & {*names}:
        return ""
    return "seen = (~hidden).sum(-1)[1:]  # keys that rows see; the first sees only one"


_FIRST = "z.isfinite().int().argmax(-1, keepdim=True)"
_SEVERAL = frozenset({"one_hot_rows", "dead_rows", "saturation", "entropy_fraction"})  # of rows that see two keys
_WITHIN = frozenset({"saturation", "logit_variance_within_row", "spread"})


@dataclass(frozen=True)
class Rows:
    """What is to be said about the rows of a capture."""

    some: bool  # whether some may see no key
    hides: bool  # whether keys are hidden, and z is −∞ for them

    def lines(self, names: Sequence[str], dialect: Dialect) -> list[str]:
        """Return the lines that leave out rows that see no key, and count the keys that others see."""
        finite = "np.isfinite(z)" if dialect == "python" else "z.isfinite()"
        lines = [f"z = z[{finite}.any(-1)]  # rows that see a key"] if self.some else []
        if self.hides and _SEVERAL & {*names}:
            lines.append(f"seen = {finite}.sum(-1)  # keys")
        if self.some and "first_key_weight" in names:
            first = "np.isfinite(z).argmax(-1, keepdims=True)" if dialect == "python" else _FIRST
            lines.append(f"first = {first}  # key that a row sees")
        if self.hides and dialect == "torch" and _WITHIN & {*names}:
            lines.append("away = z.masked_fill(z.isinf(), torch.nan)")
            lines.append("away = away - away.nanmean(-1, keepdim=True)")
        return lines

    def fills(self, dialect: Dialect) -> Mapping[str, str]:
        """Return what stands for the parts of expressions that depend on which keys rows see."""
        first = {"first": "np.take_along_axis(p, first, -1)" if dialect == "python" else "p.gather(-1, first)"}
        found = first if self.some else {}
        if not self.hides:
            return found
        one = "np" if dialect == "python" else "torch"
        finite = "z[np.isfinite(z)]" if dialect == "python" else "z[z.isfinite()]"
        variance = "np.nanvar(np.where(np.isfinite(z), z, np.nan), -1)" if one == "np" else "(away**2).nanmean(-1)"
        return {
            **found,
            "z": finite,
            "std": f"{finite}.std({'' if dialect == 'python' else 'correction=0'})",
            "row_variance": variance,
            "row_std": f"{one}.sqrt({variance})[seen > 1]",
            "limit": f"{one}.sqrt(2 * {one}.log(seen[seen > 1]))",
            "log": f"{one}.log(seen[seen > 1])",
            "entropy": "entropy[seen > 1]",
            "of": "[seen > 1]",
        }


def statistics_code(
    p: Parameters,
    names: Sequence[str],
    columns: Sequence[Column],
    dialect: Dialect,
    rows: Rows | None = None,
    code: Mapping[str, Code] = CODE,
) -> tuple[list[str], list[str]]:
    """Return the lines that statistics need, and their expressions in `code`; `rows` are those of a capture."""
    at = 0 if dialect == "python" else 1
    lines = [_ENTROPY[at]] if _WITH_ENTROPY & {*names} else []
    lines += [_JACOBIAN[at]] if _WITH_JACOBIAN & {*names} else []
    biased = "logit_std" in names and _is_biased(p, columns)
    fill = _fills(p, biased, dialect) | dict(rows.fills(dialect) if rows else {})
    found = [code[name][at].format(**fill) for name in names]
    if has_nan_rows(columns):
        found = [_ignoring_nan(text, dialect) for text in found]
    return lines, found


def _fills(p: Parameters, biased: bool, dialect: Dialect) -> dict[str, str]:
    """Return what stands for the parts of expressions that depend on the mask, the sink and the format."""
    masked = p.mask != "none"
    z = "z[:, ~hidden]" if masked else "z"
    one, variance = "np", "np.nanvar(np.where(hidden, np.nan, z), -1)"
    if dialect == "torch":
        one, variance = "torch", "torch.stack([z[:, i, : i + 1].var(-1, correction=0) for i in range(m)], 1)"
    end = "" if dialect == "python" else "correction=0"
    plain = "z.std(-1)" if dialect == "python" else "z.std(-1, correction=0)"
    share = " - share" if p.sink != "none" else ""
    return {
        "std": _STD[dialect].format(z=z) if biased else f"{z}.std({end})",
        "kurtosis": f"unbiased(kurtosis, {z})",
        "row_variance": variance if masked else plain.replace("std", "var"),
        "row_std": f"{one}.sqrt({variance})[:, 1:]" if masked else plain,
        "limit": f"{one}.sqrt(2 * {one}.log(seen))" if masked else "(2 * log(n)) ** 0.5",
        "log": f"{one}.log(seen)" if masked else "log(n)",
        "entropy": "entropy[:, 1:]" if masked else "entropy",
        "sunk": "share" if is_rounded(p) else "(1 - p.sum(-1))",
        "of": "[:, 1:]" if masked else "",
        "share": share,
        "first": "p[..., 0]",
        "z": z,
    }


def _ignoring_nan(text: str, dialect: Dialect) -> str:
    """Return a mean that leaves out NaN rows."""
    if "isnan" in text:
        return text
    inner = text.removesuffix(".mean()")
    return f"np.nanmean({inner})" if dialect == "python" else f"{inner}.nanmean()"
