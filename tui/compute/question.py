"""Questions: requests that a command answers too, each with the command line that prints its answer."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ...core.parameters import FIELD, FIELDS, NO_MODEL, UNSCALED, Parameters, usual_of
from .request import Request

if TYPE_CHECKING:
    from ...core.captures.settings import HeadSetting
    from ...core.lab.results import Order, Target
    from ...core.program.text import Dialect
    from ...core.tables.formats import Say
    from ...core.tables.table import Format, Table

A = TypeVar("A")


class Question(Request, Generic[A]):
    """What a pane shows and a command prints: a frozen value, with its command and its answer in every form."""

    @property
    def words(self) -> Sequence[str]:
        """The words of the command after `attn-tui`."""
        raise NotImplementedError

    @property
    def file_name(self) -> str:
        """The default name of an exported file without its ending, such as lab-d64."""
        raise NotImplementedError

    def line(self, ascii_only: bool = False) -> str:
        """Return the command for a shell."""
        return in_shell(["attn-tui", *self.words], ascii_only)

    def table(self, answer: A) -> Table[Any]:
        """Return the answer as a table, which can be written in every format."""
        raise NotImplementedError

    def written(self, answer: A, format: Format, say: Say) -> str:
        """Return the answer in a format, exactly as the command prints it."""
        from ...core.tables.table import written

        return written(self.table(answer), format, say)

    @property
    def files(self) -> Sequence[Path]:
        """The files that the answer comes from, which an export must not overwrite."""
        return ()

    def code(self, answer: A, dialect: Dialect) -> str:
        """Return a program that prints the answer; raise InputError, with a sentence, if there is none."""
        raise NotImplementedError


@dataclass(frozen=True)
class SweepQuestion:
    """A sweep as written on the command line."""

    parameters: Parameters  # with the default of what is swept
    grid: str  # the values of d_k
    values: tuple[str, str] | None = None  # the second axis: a parameter, and its values
    statistics: tuple[str, ...] = ()  # if empty, the default of each format
    target: Target | None = None
    n_keys: str = ""  # the numbers of keys, if they are swept too


def sweep_line(question: SweepQuestion, output_format: str = "table", ascii_only: bool = False) -> str:
    """Return `attn-tui sweep --d-k 1:512 --n-keys 10 …`: the command that prints this sweep."""
    words = ["--d-k", question.grid, *(["--n-keys", question.n_keys] if question.n_keys else [])]
    if question.values:
        words += ["--vary", f"{FIELD[question.values[0]].option[2:]}={question.values[1]}"]
    words += parameter_options(question.parameters, question.values[0] if question.values else "")
    if question.statistics:
        words += ["--statistics", ",".join(question.statistics)]
    if question.target is not None:
        words += ["--stderr", repr(question.target.stderr), "--of", question.target.statistic]
        words += ["--most-draws", str(question.target.most_draws)]
    return _printing("sweep", words, output_format, ascii_only)


def rules_line(
    parameters: Parameters,
    order: Order,
    mechanisms: bool,
    output_format: str = "table",
    ascii_only: bool = False,
    weightings: bool = False,
) -> str:
    """Return `attn-tui rules --sort max_weight …`: the command that prints these rules, mechanisms or weightings."""
    words = ["--mechanisms"] if mechanisms else ["--weightings"] if weightings else []
    words += parameter_options(replace(parameters, against=UNSCALED))
    if order.column != "rule":
        words += ["--sort", order.column]
    words += ["--reverse"] if order.reverse else []
    return _printing("rules", words, output_format, ascii_only)


def _printing(command: str, words: Sequence[str], output_format: str, ascii_only: bool) -> str:
    """Return the command with these words and the options for its output format."""
    form = [] if output_format == "table" else ["--format", output_format]
    return in_shell(["attn-tui", command, *words, *form, *(["--ascii"] if ascii_only else [])])


def setting_options(setting: HeadSetting) -> list[str]:
    """Return the options of what a captured head is measured under, without what is as in the file."""
    from ...core.captures.settings import AS_IN_FILE, HEAD_FIELDS

    words: list[str] = []
    for field in HEAD_FIELDS:
        value = getattr(setting, field.name)
        if field.name == "scale" and value == "custom":
            words += ["--scale", FIELD["multiplier"].format(setting.multiplier)]
        elif field.name != "multiplier" and value != getattr(AS_IN_FILE, field.name):
            words += [field.option, field.format(value)]
    return words


def parameter_options(parameters: Parameters, without: str = "") -> list[str]:
    """Return the model, and the options that differ from what it sets or from the defaults, with their values.

    A parameter may be left out.
    """
    usual = replace(usual_of(parameters), model=NO_MODEL)
    # --multiplier alone implies --scale custom, so with it the rule is always named.
    named = {"scale"} if parameters.multiplier != usual.multiplier else set[str]()
    words: list[str] = []
    for field in FIELDS:
        value = getattr(parameters, field.name)
        if field.name != without and (value != getattr(usual, field.name) or field.name in named):
            words += [field.option, field.format(value)]
    return words


def in_shell(words: Iterable[str], ascii_only: bool = False) -> str:
    """Return the words quoted for a shell, on one line of printable characters."""
    return " ".join(_quoted(word, ascii_only) for word in words)


def _quoted(word: str, ascii_only: bool) -> str:
    """Quote a word if necessary; unprintable characters, as in some file names, become $'\\x1b'."""
    if word.isprintable() and (word.isascii() or not ascii_only):
        return shlex.quote(word)
    return "$'" + "".join(_spelled(character, ascii_only) for character in word) + "'"


def _spelled(character: str, ascii_only: bool) -> str:
    if character in "\\'":
        return "\\" + character
    if character.isprintable() and (character.isascii() or not ascii_only):
        return character
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(character))
