"""Export a worked example of softmax."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..attention.worked_example import EXAMPLE_FIELDS, Example, WorkedExample
from ..parameters import FIELD, UNSCALED, Parameters, setting_a
from ..scales import scale_rule
from .columns import scale_json
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


def softmax_json(example: Example, parameters: Parameters, sides: Sequence[WorkedExample]) -> str:
    """Return the scores and every step under each scale as one JSON object; infinite or missing values are null."""
    return json_text(
        {
            "schema": _SOFTMAX,
            "version": version(),
            "scores": list(example.scores),
            **_asked(example, parameters),
            "columns": [
                {
                    "scale": scale_json(rule, s.multiplier),
                    **_lists(s),
                    "jacobian": s.jacobian,
                    **_figures(s),
                }
                for rule, s in _columns(parameters, sides)
            ],
        }
    )


def softmax_csv(example: Example, parameters: Parameters, sides: Sequence[WorkedExample]) -> str:
    """Return a line for each number, with the index of its score, from 0; an entry of the Jacobian has two."""
    asked = _asked(example, parameters)
    lines: list[list[Any]] = []
    for rule, s in _columns(parameters, sides):
        place = [*asked.values(), rule, s.multiplier]
        for quantity, values in {"scores": example.scores, **_lists(s)}.items():
            if values is not None:
                lines += [[*place, quantity, at, None, value] for at, value in enumerate(values)]
        for at, row in enumerate(s.jacobian):
            lines += [[*place, "jacobian", at, other, value] for other, value in enumerate(row)]
        lines += [[*place, quantity, None, None, value] for quantity, value in _figures(s).items()]
    return csv_text([*asked, "scale", "multiplier", "quantity", "row", "column", "value"], lines)


def softmax_markdown(example: Example, parameters: Parameters, sides: Sequence[WorkedExample], say: Say = str) -> str:
    """Return a table of the steps and the Jacobian for each scale, and a table of the figures under both."""
    fields = [FIELD[name] for name in ("precision", *_needs(parameters))]
    words = [f"{field.label} {field.format(getattr(example, field.name))}" for field in EXAMPLE_FIELDS[1:]]
    title = ", ".join([*words, *parameter_words(parameters, fields)])
    parts = [f"{escaped(title, say)}\n"]
    titles: list[str] = []
    for rule, s in _columns(parameters, sides):
        name = "unscaled" if not titles and rule == "none" else scale_rule(rule).label
        titles.append(f"× {digits(s.multiplier)} ({name})")
        header = [titles[-1], "logit", "exp(x − max)", "weight", "p(1 − p)", *(f"∂p/∂x_{n}" for n in _places(s))]
        steps = zip(s.logits, s.powers, s.weights, s.complement, strict=True)
        lines = [
            [digits(score), *map(digits, row), *map(digits, of)]
            for score, row, of in zip(example.scores, steps, s.jacobian, strict=True)
        ]
        parts.append(markdown_table(header, lines, say))
    figures = [_figures(s) for s in sides]
    lines = [[word, *(_digits(each[name]) for each in figures)] for name, word in _WORDS.items()]
    return "\n".join([*parts, markdown_table(["", *titles], lines, say)])


def _columns(parameters: Parameters, sides: Sequence[WorkedExample]) -> Iterator[tuple[str, WorkedExample]]:
    """Yield the name of each scale rule, and the steps under it."""
    yield from zip((setting_a(parameters).scale, parameters.scale), sides, strict=True)


def _needs(parameters: Parameters) -> list[str]:
    """Return the parameters that the scale rules of A and B depend on."""
    rules = (setting_a(parameters).scale, parameters.scale)
    return [*dict.fromkeys(name for rule in rules for name in scale_rule(rule).needs)]


def _asked(example: Example, parameters: Parameters) -> dict[str, Any]:
    """Return everything that the numbers depend on, except the scores."""
    needs = _needs(parameters)
    return {
        "temperature": example.temperature,
        "shift": example.shift,
        "precision": parameters.precision,
        **({} if parameters.against == UNSCALED else {"against": parameters.against}),
        **{name: getattr(parameters, name) for name in needs},
    }


def _lists(s: WorkedExample) -> dict[str, list[float | None] | None]:
    """Return the lists with one number for every score."""
    found = (s.logits, s.powers, s.weights, s.complement, s.naive.powers, s.naive.weights)
    return {
        name: None if values is None else [existing(value) for value in values]
        for name, values in zip(_OF_A_SCORE, found, strict=True)
    }


def _figures(s: WorkedExample) -> dict[str, float | None]:
    """Return the figures for all scores together."""
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


def _places(s: WorkedExample) -> range:
    return range(1, len(s.weights) + 1)


def _digits(value: float | None) -> str:
    return NONE if value is None else digits(value)
