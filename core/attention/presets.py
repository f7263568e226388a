"""Attention layers of well-known models.

All of them project to separate keys and values; latent attention, as in DeepSeek-V2 and V3, has other matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

from .cost import Layer


@dataclass(frozen=True)
class Preset:
    """A model's layer, with its longest context, and the source of its numbers."""

    name: str
    model: str
    layer: Layer
    source: str
    note: str = ""  # a sentence on what the figures do not include

    def changed(self, layer: Layer) -> bool:
        """Return whether a layer that started from this preset has another shape; its use does not matter."""
        one, other = (
            (each.d_model, each.heads, each.key_heads, each.width, each.bias, each.layers)
            for each in (layer, self.layer)
        )
        return one != other

    def title(self, layer: Layer) -> str:
        """Return the model's name, marked as changed if the layer's shape is no longer the preset's."""
        return f"{self.model}, changed" if self.changed(layer) else self.model


_WINDOW = "{} only the last {} tokens, which would need a smaller cache; that is not taken into account"
_ENCODER = "An encoder processes all tokens at once and has no cache; these are its keys and values"

_PRESETS = (
    Preset(
        "bert-base", "BERT base",
        Layer(768, 12, bias="all", layers=12, context=512, mask="none"),
        "google-bert/bert-base-uncased, config.json; Devlin et al. 2019, arXiv 1810.04805", _ENCODER,
    ),
    Preset(
        "bert-large", "BERT large",
        Layer(1_024, 16, bias="all", layers=24, context=512, mask="none"),
        "google-bert/bert-large-uncased, config.json; Devlin et al. 2019, arXiv 1810.04805", _ENCODER,
    ),
    Preset(
        "minilm-l6", "all-MiniLM-L6-v2, the sample of the Capture pane",
        Layer(384, 12, bias="all", layers=6, context=512, mask="none"),
        "sentence-transformers/all-MiniLM-L6-v2, config.json", _ENCODER,
    ),
    Preset(
        "gpt2", "GPT-2 small",
        Layer(768, 12, bias="all", layers=12, context=1_024),
        "openai-community/gpt2, config.json",
    ),
    Preset(
        "gpt2-xl", "GPT-2 XL",
        Layer(1_600, 25, bias="all", layers=48, context=1_024),
        "openai-community/gpt2-xl, config.json",
    ),
    Preset(
        "gpt3-175b", "GPT-3 175B",
        Layer(12_288, 96, bias="all", layers=96, context=2_048),
        "Brown et al. 2020, arXiv 2005.14165, table 2.1",
    ),
    Preset(
        "opt-13b", "OPT 13B",
        Layer(5_120, 40, bias="all", layers=40, context=2_048),
        "Zhang et al. 2022, arXiv 2205.01068, table 1",
    ),
    Preset(
        "palm-540b", "PaLM 540B",
        Layer(18_432, 48, 1, 256, layers=118, context=2_048),
        "Chowdhery et al. 2022, arXiv 2204.02311, table 1",
    ),
    Preset(
        "falcon-7b", "Falcon 7B",
        Layer(4_544, 71, 1, layers=32, context=2_048),
        "tiiuae/falcon-7b, config.json",
    ),
    Preset(
        "llama-2-7b", "Llama 2 7B",
        Layer(4_096, 32, layers=32, context=4_096),
        "meta-llama/Llama-2-7b-hf, config.json",
    ),
    Preset(
        "llama-2-70b", "Llama 2 70B",
        Layer(8_192, 64, 8, layers=80, context=4_096),
        "meta-llama/Llama-2-70b-hf, config.json",
    ),
    Preset(
        "llama-3-8b", "Llama 3 8B",
        Layer(4_096, 32, 8, layers=32, context=8_192),
        "meta-llama/Meta-Llama-3-8B, config.json",
    ),
    Preset(
        "llama-3.1-70b", "Llama 3.1 70B",
        Layer(8_192, 64, 8, layers=80, context=131_072),
        "meta-llama/Llama-3.1-70B, config.json",
    ),
    Preset(
        "llama-3.1-405b", "Llama 3.1 405B",
        Layer(16_384, 128, 8, layers=126, context=131_072),
        "Dubey et al. 2024, arXiv 2407.21783, table 3",
        "Its first published configuration had 16 key heads: each of the 8 was stored twice",
    ),
    Preset(
        "mistral-7b", "Mistral 7B v0.3",
        Layer(4_096, 32, 8, layers=32, context=32_768),
        "mistralai/Mistral-7B-v0.3, config.json",
    ),
    Preset(
        "mistral-nemo-12b", "Mistral Nemo 12B",
        Layer(5_120, 32, 8, 128, layers=40, context=131_072),
        "mistralai/Mistral-Nemo-Instruct-2407, config.json; context from its model card",
    ),
    Preset(
        "qwen2.5-7b", "Qwen2.5 7B",
        Layer(3_584, 28, 4, bias="qkv", layers=28, context=32_768),
        "Qwen/Qwen2.5-7B-Instruct, config.json",
    ),
    Preset(
        "qwen2.5-72b", "Qwen2.5 72B",
        Layer(8_192, 64, 8, bias="qkv", layers=80, context=32_768),
        "Qwen/Qwen2.5-72B-Instruct, config.json",
    ),
    Preset(
        "qwen3-0.6b", "Qwen3 0.6B",
        Layer(1_024, 16, 8, 128, layers=28, context=40_960),
        "Qwen/Qwen3-0.6B, config.json",
    ),
    Preset(
        "qwen3-8b", "Qwen3 8B",
        Layer(4_096, 32, 8, 128, layers=36, context=40_960),
        "Qwen/Qwen3-8B, config.json",
    ),
    Preset(
        "qwen3-32b", "Qwen3 32B",
        Layer(5_120, 64, 8, 128, layers=64, context=40_960),
        "Qwen/Qwen3-32B, config.json",
    ),
    Preset(
        "gemma-2b", "Gemma 2B",
        Layer(2_048, 8, 1, 256, layers=18, context=8_192),
        "google/gemma_pytorch, config.py",
    ),
    Preset(
        "gemma-7b", "Gemma 7B",
        Layer(3_072, 16, 16, 256, layers=28, context=8_192),
        "google/gemma_pytorch, config.py",
    ),
    Preset(
        "gemma-2-27b", "Gemma 2 27B",
        Layer(4_608, 32, 16, 128, layers=46, context=8_192),
        "google/gemma_pytorch, config.py", _WINDOW.format("Every other layer sees", 4096),
    ),
    Preset(
        "gemma-3-27b", "Gemma 3 27B",
        Layer(5_376, 32, 16, 128, layers=62, context=131_072),
        "google/gemma_pytorch, config.py", _WINDOW.format("Five layers in six see", 1024),
    ),
    Preset(
        "phi-3-mini", "Phi-3 mini 4k",
        Layer(3_072, 32, layers=32, context=4_096),
        "microsoft/Phi-3-mini-4k-instruct, config.json", _WINDOW.format("All layers see", 2047),
    ),
    Preset(
        "gpt-oss-120b", "gpt-oss 120B",
        Layer(2_880, 64, 8, 64, bias="all", layers=36, context=131_072),
        "openai/gpt-oss-120b, config.json", _WINDOW.format("Every other layer sees", 128),
    ),
)  # fmt: skip

PRESETS: dict[str, Preset] = {preset.name: preset for preset in _PRESETS}
