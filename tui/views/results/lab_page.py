"""The page of the Lab: d_k in large digits, and what a larger one does to logits, weights and saturation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....core.message import counted, joined, message
from ....core.parameters import FIELDS, Parameters, choice_word, usual_of
from ....core.scales import scale_rule
from ....core.statistics.measurement import NOTHING, Column, column_names
from ...language.cells import cells, to_left, to_right
from ..fields.panel import value_text
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, fitted, shortened, wrapped
from ..page import (
    LOW,
    TALL,
    PictureColumns,
    headline_lines,
    picture_columns,
    picture_line,
    section_line,
    words_at,
)
from ..plots.lab_pictures import (
    ENTROPY,
    ENTROPY_NOTE,
    LOGITS,
    SATURATION,
    Curve,
    axis_note,
    entropy_lines,
    gauge_lines,
    gauge_note,
    logit_lines,
    share_bar,
)
from .sentence import lab_sentence
from .table import COLUMN_ROLES, TableContents

ROW = "a row of attention"
HEADLINE = LOW + 1  # lines of the page where it has room for its headline only
LOWEST = 14  # lines from which regions have titles
_TALL = 34  # lines, and cells, from which digits are larger, words stand beside them, and entropy over d_k below
_WIDE = 84
_HILL, _SHARE, _CURVE = 12, 3, 20  # the most lines of a hill, a bar and the curve


class LabPage(NamedTuple):
    """What the page shows."""

    parameters: Parameters  # of the contents
    contents: TableContents
    draws: int = 0  # measured
    curves: tuple[Curve, ...] = ()  # of entropy
    hint: Sequence[str] = ("",)  # what a key does, or what is held, in forms from long to short
    remark: str = ""  # before the sentence
    d_k: int = 0  # asked for, of which the contents may not be yet
    typed: str | None = None  # the text being typed for it
    objection: str = ""  # why the settings are not accepted, or the contents are not current


class Layout(NamedTuple):
    """The lines of each part of the page."""

    hill: int
    share: int
    zones: bool
    axis: bool
    words: int  # lines of the sentence below all pictures
    curve: int  # lines of the curve of entropy, 0 without it
    blanks: frozenset[str]  # the parts before which a blank line stands
    tall: bool


def page_layout(width: int, height: int) -> Layout:
    """Return how many lines each part has: the most important ones first, as long as there is room."""
    tall = width >= _WIDE and height >= _TALL
    low = height < LOWEST
    sizes = {"hill": 1, "share": 1, "zones": 0, "axis": 0, "words": 0 if tall else 1, "curve": 0}
    left = height - (TALL + 1 if tall else LOW) - 6 - sizes["words"] - (0 if low else 3)
    blanks = set[str]()

    def take(name: str, lines: int, by: int = 1) -> None:
        """Give a part that many more lines, which cost `by` each; or a blank line before it."""
        nonlocal left
        if left < lines * by or low:
            return
        left -= lines * by
        if name in sizes:
            sizes[name] += lines
        else:
            blanks.add(name)

    wanted: list[tuple[str, int, int]] = [("axis", 1, 1), ("zones", 1, 1), ("hill", 1, 2)]
    wanted += [] if tall else [("words", 1, 1)] * (3 if width < 70 else 1)
    wanted += [("top", 1, 1), ("saturation", 1, 1), ("sentence", 1, 1)]
    wanted += [("curve", 9, 1)] if height >= _TALL else []
    wanted += [("hill", 1, 2), ("row", 1, 1), ("between", 1, 1), ("share", 1, 2), ("hill", 1, 2)]
    for part, lines, by in wanted:
        take(part, lines, by)
    if low:
        sizes["words"] = 1 + max(left, 0)
    while left > 0 and not low:
        before = left
        if sizes["hill"] < _HILL:
            take("hill", 1, 2)
        if sizes["curve"] and sizes["curve"] < _CURVE:
            take("curve", 1)
        if sizes["hill"] > _HILL // 2 and sizes["share"] < _SHARE:
            take("share", 1, 2)
        if left == before:
            break
    words = sizes["words"]
    return Layout(
        sizes["hill"], sizes["share"], bool(sizes["zones"]), bool(sizes["axis"]), words, sizes["curve"],
        frozenset(blanks), tall,
    )  # fmt: skip


def shows_curve(size: tuple[int, int]) -> bool:
    """Return whether entropy over d_k has room on the page."""
    return size[1] >= LOWEST and page_layout(*size).curve > 0


def page_lines(page: LabPage, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return the page, exactly `height` lines of `width`."""
    if height < LOW + 6:
        lines = [*_headline(page, width, False, (), glyphs)]
        return _filled([(), *lines] if height > len(lines) else lines, width, height)
    at, layout = picture_columns(width), page_layout(width, height)
    contents, columns = page.contents, page.contents.columns
    objection = page.objection if layout.tall or page.typed is None else ""  # else it stands beside what is typed
    said = objection or (lab_sentence(page.parameters, contents, glyphs) if columns else "")
    role: Role = "alert" if objection else "text"
    text = glyphs.say(joined([page.remark, said], "") if page.remark and not objection else said)
    beside = wrapped(text, width - words_at(width, True) - 1, role) if layout.tall else []
    lines: list[Line] = [()] if "top" in layout.blanks else []
    lines += _headline(page, width, layout.tall, beside, glyphs)
    if not columns:
        return _filled(lines, width, height)
    known = [column.saturation.reach for column in contents.theory if column.saturation]
    reach = max(known) if len(known) == len(columns) else None
    titled = height >= LOWEST

    def begin(part: str, title: str, note: str) -> None:
        lines.extend([()] if part in layout.blanks else [])
        lines.extend([section_line(title, note, width, glyphs)] if titled else [])

    begin("logits", LOGITS, axis_note(reach))
    lines += logit_lines(columns, at, layout.hill, glyphs, reach, layout.axis)
    begin("row", ROW, _row_note(page, glyphs, width))
    lines += _shares(columns, at, layout.share, "between" in layout.blanks, glyphs)
    begin("saturation", SATURATION, gauge_note(contents))
    lines += gauge_lines(contents, at, glyphs, layout.zones)
    if layout.curve:
        begin("curve", ENTROPY, ENTROPY_NOTE)
        lines += entropy_lines(page.curves, columns, page.parameters, at, layout.curve - 1, glyphs)
    if not layout.tall:
        lines += [()] if "sentence" in layout.blanks else []
        room = max(layout.words, height - len(lines))
        if room == 1 and not objection:
            text = glyphs.say(lab_sentence(page.parameters, contents, glyphs, brief=True))
        more = glyphs.say("…")
        margin: Span = (" ", "text")
        lines += [(margin, *line) for line in shortened(wrapped(text, width - 2, role), width - 2, room, more)]
    return _filled(lines, width, height)


def _filled(lines: Sequence[Line], width: int, height: int) -> list[Line]:
    return [fitted(line, width) for line in [*lines, *[()] * (height - len(lines))][:height]]


def _headline(page: LabPage, width: int, tall: bool, beside: Sequence[Line], glyphs: Glyphs) -> list[Line]:
    """Return d_k in large digits, with the formulas of both columns, a hint, and what stands beside them."""
    at = picture_columns(width).name if width >= 70 else 6
    refused = page.objection and page.typed is not None
    words: list[Line] = []
    if refused and not tall:
        why = wrapped(glyphs.say(page.objection), max(width - words_at(width, tall) - 1, 10), "alert")
        label: Line = ((f" {glyphs.say(message('NOT POSSIBLE'))} ", "wrong"),)
        words = [label, *why] if len(why) < LOW else why[:LOW]
    else:
        names = [glyphs.say(name) for name in column_names(page.contents.columns)]
        formulas = [glyphs.say(formula) for formula in _formulas(page.parameters, width < 50)]
        room = max(map(cells, names), default=0) + (2 if width >= 50 else 1)
        for name, formula, role in zip(names, formulas, COLUMN_ROLES, strict=False):
            words.append(((to_left(name, room) + formula, role),))
        words.append(((glyphs.fitting(page.hint, width - words_at(width, tall)), "dim"),))
        words += [(), *beside] if len(words) + len(beside) <= TALL else beside
    number = f"{page.d_k or page.parameters.d_k}" if page.typed is None else page.typed + "_"
    role: Role = "heading" if page.typed is None else "alert" if refused else "accent"
    lines = headline_lines("d_k", number, words, width, glyphs, at, role, tall, words_at(width, tall))
    return [*lines, *[()] * (TALL + 1 - len(lines))] if tall else lines[:LOW]


def _formulas(p: Parameters, short: bool) -> list[str]:
    """Return how both columns make weights of scores: `softmax( q·k ÷ √d_k )`, or `q·k ÷ √d_k` if `short`."""
    words: list[str] = []
    for each in (p.a, p):
        score = "q·k" if each.mechanism == "dot_product" else choice_word(each.mechanism)
        label = f"{each.multiplier:.4g}" if each.scale == "custom" else scale_rule(each.scale).label
        divides = label.startswith("1/") and label.count("/") == 1
        if each.scale != "none":
            score = joined([score, label[2:] if divides else label], " ÷ " if divides else " × ")
        words.append(score if short else message("softmax( {logits} )", logits=score))
    return words


def changed_settings(p: Parameters) -> str:
    """Return the settings that are not the usual ones, other than d_k and scale rules: `mask causal`."""
    usual = usual_of(p)
    fields = (
        field for field in FIELDS if field.applies(p) and field.name not in ("d_k", "scale", "against", "n_keys")
    )
    changed = [field for field in fields if getattr(p, field.name) != getattr(usual, field.name)]
    return joined([joined([field.label, value_text(field, p)]) for field in changed], " · ")


def _row_note(page: LabPage, glyphs: Glyphs, width: int) -> str:
    rows = page.draws * page.parameters.n_queries
    mean = counted("one row", "mean of {number:,} rows", rows)
    forms = [joined([message("largest key first"), mean], " · "), mean]
    return glyphs.fitting(forms, max(width - len(glyphs.say(ROW)) - 10, 0))


def _shares(columns: Sequence[Column], at: PictureColumns, tall: int, between: bool, glyphs: Glyphs) -> list[Line]:
    """Return a bar of the average row for each column, `each` lines high, with how many keys matter."""
    lines: list[Line] = []
    for column, name, role in zip(columns, column_names(columns), COLUMN_ROLES, strict=True):
        lines += [()] if between and lines else []
        most = column.measured.get("max_weight", NOTHING).value
        picture = share_bar(column.average_row, at.picture, role, glyphs, most)
        keys = _matter(column.measured.get("effective_keys", NOTHING).value, at.words, glyphs)
        lines.append(picture_line(glyphs.say(name), role, picture, keys, at, glyphs))
        more = share_bar(column.average_row, at.picture, role, glyphs, label=False)
        lines += [picture_line("", role, more, "", at, glyphs)] * (tall - 1)
    return lines


def _matter(keys: float | None, room: int, glyphs: Glyphs) -> str:
    """Return `2.3 keys matter`, e to the entropy of a row, with numbers at one place."""
    if keys is None:
        return "—"
    number = to_right(f"{keys:.1f}" if keys < 9.95 else f"{keys:,.0f}", 3)
    return glyphs.say(message("{n} keys matter", n=number) if room > 12 else message("{n} keys", n=number))
