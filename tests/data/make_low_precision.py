"""Make low_precision.npz: attention in few bits as PyTorch computes it on a CPU.

Run `python tests/data/make_low_precision.py` with PyTorch installed; it is not a dependency of the project. The file
in the repository was made with PyTorch 2.13.0 on one thread of a CPU with AVX-512.

Names in the file are format/case/quantity. All numbers are stored as float32, which holds those of the formats
exactly.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

TYPES: dict[str, Any] = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float8_e4m3fn": torch.float8_e4m3fn,
    "float8_e5m2": torch.float8_e5m2,
}
LARGEST = {"float8_e4m3fn": 448.0, "float8_e5m2": 57_344.0}
FACTOR = {"float8_e4m3fn": 2.0**8, "float8_e5m2": 2.0**15}  # FlashAttention-3's Max_offset is 8
ROWS, KEYS, WIDTH = 12, 40, 64

found: dict[str, Any] = {}


def keep(name: str, **tensors: Any) -> None:
    for quantity, tensor in tensors.items():
        found[f"{name}/{quantity}"] = tensor.detach().to(torch.float32).numpy()


def eager(name: str, case: str, q: Any, k: Any, multiplier: float, cap: float = 0.0, causal: bool = False) -> None:
    """One operation after another, as transformers' eager attention; the mask is added after the soft-cap."""
    q, k = q.to(TYPES[name]).requires_grad_(), k.to(TYPES[name])
    scores = q @ k.T
    logits = scores * multiplier
    if cap:
        logits = logits / cap
        logits = torch.tanh(logits)
        logits = logits * cap
    seen = torch.ones_like(scores, dtype=torch.bool)
    if causal:
        seen = seen.tril()
    weights = torch.softmax(logits.masked_fill(~seen, -torch.inf), dim=-1)
    v, g = (torch.randn(each, 32).to(TYPES[name]) for each in (KEYS, ROWS))
    (weights @ v * g).sum().backward()
    gradient = q.grad.float().norm(dim=-1)
    keep(f"{name}/{case}", q=q, k=k, scores=scores, logits=logits, weights=weights, v=v, g=g, gradient=gradient)
    found[f"{name}/{case}/setting"] = np.array([multiplier, cap, causal])


def on_vectors(name: str, case: str, q: Any, k: Any) -> None:
    """d_k^(−1/4) on q and k, as openai/whisper, model.py; bit for bit what the math backend computes in 16 bits."""
    q, k, factor = q.to(TYPES[name]).requires_grad_(), k.to(TYPES[name]), WIDTH**-0.25
    scores = (q * factor) @ (k * factor).T
    weights = torch.softmax(scores, dim=-1)
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)  # on a CPU too; otherwise it computes in float32
    with sdpa_kernel(SDPBackend.MATH):
        output = scaled_dot_product_attention(q[None, None], k[None, None], torch.eye(KEYS).to(q.dtype)[None, None])
    assert torch.equal(output[0, 0], weights)
    v, g = (torch.randn(each, 8).to(TYPES[name]) for each in (KEYS, ROWS))
    (weights @ v * g).sum().backward()
    keep(f"{name}/{case}", q=q, k=k, scores=scores, weights=weights, v=v, g=g, gradient=q.grad.float().norm(dim=-1))


def fused(name: str) -> None:
    """The weights that meet the values in the fused kernel: its output, rounded, for values that are an identity."""
    q, k = (torch.randn(1, 1, each, WIDTH).to(TYPES[name]) for each in (ROWS, WIDTH))
    v = torch.eye(WIDTH).to(TYPES[name])[None, None]
    for case, multiplier in (("fused", 0.125), ("fused unscaled", 1.0)):
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            output = scaled_dot_product_attention(q, k, v, scale=multiplier)
        keep(f"{name}/{case}", q=q[0, 0], k=k[0, 0], output=output[0, 0])
        found[f"{name}/{case}/setting"] = np.array([multiplier])


def float8(name: str) -> None:
    """The steps of FlashAttention-3 with PyTorch's conversions: no CPU kernel computes attention in float8."""
    numbers = torch.cat([torch.randn(400) * 2.0 ** torch.randint(-12, 8, (400,)), torch.arange(-64, 64) / 16])
    numbers = numbers.clamp(-LARGEST[name], LARGEST[name])
    keep(f"{name}/numbers", numbers=numbers, rounded=numbers.to(TYPES[name]))
    q, k = torch.randn(ROWS, WIDTH) * 3, torch.randn(KEYS, WIDTH) * 0.01
    stored: list[Any] = []
    for tensor in (q, k):
        scale = tensor.abs().max() / LARGEST[name]
        stored.append((tensor / scale).to(TYPES[name]).float() * scale)
    for case, multiplier in (("fused", 1.0), ("fused sharp", 30.0)):
        scores = stored[0] @ stored[1].T
        logits = scores * multiplier
        powers = torch.exp(logits - logits.max(dim=-1, keepdim=True).values)
        rounded = (powers * FACTOR[name]).to(TYPES[name]).float() / FACTOR[name]
        weights = rounded / powers.sum(dim=-1, keepdim=True)
        keep(f"{name}/{case}", q=q, k=k, stored_q=stored[0], stored_k=stored[1], weights=weights)
        found[f"{name}/{case}/setting"] = np.array([multiplier])


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    for name in ("float16", "bfloat16"):
        # Sums of these are exact in float32 in any order.
        eighths = [torch.randint(-16, 17, (each, WIDTH)) / 8 for each in (ROWS, KEYS)]
        normal = [torch.randn(each, WIDTH) for each in (ROWS, KEYS)]
        large = [torch.randint(-16, 17, (each, WIDTH)) * 8.0 for each in (ROWS, KEYS)]
        eager(name, "exact sums", *eighths, 1 / math.sqrt(70))
        eager(name, "exact sums, causal", *eighths, 1.0, causal=True)
        eager(name, "exact sums, soft-cap", *eighths, 0.125, cap=50.0)
        eager(name, "normal", *normal, 0.125)
        eager(name, "normal, unscaled", *normal, 1.0)
        eager(name, "normal, soft-cap", *normal, 0.3, cap=5.0)
        eager(name, "overflow", *large, 0.125)
        fused(name)
    for name in LARGEST:
        float8(name)
    for name in ("float16", "bfloat16"):
        q, k = (torch.randn(each, WIDTH) for each in (ROWS, KEYS))
        on_vectors(name, "on vectors", q, k)
        on_vectors(name, "on vectors, large", 75 * q, 75 * k)
    np.savez_compressed(Path(__file__).with_name("low_precision.npz"), **found)


if __name__ == "__main__":
    main()
