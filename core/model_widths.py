"""Head widths of real models, the stops when stepping through d_k."""

from __future__ import annotations

from collections.abc import Iterable

from .message import message

MODEL_WIDTHS: dict[int, str] = {
    16: message("the Transformer paper's ablation"),
    32: "all-MiniLM-L6",
    64: message("the Transformer, BERT, GPT-2"),
    80: "Phi-2",
    96: "Phi-3-mini",
    128: "Llama, Mistral",
    192: "DeepSeek-V3",
    256: "Gemma, GPT-J",
    512: "the Transformer paper with one head",
    576: "DeepSeek-V3 with absorbed projections",
}


def landmarks(d_ks: Iterable[int]) -> list[int]:
    """Return the values of d_k that deserve their own row: these widths, and the powers of two beyond them."""
    beyond = max(MODEL_WIDTHS)
    return [d_k for d_k in d_ks if d_k in MODEL_WIDTHS or (d_k > beyond and d_k.bit_count() == 1)]


def next_width(d_k: int, direction: int) -> int:
    """Return the nearest of these widths above or below d_k; d_k itself if there is none."""
    widths = [width for width in MODEL_WIDTHS if (width - d_k) * direction > 0]
    return min(widths, key=lambda width: abs(width - d_k), default=d_k)
