"""MODELS: the attention layers of well-known models, with how they scale scores.

A row is a choice of the parameter `model`, which sets the Lab's parameters, and a preset of the cost view. To add a
model, add a row; `tests/core/test_sources.py` holds each against its published configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from .message import joined, message
from .scales import SCALE_RULES, ScaleName

ONE_QUERY = 8_192  # with more keys than these, a model's context is measured with one query in each of four draws

# The parameters that a model sets; those that its row does not name have their defaults.
SET_BY_MODEL = (
    "d_k", "n_keys", "d_v", "scale", "context_factor", "norm_gain", "mask", "mechanism", "softcap", "sink",
    "sink_logit",
)  # fmt: skip


class Model(NamedTuple):
    """A model's attention layer: its shape, its longest context, its scale, and the source of its numbers."""

    name: str  # on the command line
    title: str
    d_model: int
    heads: int
    layers: int
    context: int
    source: str
    note: str = ""  # a sentence on what the figures do not include
    kv_heads: int | None = None  # None: the same as heads
    d_k: int | None = None  # None: d_model/heads
    d_v: int | None = None  # None: the same as d_k
    bias: Literal["none", "qkv", "all"] = "none"
    causal: bool = True
    kv_latent: int = 0  # the width of the latent that keys and values are projected from; 0: there is none
    q_latent: int = 0  # the same of queries
    rotary: int = 0  # components of a key that do not come from the latent
    scale: ScaleName = "sqrt_d_k"
    more: Mapping[str, float | str] = {}  # other parameters, by name

    @property
    def width(self) -> int:
        """The width of a query and of a key, d_k."""
        return self.d_model // self.heads if self.d_k is None else self.d_k

    @property
    def parameters(self) -> dict[str, int | float | str]:
        """The parameters that the model sets, by name, except for those with their defaults.

        There is no mask: the Lab's queries stand at the end of the context, where a causal mask hides nothing.
        """
        return {
            "d_k": self.width,
            "n_keys": self.context,
            **({"n_queries": 1, "batch": 4} if self.context > ONE_QUERY else {}),
            "d_v": self.d_v or self.width,
            "scale": self.scale,
            **self.more,
        }

    @property
    def summary(self) -> str:
        """What it sets, in a line: `d_k 128 · 1/√144 · soft-cap 50 · 8192 keys`."""
        words = [f"d_k {self.width}", SCALE_RULES[self.scale].label]
        if "context_factor" in self.more:
            words.append(f"s {self.more['context_factor']:g}")
        if "softcap" in self.more:
            words.append(message("soft-cap {cap:g}", cap=self.more["softcap"]))
        words += ["sink"] if "sink" in self.more else []
        words.append(message("{keys} keys", keys=self.context))
        return joined(words, " · ")

    @property
    def help(self) -> str:
        """What is to be known about it, in a sentence or two."""
        trained = message("The learned gains of its QK-norm are 1, as initialised")
        learned = message("The logits of its sinks are learned; here they are 0")
        rule = SCALE_RULES[self.scale]
        notes = (self.note, trained if rule.normalise != "none" else "", learned if "sink" in self.more else "")
        return joined([message("{note}.", note=note) for note in notes if note])


_WINDOW = "{} only the last {} tokens, which would need a smaller cache; that is not taken into account"
_ENCODER = "An encoder processes all tokens at once and has no cache; these are its keys and values"
_LATENT = "Queries and keys are 128 components without and 64 with rotary embedding"

_MODELS = (
    Model(
        "bert-base", "BERT base", 768, 12, 12, 512,
        "google-bert/bert-base-uncased, config.json; Devlin et al. 2019, arXiv 1810.04805", _ENCODER,
        bias="all", causal=False,
    ),
    Model(
        "bert-large", "BERT large", 1_024, 16, 24, 512,
        "google-bert/bert-large-uncased, config.json; Devlin et al. 2019, arXiv 1810.04805", _ENCODER,
        bias="all", causal=False,
    ),
    Model(
        "minilm-l6", "all-MiniLM-L6-v2", 384, 12, 6, 512,
        "sentence-transformers/all-MiniLM-L6-v2, config.json", f"The sample of the Model tab is of it. {_ENCODER}",
        bias="all", causal=False,
    ),
    Model(
        "gpt2", "GPT-2 small", 768, 12, 12, 1_024,
        "openai-community/gpt2, config.json",
        bias="all",
    ),
    Model(
        "gpt2-xl", "GPT-2 XL", 1_600, 25, 48, 1_024,
        "openai-community/gpt2-xl, config.json",
        bias="all",
    ),
    Model(
        "gpt3-175b", "GPT-3 175B", 12_288, 96, 96, 2_048,
        "Brown et al. 2020, arXiv 2005.14165, table 2.1",
        bias="all",
    ),
    Model(
        "opt-13b", "OPT 13B", 5_120, 40, 40, 2_048,
        "Zhang et al. 2022, arXiv 2205.01068, table 1",
        bias="all",
    ),
    Model(
        "palm-540b", "PaLM 540B", 18_432, 48, 118, 2_048,
        "Chowdhery et al. 2022, arXiv 2204.02311, table 1",
        kv_heads=1, d_k=256,
    ),
    Model(
        "falcon-7b", "Falcon 7B", 4_544, 71, 32, 2_048,
        "tiiuae/falcon-7b, config.json",
        kv_heads=1,
    ),
    Model(
        "llama-2-7b", "Llama 2 7B", 4_096, 32, 32, 4_096,
        "meta-llama/Llama-2-7b-hf, config.json",
    ),
    Model(
        "llama-2-70b", "Llama 2 70B", 8_192, 64, 80, 4_096,
        "meta-llama/Llama-2-70b-hf, config.json",
        kv_heads=8,
    ),
    Model(
        "llama-3-8b", "Llama 3 8B", 4_096, 32, 32, 8_192,
        "meta-llama/Meta-Llama-3-8B, config.json",
        kv_heads=8,
    ),
    Model(
        "llama-3.1-70b", "Llama 3.1 70B", 8_192, 64, 80, 131_072,
        "meta-llama/Llama-3.1-70B, config.json",
        kv_heads=8,
    ),
    Model(
        "llama-3.1-405b", "Llama 3.1 405B", 16_384, 128, 126, 131_072,
        "Dubey et al. 2024, arXiv 2407.21783, table 3",
        "Its first published configuration had 16 key heads: each of the 8 was stored twice",
        kv_heads=8,
    ),
    Model(
        "mistral-7b", "Mistral 7B v0.3", 4_096, 32, 32, 32_768,
        "mistralai/Mistral-7B-v0.3, config.json",
        kv_heads=8,
    ),
    Model(
        "mistral-nemo-12b", "Mistral Nemo 12B", 5_120, 32, 40, 131_072,
        "mistralai/Mistral-Nemo-Instruct-2407, config.json; context from its model card",
        kv_heads=8, d_k=128,
    ),
    Model(
        "qwen2.5-7b", "Qwen2.5 7B", 3_584, 28, 28, 32_768,
        "Qwen/Qwen2.5-7B-Instruct, config.json",
        kv_heads=4, bias="qkv",
    ),
    Model(
        "qwen2.5-72b", "Qwen2.5 72B", 8_192, 64, 80, 32_768,
        "Qwen/Qwen2.5-72B-Instruct, config.json",
        kv_heads=8, bias="qkv",
    ),
    Model(
        "qwen3-0.6b", "Qwen3 0.6B", 1_024, 16, 28, 40_960,
        "Qwen/Qwen3-0.6B, config.json; transformers, modeling_qwen3.py",
        kv_heads=8, d_k=128, scale="rms_sqrt_d_k",
    ),
    Model(
        "qwen3-8b", "Qwen3 8B", 4_096, 32, 36, 40_960,
        "Qwen/Qwen3-8B, config.json; transformers, modeling_qwen3.py",
        kv_heads=8, d_k=128, scale="rms_sqrt_d_k",
    ),
    Model(
        "qwen3-32b", "Qwen3 32B", 5_120, 64, 64, 40_960,
        "Qwen/Qwen3-32B, config.json; transformers, modeling_qwen3.py",
        kv_heads=8, d_k=128, scale="rms_sqrt_d_k",
    ),
    Model(
        "gemma-2b", "Gemma 2B", 2_048, 8, 18, 8_192,
        "google/gemma_pytorch, config.py",
        kv_heads=1, d_k=256,
    ),
    Model(
        "gemma-7b", "Gemma 7B", 3_072, 16, 28, 8_192,
        "google/gemma_pytorch, config.py",
        kv_heads=16, d_k=256,
    ),
    Model(
        "gemma-2-27b", "Gemma 2 27B", 4_608, 32, 46, 8_192,
        "google/gemma_pytorch, config.py", _WINDOW.format("Every other layer sees", 4096),
        kv_heads=16, d_k=128, scale="gemma2_27b", more={"softcap": 50.0},
    ),
    Model(
        "gemma-3-27b", "Gemma 3 27B", 5_376, 32, 62, 131_072,
        "google/gemma_pytorch, config.py; transformers, modeling_gemma3.py",
        _WINDOW.format("Five layers in six see", 1024),
        kv_heads=16, d_k=128, scale="rms_gemma3_27b",
    ),
    Model(
        "phi-3-mini", "Phi-3 mini 4k", 3_072, 32, 32, 4_096,
        "microsoft/Phi-3-mini-4k-instruct, config.json", _WINDOW.format("All layers see", 2047),
    ),
    Model(
        "gpt-oss-20b", "gpt-oss 20B", 2_880, 64, 24, 131_072,
        "openai/gpt-oss-20b, config.json; openai/gpt-oss, gpt_oss/torch/model.py",
        _WINDOW.format("Every other layer sees", 128),
        kv_heads=8, d_k=64, bias="all", scale="yarn", more={"context_factor": 32.0, "sink": "logit"},
    ),
    Model(
        "gpt-oss-120b", "gpt-oss 120B", 2_880, 64, 36, 131_072,
        "openai/gpt-oss-120b, config.json; openai/gpt-oss, gpt_oss/torch/model.py",
        _WINDOW.format("Every other layer sees", 128),
        kv_heads=8, d_k=64, bias="all", scale="yarn", more={"context_factor": 32.0, "sink": "logit"},
    ),
    Model(
        "deepseek-v3", "DeepSeek-V3", 7_168, 128, 61, 163_840,
        "deepseek-ai/DeepSeek-V3, inference/model.py, configs/config_671B.json and config.json", _LATENT,
        d_k=192, d_v=128, kv_latent=512, q_latent=1_536, rotary=64, scale="yarn",
        more={"context_factor": 40.0},
    ),
    Model(
        "kimi-k2", "Kimi K2", 7_168, 64, 61, 131_072,
        "moonshotai/Kimi-K2-Instruct, config.json; Kimi Team 2025, arXiv 2507.20534", _LATENT,
        d_k=192, d_v=128, kv_latent=512, q_latent=1_536, rotary=64, scale="yarn",
        more={"context_factor": 32.0},
    ),
)  # fmt: skip

MODELS: dict[str, Model] = {model.name: model for model in _MODELS}


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
