"""Scale rules: the number that scores are multiplied by before softmax, and how q and k are normalised first.

Always the multiplier, never the divisor: "÷ √d_k" and "× 1/√d_k" are the same rule. Learned factors have the value
they are initialised with, except for the temperature of `cosine_learned`; the gain of a norm is no part of the
multiplier, but a parameter. To add a rule, add a row: nothing else lists them.
A rule that is not in the table is a formula, and its name is the formula's text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from .errors import ParameterError
from .formula import FUNCTIONS, FormulaError, accepted, as_python, function_of, names_in, parse
from .message import message

if TYPE_CHECKING:
    from .arrays import FloatArray

Normalise: TypeAlias = Literal["none", "rms", "layer_norm", "l2"]
ScaleName: TypeAlias = str  # a key of SCALE_RULES, or a formula

FORMULA_NAMES = {"d": "d_k", "n": "n_keys", "layer": "layer", "pos": "position"}  # by the names in formulas
_IN_CODE = {"d": "d_k", "n": "n", "layer": "layer", "pos": "position"}  # the names in ScaleRule.code
FORMULA_ACCEPTED = accepted([*FORMULA_NAMES])
# What to type instead of rules that were only another rule with a number in it.
_FORMER = {
    "mup": "8/d", "sqrt_half_d_k": "1/sqrt(d/2)", "cosine_100": message("cosine_learned, with temperature 100"),
}  # fmt: skip
_LOW, _HIGH = 1e-9, 1e6  # the bounds of a multiplier


class RuleSetting(NamedTuple):
    """What a multiplier may depend on, named as in Parameters."""

    d_k: int = 64
    n_keys: int = 128
    multiplier: float = 1.0  # of the custom rule
    layer: int = 11  # from 0
    position: int = 32_767  # of the query, from 0
    context_factor: float = 8.0  # how many times longer the context was made, at least 1
    temperature: float = 20.0  # the learned factor of cosines


_LABELS = {"n_keys": "keys", "context_factor": "context factor"}  # as in FIELDS


@dataclass(frozen=True)
class ScaleRule:
    """One rule: its formula, its multiplier, the models that use it and its source."""

    name: ScaleName
    formula: str
    code: str  # the multiplier as Python, of d_k, n, layer, position, s (context_factor) and t (temperature)
    multiplier: Callable[[RuleSetting], float]
    needs: tuple[str, ...]  # the fields of Setting that the multiplier depends on
    used_by: str
    source: str
    by_row: tuple[str, ...] = ()  # of these fields, those that each row has its own value of
    normalise: Normalise = "none"  # how each query and each key is normalised before they are multiplied
    on_vectors: bool = False  # whether √multiplier multiplies both q and k, and nothing multiplies their score
    note: str = ""  # a sentence that explains the formula
    short: str = ""  # a name, if the formula is longer than 15 characters

    @property
    def label(self) -> str:
        """A name of at most 15 characters."""
        return self.short or self.formula


def multiplier(name: ScaleName, setting: RuleSetting) -> float:
    """Return a rule's multiplier in this setting; raise ParameterError if it is not above 0 or out of bounds."""
    rule = scale_rule(name)
    value = float(_value(rule, setting))
    if _LOW <= value <= _HIGH:
        return value
    place = ", ".join(f"{_LABELS.get(need, need)} = {getattr(setting, need):.10g}" for need in rule.needs)
    fault = message("has no value") if math.isnan(value) else message("is {value:.6g}", value=value)
    end = (
        message("it must be from {low:g} to {high:g}", low=_LOW, high=_HIGH)
        if value > 0
        else message("choose another")
    )
    where = message(" at {place}", place=place) if place else ""
    raise ParameterError(
        "scale {formula} {fault}{where}; {end}", formula=rule.formula, fault=fault, where=where, end=end
    )


def row_multiplier(name: ScaleName, setting: RuleSetting) -> float:
    """Return a rule's multiplier for a row that sees `setting.n_keys` keys; raise ParameterError if it has none.

    It is 0 for a row that sees fewer than two keys, if the rule has none there: its weights do not depend on it.
    """
    try:
        return multiplier(name, setting)
    except ParameterError:
        if setting.n_keys < 2:
            return 0.0
        raise


def multipliers(name: ScaleName, setting: RuleSetting, d_ks: FloatArray) -> FloatArray:
    """Return a rule's multiplier in this setting at each d_k; NaN where it has none."""
    import numpy as np  # not at the top: the process that paints does without

    with np.errstate(all="ignore"):
        value: FloatArray = np.zeros(d_ks.shape) + _value(scale_rule(name), setting, d_ks)
        return np.where((value >= _LOW) & (value <= _HIGH), value, np.nan)


def _value(rule: ScaleRule, setting: RuleSetting, d_k: Any = None) -> Any:
    """Return the formula's value, perhaps at an array of d_k; NaN if it has none."""
    if d_k is not None:
        setting = setting._replace(d_k=d_k)
    try:
        return rule.multiplier(setting)
    except (ValueError, ArithmeticError):  # ln 0 and 1/ln 1
        return math.nan


def scale_rule(name: ScaleName) -> ScaleRule:
    """Return the rule of SCALE_RULES with this name, or that of a formula; raise ParameterError if it is neither."""
    return SCALE_RULES.get(name) or _formula_rule(name)


def is_formula(text: str) -> bool:
    """Return whether a text is a formula and not a misspelt name; raise ParameterError if the formula is faulty."""
    if instead := _FORMER.get(text.replace("-", "_")):
        raise FormulaError("scale", message("not a rule any more; type {instead}", instead=instead), text, 0)
    word = re.fullmatch(r"\W*|[A-Za-z_]\w*", text) or text.replace("-", "_") in SCALE_RULES
    if word and text not in FORMULA_NAMES:
        return False
    scale_rule(text)
    return True


@lru_cache(maxsize=256)
def _formula_rule(text: str) -> ScaleRule:
    """Return the rule of a formula; raise FormulaError."""
    tree = parse(text, [*FORMULA_NAMES], "scale")
    used = names_in(tree)
    needs = tuple(field for name, field in FORMULA_NAMES.items() if name in used)
    return ScaleRule(
        text, text, as_python(text, _IN_CODE), function_of(tree, FORMULA_NAMES), needs,
        "you", message("the formula you set"),
        by_row=tuple(need for need in needs if need in ("n_keys", "position")),
        short=text if len(text) <= 15 else f"{text[:6]}…{text[-6:]}",
    )  # fmt: skip


def rules_that_need(name: str) -> tuple[ScaleName, ...]:
    """Return the rules whose multiplier depends on this field of Setting."""
    return tuple(rule.name for rule in SCALE_RULES.values() if name in rule.needs)


def _by_root(factor: float, s: RuleSetting) -> float:
    """Return `factor`/√d_k."""
    return factor / FUNCTIONS["sqrt"](s.d_k)


def _position_block(s: RuleSetting, size: int, first: int) -> float:
    """Return 1 + 0.1 ln b, where b counts the blocks of `size` positions up to the query's, from position `first`."""
    return 1 + 0.1 * math.log(1 + (s.position + first) // size)


_OF_D_K = (
    ScaleRule(
        "none", "1", "1.0", lambda s: 1.0, (),
        "T5 and mT5, which initialise the query weights smaller instead; GPT-Neo",
        "Raffel et al. 2020, arXiv 1910.10683",
    ),
    ScaleRule(
        "sqrt_d_k", "1/√d_k", "1 / d_k**0.5", lambda s: _by_root(1, s), ("d_k",),
        "almost every transformer; the default of PyTorch's scaled_dot_product_attention",
        "Vaswani et al. 2017, arXiv 1706.03762, section 3.2.1",
        note="Also with grouped queries (GQA, MQA): heads share keys, and a score is still a sum of d_k products",
    ),
    ScaleRule(
        "d_k", "1/d_k", "1 / d_k", lambda s: 1 / s.d_k, ("d_k",),
        "muP, whose own rule it is; Granite 3's attention_multiplier",
        "Yang et al. 2022, arXiv 2203.03466, definition 4.1; transformers, modeling_granite.py",
        note="muP's package recommends 8/d_k, the formula 8/d, which equals 1/√d_k at d_k 64",
    ),
    ScaleRule(
        "log_d_k", "1/ln d_k", "1 / log(d_k)", lambda s: 1 / FUNCTIONS["log"](s.d_k), ("d_k",),
        "no known model; a common interview question", "study notes",
    ),
    ScaleRule(
        "two_sqrt_d_k", "1/(2√d_k)", "1 / (2 * d_k**0.5)", lambda s: _by_root(0.5, s), ("d_k",),
        "no known model; a common interview question", "study notes",
    ),
    ScaleRule(
        "sqrt_three_d_k", "1/√(3d_k)", "1 / (3 * d_k) ** 0.5", lambda s: 1 / FUNCTIONS["sqrt"](3 * s.d_k), ("d_k",),
        "DeBERTa, which adds content-to-position and position-to-content scores",
        "He et al. 2021, arXiv 2006.03654; transformers, modeling_deberta_v2.py",
        note="3 is the number of terms in a score; it is 2 if one of the two is disabled",
    ),
    ScaleRule(
        "inverse_layer", message("1/(√d_k (layer + 1))"), "1 / d_k**0.5 / (layer + 1)",
        lambda s: _by_root(1 / (s.layer + 1), s), ("d_k", "layer"),
        "GPT-2 with the option scale_attn_by_inverse_layer_idx",
        "transformers, modeling_gpt2.py",
        note="Layers are numbered from 0", short="GPT-2 by layer",
    ),
    ScaleRule(
        "quarter", message("d_k^−¼ on q and k"), "1 / d_k**0.5", lambda s: _by_root(1, s), ("d_k",),
        "OpenAI's Whisper and guided-diffusion; PyTorch's math backend, which computes in float32 by default",
        "openai/whisper, model.py; openai/guided-diffusion, unet.py; PyTorch, _scaled_dot_product_attention_math",
        note="The same multiplier as 1/√d_k, on q and k before their product: in 16 and 8 bits both are rounded once "
        "more, and fewer scores overflow; cosine and additive scores are multiplied themselves",
        short=message("d_k^−¼ each"), on_vectors=True,
    ),
)  # fmt: skip

_FIXED = (
    ScaleRule(
        "gemma", "1/√256", "256**-0.5", lambda s: 256**-0.5, (),
        "Gemma 2 and Gemma 3 except their 27B, whose query_pre_attn_scalar is 256",
        "transformers, configuration_gemma2.py and configuration_gemma3.py",
        note="Their heads are 256 wide, so it equals 1/√d_k",
    ),
    ScaleRule(
        "gemma2_27b", "1/√144", "144**-0.5", lambda s: 144**-0.5, (),
        "Gemma 2 27B, whose query_pre_attn_scalar is 144", "google/gemma_pytorch, config.py",
        note="144 is d_model/heads, 4608/32, but its heads are 128 wide",
    ),
    ScaleRule(
        "gemma3_27b", "1/√168", "168**-0.5", lambda s: 168**-0.5, (),
        "Gemma 3 27B, whose query_pre_attn_scalar is 168", "google/gemma_pytorch, config.py",
        note="168 is d_model/heads, 5376/32, but its heads are 128 wide",
    ),
    ScaleRule(
        "granite_2b", "1/64", "0.015625", lambda s: 0.015625, (),
        "Granite 3 2B, whose attention_multiplier is 0.015625",
        "transformers, modeling_granite.py; the model's configuration",
        note="Its heads are 64 wide, so it equals 1/d_k",
    ),
    ScaleRule(
        "granite_8b", "1/128", "0.0078125", lambda s: 0.0078125, (),
        "Granite 3 8B, whose attention_multiplier is 0.0078125",
        "transformers, modeling_granite.py; the model's configuration",
        note="Its heads are 128 wide, so it equals 1/d_k",
    ),
)  # fmt: skip

_OF_CONTEXT = (
    ScaleRule(
        "yarn", "(1+0.1 ln s)²/√d_k", "(1 + 0.1 * log(s)) ** 2 / d_k**0.5",
        lambda s: _by_root((1 + 0.1 * math.log(s.context_factor)) ** 2, s), ("d_k", "context_factor"),
        "models whose context YaRN extends by a factor of s; DeepSeek-V3, with s = 40",
        "Peng et al. 2023, arXiv 2309.00071, section 3.4; transformers, modeling_deepseek_v3.py",
        note="YaRN multiplies the cosines and sines of the rotary embedding, and thus both q and k, by 1 + 0.1 ln s",
        short="YaRN",
    ),
    ScaleRule(
        "deepseek_v2", "(1+0.0707 ln s)²/√d_k", "(1 + 0.0707 * log(s)) ** 2 / d_k**0.5",
        lambda s: _by_root((1 + 0.0707 * math.log(s.context_factor)) ** 2, s), ("d_k", "context_factor"),
        "DeepSeek-V2, with mscale_all_dim 0.707 and s = 40",
        "deepseek-ai/DeepSeek-V2, modeling_deepseek.py (softmax_scale · mscale²) and config.json",
        short="DeepSeek-V2",
    ),
    ScaleRule(
        "longrope", "(1+ln s/ln 4096)/√d_k", "(1 + log(s) / log(4096)) / d_k**0.5",
        lambda s: _by_root(1 + math.log(s.context_factor) / math.log(4096), s), ("d_k", "context_factor"),
        "Phi-3 with LongRoPE, with s = 32 for 128 k tokens",
        "Ding et al. 2024, arXiv 2402.13753; transformers, modeling_rope_utils.py",
        note="4096 is Phi-3's original context; LongRoPE multiplies cosines and sines by the factor's square root",
        short="LongRoPE",
    ),
    ScaleRule(
        "llama4_position", "(1+0.1 ln(1+⌊(pos+1)/8192⌋))/√d_k",
        "(1 + 0.1 * log(1 + (position + 1) // 8192)) / d_k**0.5",
        lambda s: _by_root(_position_block(s, 8192, 1), s), ("d_k", "position"),
        "Llama 4, in the layers without rotary embedding",
        "transformers, modeling_llama4.py (attn_scale 0.1, floor_scale 8192)",
        by_row=("position",),
        note="pos is the query's position, from 0; the factor grows once in 8192 positions",
        short="Llama 4",
    ),
    ScaleRule(
        "ministral3_position", "(1+0.1 ln(1+⌊pos/16384⌋))/√d_k", "(1 + 0.1 * log(1 + position // 16384)) / d_k**0.5",
        lambda s: _by_root(_position_block(s, 16_384, 0), s), ("d_k", "position"),
        "Ministral 3", "transformers, modeling_ministral3.py (llama_4_scaling_beta 0.1)",
        by_row=("position",),
        note="pos is the query's position, from 0; the factor grows once in 16384 positions",
        short="Ministral 3",
    ),
    ScaleRule(
        "ssmax", "0.43 ln n/√d_k", "0.43 * log(n) / d_k**0.5",
        lambda s: _by_root(0.43 * math.log(s.n_keys), s), ("d_k", "n_keys"),
        "Scalable-Softmax, which learns the factor for each head; 0.43 is from the paper's figure 1",
        "Nakanishi 2025, arXiv 2501.19399",
        by_row=("n_keys",),
        note="n is the number of keys; under a causal mask, each row counts the keys that it sees",
        short="SSMax",
    ),
    ScaleRule(
        "log512_n", "log₅₁₂ n/√d_k", "log(n) / log(512) / d_k**0.5",
        lambda s: _by_root(math.log(s.n_keys, 512), s), ("d_k", "n_keys"),
        "the entropy-invariant scale, for a model trained on 512 tokens",
        "Su 2021, kexue.fm 8823 and 9034",
        by_row=("n_keys",),
        note="It is κ ln n/d_k, with κ chosen so that it equals 1/√d_k at 512 keys",
        short="log₅₁₂ n/√d",
    ),
)  # fmt: skip

_NORMALISED = (
    ScaleRule(
        "rms_sqrt_d_k", "1/√d_k, rms of q, k", "1 / d_k**0.5", lambda s: _by_root(1, s), ("d_k",),
        "Qwen3, with a learned gain for each component; Llama 4 Scout, without one, in its rotary layers",
        "transformers, modeling_qwen3.py and modeling_llama4.py",
        normalise="rms",
        note="The root mean square of every query and key is 1, so a score is d_k times their cosine",
        short=message("rms 1/√d_k"),
    ),
    ScaleRule(
        "rms_gemma3_27b", "1/√168, rms of q, k", "168**-0.5", lambda s: 168**-0.5, (),
        "Gemma 3 27B, whose query_pre_attn_scalar is 168, from q and k before their learned norms",
        "google/gemma_pytorch, config.py; transformers, modeling_gemma3.py",
        normalise="rms",
        note="168 is d_model/heads, 5376/32, but its heads are 128 wide",
        short=message("rms 1/√168"),
    ),
    ScaleRule(
        "rms_none", "1, rms of q, k", "1.0", lambda s: 1.0, (),
        "Gemma 3n and Gemma 4, whose learned gains replace the scale",
        "transformers, modeling_gemma3n.py and modeling_gemma4.py",
        normalise="rms",
        short=message("rms × 1"),
    ),
    ScaleRule(
        "layer_norm_sqrt_d_k", message("1/√d_k, LayerNorm"), "1 / d_k**0.5", lambda s: _by_root(1, s), ("d_k",),
        "ViT-22B; Cohere's Command R+ (use_qk_norm)",
        "Dehghani et al. 2023, arXiv 2302.05442; transformers, modeling_cohere.py",
        normalise="layer_norm",
        note="Every query and key has mean 0 and variance 1 over its components",
        short="LN 1/√d_k",
    ),
    ScaleRule(
        "layer_norm_none", message("1, LayerNorm"), "1.0", lambda s: 1.0, (),
        "no known model; what the rule above does without its multiplier",
        "Dehghani et al. 2023, arXiv 2302.05442, without the scale",
        normalise="layer_norm",
        short=message("LN × 1"),
    ),
    ScaleRule(
        "cosine_sqrt_d_k", "√d_k·cos(q, k)", "d_k**0.5", lambda s: FUNCTIONS["sqrt"](s.d_k), ("d_k",),
        "nGPT, with a learned gain for each component",
        "Loshchilov et al. 2024, arXiv 2410.01131; NVIDIA/ngpt, model.py",
        normalise="l2",
        note="The same as 1/√d_k with rms of q, k, apart from learned gains",
        short="√d_k·cos",
    ),
    ScaleRule(
        "cosine_1", "cos(q, k)", "1.0", lambda s: 1.0, (),
        "Neural Turing Machines, whose heads address memory by cosine, at key strength 1",
        "Graves et al. 2014, arXiv 1410.5401, section 3.3.1",
        normalise="l2",
        note="Logits between −1 and 1 leave attention nearly uniform",
    ),
    ScaleRule(
        "cosine_10", "10·cos(q, k)", "10.0", lambda s: 10.0, (),
        "x-transformers (qk_norm_scale), fixed; Swin Transformer v2, as the initial value",
        "lucidrains/x-transformers; Liu et al. 2022, arXiv 2111.09883; transformers, modeling_swinv2.py",
        normalise="l2",
        short="10·cos",
    ),
    ScaleRule(
        "cosine_learned", "t·cos(q, k)", "t", lambda s: s.temperature, ("temperature",),
        "Swin Transformer v2, where t is e^logit_scale, and Query-Key Normalization, each after training",
        "Liu et al. 2022, arXiv 2111.09883; transformers, modeling_swinv2.py; Henry et al. 2020, arXiv 2010.04245",
        normalise="l2",
        note="Every head learns its own t, the temperature: a multiplier here, as in the code, not a divisor",
    ),
    ScaleRule(
        "cosine_log2_n", "log₂(n² − n)·cos(q, k)", "log2(n**2 - n)",
        lambda s: math.log2(s.n_keys**2 - s.n_keys), ("n_keys",),
        "Query-Key Normalization, as the initial value",
        "Henry et al. 2020, arXiv 2010.04245; CyndxAI/QKNorm, layers.py",
        normalise="l2",
        note="n is the 97.5th percentile of the lengths of training texts, one number for all rows; here, all keys",
        short="log₂(n²−n)·cos",
    ),
)  # fmt: skip

_CUSTOM = ScaleRule(
    "custom", message("custom"), "", lambda s: s.multiplier, ("multiplier",), "you", "the multiplier you set"
)  # fmt: skip

SCALE_RULES: dict[str, ScaleRule] = {
    rule.name: rule for rule in (*_OF_D_K, *_FIXED, *_OF_CONTEXT, *_NORMALISED, _CUSTOM)
}
# The rule with multiplier 1 for each way to normalise q and k.
UNSCALED_RULES: dict[Normalise, ScaleName] = {
    "none": "none", "rms": "rms_none", "layer_norm": "layer_norm_none", "l2": "cosine_1",
}  # fmt: skip
