"""The examples of pages about the library print what stands below them, and no public name is left out."""

import re
import subprocess
import sys
from pathlib import Path

import attn_tui
import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("page", "examples"), [("python", 6), ("kernels", 1)])
def test_the_examples_print_what_the_page_shows(page: str, examples: int) -> None:
    """All in one program, as a reader would try them one after another."""
    text = (DOCS / f"{page}.md").read_text("utf-8")
    found = re.findall(r"```python\n((?:(?!```).)*?)```\n\n```\n(.*?)```", text, re.DOTALL)
    assert len(found) >= examples
    code, printed = map("".join, zip(*found, strict=True))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=DOCS.parent, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout == printed


def test_every_public_name_stands_in_a_document() -> None:
    pages = "".join(path.read_text("utf-8") for path in DOCS.glob("*.md"))
    code = " ".join(re.findall(r"`[^`\n]+`|^```python\n.*?^```", pages, re.DOTALL | re.MULTILINE))
    public = {*attn_tui.__all__, "testing", "__version__"}
    assert not [name for name in sorted(public) if not re.search(rf"\battn_tui\.{name}\b|`{name}`", code)]
