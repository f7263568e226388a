"""What people may write after `attn-tui`: parsers made from FIELDS, and the help that teaches.

Everything is checked here, so that a request is sound before anything large is loaded.
"""

from __future__ import annotations

import argparse
import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias, cast, get_args

from ..core.attention.scales import SCALE_RULES, multiplier
from ..core.errors import InputError
from ..core.export import version
from ..core.parameters import FIELD, FIELDS, Field, ParameterError, Parameters
from . import guide
from .views.glyphs import Glyphs

Format: TypeAlias = Literal["table", "json", "csv", "markdown"]


class UsageError(InputError):
    """A command line that is not understood; one line that ends with where to read on."""


@dataclass(frozen=True)
class Output:
    """How a result is written, and where: None is stdout."""

    format: Format = "table"
    path: Path | None = None


@dataclass(frozen=True)
class OpenApp:
    """attn-tui [FILE] [parameters]"""

    parameters: Parameters
    file: Path | None
    mouse: bool
    theme: str | None
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """attn-tui report"""

    parameters: Parameters
    output: Output
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Inspect:
    """attn-tui inspect; with neither layer nor head, every head."""

    file: Path
    layer: str | None = None
    head: int | None = None
    scale: str | None = None  # a name of SCALE_RULES; None and "file" are the file's own
    multiplier: float = 1.0
    axes: str | None = None
    output: Output = Output()


Request: TypeAlias = OpenApp | Report | Inspect


def parse(words: Sequence[str], glyphs: Glyphs) -> Request:
    """The request that these words make; raises InputError, or SystemExit after --help and --version."""
    if words and words[0] in guide.COMMANDS:
        command, rest = words[0], words[1:]
        given = _Parser(command, glyphs).given(rest)
        return _report(given) if command == "report" else _inspect(given)
    given = _Parser("", glyphs).given(words)
    file = given.get("file")
    if file in guide.COMMANDS and not Path(file).exists():
        raise UsageError(f"{file} comes first, before its options: attn-tui {file} …")
    parameters, remarks = _parameters(given)
    return OpenApp(
        parameters, None if file is None else Path(file), not given.get("no_mouse"), given.get("theme"), remarks
    )


def _report(given: dict[str, Any]) -> Report:
    parameters, remarks = _parameters(given)
    return Report(parameters, _output(given), remarks)


def _inspect(given: dict[str, Any]) -> Inspect:
    texts = _with_scale(given)
    scale = texts.get("scale")
    if scale is not None and scale not in (*SCALE_RULES, "file"):
        accepted = f"file, {', '.join(SCALE_RULES)}, or a number"
        raise UsageError(f"--scale: {scale!r} is not accepted; it takes one of {accepted}")
    custom = float(_value(FIELD["multiplier"], texts.get("multiplier", "1")))
    head = given.get("head")
    if head is not None and not head.isdecimal():
        raise UsageError(f"--head: {head!r} is not accepted; it takes a whole number from 0 on")
    return Inspect(
        Path(given["file"]),
        given.get("layer"),
        None if head is None else int(head),
        scale,
        custom,
        given.get("axes"),
        _output(given),
    )


def _output(given: dict[str, Any]) -> Output:
    path = given.get("output")
    return Output(given.get("format", "table"), None if path in (None, "-") else Path(path))


def _parameters(given: dict[str, Any]) -> tuple[Parameters, tuple[str, ...]]:
    """The parameters asked for, and a remark for each that has no effect on them."""
    texts = _with_scale(given)
    values = {field.name: _value(field, texts[field.name]) for field in FIELDS if field.name in texts}
    parameters = Parameters(**cast(Any, values))
    multiplier(parameters.scale, parameters.d_k, parameters.multiplier)
    idle = [FIELD[name] for name in values if not FIELD[name].applies(parameters)]
    return parameters, tuple(f"{field.option} has no effect with these parameters" for field in idle)


def _with_scale(given: dict[str, Any]) -> dict[str, str]:
    """The texts of parameters, with `--scale 0.05` or `--multiplier 0.05` spelled out as the custom rule."""
    texts = {name: text for name, text in given.items() if name in FIELD}
    scale = texts.get("scale")
    if scale is None and "multiplier" in texts:
        texts["scale"] = "custom"
    elif scale is not None and _is_number(scale):
        if "multiplier" in texts:
            raise UsageError(f"--scale {scale} is a multiplier already; leave out --multiplier, or --scale custom")
        texts |= {"scale": "custom", "multiplier": scale}
    return texts


def _value(field: Field, text: str) -> Any:
    """What Field.parse makes of it; its objection names the option rather than the field."""
    try:
        return field.parse(text)
    except ParameterError as error:
        or_number = ", or a number" if field.name == "scale" else ""
        raise UsageError(f"{field.option}: {str(error).removeprefix(field.label + ': ')}{or_number}") from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class _Parser(argparse.ArgumentParser):
    """The parser of one command, or of `attn-tui` without one."""

    def __init__(self, command: str, glyphs: Glyphs) -> None:
        self._glyphs = glyphs
        words = guide.COMMANDS.get(command, guide.APP)
        super().__init__(
            prog=f"attn-tui {command}".strip(),
            usage=words.usage,
            description=words.description,
            epilog=words.epilog,
            formatter_class=_HelpFormatter,
            allow_abbrev=False,
            add_help=False,
        )
        if command == "inspect":
            self._add_selection()
        elif not command:
            self.add_argument(
                "file", nargs="?", metavar="FILE", help="captured queries and keys to open beside the Lab"
            )
        if command:
            self._add_output()
        else:
            self._add_screen()
        general = self.add_argument_group("general")
        self._option(general, "--ascii", "plain ASCII instead of Unicode", action="store_true")
        self._option(general, "-h", "--help", "show this and leave", action="help")
        if not command:
            self._option(
                general, "--version", "show the version and leave", action="version", version=f"attn-tui {version()}"
            )
        if command != "inspect":
            self._add_parameters()

    def given(self, words: Sequence[str]) -> dict[str, Any]:
        """What was given, by name; raises UsageError for what is not understood."""
        found, unknown = self.parse_known_args(_joined(words, self._option_string_actions))
        if unknown:
            self._refuse(next((word for word in unknown if word.startswith("-")), unknown[0]))
        return {name: value for name, value in vars(found).items() if value is not None}

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")

    def format_help(self) -> str:
        return self._glyphs.say(super().format_help())
