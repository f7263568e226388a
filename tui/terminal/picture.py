"""A screen as a self-contained SVG picture: it loads nothing from other hosts."""

from __future__ import annotations

import io
import re
from html import escape, unescape
from itertools import groupby
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment, Segments
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

_TEXT = re.compile(r'(<text [^>]* x=")([^"]*)("[^>]* textLength=")([^"]*)("[^>]*>)([^<]*)</text>')
_CLIP = re.compile(r' clip-path="url\(#[^)]*-clip-terminal\)"')


def picture(screen: Screen[Any]) -> str:
    """Return a screen as SVG, without screens over it, such as a form."""
    width, height = screen.size
    console = Console(
        width=width,
        height=height,
        file=io.StringIO(),
        force_terminal=True,
        color_system=None,  # renders no colour codes; styles cache theirs, which must stay the terminal's
        record=True,
        legacy_windows=False,
        safe_box=False,
    )
    segments: list[Segment] = []
    for number, strip in enumerate(_strips(screen)):
        segments += [Segment.line()] if number else []
        segments += strip.simplify()
    console.print(Segments(segments), end="")
    svg = console.export_svg(title="attn-tui")
    # Rich loads a font from a remote host; every system has a monospaced one.
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    svg = _CLIP.sub("", svg)  # Rich's is too low by the descenders of the last line
    return _TEXT.sub(_in_cells, svg.replace("Fira Code", "monospace"))


def _in_cells(text: re.Match[str]) -> str:
    """Return a text of a picture as one text for each run of characters of one width, each in its cells.

    Rich makes every character as wide as a cell; wide ones take two.
    """
    begin, x, middle, length, end, content = text.groups()
    said = unescape(content)
    if cell_len(said) <= len(said):
        return text[0]
    cell, at = float(length) / len(said), float(x)
    parts: list[str] = []
    for _, characters in groupby(said, cell_len):
        run = "".join(characters)
        taken = cell * cell_len(run)
        if run.strip():
            shown = escape(run).replace(" ", "&#160;")
            parts.append(f"{begin}{at:.6g}{middle}{taken:.6g}{end}{shown}</text>")
        at += taken
    return "".join(parts)


def _strips(screen: Screen[Any]) -> list[Strip]:
    """Return the lines of a screen, its widgets painted from the back to the front, as parts may overlap."""
    width, height = screen.size
    strips = screen.render_lines(Region(0, 0, width, height))
    placed = [widget for widget in screen.walk_children(Widget) if widget.region and widget.visible]
    for widget in sorted(placed, key=lambda widget: screen.find_widget(widget).order):
        visible = widget.region.intersection(Region(0, 0, width, height))
        if not visible:
            continue
        lines = widget.render_lines(visible.translate((-widget.region.x, -widget.region.y)))
        for y, line in enumerate(lines, start=visible.y):
            strips[y] = Strip.join([strips[y].crop(0, visible.x), line, strips[y].crop(visible.right, width)])
    return strips
