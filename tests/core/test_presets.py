"""The presets of models, against the numbers of their published configurations, written out."""

import math

import pytest
from attn_tui.core.attention.presets import PRESETS
from attn_tui.core.scales import SCALE_RULES, Setting, multiplier

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
    "gpt-oss-120b": (2880, 64, 8, 64, 36, 131072),  # openai/gpt-oss-120b
}

# The multiplier of models that do not use 1/√d_k, and the rule that gives it.
SCALES = {
    "gemma-2-27b": ("gemma2_27b", 144**-0.5),  # query_pre_attn_scalar: 4608 // 32
    "gemma-3-27b": ("gemma3_27b", 168**-0.5),  # query_pre_attn_scalar: 5376 // 32
}


def test_every_preset_has_a_published_configuration() -> None:
    assert [*PUBLISHED] == [*PRESETS]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_has_the_shape_of_its_published_configuration(name: str) -> None:
    layer = PRESETS[name].layer
    found = layer.d_model, layer.heads, layer.key_heads, layer.width, layer.layers, layer.context
    assert found == PUBLISHED[name]


@pytest.mark.parametrize("name", SCALES)
def test_a_model_with_another_scale_has_a_rule_of_its_own(name: str) -> None:
    rule, expected = SCALES[name]
    layer = PRESETS[name].layer
    assert SCALE_RULES[rule].multiplier(Setting(layer.width)) == expected
    assert expected == (layer.d_model / layer.heads) ** -0.5
    assert not math.isclose(expected, multiplier("sqrt_d_k", Setting(layer.width)))
