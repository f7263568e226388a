"""The words for the values of choices, and for the rules that depend on a field."""

from __future__ import annotations

from .message import message
from .models import MODELS
from .scales import rules_that_need

_WORDS = {
    "laplace": "Laplace", "rademacher": "Rademacher", "student_t": "Student t", "dot_product": "dot product",
    "float8_e4m3fn": "float8 e4m3", "float8_e5m2": "float8 e5m2",
}  # fmt: skip


def choice_word(value: str) -> str:
    """Return the word for the value of a choice: `student_t` is Student t, and `gpt2` is GPT-2 small."""
    return MODELS[value].title if value in MODELS else _WORDS.get(value, value)


def users_of(name: str) -> str:
    """Name the scale rules that depend on a field: "yarn, deepseek_v2 and longrope"."""
    *others, last = rules_that_need(name)
    return message("{others} and {last}", others=", ".join(others), last=last) if others else last
