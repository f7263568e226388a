"""Tiny models of many architectures with random weights, and the multiplier each one should have."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytorch import torch


@dataclass(frozen=True)
class Architecture:
    """A model class of transformers, the config that makes it small, and what its scores are multiplied by."""

    model: str
    config: Mapping[str, Any]
    scale: float | None  # of q·k before any factor; None if layers differ
    inputs: str = "ids"
    calls: int = 2
    sdpa: bool = True
    nested: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Any])  # configs of parts


LLAMA = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 99,
    "max_position_embeddings": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
GQA = {**LLAMA, "num_key_value_heads": 2}
HEAD = {**GQA, "head_dim": 16}
GPT = {
    "n_embd": 64,
    "n_layer": 2,
    "n_head": 4,
    "vocab_size": 99,
    "n_positions": 128,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
BERT = {**LLAMA, "type_vocab_size": 2}
VIT = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 32,
    "patch_size": 8,
}  # fmt: skip
MOE = {"num_experts": 4, "num_experts_per_tok": 2, "num_local_experts": 4, "moe_intermediate_size": 32}
BART = {
    "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,    "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "vocab_size": 99,
    "max_position_embeddings": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 2,
}  # fmt: skip
MLA = {
    **LLAMA, "num_key_value_heads": 4, "kv_lora_rank": 32, "q_lora_rank": 32, "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8, "v_head_dim": 16, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1,
    "topk_group": 1, "n_shared_experts": 1, "first_k_dense_replace": 1, "moe_intermediate_size": 32,
}  # fmt: skip
NO_FLEX = {  # that transformers does not run with flex_attention on a CPU
    "Olmoe", "StableLm", "Persimmon", "GptOss", "GPT2LMHeadModel", "GPTNeo", "GPTJ", "GPTBigCode", "CodeGen", "Bloom",
    "Falcon", "Mpt", "T5", "DebertaV2", "MPNet", "Beit", "Swin", "DeepseekV4",
}  # fmt: skip
SIXTEENTH = 0.25  # 1/√16, the width of most heads here

ARCHITECTURES = (
    Architecture("Llama", GQA, SIXTEENTH),
    Architecture("Mistral", {**HEAD, "sliding_window": 16}, SIXTEENTH),
    Architecture("Mixtral", {**GQA, **MOE}, SIXTEENTH),
    Architecture("Qwen2", {**GQA, "use_sliding_window": True, "sliding_window": 16, "max_window_layers": 1},
                 SIXTEENTH),
    Architecture("Qwen3", HEAD, SIXTEENTH),
    Architecture("Qwen3Moe", {**HEAD, **MOE}, SIXTEENTH),
    Architecture("Gemma", HEAD, SIXTEENTH),
    Architecture("Gemma2", {**HEAD, "sliding_window": 16, "query_pre_attn_scalar": 24}, 24**-0.5, sdpa=False),
    Architecture("Gemma3ForCausalLM", {**HEAD, "sliding_window": 16, "query_pre_attn_scalar": 24}, 24**-0.5),
    Architecture("Phi", LLAMA, SIXTEENTH),
    Architecture("Phi3", {**GQA, "sliding_window": 16}, SIXTEENTH),
    Architecture("Granite", {**GQA, "attention_multiplier": 0.03}, 0.03),
    Architecture("Olmo", GQA, SIXTEENTH),
    Architecture("Olmo2", GQA, SIXTEENTH),
    Architecture("Olmoe", {**GQA, **MOE}, SIXTEENTH),
    Architecture("Cohere", {**GQA, "use_qk_norm": True}, SIXTEENTH),
    Architecture("Cohere2", {**GQA, "sliding_window": 16}, SIXTEENTH),
    Architecture("StableLm", GQA, SIXTEENTH),
    Architecture("Starcoder2", {**GQA, "sliding_window": 16}, SIXTEENTH),
    Architecture("Persimmon", LLAMA, SIXTEENTH),
    Architecture("Nemotron", HEAD, SIXTEENTH),
    Architecture("SmolLM3", GQA, SIXTEENTH),
    Architecture("Glm", {**HEAD, "partial_rotary_factor": 0.5}, SIXTEENTH),
    Architecture("Glm4", {**HEAD, "partial_rotary_factor": 0.5}, SIXTEENTH),
    Architecture("Helium", HEAD, SIXTEENTH),
    Architecture("GptOss", {
        **HEAD, **MOE, "sliding_window": 16,
        "rope_parameters": {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "beta_fast": 32.0,
                            "beta_slow": 1.0, "truncate": False, "original_max_position_embeddings": 64},
    }, 0.25 * 1.3465735903**2, sdpa=False),
    Architecture("DeepseekV3", MLA, 24**-0.5),
    Architecture("DeepseekV2", {**MLA, "topk_method": "greedy"}, 24**-0.5),
    # Two of its six softmaxes have scores: others mix residual streams, and weigh tokens that one key stands for.
    Architecture("DeepseekV4", {**LLAMA, **MOE, "head_dim": 16, "q_lora_rank": 32, "o_lora_rank": 16, "o_groups": 2,
                                "n_routed_experts": 4, "sliding_window": 16,
                                "layer_types": ["compressed_sparse_attention", "heavily_compressed_attention"],
                                "compress_rates": {"compressed_sparse_attention": 4,
                                                   "heavily_compressed_attention": 8}}, SIXTEENTH, sdpa=False),
    Architecture("Llama4ForCausalLM", {**HEAD, **MOE, "intermediate_size_mlp": 96, "attention_chunk_size": 16,
                                       "moe_layers": []}, SIXTEENTH),
    Architecture("GPT2LMHeadModel", GPT, SIXTEENTH),
    Architecture("GPTNeo", {"hidden_size": 64, "num_layers": 2, "num_heads": 4, "vocab_size": 99, "window_size": 16,
                            "attention_types": [[["global", "local"], 1]], "max_position_embeddings": 128,
                            "bos_token_id": 1, "eos_token_id": 2}, 1.0, sdpa=False),
    Architecture("GPTJ", {**GPT, "rotary_dim": 8}, SIXTEENTH, sdpa=False),
    Architecture("GPTNeoX", LLAMA, SIXTEENTH),
    Architecture("GPTBigCode", GPT, SIXTEENTH),
    Architecture("CodeGen", {**GPT, "rotary_dim": 8}, SIXTEENTH, sdpa=False),
    Architecture("OPT", {**LLAMA, "ffn_dim": 96, "word_embed_proj_dim": 64}, SIXTEENTH),
    Architecture("Bloom", {"hidden_size": 64, "n_layer": 2, "n_head": 4, "vocab_size": 99}, SIXTEENTH, sdpa=False),
    Architecture("Falcon", {**LLAMA, "new_decoder_architecture": False, "multi_query": True, "alibi": False},
                 SIXTEENTH),
    Architecture("Mpt", {"d_model": 64, "n_layers": 2, "n_heads": 4, "vocab_size": 99, "max_seq_len": 128}, SIXTEENTH,
                 sdpa=False),
    Architecture("T5", {"d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4, "vocab_size": 99,
                        "decoder_start_token_id": 0}, 1.0, "seq2seq", 6, sdpa=False),
    Architecture("Bart", BART, SIXTEENTH, "seq2seq", 6),
    Architecture("Pegasus", BART, SIXTEENTH, "seq2seq", 6),
    Architecture("Whisper", {**BART, "num_mel_bins": 8, "max_source_positions": 32, "max_target_positions": 64},
                 SIXTEENTH, "audio", 6),
    Architecture("Bert", BERT, SIXTEENTH, "padded"),
    Architecture("Roberta", {**BERT, "max_position_embeddings": 130}, SIXTEENTH, "padded"),
    Architecture("Albert", {**BERT, "embedding_size": 32}, SIXTEENTH, "padded"),
    Architecture("DistilBert", {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 96, "vocab_size": 99},
                 SIXTEENTH, "padded"),
    Architecture("Electra", {**BERT, "embedding_size": 64}, SIXTEENTH, "padded"),
    Architecture("DebertaV2", {**BERT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"],
                               "position_buckets": 16, "pooler_hidden_size": 64}, 48**-0.5, "padded", sdpa=False),
    Architecture("Esm", {**BERT, "position_embedding_type": "rotary", "max_position_embeddings": 130,
                         "mask_token_id": 3, "token_dropout": False}, SIXTEENTH, "padded"),
    Architecture("ModernBert", {**BERT, "local_attention": 16, "global_attn_every_n_layers": 2, "cls_token_id": 1,
                                "sep_token_id": 2}, SIXTEENTH, "padded"),
    Architecture("MPNet", BERT, SIXTEENTH, "padded", sdpa=False),
    Architecture("ViT", VIT, SIXTEENTH, "image"),
    Architecture("Deit", VIT, SIXTEENTH, "image"),
    Architecture("Beit", {**VIT, "use_relative_position_bias": True}, SIXTEENTH, "image"),
    Architecture("Dinov2", VIT, SIXTEENTH, "image"),
    Architecture("Swin", {"image_size": 32, "patch_size": 4, "embed_dim": 32, "depths": [2, 2], "num_heads": [2, 4],
                          "window_size": 4}, SIXTEENTH, "image", 4, sdpa=False),
    Architecture("CLIPVisionModel", VIT, SIXTEENTH, "image"),
    Architecture("CLIPTextModel", LLAMA, SIXTEENTH),
    Architecture("SiglipVisionModel", {**VIT, "vision_use_head": False}, SIXTEENTH, "image"),
)  # fmt: skip


def implementations(architecture: Architecture) -> list[str]:
    """Return the implementations of attention that the model has."""
    others = {"sdpa": architecture.sdpa, "flex_attention": architecture.model not in NO_FLEX}
    return ["eager", *(name for name, there in others.items() if there)]


def build(architecture: Architecture, implementation: str) -> torch.nn.Module:
    """Return the model with this implementation of attention."""
    kind = _model_class(importlib.import_module("transformers"), architecture.model)
    config = kind.config_class(**architecture.config)
    config._attn_implementation = implementation
    torch.manual_seed(0)
    model = kind._from_config(config, attn_implementation=implementation)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4) if parameter.dim() > 1 else None  # scores of a size that shows mistakes
    return model.eval()


def _model_class(transformers: Any, name: str) -> Any:
    names = {
        "Deit": "DeiTModel", "ViT": "ViTModel", "Beit": "BeitModel", "Dinov2": "Dinov2Model", "Swin": "SwinModel",
        "T5": "T5Model", "Bart": "BartModel", "Pegasus": "PegasusModel", "Whisper": "WhisperModel",
        "DebertaV2": "DebertaV2Model", "CodeGen": "CodeGenModel", "GPTJ": "GPTJModel",
    }  # fmt: skip
    return getattr(transformers, name if hasattr(transformers, name) else names.get(name, name + "Model"))


def inputs(kind: str) -> dict[str, torch.Tensor]:
    """Return the model's inputs: two texts of 40 tokens, an image, or a sound."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(3, 99, (2, 40), generator=generator)
    if kind == "padded":
        mask = torch.ones_like(ids)
        mask[1, 30:] = 0
        return {"input_ids": ids, "attention_mask": mask}
    if kind == "seq2seq":
        return {"input_ids": ids, "decoder_input_ids": ids[:, :24]}
    if kind == "image":
        return {"pixel_values": torch.randn(2, 3, 32, 32, generator=generator)}
    if kind == "audio":
        return {"input_features": torch.randn(2, 8, 64, generator=generator), "decoder_input_ids": ids[:, :24]}
    return {"input_ids": ids}


def run(model: torch.nn.Module, kind: str) -> torch.Tensor:
    """Return the model's first output."""
    with torch.no_grad():
        return model(**inputs(kind))[0]
