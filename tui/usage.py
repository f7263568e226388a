"""What a command line without words needs, and every other one: to open the app, no parser has to be loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ..core.attention.scales import Setting, multiplier
from ..core.errors import InputError
from ..core.parameters import FIELD, FIELDS, Field, ParameterError, Parameters, Value

COMMANDS = ("report", "sweep", "softmax", "rules", "inspect", "claims", "cost")
FORMATS = ("table", "json", "csv", "markdown")
GRID = "1:4096:log24"  # of d_k, unless a sweep is given another


class UsageError(InputError):
    """A command line that is not understood; one line that says what is, or where that is written."""


@dataclass(frozen=True)
class OpenApp:
    """attn-tui [FILE] [parameters]"""

    given: Mapping[str, Value] = field(default_factory=dict[str, Value])  # parameters, by name; others are remembered
    file: Path | None = None
    axes: str | None = None
    mouse: bool = True
    theme: str | None = None
    config: bool = True  # whether the settings file is read and written
    remarks: tuple[str, ...] = ()

    @property
    def parameters(self) -> Parameters:
        """Those that are given, and the others as usual."""
        return Parameters(**cast(Any, self.given))


def is_number(text: str) -> bool:
    """Whether a person would call it a number; it need not be an accepted one."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def parameter_values(
    given: Mapping[str, Any], called: Callable[[Field], str] = lambda f: f.option
) -> dict[str, Value]:
    """The values of the parameters in this text, by name; an objection calls a parameter what `called` says."""
    texts = with_scale(given, called)
    return {field.name: value_of(field, texts[field.name], called(field)) for field in FIELDS if field.name in texts}


def parameters_of(given: Mapping[str, Any]) -> tuple[Parameters, tuple[str, ...]]:
    """The parameters in this text, sound together, and a remark for each that has no effect on them."""
    values = parameter_values(given)
    parameters = Parameters(**cast(Any, values))
    multiplier(parameters.scale, Setting.of(parameters))
    idle = [FIELD[name] for name in values if not FIELD[name].applies(parameters)]
    return parameters, tuple(no_effect(field.option) for field in idle)


def with_scale(given: Mapping[str, Any], called: Callable[[Field], str] = lambda f: f.option) -> dict[str, str]:
    """The texts of parameters, with `--scale 0.05` or `--multiplier 0.05` spelled out as the custom rule."""
    texts = {name: text for name, text in given.items() if name in FIELD}
    scale = texts.get("scale")
    if scale is None and "multiplier" in texts:
        texts["scale"] = "custom"
    elif scale is not None and is_number(scale):
        if "multiplier" in texts:
            names = called(FIELD["scale"]), called(FIELD["multiplier"])
            raise UsageError(f"{names[0]} {scale} is a multiplier already; leave out {names[1]}")
        value_of(FIELD["multiplier"], scale, called(FIELD["scale"]))
        texts |= {"scale": "custom", "multiplier": scale}
    return texts


def value_of(field: Field, text: str, option: str | None = None) -> Any:
    """What Field.parse makes of it; its objection names the option, rather than the field."""
    try:
        return field.parse(text)
    except ParameterError as error:
        reason = str(error).removeprefix(f"{field.label}: ") + (", or a number" if field.name == "scale" else "")
        raise UsageError(f"{option or field.option}: {reason}") from None


def no_effect(option: str) -> str:
    """The remark on an option that changes nothing."""
    return f"{option} has no effect with these parameters"
