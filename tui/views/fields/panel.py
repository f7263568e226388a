"""The parameter panel: a line for each field that has an effect, with help or an error message below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from ....core.against import parameter_word
from ....core.field import Field
from ....core.message import message
from ....core.parameters import FIELDS, Parameters, model_title
from ...language.cells import cells, to_left
from ..glyphs import Glyphs
from ..lines import Line, Role, ends, fitted, shortened, wrapped
from .entry import FieldEntry

NAME = 11  # cells of a field's name
_ROOM_FOR_HELP = 7  # lines
_SHARE_OF_HELP = 4  # one line in four is for the help of the field with the cursor, if not all fields fit beside it


_USUAL = {field.name: field for field in FIELDS if field.applies(Parameters())}


@lru_cache(maxsize=4)
def applicable(parameters: Parameters) -> tuple[Field, ...]:
    """Return the fields that have an effect with these parameters; one that a choice adds comes after the choice."""
    return tuple(field for field in FIELDS if field.applies(parameters))


def _group(field: Field) -> str:
    """Return the group of a field in the panel."""
    return field.group if field.name in _USUAL else "added"


def value_text(field: Field, parameters: Parameters) -> str:
    """Return a value as the panel shows it: formulas or names for scale rules, words for choices."""
    return "–" if field.name == "model" and not model_title(parameters) else parameter_word(field, parameters)


def field_rows(
    parameters: Parameters,
    width: int,
    height: int,
    glyphs: Glyphs,
    focus: str | None,
    editing: FieldEntry[Parameters] | None,
    line: int | None = None,
) -> list[Field | None]:
    """Return the field of each line; None separates groups, if that leaves room for a few lines of help.

    With `line`, the field with the focus stands there, at the cost of
    the help: what was clicked does not move under the pointer.

    Fields that a choice adds are below all others, so that nothing moves when they appear.
    If there are more fields than lines, those around the focus are shown, with room for its help or an error message.
    """
    fields = sorted(applicable(parameters), key=lambda field: field.name not in _USUAL)
    roomy = len(_USUAL) + len({field.group for field in _USUAL.values()}) - 1 + _ROOM_FOR_HELP
    spaced = height >= roomy
    rows: list[Field | None] = []
    for before, field in zip((None, *fields), fields, strict=False):
        if spaced and before is not None and _group(before) != _group(field):
            rows.append(None)
        rows.append(field)
    if editing is not None and editing.objection:
        height = max(height - len(_notes(width, glyphs, focus, editing)), 1)
    elif focus is not None:
        height -= height // _SHARE_OF_HELP
    focus = editing.field if editing else focus
    at = next((y for y, field in enumerate(rows) if field is not None and field.name == focus), 0)
    if line is not None:
        height = max(height, line + 1)
    top = at - (height // 2 if line is None else line)
    top = min(max(top, 0), max(len(rows) - height, 0))
    return rows[top : top + height]


def panel_lines(
    parameters: Parameters,
    width: int,
    height: int,
    glyphs: Glyphs,
    focus: str | None = None,
    editing: FieldEntry[Parameters] | None = None,
    keys: Mapping[str, str] = MappingProxyType({}),
    line: int | None = None,
) -> list[Line]:
    """Return the panel, exactly `height` lines of `width`; `focus` names the field with the cursor.

    `line` is that of `field_rows`. `keys` are those that set a field, by its name.
    """
    lines: list[Line] = []
    for field in field_rows(parameters, width, height, glyphs, focus, editing, line):
        if field is None:
            lines.append(())
            continue
        text = glyphs.say(value_text(field, parameters))
        role: Role = "text"
        completed = ""
        if editing is not None and editing.field == field.name:
            text, role = editing.text + "_", "alert" if editing.objection else "accent"
            completed = glyphs.say(value_text(field, editing.pending)) if editing.pending else ""
        key = keys.get(field.name, "")
        lines.append(field_line(field, text, role, field.name == focus, width, glyphs, completed, key))
    notes = _notes(width, glyphs, focus, editing)
    room = max(height - len(lines), 0)
    lines += [()] * (room - len(notes))
    lines += shortened(list(notes), width, room, glyphs.say("…"))
    return [fitted(line, width) for line in lines[:height]]


def field_list_lines(
    rows: Sequence[tuple[Field | None, str, Role]],
    cursor: str,
    typed: str | None,
    objection: str,
    width: int,
    height: int,
    glyphs: Glyphs,
) -> list[Line]:
    """Return exactly `height` lines: fields with their values, and help or an error message.

    The field with the cursor shows the text being typed, if there is one.
    """
    lines: list[Line] = []
    for field, text, role in rows:
        if field is None:
            lines.append(())
            continue
        if typed is not None and field.name == cursor:
            text, role = typed + "_", "alert" if objection else "accent"
        lines.append(field_line(field, text, role, field.name == cursor, width, glyphs))
    if objection:
        notes = wrapped(glyphs.say("{objection}.", objection=objection), width, "alert")
    else:
        help_ = next(field.help for field, _, _ in rows if field is not None and field.name == cursor)
        notes = wrapped(glyphs.say(help_), width, "dim")
    lines += [(), *notes[: max(height - len(lines) - 1, 0)]]
    return [fitted(line, width) for line in (*lines, *[()] * (height - len(lines)))][:height]


@lru_cache(maxsize=256)
def field_line(
    field: Field,
    text: str,
    role: Role,
    focused: bool,
    width: int,
    glyphs: Glyphs,
    completed: str = "",
    key: str = "",
) -> Line:
    """Return the name at the left and the value at the right; a long value uses all the space its name leaves.

    What the text is short for, `completed`, follows it if there is space. The key that sets the field is lit in its
    name, or stands after it.

    Arrows mark the focus without colours: two with spaces, or two, if there is space.
    """
    label = glyphs.say(field.label)
    if completed and cells(text) + 1 + cells(completed) < width:
        label = label if cells(label) + cells(text) + 1 + cells(completed) < width else ""
        return ends(((label, "accent"),), ((text, role), (f" {completed}", "dim")), width)
    if cells(label) + cells(text) >= width and field.name == "model":
        label, text = "", text if cells(text) < width else text.replace(glyphs.say(", changed"), " *")
    if key and key not in label and cells(f"{label} {key}") <= min(NAME, width - cells(text) - 1):
        label += f" {key}"
    named, valued = cells(label), cells(text)
    forms = [(f"{glyphs.left} ", f" {glyphs.right}"), (glyphs.left, glyphs.right)]
    left, right = next((form for form in forms if focused and named + valued + sum(map(len, form)) < width), ("", ""))
    room = max(width - NAME, len(left) + valued + len(right))
    room = min(room, width - named - (not left))
    value: Role = "accent" if focused and role == "text" else role
    return (
        *lit(to_left(label, width - room), key, "accent" if focused else "label"),
        (" " * (room - valued - len(left) - len(right)), "text"),
        (left, "accent"),
        (text, value),
        (right, "accent"),
    )


def lit(text: str, key: str, role: Role) -> Line:
    """Return a text with its first `key` in the colour of keys."""
    if not key or key not in text:
        return ((text, role),)
    before, found, after = text.rpartition(key) if text.rstrip().endswith(f" {key}") else text.partition(key)
    spans: Line = ((before, role), (found, "key"), (after, role))
    return tuple(span for span in spans if span[0])


def _notes(width: int, glyphs: Glyphs, focus: str | None, editing: FieldEntry[Parameters] | None) -> Sequence[Line]:
    """Return the error message for the text being typed, or the help of the field with the cursor."""
    if editing is not None and editing.objection:
        return wrapped(glyphs.say(editing.objection), width, "alert")
    if editing is not None and editing.pending is not None:
        title = glyphs.say(model_title(editing.pending) or message("no model"))
        said = message("Enter, Tab or an arrow chooses {title}; Esc cancels.", title=title)
        return wrapped(glyphs.say(said), width, "dim")
    named = next((field for field in FIELDS if field.name == focus), None)
    return wrapped(glyphs.say(named.help), width, "dim") if named else ()
