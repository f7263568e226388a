"""Questions: frozen values that the command line, the app's engine and the library each get answered in their way.

A question is a command's options, what the app asks its engine and undoes, and the command line that is printed: one
value. Its parts can be performed anywhere.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from ..field import differing, words_of
from ..parameters import FIELDS, NO_MODEL, Parameters, usual_of
from .request import Request

if TYPE_CHECKING:
    from ..program.text import Dialect
    from ..tables.formats import Say
    from ..tables.table import Format, Table

A = TypeVar("A")


class Question(Request, Generic[A]):
    """What a pane shows and a command prints: a frozen value, with its work, its command and its answer's forms."""

    def result(self, results: Sequence[Any]) -> A:
        """Return the answer, from the results of all parts in order; by default the last of them."""
        return results[-1]

    def answer(self) -> A:
        """Return the answer, computed in this thread; raise InputError if there is none."""
        from ..work.engines import all_results

        return self.result(all_results(self.parts()))

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

    def written(self, answer: A, format: Format, say: Say, ascii_only: bool = False) -> str:
        """Return the answer in a format, exactly as the command prints it."""
        from ..tables.table import written

        return written(self.table(answer), format, say)

    @property
    def files(self) -> Sequence[Path]:
        """The files that the answer comes from, which an export must not overwrite."""
        return ()

    def code(self, answer: A, dialect: Dialect) -> str:
        """Return a program that prints the answer; raise InputError, with a sentence, if there is none."""
        raise NotImplementedError


class Option(NamedTuple):
    """An option of a command, or without a name an argument: what a field of its request is on the command line."""

    title: str  # of its group in the help
    name: str  # with others of the same meaning after spaces
    read: Callable[[Any], Any]  # the value of its text; of several, of the list
    write: Callable[[Any], str]
    settings: Mapping[str, Any]  # of `Parser.add`


def option(
    title: str,
    name: str,
    metavar: str,
    help: str,
    default: Any = None,
    read: Callable[[Any], Any] = lambda text: text,
    write: Callable[[Any], str] = str,
    **settings: Any,
) -> Any:
    """Return a field of a request that is an option, or with an empty name an argument."""
    declared = Option(title, name, read, write, {"metavar": metavar, "help": help, **settings})
    needed = not name and settings.get("nargs") not in ("?", "...")
    return field(default=MISSING if needed else default, kw_only=not name, metadata={"option": declared})


def flag(title: str, name: str, help: str) -> Any:
    """Return a field of a request that is an option without a value."""
    declared = Option(title, name, bool, str, {"action": "store_true", "help": help})
    return field(default=False, metadata={"option": declared})


def shared(kind: Any, name: str) -> Any:
    """Return a field that is the same option as a field of another kind of request."""
    [found] = [declared for declared in fields(kind) if declared.name == name]
    return field(default=found.default, metadata=found.metadata)


def options_of(kind: Any) -> Iterator[tuple[str, Option]]:
    """Yield the options of a kind of request by the names of their fields, arguments first."""
    found = [
        (declared.name, declared.metadata["option"]) for declared in fields(kind) if "option" in declared.metadata
    ]
    yield from sorted(found, key=lambda option: bool(option[1].name))


def option_words(request: Any, names: Collection[str] = ()) -> list[str]:
    """Return the arguments and the options that differ from the defaults, with their values; or those of `names`."""
    words: list[str] = []
    usual = {setting.name: setting.default for setting in fields(request)}
    for name, each in options_of(request):
        value = getattr(request, name)
        if value == usual[name] or (names and name not in names):
            continue
        several = each.settings.get("action") == "append" or each.settings.get("nargs") == "+"
        for one in value if several else (value,):
            words += [*each.name.split()[:1], *([] if value is True else [each.write(one)])]
    return words


@dataclass(frozen=True)
class NamedQuestion(Question[A]):
    """A question whose table names the command that prints it, with its format."""

    form: str = field(default="table", compare=False, kw_only=True)  # the format in which the answer is written
    ascii_only: bool = field(default=False, compare=False, kw_only=True)

    def line(self, ascii_only: bool = False) -> str:
        form = [] if self.form == "table" else ["--format", self.form]
        return in_shell(["attn-tui", *self.words, *form, *(["--ascii"] if ascii_only or self.ascii_only else [])])

    def written(self, answer: A, format: Format, say: Say, ascii_only: bool = False) -> str:
        named = replace(self, form=format, ascii_only=ascii_only)
        return super(NamedQuestion, named).written(answer, format, say)


def path_word(path: Path) -> str:
    """Return a path that a command does not read as an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)


def parameter_options(parameters: Parameters, without: str = "") -> list[str]:
    """Return the model, and the options that differ from what it sets or from the defaults, with their values.

    A parameter may be left out.
    """
    values = differing(FIELDS, parameters, replace(usual_of(parameters), model=NO_MODEL))
    if "multiplier" in values:  # alone it implies --scale custom, so with it the rule is always named
        values["scale"] = parameters.scale
    return words_of((field for field in FIELDS if field.name != without), values)


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
