"""What people ask for on the command line: the app or, after a command, what is printed.

What commands need is loaded for them alone: the app is to be there as soon as can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .parser import read
from .usage import COMMANDS, OpenApp, UsageError, parameter_values, parameters_of
from .views.glyphs import Glyphs

if TYPE_CHECKING:
    from .requests import Request


def parse(words: Sequence[str], glyphs: Glyphs) -> Request:
    """The request that these words make; raises InputError, or SystemExit after --help and --version."""
    if words and words[0] in COMMANDS:
        from .command_options import command_request

        return command_request(words, glyphs)
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
