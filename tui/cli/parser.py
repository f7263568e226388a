"""The command-line parser: options made from FIELDS, and one line for each mistake."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar

from ...core.errors import did_you_mean, not_one_of
from ...core.field import Field
from ...core.message import Message, message, name
from ...core.models import MODELS
from ...core.parameters import FIELD, Parameters
from ...core.questions.parse import METAVARS, UsageError, is_number, parameter_help
from ...core.questions.question import options_of
from ...core.scales import FORMULA_ACCEPTED, SCALE_RULES
from ..language.cells import WIDE, broken
from ..language.chosen import CHOICES
from ..views.glyphs import Glyphs
from .output import ENDINGS, FIXED, FORMATS, WIDEST, Output, screen_width

_LANG = "language: en, zh (Simplified Chinese) or auto, the locale's (default); JSON and CSV stay English"
OVERWRITE = "replace FILE even if attn-tui did not write it"
T = TypeVar("T")
_TITLES = {
    "model": "a model",
    "shape": "shape",
    "attention": "attention",
    "components": "components of queries and keys",
    "draw": "random numbers",
}


_HEADING = re.compile(rf"(?<=[{WIDE}]):$", re.MULTILINE)  # the colon after a title in Chinese
_SENTENCE = re.compile(r"\. |。")  # the end of a sentence, in help texts


class Finished(BaseException):
    """A command has printed what it was asked for: --help, --version or --dry-run."""


class Parser(argparse.ArgumentParser):
    """The parser of one command, or of `attn-tui` itself. Options are grouped under titles."""

    def __init__(self, prog: str, usage: str, description: str, epilog: str, glyphs: Glyphs) -> None:
        super().__init__(
            prog=prog,
            usage=usage,
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            add_help=False,
            exit_on_error=False,
        )
        self.glyphs = glyphs
        self._groups: dict[str, Any] = {}
        self.formats: Sequence[str] = ()  # of the output
        self.listed: Collection[str] = ()  # the options that the help shows, in one sentence each, if not all
        self.hidden: Collection[str] = ()  # options that the help does not show, but another page
        self.arguments: list[tuple[argparse.Action, tuple[str, ...]]] = []  # with the values that shells complete

    def read(self, words: Sequence[str]) -> dict[str, Any]:
        """Return the options and arguments in `words`, by name; values of parameters are still text.

        Raise UsageError, or Finished after --help and --version.
        """
        for word in takewhile(lambda word: word != "--", words):
            if re.fullmatch("(--[^=]*=|-[^-])--", word):  # argparse drops the value
                option = word.removesuffix("--").removesuffix("=")
                self._fail(message("{option}: must have a value, not '--'", option=option))
        namespace = argparse.Namespace()
        try:
            _, unknown = self.parse_known_args(_joined(words), namespace)
        except argparse.ArgumentError as error:
            self._fail(self._reason(error, namespace))
        if unknown:
            self._refuse(next((word for word in unknown if word.startswith("-")), unknown[0]))
        return {name: value for name, value in vars(namespace).items() if value is not None}

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """End --help and --version, which have printed everything."""
        raise Finished

    def add(
        self, title: str, *names: str, choices: Iterable[str] = (), suggest: Iterable[str] = (), **settings: Any
    ) -> None:
        """Add an option or a positional argument to the group `title`.

        Only `choices` are accepted, if there are any. Shells complete these and `suggest`.
        """
        if choices:
            settings["type"] = _one_of(tuple(choices))
        if settings.get("help", argparse.SUPPRESS) != argparse.SUPPRESS:
            settings["help"] = self.glyphs.say(settings["help"])
        if title not in self._groups:
            self._groups[title] = self.add_argument_group(self.glyphs.say(title))
        action = self._groups[title].add_argument(*names, **settings)
        self.arguments.append((action, (*choices, *suggest)))

    def add_options(self, kind: type, only: Collection[str] = ()) -> None:
        """Add the options of a kind of request, or those of the fields `only`."""
        for dest, option in options_of(kind):
            if only and dest not in only:
                continue
            named = {"dest": dest} if option.name else {}
            self.add(option.title, *(option.name.split() or [dest]), **named, **option.settings)

    def add_output(self, formats: Sequence[str] = FORMATS) -> None:
        """Add the options of every command that prints a result."""
        self.formats = formats
        first, *others, last = formats
        words = message(
            "{first} (default), {others} or {last}", first=name(first), others=", ".join(others), last=name(last)
        )
        self.add("output", "--format", metavar="FORMAT", choices=formats, help=words)
        endings = [ending for ending, format in {**ENDINGS, **FIXED}.items() if format in formats]
        words = message("write to this file (UTF-8) instead of stdout")
        if endings:
            words = message(
                "{words}; the endings {endings} choose its format", words=words, endings=", ".join(endings)
            )
        self.add("output", "-o", "--output", metavar="FILE", help=words)
        self.add("output", "--overwrite", action="store_true", help=OVERWRITE)
        self.add_common("output")

    def add_common(self, title: str) -> None:
        """Add --ascii, --lang and --help."""
        self.add(title, "--ascii", action="store_true", help="plain ASCII instead of Unicode")
        self.add(title, "--lang", metavar="NAME", choices=CHOICES, help=_LANG)
        self.add(title, "-h", "--help", action="help", help="show this help and exit")

    def add_fields(
        self,
        fields: Iterable[Field],
        usual: object = Parameters(),
        title: str = "",
        help: Callable[[Field], str] | None = None,
        names: Callable[[Field], Sequence[str]] = lambda field: (field.option,),
        alone: Mapping[str, str] = {},
    ) -> None:
        """Add an option for each field, to the group of its field or that of `title`.

        `usual` has the defaults; options in `alone` mean these values if they have none.
        """
        for field in fields:
            group = title or _TITLES.get(field.group, field.group)
            more = {"nargs": "?", "const": alone[field.name]} if field.name in alone else {}
            metavar = METAVARS.get(field.name, METAVARS[field.kind])
            words = self.glyphs.say(_field_help(field, usual) if help is None else help(field)).replace("%", "%%")
            self.add(
                group, *names(field), dest=field.name, metavar=metavar, help=words, suggest=field.choices, **more
            )

    def add_rules(self) -> None:
        """List the scale rules, one line each."""
        wide = max(map(len, SCALE_RULES)) + 2
        formulas = {name: rule.formula for name, rule in SCALE_RULES.items()} | {
            "custom": message("the value of --multiplier")
        }
        say = self.glyphs.say
        lines = "\n".join(f"{rule:<{wide}}{say(formulas[rule])}" for rule in FIELD["scale"].choices)
        self.add_text(message("scale rules and their multipliers"), lines)

    def add_models(self) -> None:
        """List the models, one line each."""
        wide = max(map(len, MODELS)) + 2
        say = self.glyphs.say
        lines = "\n".join(f"{model:<{wide}}{say(MODELS[model].summary)}" for model in MODELS)
        self.add_text(message("models, and what they set"), lines)

    def add_text(self, title: Message, lines: str) -> None:
        """Add lines under a title, after the options."""
        self.add_argument_group(self.glyphs.say(title), lines)

    def error(self, message: str) -> NoReturn:
        """Raise the only error that argparse has of a whole command line: arguments are missing."""
        raise argparse.ArgumentError(None, message)

    def _reason(self, error: argparse.ArgumentError, namespace: argparse.Namespace) -> str:
        """Return what is wrong, as a message: what argparse says is English and changes with its version."""
        if error.argument_name is None:
            missing = [
                str(action.metavar if not action.option_strings else action.option_strings[-1])
                for action, _ in self.arguments
                if action.required and getattr(namespace, action.dest, None) is None
            ]
            return message("missing argument {names}", names=", ".join(missing))
        reason = error.message
        if not isinstance(reason, Message):
            options = {"/".join(action.option_strings): action for action, _ in self.arguments}
            flag = options[error.argument_name].nargs == 0
            reason = message("takes no value") if flag else message("must have a value")
        return message("{option}: {reason}", option=error.argument_name, reason=reason)

    def _fail(self, reason: str) -> NoReturn:
        raise UsageError("{reason}; see {command} --help", reason=reason, command=self.prog)

    def _refuse(self, word: str) -> NoReturn:
        """Raise UsageError for an unknown word, with the closest option."""
        if not word.startswith("-"):
            self._fail(message("unexpected argument {word!r}", word=word))
        option = word.partition("=")[0]
        known = [name for action, _ in self.arguments for name in action.option_strings]
        self._fail(message("unknown option {option}{hint}", option=option, hint=did_you_mean(option, known)))

    def format_help(self) -> str:
        for action, _ in self.arguments if self.listed else ():
            action.help = _SENTENCE.split(str(action.help))[0] if action.dest in self.listed else argparse.SUPPRESS
        for action, _ in self.arguments:
            action.help = argparse.SUPPRESS if action.dest in self.hidden else action.help
        return self.glyphs.say(_HEADING.sub("：", super().format_help()))

    def _get_formatter(self) -> argparse.HelpFormatter:
        return _HelpFormatter(self.prog, f"{self.glyphs.say('usage:')} ")


def _one_of(choices: Sequence[str]) -> Callable[[str], str]:
    """Return a function that returns its argument if it is one of `choices`, and raises ArgumentTypeError if not."""

    def check(text: str) -> str:
        if text not in choices:
            raise argparse.ArgumentTypeError(not_one_of(text, choices))
        return text

    return check


def _joined(words: Sequence[str]) -> list[str]:
    """Return the words with `--mean-q -1e-3` as `--mean-q=-1e-3`: argparse takes some numbers for options."""
    joined: list[str] = []
    own = list(takewhile(lambda word: word != "--", words))
    for word in own:
        before = joined[-1] if joined else ""
        negative = word.startswith("-") and is_number(word.partition(",")[0])
        if negative and before.startswith("--") and "=" not in before:
            joined[-1] = f"{before}={word}"
        else:
            joined.append(word)
    return [*joined, *words[len(own) :]]


def _field_help(field: Field, usual: object) -> str:
    value = getattr(usual, field.name)
    default = "" if value is None else field.format(value)
    accepted: str = field.accepted
    if field.name == "scale":
        accepted = message(
            "a name of `attn-tui help rules`; a number: the multiplier itself; or a formula such as 'log(n)/sqrt(d)' "
            "of {accepted}",
            accepted=FORMULA_ACCEPTED,
        )
    if field.name == "model":
        accepted = message("a name of `attn-tui help models`")
    return parameter_help(field, accepted, default)


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of descriptions, starts help texts at column 26 and limits the length of lines."""

    def __init__(self, prog: str, usage: str) -> None:
        super().__init__(prog, max_help_position=26, width=min(screen_width(), WIDEST) - 2)
        getattr(self, "_set_color", bool)(False)  # Python 3.14 colours help in a terminal, and lines are measured
        self._before_usage = usage

    def add_usage(self, usage: str | None, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, self._before_usage if prefix is None else prefix)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return broken(" ".join(text.split()), width)


Given: TypeAlias = dict[str, Any]  # the options given, by name; values of parameters are still text


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """What a command is told. Fields that are an `option` are its flags, their help, and how their texts are read."""

    remarks: tuple[str, ...] = ()  # a line each on what is not intended


R = TypeVar("R", bound=Arguments)


def arguments(kind: type[T], given: Given, **fields: Any) -> T:
    """Return the request, or the part of one, that these options make, with these fields; raise UsageError."""
    for dest, option in options_of(kind):
        if dest in given and dest not in fields:
            fields[dest] = option.read(given[dest])
    return kind(**fields)


@dataclass(frozen=True)
class CliCommand(Generic[R]):
    """One command; `catalogue.COMMANDS` names its module."""

    usage: str
    description: str
    examples: str
    request: Callable[[Given], R]  # reads the options, before anything is computed; raises InputError
    run: Callable[[R, Output], int]  # returns the exit code
    options: Sequence[type] = ()  # whose fields are options
    formats: Sequence[str] = ()  # of the output
    title: str = ""  # of --ascii, --lang and --help, if there is no choice of formats
    add: Callable[[Parser], object] = bool  # adds other options, which come last

    def add_options(self, parser: Parser) -> None:
        """Add everything that the command accepts."""
        for kind in self.options:
            parser.add_options(kind)
        if self.formats:
            parser.add_output(self.formats)
        else:
            parser.add_common(self.title)
        self.add(parser)
