"""Factors of rows inside q: temperatures of the position, as of Llama 4 and Ministral 3, and what is not one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attn_tui
import pytest
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.reading import file_configuration
from attn_tui.core.diagnosis.verdict import diagnose_head
from pytorch import torch
from replay import load
from written import D, H, N, assert_explained, recorded, vectors

GROWTH = 1 + 0.3 * torch.log1p(torch.floor((torch.arange(N) + 1.0) / 4))


def by_hand(q: Any, k: Any, v: Any) -> Any:
    return torch.softmax((q * GROWTH[:, None]) @ k.transpose(-1, -2) * 0.25, -1) @ v


def tokens_first(q: Any, k: Any, v: Any) -> Any:
    """As Llama 4: before heads and tokens change places; with a number before and one after."""
    q = (q.transpose(1, 2) * 0.5) * GROWTH.view(1, N, 1, 1).expand(q.shape[0], N, 1, 1)
    q = (q * 2).transpose(1, 2)
    return torch.softmax(q @ k.transpose(-1, -2) * 0.25, -1) @ v


def fused(q: Any, k: Any, v: Any) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(q * GROWTH[:, None], k, v, scale=0.25)


def stacked(q: Any, k: Any, v: Any) -> Any:
    q = (q / (1 / GROWTH[:, None])).contiguous().flatten(0, 1)
    weights = torch.softmax(torch.bmm(q, k.flatten(0, 1).transpose(1, 2)) * 0.25, -1)
    return torch.bmm(weights, v.flatten(0, 1))


@pytest.mark.parametrize("function", [by_hand, tokens_first, fused, stacked])
def test_factors_that_grow_with_the_position(function: Callable[..., Any], tmp_path: Path) -> None:
    q, k, v = vectors()
    _, layer, held, _ = recorded(tmp_path, function, q, k, v)
    assert (layer["scale"], layer.get("prescaled")) == (0.25, None)
    assert torch.allclose(held["layers.0.attn.row_factors"], GROWTH.reshape(1, 1, N, 1), atol=1e-6)
    assert torch.allclose(held["layers.0.attn.q"], q * GROWTH[:, None], atol=1e-6)
    assert_explained(layer, held)


def of_heads(q: Any, k: Any, v: Any) -> Any:
    """As scalable softmax that is learned: each head has its own growth."""
    grown = torch.linspace(0.5, 1, H)[:, None, None] * torch.log(torch.arange(N) + 2.0)[:, None]
    return torch.softmax((q * grown) @ k.transpose(-1, -2) * 0.25, -1) @ v


def test_factors_of_each_head(tmp_path: Path) -> None:
    _, _, held, _ = recorded(tmp_path, of_heads, *vectors())
    assert held["layers.0.attn.row_factors"].shape == (1, H, N, 1)


def gated(q: Any, k: Any, v: Any) -> Any:
    """By a number that is computed from each query."""
    return torch.softmax((q * torch.sigmoid(q.sum(-1, keepdim=True))) @ k.transpose(-1, -2) * 0.25, -1) @ v


def of_keys(q: Any, k: Any, v: Any) -> Any:
    growth = torch.linspace(1, 2, k.shape[-2])[:, None]
    return torch.softmax(q @ (k * growth).transpose(-1, -2) * 0.25, -1) @ v


def before_a_rotation(q: Any, k: Any, v: Any) -> Any:
    angles = torch.arange(N)[:, None] * torch.linspace(0, 1, D)
    q = q * GROWTH[:, None]
    q = q * angles.cos() + torch.cat((-q[..., D // 2 :], q[..., : D // 2]), -1) * angles.sin()
    return torch.softmax(q @ k.transpose(-1, -2) * 0.25, -1) @ v


@pytest.mark.parametrize(
    ("function", "prescaled"),
    [(gated, [None, 1.0]), (of_keys, [1.0, None]), (before_a_rotation, [None, 1.0])],
)
def test_factors_that_are_not_known_stay_unknown(
    function: Callable[..., Any], prescaled: list[float | None], tmp_path: Path
) -> None:
    _, layer, held, _ = recorded(tmp_path, function, *vectors())
    assert layer["prescaled"] == prescaled
    assert not [name for name in held if "row_factors" in name]


def verdicts(path: Path) -> list[tuple[int, str]]:
    """The number of the layer, and the verdict or the cause, of each head of a file."""
    capture = open_capture(path)
    own = file_configuration(capture)
    found = [(layer, diagnose_head(capture, layer, head, own, None)) for layer in capture.layers for head in range(2)]
    return [(layer.index, verdict.cause or verdict.word) for layer, verdict in found]


TOKENS = 40
SMALL = {
    "vocab_size": 99, "hidden_size": 32, "intermediate_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1,
    "head_dim": 16,
}  # fmt: skip


def llama4() -> Any:
    transformers: Any = pytest.importorskip("transformers", reason="needs transformers: make test-torch")
    config = transformers.Llama4TextConfig(
        **SMALL, num_hidden_layers=4, intermediate_size_mlp=32, num_local_experts=2, floor_scale=8, attn_scale=0.3
    )
    torch.manual_seed(0)
    return transformers.Llama4ForCausalLM(config).eval()


def ministral3() -> Any:
    transformers: Any = pytest.importorskip("transformers", reason="needs transformers: make test-torch")
    config = transformers.Ministral3Config(**SMALL, num_hidden_layers=2)
    config.rope_parameters |= {"original_max_position_embeddings": 8, "llama_4_scaling_beta": 0.3}
    torch.manual_seed(0)
    return transformers.Ministral3ForCausalLM(config).eval()


def sharpened(model: Any) -> Any:
    """A model whose logits are large enough to tell what was done."""
    for layer in model.model.layers:
        layer.self_attn.q_proj.weight.data.mul_(20)
        layer.self_attn.k_proj.weight.data.mul_(20)
    return model


def ids(count: int = TOKENS) -> Any:
    return torch.randint(3, 99, (1, count), generator=torch.Generator().manual_seed(1))


def run(model: Any, path: Path) -> list[tuple[int, str]]:
    with attn_tui.record(model, path), torch.no_grad():
        model(ids())
    return verdicts(path)


@pytest.mark.slow
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("make", [llama4, ministral3])
def test_an_untouched_model_is_healthy(make: Callable[[], Any], implementation: str, tmp_path: Path) -> None:
    model = sharpened(make())
    model.set_attn_implementation(implementation)
    found = run(model, tmp_path / "a.safetensors")
    assert {verdict for _, verdict in found} == {"healthy"}
    assert [name for name in load(tmp_path / "a.safetensors")[0] if "row_factors" in name]


@pytest.mark.slow
def test_llama_4_without_its_temperature_or_with_it_in_every_layer(tmp_path: Path) -> None:
    model = sharpened(llama4())
    for layer in model.model.layers:
        layer.self_attn.attn_temperature_tuning = False
    found = run(model, tmp_path / "off.safetensors")
    assert [layer for layer, verdict in found if verdict == "scale-by-position"] == [3, 3]
    assert {verdict for layer, verdict in found if layer < 3} == {"healthy"}
    model = sharpened(llama4())
    of_last = model.model.layers[3].self_attn
    model.model.layers[1].self_attn.use_rope = of_last.use_rope  # no rotary embedding, and the temperature
    found = run(model, tmp_path / "wrong.safetensors")
    assert [layer for layer, verdict in found if verdict == "scale-by-position"] == [1, 1]


@pytest.mark.slow
def test_a_generation_has_the_factor_of_each_token(tmp_path: Path) -> None:
    model = sharpened(ministral3())
    path = tmp_path / "a.safetensors"
    with attn_tui.record(model, path), torch.no_grad():
        model.generate(ids(20), max_new_tokens=16, min_new_tokens=16, do_sample=False, pad_token_id=0)
    held, metadata = load(path)
    rows = held["layers.0.attn.q"].shape[2]
    assert rows > 30
    expected = 1 + 0.3 * torch.log(1 + torch.floor(torch.arange(rows) / 8))
    assert torch.allclose(held["layers.0.attn.row_factors"].flatten(), expected, atol=1e-6)
    assert metadata["layers"][0].get("prescaled") is None
    assert {verdict for _, verdict in verdicts(path)} == {"healthy"}
