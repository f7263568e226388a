"""A handful of scores on their way through softmax."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..attention.handful import HANDFUL_FIELDS, Handful
from ..attention.scales import SCALE_RULES
from ..attention.steps import Steps
from ..parameters import FIELD, Parameters
from .formats import NONE, Say, csv_text, digits, escaped, existing, json_text, markdown_table, version
from .words import parameter_words

_SOFTMAX = "attn-tui/softmax-1"
_OF_A_SCORE = ("logits", "exponentials", "weights", "weight_times_complement", "naive_exponentials", "naive_weights")
_WORDS = {
    "entropy": "entropy, nats",
    "entropy_fraction": "entropy / ln n",
    "effective_keys": "effective keys",
    "max_weight": "max weight",
    "sum_squared_weights": "Σ p²",
    "jacobian_norm": "‖J‖_F",
    "shift_moves": "the most that the shift moves a weight",
    "naive_overflow": "naive exponentials that overflow",
    "naive_error": "½ Σ|p − naive p|",
}


def softmax_json(handful: Handful, parameters: Parameters, sides: Sequence[Steps]) -> str:
    """Scores and every step under each scale, as one JSON object. What is infinite or none is null."""
    return json_text(
        {
            "schema": _SOFTMAX,
            "version": version(),
            "scores": list(handful.scores),
            **_asked(handful, parameters),
            "columns": [
                {
                    "scale": {"rule": rule, "multiplier": s.multiplier},
                    **_lists(s),
                    "jacobian": s.jacobian.tolist(),
                    **_figures(s),
                }
                for rule, s in _columns(parameters, sides)
            ],
        }
    )


def softmax_csv(handful: Handful, parameters: Parameters, sides: Sequence[Steps]) -> str:
    """A line for each number; those of a score name it by its place, from 0, and those of the Jacobian two places."""
    asked = _asked(handful, parameters)
    lines: list[list[Any]] = []
    for rule, s in _columns(parameters, sides):
        place = [*asked.values(), rule, s.multiplier]
        for quantity, values in {"scores": handful.scores, **_lists(s)}.items():
            if values is not None:
                lines += [[*place, quantity, at, None, value] for at, value in enumerate(values)]
        for at, row in enumerate(s.jacobian.tolist()):
            lines += [[*place, "jacobian", at, other, value] for other, value in enumerate(row)]
        lines += [[*place, quantity, None, None, value] for quantity, value in _figures(s).items()]
    return csv_text([*asked, "scale", "multiplier", "quantity", "row", "column", "value"], lines)


def softmax_markdown(handful: Handful, parameters: Parameters, sides: Sequence[Steps], say: Say = str) -> str:
    """For each scale, a table of the steps with the Jacobian beside them; and one of the figures of both."""
    fields = [FIELD[name] for name in ("precision", *SCALE_RULES[parameters.scale].needs)]
    said = [f"{field.label} {field.format(getattr(handful, field.name))}" for field in HANDFUL_FIELDS[1:]]
    title = ", ".join([*said, *parameter_words(parameters, fields)])
    parts = [f"{escaped(title, say)}\n"]
    titles: list[str] = []
    for rule, s in _columns(parameters, sides):
        titles.append(f"× {digits(s.multiplier)} ({'unscaled' if len(titles) == 0 else SCALE_RULES[rule].label})")
        header = [titles[-1], "logit", "exp(x − max)", "weight", "p(1 − p)", *(f"∂p/∂x_{n}" for n in _places(s))]
        steps = zip(s.logits, s.powers, s.weights, s.complement, strict=True)
        lines = [
            [digits(score), *map(digits, row), *map(digits, of)]
            for score, row, of in zip(handful.scores, steps, s.jacobian.tolist(), strict=True)
        ]
        parts.append(markdown_table(header, lines, say))
    figures = [_figures(s) for s in sides]
    lines = [[word, *(_digits(each[name]) for each in figures)] for name, word in _WORDS.items()]
    return "\n".join([*parts, markdown_table(["", *titles], lines, say)])


def _columns(parameters: Parameters, sides: Sequence[Steps]) -> Iterator[tuple[str, Steps]]:
    """The names of the scale rules, and the steps under them."""
    yield from zip(("none", parameters.scale), sides, strict=True)


def _asked(handful: Handful, parameters: Parameters) -> dict[str, Any]:
    """What all numbers depend on, apart from the scores."""
    needs = SCALE_RULES[parameters.scale].needs
    return {
        "temperature": handful.temperature,
        "shift": handful.shift,
        "precision": parameters.precision,
        **{name: getattr(parameters, name) for name in needs},
    }


def _lists(s: Steps) -> dict[str, list[float | None] | None]:
    """What there is for every score."""
    found = (s.logits, s.powers, s.weights, s.complement, s.naive.powers, s.naive.weights)
    return {
        name: None if values is None else [existing(value) for value in values.tolist()]
        for name, values in zip(_OF_A_SCORE, found, strict=True)
    }


def _figures(s: Steps) -> dict[str, float | None]:
    """What there is for all scores together."""
    return {
        "entropy": s.entropy,
        "entropy_fraction": s.entropy_fraction,
        "effective_keys": s.effective_keys,
        "max_weight": s.max_weight,
        "sum_squared_weights": s.sum_squared_weights,
        "jacobian_norm": s.jacobian_norm,
        "shift_moves": s.moved,
        "naive_overflow": s.naive.overflow,
        "naive_error": s.naive.error,
    }


def _places(s: Steps) -> range:
    return range(1, len(s.weights) + 1)


def _digits(value: float | None) -> str:
    return NONE if value is None else digits(value)
