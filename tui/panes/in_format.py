"""The numbers of a result in one of the formats of an export."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ..views.glyphs import Glyphs

if TYPE_CHECKING:
    from ...core.export.formats import Format, Say

Result = TypeVar("Result")


def in_format(
    kind: Format,
    found: Result,
    json: Callable[[Result], str],
    csv: Callable[[Result], str],
    markdown: Callable[[Result, Say], str],
    glyphs: Glyphs,
) -> str:
    """Return a result in a format, by the function for it; the page in these characters."""
    if kind == "markdown":
        return markdown(found, glyphs.say)
    return json(found) if kind == "json" else csv(found)
