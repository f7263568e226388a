"""The moving picture of the READMEs: what unscaled and scaled attention do while d_k grows from 4 to 256."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.measurement import Column
from attn_tui.core.theory.score_law import score_density
from attn_tui.tui.terminal.themes import DARK

WIDTHS = (4, 6, 8, 11, 16, 23, 32, 45, 64, 90, 128, 181, 256)
LANGUAGES = {
    "": ("logits, on one axis", "a row of attention, largest key first: mean of 1,024 rows", "{} keys matter"),
    ".zh": ("注意力分数，同一坐标轴", "一行注意力，从最大的键起：1,024 行的平均", "{} 个键有份"),
}
NAMES = {"": ("unscaled", "× 1/√d_k"), ".zh": ("未缩放", "× 1/√d_k")}
COLOURS = (DARK.warning, DARK.accent)
BARS = 20
SECONDS, HELD = 8, 0.2  # a turn, and the share of it that the last picture stays
WIDTH, HEIGHT, LEFT, RIGHT = 720, 330, 24, 24
AXIS = 40.0  # the largest logit drawn


def moving(language: str) -> str:
    """Return the picture as an animated SVG; without animation, it shows the last width."""
    logits, weights, share = LANGUAGES[language]
    rows = [_columns(width) for width in WIDTHS]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="15" fill="{DARK.foreground}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="{DARK.background}"/>',
        _text(LEFT, 34, logits),
        _text(LEFT, 186, weights),
        f'<path d="M{LEFT} 150H{WIDTH - RIGHT}M{LEFT} 300H{WIDTH - RIGHT}" stroke="#4c4f55"/>',
    ]
    for logit in (-40, -20, 0, 20, 40):
        parts.append(_text(_x(logit), 166, f"{logit}".replace("-", "−"), 'text-anchor="middle" font-size="12"'))
    for side, (name, colour) in enumerate(zip(NAMES[language], COLOURS, strict=True)):
        parts.append(_text(WIDTH - RIGHT - 190 + 110 * side, 62, name, f'fill="{colour}"'))
        shapes = [_density(width, side) for width in WIDTHS]
        parts.append(_animated("path", "d", shapes, f'fill="{colour}" fill-opacity=".35" stroke="{colour}"'))
        start = LEFT + side * (WIDTH - LEFT - RIGHT) / 2
        for bar in range(BARS):
            heights = [row[side].average_row[bar] * 100 for row in rows]
            place = f'x="{start + bar * 16:.0f}" width="13" fill="{colour}"'
            parts.append(_bar(heights, place))
        parts += _turns(
            [share.format(f"{row[side].measured['effective_keys'].value:.2g}") for row in rows],
            start + 150,
            215,
            colour,
        )
    parts += _turns([f"d_k {width}" for width in WIDTHS], WIDTH - RIGHT - 190, 36, DARK.foreground, 22)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _columns(width: int) -> Sequence[Column]:
    """Return what the Lab shows at a width."""
    return run(Parameters(d_k=width), full=False).columns


def _density(width: int, side: int) -> str:
    """Return the exact density of the logits as a closed path."""
    multiplier = (1.0, width**-0.5)[side]
    x = np.linspace(-1, 1, 81)
    x = AXIS * x * np.abs(x)  # closer together in the middle
    density = score_density(Parameters(d_k=width), x / multiplier)
    assert density is not None
    heights = np.minimum(density / multiplier * 200, 100)
    points = " ".join(f"{_x(each):.0f} {150 - height:.1f}" for each, height in zip(x, heights, strict=True))
    return f"M{LEFT} 150L{points}Z"


def _x(logit: float) -> float:
    return LEFT + (logit + AXIS) / (2 * AXIS) * (WIDTH - LEFT - RIGHT)


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" {more}>{text}</text>'


def _animated(tag: str, name: str, values: Sequence[str], more: str) -> str:
    """Return an element whose attribute goes through values, and keeps the last one for a while."""
    return f'<{tag} {more} {name}="{values[-1]}">{_animation(name, values)}</{tag}>'


def _animation(name: str, values: Sequence[str], mode: str = "linear") -> str:
    times = ";".join(f"{time:.3g}" for time in [*np.linspace(0, 1 - HELD, len(WIDTHS)), 1])
    return (
        f'<animate attributeName="{name}" calcMode="{mode}" dur="{SECONDS}s" repeatCount="indefinite" '
        f'keyTimes="{times}" '
        f'values="{";".join([*values, values[-1]])}"/>'
    )


def _bar(heights: Sequence[float], place: str) -> str:
    tops = _animation("y", [f"{300 - height:.1f}" for height in heights])
    sizes = _animation("height", [f"{height:.1f}" for height in heights])
    return f'<rect {place} y="{300 - heights[-1]:.1f}" height="{heights[-1]:.1f}">{tops}{sizes}</rect>'


def _turns(texts: Sequence[str], x: float, y: float, colour: str | None, size: int = 15) -> list[str]:
    """Return texts that take turns at one place."""
    found: list[str] = []
    for number, text in enumerate(texts):
        shown = ["visible" if each == number else "hidden" for each in range(len(texts))]
        more = f'fill="{colour}" font-size="{size}" visibility="{shown[-1]}"'
        found.append(_text(x, y, text + _animation("visibility", shown, "discrete"), more))
    return found
