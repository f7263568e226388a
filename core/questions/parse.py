"""Parsing of parameter values from the command line and the environment."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

from ..against import idle_changes, settings
from ..errors import InputError, ParameterError, did_you_mean
from ..field import Field
from ..message import Message, message, name, reason_of, sentence_case
from ..parameters import FIELD, FIELDS, Parameters, Value, parameters_from
from ..scales import multiplier
from ..setting_text import is_number as is_number  # for commands too
from ..setting_text import usual_word

METAVARS = {
    "integer": "N", "real": "X", "choice": "NAME", "setting": "A",
    "scale": "RULE", "model": "MODEL", "scores": "X,X,...",
}  # fmt: skip


class UsageError(InputError):
    """An invalid command line; the message is one line with what is accepted, or refers to the help."""


@contextmanager
def called(option: str, label: str) -> Generator[None, None, None]:
    """Raise an InputError about `label` as a UsageError about `option`."""
    try:
        yield
    except InputError as error:
        raise UsageError("{option}: {reason}", option=option, reason=reason_of(str(error), label)) from None


def parameter_values(
    given: Mapping[str, Any], called: Callable[[Field], str] = lambda f: f.option
) -> dict[str, Value]:
    """Return the values of the parameters in `given`, by name; errors name a parameter as `called` does."""
    texts = with_scale(given, called)
    return {field.name: value_of(field, texts[field.name], called(field)) for field in FIELDS if field.name in texts}


def parameters_of(given: Mapping[str, Any]) -> tuple[Parameters, tuple[str, ...]]:
    """Return the parameters in `given`, checked together, and a remark for each that has no effect."""
    values = parameter_values(given)
    parameters = parameters_from(values)
    for setting in settings(parameters):
        multiplier(setting.scale, setting.setting)
    idle = [FIELD[name].option for name in values if not FIELD[name].applies(parameters)]
    idle += [f"--against {FIELD[name].option[2:]}" for name in idle_changes(parameters)]
    return parameters, tuple(map(no_effect, idle))


def with_scale(given: Mapping[str, Any], called: Callable[[Field], str] = lambda f: f.option) -> dict[str, str]:
    """Return the texts of parameters, with `--scale 0.05` or `--multiplier 0.05` expanded to the custom rule."""
    texts = {name: text for name, text in given.items() if name in FIELD}
    scale = texts.get("scale")
    if scale is None and "multiplier" in texts:
        texts["scale"] = "custom"
    elif scale is not None and is_number(scale):
        if "multiplier" in texts:
            raise UsageError(
                "{option} {scale} is a multiplier already; leave out {other}",
                option=called(FIELD["scale"]),
                scale=scale,
                other=called(FIELD["multiplier"]),
            )
        value_of(FIELD["multiplier"], scale, called(FIELD["scale"]))
        texts |= {"scale": "custom", "multiplier": scale}
    return texts


def value_of(field: Field, text: str, option: str | None = None) -> Any:
    """Return the value that `field` parses from a text; raises UsageError, which names the option."""
    try:
        return field.parse(text)
    except ParameterError as error:
        reason = reason_of(str(error), field.label)
        if field.name == "scale" and not error.pointer:
            reason = message("must be {accepted}, or a number, not {text!r}", accepted=field.accepted, text=text)
        if field.name == "model":
            reason = message("unknown model {text!r}", text=text)
        hint = (
            did_you_mean(_slug(usual_word(text)), field.choices)
            if field.kind == "choice" and not error.pointer
            else ""
        )
        if field.name == "model" and not hint:
            hint = message("; --help lists all")
        refusal = UsageError("{option}: {reason}{hint}", option=option or field.option, reason=reason, hint=hint)
        refusal.pointer = error.pointer
        raise refusal from None


def _slug(text: str) -> str:
    return text.strip().casefold().replace(" ", "-")


def whole_number(option: str, text: str) -> int:
    """Return a number from 1 up, below a billion; raise UsageError about `option` if the text is not one."""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        raise UsageError("{option}: must be a whole number from 1 up, not {text!r}", option=option, text=text)
    return int(text)


def no_effect(option: str) -> str:
    """Return the remark on an option without effect."""
    return message("{option} has no effect with these parameters", option=option)


def parameter_help(field: Field, accepted: str, default: str) -> Message:
    """Return what a parameter is, what it accepts, and its default, if it has one."""
    accepted = sentence_case(accepted)
    if not default:
        return message("{help} {accepted}.", help=field.help, accepted=accepted)
    return message("{help} {accepted}; default {default}.", help=field.help, accepted=accepted, default=name(default))
