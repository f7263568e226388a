"""A result as a page of HTML without scripts, which loads nothing, or as part of another page, such as a notebook."""

from __future__ import annotations

import math
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING

from ..message import counted, joined, message, plain
from .formats import NONE, Say
from .table import (
    Block,
    Bold,
    CommandLine,
    Heading,
    HeadMark,
    Picture,
    Pictures,
    Statement,
    TextGrid,
    Tone,
    VerdictMap,
)

if TYPE_CHECKING:
    from ..captures.capture import Layer
    from ..diagnosis.results import AttentionCells

_SIGNS: Mapping[Tone, str] = {"right": "·", "wrong": "✗", "undecided": "?", "downstream": "↓", "neutral": "–"}
_OPEN = 40  # lines of a table that is shown at once; a longer one opens with a click
_WORDS = 16  # columns of a table that can be aligned left

# Of each tone the background, the text on it, in light and dark; each pair has a contrast of at least 4.5 to 1.
_COLOURS: Mapping[str, tuple[str, str]] = {
    "ink": ("#1a1a1a", "#e6e6e6"), "paper": ("#ffffff", "#16181c"),
    "dim": ("#5c6066", "#a2a7ae"), "line": ("#d5d8dc", "#3a3e45"),
    "right": ("#d5e8f5", "#173a52"), "on-right": ("#0b3a57", "#cfe9fb"),
    "wrong": ("#b3400f", "#f08a4b"), "on-wrong": ("#ffffff", "#1b0d00"),
    "undecided": ("#f2dc9b", "#5a4a14"), "on-undecided": ("#4a3800", "#ffe9a8"),
    "downstream": ("#ded6ee", "#3c3260"), "on-downstream": ("#3b2a66", "#e0d6ff"),
    "neutral": ("#ebebeb", "#2c2f35"), "on-neutral": ("#444444", "#c4c8cf"),
}  # fmt: skip
_RULES: Mapping[str, str] = {
    "": "color:var(--ink);background:var(--paper);font:15px/1.5 system-ui,sans-serif;padding:1em;max-width:72em;"
    "margin:0 auto;box-sizing:border-box;overflow-wrap:anywhere;color-scheme:light dark",
    "p": "margin:.2em 0",
    "h2": "font-size:1.2em;margin:1.4em 0 .4em",
    "style + h2": "margin-top:0",
    "section": "border-left:4px solid var(--line);padding:0 0 0 .8em;margin:.8em 0",
    "b": "padding:.05em .5em;border-radius:3px;margin-right:.2em;white-space:nowrap;font-weight:600",
    "figure": "display:inline-block;vertical-align:top;margin:.5em 1.5em .5em 0",
    "figcaption": "font-weight:600",
    "figure p": "display:inline-block;vertical-align:top;margin:.2em .8em 0 0;max-width:15em",
    "img": "display:block;width:160px;height:160px;border:1px solid var(--line);image-rendering:pixelated",
    "div": "overflow-x:auto",
    "table": "border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;margin:.6em 0;width:auto;"
    "overflow-wrap:normal",
    "tr": "background:none",
    "td, th": "padding:.15em .6em;text-align:right;font-weight:400;border:0;border-bottom:1px solid var(--line)",
    "th, .dim": "color:var(--dim)",
    "table.map": "border-collapse:separate;border-spacing:1px",
    ".map td, .map th": "min-width:1.5em;height:1.6em;padding:0 .2em;text-align:center;border:0;cursor:default",
    "summary": "cursor:pointer;margin:1em 0 .4em",
    **{f".w{at} :is(td,th):nth-child({at})": "text-align:left" for at in range(1, _WORDS + 1)},
    **{f".{tone}": f"background:var(--{tone});color:var(--on-{tone})" for tone in _SIGNS},
    **{f"section.of-{tone}": f"border-color:var(--{tone})" for tone in _SIGNS},
}


def html_page(blocks: Iterable[Block], say: Say = str, language: str = "en") -> str:
    """Return a page; `language` is that of what `say` returns."""
    shown = [*blocks]
    title = next((part for part in shown if isinstance(part, str)), "attn-tui")
    lines = (
        "<!doctype html>",
        f'<html lang="{"zh-Hans" if language == "zh" else language}">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{_text(title, say)}</title>",
        f"<style>body{{margin:0}}@media(prefers-color-scheme:dark){{body{{background:{_COLOURS['paper'][1]}}}}}</style>",
        "</head>",
        "<body>",
        f"{html_part(shown, say)}</body>",
        "</html>",
    )
    return "\n".join(lines) + "\n"


def html_part(blocks: Iterable[Block], say: Say = str) -> str:
    """Return an element that can stand in any page: its styles begin with its class, its colours are complete."""
    parts = "".join(f"{_html(block, say)}\n" for block in blocks)
    return f'<div class="attn-tui">\n<style>\n{_styles()}\n</style>\n{parts}</div>\n'


def _styles() -> str:
    light, dark = (";".join(f"--{name}:{pair[at]}" for name, pair in _COLOURS.items()) for at in (0, 1))
    rules = [f".attn-tui{{{light}}}", f"@media(prefers-color-scheme:dark){{.attn-tui{{{dark}}}}}"]
    for selectors, declarations in _RULES.items():
        scoped = ",".join(f".attn-tui {selector}".rstrip() for selector in selectors.split(", "))
        rules.append(f"{scoped}{{{declarations}}}")
    return "\n".join(rules)


def _html(block: Block, say: Say) -> str:
    match block:
        case TextGrid():
            return _grid(block, say)
        case Statement():
            return _statement(block, say)
        case VerdictMap():
            return _map(block, say) if block.marks else ""
        case Pictures():
            return _pictures(block, say)
        case Heading():
            return f"<h2>{_text(block, say)}</h2>"
        case _:
            return f"<p>{_inline(block, say)}</p>"


def _inline(text: str, say: Say) -> str:
    tag = "strong" if isinstance(text, Bold) else "code" if isinstance(text, CommandLine) else ""
    return f"<{tag}>{_text(text, say)}</{tag}>" if tag else _text(text, say)


def _text(text: str, say: Say) -> str:
    """Return text, which may come from outside, for an element or between the quotes of an attribute."""
    return escape(plain(say(text)))


def _statement(block: Statement, say: Say) -> str:
    numbers = [text for text in (block.used, block.expected) if text]
    lines = [joined(numbers, ", ")] if numbers else []
    lines += [text for text in block.sentences if text]
    texts = "".join(f"\n<p>{_text(text, say)}</p>" for text in lines)
    label = f'<b class="{block.tone}">{_text(block.label, say)}</b>'
    where = f"<strong>{_text(block.where, say)}</strong>" if lines else _text(block.where, say)
    return f'<section class="of-{block.tone}">\n<p>{label} {where}</p>{texts}\n</section>'


def _grid(block: TextGrid, say: Say) -> str:
    columns = zip(*block.lines, strict=True) if block.lines else ()
    words = [
        at for at, column in enumerate(columns, 1) if block.of_words or 2 * sum(map(_is_number, column)) < len(column)
    ]
    aligned = " ".join(f"w{at}" for at in words if at <= _WORDS)
    parts = [f'<div><table class="{aligned}">', f"<thead>{_line('th', block.header, say)}</thead>", "<tbody>"]
    parts += [*(_line("td", line, say) for line in block.lines), "</tbody></table></div>"]
    if len(block.lines) > _OPEN:
        count = counted("table with {number:,} line", "table with {number:,} lines", len(block.lines))
        parts = [f"<details><summary>{_text(count, say)}</summary>", *parts, "</details>"]
    return "\n".join(parts)


def _line(tag: str, cells: Iterable[str], say: Say) -> str:
    return f"<tr>{''.join(f'<{tag}>{_inline(cell, say)}</{tag}>' for cell in cells)}</tr>"


def _is_number(text: str) -> bool:
    """Return whether a cell has a number, perhaps with a sign, a percent sign or an error, or none."""
    return text in ("", NONE) or text.lstrip("+-−×~≥ ")[:1].isdigit()


def _map(block: VerdictMap, say: Say) -> str:
    """Return a table of layers and heads, one for each file, after what its signs mean."""
    counts = Counter((mark.word, mark.tone, mark.sign or _SIGNS[mark.tone]) for mark in block.marks)
    legend = "".join(
        f'<span><b class="{tone}">{_text(sign, say)}</b> {_text(word, say)} {number:,}&emsp;</span>'
        for (word, tone, sign), number in counts.items()
    )
    rows: dict[str, dict[Layer, dict[int, HeadMark]]] = {}
    for mark in block.marks:
        rows.setdefault(mark.layer.file, {}).setdefault(mark.layer, {})[mark.head] = mark
    parts = [f"<h2>{_text(message('Heads by layer'), say)}</h2>", f"<p>{legend}</p>"]
    for file, layers in rows.items():
        numbers = range(max(max(heads) for heads in layers.values()) + 1)
        header = "".join(f"<th>{number}</th>" for number in numbers)
        parts += [f"<p>{_text(file, say)}</p>"] if file else []
        parts += ['<div><table class="map">', f"<thead><tr><th></th>{header}</tr></thead>", "<tbody>"]
        for layer, heads in layers.items():
            cells = "".join(_cell(heads.get(number), say) for number in numbers)
            parts.append(f'<tr><th title="{_text(layer.name, say)}">{layer.index}</th>{cells}</tr>')
        parts.append("</tbody></table></div>")
    return "\n".join(parts)


def _cell(mark: HeadMark | None, say: Say) -> str:
    if mark is None:
        return "<td></td>"
    place = message("layer {layer} head {head}", layer=mark.layer.index, head=mark.head)
    says = joined([text for text in (place, mark.word, mark.says) if text], ": ")
    sign = _text(mark.sign or _SIGNS[mark.tone], say)
    return f'<td class="{mark.tone}" title="{_text(says, say)}">{sign}</td>'


def _pictures(block: Pictures, say: Say) -> str:
    figures = "\n".join(_figure(picture, say) for picture in block.draw())
    if not figures:
        return ""
    about = message("Rows are queries, columns keys. The colour is as strong as √weight; hidden keys are grey.")
    return f'<h2>{_text(message("Attention"), say)}</h2>\n<p class="dim">{_text(about, say)}</p>\n{figures}'


def _figure(picture: Picture, say: Say) -> str:
    title = _text(picture.title, say)
    found = [cells for _, cells in picture.matrices if not isinstance(cells, str)]
    most = max((share for cells in found for line in cells.shares for share in line if share), default=1.0)
    parts: list[str] = []
    for caption, cells in picture.matrices:
        said = _text(caption, say)
        if isinstance(cells, str):
            parts.append(f"<p>{said}: {_text(cells, say)}</p>")
            continue
        size = f"{cells.queries[-1]:,} × {cells.keys[-1]:,}"
        image = b64encode(_png(cells, most)).decode("ascii")
        of = _text(message("{title}, {caption}: {size}", title=picture.title, caption=caption, size=size), say)
        parts.append(f'<p><img alt="{of}" title="{of}" src="data:image/png;base64,{image}">{said}</p>')
    return f"<figure><figcaption>{title}</figcaption>{''.join(parts)}</figure>"


_LEVELS = 32  # of a picture's colour, from none to full
_COLOUR, _HIDDEN = (42, 122, 191), (128, 128, 128)  # that can be seen on light and on dark


def _png(cells: AttentionCells, most: float) -> bytes:
    """Return cells as a PNG with a palette: hidden, then a colour from transparent to opaque."""

    def line(shares: Iterable[float | None]) -> Iterator[int]:
        yield 0  # no filter
        for share in shares:
            yield 0 if share is None else 1 + round(_LEVELS * math.sqrt(min(share / most, 1.0)))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    across, down = len(cells.keys) - 1, len(cells.queries) - 1
    size = across.to_bytes(4, "big") + down.to_bytes(4, "big") + bytes((8, 3, 0, 0, 0))  # 8 bits, with a palette
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(kind, data)
        for kind, data in (
            (b"IHDR", size),
            (b"PLTE", bytes(_HIDDEN) + bytes(_COLOUR) * (_LEVELS + 1)),
            (b"tRNS", bytes((56, *(255 * level // _LEVELS for level in range(_LEVELS + 1))))),
            (b"IDAT", zlib.compress(b"".join(bytes(line(shares)) for shares in cells.shares), 9)),
            (b"IEND", b""),
        )
    )
