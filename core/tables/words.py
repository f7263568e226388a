"""Parameters in words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ..against import against_word
from ..field import Field
from ..message import message
from ..model_choice import context_note, model_title, usual_of
from ..parameters import FIELD, FIELDS, NO_MODEL, ROUNDED, UNSCALED, Parameters, choice_word
from ..scales import scale_rule


def parameter_words(parameters: Parameters, fields: Sequence[Field] = FIELDS) -> list[str]:
    """Return `d_k 64`, `keys 128`, … for the given fields that have an effect, and the note on a model's context."""
    absent = {"against": UNSCALED, "model": NO_MODEL}  # not worth a word
    shown = [f for f in fields if f.applies(parameters) and getattr(parameters, f.name) != absent.get(f.name)]
    words: list[str] = [
        message("{parameter} {value}", parameter=field.label, value=parameter_word(field, parameters))
        for field in shown
    ]
    note = context_note(parameters) if FIELD["n_keys"] in shown else ""
    return [*words, note] if note else words


def notable_words(parameters: Parameters, names: Iterable[str], always: Collection[str]) -> list[str]:
    """Return the same for named fields that are in `always`, not at their default or not as the model sets them."""
    defaults = Parameters(), usual_of(parameters)
    notable = [
        n for n in names if n in always or any(getattr(parameters, n) != getattr(each, n) for each in defaults)
    ]
    return parameter_words(parameters, [FIELD[name] for name in notable])


def theory_title(each: Iterable[Parameters]) -> str:
    """Return the title of exact values; beside measurements in a rounded format it names the arithmetic."""
    rounded = any(p.precision in ROUNDED for p in each)
    return message("theory (exact arithmetic)") if rounded else message("theory")


def parameter_word(field: Field, parameters: Parameters) -> str:
    """Return a value in words: a formula or a name for a scale rule, a word for a law."""
    value = getattr(parameters, field.name)
    if field.name == "model":
        return model_title(parameters) or value
    if field.name == "scale":
        return scale_rule(value).label
    if field.name == "against":
        return against_word(parameters)
    return choice_word(value) if field.kind == "choice" else field.format(value)
