"""Calls of programs without PyTorch are saved as captures, with NumPy alone."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import attn_tui
import numpy as np
import pytest
from attn_tui.core.captures.head import read_head
from attn_tui.core.captures.reader import open_capture
from attn_tui.tui.cli.main import main

rng = np.random.default_rng(0)
Q, K, V = rng.normal(size=(2, 4, 6, 8)), rng.normal(size=(2, 2, 6, 8)), rng.normal(size=(2, 2, 6, 8))
SEEN = np.tri(6, dtype=np.bool_)


def attention(q: Any, k: Any, v: Any, scale: float) -> tuple[Any, Any]:
    """Causal attention and its log-sum-exp, [batch, heads, tokens, d]."""
    group = q.shape[1] // k.shape[1]
    z = np.where(SEEN, q @ np.repeat(k, group, 1).mT * scale, -np.inf)
    e = np.exp(z)
    return e / e.sum(-1, keepdims=True) @ np.repeat(v, group, 1), np.log(e.sum(-1))


def verdicts(path: Path, capsys: pytest.CaptureFixture[str]) -> set[tuple[str, str | None]]:
    main(["diagnose", str(path), "--format", "json"])
    return {(head["verdict"], head["cause"]) for head in json.loads(capsys.readouterr().out)["heads"]}


@pytest.mark.parametrize(("scale", "verdict"), [(8**-0.5, ("healthy", None)), (1.0, ("cause", "scale-missing"))])
def test_a_saved_call_is_diagnosed_by_what_attention_returned(
    scale: float, verdict: tuple[str, str | None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    o, _ = attention(Q, K, V, scale)
    saved = attn_tui.call(Q, K, V, o, scale=8**-0.5, causal=True, name="first")
    attn_tui.save(tmp_path / "a.safetensors", [saved], config={"head_dim": 8})
    assert verdicts(tmp_path / "a.safetensors", capsys) == {verdict}


def test_arrays_in_another_order_are_saved_as_they_are_read(tmp_path: Path) -> None:
    q, k = Q[0].transpose(1, 0, 2), K[0].transpose(1, 0, 2)
    attn_tui.save(tmp_path / "a.safetensors", [attn_tui.call(q, k, scale=0.5, axes="token,head,d_k", causal=True)])
    capture = open_capture(tmp_path / "a.safetensors")
    head = read_head(capture, capture.layers[0], 3)
    np.testing.assert_allclose(head.q, Q[:1, 3])
    np.testing.assert_allclose(head.k, K[:1, 1])


def test_the_log_sum_exp_is_computed_if_asked() -> None:
    found = attn_tui.call(Q, K, scale=0.5, causal=True, lse=True).tensors["lse"]
    np.testing.assert_allclose(found, attention(Q, K, V, 0.5)[1], rtol=1e-6)
    bias = rng.normal(size=(1, 4, 6, 6))
    found = attn_tui.call(Q, K, scale=0.5, mask=SEEN[None, None], bias=bias, lse=True).tensors["lse"]
    z = np.where(SEEN, Q @ np.repeat(K, 2, 1).mT * 0.5 + bias, -np.inf)
    np.testing.assert_allclose(found, np.log(np.exp(z).sum(-1)), rtol=1e-6)


def test_what_does_not_fit_together_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="each once"):
        attn_tui.call(Q[0], K[0], scale=1.0)
    with pytest.raises(ValueError, match="do not fit"):
        attn_tui.call(Q, K[..., :4], scale=1.0)
    with pytest.raises(ValueError, match="top-left"):
        attn_tui.call(Q[:, :, :3], K, scale=1.0, causal=True)
    with pytest.raises(ValueError, match="no call"):
        attn_tui.save(tmp_path / "a.safetensors", [])


@pytest.fixture
def jax(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module with the interface of JAX 0.10 that record_jax uses; JAX itself is not installed for tests."""

    def dot_product_attention(
        query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, *, scale: Any = None,
        is_causal: bool = False, local_window_size: Any = None, implementation: Any = None,
    ) -> Any:  # fmt: skip
        q, k, v = (np.swapaxes(each, -2, -3) for each in (query, key, value))
        o, _ = attention(q, k, v, query.shape[-1] ** -0.5 if scale is None else scale)
        return np.swapaxes(o, -2, -3)

    library: Any = types.ModuleType("jax")
    library.nn = types.SimpleNamespace(dot_product_attention=dot_product_attention)
    library.debug = types.SimpleNamespace(callback=lambda function, *given: function(*given))  # type: ignore[misc]
    library.effects_barrier = lambda: None
    monkeypatch.setitem(sys.modules, "jax", library)
    return library


def test_calls_of_jax_are_recorded(jax: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original = jax.nn.dot_product_attention
    q, k, v = (np.swapaxes(each, 1, 2) for each in (Q, K, V))
    expected = original(q, k, v, is_causal=True)
    with attn_tui.record_jax(tmp_path / "a.safetensors"):
        for _ in range(2):
            np.testing.assert_array_equal(jax.nn.dot_product_attention(q, k, v, is_causal=True), expected)
    assert jax.nn.dot_product_attention is original
    assert [layer.heads for layer in open_capture(tmp_path / "a.safetensors").layers] == [4, 4]
    assert verdicts(tmp_path / "a.safetensors", capsys) == {("healthy", None)}


def test_what_is_not_recorded_of_jax_is_said(jax: Any, tmp_path: Path) -> None:
    q, k, v = (np.swapaxes(each, 1, 2) for each in (Q, K, V))
    with (
        pytest.warns(UserWarning, match="no call"),
        pytest.warns(UserWarning, match="local_window_size"),
        attn_tui.record_jax(tmp_path / "a.safetensors"),
    ):
        jax.nn.dot_product_attention(q, k, v, local_window_size=3)
    assert not (tmp_path / "a.safetensors").exists()
