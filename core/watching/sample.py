"""The real run shipped with the program."""

from __future__ import annotations

from importlib import resources
from pathlib import Path


def sample_run() -> Path:
    """Return the path of a finished run, which the Watch pane shows until another one is opened."""
    return Path(str(resources.files(__package__ or __name__) / "sample-run.jsonl"))
