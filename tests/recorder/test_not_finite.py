"""Scores, queries, keys, values and biases that are NaN or infinite are recorded, read and named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attn_tui
import pytest
from attn_tui.core.diagnosis.results import Verdict
from pytorch import torch
from written import H, N, recorded, vectors

LIMIT = 65_504  # of float16


def verdicts(path: Path) -> list[Verdict]:
    return [each.verdict for each in attn_tui.diagnose(path / "a.safetensors", expect="1/sqrt(d)").heads]


def scaled_later(q: Any, k: Any, v: Any) -> Any:
    return torch.softmax(q @ k.transpose(-1, -2) * 0.25, -1) @ v


def scaled_first(q: Any, k: Any, v: Any) -> Any:
    return torch.softmax((q * 0.25) @ k.transpose(-1, -2), -1) @ v


@pytest.mark.parametrize("sign", [1, -1])
def test_scores_that_overflow_float16_are_counted_and_are_no_bias_and_no_mask(sign: int, tmp_path: Path) -> None:
    q, k, v = (x.half() for x in vectors())
    q[:, 1, 3], k[:, 1, 5] = 80, sign * 80
    exact = q.double() @ k.double().transpose(-1, -2)
    assert float(exact.abs().max()) == 102_400
    _, layer, held, _ = recorded(tmp_path, scaled_later, q, k, v)
    assert layer["not_finite"] == [[2 if head == 1 else 0, 2 * N * k.shape[2]] for head in range(H)]
    assert (layer["scale"], layer["scores"]) == (0.25, "float16")
    assert not {"layers.0.attn.bias", "layers.0.attn.mask"} & set(held)
    found = verdicts(tmp_path)
    assert [each.cause for each in found] == [None, "not-finite", None, None]
    assert found[1].findings[0].stage == "qk"
    of = f"{2 * H * N * k.shape[2]:,}"
    assert f"2 of {of} scores of the layer overflowed float16: |q·k| is up to 102,400" in found[1].says
    assert {found[head].word for head in (0, 2, 3)} == {"healthy"}


def test_scores_of_the_same_vectors_do_not_overflow_if_the_scale_is_in_q(tmp_path: Path) -> None:
    q, k, v = (x.half() for x in vectors())
    q[:, 1, 3], k[:, 1, 5] = 80, 80
    _, layer, _, _ = recorded(tmp_path, scaled_first, q, k, v)
    assert "not_finite" not in layer
    assert {each.word for each in verdicts(tmp_path)} == {"healthy"}


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("role", ["q", "k", "v"])
def test_vectors_that_are_not_finite_are_named(role: str, value: float, tmp_path: Path) -> None:
    given = dict(zip("qkv", vectors(), strict=True))
    given[role][0, 1, 2, 3] = value
    _, layer, held, _ = recorded(tmp_path, scaled_later, *given.values())
    assert f"layers.{layer['index']}.attn.bias" not in held
    found = verdicts(tmp_path)
    assert [each.cause for each in found] == [None, "not-finite", None, None]
    assert found[1].findings[0].stage == ("v" if role == "v" else "qk")
    assert f"attn.{role}" in found[1].says


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("fused", [False, True])
def test_a_bias_that_is_not_finite_is_scores_that_are_not(fused: bool, value: float, tmp_path: Path) -> None:
    bias = torch.linspace(-1, 1, 20).expand(1, H, N, 20).clone()
    bias[0, 2, 4, 7] = value

    def function(q: Any, k: Any, v: Any) -> Any:
        if fused:
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias).nan_to_num()
        return (torch.softmax(q @ k.transpose(-1, -2) * 0.25 + bias, -1) @ v).nan_to_num()

    _, layer, held, _ = recorded(tmp_path, function, *vectors())
    assert [count for count, _ in layer["not_finite"]] == [0, 0, 2, 0]
    wanted = bias.nan_to_num(0.0, 0.0)
    assert torch.allclose(held["layers.0.attn.bias"].expand(1, H, N, 20), wanted, atol=1e-6)
    assert [each.cause for each in verdicts(tmp_path)] == [None, None, "not-finite", None]


def test_a_sink_of_minus_infinity_is_none(tmp_path: Path) -> None:
    sinks = torch.tensor([0.5, -torch.inf, 1.0, -0.5])

    def function(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.transpose(-1, -2) * 0.25
        return torch.cat([scores, sinks.reshape(1, H, 1, 1).expand(2, H, N, 1)], -1).softmax(-1)[..., :-1] @ v

    recorded(tmp_path, function, *vectors())
    assert {each.word for each in verdicts(tmp_path)} == {"healthy"}


@pytest.mark.parametrize("scale", [-0.25, torch.nan])
def test_a_multiplier_that_is_no_positive_number_is_left_out(scale: float, tmp_path: Path) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return (torch.softmax(q @ k.transpose(-1, -2) * scale, -1) @ v).nan_to_num()

    _, layer, _, _ = recorded(tmp_path, function, *vectors())
    assert "scale" not in layer
    assert "healthy" not in {each.word for each in verdicts(tmp_path)}
