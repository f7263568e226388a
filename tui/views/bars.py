"""The line above and the line below every pane: where one is, and which keys lead on."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.landmarks import MODEL_WIDTHS
from ...core.parameters import FIELD, Parameters
from .glyphs import Glyphs
from .lines import Line, Span, ends, line_width

Key = tuple[str, str]  # what to press, what it does

NARROW = 80  # columns below which parts that stand side by side elsewhere are shown one at a time
_NAME: Span = (" attn-tui ", "heading")
_STATUS = len(f"d_k {FIELD['d_k'].high:.0f}")  # cells kept for a status; every pane has one that is no longer


def top_line(panes: Sequence[str], active: str, statuses: Sequence[Line], width: int) -> Line:
    """The name of the program, its panes with the active one set off, and the longest status that has room.

    Where there is little room, the program loses its name; then the other panes lose theirs and keep their numbers.
    That depends on the width alone: what a pane has to say never moves the others.
    """
    needed = _STATUS + 2
    named, short = _tabs(panes, active, panes), _tabs(panes, active, [active])
    forms: list[Line] = [(_NAME, *named), named, (_NAME, *short), short]
    tabs = next((form for form in forms if line_width(form) + needed <= width), forms[-1])
    room = width - line_width(tabs) - 2
    status = next((status for status in statuses if line_width(status) <= room), ())
    return ends(tabs, (*status, (" ", "text")), width)


def _tabs(panes: Sequence[str], active: str, named: Sequence[str]) -> Line:
    tabs: list[Span] = []
    for number, pane in enumerate(panes, start=1):
        text = f" {number} {pane} " if pane in named else f" {number} "
        tabs.append((text, "accent" if pane == active else "dim"))
    return tuple(tabs)


def parameters_status(parameters: Parameters, glyphs: Glyphs) -> list[Line]:
    """`d_k 64 as in BERT · 128 keys · seed 0`, and shorter forms of it."""
    model = MODEL_WIDTHS.get(parameters.d_k)
    rest = f" · {parameters.n_keys} keys · seed {parameters.seed}"
    texts = [f"d_k {parameters.d_k} as in {model}{rest}"] if model else []
    texts += [f"d_k {parameters.d_k}{rest}", f"d_k {parameters.d_k}"]
    return [((glyphs.say(text), "text"),) for text in texts]


def progress_status(fraction: float, glyphs: Glyphs, at: str = "") -> list[Line]:
    """`computing ███─────── 34 %`, and shorter forms of it down to ` 34 %`; before them those that say at what."""
    percent: Span = (f" {100 * fraction:3.0f} %", "text")
    forms: list[Line] = [
        (("computing ", "text"), *_bar(fraction, 10, glyphs), percent),
        (*_bar(fraction, 10, glyphs), percent),
        (*_bar(fraction, 5, glyphs), percent),
    ]
    least: Line = ((f" {100 * fraction:2.0f} %", "text"),)
    if not at:
        return [*forms, least]
    where: Span = (glyphs.say(f"{at} · "), "text")
    return [*((where, *form) for form in forms), ((at, "text"), *least), *forms, least]


def _bar(fraction: float, cells: int, glyphs: Glyphs) -> Line:
    done = round(fraction * cells)
    return (glyphs.bars[-1] * done, "accent"), (glyphs.rule * (cells - done), "dim")


def key_line(keys: Sequence[Key], width: int, glyphs: Glyphs) -> Line:
    """As many keys as fit, the first ones first; help is always among them, on a narrow screen other views too."""
    always = ("help", "view") if width < NARROW else ("help",)
    shown = [key for key in keys if key[1] in always]
    for key in keys:
        if key in shown:
            continue
        if line_width(_key_spans((*shown, key), glyphs)) > width + 2:
            break
        shown.append(key)
    return ends(_key_spans([key for key in keys if key in shown], glyphs), (), width)


def _key_spans(keys: Sequence[Key], glyphs: Glyphs) -> Line:
    line: list[Span] = [(" ", "text")]
    for press, does in keys:
        line.append((glyphs.say(press), "key"))
        line.append((f" {glyphs.say(does)}   ", "dim"))
    return tuple(line)
