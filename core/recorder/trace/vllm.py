"""vLLM: every backend goes through one operator, and its context says what becomes of the texts in a batch.

The operator gets the new tokens of all texts, packed into one. Those before are in a cache, in the layout of the
backend, so keys are kept here while texts grow.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch

from .fused import FusedCall

_OPERATOR = "vllm::unified_attention_with_output"
_LATENT = "vllm::unified_mla_attention_with_output"
OPERATORS = (_OPERATOR, _LATENT)
# Where vLLM has had the operator and its context.
_MODULES = ("vllm.model_executor.layers.attention.attention", "vllm.attention.layer", "vllm.attention")
_UNQUANTIZED = ("auto", "float16", "half", "bfloat16", "float32", "float")  # numbers of a cache

Kept = tuple[torch.Tensor, torch.Tensor]  # the keys and values of a text, [tokens, heads, d]


@dataclass
class Texts:
    """The keys and values of the recorded texts, by layer, and by the first block of each text in the cache."""

    kept: dict[str, dict[int, Kept]] = field(default_factory=dict[str, dict[int, Kept]])

    def call_of(self, operator: str, given: Mapping[str, Any], most: int) -> tuple[str, FusedCall | str] | None:
        """Return the layer's name and its call, for at most this many texts, or why it cannot be recorded.

        None for a run without texts, by which vLLM measures memory and warms up.
        """
        module = next((sys.modules[name] for name in _MODULES if _has_context(name)), None)
        if module is None:
            return "", "get_attention_context was not found in this version of vLLM"
        name = given["layer_name"]
        name = name if isinstance(name, str) else module._resolve_layer_name(name)
        metadata, layer = module.get_attention_context(name)[:2]
        if metadata is None:
            return None
        if operator == _LATENT:
            return name, "latent attention (MLA) has no keys of single heads"
        return name, _refusal(metadata, layer, given) or self._call(name, metadata, layer, given, most)

    def _call(self, name: str, metadata: Any, layer: Any, given: Mapping[str, Any], most: int) -> FusedCall | str:
        texts, left_out = self._texts(name, metadata, layer, given, most)
        if not texts:
            return "the first keys of its texts were not seen, such as those of a cached prefix"
        impl = layer.impl
        q, seen = _batch([text[0] for text in texts])
        k, there = _batch([text[1] for text in texts])
        visible = seen[:, None, :, None] & there[:, None, None, :]
        slopes, sinks = (getattr(impl, each, None) for each in ("alibi_slopes", "sinks"))
        return FusedCall(
            q=q,
            k=k,
            v=_batch([text[2] for text in texts])[0],
            o=_batch([text[3] for text in texts])[0],
            lse=None,
            scale=float(impl.scale),
            offset=k.shape[2] - q.shape[2] if getattr(metadata, "causal", True) else None,
            window=_window(layer),
            softcap=float(getattr(impl, "logits_soft_cap", None) or 0.0),
            mask=None if bool(visible.all()) else visible,
            slopes=None if slopes is None else torch.as_tensor(slopes, device=q.device),
            sinks=sinks,
            notes=(f"only {len(texts)} of {len(texts) + left_out} texts are kept",) if left_out else (),
        )

    def _texts(
        self, name: str, metadata: Any, layer: Any, given: Mapping[str, Any], most: int
    ) -> tuple[list[tuple[torch.Tensor, ...]], int]:
        """Return q, k, v and o of each recorded text, [tokens, heads, d], and how many are left out.

        Texts that are recorded already come first, so that they go on.
        """
        shared = getattr(layer, "kv_sharing_target_layer_name", None)
        before = self.kept.get(shared or name, {})
        starts, lengths = metadata.query_start_loc.tolist(), metadata.seq_lens.tolist()
        blocks = [int(row[0]) for row in metadata.block_table]
        found: dict[int, tuple[torch.Tensor, ...]] = {}
        for text in sorted(range(len(starts) - 1), key=lambda text: (blocks[text] not in before, blocks[text])):
            new = slice(starts[text], starts[text + 1])
            if len(found) == most or new.start == new.stop:
                continue
            sides = _keys(before.get(blocks[text]), given, new, lengths[text], bool(shared))
            if sides is not None:
                found[blocks[text]] = (given["query"][new], *sides, given["output"][new])
        if not shared:
            self.kept[name] = {block: (text[1], text[2]) for block, text in found.items()}
        count = sum(first < last for first, last in pairwise(starts))
        return [found[block] for block in sorted(found)], count - len(found)


def _has_context(name: str) -> bool:
    return hasattr(sys.modules.get(name), "get_attention_context")


def _refusal(metadata: Any, layer: Any, given: Mapping[str, Any]) -> str:
    """Return why a call cannot be recorded; empty if it can."""
    impl = layer.impl
    backend = type(impl).__name__
    missing = [name for name in ("query_start_loc", "seq_lens", "block_table") if not hasattr(metadata, name)]
    if missing or not hasattr(impl, "scale"):
        return f"{backend} does not say its {', '.join(missing or ['scale'])}"
    if getattr(impl, "attn_type", "decoder") == "encoder_decoder":
        return "the keys of cross-attention are not kept"
    if getattr(layer, "kv_cache_dtype", "auto") not in _UNQUANTIZED:
        return f"its cache is of {layer.kv_cache_dtype}"
    if given.get("output_scale") is not None:
        return "its outputs are quantized"
    if getattr(layer, "attention_chunk_size", None):
        return "it attends within chunks"
    if getattr(impl, "use_alibi_sqrt", False):
        return "it takes the square root of distances"
    other = [name for name in ("dynamic_causal", "mm_prefix_range") if getattr(metadata, name, None) is not None]
    return f"its {other[0]} is not understood" if other else ""


def _window(layer: Any) -> tuple[int, int]:
    """Return how many keys before and after its own a query sees; -1: all."""
    window: Any = getattr(layer, "sliding_window", None) or getattr(layer.impl, "sliding_window", None)
    if window is None or isinstance(window, int):
        return (window - 1 if window is not None and window > 0 else -1), -1
    return int(window[0]), int(window[1])  # flash-attention's


def _keys(kept: Kept | None, given: Mapping[str, Any], new: slice, length: int, shared: bool) -> Kept | None:
    """Return all keys and values of a text; None if some were not seen."""
    if shared:  # another layer has them already
        return kept if kept is not None and len(kept[0]) == length else None
    k, v = (given[side][new].detach().clone() for side in ("key", "value"))
    if len(k) == length:
        return k, v
    if kept is None or len(kept[0]) + len(k) != length:
        return None
    return torch.cat([kept[0], k]), torch.cat([kept[1], v])


def _batch(texts: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return texts, [tokens, heads, d], that end together, [batch, heads, tokens, d], and which tokens are there."""
    wide = max(len(text) for text in texts)
    padded = [torch.nn.functional.pad(text, (0, 0, 0, 0, wide - len(text), 0)) for text in texts]
    counts = torch.tensor([len(text) for text in texts], device=texts[0].device)
    there = torch.arange(wide, device=counts.device) >= wide - counts[:, None]
    return torch.stack(padded).transpose(1, 2), there
