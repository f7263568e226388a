"""The figure of a sweep as SVG: axes with units, the exact curve, points with error bars, and the command below."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape

from ....core.errors import InputError
from ....core.statistics.catalogue import STATISTIC
from ....core.statistics.measurement import column_names
from ....core.tables.lab import SweepResult
from ..glyphs import Glyphs

_WIDTH, _HEIGHT = 720, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 700, 40, 350
_COLOURS = ("#b35900", "#00708f")  # of A and B, dark enough for white paper


def sweep_figure(found: SweepResult, glyphs: Glyphs) -> str:
    """Return the figure of the first statistic that is asked for; raise InputError if two parameters are swept."""
    keys = len(found.n_keys) > 1
    if found.vary is not None or (keys and len(found.d_ks) > 1):
        raise InputError("a figure has one axis: sweep either d_k or the number of keys")
    statistic = STATISTIC[found.shown[0]]
    points = [(p.parameters.n_keys if keys else p.parameters.d_k, p.measurement.columns, t) for p, t in found.points]
    curves: list[list[tuple[int, float, float]]] = []  # of each column: x, value, standard error
    exact: list[list[tuple[int, float]]] = []
    for side in (0, 1):
        measured = [(x, columns[side].measured[statistic.name]) for x, columns, _ in points]
        curves.append([(x, each.value, each.stderr or 0.0) for x, each in measured if each.value is not None])
        known = [(x, theory.columns[side].values.get(statistic.name)) for x, _, theory in points]
        exact.append([(x, value) for x, value in known if value is not None])
    ys = [y for curve in curves for _, value, error in curve for y in (value - error, value + error)]
    ys += [y for curve in exact for _, y in curve]
    if not ys:
        raise InputError("a figure needs values, and {statistic} has none here", statistic=statistic.label)
    low, high = min(ys), max(ys)
    low, high = (low - 1, high + 1) if low == high else (low, high)
    step = 10.0 ** math.floor(math.log10(high - low))
    step = next(step * each for each in (0.1, 0.2, 0.5, 1, 2) if (high - low) / (step * each) <= 8)
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    xs = [x for x, _, _ in points]
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
    names = column_names(points[0][1])
    for side, colour in enumerate(_COLOURS):
        line = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in exact[side])
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-opacity=".6"/>')
        parts += _dots(((across(x), up(y), up(y - e) - up(y)) for x, y, e in curves[side]), colour)
        parts += _dots([(470 + 120 * side, _TOP - 18, 0.0)], colour)
        parts.append(_text(480 + 120 * side, _TOP - 14, glyphs.say(names[side]), "start", colour))
    parts.append(_text(_LEFT, _HEIGHT - 32, glyphs.say("line: exact; points: measured, ±1 standard error"), "start"))
    parts.append(_text(_LEFT, _HEIGHT - 12, found.command, "start"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#222") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def _dots(places: Iterable[tuple[float, float, float]], colour: str) -> list[str]:
    """Return points with their error bars: x, y and the length of half a bar."""
    return [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
        f'<path d="M{x:.1f} {y - half:.1f}v{2 * half:.1f}" stroke="{colour}"/>'
        for x, y, half in places
    ]
