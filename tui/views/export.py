"""The form that asks for the format and the file of an export."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Literal, TypeAlias

from rich.cells import cell_len

from ...core.field import next_of
from .bars import Key, key_at, key_line, span_at
from .fields.entry import Draft
from .glyphs import Glyphs
from .lines import Line, Span, fitted, wrapped

Kind: TypeAlias = Literal["svg", "json", "csv", "markdown"]

# Each kind of file: its label, ending and contents.
KINDS: dict[Kind, tuple[str, str, str]] = {
    "svg": ("SVG", ".svg", "a picture of the screen; of curves in Scales, a figure"),
    "json": ("JSON", ".json", "the numbers with their parameters"),
    "csv": ("CSV", ".csv", "one line per number"),
    "markdown": ("Markdown", ".md", "the numbers as a table"),
}
_KIND_OF: dict[str, Kind] = {ending: kind for kind, (_, ending, _) in KINDS.items()}


@dataclass(frozen=True)
class Form:
    """The state of the export form."""

    pane: str  # the name of the pane
    kind: Kind
    path: Draft
    objection: str = ""  # why the file was not written
    question: str = ""  # to answer before the file is written; until then nothing can be edited

    def with_path(self, path: Draft) -> Form:
        """Return the form with another path; if its ending belongs to a kind, that kind is chosen."""
        kind = _KIND_OF.get(PurePath(path.text).suffix.lower(), self.kind)
        return replace(self, path=path, kind=kind, objection="")

    def typed(self, text: str) -> Form:
        """Return the form after a text was typed; an ending in it replaces the one after the cursor."""
        path = self.path.typed(text)
        before, after = path.text[: path.at], path.text[path.at :]
        return self.with_path(Draft.of(before) if {PurePath(before).suffix, after} <= {*_KIND_OF} else path)

    def turned(self, direction: int) -> Form:
        """Return the form with the next kind; the path's ending changes too, unless the user typed another one."""
        kind: Kind = next_of(tuple(KINDS), self.kind, direction)
        text, ending = self.path.text, PurePath(self.path.text).suffix
        if ending.lower() == KINDS[self.kind][1]:
            text = text.removesuffix(ending) + KINDS[kind][1]
        at = len(text) if self.path.at == len(self.path.text) else min(self.path.at, len(text))
        return replace(self, kind=kind, path=Draft(text, at), objection="")


def form_lines(form: Form, place: str, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return the form as `height` lines; `place` explains where a path that is not absolute leads.

    If lines are short, blank lines are dropped first, then explanations; of a path that is still too long, the part
    with the cursor is shown.
    """
    parts = _parts(form, place, width, height, glyphs)
    lines = [line for part in parts for line in part][: height - 1]
    keys = key_line(_keys(form), width + 2, glyphs)[1:]  # in the last line
    return [fitted(line, width) for line in (*lines, *[()] * (height - 1 - len(lines)), keys)]


def clicked(form: Form, place: str, width: int, height: int, glyphs: Glyphs, x: int, y: int) -> Form | str | None:
    """Return the form after a click on one of its cells, or the clicked key, as `key_word` writes it.

    While a question is asked, only the keys that answer it can be clicked.
    """
    if y == height - 1:
        return key_at(_keys(form), width + 2, glyphs, x + 1)
    top, kinds, path, _ = _parts(form, place, width, height, glyphs)
    if form.question:
        return None
    if y == len(top):
        found = span_at(kinds[0], x)
        return form.turned(found[0] - [*KINDS].index(form.kind)) if found else None
    if len(top) + len(kinds) <= y < len(top) + len(kinds) + len(path):
        rows = _path_rows(form.path, width, glyphs)
        row = rows[_first_row(form.path, rows, len(path)) + y - len(top) - len(kinds)]
        cells = [at for at, piece in row for _ in range(cell_len(piece))]
        return replace(form, path=form.path.moved(cells[x] if x < len(cells) else row[-1][0] + 1))
    return None


def _parts(
    form: Form, place: str, width: int, height: int, glyphs: Glyphs
) -> tuple[list[Line], list[Line], list[Line], list[Line]]:
    """Return the parts of the form above its keys: a blank line, the kinds, the path and what is said about it."""
    top: list[Line] = [()]
    kinds: list[Line] = [_kinds(form.kind), ((glyphs.say(KINDS[form.kind][2]), "dim"),), ()]
    rows = _path_rows(form.path, width, glyphs)
    below: list[Line] = [*wrapped(glyphs.say(place), width, "dim"), ()]
    if form.question:
        below += wrapped(glyphs.say(form.question), width, "accent")
    elif form.objection:
        below += wrapped(glyphs.say(form.objection), width, "alert")
    room = height - 1  # the last line is for the keys
    if len(top) + len(kinds) + len(rows) + len(below) > room:
        top, kinds, below = [], kinds[:2], [line for line in below if line]
    if len(top) + len(kinds) + len(rows) + len(below) > room:
        kinds, below = kinds[:1], [line for line in below if line[0][1] != "dim"]
    shown = min(len(rows), max(room - len(top) - len(kinds) - len(below), 1))
    first = _first_row(form.path, rows, shown)
    cursor = None if form.question else form.path.at
    path = [
        tuple[Span, ...]((piece, "cursor" if at == cursor else "key") for at, piece in row)
        for row in rows[first : first + shown]
    ]
    return top, kinds, path, below


def _keys(form: Form) -> Sequence[Key]:
    if form.question:
        return (("y", "replace"), ("n", "keep"))
    return (("Enter", "write"), ("Tab", "format"), ("Esc", "cancel"), ("←→", "move cursor"), ("Ctrl+U", "clear"))


def _kinds(chosen: Kind) -> Line:
    """Return the kinds in a row, the chosen one in brackets."""
    spans: list[Span] = []
    for kind, (label, _, _) in KINDS.items():
        here = kind == chosen
        spans.append((f"[{label}]" if here else f" {label} ", "accent" if here else "label"))
    return tuple(spans)


def _path_rows(draft: Draft, width: int, glyphs: Glyphs) -> list[list[tuple[int, str]]]:
    """Return the whole path on as many lines as it needs: the position and text of each piece, then a blank."""
    rows: list[list[tuple[int, str]]] = [[]]
    left = width
    for at, character in enumerate(draft.text + " "):
        for piece in glyphs.say(character):
            if cell_len(piece) > left:
                rows.append([])
                left = width
            rows[-1].append((at, piece))
            left -= cell_len(piece)
    return rows


def _first_row(draft: Draft, rows: Sequence[Sequence[tuple[int, str]]], room: int) -> int:
    """Return the first line of the path to show, so that the one with the cursor is among `room` lines."""
    cursor = next((y for y, row in enumerate(rows) if any(at == draft.at for at, _ in row)), len(rows) - 1)
    return max(0, cursor - room + 1)
