"""Settings A and B: two settings side by side. B is the parameters; `against` says in what A differs from them."""

from __future__ import annotations

from collections.abc import Mapping

from .errors import ParameterError
from .field import Field
from .message import joined, message
from .parameters import FIELD, UNSCALED, Parameters, Value, changes, choice_word, model_title, setting_a
from .scales import multiplier, scale_rule

# The scale rule and what rules depend on: settings that differ in these only have the same scores.
OF_RULE = ("scale", "multiplier", "layer", "position", "context_factor", "temperature")


def settings(p: Parameters) -> tuple[Parameters, Parameters]:
    """Return the parameters of A and of B."""
    return setting_a(p), p


def share_scores(p: Parameters) -> bool:
    """Return whether A and B differ at most in their scale rule, so that one run measures both."""
    return all(name in OF_RULE for name in changes(p.against))


def fault_of_settings(p: Parameters) -> str:
    """Return why the scale rule of A or B has no multiplier; empty if both have one."""
    for setting in settings(p):
        try:
            multiplier(setting.scale, setting.setting)
        except ParameterError as error:
            return str(error)
    return ""


def idle_changes(p: Parameters) -> list[str]:
    """Return the names of parameters that are set for A and have no effect there."""
    a = setting_a(p)
    return [name for name in changes(p.against) if not FIELD[name].applies(a)]


def apart(p: Parameters) -> tuple[Mapping[str, Value], Mapping[str, Value]]:
    """Return A's and B's values of the parameters that differ, without those of the scale rule.

    An unscaled A with q and k as drawn, beside a rule that normalises them, differs in `normalise`.
    """
    a, b = settings(p)
    names = [name for name in changes(p.against) if name not in OF_RULE and getattr(a, name) != getattr(b, name)]
    of_a: dict[str, Value] = {name: getattr(a, name) for name in names}
    of_b: dict[str, Value] = {name: getattr(b, name) for name in names}
    how = scale_rule(b.scale).normalise
    if a.scale == "none" and how != "none":
        return of_a | {"normalise": "none"}, of_b | {"normalise": how}
    return of_a, of_b


def words(values: Mapping[str, Value]) -> str:
    """Return the values of `apart` in words: `bfloat16, mean of q 0.5`; also that q and k are not normalised.

    Beside a format, the usual arithmetic goes without saying, and another is one word: `bfloat16, eager`.
    """
    if not values:
        return ""
    shown = dict(values)
    if "precision" in shown and shown.get("arithmetic") == Parameters.arithmetic:
        del shown["arithmetic"]
    found = [
        choice_word(str(value)) if name == "arithmetic" and "precision" in shown else _word(FIELD[name], value)
        for name, value in shown.items()
        if name in FIELD
    ]
    drawn = [message("q and k as drawn")] if values.get("normalise") == "none" else []
    return joined([*found, *drawn], ", ")


def against_word(p: Parameters) -> str:
    """Return what A is: `unscaled`, `1/d_k`, `× 0.05` or `1/d_k, bfloat16`."""
    changed = changes(p.against)
    first: list[str] = []
    match changed.get("scale"):
        case None:
            pass
        case "none":
            first = ["× 1"]
        case "custom":
            first = [f"× {changed.get('multiplier', p.multiplier):.4g}"]
        case scale:
            first = [UNSCALED if scale == UNSCALED else scale_rule(str(scale)).label]
    rest = {name: value for name, value in changed.items() if name not in ("scale", "multiplier")}
    return joined(filter(None, [*first, words(rest)]), ", ")


def _word(field: Field, value: Value) -> str:
    word = choice_word(str(value)) if field.kind == "choice" else field.format(value)
    return word if field.name in _TELLING else joined([field.label, word])


_TELLING = ("mechanism", "precision", "components")  # whose values tell alone what they are of


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
