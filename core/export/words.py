"""Parameters as people read them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ..attention.scales import SCALE_RULES
from ..parameters import FIELD, FIELDS, Field, Parameters, choice_word


def parameter_words(parameters: Parameters, fields: Sequence[Field] = FIELDS) -> list[str]:
    """`d_k 64`, `keys 128`, …: of these fields, those that have an effect, as people call them."""
    return [f"{field.label} {parameter_word(field, parameters)}" for field in fields if field.applies(parameters)]


def notable_words(parameters: Parameters, names: Iterable[str], always: Collection[str]) -> list[str]:
    """The same of the fields of these names that are said always, or whose value is not the usual one."""
    usual = Parameters()
    told = [n for n in names if n in always or getattr(parameters, n) != getattr(usual, n)]
    return parameter_words(parameters, [FIELD[name] for name in told])


def parameter_word(field: Field, parameters: Parameters) -> str:
    """A value as people write it: formulas or names for scale rules, words for laws."""
    value = getattr(parameters, field.name)
    if field.name == "scale":
        return SCALE_RULES[value].label
    return choice_word(value) if field.kind == "choice" else field.format(value)
