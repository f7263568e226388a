"""Faults as blocks of lines: what is wrong, where, what q·k was multiplied by and should be, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....core.message import joined, message
from ...language.cells import cells, to_left
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, wrapped

if TYPE_CHECKING:
    from ....core.diagnosis.groups import FaultGroup

_LABEL = 15  # cells of the longest label, with a space before and after it
_IS = 15  # cells for what it is, before what it should be


def fault_lines(group: FaultGroup, glyphs: Glyphs, width: int, right: str = "") -> list[Line]:
    """Return the block of a fault and a blank line; `right` says which other layers are right."""
    fault = group.fault
    healthy = group.rule == "healthy"
    numbers = ""
    if group.amounts and fault.expected and not healthy:
        used = to_left(glyphs.say("is {used}", used=group.amounts), _IS)
        numbers = f"{used}  {glyphs.say(fault.expected)}"
    elif healthy:
        return block(fault.label, group.place, [joined([fault.expected, group.why], ", ")], glyphs, width, "right")
    rest = [group.why, group.effect, right]
    if fault.rule not in ("healthy", "undecided", "unexplained", "no-evidence"):
        rest.append(message("cause: {names}", names=group.names))
    role: Role = "right" if healthy else "wrong" if fault.severe else "heading"
    return block(fault.label, group.place, [numbers, *rest], glyphs, width, role)


def block(
    label: str, where: str, rest: Sequence[str], glyphs: Glyphs, width: int, role: Role = "heading"
) -> list[Line]:
    """Return a label, what stands beside it, and more lines below that, wrapped; and a blank line."""
    word = f" {glyphs.say(label)} "
    indent = max(_LABEL, cells(word) + 1)
    lines: list[Line] = []
    for number, text in enumerate((where, *rest)):
        room, shade = max(width - indent, 20), "text" if number else "heading"
        said = glyphs.say(text)
        fits: list[Line] = [((said, shade),)] if said and cells(said) <= room else []
        for line in fits or wrapped(said, room, shade):
            first: tuple[Span, ...] = ((" " * indent, "text"),)
            if not lines:
                first = ((word, role), (" " * (indent - cells(word)), "text"))
            lines.append((*first, *line))
    return [*lines, ()]
