"""What the options of `attn-tui` without a command ask for: the app, as soon as can be, so that little is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .parser import read
from .usage import COMMANDS, OpenApp, UsageError, parameter_values, parameters_of
from .views.glyphs import Glyphs


def app_request(words: Sequence[str], glyphs: Glyphs) -> OpenApp:
    """The request that these words make; raises InputError, or SystemExit after --help and --version."""
    given = read("", words, glyphs)
    file = given.get("file")
    if file in COMMANDS and not Path(file).exists():
        raise UsageError(f"{file} comes first, before its options: attn-tui {file} …")
    _, remarks = parameters_of(given)
    return OpenApp(
        parameter_values(given),
        None if file is None else Path(file),
        given.get("axes"),
        not given.get("no_mouse"),
        given.get("theme"),
        not given.get("no_config"),
        remarks,
    )
