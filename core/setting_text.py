"""The text that says in what setting A differs from B: a scale rule, other parameters as `name=value`, or both.

`none`, `precision=bfloat16` and `d_k,components=laplace` are such texts. What a text does not name is as in B.
`unscaled` is the multiplier 1 with q and k normalised as B's rule does; a number is the multiplier itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from .errors import ParameterError, did_you_mean, nearest
from .field import Field, Value
from .formula import split_outside_parentheses
from .message import message, name
from .scales import SCALE_RULES, is_formula

UNSCALED = "unscaled"
# Parameters that A and B share: they set the shape of the table and the draws, not the attention.
SHARED = ("model", "d_k", "n_queries", "batch", "d_v", "seed", "against")
_ALIASES = {"rule": "scale", "law": "components"}
_FORMATS = {  # what formats are also called
    **{short: f"float{bits}" for bits in (16, 32, 64) for short in (f"fp{bits}", f"f{bits}")},
    "bf16": "bfloat16", "half": "float16", "single": "float32", "double": "float64",
}  # fmt: skip


def accepted_by(rules: Sequence[str]) -> str:
    """Return what texts may be, in words, where these are the rules of A: of a capture, the file's is one of them."""
    names = ", ".join(name(scale) for scale in (UNSCALED, "file") if scale == UNSCALED or scale in rules)
    return message("{unscaled}, a scale rule or formula, a number or name=value", unscaled=name(names))


ACCEPTED = accepted_by(tuple(SCALE_RULES))


def changes_in(against: str, fields: Sequence[Field]) -> dict[str, Value]:
    """Return the parameters that a text sets, by name; raise ParameterError if it is not accepted.

    The value of `scale` may be UNSCALED.
    """
    found: dict[str, Value] = {}
    for part in split_outside_parentheses(against):
        name, equals, text = (word.strip() for word in part.partition("="))
        if not equals:
            name, text = "scale", name
        field = _field(name, fields)
        new = _of_scale(text, fields) if field.name == "scale" else {field.name: _parsed(field, text)}
        for each in new:
            if each in found:
                raise ParameterError("against: {each} is given twice", each=each.replace("_", " "))
        found |= new
    return found


def text_of(changes: Mapping[str, Value], fields: Sequence[Field]) -> str:
    """Return the shortest text of changes: the rule first, or the multiplier of the custom rule."""
    rest, by_name = dict(changes), {field.name: field for field in fields}
    first = [str(rest.pop("scale"))] if "scale" in rest else []
    if first == ["custom"] and "multiplier" in rest:
        first = [by_name["multiplier"].format(rest.pop("multiplier"))]
    named = [f"{field.option[2:]}={field.format(rest[field.name])}" for field in fields if field.name in rest]
    return ",".join([*first, *named])


def is_number(text: str) -> bool:
    """Return whether a text is a number, accepted or not."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def with_next_rule(changes: Mapping[str, Value], direction: Literal[-1, 1]) -> dict[str, Value]:
    """Return the changes with A's next or previous scale rule; what else A sets is kept."""
    rules, rule = (UNSCALED, *SCALE_RULES), changes.get("scale")
    at = 0 if rule is None else -(direction < 0) if rule not in rules else rules.index(str(rule)) + direction
    return with_rule(changes, rules[at % len(rules)])


def with_rule(changes: Mapping[str, Value], rule: str) -> dict[str, Value]:
    """Return the changes with another scale rule of A, which may be UNSCALED; what else A sets is kept."""
    of_rule = ("scale", "multiplier") if changes.get("scale") == "custom" else ("scale",)
    return {"scale": rule, **{name: value for name, value in changes.items() if name not in of_rule}}


def _field(name: str, fields: Sequence[Field]) -> Field:
    """Return the field of a name in a text; raise ParameterError if there is none or A cannot set it."""
    names = {name: field for field in fields for name in (field.name, field.option[2:], field.label)}
    field = names.get(_ALIASES.get(name, name))
    if field is None:
        accepted = ", ".join(each.option[2:] for each in fields if each.name not in SHARED)
        raise ParameterError(
            "against: no parameter {name!r}{meant}; A may set {accepted}",
            name=name,
            meant=did_you_mean(name, [*names, *(alias for alias, of in _ALIASES.items() if of in names)]),
            accepted=accepted,
        )
    if field.name in SHARED:
        raise ParameterError("against: {label} must be the same for A and B", label=field.label)
    return field


def _of_scale(text: str, fields: Sequence[Field]) -> dict[str, Value]:
    """Return the changes of a scale rule, or of a number: the multiplier itself."""
    rules = next(field for field in fields if field.name == "scale").choices
    if text == UNSCALED or text in rules:
        return {"scale": text}
    if not is_number(text) and _is_formula(text):
        return {"scale": text}
    if not is_number(text):
        raise ParameterError(
            "against: must be {accepted}, not {text!r}{meant}",
            accepted=accepted_by(rules),
            text=text,
            meant=did_you_mean(text, [UNSCALED, *rules]) or _value_meant(text, fields),
        )
    field = next(field for field in fields if field.name == "multiplier")
    return {"scale": "custom", "multiplier": _parsed(field, text)}


def _value_meant(text: str, fields: Sequence[Field]) -> str:
    """Return what to type for a value without the name of its parameter, or else an example: `precision=bfloat16`."""
    named = {
        value: f"{each.option[2:]}={value}"
        for each in fields[::-1]
        if each.name not in SHARED
        for value in each.choices
    }
    near = nearest(usual_word(text), named)
    if near:
        return message(" (did you mean {near}?)", near=named[near])
    return message("; for example {example}", example="precision=bfloat16")


def usual_word(text: str) -> str:
    """Return the name of the number format that is also called this, or the text itself."""
    return _FORMATS.get(text.strip().casefold(), text)


def _is_formula(text: str) -> bool:
    """Return whether a text is a formula; raise ParameterError if it is a faulty one."""
    try:
        return is_formula(text)
    except ParameterError as error:
        fault = ParameterError("against: {error}", error=str(error).removeprefix("scale: "))
        fault.pointer = error.pointer
        raise fault from None


def _parsed(field: Field, text: str) -> Value:
    try:
        return field.parse(text)
    except ParameterError as error:
        raise ParameterError(
            "against: {error}{meant}", error=error, meant=did_you_mean(usual_word(text), field.choices)
        ) from None
