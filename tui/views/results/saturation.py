"""The saturation gauge of a measurement: a dot on an axis for each column, and where softmax saturates."""

from __future__ import annotations

from ....core.message import joined
from ....core.statistics.measurement import column_names
from ....core.statistics.status import SATURATED
from ....core.theory.prediction import ratio_given, status_given
from ..glyphs import Glyphs
from ..lines import Line, fitted
from ..plots.dots import ENDS, dot_line, saturation_axis, zone_line
from ..section import PictureColumns, picture_line
from .table import COLUMN_ROLES, TableContents

TITLE = "does softmax saturate?"


def gauge_lines(contents: TableContents, at: PictureColumns, glyphs: Glyphs, zones: bool = True) -> list[Line]:
    """Return an axis for each column with its name and status, then the names of the zones."""
    lines: list[Line] = []
    axis = saturation_axis(at.picture)
    for index, (column, name) in enumerate(zip(contents.columns, column_names(contents.columns), strict=True)):
        saturation = contents.theory[index].saturation if contents.theory else None
        role, ratio = COLUMN_ROLES[index], ratio_given(saturation, column.measured)
        word = status_given(saturation, column.measured) or "—"
        picture = dot_line(
            axis, ratio, SATURATED, role, glyphs, (ENDS[0], ratio) if ratio else None, rest=(glyphs.rule, "frame")
        )
        lines.append(picture_line(glyphs.say(name), role, picture, glyphs.say(word), at, glyphs))
    if zones:
        lines.append(fitted(((" " * at.name + zone_line(at.picture, glyphs), "dim"),), sum(at)))
    return lines


def gauge_note(contents: TableContents) -> str:
    """Return the d_k at which each column is saturated, `unscaled saturated from d_k 10 up`; empty if none is."""
    known = [
        (name, column.saturation)
        for name, column in zip(column_names(contents.columns), contents.theory, strict=False)
        if column.saturation and column.saturation.saturated_at
    ]
    return joined([joined([name, saturation.words()[0]]) for name, saturation in known], " · ")
