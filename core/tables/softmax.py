"""A worked example of softmax."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from ..attention.worked_example import EXAMPLE_FIELDS, Example, WorkedExample
from ..parameters import FIELD, UNSCALED, Parameters, setting_a
from ..scales import scale_rule
from .formats import digits
from .statistics import parameter_words, scale_entry
from .table import Block, Table, TextGrid

Side: TypeAlias = tuple[str, WorkedExample]  # a scale rule, and the steps under it

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


def softmax_table(example: Example, parameters: Parameters, sides: Sequence[WorkedExample]) -> Table[Side]:
    """Return the scores and every step under each scale; infinite or missing values are null.

    CSV has a line for each number, with the index of its score, from 0; an entry of the Jacobian has two.
    """
    asked = _asked(example, parameters)
    shared = {name: value for name, value in asked.items() if name != "multiplier"}  # which each scale has

    def rows(side: Side) -> Iterator[list[Any]]:
        rule, s = side
        place = [*shared.values(), rule, s.multiplier]
        for quantity, values in {"scores": example.scores, **_lists(s)}.items():
            yield from ([*place, quantity, at, None, value] for at, value in enumerate(values or ()))
        for at, row in enumerate(s.jacobian):
            yield from ([*place, "jacobian", at, other, value] for other, value in enumerate(row))
        yield from ([*place, quantity, None, None, value] for quantity, value in _figures(s).items())

    rules = setting_a(parameters).scale, parameters.scale
    columns = {"scale": str, "multiplier": float, "quantity": str, "row": int, "column": int, "value": float}
    return Table(
        "softmax-1",
        {"scores": example.scores, **asked},
        "columns",
        [*zip(rules, sides, strict=True)],
        lambda side: [_element(*side)],
        {name: str if isinstance(value, str) else float for name, value in shared.items()} | columns,
        rows,
        lambda: _page(example, parameters, sides),
    )


def _element(rule: str, s: WorkedExample) -> dict[str, Any]:
    return {"scale": scale_entry(rule, s.multiplier), **_lists(s), "jacobian": s.jacobian, **_figures(s)}


def _page(example: Example, parameters: Parameters, sides: Sequence[WorkedExample]) -> list[Block]:
    """Return a table of the steps and the Jacobian for each scale, and a table of the figures under both."""
    fields = [FIELD[name] for name in ("precision", *_needs(parameters))]
    words = [f"{field.label} {field.format(getattr(example, field.name))}" for field in EXAMPLE_FIELDS[1:]]
    parts: list[Block] = [", ".join([*words, *parameter_words(parameters, fields)])]
    titles: list[str] = []
    for rule, s in zip((setting_a(parameters).scale, parameters.scale), sides, strict=True):
        name = "unscaled" if not titles and rule == "none" else scale_rule(rule).label
        titles.append(f"× {digits(s.multiplier)} ({name})")
        places = range(1, len(s.weights) + 1)
        header = [titles[-1], "logit", "exp(x − max)", "weight", "p(1 − p)", *(f"∂p/∂x_{n}" for n in places)]
        steps = zip(example.scores, s.logits, s.powers, s.weights, s.complement, strict=True)
        lines = [[f"{x:.4g}" for x in (*step, *of)] for step, of in zip(steps, s.jacobian, strict=True)]
        parts.append(TextGrid(header, lines))
    figures = [_figures(s) for s in sides]
    lines = [[word, *(digits(figure[name]) for figure in figures)] for name, word in _WORDS.items()]
    return [*parts, TextGrid(["", *titles], lines)]


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


def _lists(s: WorkedExample) -> dict[str, Sequence[float] | None]:
    """Return the lists with one number for every score."""
    return {
        "logits": s.logits,
        "exponentials": s.powers,
        "weights": s.weights,
        "weight_times_complement": s.complement,
        "naive_exponentials": s.naive.powers,
        "naive_weights": s.naive.weights,
    }


def _figures(s: WorkedExample) -> dict[str, float | None]:
    """Return the figures for all scores together."""
    naive = {"shift_moves": s.moved, "naive_overflow": s.naive.overflow, "naive_error": s.naive.error}
    return {name: naive[name] if name in naive else getattr(s, name) for name in _WORDS}
