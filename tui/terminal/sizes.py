"""The sizes of screens, as classes that style sheets name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.geometry import Size

if TYPE_CHECKING:
    from textual.screen import Screen

LEAST = (40, 12)  # columns and lines
WIDTHS = [(0, "-thin"), (LEAST[0], "-narrow"), (60, "-medium"), (80, "-paired"), (100, "-wide")]
HEIGHTS = [(0, "-flat"), (LEAST[1], "-low"), (18, "-middle"), (28, "-high")]


def size_classes(size: Size) -> list[str]:
    """Return the two classes of a screen of this size."""
    return [
        max(point for point in breakpoints if cells >= point[0])[1]
        for cells, breakpoints in zip(size, (WIDTHS, HEIGHTS), strict=True)
    ]


def set_size_classes(screen: Screen[Any], size: Size) -> None:
    """Set the classes of a screen of this size; Textual itself does so only after the first frame."""
    chosen = size_classes(size)
    for _, name in (*WIDTHS, *HEIGHTS):
        screen.set_class(name in chosen, name)
