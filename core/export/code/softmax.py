"""The program of a worked example: the softmax of a few scores."""

from __future__ import annotations

from collections.abc import Sequence

from ...attention.worked_example import Example, WorkedExample
from ...parameters import Parameters, setting_a
from ...scales import scale_rule
from .parts.rule import VARIABLES, scale_code
from .program import Dialect, Piece, assembled, number, shown, side_by_side

_MEASURE: dict[Dialect, str] = {
    "python": """\
def measure(scale):
    x = scale * scores / temperature + shift  # logits
    p = np.exp(x - x.max())
    p /= p.sum()
    entropy = -(p * np.log(np.maximum(p, 1e-300))).sum()
    return *p, entropy, (p**2).sum(), np.linalg.norm(np.diag(p) - np.outer(p, p))""",
    "torch": """\
def measure(scale):
    p = (scale * scores / temperature + shift).softmax(-1)
    return *p, torch.special.entr(p).sum(), (p**2).sum(), (torch.diag(p) - torch.outer(p, p)).norm()""",
}


def softmax_code(
    example: Example, parameters: Parameters, sides: Sequence[WorkedExample], dialect: Dialect, command: str
) -> str:
    """Return the program that prints the weights, their entropy and their Jacobian under A and B."""
    scores = ", ".join(map(number, example.scores))
    made = f"np.array([{scores}])" if dialect == "python" else f"torch.tensor([{scores}], dtype=torch.float64)"
    lines = [
        f"scores = {made}",
        f"temperature, shift = {number(example.temperature)}, {number(example.shift)}",
    ]
    settings = (setting_a(parameters), parameters)
    needs = [need for side in settings for need in scale_rule(side.scale).needs if need in VARIABLES]
    lines += [f"{VARIABLES[need]} = {number(getattr(parameters, need))}" for need in dict.fromkeys(needs)]
    pieces = [Piece("\n".join(lines)), Piece(_MEASURE[dialect], defines=True)]
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
    calls = [f"measure({scale_code(p)})" for p in settings]
    return assembled([command], [pieces], side_by_side(rows, calls, ("A", "B")), dialect)
