"""The figure of a sweep as SVG: axes with units, exact curves, points with error bars, and the command below."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from ....core.errors import InputError
from ....core.statistics.catalogue import STATISTIC
from ....core.statistics.measurement import column_names
from ....core.tables.lab import SweepResult
from ..glyphs import Glyphs

_WIDTH, _HEIGHT = 860, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 700, 40, 350
# Of the curves: A, B and those of a second axis; dark enough for white paper.
_COLOURS = ("#b35900", "#00708f", "#a83279", "#3d6b21", "#5b4bb0", "#8a6d00", "#333333", "#c0392b")


@dataclass(frozen=True)
class _Curve:
    name: str
    measured: Sequence[tuple[int, float, float]]  # x, value, standard error
    exact: Sequence[tuple[int, float]]  # x, value


def sweep_figure(sweep: SweepResult, command: str, glyphs: Glyphs) -> str:
    """Return the figure of the first statistic that is asked for: a curve for each column and value of a second axis.

    Raise InputError if two grids are swept, there are more than eight curves, or no values.
    """
    keys = len(sweep.n_keys) > 1
    if keys and len(sweep.d_ks) > 1:
        raise InputError("a figure has one axis: sweep either d_k or the number of keys")
    statistic = STATISTIC[sweep.shown[0]]
    curves = _curves(sweep, keys, statistic.name, glyphs)
    if len(curves) > len(_COLOURS):
        raise InputError("a figure has at most {most} curves, not {count}", most=len(_COLOURS), count=len(curves))
    ys = [y for curve in curves for _, value, error in curve.measured for y in (value - error, value + error)]
    ys += [y for curve in curves for _, y in curve.exact]
    if not ys:
        raise InputError("a figure needs values, and {statistic} has none here", statistic=statistic.label)
    low, high = min(ys), max(ys)
    low, high = (low - 1, high + 1) if low == high else (low, high)
    step = 10.0 ** math.floor(math.log10(high - low))
    step = next(step * factor for factor in (0.1, 0.2, 0.5, 1, 2) if (high - low) / (step * factor) <= 8)
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    xs = sweep.n_keys if keys else sweep.d_ks
    first, last = math.log2(min(xs)), math.log2(max(xs))

    def across(x: float) -> float:
        share = (math.log2(x) - first) / (last - first) if last > first else 0.5
        return _LEFT + share * (_RIGHT - _LEFT)

    def up(y: float) -> float:
        return _BOTTOM - (y - low) / (high - low) * (_BOTTOM - _TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="13" fill="#222">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<path d="M{_LEFT} {_TOP}V{_BOTTOM}H{_RIGHT}" fill="none" stroke="#222"/>',
        _text((_LEFT + _RIGHT) / 2, _BOTTOM + 40, glyphs.say("keys") if keys else "d_k", "middle"),
        _text(_LEFT, _TOP - 14, f"{glyphs.say(statistic.label)} ({glyphs.say(statistic.unit)})", "start"),
    ]
    every = max(1, math.ceil((last - first) / 10))
    for power in range(math.ceil(first), math.floor(last) + 1, every):
        parts.append(f'<path d="M{across(2**power):.1f} {_BOTTOM}v5" stroke="#222"/>')
        parts.append(_text(across(2**power), _BOTTOM + 20, f"{2**power}", "middle"))
    for number in range(round((high - low) / step) + 1):
        y = low + number * step
        parts.append(f'<path d="M{_LEFT} {up(y):.1f}h-5" stroke="#222"/>')
        parts.append(_text(_LEFT - 9, up(y) + 4, f"{y:.6g}".replace("-", "−"), "end"))
    for number, (each, colour) in enumerate(zip(curves, _COLOURS, strict=False)):
        line = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in each.exact)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-opacity=".6"/>')
        parts += _dots(((across(x), up(y), up(y - e) - up(y)) for x, y, e in each.measured), colour)
        at = _TOP + 18 * number
        parts += _dots([(_RIGHT + 20, at, 0.0)], colour)
        parts.append(_text(_RIGHT + 30, at + 4, each.name, "start", colour))
    parts.append(_text(_LEFT, _HEIGHT - 32, glyphs.say("line: exact; points: measured, ±1 standard error"), "start"))
    parts.append(_text(_LEFT, _HEIGHT - 12, command, "start"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _curves(sweep: SweepResult, keys: bool, statistic: str, glyphs: Glyphs) -> list[_Curve]:
    """Return the curves of a statistic, each once: A and B for each value of the second axis."""
    curves: dict[tuple[object, ...], _Curve] = {}
    for value in sweep.vary[1] if sweep.vary else [None]:
        points = [
            (p.parameters.n_keys if keys else p.parameters.d_k, p.measurement.columns, theory.columns)
            for p, theory in sweep.points
            if sweep.vary is None or getattr(p.parameters, sweep.vary[0]) == value
        ]
        for side in range(2) if points else ():
            measured = [(x, columns[side].measured[statistic]) for x, columns, _ in points]
            known = [(x, theory[side].values.get(statistic)) for x, _, theory in points]
            name = glyphs.say(column_names(points[0][1])[side])
            curve = _Curve(
                name if value is None or (side == 0 and len(curves) == 0) else f"{name}, {value}",
                [
                    (x, estimate.value, estimate.stderr or 0.0)
                    for x, estimate in measured
                    if estimate.value is not None
                ],
                [(x, exact) for x, exact in known if exact is not None],
            )
            curves.setdefault((*curve.measured, *curve.exact), curve)
    return [*curves.values()]


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#222") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def _dots(places: Iterable[tuple[float, float, float]], colour: str) -> list[str]:
    """Return points with their error bars: x, y and the length of half a bar."""
    return [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
        f'<path d="M{x:.1f} {y - half:.1f}v{2 * half:.1f}" stroke="{colour}"/>'
        for x, y, half in places
    ]
