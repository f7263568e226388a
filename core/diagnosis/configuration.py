"""The keys of a model's config.json that say how its attention is scaled."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from ..errors import InputError
from ..message import message
from ..scales import ScaleName, Setting, multiplier, scale_rule
from .model_types import is_scaled
from .results import Expected

# Models whose scores are not scaled: T5 and GPT-Neo fold the scale into their initialisation, Gemma 3n and 4 into the
# gains of their QK-norm.
_UNSCALED = ("t5", "mt5", "umt5", "longt5", "switch_transformers", "gpt_neo", "gemma3n", "gemma4")
# Parts of models that have a configuration of their own, by the name of the module.
_PARTS = ("text", "vision", "audio", "encoder", "decoder", "qformer")
# Models with absorbed latent attention may store q and k of width kv_lora_rank + qk_rope_head_dim.


@dataclass(frozen=True)
class Configuration:
    """A model's configuration: the keys that matter for attention, None where they are missing."""

    model_type: str = ""
    hidden_size: int | None = None
    heads: int | None = None
    head_dim: int | None = None
    query_pre_attn_scalar: float | None = None
    attention_multiplier: float | None = None
    scale_attn_weights: bool = True
    inverse_layer: bool = False
    softcap: float | None = None
    nope_dim: int | None = None
    rope_dim: int | None = None
    latent_rank: int | None = None
    rope_factor: float | None = None  # how many times longer the context was made
    mscale: float | None = None
    mscale_all_dim: float | None = None
    attention_factor: float | None = None
    yarn: bool = False
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
            each is not None for each in (self.attention_multiplier, self.query_pre_attn_scalar, self.intended)
        )
        stated |= not self.scale_attn_weights or self.inverse_layer
        return stated or self.model_type.removesuffix("_text") in _UNSCALED or is_scaled(self.model_type)

    def of(self, name: str) -> Configuration:
        """Return the configuration of a layer of this name: that of the part of the model that it is in."""
        words = re.split(r"[._\d]+", name)
        part = next((config for word, config in self.parts if word in words), None)
        return self if part is None else replace(part, intended=self.intended)

    @property
    def latent_width(self) -> int | None:
        """The width of q and k in absorbed latent attention; None without latent attention."""
        if self.latent_rank is None or self.rope_dim is None:
            return None
        return self.latent_rank + self.rope_dim

    @property
    def amplitude(self) -> float | None:
        """The factor that YaRN puts on q and on k, through the cosines and sines; None without YaRN."""
        if self.attention_factor is not None:
            return self.attention_factor
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


def parse_configuration(text: str, where: str) -> Configuration:
    """Return the keys that matter of the text of a config.json; raise InputError if it is not one."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("{where}: is not JSON: {error}", where=where, error=str(error)[:100]) from error
    if not isinstance(found, dict):
        raise InputError("{where}: must be a JSON object with the keys of a config.json", where=where)
    return configuration_of(cast("dict[str, object]", found), where)


def configuration_of(values: Mapping[str, object], where: str) -> Configuration:
    """Return the keys that matter of a config.json; raise InputError if one of them makes no sense.

    A model of text and images has those of text in `text_config`.
    """
    inner = {word: _object(values.get(f"{word}_config", values.get(word))) for word in _PARTS}
    parts = tuple((word, _configuration(own, where)) for word, own in inner.items() if own)
    return replace(_configuration({**values, **inner["text"]}, where), parts=parts)


def configured_scale(config: Configuration, layer: int, d_k: int) -> Expected:
    """Return the multiplier of q·k that the configuration asks for, factors inside q and k included.

    `d_k` is used where the configuration does not give the width of a head.
    """
    if config.intended is not None:
        value = multiplier(config.intended, Setting(d_k=config.width or d_k, layer=layer))
        return Expected(value, scale_rule(config.intended).formula)
    kind = config.model_type.removesuffix("_text")
    if config.attention_multiplier is not None:
        found = Expected(config.attention_multiplier, "attention_multiplier")
    elif kind in _UNSCALED:
        found = Expected(1.0, message("{model_type} does not scale", model_type=config.model_type))
    elif config.query_pre_attn_scalar is not None:
        scalar = config.query_pre_attn_scalar
        found = Expected(scalar**-0.5, message("1/√{width:g}, query_pre_attn_scalar", width=scalar))
    elif not config.scale_attn_weights:
        found = Expected(1.0, "scale_attn_weights is false")
    else:
        width = (config.width or d_k) * config.terms
        found = Expected(width**-0.5, f"1/√{width}")
    if config.latent_rank is not None and config.mscale_all_dim and config.rope_factor is not None:
        factor = _mscale(config.rope_factor, config.mscale_all_dim) ** 2
        found = Expected(
            found.multiplier * factor, message("{words} × mscale² {factor:.4g}", words=found.words, factor=factor)
        )
    if config.inverse_layer:
        found = Expected(found.multiplier / (layer + 1), message("{words} / (layer + 1)", words=found.words))
    return found


def expecting(
    expect: str | float | None, given: Configuration | None = None, own: Configuration | None = None
) -> Configuration | None:
    """Return a configuration, by default the file's `own`, with the multiplier that the user expects.

    `expect` is a rule, a number or a formula of d, such as "1/sqrt(d)". Raise InputError if it is none of these.
    """
    if expect is None:
        return given
    rule = f"{expect:.17g}" if isinstance(expect, (int, float)) else expect
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
        if value != int(value):
            raise InputError(
                "{where}: {key!r} must be a whole number, not {value:g}", where=where, key=keys[0], value=value
            )
        return int(value)

    rope = _object(values.get("rope_parameters") or values.get("rope_scaling"))
    rope = _object(rope.get("full_attention")) or rope  # Gemma 3 has one for each type of layer
    kind = str(rope.get("rope_type", rope.get("type", "")))

    def of_rope(key: str) -> float | None:
        return None if rope.get(key) is None else _number(rope[key], f"rope_scaling.{key}", where, zero=True)

    types = values.get("layer_types")
    positions = str(values.get("pos_att_type") or "")  # ["c2p", "p2c"] or "c2p|p2c"
    return Configuration(
        model_type=str(values.get("model_type", "")),
        hidden_size=count("hidden_size", "n_embd", "d_model"),
        heads=count("num_attention_heads", "n_head", "num_heads"),
        head_dim=count("head_dim", "d_kv"),
        query_pre_attn_scalar=number("query_pre_attn_scalar"),
        attention_multiplier=number("attention_multiplier"),
        scale_attn_weights=values.get("scale_attn_weights") is not False,
        inverse_layer=bool(values.get("scale_attn_by_inverse_layer_idx")),
        softcap=number("attn_logit_softcapping"),
        nope_dim=count("qk_nope_head_dim"),
        rope_dim=count("qk_rope_head_dim"),
        latent_rank=count("kv_lora_rank"),
        rope_factor=of_rope("factor"),
        mscale=of_rope("mscale"),
        mscale_all_dim=of_rope("mscale_all_dim"),
        attention_factor=of_rope("attention_factor"),
        yarn=kind == "yarn",
        rope_theta=of_rope("rope_theta") or number("rope_theta"),
        rotary_share=of_rope("partial_rotary_factor") or number("partial_rotary_factor", "rotary_pct"),
        window=count("sliding_window") if values.get("sliding_window") else None,  # Qwen2-MoE has 0 for none
        layer_types=tuple(map(str, cast("list[object]", types))) if isinstance(types, list) else (),
        terms=1 + ("c2p" in positions) + ("p2c" in positions),
    )


def _object(value: object) -> Mapping[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _is_list_of_numbers(value: object) -> bool:
    return isinstance(value, list) and all(type(each) in (int, float) for each in cast("list[object]", value))


def _number(value: object, key: str, where: str, zero: bool = False) -> float:
    """Return a positive number, or also 0; raise InputError for anything else."""
    number = float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    if not (0 < number < math.inf or (zero and number == 0)):
        raise InputError(
            "{where}: {key!r} must be a positive number, not {value!r}", where=where, key=key, value=value
        )
    return number
