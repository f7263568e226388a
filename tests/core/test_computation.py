"""Computation: each of its fields against the same written out."""

from typing import Any

import numpy as np
import pytest
from attn_tui.core.attention.computation import Computation
from attn_tui.core.attention.visibility import Bias, Slope, Visibility
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

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


@given(
    st.integers(1, 6), st.integers(1, 8), st.sampled_from([None, 0, 1, 3]), st.sampled_from([None, 0, 2]),
    st.sampled_from([None, 1, 3]), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 8), st.integers(0, 9),
)  # fmt: skip
def test_visible_and_hidden_keys_of_a_span_are_those_of_their_definition(
    queries: int, keys: int, after: int | None, before: int | None, chunk: int | None, masked: bool, own: bool,
    leaves_out: bool, first: int, seed: int,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    places = np.sort(rng.integers(0, keys, queries))
    mask: Any = rng.random((2, 1 if seed % 2 else queries, keys)) < 0.6 if masked else None
    left_out: Any = rng.random((1, queries)) < 0.3 if leaves_out else None
    found = Visibility(keys, places, mask, before, after, chunk, own, left_out)
    at, key = places[:, np.newaxis], np.arange(keys)
    seen: Any = np.ones((2, queries, keys), np.bool_) & (True if mask is None else mask)
    seen &= (after is None or key <= at + after) & (before is None or key >= at - before)
    seen &= chunk is None or key // chunk == at // chunk
    padding: Any = np.zeros((2, queries), np.bool_) if left_out is None else left_out | np.zeros((2, 1), np.bool_)
    if mask is not None and own:
        padding = padding | ~mask.any(axis=1)[:, places]
    span, rows, draws = slice(first % keys, None), slice(seed % queries, None), slice(0, 2)
    part = (slice(None), rows, span)
    assert np.array_equal(np.broadcast_to(found.of(draws, rows, span), seen[part].shape), seen[part])
    hidden: Any = (~seen | padding[..., np.newaxis])[part]
    assert np.array_equal(np.broadcast_to(found.hidden(draws, rows, span), hidden.shape), hidden)
    outside: Any = np.ones(hidden.shape[-1], np.bool_)
    outside[found.edge(rows, span)] = False
    assert not hidden[..., outside].any()
    whole = found.span(rows)
    assert not seen[:, rows, : whole.start].any()
    assert not seen[:, rows, whole.stop :].any()
