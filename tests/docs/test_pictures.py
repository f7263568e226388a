"""The pictures of the READMEs and the documents show what the app shows now."""

import asyncio
import re
import runpy
import sys
from collections import Counter
from html import unescape
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NAMES = [path.stem for path in sorted(DOCS.glob("*.svg"))]
FEW = 2  # texts that another processor may round otherwise, such as a bar


def texts(picture: str) -> Counter[tuple[str, ...]]:
    """Return the texts of a picture with their places and colours; the last digits of numbers may be others."""
    colours = dict(re.findall(r"\.([\w-]+) ?(\{[^}]*\})", picture))
    found = re.findall(r'<text class="(\S+)" x="(\S*)" y="(\S*)"[^>]*>([^<]*)</text>', picture)
    return Counter((colours[role], x, y, re.sub(r"\d", "0", unescape(text))) for role, x, y, text in found)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if "." in name or "moving" in name else name for name in NAMES],
)
def test_pictures_show_what_the_app_shows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(DOCS), *sys.path])
    made = runpy.run_path(str(DOCS / "pictures.py"))
    assert {*NAMES} == {*made["names"]()}
    fresh, kept = texts(asyncio.run(made["drawn"](name))), texts((DOCS / f"{name}.svg").read_text("utf-8"))
    assert kept
    assert (kept - fresh).total() <= FEW, f"make pictures ARGS={name}: {kept - fresh} is now {fresh - kept}"
    assert (fresh - kept).total() <= FEW
