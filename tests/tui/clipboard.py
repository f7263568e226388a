"""What the app copies to the clipboard of the terminal."""

import base64
import re

import pytest
from stage import Stage, driver_of


def copies(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that receives everything copied to the clipboard from now on."""
    found: list[str] = []

    def write(data: str) -> None:
        parts = re.findall("\x1b\\]52;c;(.*?)\a", data)
        found.extend(base64.b64decode(part, validate=True).decode() for part in parts)

    monkeypatch.setattr(driver_of(stage.app), "write", write)
    return found
