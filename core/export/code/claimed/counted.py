"""Functions of programs for what claims count or compute: nothing is drawn."""

from __future__ import annotations

from typing import NamedTuple

from ....attention.presets import PRESETS
from ..program import WIDEST, filled


class Functions(NamedTuple):
    """A function that returns the result, or its parts by name, in both dialects."""

    python: str
    torch: str


def _models_dividing() -> str:
    """Return the function that counts models of the Heads pane."""
    rows = [
        f"({each.layer.width}, {each.multiplier(each.layer):.10g}, {each.rule.normalise != 'none'})"
        for each in PRESETS.values()
    ]
    return "\n".join(
        [
            "# d_k, the multiplier, and whether q and k are normalised, of each model of the Heads pane",
            "models = [",
            *(f"    {line}" for line in filled(rows, WIDEST - 4)),
            "]",
            "",
            "",
            "def models_dividing(normalised):",
            "    return sum(isclose(c, d_k**-0.5, rel_tol=1e-8) and (normalised or not norm)"
            " for d_k, c, norm in models) / len(models)",
        ]
    )


COUNTED: dict[str, Functions] = {
    "softmax_example": Functions(
        """\
def softmax_example(*logits):
    p = softmax(np.array(logits))
    return {str(i): weight for i, weight in enumerate(p)} | {"least p(1 − p)": (p * (1 - p)).min()}""",
        """\
def softmax_example(*logits):
    p = softmax(torch.tensor(logits, dtype=torch.float64))
    return {str(i): weight for i, weight in enumerate(p)} | {"least p(1 − p)": (p * (1 - p)).min()}""",
    ),
    "models_dividing": Functions(*[_models_dividing()] * 2),
    "weights_of_matrices": Functions(
        *["def weights_of_matrices(d_model, d_k, count):\n    return count * d_model * d_k"] * 2
    ),
    "weights_of_attention": Functions(
        *[
            """\
def weights_of_attention(d_model, d_k, heads):  # W_Q, W_K, W_V and W_O
    return 3 * heads * d_model * d_k + heads * d_k * d_model"""
        ]
        * 2
    ),
    "dividing": Functions(
        *[
            """\
def dividing(d_k, tokens, what):  # what it adds to the product of queries and keys
    divided = tokens**2 if what == "scores" else tokens * d_k
    product = {"operations": 2 * d_k * tokens**2, "traffic": tokens**2 + 2 * tokens * d_k}
    return {"operations": divided / product["operations"], "traffic": 2 * divided / product["traffic"]}"""
        ]
        * 2
    ),
    "additive_over_dot": Functions(
        *[
            """\
def additive_over_dot(d_k, tokens):
    pairs, inputs = tokens**2, 2 * tokens * d_k
    traffic = inputs + 2 * d_k * pairs + d_k + pairs
    return {"operations": 4 * d_k / (2 * d_k), "traffic": traffic / (inputs + pairs)}"""
        ]
        * 2
    ),
}
