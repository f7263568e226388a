"""The program of a worked example: the softmax of a few scores."""

from __future__ import annotations

from collections.abc import Sequence

from ...attention.worked_example import Example, WorkedExample
from ...parameters import Parameters, setting_a
from ...scales import scale_rule
from .program import Dialect, Piece, assembled, expected, number, shown
from .rule import VARIABLES, scale_code

_MEASURE: dict[Dialect, str] = {
    "python": """\
def measure(scale):
    x = scale * scores / temperature + shift  # logits
    e = np.exp(x - x.max())
    p = e / e.sum()
    jacobian = np.diag(p) - np.outer(p, p)
    return {f"weight {i}": weight for i, weight in enumerate(p, 1)} | {
        "entropy": -(p * np.log(np.maximum(p, 1e-300))).sum(),
        "sum of p^2": (p**2).sum(),
        "norm of the Jacobian": np.linalg.norm(jacobian),
    }""",
    "torch": """\
def measure(scale):
    x = scale * scores / temperature + shift  # logits
    p = x.softmax(-1)
    jacobian = torch.diag(p) - torch.outer(p, p)
    return {f"weight {i}": weight for i, weight in enumerate(p, 1)} | {
        "entropy": torch.special.entr(p).sum(),
        "sum of p^2": (p**2).sum(),
        "norm of the Jacobian": jacobian.norm(),
    }""",
}
_LOOP = """\
for name in a:
    print(f"{name:22}{a[name]:12.4g}{b[name]:12.4g}")"""


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
    calls = "\n".join(f"{letter} = measure({scale_code(p)})" for letter, p in zip("ab", settings, strict=True))
    pieces = [Piece("\n".join(lines)), Piece(_MEASURE[dialect], defines=True), Piece(calls), Piece(_LOOP)]
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
    return assembled([command], [pieces], expected(("A", "B"), rows), dialect)
