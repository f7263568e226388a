"""The top bar and the key bar of every pane."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ...core.message import counted, message
from ...core.models import MODEL_WIDTHS
from ...core.parameters import FIELD, Parameters
from .fields.entry import FieldEntry
from .glyphs import Glyphs
from .lines import Line, Role, Span, ends, line_width

Key = tuple[str, str]  # the keys to press, their effect
Views = tuple[tuple[str, ...], str]  # the names of a tab's views, and the one on screen
NO_VIEWS: Views = (), ""
PIECE = re.compile(r"[←→↑↓]|[^ ←→↑↓]+")  # one of the keys to press

NARROW = 80  # below this width, a pane shows its parts one at a time instead of side by side
_NAME: Span = (" attn-tui ", "heading")
_STATUS = len(f"d_k {FIELD['d_k'].high:.0f}")  # cells reserved for a status; every pane has a form that short


def top_line(
    tabs: tuple[str, ...], active: str, statuses: Sequence[Line], width: int, glyphs: Glyphs, views: Views = NO_VIEWS
) -> Line:
    """Return the program's name, its tabs with the active one highlighted and its views, and the longest status.

    If space is short, the other views are dropped, then the program's name, then a blank between tabs, then the view,
    then the names of the other tabs: `< Lab > 1 of 6`, then `< Lab >`. A status never moves the tabs, nor do views at
    80 columns.
    """
    line = tab_line(tabs, active, width, glyphs, views)
    room = width - line_width(line) - 2
    status = next((status for status in statuses if line_width(status) <= room), ())
    return ends(line, (*status, (" ", "text")), width)


@lru_cache(maxsize=16)
def tab_line(tabs: tuple[str, ...], active: str, width: int, glyphs: Glyphs, views: Views = NO_VIEWS) -> Line:
    """Return the left part of the top bar. A click on a span shows the tab or view, or the next or previous tab."""
    needed = _STATUS + 2
    named = tuple[Span, ...]((f" {glyphs.say(tab)} ", "accent" if tab == active else "dim") for tab in tabs)
    alone: Line = ((" <", "key"), (f" {glyphs.say(active)} ", "accent"), (">", "key"))
    count: Span = (glyphs.say(" {active} of {count}", active=tabs.index(active) + 1, count=len(tabs)), "dim")
    tight = tuple[Span, ...]((title.rstrip(), role) for title, role in named)
    names, shown = views
    within: Line = tuple((f" {glyphs.say(name)} ", "accent" if name == shown else "dim") for name in names)
    own: Line = tuple(span for span in within if span[1] == "accent")
    turn: Line = ((f" {glyphs.box[4]} ", "dim"), ("V", "key")) if within else ()
    forms: list[Line] = [
        (_NAME, *named, *turn, *within), (_NAME, *named, *turn, *own), (*named, *turn, *within),
        (*tight, *turn, *within), (*tight, *turn, *own), named, tight, (*alone, *own, count),
        (*alone, *own), (*alone, count), alone,
    ]  # fmt: skip
    return next((form for form in forms if line_width(form) + needed <= width), forms[-1])


def span_at(line: Line, x: int) -> tuple[int, int] | None:
    """Return the index of the span at cell `x` of a line, and the cell within it; None past the end."""
    for index, span in enumerate(line):
        cells = line_width((span,))
        if x < cells:
            return index, x
        x -= cells
    return None


def pane_at(
    tabs: tuple[str, ...], active: str, width: int, x: int, glyphs: Glyphs, views: Views = NO_VIEWS
) -> str | int | None:
    """Return the tab or view whose name is at cell `x` of the top bar, or 1 or -1 for the next or previous tab."""
    line = tab_line(tabs, active, width, glyphs, views)
    found = span_at(line, x)
    word = line[found[0]][0].strip() if found else ""
    return {"<": -1, ">": 1, **{glyphs.say(name): name for name in (*views[0], *tabs)}}.get(word)


def parameters_status(parameters: Parameters, glyphs: Glyphs) -> list[Line]:
    """Return `d_k 64 as in BERT · 128 keys · seed 0` and shorter forms of it."""
    model = MODEL_WIDTHS.get(parameters.d_k)
    d_k = message("d_k {d_k}", d_k=parameters.d_k)
    rest = message(" · {n_keys} keys · seed {seed}", n_keys=parameters.n_keys, seed=parameters.seed)
    texts = [message("d_k {d_k} as in {model}{rest}", d_k=parameters.d_k, model=model, rest=rest)] if model else []
    texts += [message("{d_k}{rest}", d_k=d_k, rest=rest), d_k]
    return [((glyphs.say(text), "text"),) for text in texts]


def typing_status(editing: FieldEntry[Parameters], glyphs: Glyphs) -> list[Line]:
    """Return the text being typed, as `d_k 12_`."""
    role: Role = "alert" if editing.objection else "accent"
    label: Span = (f"{glyphs.say(FIELD[editing.field].label)} ", "text")
    return [(label, (f"{editing.text}_", role)), ((f"{editing.text[-4:]}_", role),)]


def progress_status(
    fraction: float, glyphs: Glyphs, at: str = "", pace: tuple[int, float] | None = None
) -> list[Line]:
    """Return `computing ███─────── 34 %` and shorter forms, down to ` 34 %`; forms with `at` come first.

    A pace, the number of workers and of parts a second, comes before all: `2 workers · 7.1 parts/s · ██──── 34 %`.
    """
    percent: Span = (f" {100 * fraction:3.0f} %", "text")
    forms: list[Line] = [
        ((glyphs.say("computing "), "text"), *_bar(fraction, 10, glyphs), percent),
        (*_bar(fraction, 10, glyphs), percent),
        (*_bar(fraction, 5, glyphs), percent),
    ]
    least: Line = ((f" {100 * fraction:2.0f} %", "text"),)
    where: Span = (glyphs.say("{place} · ", place=at), "text")
    shown: list[Line] = [*forms, least]
    if at:
        shown = [*((where, *form) for form in forms), ((glyphs.say(at), "text"), *least), *shown]
    if pace is None:
        return shown
    workers, rate = pace
    count = glyphs.say(counted("{number} worker", "{number} workers", workers)) + glyphs.say(" · ")
    rates = glyphs.say("{rate} parts/s · ", rate=f"{rate:.2g}" if rate < 10 else f"{rate:.0f}") if rate else ""
    fast: Span = (count + rates, "text")
    short: Span = (count, "text")
    paced: list[Line] = [(fast, *forms[1]), (fast, *forms[2]), (fast, percent), (short, *forms[2])]
    return [*([(where, *paced[0])] if at else []), *paced, *shown]


def _bar(fraction: float, cells: int, glyphs: Glyphs) -> Line:
    done = round(fraction * cells)
    return (glyphs.bars[-1] * done, "accent"), (glyphs.rule * (cells - done), "dim")


def key_line(keys: Sequence[Key], width: int, glyphs: Glyphs) -> Line:
    """Return as many keys as fit, in order; always help, and how to quit and to change the pane.

    On a narrow screen, where the top bar says how to change the pane, help and the key of the other view.
    """
    always = ("help", "view", "numbers") if width < NARROW else ("help", "quit", "next tab")
    shown = [key for key in keys if key[1] in always]
    for key in keys:
        if key in shown:
            continue
        if line_width(_key_spans((*shown, key), glyphs)) > width + 2:
            break
        shown.append(key)
    return ends(_key_spans([key for key in keys if key in shown], glyphs), (), width)


def key_at(keys: Sequence[Key], width: int, glyphs: Glyphs, x: int) -> str | None:
    """Return the key, as `key_word` writes it, at cell `x` of the key bar; over its effect, the first one."""
    line = key_line(keys, width, glyphs)
    found = span_at(line, x)
    if found is None or not found[0] or line[found[0]][1] not in ("key", "dim"):
        return None
    at, cell = found if line[found[0]][1] == "key" else (found[0] - 1, 0)
    pair = line[at][0], line[at + 1][0]
    for press, effect in keys:
        if (glyphs.say(press), f" {glyphs.say(effect)}   ") == pair:
            ends_at = ((len(glyphs.say(press[: match.end()])), match[0]) for match in PIECE.finditer(press))
            return next((word for end, word in ends_at if cell < end), None)
    return None


def _key_spans(keys: Sequence[Key], glyphs: Glyphs) -> Line:
    line: list[Span] = [(" ", "text")]
    for press, effect in keys:
        line.append((glyphs.say(press), "key"))
        line.append((f" {glyphs.say(effect)}   ", "dim"))
    return tuple(line)
