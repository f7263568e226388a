"""The rows of the table that stand under the saturation gauge."""

from __future__ import annotations

from ....core.statistics.catalogue import STATISTICS
from .table import Contents, TableRow, failures, has_row

# The rows under the saturation gauge, which says the status. Rows of failures take the places of the expendable ones.
LEADING = (
    "logit_std", "logit_max", "entropy", "effective_keys", "max_weight", "one_hot_rows", "first_key_weight",
    "jacobian_norm", "dead_rows",
)  # fmt: skip
SPACED = len(LEADING) + 3  # lines with blank ones between groups, those of failures included
_EXPENDABLE = ("first_key_weight", "logit_max")


def leading_rows(contents: Contents, room: int) -> list[TableRow]:
    """Return the rows of LEADING, as many as fit in `room` lines; with blank lines between groups if these fit too.

    There are as many rows whatever the numbers are, so that nothing moves when they change.
    """
    failed = failures(contents.columns)
    names = [name for name in LEADING if name not in _EXPENDABLE[: len(failed)]] + failed
    fewer = [*_EXPENDABLE, "one_hot_rows", "effective_keys", "jacobian_norm", "logit_std"]
    while len(names) > max(room, 3):
        names.remove(next(name for name in fewer if name in names))
    rows = [TableRow(s.short_label, s) for s in STATISTICS if s.name in names and has_row(s, contents)]
    if room < SPACED:
        return rows
    spaced: list[TableRow] = []
    for before, row in zip((None, *rows), rows, strict=False):
        if before and before.statistic and row.statistic and before.statistic.group != row.statistic.group:
            spaced.append(TableRow(""))
        spaced.append(row)
    return spaced
