"""The pictures of the READMEs and the documents show what the app shows now."""

import asyncio
import re
import runpy
import sys
from html import unescape
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def words(picture: str) -> list[str]:
    """Return the words of a picture: its numbers may differ in their last digits on another processor."""
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", picture)
    return [word for text in texts for word in re.findall(r"[^\W\d_]{2,}", unescape(text))]


@pytest.mark.slow
@pytest.mark.parametrize("language", ["", ".zh"], ids=["English", "Chinese"])
def test_pictures_show_what_the_app_shows(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(DOCS), *sys.path])
    made = runpy.run_path(str(DOCS / "pictures.py"))
    for name in made["names"]():
        if name.endswith(".zh") == bool(language):
            fresh = asyncio.run(made["drawn"](name))
            assert words(fresh) == words((DOCS / f"{name}.svg").read_text()), f"make pictures ARGS={name}"
