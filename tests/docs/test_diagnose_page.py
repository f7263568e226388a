"""docs/diagnose.md: its table of the keys of configurations is made from the code."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_of_keys_is_current() -> None:
    page = (DOCS / "diagnose.md").read_text("utf-8")
    assert runpy.run_path(str(DOCS / "tables.py"))["renewed_diagnosis"](page) == page, "run `make docs`"
