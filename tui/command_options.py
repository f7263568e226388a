"""What the options of each command ask for: from the words that were written to a request that is sound.

Everything that can be is checked here, before anything large is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ..core.attention.cost import SHAPE_FIELDS, Layer
from ..core.attention.handful import ALSO, HANDFUL_FIELD, Handful, multiplier_of, parse_scores
from ..core.attention.presets import PRESETS
from ..core.attention.scales import SCALE_RULES
from ..core.lab.rule_rows import NOT_OF_MECHANISMS, SETTINGS, SORTABLE, Order
from ..core.parameters import FIELD, ParameterError, Parameters
from .parser import read
from .requests import Claims, Cost, Inspect, Output, Report, Request, Rules, Softmax
from .sweep_options import sweep_request
from .usage import UsageError, no_effect, parameter_values, parameters_of, value_of, with_scale
from .views.glyphs import Glyphs


def command_request(words: Sequence[str], glyphs: Glyphs) -> Request:
    """The request of a command and its options; raises InputError, or SystemExit after --help."""
    given = read(words[0], words[1:], glyphs)
    if words[0] == "claims":
        return Claims(_output(given))
    if words[0] == "cost":
        return _cost(given)
    if words[0] == "softmax":
        return _softmax(given)
    if words[0] == "sweep":
        return sweep_request(given, _output(given))
    if words[0] == "rules":
        return _rules(given)
    return _report(given) if words[0] == "report" else _inspect(given)


def _report(given: dict[str, Any]) -> Report:
    parameters, remarks = parameters_of(given)
    return Report(parameters, _output(given), remarks)


def _inspect(given: dict[str, Any]) -> Inspect:
    texts = with_scale(given)
    scale = texts.get("scale")
    if scale is not None and scale not in (*SCALE_RULES, "file"):
        accepted = f"file, {', '.join(SCALE_RULES)}, or a number"
        raise UsageError(f"--scale: {scale!r} is not accepted; it takes one of {accepted}")
    custom = float(value_of(FIELD["multiplier"], texts.get("multiplier", "1")))
    idle = "multiplier" in texts and scale != "custom"
    return Inspect(
        Path(given["file"]),
        given.get("layer"),
        _head(given["head"]) if "head" in given else None,
        scale,
        custom,
        given.get("axes"),
        _output(given),
        (no_effect("--multiplier"),) if idle else (),
    )


def _cost(given: dict[str, Any]) -> Cost:
    name = given.get("preset")
    if name is not None and name not in PRESETS:
        raise UsageError(f"--preset: {name!r} is not accepted; it takes one of {', '.join(PRESETS)}")
    preset = None if name is None else PRESETS[name]
    values = {field.name: value_of(field, given[field.name]) for field in SHAPE_FIELDS if field.name in given}
    return Cost(replace(preset.layer if preset else Layer(), **values), preset, _output(given))


def _rules(given: dict[str, Any]) -> Rules:
    values = parameter_values(given)
    parameters = Parameters(**cast(Any, values))
    column = given.get("sort", "rule").strip().replace("-", "_")
    if column not in SORTABLE:
        raise UsageError(f"--sort: {given['sort']!r} is not accepted; it takes one of {', '.join(SORTABLE)}")
    order, compared = Order(column, given["reverse"]), given["mechanisms"]
    if compared:
        idle = [FIELD[name].option for name in values if name in NOT_OF_MECHANISMS]
        idle += [option for option in ("--sort", "--reverse") if given.get(option[2:])]
        order = Order()
    else:
        idle = [FIELD[n].option for n in values if n not in SETTINGS and not FIELD[n].applies(parameters)]
    return Rules(parameters, order, compared, _output(given), tuple(map(no_effect, idle)))


def _softmax(given: dict[str, Any]) -> Softmax:
    values: dict[str, Any] = {
        name: float(value_of(HANDFUL_FIELD[name], given[name])) for name in ("temperature", "shift") if name in given
    }
    if "scores" in given:
        try:
            values["scores"] = parse_scores(given["scores"])
        except ParameterError as error:
            raise UsageError(f"--scores: {str(error).partition(': ')[2]}") from None
    parameters, remarks = parameters_of({name: text for name, text in given.items() if name in ALSO})
    multiplier_of(parameters)
    return Softmax(Handful(**values), parameters, _output(given), remarks)


def _head(text: str) -> int:
    try:
        head = int(text)
    except ValueError:
        head = -1
    if head < 0:
        raise UsageError(f"--head: {text!r} is not accepted; it takes a whole number, from 0 on")
    return head


def _output(given: dict[str, Any]) -> Output:
    path = given.get("output")
    return Output(given.get("format", "table"), None if path in (None, "-") else Path(path))
