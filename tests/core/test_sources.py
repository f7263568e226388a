"""Presets and scale rules against the numbers of their sources, written out here.

A comment names the repository, the file and the line or the key, with the commit that a line number is of. Lines of
transformers are of version 5.24.0, and those of PyTorch of 2.13.0.
"""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from attn_tui.core.attention.cost import cost
from attn_tui.core.attention.presets import PRESETS
from attn_tui.core.models import MODELS, SET_BY_MODEL, Model
from attn_tui.core.parameters import FIELD, Parameters, model_title
from attn_tui.core.scales import SCALE_RULES, RuleSetting, multiplier
from attn_tui.core.tables.cost import cost_blocks, cost_table
from attn_tui.core.tables.table import written
from cases import for_each

# d_model, heads, key heads, d_k, layers, context, bias
SHAPES: dict[str, tuple[int, int, int, int, int, int, str]] = {
    # transformers, configuration_bert.py:45-52: hidden_size 768, num_attention_heads 12, num_hidden_layers 12,
    # max_position_embeddings 512
    "bert-base": (768, 12, 12, 64, 12, 512, "all"),
    # google-research/bert, README.md: BERT-Large, 24-layer, 1024-hidden, 16-heads
    "bert-large": (1_024, 16, 16, 64, 24, 512, "all"),
    # sentence-transformers/all-MiniLM-L6-v2, config.json: hidden_size, num_attention_heads, num_hidden_layers
    "minilm-l6": (384, 12, 12, 32, 6, 512, "all"),
    # karpathy/nanoGPT, model.py, from_pretrained: n_layer=12, n_head=12, n_embd=768; block_size 1024, bias True
    "gpt2": (768, 12, 12, 64, 12, 1_024, "all"),
    # the same: n_layer=48, n_head=25, n_embd=1600
    "gpt2-xl": (1_600, 25, 25, 64, 48, 1_024, "all"),
    # arXiv 2005.14165, table 2.1: n_layers 96, d_model 12288, n_heads 96, d_head 128; all models use n_ctx 2048
    "gpt3-175b": (12_288, 96, 96, 128, 96, 2_048, "all"),
    # arXiv 2205.01068, table 1: 13B has 40 layers, 40 heads, d_model 5120; sequences of 2048
    "opt-13b": (5_120, 40, 40, 128, 40, 2_048, "all"),
    # arXiv 2204.02311, table 1: 118 layers, 48 heads, d_model 18432; multi-query, heads 256 wide, sequences of 2048
    "palm-540b": (18_432, 48, 1, 256, 118, 2_048, "none"),
    # Lightning-AI/litgpt, litgpt/config.py:487-497 (26857050)
    "falcon-7b": (4_544, 71, 1, 64, 32, 2_048, "none"),
    # litgpt/config.py:698-705, with the defaults of lines 30, 32 and 46: block_size 4096, n_embd 4096, n_head 32
    "llama-2-7b": (4_096, 32, 32, 128, 32, 4_096, "none"),
    # litgpt/config.py:728-738
    "llama-2-70b": (8_192, 64, 8, 128, 80, 4_096, "none"),
    # litgpt/config.py:758-768
    "llama-3-8b": (4_096, 32, 8, 128, 32, 8_192, "none"),
    # litgpt/config.py:814-825
    "llama-3.1-70b": (8_192, 64, 8, 128, 80, 131_072, "none"),
    # litgpt/config.py:834-845
    "llama-3.1-405b": (16_384, 128, 8, 128, 126, 131_072, "none"),
    # litgpt/config.py:2095-2103
    "mistral-7b": (4_096, 32, 8, 128, 32, 32_768, "none"),
    # NVIDIA/NeMo, nemo/collections/llm/gpt/model/mistral.py, MistralNeMo2407Config12B: num_layers, hidden_size,
    # kv_channels, with num_attention_heads 32 and num_query_groups 8 of MistralConfig7B; its model card: 128k context
    "mistral-nemo-12b": (5_120, 32, 8, 128, 40, 131_072, "none"),
    # litgpt/config.py:2327-2339, attn_bias=True; Qwen/Qwen2.5-7B-Instruct, config.json: max_position_embeddings
    "qwen2.5-7b": (3_584, 28, 4, 128, 28, 32_768, "qkv"),
    # litgpt/config.py:2390-2402, attn_bias=True; Qwen/Qwen2.5-72B-Instruct, config.json: max_position_embeddings
    "qwen2.5-72b": (8_192, 64, 8, 128, 80, 32_768, "qkv"),
    # litgpt/config.py:2720-2737
    "qwen3-0.6b": (1_024, 16, 8, 128, 28, 40_960, "none"),
    # litgpt/config.py:2785-2796
    "qwen3-8b": (4_096, 32, 8, 128, 36, 40_960, "none"),
    # litgpt/config.py:2835-2852
    "qwen3-32b": (5_120, 64, 8, 128, 64, 40_960, "none"),
    # google/gemma_pytorch, gemma/config.py:108-116 (014acb7), with the defaults of lines 52 and 64
    "gemma-2b": (2_048, 8, 1, 256, 18, 8_192, "none"),
    # gemma/config.py:52-64
    "gemma-7b": (3_072, 16, 16, 256, 28, 8_192, "none"),
    # gemma/config.py:161-170, with the default of line 52
    "gemma-2-27b": (4_608, 32, 16, 128, 46, 8_192, "none"),
    # gemma/config.py:281-288 and 304
    "gemma-3-27b": (5_376, 32, 16, 128, 62, 131_072, "none"),
    # litgpt/config.py:1817-1825, with the default n_head 32 of line 46
    "phi-3-mini": (3_072, 32, 32, 96, 32, 4_096, "none"),
    # openai/gpt-oss-20b, config.json: num_hidden_layers 24, otherwise as the next
    "gpt-oss-20b": (2_880, 64, 8, 64, 24, 131_072, "all"),
    # transformers, configuration_gpt_oss.py:51-63: num_hidden_layers, hidden_size, head_dim, num_attention_heads,
    # num_key_value_heads, max_position_embeddings, attention_bias
    "gpt-oss-120b": (2_880, 64, 8, 64, 36, 131_072, "all"),
    # transformers, configuration_deepseek_v3.py:82-96 (attention_bias False); deepseek-ai/DeepSeek-V3, config.json:
    # max_position_embeddings
    "deepseek-v3": (7_168, 128, 128, 192, 61, 163_840, "none"),
    # moonshotai/Kimi-K2-Instruct, config.json, of the same model_type
    "kimi-k2": (7_168, 64, 64, 192, 61, 131_072, "none"),
}


# v_head_dim, kv_lora_rank, q_lora_rank and qk_rope_head_dim of both
LATENT_WIDTHS = {"deepseek-v3": (128, 512, 1536, 64), "kimi-k2": (128, 512, 1536, 64)}

# What the models multiply the scores of q and k by, if not by 1/√d_k, and the norm of q and k before that.
SCALES = {
    # transformers, modeling_qwen3.py, Qwen3Attention: head_dim**-0.5 after q_norm and k_norm over head_dim
    "qwen3-0.6b": (128**-0.5, "rms"),
    "qwen3-8b": (128**-0.5, "rms"),
    "qwen3-32b": (128**-0.5, "rms"),
    # google/gemma_pytorch, gemma/config.py:173 (014acb7): query_pre_attn_scalar 144, 4608/32
    "gemma-2-27b": (144**-0.5, "none"),
    # gemma/config.py:289 and 290: query_pre_attn_scalar 5376 // 32 and use_qk_norm
    "gemma-3-27b": (168**-0.5, "rms"),
    # openai/gpt-oss, gpt_oss/torch/model.py: 1/√head_dim, and cosines and sines times 0.1 ln scaling_factor + 1, with
    # rope_scaling_factor 32
    "gpt-oss-20b": ((0.1 * math.log(32) + 1) ** 2 / 8, "none"),
    "gpt-oss-120b": ((0.1 * math.log(32) + 1) ** 2 / 8, "none"),
    # deepseek-ai/DeepSeek-V3, inference/model.py:436 and 437 (9b4e978): mscale², with rope_factor 40 and mscale 1
    "deepseek-v3": ((0.1 * math.log(40) + 1) ** 2 / math.sqrt(192), "none"),
    # moonshotai/Kimi-K2-Instruct, config.json: rope_scaling has factor 32, mscale 1.0 and mscale_all_dim 1.0
    "kimi-k2": ((0.1 * math.log(32) + 1) ** 2 / math.sqrt(192), "none"),
}
SOFTCAPS = {"gemma-2-27b": 50}  # gemma/config.py:171 (014acb7): attn_logit_softcapping
SINKS = ("gpt-oss-20b", "gpt-oss-120b")  # gpt_oss/torch/model.py: sinks, a logit for each head


def test_every_preset_has_the_shape_of_its_source() -> None:
    found = {
        name: (each.d_model, each.heads, each.key_heads, each.width, each.layers, each.context, each.bias)
        for name, each in ((preset.name, preset.layer) for preset in PRESETS.values())
    }
    assert found == SHAPES
    assert [*MODELS] == [*PRESETS]
    for name, preset in PRESETS.items():
        layer = preset.layer
        latent = layer.value_width, layer.kv_latent, layer.q_latent, layer.rotary
        assert latent == LATENT_WIDTHS.get(name, (layer.width, 0, 0, 0)), name


# A rule, what its multiplier depends on, and the multiplier: constants as in the source, products written out.
FORMULAS: list[tuple[str, dict[str, Any], float]] = [
    # pytorch/pytorch, torch/nn/functional.py:6356, scaled_dot_product_attention: 1 / math.sqrt(query.size(-1))
    ("sqrt_d_k", {"d_k": 80}, 1 / math.sqrt(80)),
    # transformers, modeling_gpt_neo.py:112: query @ key.T, not divided; modeling_t5.py:198: scaling = 1.0
    ("none", {"d_k": 128}, 1.0),
    # transformers, modeling_zamba.py:138: (head_dim / 2) ** -0.5, as modeling_zamba2.py:239 has it too
    ("1/sqrt(d/2)", {"d_k": 224}, (224 / 2) ** -0.5),
    # microsoft/DeBERTa, DeBERTa/deberta/disentangled_attention.py (009cc44): math.sqrt(query_layer.size(-1) *
    # scale_factor), where scale_factor is 1, plus 1 for c2p and 1 for p2c
    ("sqrt_three_d_k", {"d_k": 64}, 1 / math.sqrt(64 * (1 + 1 + 1))),
    # transformers, modeling_gpt2.py:99 and 101: head_dim**-0.5, then / float(layer_idx + 1)
    ("inverse_layer", {"d_k": 64, "layer": 11}, 1 / 64**0.5 / float(11 + 1)),
    # openai/whisper, whisper/model.py:118 and 130 (c0d2f62): (n_state // n_head) ** -0.25 times q and times k;
    # openai/guided-diffusion, guided_diffusion/unet.py:348-351 (22e0df8): 1 / math.sqrt(math.sqrt(ch)) on both
    ("quarter", {"d_k": 80}, (80**-0.25) * (80**-0.25)),
    # pytorch/pytorch, aten/src/ATen/native/transformers/attention.cpp:653 (12da0c7), which is
    # _scaled_dot_product_attention_math: q and k each times the root of the scale; the same in
    # torch/onnx/_internal/torchscript_exporter/symbolic_opset14.py:181 and 183
    ("quarter", {"d_k": 64}, math.sqrt(1 / math.sqrt(64)) * math.sqrt(1 / math.sqrt(64))),
    # ibm-granite/granite-3.1-2b-base and granite-3.1-8b-base, config.json: attention_multiplier
    ("granite_2b", {"d_k": 64}, 0.015625),
    ("granite_8b", {"d_k": 128}, 0.0078125),
    # microsoft/Phi-3-mini-128k-instruct, modeling_phi3.py: cosines and sines times sqrt(1 + log(scale) /
    # log(original_max_position_embeddings)), with 4096 and scale 131072 / 4096 of its config.json
    ("longrope", {"d_k": 96, "context_factor": 131_072 / 4096}, (1 + math.log(32) / math.log(4096)) * 96**-0.5),
    # gdevos010/Scalable-Softmax, src/scalable_softmax.py (341cf4a): s * log(n), s 0.43 by default
    ("ssmax", {"d_k": 64, "n_keys": 4096}, 0.43 * math.log(4096) * 64**-0.5),
    # attention_normalize of bert4keras, method softmax_plus, as its port to Keras 3 has it: a * log(l) / log(512)
    ("log512_n", {"d_k": 64, "n_keys": 4096}, math.log(4096) / math.log(512) * 64**-0.5),
    # transformers, modeling_qwen3.py:213: head_dim**-0.5, after q_norm and k_norm (245 and 246)
    ("rms_sqrt_d_k", {"d_k": 128}, 128**-0.5),
    # google/gemma_pytorch, gemma/config.py:289 and 290 (014acb7): query_pre_attn_scalar 5376 // 32 and use_qk_norm
    ("rms_gemma3_27b", {}, (5376 // 32) ** -0.5),
    # transformers, modeling_cohere.py:212: head_dim**-0.5, after CohereLayerNorm of q and k (255)
    ("layer_norm_sqrt_d_k", {"d_k": 128}, 128**-0.5),
    # microsoft/Swin-Transformer, models/swin_transformer_v2.py (0ae00c9): clamp(logit_scale, max=log(1/0.01)).exp();
    # logit_scale is log(10) at first
    ("cosine_learned", {"temperature": 100}, math.exp(math.log(1 / 0.01))),
    ("cosine_10", {}, math.exp(math.log(10))),
    ("cosine_learned", {"temperature": 31.5}, math.exp(math.log(31.5))),
    # microsoft/mup, examples/Transformer/model.py:465 (1981497): float(head_dim) ** -1 * math.sqrt(attn_mult),
    # with attn_mult 1 by default; README.md:72: 1/d instead of 1/sqrt(d) attention scaling
    ("d_k", {"d_k": 128}, 1 / 128),
    # microsoft/mup, README.md:74: query @ key.T * 8 / d
    ("8/d", {"d_k": 128}, 8 / 128),
    # google/gemma_pytorch, gemma/config.py:64, 173 and 289 (014acb7)
    ("gemma", {}, 256**-0.5),
    ("gemma2_27b", {}, 144**-0.5),
    ("gemma3_27b", {}, (5376 // 32) ** -0.5),
    # deepseek-ai/DeepSeek-V3, inference/model.py:86, 436 and 437 (9b4e978): mscale = 0.1 * 1.0 * ln(rope_factor) + 1,
    # and the scale times mscale * mscale; jquesnelle/yarn, LlamaYaRNScaledRotaryEmbedding.py:24-27, has the same
    ("yarn", {"d_k": 192, "context_factor": 40}, (0.1 * math.log(40) + 1.0) ** 2 * 192**-0.5),
    # the same with mscale 0.707 of inference/configs/config_16B.json:18, which is DeepSeek-V2's shape
    ("deepseek_v2", {"d_k": 192, "context_factor": 40}, (0.1 * 0.707 * math.log(40) + 1.0) ** 2 * 192**-0.5),
    # transformers, modeling_ministral3.py:106: 1 + beta * log(1 + floor(position / 16384)), with the constants of
    # configuration_ministral3.py:99 and 105
    ("ministral3_position", {"d_k": 128, "position": 16_383}, 128**-0.5),
    ("ministral3_position", {"d_k": 128, "position": 16_384}, (1 + 0.1 * math.log(2)) * 128**-0.5),
    # transformers, modeling_llama4.py:364: log1p(floor((position + 1) / floor_scale)) * attn_scale + 1, with the
    # constants of configuration_llama4.py:161 and 162
    ("llama4_position", {"d_k": 128, "position": 8_190}, 128**-0.5),
    ("llama4_position", {"d_k": 128, "position": 8_191}, (math.log1p(1) * 0.1 + 1) * 128**-0.5),
    ("llama4_position", {"d_k": 128, "position": 16_382}, (math.log1p(1) * 0.1 + 1) * 128**-0.5),
    ("llama4_position", {"d_k": 128, "position": 16_383}, (math.log1p(2) * 0.1 + 1) * 128**-0.5),
    # NVIDIA/ngpt, model.py:135 (ed19eb2): softmax_scale = sqrt_head_dim, with sqk_init_value 1.0 of line 94
    ("cosine_sqrt_d_k", {"d_k": 64}, 8.0),
    # lucidrains/x-transformers, x_transformers/x_transformers.py:1782 (9252ed7): qk_norm_scale = 10
    ("cosine_10", {}, 10.0),
    # ggml-org/llama.cpp, src/models/gemma3n.cpp:10 (a26ba0f): f_attention_scale = 1.0f, after attn_q_norm and
    # attn_k_norm; transformers, modeling_gemma3n.py:1161 and modeling_gemma4.py:1156: scaling = 1.0
    ("rms_none", {"d_k": 256}, 1.0),
    # loudinthecloud/pytorch-ntm, ntm/memory.py:84 (3fce69b): softmax(β * cosine_similarity), at key strength β = 1
    ("cosine_1", {"d_k": 20}, 1.0),
    # Computed by hand, at widths, lengths and positions of models that use the rule, if there are any.
    ("log_d_k", {"d_k": 64}, 0.24044917348149393), ("two_sqrt_d_k", {"d_k": 96}, 0.05103103630798287),
    ("inverse_layer", {"d_k": 64, "layer": 0}, 0.125), ("yarn", {"d_k": 64, "context_factor": 1}, 0.125),
    ("layer_norm_none", {}, 1.0), ("custom", {"multiplier": 0.3}, 0.3),
    ("log512_n", {"d_k": 64, "n_keys": 512}, 0.125),
    ("llama4_position", {"d_k": 128, "position": 9_999_999}, (math.log1p(1220) * 0.1 + 1) * 128**-0.5),
    ("ministral3_position", {"d_k": 128, "position": 262_143}, (1 + 0.1 * math.log(16)) * 128**-0.5),
    ("cosine_log2_n", {"n_keys": 2}, 1.0),
    # CyndxAI/QKNorm, QKNorm/layers.py:42 (c628cb5): np.log2(seq_len_threshold**2 - seq_len_threshold)
    ("cosine_log2_n", {"n_keys": 72}, math.log2(72**2 - 72)),
]  # fmt: skip


def test_every_rule_has_a_figure() -> None:
    assert {*SCALE_RULES} <= {name for name, *_ in FORMULAS}


@for_each(("name", "given", "expected"), FORMULAS)
def test_a_rule_is_the_formula_of_its_source(name: str, given: dict[str, Any], expected: float) -> None:
    assert multiplier(name, RuleSetting(**given)) == pytest.approx(expected, rel=1e-14)


def test_1_over_d_is_credited_to_mup_and_mscale_to_deepseek() -> None:
    assert "muP" in SCALE_RULES["d_k"].used_by
    assert "2203.03466" in SCALE_RULES["d_k"].source
    assert "deepseek-ai" in SCALE_RULES["deepseek_v2"].source


@for_each("name", PRESETS)
def test_another_number_of_key_heads_is_a_changed_preset(name: str) -> None:
    preset = PRESETS[name]
    assert not preset.changed(preset.layer)
    if not preset.layer.kv_latent:
        others = [each for each in range(1, preset.layer.heads + 1) if preset.layer.heads % each == 0]
        changed = [preset.changed(replace(preset.layer, kv_heads=each)) for each in others]
        assert changed == [each != preset.layer.key_heads for each in others]


@for_each("name", MODELS)
def test_a_model_sets_its_published_attention_in_the_lab(name: str) -> None:
    *_, width, _, context, _ = SHAPES[name]
    p = Parameters().with_value("model", name)
    expected, norm = SCALES.get(name, (width**-0.5, "none"))
    assert (p.d_k, p.n_keys) == (width, context)
    assert p.d_v == LATENT_WIDTHS.get(name, (width,))[0]
    assert multiplier(p.scale, p.setting) == pytest.approx(expected, rel=1e-14)
    assert SCALE_RULES[p.scale].normalise == norm
    assert p.softcap == SOFTCAPS.get(name, 0)
    assert (p.sink, p.sink_logit) == ("logit" if name in SINKS else "none", 0)
    assert (p.mask, p.mechanism, p.norm_gain) == ("none", "dot_product", 1)
    assert model_title(p) == MODELS[name].title


@for_each("name", PRESETS)
def test_a_preset_states_the_multiplier_of_its_model(name: str) -> None:
    preset = PRESETS[name]
    expected, _ = SCALES.get(name, (preset.layer.width**-0.5, ""))
    assert preset.multiplier(preset.layer) == pytest.approx(expected, rel=1e-14)
    printed = [block for block in cost_blocks(cost(preset.layer), preset) if isinstance(block, str)]
    assert any(f"multiplies scores by {expected:.4g}" in sentence for sentence in printed)
    found = json.loads(written(cost_table(cost(preset.layer), preset), "json"))["layer"]
    assert found["scale"] == pytest.approx(expected, rel=1e-14)
    assert found["scale_rule"] == MODELS[name].scale


def test_both_gemma_27b_scale_by_the_square_root_of_d_model_over_heads() -> None:
    for name in ("gemma-2-27b", "gemma-3-27b"):
        model = MODELS[name]
        assert PRESETS[name].multiplier(PRESETS[name].layer) == (model.d_model / model.heads) ** -0.5
        assert not math.isclose(PRESETS[name].multiplier(PRESETS[name].layer), model.width**-0.5, rel_tol=0.05)


@for_each("model", MODELS.values())
def test_a_model_describes_itself(model: Model) -> None:
    assert MODELS[model.name] is model
    assert model.source
    assert f"d_k {model.width} · {SCALE_RULES[model.scale].label} · " in model.summary
    assert set(model.parameters) <= {*SET_BY_MODEL, "n_queries", "batch"}
    for name, value in model.parameters.items():
        FIELD[name].check(value)
    for word in ("QK-norm",) if SCALE_RULES[model.scale].normalise == "rms" else ():
        assert word in model.help
    assert ("sinks" in model.help) == (model.name in SINKS)
