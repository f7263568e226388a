"""The command line that asks for what is on screen."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..core.parameters import FIELD, FIELDS, Parameters

if TYPE_CHECKING:  # the app starts without it
    from .requests import Output, Rules, Sweep


def command_line(parameters: Parameters, command: str = "report") -> str:
    """`attn-tui report --d-k 512`: the command with these parameters, as far as they differ from the defaults.

    `options.parse` makes the same parameters of it again.
    """
    return in_shell(["attn-tui", command, *parameter_options(parameters)])


def sweep_line(request: Sweep, ascii_only: bool = False) -> str:
    """`attn-tui sweep --d-k 1:512 --n-keys 10 …`: the command that prints what this one does.

    `options.parse` makes the same request of it again, apart from the file it is written to.
    """
    words = ["--d-k", request.grid]
    if request.values:
        words += ["--vary", f"{FIELD[request.values[0]].option[2:]}={request.values[1]}"]
    words += parameter_options(request.parameters)
    if request.statistics:
        words += ["--statistics", ",".join(request.statistics)]
    if request.target is not None:
        words += ["--stderr", repr(request.target.stderr), "--of", request.target.statistic]
        words += ["--most-draws", str(request.target.most_draws)]
    return _printing("sweep", words, request.output, ascii_only)


def rules_line(request: Rules, ascii_only: bool = False) -> str:
    """`attn-tui rules --sort max_weight …`: the command that prints what this one does.

    `options.parse` makes the same request of it again, apart from the file it is written to.
    """
    words = ["--mechanisms"] if request.mechanisms else []
    words += parameter_options(request.parameters)
    if request.order.column != "rule":
        words += ["--sort", request.order.column]
    words += ["--reverse"] if request.order.reverse else []
    return _printing("rules", words, request.output, ascii_only)


def _printing(command: str, words: Sequence[str], output: Output, ascii_only: bool) -> str:
    """The command with these options, which prints in this format."""
    form = [] if output.format == "table" else ["--format", output.format]
    return in_shell(["attn-tui", command, *words, *form, *(["--ascii"] if ascii_only else [])])


def parameter_options(parameters: Parameters) -> list[str]:
    """The options that differ from the defaults, each followed by its value."""
    usual = Parameters()
    # A multiplier alone asks for the custom rule, so with one the rule is always named.
    named = {"scale"} if parameters.multiplier != usual.multiplier else set[str]()
    words: list[str] = []
    for field in FIELDS:
        value = getattr(parameters, field.name)
        if value != getattr(usual, field.name) or field.name in named:
            words += [field.option, field.format(value)]
    return words


def in_shell(words: Iterable[str], ascii_only: bool = False) -> str:
    """The words as a shell reads them, on one line that shows all of them."""
    return " ".join(_quoted(word, ascii_only) for word in words)


def _quoted(word: str, ascii_only: bool) -> str:
    """Quoted where it has to be; what cannot be shown, as in some names of files, is spelled $'\\x1b'."""
    if word.isprintable() and (word.isascii() or not ascii_only):
        return shlex.quote(word)
    return "$'" + "".join(_spelled(character, ascii_only) for character in word) + "'"


def _spelled(character: str, ascii_only: bool) -> str:
    if character in "\\'":
        return "\\" + character
    if character.isprintable() and (character.isascii() or not ascii_only):
        return character
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(character))
