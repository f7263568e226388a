"""The presets of models, against the numbers of their published configurations, written out."""

import json
import math
from dataclasses import replace

import pytest
from attn_tui.core.attention.cost import cost
from attn_tui.core.attention.presets import PRESETS
from attn_tui.core.models import MODELS, MOST_KEYS, SET_BY_MODEL, Model
from attn_tui.core.parameters import FIELD, Parameters, model_title
from attn_tui.core.scales import SCALE_RULES, multiplier
from attn_tui.core.tables.cost import cost_table
from attn_tui.core.tables.table import written
from attn_tui.tui.panes.heads.view import layer_lines
from attn_tui.tui.views.glyphs import UNICODE
from cases import for_each

# d_model, query heads, key heads, width of a head, layers, context. Unless another source is named, from the keys
# hidden_size, num_attention_heads, num_key_value_heads, head_dim, num_hidden_layers and max_position_embeddings of
# config.json in the model's repository; without a key for the width, it is hidden_size/num_attention_heads.
PUBLISHED = {
    "bert-base": (768, 12, 12, 64, 12, 512),  # google-bert/bert-base-uncased
    "bert-large": (1024, 16, 16, 64, 24, 512),  # google-bert/bert-large-uncased
    "minilm-l6": (384, 12, 12, 32, 6, 512),  # sentence-transformers/all-MiniLM-L6-v2
    "gpt2": (768, 12, 12, 64, 12, 1024),  # openai-community/gpt2: n_embd, n_head, n_layer, n_positions
    "gpt2-xl": (1600, 25, 25, 64, 48, 1024),  # openai-community/gpt2-xl
    "gpt3-175b": (12288, 96, 96, 128, 96, 2048),  # arXiv 2005.14165, table 2.1
    "opt-13b": (5120, 40, 40, 128, 40, 2048),  # arXiv 2205.01068, table 1; facebook/opt-13b
    "palm-540b": (18432, 48, 1, 256, 118, 2048),  # arXiv 2204.02311, table 1: multi-query, heads of 256
    "falcon-7b": (4544, 71, 1, 64, 32, 2048),  # tiiuae/falcon-7b: multi_query; context from its model card
    "llama-2-7b": (4096, 32, 32, 128, 32, 4096),  # meta-llama/Llama-2-7b-hf
    "llama-2-70b": (8192, 64, 8, 128, 80, 4096),  # meta-llama/Llama-2-70b-hf
    "llama-3-8b": (4096, 32, 8, 128, 32, 8192),  # meta-llama/Meta-Llama-3-8B
    "llama-3.1-70b": (8192, 64, 8, 128, 80, 131072),  # meta-llama/Llama-3.1-70B
    "llama-3.1-405b": (16384, 128, 8, 128, 126, 131072),  # arXiv 2407.21783, table 3
    "mistral-7b": (4096, 32, 8, 128, 32, 32768),  # mistralai/Mistral-7B-v0.3
    "mistral-nemo-12b": (5120, 32, 8, 128, 40, 131072),  # mistralai/Mistral-Nemo-Instruct-2407, and its model card
    "qwen2.5-7b": (3584, 28, 4, 128, 28, 32768),  # Qwen/Qwen2.5-7B-Instruct
    "qwen2.5-72b": (8192, 64, 8, 128, 80, 32768),  # Qwen/Qwen2.5-72B-Instruct
    "qwen3-0.6b": (1024, 16, 8, 128, 28, 40960),  # Qwen/Qwen3-0.6B
    "qwen3-8b": (4096, 32, 8, 128, 36, 40960),  # Qwen/Qwen3-8B
    "qwen3-32b": (5120, 64, 8, 128, 64, 40960),  # Qwen/Qwen3-32B
    "gemma-2b": (2048, 8, 1, 256, 18, 8192),  # google/gemma_pytorch, gemma/config.py, get_config_for_2b
    "gemma-7b": (3072, 16, 16, 256, 28, 8192),  # the same, get_config_for_7b
    "gemma-2-27b": (4608, 32, 16, 128, 46, 8192),  # the same, get_config_for_27b
    "gemma-3-27b": (5376, 32, 16, 128, 62, 131072),  # the same, get_config_for_27b_v3
    "phi-3-mini": (3072, 32, 32, 96, 32, 4096),  # microsoft/Phi-3-mini-4k-instruct
    "gpt-oss-20b": (2880, 64, 8, 64, 24, 131072),  # openai/gpt-oss-20b
    "gpt-oss-120b": (2880, 64, 8, 64, 36, 131072),  # openai/gpt-oss-120b
}
# The same of models with latent attention; the width of a head is qk_nope_head_dim + qk_rope_head_dim.
LATENT = {
    # deepseek-ai/DeepSeek-V3, inference/configs/config_671B.json (9b4e978): dim, n_heads, qk_nope_head_dim 128,
    # qk_rope_head_dim 64, n_layers; config.json: max_position_embeddings
    "deepseek-v3": (7168, 128, 128, 128 + 64, 61, 163840),
    # moonshotai/Kimi-K2-Instruct, config.json: hidden_size, num_attention_heads, num_hidden_layers
    "kimi-k2": (7168, 64, 64, 128 + 64, 61, 131072),
}
# v_head_dim, kv_lora_rank, q_lora_rank and qk_rope_head_dim of both
LATENT_WIDTHS = (128, 512, 1536, 64)

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


def test_every_model_has_a_published_configuration() -> None:
    assert [*PUBLISHED, *LATENT] == [*MODELS] == [*PRESETS]


@for_each("name", PRESETS)
def test_a_preset_has_the_shape_of_its_published_configuration(name: str) -> None:
    layer = PRESETS[name].layer
    found = layer.d_model, layer.heads, layer.key_heads, layer.width, layer.layers, layer.context
    assert found == (PUBLISHED | LATENT)[name]
    latent = layer.value_width, layer.kv_latent, layer.q_latent, layer.rotary
    assert latent == (LATENT_WIDTHS if name in LATENT else (layer.width, 0, 0, 0))


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
    *_, width, _, context = (PUBLISHED | LATENT)[name]
    p = Parameters().with_value("model", name)
    expected, norm = SCALES.get(name, (width**-0.5, "none"))
    assert (p.d_k, p.n_keys) == (width, min(context, FIELD["n_keys"].high))
    assert p.d_v == (LATENT_WIDTHS[0] if name in LATENT else width)
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
    printed = " ".join(
        "".join(text for text, _ in line) for line in layer_lines(cost(preset.layer), 500, UNICODE, preset)
    )
    assert f"multiplies scores by {expected:.4g}" in printed
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
    assert set(model.parameters) <= set(SET_BY_MODEL)
    for name, value in model.parameters.items():
        FIELD[name].check(value)
    for word in ("QK-norm",) if SCALE_RULES[model.scale].normalise == "rms" else ():
        assert word in model.help
    assert ("sinks" in model.help) == (model.name in SINKS)


def test_the_longest_context_of_a_model_is_what_the_lab_holds() -> None:
    assert FIELD["n_keys"].high == MOST_KEYS
