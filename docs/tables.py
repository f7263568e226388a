"""Renew the tables of json.md that are made from declarations: `make docs`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from attn_tui.core.parameters import FIELDS
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.core.statistics.status import MEANINGS

PAGE = Path(__file__).with_name("json.md")
TYPES = {"integer": "integer", "real": "number", "choice": "string", "setting": "string"}


def renewed(page: str) -> str:
    """Return the page with its tables of statuses, statistics and parameters made again."""
    statistics = [(f"`{s.name}`", s.unit, "yes" if s.optional else "no", s.definition) for s in STATISTICS]
    accepted = {field.name: field.accepted for field in FIELDS} | {"scale": "name of a scale rule, or a formula"}
    fields = [(f"`{field.name}`", TYPES[field.kind], accepted[field.name], field.help) for field in FIELDS]
    page = _with_table(page, "status | when", [(f"`{word}`", meaning) for word, meaning in MEANINGS.items()])
    page = _with_table(page, "name | unit | optional | meaning", statistics)
    return _with_table(page, "name | type | accepted | meaning", fields)


def _with_table(page: str, header: str, lines: Iterable[tuple[str, ...]]) -> str:
    """Return the page with the rows under this header replaced."""
    rows = "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
    head = re.search(rf"^\| {re.escape(header)} \|\n\|[-|]+\|\n((?:\|.*\n)*)", page, re.M)
    if head is None:
        raise ValueError(f"{PAGE.name} has no table with the columns {header}")
    return page[: head.start(1)] + rows + page[head.end(1) :]


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text("utf-8")), "utf-8")
