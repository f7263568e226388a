"""Where the parts of the Capture pane stand, for every size and view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from textual.geometry import Region, Size

from ...views.bars import NARROW
from .heatmap import wanted_width

Part: TypeAlias = Literal["verdict", "map", "list", "matrix", "row", "results", "replay"]
PaneView: TypeAlias = Literal["attention", "statistics", "replay"]

_WIDE, _ROOMY = 100, 150  # from these widths the parts have borders, and a map may be very wide
_LEAST_MAP, _LEAST_ROW, _LEAST_MATRIX = 24, 30, 22
_BORDER, _RULE = 3, 2  # columns of a border, or of a line at the right, and what it keeps free
_VERDICT, _NARROW_VERDICT = 12, 9  # lines from which the verdict is shown
_LOW = 14  # lines below which list and matrix do not both fit


def arrangement(size: Size, view: PaneView, front: Part, heads: int, asking: bool = False) -> Mapping[Part, Region]:
    """Return the region of each part on screen.

    `heads` is the largest number of heads of a layer, for which the map is made wide. Below NARROW columns only the
    part in front is shown under the verdict, which low screens leave out unless it is `asking` what to find.
    """
    width, height = size
    if height < 3 or width < 1:
        return {front: Region(0, 0, width, height)}
    top = int(asking or height >= (_NARROW_VERDICT if width < NARROW else _VERDICT))
    parts: dict[Part, Region] = {"verdict": Region(0, 0, width, 1)} if top else {}
    if width < NARROW:
        return {**parts, front: Region(0, top, width, height - top)}
    boxed = width >= _WIDE
    roomy = width >= _ROOMY  # elsewhere narrow cells leave room for the reasons
    least, most = (36, width * 2 // 5 if roomy else 44) if boxed else (_LEAST_MAP, 32)
    left = min(max(wanted_width(heads, roomy) + (_BORDER if boxed else _RULE), least), most)
    right = Region(left, top, width - left, height - top)
    parts["map"] = Region(0, top, left, height - top)
    if view != "attention":
        return {**parts, "results" if view == "statistics" else "replay": right}
    if right.height < _LOW:
        return {**parts, front if front in ("list", "matrix", "row") else "list": right}
    listed = max(right.height * 2 // 5, 7)
    under = Region(right.x, right.y + listed, right.width, right.height - listed)
    bars = min(max(right.width * 9 // 20, _LEAST_ROW), right.width - _LEAST_MATRIX)
    return {
        **parts,
        "list": Region(right.x, right.y, right.width, listed),
        "matrix": Region(under.x, under.y, under.width - bars, under.height),
        "row": Region(under.right - bars, under.y, bars, under.height),
    }
