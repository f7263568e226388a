"""The keys of a model's config.json that say how its attention is scaled."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from ..captures.features import LARGEST, SMALLEST
from ..captures.features import number as number_of
from ..errors import InputError
from ..message import joined, message, short
from ..scales import RuleSetting, ScaleName, multiplier, scale_rule
from ..texts import TextError, from_json
from .results import Expected
from .scale_keys import LEARNED, is_scaled, unapplied

# Models whose scores are not scaled: T5, models made from it, and GPT-Neo fold the scale into their initialisation,
# Gemma 3n and 4 into the gains of their QK-norm.
_UNSCALED = (
    "t5", "mt5", "umt5", "longt5", "switch_transformers", "pop2piano", "udop", "pix2struct", "pix2struct_text_model",
    "pix2struct_vision_model", "gpt_neo", "gemma3n", "gemma4", "gemma4_unified", "embedding_gemma2",
    "diffusion_gemma", "dia", "dia_encoder", "dia_decoder",
)  # fmt: skip
_BY_WIDTH = ("inkling",)  # models whose scale is 1/(width of a head)
_LARGEST_COUNT = 1e15
# Parts of models that have a configuration of their own, by the name of the module.
_PARTS = ("text", "vision", "audio", "encoder", "decoder", "qformer")
# Models with absorbed latent attention may store q and k of width kv_lora_rank + qk_rope_head_dim.


@dataclass(frozen=True)
class Growth:
    """A factor of the scores of each query that grows with its position, in some layers."""

    key: str  # that says so
    strength: float
    block: float  # positions until it grows
    first: int = 0  # what is added to the position
    smooth: bool = False  # whether it grows with every position, from the end of the first block on
    layers: tuple[bool, ...] = ()  # whether each layer has it; empty: all have
    repeats: bool = False  # whether these are the layers of a period

    def grows_in(self, layer: int) -> bool | None:
        """Return whether a layer has the factor; None if the configuration does not say it."""
        if not self.layers:
            return True
        place = layer % len(self.layers) if self.repeats else layer
        return self.layers[place] if place < len(self.layers) else None

    def factor(self, position: int) -> float:
        """Return the factor of the query at this position, from 0: 1 + strength · ln(1 + ⌊position / block⌋)."""
        blocks = (position + self.first) / self.block
        return 1 + self.strength * math.log(max(1.0, blocks) if self.smooth else 1 + math.floor(blocks))

    @property
    def formula(self) -> str:
        """The factor as it is written, of the position pos."""
        position = f"pos + {self.first}" if self.first else "pos"
        if self.smooth:
            return f"(1 + {self.strength:g} ln max(1, ({position})/{self.block:g}))"
        return f"(1 + {self.strength:g} ln(1 + ⌊({position})/{self.block:g}⌋))"


@dataclass(frozen=True)
class Configuration:
    """A model's configuration: the keys that matter for attention, None where they are missing."""

    model_type: str = ""
    hidden_size: int | None = None
    heads: int | None = None
    head_dim: int | None = None
    query_pre_attn_scalar: float | None = None
    attention_multiplier: float | None = None
    softmax_scale: float | None = None  # MPT's
    scale_attn_weights: bool = True
    inverse_layer: bool = False
    softcap: float | None = None
    nope_dim: int | None = None
    rope_dim: int | None = None
    latent_rank: int | None = None
    rope_factor: float | None = None  # how many times longer the context was made
    original_context: float | None = None  # positions, before it was made longer
    mscale: float | None = None
    mscale_all_dim: float | None = None
    attention_factor: float | None = None
    yarn: bool = False
    longrope: bool = False
    inside: float = 1.0  # what the model multiplies q·k by through q and k themselves
    growth: Growth | None = None
    unapplied: tuple[str, ...] = ()  # keys that change the scale in a way that is not applied
    rope_theta: float | None = None
    rotary_share: float | None = None  # the share of the components that are rotated
    window: int | None = None
    layer_types: tuple[str, ...] = ()
    intended: ScaleName | None = None  # a rule or formula that the user expects, whatever else is said
    parts: tuple[tuple[str, Configuration], ...] = ()  # of the model, by the word for them in names of modules
    terms: int = 1  # of a score: DeBERTa adds products with positions, and divides by √(d_k · terms)

    @property
    def width(self) -> int | None:
        """The width of a head for the scale: nope and rope parts, the head dimension, or hidden size / heads."""
        if self.rope_dim is not None and self.nope_dim is not None:
            return self.nope_dim + self.rope_dim
        if self.head_dim is not None:
            return self.head_dim
        if self.hidden_size is not None and self.heads:
            return self.hidden_size // self.heads
        return None

    @property
    def states_scale(self) -> bool:
        """Whether it says how attention is scaled, or its type of model is known to use 1/√(width of a head)."""
        stated = any(
            factor is not None
            for factor in (self.attention_multiplier, self.softmax_scale, self.query_pre_attn_scalar, self.intended)
        )
        stated |= not self.scale_attn_weights or self.inverse_layer or self.growth is not None or self.inside != 1
        return stated or bool(self.unknown) or self.kind in (*_UNSCALED, *_BY_WIDTH) or is_scaled(self.model_type)

    @property
    def kind(self) -> str:
        """The type of the model, without what says that it is the part of one that reads text."""
        return self.model_type.removesuffix("_text")

    @property
    def unknown(self) -> str:
        """Why the scale cannot be told from the keys that are applied; empty if it can."""
        if self.intended is not None:
            return ""
        if self.unapplied:
            return message("the configuration has {keys}, which is not applied", keys=joined(self.unapplied, ", "))
        if self.kind in LEARNED:
            return message("models of type {model_type} learn it", model_type=self.model_type)
        return ""

    def of(self, name: str) -> Configuration:
        """Return the configuration of a layer of this name: that of the part of the model that it is in."""
        words = re.split(r"[._\d]+", name)
        part = next((config for word, config in self.parts if word in words), None)
        return self if part is None else replace(part, intended=self.intended)

    def growth_in(self, layer: int) -> Growth | None:
        """Return the factor of a layer's scores that grows with the position; None if none is known."""
        return self.growth if self.growth is not None and self.growth.grows_in(layer) else None

    @property
    def latent_width(self) -> int | None:
        """The width of q and k in absorbed latent attention; None without latent attention."""
        if self.latent_rank is None or self.rope_dim is None:
            return None
        return self.latent_rank + self.rope_dim

    @property
    def amplitude(self) -> float | None:
        """The factor that YaRN or LongRoPE puts on q and on k, through the cosines and sines; None without them."""
        if self.attention_factor is not None:
            return self.attention_factor
        if self.longrope and self.rope_factor and self.original_context and self.original_context > 1:
            return math.sqrt(1 + math.log(max(self.rope_factor, 1.0)) / math.log(self.original_context))
        if not self.yarn or self.rope_factor is None:
            return None
        if self.mscale and self.mscale_all_dim:
            return _mscale(self.rope_factor, self.mscale) / _mscale(self.rope_factor, self.mscale_all_dim)
        return _mscale(self.rope_factor, 1.0)

    def window_of(self, layer: int) -> int | None:
        """Return the window of a layer, or None if the configuration does not say that it has one."""
        if layer < len(self.layer_types):
            return self.window if self.layer_types[layer] == "sliding_attention" else None
        return self.window if self.model_type in ("mistral", "phi3") else None


def parse_configuration(text: str | bytes, where: str) -> Configuration:
    """Return the keys that matter of the text of a config.json; raise InputError if it is not one."""
    try:
        document = from_json(text)
    except TextError as error:
        raise InputError("{where}: {fault}", where=where, fault=error) from error
    return configuration_of(document, where)


def configuration_of(document: object, where: str) -> Configuration:
    """Return the keys that matter of a config.json; raise InputError if one of them makes no sense.

    A model of text and images has those of text in `text_config`.
    """
    if not isinstance(document, Mapping):
        raise InputError("{where}: must be a JSON object with the keys of a config.json", where=where)
    values = cast("Mapping[str, object]", document)
    inner = {word: _object(values.get(f"{word}_config", values.get(word))) for word in _PARTS}
    parts = tuple((word, _configuration(members, where)) for word, members in inner.items() if members)
    return replace(_configuration({**values, **inner["text"]}, where), parts=parts)


def configured_scale(config: Configuration, layer: int, d_k: int) -> Expected:
    """Return the multiplier of q·k that the configuration asks for, factors inside q and k included.

    `d_k` is used where the configuration does not give the width of a head.
    """
    if config.intended is not None:
        value = multiplier(config.intended, RuleSetting(d_k=config.width or d_k, layer=layer))
        return _growing_in(config, layer, Expected(value, scale_rule(config.intended).formula))
    if config.attention_multiplier is not None:
        expected = Expected(config.attention_multiplier, "attention_multiplier")
    elif config.softmax_scale is not None:
        expected = Expected(config.softmax_scale, "softmax_scale")
    elif config.kind in _UNSCALED:
        expected = Expected(1.0, message("{model_type} does not scale", model_type=config.model_type))
    elif config.query_pre_attn_scalar is not None:
        scalar = config.query_pre_attn_scalar
        expected = Expected(scalar**-0.5, message("1/√{width:g}, query_pre_attn_scalar", width=scalar))
    elif not config.scale_attn_weights:
        expected = Expected(1.0, "scale_attn_weights is false")
    else:
        width = (config.width or d_k) * config.terms
        expected = Expected(width**-0.5, f"1/√{width}")
        if config.kind in _BY_WIDTH:
            expected = Expected(1 / width, f"1/{width}")
    if config.latent_rank is not None and config.mscale_all_dim and config.rope_factor is not None:
        factor = _mscale(config.rope_factor, config.mscale_all_dim) ** 2
        words = message("{words} × mscale² {factor:.4g}", words=expected.words, factor=factor)
        expected = Expected(expected.start * factor, words)
    if config.inverse_layer:
        expected = Expected(expected.start / (layer + 1), message("{words} / (layer + 1)", words=expected.words))
    return _growing_in(config, layer, expected)


def _growing_in(config: Configuration, layer: int, expected: Expected) -> Expected:
    """Return the multiplier of the first query, with words on those of others, if it is known."""
    unknown, growth = config.unknown, config.growth
    if growth is not None and growth.grows_in(layer):
        expected = replace(expected, words=f"{expected.words} × {growth.formula}")
    elif growth is not None and growth.grows_in(layer) is None:
        unknown = unknown or message("{key} does not name layer {layer}", key=growth.key, layer=layer)
    return replace(expected, unknown=unknown)


def expecting(
    expect: str | float | None, given: Configuration | None = None, own: Configuration | None = None
) -> Configuration | None:
    """Return a configuration, by default the file's `own`, with the multiplier that the user expects.

    `expect` is a rule, a number or a formula of d, such as "1/sqrt(d)". Raise InputError if it is none of these.
    """
    if expect is None:
        return given
    rule = expect if isinstance(expect, str) else f"{number_of(expect):.17g}"
    if scale_rule(rule).by_row or {*scale_rule(rule).needs} - {"d_k", "layer"}:
        raise InputError("expect: {rule} depends on more than d_k and the layer", rule=rule)
    return replace(given or own or Configuration(), intended=rule)


def _mscale(factor: float, mscale: float) -> float:
    """Return YaRN's 0.1·mscale·ln(factor) + 1."""
    return 1.0 if factor <= 1 else 0.1 * mscale * math.log(factor) + 1


def _configuration(values: Mapping[str, Any], where: str) -> Configuration:
    def number(*keys: str) -> float | None:
        for key in keys:
            value = values.get(key)
            if value is not None:
                return _number(value, key, where)
        return None

    def count(*keys: str) -> int | None:
        if any(_is_list_of_numbers(values.get(key)) for key in keys):
            return None  # one for each stage, as in Swin: the width of a head is then that of the capture
        value = number(*keys)
        if value is None:
            return None
        if value != int(value) or value > _LARGEST_COUNT:
            raise InputError(
                "{where}: {key!r} must be a whole number up to {most:g}, not {value:g}",
                where=where,
                key=keys[0],
                most=_LARGEST_COUNT,
                value=value,
            )
        return int(value)

    rope = _object(values.get("rope_parameters") or values.get("rope_scaling"))
    rope = _object(rope.get("full_attention")) or rope  # Gemma 3 has one for each type of layer
    kind = str(rope.get("rope_type", rope.get("type", "")))

    def of_rope(key: str) -> float | None:
        return None if rope.get(key) is None else _number(rope[key], f"rope_scaling.{key}", where, zero=True)

    longrope, factor, original = kind in ("longrope", "su"), of_rope("factor"), None
    if longrope or kind == "yarn":
        original = of_rope("original_max_position_embeddings") or number("original_max_position_embeddings")
        longest = number("max_position_embeddings") if factor is None else None
        factor = longest / original if original and longest else factor
    growth, incomplete = _growth(values, rope, where)
    softmax_scale = _object(values.get("attn_config")).get("softmax_scale")
    types = values.get("layer_types")
    positions = str(values.get("pos_att_type") or "")  # ["c2p", "p2c"] or "c2p|p2c"
    return Configuration(
        model_type=str(values.get("model_type", "")),
        hidden_size=count("hidden_size", "n_embd", "d_model"),
        heads=count("num_attention_heads", "n_head", "num_heads"),
        head_dim=count("head_dim", "d_kv"),
        query_pre_attn_scalar=number("query_pre_attn_scalar"),
        attention_multiplier=number("attention_multiplier"),
        softmax_scale=None if softmax_scale is None else _number(softmax_scale, "attn_config.softmax_scale", where),
        scale_attn_weights=values.get("scale_attn_weights") is not False,
        inverse_layer=bool(values.get("scale_attn_by_inverse_layer_idx")),
        softcap=number("attn_logit_softcapping", "attention_logit_cap", "conf_attention_logit_cap"),
        nope_dim=count("qk_nope_head_dim"),
        rope_dim=count("qk_rope_head_dim"),
        latent_rank=count("kv_lora_rank"),
        rope_factor=factor,
        original_context=original,
        mscale=of_rope("mscale"),
        mscale_all_dim=of_rope("mscale_all_dim"),
        attention_factor=of_rope("attention_factor"),
        yarn=kind == "yarn",
        longrope=longrope,
        inside=(number("key_multiplier") or 1.0) * (number("qk_scale_factor") or 1.0),
        growth=growth,
        unapplied=(*incomplete, *unapplied(values)),
        rope_theta=of_rope("rope_theta") or number("rope_theta"),
        rotary_share=of_rope("partial_rotary_factor") or number("partial_rotary_factor", "rotary_pct"),
        window=count("sliding_window") if values.get("sliding_window") else None,  # Qwen2-MoE has 0 for none
        layer_types=tuple(map(str, cast("list[object]", types))) if isinstance(types, list) else (),
        terms=1 + ("c2p" in positions) + ("p2c" in positions),
    )


def _growth(values: Mapping[str, Any], rope: Mapping[str, Any], where: str) -> tuple[Growth | None, tuple[str, ...]]:
    """Return the factor that grows with the position, and a key whose factor lacks another key."""

    def number(of: Mapping[str, Any], key: str, default: float) -> float:
        return default if of.get(key) is None else _number(of[key], key, where, zero=True)

    is_llama4 = str(values.get("model_type", "")).removesuffix("_text") == "llama4"
    if values.get("attn_temperature_tuning", is_llama4):  # the defaults are those of Llama4TextConfig
        rotary = values.get("no_rope_layers")  # whether each layer has a rotary embedding, in spite of the name
        interval = max(1, round(number(values, "no_rope_layer_interval", 4)))
        layers = tuple(not flag for flag in cast("list[object]", rotary)) if isinstance(rotary, list) else ()
        repeated = layers or (*(False,) * (interval - 1), True)
        strength, block = number(values, "attn_scale", 0.1), number(values, "floor_scale", 8192)
        return _growing("attn_temperature_tuning", strength, block, 1, layers=repeated, repeats=not layers)
    of_mistral = _object(values.get("llama_4_scaling"))  # as in Mistral's own files
    beta = number(rope, "llama_4_scaling_beta", number(of_mistral, "beta", 0))
    if beta:
        block = number(rope if "llama_4_scaling_beta" in rope else of_mistral, "original_max_position_embeddings", 0)
        return _growing("llama_4_scaling_beta", beta, block)
    if values.get("log_scaling_n_floor") is not None:
        block, types = number(values, "log_scaling_n_floor", 0), values.get("layer_types")
        if not isinstance(types, list):
            return None, ("log_scaling_n_floor",)
        layers = tuple("sliding" not in str(layer_type) for layer_type in cast("list[object]", types))
        strength = number(values, "log_scaling_alpha", 0.1)  # the default is that of InklingTextConfig
        return _growing("log_scaling_n_floor", strength, block, 1, smooth=True, layers=layers)
    return None, ()


def _growing(
    key: str, strength: float, block: float, first: int = 0, **more: Any
) -> tuple[Growth | None, tuple[str, ...]]:
    if not strength:
        return None, ()
    return (Growth(key, strength, block, first, **more), ()) if block else (None, (key,))


def _object(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _is_list_of_numbers(value: object) -> bool:
    return isinstance(value, list) and all(type(item) in (int, float) for item in cast("list[object]", value))


def _number(value: object, key: str, where: str, zero: bool = False) -> float:
    """Return a positive number, or also 0; raise InputError for anything else."""
    number = number_of(value)
    if not (SMALLEST <= number <= LARGEST or (zero and number == 0)):
        raise InputError(
            "{where}: {key!r} must be a positive number, from {least:g} to {most:g}, not {value}",
            where=where,
            key=key,
            least=SMALLEST,
            most=LARGEST,
            value=short(repr(value)),
        )
    return number
