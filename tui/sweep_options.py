"""What `attn-tui sweep` is asked for: the axes, the statistics and the precision, from the words to a request."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ..core.errors import InputError
from ..core.lab.grid import parse_values
from ..core.parameters import FIELD, FIELDS, Parameters
from ..core.statistics.catalogue import STATISTIC
from .requests import Output, Sweep
from .usage import GRID, UsageError, is_number, no_effect, parameter_values, value_of

if TYPE_CHECKING:
    from ..core.lab.sweep import Target


def sweep_request(given: dict[str, Any], output: Output) -> Sweep:
    """What these options of `attn-tui sweep` ask for."""
    grid, values = given.pop("d_k", GRID).strip(), _second_axis(given)
    if values and values[0] == "multiplier":
        given = {"scale": "custom"} | given
    parameters = Parameters(**cast(Any, parameter_values(given)))
    request = Sweep(parameters, grid, values, _statistics(given), _target(given), output)
    with _called("--d-k", "d_k"):
        _ = request.d_ks
    questions = request.questions
    asked = [FIELD[name] for name in FIELD if name in given and (values is None or name != values[0])]
    idle = [field.option for field in asked if not any(map(field.applies, questions))]
    if values and values[0] in given:
        idle.append(FIELD[values[0]].option)
    if values and not any(map(FIELD[values[0]].applies, questions)):
        idle.append(f"--vary {values[0]}")
    if request.target is None:
        idle += [option for option in ("--of", "--most-draws") if option[2:].replace("-", "_") in given]
    elif request.target.most_draws < max(p.batch for p in questions):
        raise UsageError(
            f"--most-draws: {request.target.most_draws} is less than one batch of "
            f"{max(p.batch for p in questions)} draws"
        )
    return replace(request, remarks=tuple(map(no_effect, idle)))


def _second_axis(given: dict[str, Any]) -> tuple[str, str] | None:
    """`n-keys=64,128` as the parameter's name and its values, all of which are accepted."""
    texts = given.get("vary", [])
    if not texts:
        return None
    if len(texts) > 1:
        raise UsageError("--vary: a sweep has one second axis; leave out all but one")
    option, equals, values = texts[0].partition("=")
    name = option.strip().removeprefix("--").replace("-", "_")
    names = [field.option[2:] for field in FIELDS if field.name != "d_k"]
    if name not in FIELD or name == "d_k" or not equals:
        raise UsageError(
            f"--vary: {texts[0]!r} is not accepted; it takes NAME=VALUES, NAME one of {', '.join(names)}"
        )
    field = FIELD[name]
    if name == "scale" and any(map(is_number, values.split(","))):
        raise UsageError("--vary scale: it takes names of rules; --vary multiplier=0.05,0.1 takes numbers")
    with _called(f"--vary {field.option[2:]}", field.label):
        parse_values(values, field)
    return name, values.strip()


def _statistics(given: dict[str, Any]) -> tuple[str, ...]:
    """The statistics asked for, each once, in the order asked for."""
    text = given.get("statistics")
    if text is None:
        return ()
    names = [word.strip().replace("-", "_") for word in text.split(",")]
    if names == ["all"]:
        return tuple(STATISTIC)
    for name in names:
        if name not in STATISTIC:
            raise UsageError(
                f"--statistics: {name!r} is not accepted; it takes all, or some of {', '.join(STATISTIC)}"
            )
    return tuple(dict.fromkeys(names))


def _target(given: dict[str, Any]) -> Target | None:
    if "stderr" not in given:
        return None
    from ..core.lab.sweep import Target  # which loads NumPy

    text = given["stderr"]
    stderr = float(text) if is_number(text) else math.nan
    if not 0 < stderr < math.inf:
        raise UsageError(f"--stderr: {text!r} is not accepted; it takes a number above 0")
    target = Target(stderr)
    if "of" in given:
        with _called("--of", "statistic"):
            target = replace(target, statistic=given["of"].strip().replace("-", "_"))
    if "most_draws" in given:
        target = replace(target, most_draws=value_of(FIELD["batch"], given["most_draws"], "--most-draws"))
    return target


@contextmanager
def _called(option: str, label: str) -> Generator[None, None, None]:
    """Objections name the option, rather than what is asked for by it."""
    try:
        yield
    except InputError as error:
        raise UsageError(f"{option}: {str(error).removeprefix(f'{label}: ')}") from None
