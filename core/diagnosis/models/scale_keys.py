"""SCALE_KEYS: the keys of configurations that change the scale of attention, and which of them are applied.

They are those of the configurations and modeling files of transformers 5.24, and of a few models whose code is beside
their weights. A key that is not applied makes the expected scale unknown: see `unapplied`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ScaleKey:
    """Keys that together change the scale in one way."""

    keys: tuple[str, ...]  # a dot follows the key of an object that has them
    models: str
    effect: str  # in Markdown
    applied: bool = True


def _row(keys: str, models: str, effect: str, applied: bool = True) -> ScaleKey:
    return ScaleKey(tuple(keys.split()), models, effect, applied)


SCALE_KEYS: tuple[ScaleKey, ...] = (
    _row("head_dim d_kv hidden_size num_attention_heads", "almost all", "1/√(width of a head)"),
    _row("qk_nope_head_dim qk_rope_head_dim", "DeepSeek-V2 and V3, Mistral 4, …", "1/√(their sum)"),
    _row("query_pre_attn_scalar", "Gemma 2 and 3, T5Gemma, VaultGemma, Step 3.7", "1/√(it)"),
    _row("attention_multiplier", "Granite, HyperCLOVA X", "the scale"),
    _row("attn_config.softmax_scale", "MPT", "the scale"),
    _row("scale_attn_weights", "GPT-2, GPT-BigCode, ImageGPT, Decision Transformer", "`false`: no scale"),
    _row("scale_attn_by_inverse_layer_idx", "GPT-2, ImageGPT, Decision Transformer", "÷ (layer + 1)"),
    _row("pos_att_type", "DeBERTa", "1/√(width × terms of a score)"),
    _row("rope_parameters.mscale_all_dim rope_parameters.factor kv_lora_rank", "DeepSeek-V2 and V3, Mistral 4, …",
         "× (1 + 0.1·mscale_all_dim·ln factor)²"),
    _row("rope_parameters.attention_factor rope_parameters.mscale", "YaRN, LongRoPE",
         "a factor inside q and k, if they are known to contain it"),
    _row("key_multiplier", "Falcon-H1", "k × it"),
    _row("qk_scale_factor", "Muse Glimmer, Muse Spark", "q × it"),
    _row("attn_temperature_tuning attn_scale floor_scale no_rope_layers no_rope_layer_interval", "Llama 4",
         "q × (1 + attn_scale·ln(1 + ⌊(position + 1)/floor_scale⌋)) in layers without rotary embedding"),
    _row("rope_parameters.llama_4_scaling_beta rope_parameters.original_max_position_embeddings",
         "Ministral 3, Mistral 4", "q × (1 + beta·ln(1 + ⌊position/original_max_position_embeddings⌋))"),
    _row("log_scaling_n_floor log_scaling_alpha layer_types", "Inkling",
         "q × (1 + alpha·ln max(1, (position + 1)/n_floor)) in layers without a window"),
    _row("attn_logit_softcapping attention_logit_cap conf_attention_logit_cap",
         "Gemma 2, VideoPrism, audio of Gemma 3n and 4", "a soft-cap of the logits"),
    _row("use_logn_attn", "Qwen", "q × the logarithm of the position to the base seq_length", applied=False),
    _row("mup_use_scaling mup_attn_multiplier", "Phi-3-small", "1/(width of a head), times a number", applied=False),
    _row("scale_qk_dot_by_d mup_scale_qk_dot_by_d", "Cerebras-GPT, BTLM", "1/(width of a head)", applied=False),
)  # fmt: skip

# Types whose models learn their scale: Swin 2 a temperature of each head, TimesFM and the audio encoders of Gemma 3n
# and 4 a factor of each component, Mistral Large 4 one of each head that grows with ln(position + 1).
LEARNED = ("swinv2", "swin2sr", "timesfm", "timesfm2_5", "gemma3n_audio", "gemma4_audio", "mistral_large4")


def unapplied(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys of a configuration that change the scale in a way that is not applied.

    A key without effect does not count: one that is missing, null, false, 0 or 1.
    """
    named = (key for row in SCALE_KEYS if not row.applied for key in row.keys)
    return tuple(key for key in named if values.get(key) not in (None, False, 0, 1) or values.get(key) is True)
