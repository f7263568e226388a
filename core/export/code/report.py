"""The program of a report: queries and keys, the logits and weights of A and B, and their statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ...against import apart, settings
from ...parameters import Parameters
from ...statistics.catalogue import STATISTIC
from ...statistics.column_names import column_names
from ...statistics.measurement import Column, Measurement
from .parts.setting import parts, remarks
from .parts.statistics import OF_REPORTS, chosen
from .program import Dialect, Piece, assembled, estimated, side_by_side

Group: TypeAlias = tuple[Sequence[Parameters], Sequence[Column]]  # settings with the same scores, and their columns


def report_code(measurement: Measurement[Parameters], dialect: Dialect, command: str) -> str:
    """Return the program that prints the statistics of a report; raise NoCodeError if there is none."""
    groups = groups_of(measurement.subject, measurement.columns)
    sides = [side for sides, _ in groups for side in sides]
    columns = measurement.columns
    names = printed_names(groups, OF_REPORTS, dialect)
    blocks: list[list[Piece]] = []
    calls: list[str] = []
    for own, _ in groups:
        found = parts(own, columns, names, dialect)
        blocks.append([found.values, *found.functions, Piece(found.drawn), found.measure])
        calls += found.calls
        if len(groups) > 1:  # what follows changes what is measured
            letter = "ab"[len(blocks) - 1]
            blocks[-1].append(Piece(f"{letter} = {found.calls[0]}"))
            calls[-1] = letter
    rows = {STATISTIC[name].label: [estimated(column.measured[name]) for column in columns] for name in names}
    titles = [f"{letter} {title}" for letter, title in zip("AB", column_names(columns), strict=True)]
    return assembled([command, *remarks(sides)], blocks, side_by_side(rows, calls, titles), dialect)


def groups_of(p: Parameters, columns: Sequence[Column]) -> list[Group]:
    """Return A and B with their columns: together if they share their scores, else apart."""
    a, b = settings(p)
    if any({*own} - {"normalise"} for own in apart(p)):  # they differ in more than the rule
        return [([a], [columns[0]]), ([b], [columns[1]])]
    return [([a, b], [*columns])]


def printed_names(groups: Sequence[Group], wanted: Sequence[str], dialect: Dialect) -> list[str]:
    """Return the wanted statistics that a program can print for all settings."""
    every = [column for _, columns in groups for column in columns]
    names = [chosen(sides[0], every, wanted, dialect) for sides, _ in groups]
    return [name for name in names[0] if all(name in each for each in names)]
