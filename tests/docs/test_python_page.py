"""The examples of docs/python.md print what stands below them."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "python.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", PAGE, re.DOTALL)


def test_the_examples_print_what_the_page_shows() -> None:
    """All in one program, as a reader would try them one after another."""
    assert len(EXAMPLES) >= 4
    code, printed = map("".join, zip(*EXAMPLES, strict=True))
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert (found.stderr, found.returncode) == ("", 0)
    assert found.stdout == printed
