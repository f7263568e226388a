"""The program of some figures of one head, under one scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ....captures.capture import Layer
from ....captures.head import CaptureFile, read_head
from ....captures.heads import subject_of
from ....captures.rules import file_rule, shown_multiplier
from ..parts.attention import logit_lines, weight_lines
from ..parts.statistics import CODE, OF_LOGITS, Code, Rows, statistics_code
from ..program import Dialect, NoCodeError, Piece, assembled, expected, shown
from .head import scale_of, side_of, values_of
from .loading import loaded, without_unused

_CODE = CODE | {
    "largest_logit": Code("abs({z}).max()", "{z}.abs().max()"),
    "largest_raw_logit": Code("abs(raw).max()", "raw.abs().max()"),
    "spread": Code("np.sqrt({row_variance}.mean())", "{row_variance}.mean().sqrt()"),
    "token_spread": Code("min(variety(q), variety(k))", "min(variety(q), variety(k))"),
}
_OF_LOGITS = OF_LOGITS | {"largest_logit", "largest_raw_logit", "spread", "token_spread"}
_VARIETY: dict[Dialect, str] = {
    "python": """\
def variety(x):  # what differs between tokens, over all
    return np.sqrt(((x - x.mean(1, keepdims=True)) ** 2).sum() / (x**2).sum())""",
    "torch": """\
def variety(x):  # what differs between tokens, over all
    return (((x - x.mean(1, keepdim=True)) ** 2).sum() / (x**2).sum()).sqrt()""",
}


class Figure(NamedTuple):
    """A figure of a head."""

    label: str
    value: float | None


def figures_code(
    capture: CaptureFile,
    layer: Layer,
    head: int,
    figures: Mapping[str, Figure],
    dialect: Dialect,
    comments: Sequence[str],
) -> str:
    """Return the program that prints figures of a head at its file's scale, by the names of their code.

    Those without a value or code are left out. Raise CaptureError if the head cannot be read, and NoCodeError if no
    figure is left or no short program reads the head.
    """
    some = {name: each for name, each in figures.items() if name in _CODE and each.value is not None}
    if not some:
        raise NoCodeError("No code: no figure of this head is known.")
    data, rule = read_head(capture, layer, head), file_rule(layer)
    subject = subject_of(layer, head, data, [rule])
    found = loaded(subject, dialect)
    hides = found.hides
    p = side_of(subject, rule.name, hides.hides)
    rows = Rows(hides.some_rows, hides.hides)
    needs, expressions = statistics_code(p, [*some], [], dialect, rows, _CODE)
    wide = max(len(each.label) for each in some.values()) + 2
    logits = logit_lines([p], dialect, "q", bias="bias" * hides.biased)
    if "largest_raw_logit" in some:
        raw = "z + bias" if hides.biased else "z"
        if p.mask != "none":
            raw = f"np.where(hidden, 0, {raw})" if dialect == "python" else f"({raw}).masked_fill(hidden, 0)"
        cap = next(at for at, line in enumerate(logits) if line.endswith("# soft-cap"))
        logits.insert(cap, f"raw = {raw}  # the limit is of logits before the soft-cap")
    lines = [
        *found.lines,
        *values_of(subject),
        f"scale = {scale_of(subject, rule.name, shown_multiplier(rule, layer, data), found)}",
        *logits,
        *rows.lines([*some], dialect),
        *(weight_lines(p, dialect) if {*some} - _OF_LOGITS else []),
        *needs,
    ]
    prints = [
        f'print(f"{each.label:{wide}}{{{text}:12.4g}}")'
        for each, text in zip(some.values(), expressions, strict=True)
    ]
    defined = Piece(_VARIETY[dialect] if "token_spread" in some else "", defines=True)
    wanted = expected(("",), {each.label: [shown(each.value)] for each in some.values()})
    return without_unused(assembled(comments, [[defined, Piece("\n".join(lines))]], [*prints, *wanted], dialect))
