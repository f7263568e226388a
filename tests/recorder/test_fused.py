"""Fused kernels and flex_attention are recorded with what their arguments say."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attn_tui
import pytest
from pytorch import torch
from written import B, D, H, M, N, Written, assert_explained, causal_of, recorded, vectors

F: Any = torch.nn.functional
pytestmark = pytest.mark.filterwarnings("default")

FUSED: dict[str, tuple[int, Mapping[str, Any]]] = {
    "plain": (H, {}),
    "scale": (H, {"scale": 0.7}),
    "bool mask": (H, {"attn_mask": causal_of(N, M, 3)}),
    "additive mask": (H, {"attn_mask": torch.linspace(-1, 1, N * M).reshape(N, M)}),
    "bias by head": (H, {"attn_mask": torch.linspace(-1, 1, H * M).reshape(1, H, 1, M).expand(B, H, N, M)}),
    "grouped": (2, {"enable_gqa": True}),
    "dropout": (H, {"dropout_p": 0.0}),
}


@pytest.mark.parametrize("kind", FUSED)
@pytest.mark.parametrize("inference", [False, True])
def test_scaled_dot_product_attention(kind: str, inference: bool, tmp_path: Path) -> None:
    kv_heads, options = FUSED[kind]

    def function(q: Any, k: Any, v: Any) -> Any:
        with torch.inference_mode(inference):
            return F.scaled_dot_product_attention(q, k, v, **options)

    _, layer, held, _ = recorded(tmp_path, function, *vectors(kv_heads))
    assert layer["scale"] == options.get("scale", 0.25)
    assert layer["kv_heads"] == kv_heads
    assert ("layers.0.attn.bias" in held) == (kind in ("additive mask", "bias by head"))
    assert_explained(layer, held)


@pytest.mark.parametrize("backend", ["MATH", "FLASH_ATTENTION"])
def test_backends_of_scaled_dot_product_attention(backend: str, tmp_path: Path) -> None:
    attention: Any = importlib.import_module("torch.nn.attention")

    def function(q: Any, k: Any, v: Any) -> Any:
        with attention.sdpa_kernel(getattr(attention.SDPBackend, backend)):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    _, layer, held, _ = recorded(tmp_path, function, *vectors(m=N))
    factors = layer.get("prescaled", [1, 1])
    assert layer["scale"] * factors[0] * factors[1] == pytest.approx(0.25)
    assert_explained(layer, held)


@pytest.mark.parametrize(("width", "scaled", "kept"), [(64, 60, 64), (60, 60, 60), (64, 64, 64)])
def test_only_components_that_a_kernel_added_are_left_out(width: int, scaled: int, kept: int, tmp_path: Path) -> None:
    """PyTorch pads 60 components with zeros to 64, and scales by 1/√60; so may a program scale 64 of its own."""
    q, k, v = (torch.randn(1, 2, 16, width, generator=torch.Generator().manual_seed(side)) for side in range(3))

    def function(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, scale=scaled**-0.5)

    _, layer, held, _ = recorded(tmp_path, function, q, k, v)
    assert (layer["d_k"], layer["scale"]) == (kept, pytest.approx(scaled**-0.5))
    assert torch.equal(held["layers.0.attn.q"], q)
    assert_explained(layer, held)


def biased(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    return s + (j - i) * 0.1 * (h + 1)


def capped(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    return 3.0 * torch.tanh(s / 3.0)


def bent(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    return s.abs() - 0.1 * i


def not_later(b: Any, h: Any, i: Any, j: Any) -> Any:
    return i >= j


@pytest.mark.parametrize("score_mod", [None, biased, capped, bent])
def test_flex_attention(score_mod: Any, tmp_path: Path) -> None:
    flex: Any = pytest.importorskip("torch.nn.attention.flex_attention")
    block = flex.create_block_mask(not_later, None, None, 32, 32, device="cpu")

    def function(q: Any, k: Any, v: Any) -> Any:
        with torch.compiler.set_stance("force_eager"):
            return flex.flex_attention(q, k, v, score_mod=score_mod, block_mask=block)

    _, layer, held, _ = recorded(tmp_path, function, *vectors(n=32, m=32))
    assert layer["causal"] is True
    assert layer["scale"] == 0.25
    assert layer.get("softcap") == (3.0 if score_mod is capped else None)
    assert_explained(layer, held, 5e-6)


def missed(module: Any, path: Path, *tensors: Any) -> str:
    """Return the summary of a recording in which something was missed."""
    with pytest.warns(RuntimeWarning), attn_tui.record(module, path / "a.safetensors") as recorder:
        module(*tensors)
    assert not recorder.complete
    return recorder.summary


def test_queries_that_nothing_was_written_to_are_left_out(tmp_path: Path) -> None:
    """sglang's rows of a cached prefix are memory as it was found."""
    q, k, v = vectors(m=N)
    q[:, :, :5] = torch.tensor([1e17, 0.0, float("nan"), 3.0, -1e17])[:, None]

    def function(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    _, layer, held, _ = recorded(tmp_path, function, q, k, v)
    assert held["layers.0.attn.rows"].tolist() == [*range(5, N)]
    assert "5 queries are left out" in layer["notes"]
    assert_explained(layer, held)
    q[:, :, 6] = float("nan")  # a query that went wrong is no such memory
    _, layer, _, _ = recorded(tmp_path, function, q[:, :, 5:], k, v)
    assert "left out" not in layer["notes"]


def heads_first(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, scale=0.3)


@torch.library.custom_op("somebody::my_attention", mutates_args=())
def my_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return heads_first(q, k, v)


@torch.library.custom_op("somebody::attention_with_lse", mutates_args=())
def attention_with_lse(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    return heads_first(q, k, v), torch.logsumexp(q @ k.mT * 0.3, -1)


def test_an_unknown_operator_without_a_log_sum_exp_is_not_recorded(tmp_path: Path) -> None:
    summary = missed(Written(torch.ops.somebody.my_attention), tmp_path, *vectors(m=N))
    assert "somebody::my_attention: unknown operator" in summary
    assert not (tmp_path / "a.safetensors").exists()


def test_an_unknown_operator_proves_the_order_of_its_axes_by_its_log_sum_exp(tmp_path: Path) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return torch.ops.somebody.attention_with_lse(q, k, v, 0.3)[0]

    q, k, v = vectors()
    _, layer, held, _ = recorded(tmp_path, function, q, k, v)
    assert (layer["heads"], layer["scale"]) == (H, 0.3)
    assert torch.equal(held["layers.0.attn.q"], q)
    assert_explained(layer, held)


def test_an_unknown_operator_whose_log_sum_exp_is_another_one_is_not_recorded(tmp_path: Path) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return torch.ops.somebody.attention_with_lse(q, k, v, 0.7)[0]

    assert "unknown operator" in missed(Written(function), tmp_path, *vectors())


ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"cu_seq_q": torch.tensor([0, 5, N])}, "packs texts"),
    ({"seqused_k": torch.tensor([3])}, "a part of the keys"),
    ({"block_table": torch.tensor([[3]])}, "paged cache"),
    ({"q_descale": torch.tensor([3.0])}, "q_descale"),
]


@torch.library.custom_op("flash_attn::_for_tests", mutates_args=())
def for_tests(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cu_seq_q: torch.Tensor | None = None,
    seqused_k: torch.Tensor | None = None, block_table: torch.Tensor | None = None,
    q_descale: torch.Tensor | None = None, window_size: list[int] | None = None, dropout_p: float = 0.0,
    compute_log_sumexp: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    z = q @ k.mT / D**0.5
    if window_size is not None:
        distance = (torch.arange(z.shape[-2]) + z.shape[-1] - z.shape[-2])[:, None] - torch.arange(z.shape[-1])
        z = z.masked_fill((distance > window_size[0]) | (-distance > window_size[1]), -torch.inf)
    weights = torch.dropout(torch.softmax(z, -1), dropout_p, train=dropout_p > 0)
    lse = torch.logsumexp(z, -1) if compute_log_sumexp else z.new_zeros(0)
    return (weights @ v).transpose(1, 2).contiguous(), lse


@pytest.mark.parametrize(("given", "why"), ARGUMENTS)
def test_an_argument_that_changes_attention_is_named(given: dict[str, Any], why: str, tmp_path: Path) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return torch.ops.flash_attn._for_tests(q, k, v, **given)[0]

    assert why in missed(Written(function), tmp_path, *(x.transpose(1, 2) for x in vectors()))


def test_a_window_that_is_one_argument(tmp_path: Path) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return torch.ops.flash_attn._for_tests(q, k, v, window_size=[4, 0])[0]

    _, layer, held, _ = recorded(tmp_path, function, *(x.transpose(1, 2) for x in vectors(m=N)))
    assert (layer["causal"], layer["window"]) == (True, 5)
    assert "verified to rounding" in layer["notes"]
    assert "layers.0.attn.lse" in held


def test_dropout_in_a_kernel_does_not_hide_its_log_sum_exp(tmp_path: Path) -> None:
    """The generator of random numbers is where it would have been, and outputs are the program's."""

    def function(q: Any, k: Any, v: Any) -> Any:
        torch.manual_seed(0)
        out = torch.ops.flash_attn._for_tests(q, k, v, dropout_p=0.5)[0]
        return out + torch.rand(1)

    _, layer, held, _ = recorded(tmp_path, function, *(x.transpose(1, 2) for x in vectors()))
    assert "verified to rounding" in layer["notes"]
    assert torch.isfinite(held["layers.0.attn.lse"]).all()


def test_a_product_of_8_bits_is_named(tmp_path: Path) -> None:
    one = torch.tensor(1.0)

    def function(q: Any, k: Any, v: Any) -> Any:
        q, k = (x[0, 0].to(torch.float8_e4m3fn) for x in (q, k))
        z = torch._scaled_mm(q, k.t(), one, one, out_dtype=torch.bfloat16)
        return torch.softmax(z.float() * 0.25, -1) @ v[0, 0]

    assert "8-bit" in missed(Written(function), tmp_path, *vectors(n=16, m=16))


def test_products_shortened_to_tf32_leave_no_bias(tmp_path: Path) -> None:
    def shortened(x: Any) -> Any:
        return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)

    def function(q: Any, k: Any, v: Any) -> Any:
        z = q @ k.mT
        z.numpy()[...] = (shortened(q) @ shortened(k).mT).numpy()  # as a GPU computes it
        return torch.softmax(z * 0.25, -1) @ v

    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        _, layer, held, _ = recorded(tmp_path, function, *vectors())
    finally:
        torch.set_float32_matmul_precision(before)
    assert "layers.0.attn.bias" not in held
    assert layer["scores"] == "tfloat32"
    _, layer, held, _ = recorded(tmp_path, function, *vectors())
    assert "layers.0.attn.bias" in held
