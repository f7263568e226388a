"""The form that asks for the format and the file of an export."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Literal, TypeAlias

from rich.cells import cell_len

from .bars import Key, key_line
from .draft import Draft
from .glyphs import Glyphs
from .lines import Line, Role, Span, fitted, wrapped

Kind: TypeAlias = Literal["svg", "json", "csv", "markdown"]

# Each kind of file: its label, ending and contents.
KINDS: dict[Kind, tuple[str, str, str]] = {
    "svg": ("SVG", ".svg", "a picture of the screen"),
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

    def turned(self, direction: int) -> Form:
        """Return the form with the next kind; the path's ending changes too, unless the user typed another one."""
        kinds = (*KINDS,)
        kind = kinds[(kinds.index(self.kind) + direction) % len(kinds)]
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
    top: list[Line] = [((glyphs.say(f"Export the {form.pane} pane"), "heading"),), ()]
    middle: list[Line] = [_kinds(form.kind), ((glyphs.say(KINDS[form.kind][2]), "dim"),), ()]
    path = _path(form.path, width, glyphs, asking=bool(form.question))
    below: list[Line] = [*wrapped(glyphs.say(place), width, "dim"), ()]
    if form.question:
        below += wrapped(glyphs.say(form.question), width, "accent")
    elif form.objection:
        below += wrapped(glyphs.say(form.objection), width, "alert")
    keys = key_line(_keys(form), width + 2, glyphs)[1:]
    parts = [top, middle, path, below]
    room = height - 1  # the last line is for the keys
    if sum(map(len, parts)) > room:
        parts = [top[:1], middle[:2], path, [line for line in below if line]]
    if sum(map(len, parts)) > room:
        parts = [top[:1], middle[:1], path, [line for line in below if line and line[0][1] != "dim"]]
    if (over := sum(map(len, parts)) - room) > 0:
        parts[2] = _window(path, max(len(path) - over, 1))
    lines = [line for part in parts for line in part][:room]
    return [fitted(line, width) for line in (*lines, *[()] * (room - len(lines)), keys)]


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


def _path(draft: Draft, width: int, glyphs: Glyphs, asking: bool) -> list[Line]:
    """Return the whole path with its cursor, on as many lines as it needs."""
    lines: list[Line] = []
    row: list[Span] = []
    left = width
    for at, character in enumerate(draft.text + " "):
        role: Role = "cursor" if at == draft.at and not asking else "key"
        for piece in glyphs.say(character):
            if cell_len(piece) > left:
                lines.append(tuple(row))
                row, left = [], width
            row.append((piece, role))
            left -= cell_len(piece)
    return [*lines, tuple(row)]


def _window(lines: list[Line], room: int) -> list[Line]:
    """Return at most `room` of the path's lines, including the one with the cursor."""
    at = next((n for n, line in enumerate(lines) if any(role == "cursor" for _, role in line)), len(lines) - 1)
    first = max(0, at - room + 1)
    return lines[first : first + room]
