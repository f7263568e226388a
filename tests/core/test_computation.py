"""Computation: each of its fields against the same written out."""

from typing import Any

import numpy as np
import pytest
from attn_tui.core.attention.computation import Computation
from attn_tui.core.attention.visibility import Bias, Slope, Visibility
from cases import for_each

RNG = np.random.default_rng(0)
Q, K = RNG.standard_normal((2, 3, 8)), RNG.standard_normal((2, 5, 8))
AT = np.arange(3)
CAUSAL = Visibility(5, AT, after=0)
NUMBERS = RNG.standard_normal((1, 3, 5))
ROWS = RNG.uniform(0.1, 1, (2, 3))


def unit(x: Any) -> Any:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def written_out(logits: Any, hidden: Any = False, sink: float = -np.inf, axis: int = -1) -> Any:
    powers = np.where(hidden, 0, np.exp(logits))
    return powers / (powers.sum(axis=axis, keepdims=True) + np.exp(sink))


LATER = np.arange(5) > AT[:, np.newaxis]
SEEN = np.minimum(AT + 1, 5)

CASES: dict[str, tuple[Computation, Any]] = {
    "nothing": (Computation(), written_out(Q @ K.mT)),
    "a number": (Computation(multiplier=0.3), written_out(0.3 * Q @ K.mT)),
    "a number a row": (Computation(multiplier=ROWS), written_out(ROWS[..., np.newaxis] * (Q @ K.mT))),
    "a rule of the visible keys": (
        Computation(multiplier=lambda seen, _, __: np.log(seen + 1), visibility=CAUSAL),
        written_out(np.log(SEEN + 1)[:, np.newaxis] * (Q @ K.mT), LATER),
    ),
    "norms and their gain": (Computation(norms=("l2", "l2"), gain=3), written_out(9 * unit(Q) @ unit(K).mT)),
    "the norm of one side": (Computation(norms=("none", "l2")), written_out(Q @ unit(K).mT)),
    "a factor of both sides": (Computation(factor=2), written_out(4 * Q @ K.mT)),
    "a cap": (Computation(softcap=2), written_out(2 * np.tanh(Q @ K.mT / 2))),
    "a cap before a bias": (
        Computation(softcap=2, biases=(Bias(NUMBERS),)),
        written_out(2 * np.tanh(Q @ K.mT / 2) + NUMBERS),
    ),
    "two biases": (
        Computation(biases=(Bias(NUMBERS), Slope(0.5, AT, 5))),
        written_out(Q @ K.mT + NUMBERS - 0.5 * abs(np.arange(5) - AT[:, np.newaxis])),
    ),
    "a causal mask and a sink": (
        Computation(visibility=CAUSAL, sink=1.5),
        written_out(Q @ K.mT, LATER, 1.5),
    ),
    "softmax over queries": (Computation(axis=-2), written_out(Q @ K.mT, axis=-2)),
}


@for_each("case", CASES)
def test_attention_is_what_its_fields_say(case: str) -> None:
    c, weights = CASES[case]
    found = c.evaluate(Q, K)
    assert found.softmax.weights == pytest.approx(weights, rel=1e-12, abs=1e-300)
    if c.axis == -1:
        assert found.softmax.weights.sum(axis=-1) + found.softmax.sink == pytest.approx(np.ones((2, 3)), rel=1e-12)


def test_queries_and_keys_change_places() -> None:
    assert np.array_equal(Computation(swapped=True).evaluate(K, Q).logits, Q @ K.mT)


def test_a_part_has_the_terms_of_its_rows_and_keys() -> None:
    c = Computation(multiplier=ROWS, visibility=CAUSAL, biases=(Bias(NUMBERS),), softcap=1)
    whole, part = c.evaluate(Q, K), (slice(1, 2), slice(1, 3), slice(0, 4))
    terms = c.terms((1, 2, 4), *part)
    logits = c.logits(Q[1:, 1:] @ K[1:, :4].mT, terms)
    assert logits == pytest.approx(whole.logits[part], rel=1e-15)
    assert terms.hidden is not None
    assert np.array_equal(terms.hidden, LATER[np.newaxis, 1:, :4])


def test_query_heads_read_repeated_or_tiled_key_heads() -> None:
    assert [Computation().key_head(head, 6, 2) for head in range(6)] == [0, 0, 0, 1, 1, 1]
    assert [Computation(tiled=True).key_head(head, 6, 2) for head in range(6)] == [0, 1, 0, 1, 0, 1]
