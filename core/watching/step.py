"""One step of a run: a number for each head, by statistic; and a line of attn-tui/watch-1, which holds one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np

from ..arrays import FloatArray
from ..captures.features import LARGEST, SMALLEST
from ..errors import InputError
from ..message import Plain, message, plain, quoted, short
from ..texts import from_json
from .limits import MAX_LOGIT

SCHEMA = "attn-tui/watch-1"
LONGEST = 64 << 20  # bytes of a line
_LAST_STEP = 10**15
_HEADS = 1 << 20  # layers times the heads of the widest
_OWN = ("schema", "step", "time", "layers", "scale", "scaled")  # the keys that are no statistics


Heads: TypeAlias = tuple[tuple[Plain, ...], tuple[int, ...]]  # names of layers, and the number of heads of each


@dataclass(frozen=True, eq=False)
class Peaks:
    """What became of each head, [layer, head], over several steps."""

    largest: FloatArray  # the largest |logit|; NaN: no number; infinite: not finite
    largest_step: FloatArray  # the first step that has it
    first_over: FloatArray  # the first step over the limit; infinite: none


@dataclass(frozen=True, eq=False)
class WatchStep:
    """What the heads of a model do at one step of its training."""

    step: int
    time: float | None  # seconds of the clock, as the run wrote them
    layers: tuple[Plain, ...]
    values: Mapping[str, FloatArray]  # [layer, head]; NaN: no such head or number; infinite: not finite
    heads: tuple[int, ...]  # of each layer
    scale: float | None = None  # the multiplier of q·k
    scaled: bool | None = None  # whether it is inside the logits; None: the run does not say
    file: str | None = None  # that the heads are in
    notes: tuple[str, ...] = ()
    dropped: Mapping[Heads, Peaks] = field(default_factory=dict[Heads, Peaks])  # of steps before it, no longer kept


def parse_line(text: str | bytes) -> WatchStep:
    """Return the step that a line of attn-tui/watch-1 holds; raise InputError if it holds none."""
    found = from_json(text, LONGEST)
    if not isinstance(found, dict):
        raise InputError("must be a JSON object")
    line = cast("dict[str, object]", found)
    if line.get("schema", SCHEMA) != SCHEMA:
        raise InputError("schema must be {schema!r}, not {line!r}", schema=SCHEMA, line=line["schema"])
    step = line.get("step")
    if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step <= _LAST_STEP:
        raise InputError(
            "step must be a whole number from 0 to {most:.0e}, not {step}", most=_LAST_STEP, step=_shown(step)
        )
    tables = {
        _statistic(name): _table(name, cast("list[object]", value))
        for name, value in line.items()
        if name not in _OWN and isinstance(value, list)
    }
    if not tables:
        raise InputError("has no statistic: a list of numbers, one a head, for each layer")
    counts = {name: tuple(len(row) for row in table) for name, table in tables.items()}
    heads = next(iter(counts.values()))
    for name, count in counts.items():
        if count != heads:
            raise InputError("{name!r} has other layers or heads than {other!r}", name=name, other=next(iter(counts)))
    if len(heads) * max(heads) > _HEADS:
        raise InputError(
            "has {layers} layers of up to {heads} heads: at most {most:,} in all",
            layers=len(heads),
            heads=max(heads),
            most=_HEADS,
        )
    names = line.get("layers")
    layers = tuple(map(plain, cast("list[object]", names))) if isinstance(names, list) else _numbered(len(heads))
    if len(layers) != len(heads):
        raise InputError(
            "layers must be {lists} names, one for each list of numbers, not {names}",
            lists=len(heads),
            names=len(layers),
        )
    scaled = line.get("scaled")
    if scaled is not None and not isinstance(scaled, bool):
        raise InputError("scaled must be true or false, not {scaled!r}", scaled=scaled)
    return WatchStep(
        step,
        _number(line.get("time"), "time"),
        layers,
        {name: grid(table) for name, table in tables.items()},
        heads,
        _number(line.get("scale"), "scale", zero=False),
        scaled,
    )


def logits(step: WatchStep) -> FloatArray | None:
    """Return the largest |logit| of each head, [layer, head]; if the run has scores, multiply them by its scale."""
    found = step.values.get(MAX_LOGIT)
    if found is None or step.scaled is not False or step.scale is None:
        return found
    return np.asarray(found * step.scale, np.float64)


def says_scale(step: WatchStep) -> str:
    """Say whether the scale is inside the logits shown."""
    if step.scaled is False:
        if step.scale is None:
            return "scores before the scale, which the run does not tell"
        return message("logits: the run's scores × {scale:.4g}", scale=step.scale)
    if step.scale is None:
        if step.scaled is None:
            return message("the run does not tell whether its logits include the scale")
        return message("the logits include the scale")
    if step.scaled is None:
        return message("the run does not tell whether its logits include × {scale:.4g}", scale=step.scale)
    return message("the logits include the scale, × {scale:.4g}", scale=step.scale)


def grid(rows: Sequence[Sequence[float]]) -> FloatArray:
    """Return rows of numbers as [layer, head], NaN where a row is shorter than the longest."""
    found = np.full((len(rows), max(map(len, rows), default=0)), math.nan)
    for number, row in enumerate(rows):
        found[number, : len(row)] = row
    return found


def _numbered(count: int) -> tuple[Plain, ...]:
    return tuple(map(plain, range(count)))


def _statistic(name: str) -> str:
    """Return the name of a statistic if it is printable; programs read it from the file by this name."""
    if not name.isprintable():
        raise InputError("the name of a statistic must be printable, not {name}", name=quoted(name))
    return name


def _table(name: str, rows: list[object]) -> list[list[float]]:
    """Return a list of a list of numbers, one a head, for each layer; null is NaN."""
    lists = [cast("list[object]", row) for row in rows if isinstance(row, list) and row]
    if not rows or len(lists) < len(rows):
        raise InputError("{name!r} must be a list of numbers, one a head, for each layer", name=name)
    return [[_entry(name, number) for number in row] for row in lists]


def _entry(name: str, value: object) -> float:
    """Return a number; NaN if there is none; infinity if it is not finite, as Python writes NaN and Infinity."""
    if value is None:
        return math.nan
    if type(value) is not float and type(value) is not int:
        raise InputError("{name!r} must hold numbers, not {value!r}", name=name, value=str(value)[:40])
    if value == 0 or SMALLEST <= abs(value) <= LARGEST:
        return float(value)
    if not math.isfinite(value):
        return math.inf
    raise InputError(
        "{name!r} must hold 0 or numbers between {least:g} and {most:g}, not {value}",
        name=name,
        least=SMALLEST,
        most=LARGEST,
        value=_shown(value),
    )


def _number(value: Any, key: str, zero: bool = True) -> float | None:
    """Return a finite number, or None; also 0, if `zero`."""
    if value is None:
        return None
    if type(value) not in (int, float) or not abs(value) <= LARGEST or not (zero or abs(value) >= SMALLEST):
        raise InputError("{key} must be a number, not {value}", key=key, value=_shown(value))
    return float(value)


def _shown(value: object) -> Plain:
    """Return a value as an error shows it: an integer may have hundreds of digits."""
    return short(repr(value), 40)
