"""What a captured head is measured under beside its file: a scale rule, a number format and a soft-cap.

B is a HeadSetting. A text says in what A differs from B, in the words of the Lab: `d_k`, `precision=float16` or
`none,softcap=0`. Masks, biases, sinks and the numbers of queries and keys are those of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ..errors import ParameterError
from ..field import Field
from ..message import message, name
from ..parameters import FIELD, ROUNDED, UNSCALED, ArithmeticName, FormatName, Value, check_arithmetic
from ..scales import SCALE_RULES, ScaleName
from ..setting_text import changes_in, text_of, with_rule

FILE = "file"  # the scale and the soft-cap in the file


@dataclass(frozen=True)
class ScoreProcessing:
    """How logits and weights are computed, whatever the scale rule."""

    precision: FormatName = "float64"  # nothing is rounded
    arithmetic: ArithmeticName = "fused"
    softcap: float | str = FILE  # 0: none

    @property
    def is_exact(self) -> bool:
        """Whether nothing is rounded to a number format."""
        return self.precision == "float64"

    def cap(self, of_file: float | None) -> float | None:
        """Return the soft-cap, if there is one; `of_file` is that of the file."""
        return of_file if isinstance(self.softcap, str) else self.softcap or None

    @property
    def apart(self) -> dict[str, Value]:
        """What differs from the file and from exact arithmetic, by the names of parameters."""
        found: dict[str, Value] = {} if self.is_exact else {"precision": self.precision}
        found |= {"arithmetic": self.arithmetic} if self.precision in ROUNDED else {}
        return found if self.softcap == FILE else found | {"softcap": self.softcap}


AS_STORED = ScoreProcessing()  # in exact arithmetic, with the file's soft-cap


@dataclass(frozen=True)
class HeadSetting(ScoreProcessing):
    """A scale rule as well, each value checked against its row of HEAD_FIELDS."""

    scale: ScaleName = FILE
    multiplier: float = 1.0  # of the custom rule

    def __post_init__(self) -> None:
        for field in HEAD_FIELDS:
            field.check(getattr(self, field.name))
        check_arithmetic(self.precision, self.arithmetic)

    @property
    def computed(self) -> ScoreProcessing:
        """The same without the scale rule."""
        return ScoreProcessing(self.precision, self.arithmetic, self.softcap)

    def with_values(self, values: Mapping[str, Value]) -> HeadSetting:
        """Return this setting with some values replaced; raise ParameterError if they are not accepted."""
        new: dict[str, Any] = dict(values)
        return replace(self, **new)


@dataclass(frozen=True)
class _CapField(Field):
    """The field of a soft-cap, which may be the file's."""

    @property
    def accepted(self) -> str:
        return message("{accepted}, or {file}", accepted=super().accepted, file=name(FILE))

    def check(self, value: object) -> None:
        if value != FILE:
            super().check(value)

    def parse(self, text: str) -> Value:
        return FILE if text.strip() == FILE else super().parse(text)

    def format(self, value: Value) -> str:
        return FILE if value == FILE else super().format(value)


_CAP = FIELD["softcap"]
HEAD_FIELDS: tuple[Field, ...] = (
    replace(FIELD["scale"], choices=(FILE, *SCALE_RULES)),
    FIELD["multiplier"],
    FIELD["precision"],
    FIELD["arithmetic"],
    _CapField(**{field.name: getattr(_CAP, field.name) for field in fields(_CAP)}),
)
HEAD_FIELD: dict[str, Field] = {field.name: field for field in HEAD_FIELDS}


AS_IN_FILE = HeadSetting()  # the usual B


def changes_of_a(against: str) -> dict[str, Value]:
    """Return what a text sets for A, by name; raise ParameterError if it is not accepted.

    `unscaled` is the multiplier 1 of q and k as they are in the file.
    """
    changes = changes_in(against, HEAD_FIELDS)
    return changes | {"scale": "none"} if changes.get("scale") == UNSCALED else changes


def setting_of_a(b: HeadSetting, against: str) -> HeadSetting:
    """Return A's setting, which is B's but for what a text says; raise ParameterError if it is not accepted."""
    changes = changes_of_a(against)
    try:
        return b.with_values(changes)
    except ParameterError as error:
        raise ParameterError("against: {error}", error=error) from None


def against_with(b: HeadSetting, against: str, choice: str) -> str:
    """Return A's text after a rule or `name=value` was chosen for it; the value of B ends a difference."""
    changes = changes_of_a(against)
    name, equals, text = choice.partition("=")
    if not equals:
        return text_of(with_rule(changes, choice), HEAD_FIELDS)
    value = HEAD_FIELD[name].parse(text)
    rest = {each: own for each, own in changes.items() if each != name}
    return text_of(rest if value == getattr(b, name) else rest | {name: value}, HEAD_FIELDS) or b.scale
