"""Whatever the recorder can write, the reader reads, and it gives the recorded log-sum-exp within rounding."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.captures.head import read_evidence, read_head
from attn_tui.core.captures.heads import file_rule
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.captures.rules import computation
from hypothesis import given
from hypothesis import strategies as st
from pytorch import torch
from written import B, H, N, causal_of, recorded, vectors

F = torch.nn.functional


def zeros_and_ones(queries: int, keys: int) -> Any:
    return (torch.arange(queries * keys).reshape(queries, keys) % 3 == 0).float()


MASKS: dict[str, Callable[[int, int], Any]] = {  # of numbers of queries and keys
    "none": lambda n, m: None,
    "causal": lambda n, m: causal_of(n, m, 0),
    "the last queries": lambda n, m: causal_of(n, m, m - n),
    "a diagonal": lambda n, m: ~torch.eye(n, m, dtype=torch.bool) if m > 1 else None,
    "the diagonal": lambda n, m: torch.eye(n, m, dtype=torch.bool),
    "the upper triangle": lambda n, m: causal_of(m, n, 0).T,
    "texts": lambda n, m: (torch.arange(m) < torch.tensor([m, 1]).reshape(B, 1, 1, 1)).expand(B, 1, n, m),
    "a window": lambda n, m: causal_of(n, m, 0) & ~causal_of(n, m, -4),
    "heads": lambda n, m: (torch.arange(m) >= torch.arange(H).reshape(1, H, 1, 1)).expand(1, H, n, m),
}  # fmt: skip
BIASES: dict[str, Callable[[int, int], Any]] = {
    "none": lambda n, m: None,
    "zeros and ones": zeros_and_ones,
    "heads": lambda n, m: torch.linspace(-1, 1, H).reshape(1, H, 1, 1) * zeros_and_ones(n, m),
    "keys": lambda n, m: torch.linspace(-2, 1, m).expand(n, m),
}  # fmt: skip


@st.composite
def calls(draw: st.DrawFn) -> dict[str, Any]:
    n = draw(st.sampled_from([1, 2, 9, 12, 300]))
    m = draw(st.sampled_from([1, 3, 12, 20, n]))
    fused = draw(st.booleans())
    return {
        "kv_heads": draw(st.sampled_from([1, 2, H])),
        "n": n,
        "m": m,
        "fused": fused,
        "scale": draw(st.sampled_from([0.25, 0.7, 1.0])),
        "mask": MASKS[masked := draw(st.sampled_from([*MASKS]))](n, m),
        "padding": masked in ("texts", "heads"),  # tokens that no query sees
        "bias": BIASES[draw(st.sampled_from([*BIASES]))](n, m),
        "softcap": None if fused else draw(st.sampled_from([None, 2.0])),
        "sinks": None if fused else draw(st.sampled_from([None, torch.linspace(-1, 1, H)])),
        "dtype": draw(st.sampled_from([torch.float32, torch.float64])),
        "inside": draw(st.sampled_from([1.0, 0.5])),
        "rows": draw(st.sampled_from([5, 256])),
    }


def attend(call: dict[str, Any], q: Any, k: Any, v: Any) -> Any:
    mask, bias, q = call["mask"], call["bias"], q * call["inside"]
    k, v = (x.repeat_interleave(H // call["kv_heads"], 1) for x in (k, v))
    if call["fused"]:
        if bias is not None:
            mask = bias.to(q.dtype) if mask is None else bias.to(q.dtype).masked_fill(~mask, -torch.inf)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=call["scale"]).nan_to_num()
    z = q @ k.mT * call["scale"]
    if call["softcap"] is not None:
        z = call["softcap"] * torch.tanh(z / call["softcap"])
    z = z if bias is None else z + bias.to(z.dtype)
    z = z if mask is None else z.masked_fill(~mask, -torch.inf)
    if call["sinks"] is not None:
        z = torch.cat((z, call["sinks"].to(z.dtype)[:, None, None].expand(*z.shape[:3], 1)), -1)
    return z.softmax(-1)[..., : call["m"]].nan_to_num() @ v


@given(calls())
def test_what_is_recorded_is_read_and_replayed_to_its_log_sum_exp(call: dict[str, Any]) -> None:
    tensors = (x.to(call["dtype"]) for x in vectors(call["kv_heads"], call["n"], call["m"]))
    with tempfile.TemporaryDirectory() as folder:
        recorded(Path(folder), partial(attend, call), *tensors, rows=call["rows"])
        capture = open_capture(Path(folder) / "a.safetensors")
        [layer] = capture.layers
        assert not layer.refusal
        assert layer.sizes[1:] == (H, min(call["n"], call["rows"]), call["m"])
        for head in range(H):
            data, lse = read_head(capture, layer, head), read_evidence(capture, layer, head, "lse")
            c = computation(file_rule(layer), layer, data)
            found = c.evaluate(data.q, data.k)
            assert lse is not None
            hidden = c.terms(found.scores.shape).hidden
            counted = np.ones(lse.shape, np.bool_)
            if call["padding"] and hidden is not None:  # the reader leaves out queries that are padding
                counted &= ~hidden.all(axis=-1)
            np.testing.assert_allclose(found.softmax.lse[counted], lse[counted], rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("rows", [0, 8])
def test_the_self_check_says_how_many_rows_see_a_key(rows: int, tmp_path: Path) -> None:
    q, k, v = vectors()
    hidden = (torch.arange(N) >= rows)[:, None].expand(N, k.shape[2])

    def attention(q: Any, k: Any, v: Any) -> Any:
        return torch.softmax((q @ k.transpose(-1, -2) * 0.25).masked_fill(hidden, -torch.inf), -1) @ v

    _, layer, _, _ = recorded(tmp_path, attention, q, k, v)
    if rows:
        assert f"in {rows} of {N} rows; the others see no key" in layer["notes"]
    else:
        assert "not verified: no query that was compared sees a key" in layer["notes"]
    hidden = torch.zeros(N, k.shape[2], dtype=torch.bool)
    _, seen, _, _ = recorded(tmp_path, attention, q, k, v)
    assert "verified to rounding" in seen["notes"]
    assert "rows" not in seen["notes"]
