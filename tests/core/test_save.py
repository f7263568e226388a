"""Calls of programs without PyTorch are saved as captures, with NumPy alone."""

from __future__ import annotations

import json
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


def test_a_file_of_others_is_replaced_only_if_asked(tmp_path: Path) -> None:
    path, calls = tmp_path / "model.safetensors", [attn_tui.call(*np.ones((3, 1, 1, 4, 8)), scale=1.0)]
    path.write_bytes(b"weights")
    with pytest.raises(attn_tui.InputError, match=r"exists and is not a recording; use .* overwrite=True"):
        attn_tui.save(path, calls)
    assert path.read_bytes() == b"weights"
    attn_tui.save(path, calls, overwrite=True)
    attn_tui.save(path, calls)
    assert len(open_capture(path).layers) == 1


def test_what_does_not_fit_together_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="each once"):
        attn_tui.call(Q[0], K[0], scale=1.0)
    with pytest.raises(ValueError, match="check the axes"):
        attn_tui.call(Q, K[..., :4], scale=1.0)
    with pytest.raises(ValueError, match="top-left"):
        attn_tui.call(Q[:, :, :3], K, scale=1.0, causal=True)
    with pytest.raises(ValueError, match=r"'k' holds int64; must be one of float16, float32"):
        attn_tui.call(Q, np.ones_like(K, np.int64), scale=1.0)
    with pytest.raises(ValueError, match=r"'q' is empty: its shape is"):
        attn_tui.call(Q[:, :, :0], K, scale=1.0)
    with pytest.raises(ValueError, match=r"'v' of shape .* does not fit q and k"):
        attn_tui.call(Q, K, V[:, :, :3], scale=1.0)
    with pytest.raises(ValueError, match="no call"):
        attn_tui.save(tmp_path / "a.safetensors", [])
