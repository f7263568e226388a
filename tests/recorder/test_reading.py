"""Whatever the recorder can write, the reader reads, and it gives the recorded log-sum-exp within rounding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.captures.capture import Layer
from attn_tui.core.captures.head import CaptureFile, read_evidence, read_head
from attn_tui.core.captures.heads import file_rule
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.captures.rules import computation
from pytorch import torch
from written import B, D, H, M, N, causal_of, recorded, vectors

F = torch.nn.functional
QK = tuple[int, int, int]  # key heads, queries, keys


def sdpa(**options: Any) -> Callable[..., Any]:
    def function(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, **options)

    return function


def eager(change: Callable[[Any], Any], scale: float = D**-0.5) -> Callable[..., Any]:
    """Attention by hand; `change` is what happens to the scaled scores before softmax."""

    def function(q: Any, k: Any, v: Any) -> Any:
        return change(q @ k.transpose(-1, -2) * scale).softmax(-1) @ v

    return function


def hidden(visible: Any) -> Callable[[Any], Any]:
    def change(scores: Any) -> Any:
        return scores.masked_fill(~visible, -torch.inf)

    return change


def capped(scores: Any) -> Any:
    return 2 * torch.tanh(scores / 2)


def biased(scores: Any) -> Any:
    return scores + zeros_and_ones(N, M)


def zeros_and_ones(queries: int, keys: int) -> Any:
    return (torch.arange(queries * keys).reshape(queries, keys) % 3 == 0).float()


KINDS: dict[str, tuple[Callable[..., Any], QK]] = {
    "all keys": (sdpa(), (H, N, M)),
    "causal": (sdpa(is_causal=True), (H, N, N)),
    "grouped keys": (sdpa(enable_gqa=True, is_causal=True), (2, N, N)),
    "another scale": (sdpa(scale=0.7), (H, N, M)),
    "the last queries": (sdpa(attn_mask=causal_of(N, M, M - N)), (H, N, M)),
    "more queries than are kept, few keys": (sdpa(), (H, 600, 9)),
    "more queries than are kept, causal": (sdpa(is_causal=True), (H, 600, 600)),
    "a bias of zeros and ones": (sdpa(attn_mask=zeros_and_ones(N, M)), (H, N, M)),
    "a bias by hand of zeros and ones": (eager(biased), (H, N, M)),
    "a diagonal mask": (sdpa(attn_mask=~torch.eye(N, dtype=torch.bool)), (H, N, N)),
    "only the diagonal": (sdpa(attn_mask=torch.eye(N, dtype=torch.bool)), (H, N, N)),
    "the upper triangle": (sdpa(attn_mask=causal_of(N, N, 0).T), (H, N, N)),
    "a mask of texts": (
        sdpa(attn_mask=torch.arange(M) < torch.tensor([M, 7]).reshape(B, 1, 1, 1)), (H, N, M),
    ),
    "a window": (sdpa(attn_mask=causal_of(N, N, 0) & ~causal_of(N, N, -4)), (H, N, N)),
    "a soft-cap": (eager(capped), (H, N, M)),
    "hidden by hand": (eager(hidden(causal_of(N, N, 0))), (H, N, N)),
    "a single query": (sdpa(), (H, 1, M)),
    "a single key": (sdpa(), (H, N, 1)),
}  # fmt: skip


def log_sum_exp(capture: CaptureFile, layer: Layer, head: int) -> np.ndarray[Any, np.dtype[Any]]:
    """log Σ exp of the logits that the reader gives for a head, [batch, queries]."""
    data = read_head(capture, layer, head)
    c = computation(file_rule(layer), layer, data)
    scores = c.scores(*c.vectors(data.q, data.k))
    terms = c.terms(scores.shape, slice(None), slice(None))
    logits = c.logits(scores, terms).astype(np.float64)
    if terms.hidden is not None:
        logits = np.where(terms.hidden, -np.inf, logits)
    largest = logits.max(axis=-1, keepdims=True)
    return (largest + np.log(np.exp(logits - largest).sum(axis=-1, keepdims=True)))[..., 0]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_recorded_is_read_and_replayed_to_its_log_sum_exp(tmp_path: Path, kind: str) -> None:
    function, (kv_heads, queries, keys) = KINDS[kind]
    _, entry, held, _ = recorded(tmp_path, function, *vectors(kv_heads, queries, keys))
    capture = open_capture(tmp_path / "a.safetensors")
    [layer] = capture.layers
    assert not layer.refusal
    assert layer.sizes[1:] == (H, held[f"layers.{entry['index']}.attn.q"].shape[2], keys)
    for head in range(layer.heads):
        lse = read_evidence(capture, layer, head, "lse")
        assert lse is not None
        np.testing.assert_allclose(log_sum_exp(capture, layer, head), lse, rtol=3e-6, atol=3e-6)
