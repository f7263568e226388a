"""The program of a comparison of mechanisms: each over the same d_k, under the rule that it is used with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....lab.mechanisms import MEASURED
from ....lab.results import MechanismRow
from ....parameters import UNSCALED, Parameters, choice_word, rows_differ
from ....scales import scale_rule
from ....statistics.catalogue import STATISTIC
from ....statistics.measurement import Column
from ..parts.attention import mask, norm_of
from ..parts.drawing import draw_function, draws_of, vectors, weights, weights_function
from ..parts.rounding import is_eager, is_rounded
from ..parts.rule import rule_code
from ..parts.setting import remarks, sizes
from ..parts.statistics import jackknife_function, seen_line, statistics_code
from ..program import (
    WIDEST,
    Dialect,
    NoCodeError,
    Piece,
    assembled,
    expected,
    filled,
    number,
    printing,
    returned,
    shown,
)
from ..report import printed_names
from .loops import Loop, looped, values_code

_LEFT_OUT = "Not printed: the largest score drawn, and the bound of scores."
_FAR = 30_000  # scores below it are far from the largest number of float16


def mechanisms_code(p: Parameters, rows: Sequence[MechanismRow], dialect: Dialect, command: str) -> str:
    """Return the program that prints the statistics of mechanisms; raise NoCodeError if there is none."""
    if is_eager(p) and any((row.largest or _FAR) >= _FAR for row in rows):
        raise NoCodeError("No code: scores may overflow, and the comparison does not count such rows.")
    by_mechanism: dict[tuple[str, str, bool], list[MechanismRow]] = {}
    for row in rows:
        by_mechanism.setdefault((row.mechanism, row.rule, row.with_sink), []).append(row)
    loops = [_loop(p, same) for same in by_mechanism.values()]
    groups = [(loop.sides, [column for columns in loop.columns.values() for column in columns]) for loop in loops]
    names = printed_names(groups, MEASURED, dialect)
    short = _is_short(loops)
    blocks, lines = _short(loops, names, dialect) if short else looped(loops, names, dialect)
    titles = [STATISTIC[name].short_label for name in names]
    sides = [side for loop in loops for side in loop.sides]
    return assembled([command, *remarks(sides), _LEFT_OUT], blocks, expected(titles, lines), dialect)


def _loop(p: Parameters, rows: Sequence[MechanismRow]) -> Loop:
    """Return the loop of one mechanism over d_k."""
    row = rows[-1]
    side = replace(
        p,
        d_k=max(each.d_k for each in rows),
        mechanism=row.mechanism,
        scale=row.rule,
        against=UNSCALED,
        sink="logit" if row.with_sink else p.sink,
        softcap=0.0,
    )
    words = f"{choice_word(row.mechanism)}{' with sink' * row.with_sink}, {scale_rule(row.rule).label}, "
    columns = {(each.d_k, p.n_keys): [Column(each.rule, each.multiplier, each.measured, {})] for each in rows}
    return Loop(words, [side], columns)


def _is_short(loops: Sequence[Loop]) -> bool:
    """Return whether all mechanisms can share what follows their logits: nothing is rounded."""
    sides = [loop.sides[0] for loop in loops]
    alike = len({draws_of(side) for side in sides}) == 1 and len({*map(_d_ks, loops)}) == 1
    plain = all(norm_of(side) == "none" and not rows_differ(side, side.scale) for side in sides)
    return alike and plain and not is_rounded(sides[0])


def _d_ks(loop: Loop) -> tuple[int, ...]:
    return tuple(d_k for d_k, _ in loop.columns)


def _short(
    loops: Sequence[Loop], names: Sequence[str], dialect: Dialect
) -> tuple[list[list[Piece]], dict[str, list[str]]]:
    """Return the pieces of a loop over mechanisms and d_k, and the expected statistics."""
    sides = [loop.sides[0] for loop in loops]
    p = replace(sides[0], sink="none", mechanism="dot_product")
    every = [column for loop in loops for columns in loop.columns.values() for column in columns]
    needs, expressions = statistics_code(p, names, every, dialect)
    body = [*_SOFTMAX[dialect], *needs, *returned(expressions)]
    if p.mask != "none":
        hide = "np.where(hidden, -np.inf, z)" if dialect == "python" else "z.masked_fill(hidden, -torch.inf)"
        body.insert(0, f"z = {hide}")
    nothing = "-np.inf" if dialect == "python" else "-torch.inf"
    entries: list[str] = []
    rows: dict[str, list[str]] = {}
    for loop, side in zip(loops, sides, strict=True):
        name = loop.prefix.removesuffix(", ")
        sink = f", {side.sink_logit:g}" if side.sink != "none" else ""
        scale = rule_code(side.scale, side.multiplier)
        times = "" if scale == "1.0" else f"{scale} * "
        entries.append(f'["{name}", lambda: {times}{_LOGITS[side.mechanism]}{sink}]')
        for (d_k, _), columns in loop.columns.items():
            rows[f"{name}, d_k {d_k}"] = [shown(columns[0].measured[each].value) for each in names]
    wide = max(map(len, rows)) + 2
    drawn = [vectors(p, dialect), mask(p, dialect), seen_line(p, names)]
    loop_lines = [
        "mechanisms = [",
        *(f"    {line}" for line in filled(entries, WIDEST)),
        "]",
        "for name, logits, *sink in mechanisms:",
        f"    for d_k in {values_code(_d_ks(loops[0]))}:",
        *(f"        {line}" for text in drawn if text for line in text.split("\n")),
        f"        {printing('{name}, d_k {d_k}', wide, 'measure(logits(), *sink)')}",
    ]
    used = {side.mechanism for side in sides}
    functions = [
        draw_function(p, dialect, False),
        weights_function(replace(p, mechanism="additive"), dialect) if used & {"additive", "bilinear"} else Piece(""),
        Piece(_UNIT[dialect] if "cosine" in used else "", defines=True),
        *(
            Piece(_scored(side, dialect), defines=True)
            for side in sides
            if side.mechanism in ("additive", "bilinear")
        ),
        jackknife_function(p, names, every, dialect),
        Piece("\n".join([f"def measure(z, sink={nothing}):", *(f"    {line}" for line in body)]), defines=True),
    ]
    return [[sizes([p], swept=("d_k",)), *functions, Piece("\n".join(loop_lines))]], rows


_LOGITS = {
    "dot_product": "(q @ k.mT)",
    "cosine": "(unit(q) @ unit(k).mT)",
    "bilinear": "bilinear()",
    "additive": "additive()",
}
_SOFTMAX: dict[Dialect, Sequence[str]] = {
    "python": (
        "top = np.maximum(z.max(-1, keepdims=True), sink)  # a sink belongs to no key",
        "e = np.exp(z - top, dtype=np.float64)",
        "p = e / (e.sum(-1, keepdims=True) + np.exp(sink - top))  # attention weights",
    ),
    "torch": (
        "with_sink = torch.cat([z, torch.full_like(z[..., :1], sink)], -1)  # a sink belongs to no key",
        "p = with_sink.double().softmax(-1)[..., :-1]  # attention weights",
    ),
}
_UNIT: dict[Dialect, str] = {
    "python": "def unit(x):\n    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-6)",
    "torch": "def unit(x):\n    return torch.nn.functional.normalize(x, dim=-1)",
}


def _scored(p: Parameters, dialect: Dialect) -> str:
    """Return the function of the scores of a mechanism with learned weights."""
    scores = "q @ w @ k.mT" if p.gain == 1 else f"q @ ({number(p.gain)} * w) @ k.mT"
    if p.mechanism == "additive":
        stack = "np.stack" if dialect == "python" else "torch.stack"
        tanh, axis = ("np.tanh", "axis=1") if dialect == "python" else ("torch.tanh", "dim=1")
        scores = f"{stack}([{tanh}(a[:, i, None] + b) @ w_v for i in range(m)], {axis})"
    lines = weights(p, dialect).split("\n")
    lines += ["a, b = q @ w_q, k @ w_k"] if p.mechanism == "additive" else []
    return "\n".join([f"def {p.mechanism}():", *(f"    {line}" for line in [*lines, f"return {scores}"])])
