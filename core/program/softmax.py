"""The program of a worked example: the softmax of a few scores."""

from __future__ import annotations

from collections.abc import Sequence

from ..attention.worked_example import Example, WorkedExample
from ..parameters import Parameters, setting_a
from ..scales import scale_rule
from .dialects import Dialect
from .lab import rule_code
from .text import Piece, assembled, number, shown, side_by_side

_MEASURE = """\
def measure(scale):
    x = scale * scores / temperature + shift  # logits
    p = np.exp(x - x.max())
    p = p / p.sum()
    entropy = -(p * np.log(p.clip(1e-300))).sum()
    return *p, entropy, (p**2).sum(), np.linalg.norm(np.diag(p) - np.outer(p, p))"""
_NEEDS = {"d_k": "d_k", "n_keys": "n", "layer": "layer", "position": "position", "context_factor": "s",
          "temperature": "t"}  # fmt: skip


def softmax_code(
    example: Example, parameters: Parameters, sides: Sequence[WorkedExample], dialect: Dialect, command: str
) -> str:
    """Return the program that prints the weights, their entropy and their Jacobian under A and B."""
    lines = [
        f"scores = np.array([{', '.join(map(number, example.scores))}], dtype=np.float64)",
        f"temperature, shift = {number(example.temperature)}, {number(example.shift)}",
    ]
    settings = (setting_a(parameters), parameters)
    needs = [need for side in settings for need in scale_rule(side.scale).needs if need in _NEEDS]
    lines += [f"{_NEEDS[need]} = {number(getattr(parameters, need))}" for need in dict.fromkeys(needs)]
    pieces = [Piece("\n".join(lines)), Piece(_MEASURE, defines=True)]
    figures = [
        {
            **{f"weight {place}": weight for place, weight in enumerate(each.weights, 1)},
            "entropy": each.entropy,
            "sum of p^2": each.sum_squared_weights,
            "norm of the Jacobian": each.jacobian_norm,
        }
        for each in sides
    ]
    rows = {name: [shown(each[name]) for each in figures] for name in figures[0]}
    calls = [f"measure({rule_code(p.scale, p.multiplier)})" for p in settings]
    return assembled([command], [pieces], side_by_side(rows, calls, ("A", "B")), dialect)
