"""Parameters as people read them."""

from __future__ import annotations

from collections.abc import Sequence

from ..attention.scales import SCALE_RULES
from ..parameters import FIELDS, Field, Parameters, choice_word


def parameter_words(parameters: Parameters, fields: Sequence[Field] = FIELDS) -> list[str]:
    """`d_k 64`, `keys 128`, …: of these fields, those that have an effect, as people call them."""
    return [f"{field.label} {parameter_word(field, parameters)}" for field in fields if field.applies(parameters)]


def parameter_word(field: Field, parameters: Parameters) -> str:
    """A value as people write it: formulas or names for scale rules, words for laws."""
    value = getattr(parameters, field.name)
    if field.name == "scale":
        return SCALE_RULES[value].label
    return choice_word(value) if field.kind == "choice" else field.format(value)
