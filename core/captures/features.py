"""FEATURES: what a capture may say of attention. A row has its keys of metadata, its tensors, and what they mean.

To add a feature, add its row. Keys, tensors and their other names are recognised from here, and what is near to one
but not understood refuses the layer (`unknown`); the tables of docs/capture-format.md are made from here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from ..message import Plain, message, plain, quoted
from ..texts import TextError, from_json
from .capture import Corner
from .files import CaptureError

V = TypeVar("V")
SCHEMAS = ("attn-tui/qk-2", "attn-tui/qk-1")
Causal = Literal["yes", "no", "top_left", "bottom_right"]  # "yes": corner not specified
# Scores, scales and logits of these sizes have statistics in float64: fourth powers of scores are the most extreme.
# They include every number of float32 that is not 0.
SMALLEST, LARGEST = 1e-50, 1e50


class Values:
    """The values of one layer, or of a file: its own ones first. Every method raises CaptureError, naming the key."""

    def __init__(self, where: str, own: Mapping[str, object], shared: Mapping[str, str]) -> None:
        self.where, self.own, self.shared = where, own, shared

    def get(self, key: str) -> object:
        """Return the value of a key, None if there is none."""
        return self.own.get(key, self.shared.get(key))

    def text(self, key: str) -> Plain | None:
        """Return free text as one line that is safe to show."""
        value = self.get(key)
        return None if value is None else plain(value)

    def positive(self, key: str, zero_is_none: bool = False) -> float | None:
        """Return a positive number; with `zero_is_none`, 0 and "none" mean None."""
        value = self.get(key)
        if value is None:
            return None
        try:
            number = float(cast(str, value)) if isinstance(value, (str, int, float)) else math.nan
        except (ValueError, OverflowError):
            number = math.nan
        if zero_is_none and (number == 0 or value in ("none", "null")):
            return None
        if isinstance(value, bool) or not 0 < number < math.inf:
            raise self.error(key, value, "a positive number")
        return number

    def count(self, key: str, least: int = 1, none: bool = False) -> int | None:
        """Return a whole number; with `none`, 0 and "none" mean None."""
        value = self.get(key)
        text = str(value).strip()
        if value is None or (none and text.lower() in ("0", "none", "null")):
            return None
        whole = text.isascii() and text.isdigit() and len(text) < 10
        if not (whole and int(text) >= least):
            raise self.error(key, value, "a positive whole number" if least else "a whole number from 0 up")
        return int(text)

    def numbers(self, key: str, least: float | None = None) -> tuple[float, ...] | None:
        """Return a list of finite numbers from `least` up, by default of positive ones."""
        value = self.get(key)
        if value is None:
            return None
        floats = [number(item) for item in self.listed(key, value)]
        if not floats or not all(math.isfinite(x) and (x > 0 if least is None else x >= least) for x in floats):
            kind = "positive numbers" if least is None else "numbers from 0 up" if least == 0 else "numbers"
            raise self.error(key, value, message("a JSON list of {kind}", kind=kind))
        return tuple(floats)

    def whole_numbers(self, key: str, least: int, accepted: str, end: float = 1 << 62) -> tuple[int, ...] | None:
        """Return a list of whole numbers from `least` up and below `end`."""
        value = self.get(key)
        if value is None:
            return None
        listed = self.listed(key, value)
        if not listed or not all(type(item) is int and least <= item < end for item in listed):
            raise self.error(key, value, accepted)
        return tuple(cast("Sequence[int]", listed))

    def word(self, key: str, accepted: Mapping[str, Any]) -> Any:
        """Return what is meant by one of the accepted words."""
        value = self.get(key)
        if value is None:
            return None
        word = str(value).strip().lower()
        if word not in accepted:
            raise self.error(key, value, " or ".join(accepted))
        return accepted[word]

    def json(self, key: str, value: str) -> object:
        """Return the value of a key that is a JSON text."""
        try:
            return from_json(value)
        except TextError as error:
            raise CaptureError("{where} {key!r} {fault}", where=self.where, key=key, fault=error) from error

    def listed(self, key: str, value: object) -> Sequence[object]:
        """Return a list, which may be a JSON text; an empty one for anything else."""
        return sequence(self.json(key, value) if isinstance(value, str) else value)

    def error(self, key: str, value: object, accepted: str) -> CaptureError:
        """Return the error for a value that is not accepted."""
        template = "{where} {key!r} must be {accepted}, not {value}"
        return CaptureError(template, where=self.where, key=key, accepted=accepted, value=quoted(value))


def sequence(value: object) -> Sequence[object]:
    """Return a list; an empty sequence for anything else."""
    return cast("list[object]", value) if isinstance(value, list) else ()


def number(value: object) -> float:
    """Return a number of JSON; NaN if it is none, or too large."""
    try:
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.nan


def strings(value: object) -> tuple[Plain, ...] | None:
    """Return a list of strings, each safe to show; None for anything else."""
    listed = sequence(value)
    return tuple(map(plain, listed)) if listed and all(isinstance(text, str) for text in listed) else None


def is_list(value: object) -> bool:
    """Return whether a value is a list, or the JSON text of one."""
    return isinstance(value, list) or (isinstance(value, str) and value.strip().startswith("["))


def alignment_of(values: Values) -> Corner | None:
    """Return the corner that a layer names."""
    return values.word("alignment", {"top-left": "top_left", "bottom-right": "bottom_right"})


_CAUSAL: dict[str, Causal] = {
    "true": "yes", "yes": "yes", "1": "yes", "causal": "yes",
    "false": "no", "no": "no", "0": "no", "none": "no", "null": "no",
    "top_left": "top_left", "upper_left": "top_left",
    "bottom_right": "bottom_right", "lower_right": "bottom_right",
}  # fmt: skip


def causal_of(values: Values) -> Causal | None:
    """Return whether attention is causal, and the corner if it is specified."""
    value = values.get("causal")
    alignment: Causal | None = alignment_of(values)
    if value is None:
        return None
    word = str(value).strip().lower().replace("-", "_").replace(" ", "_")
    if word not in _CAUSAL:
        raise values.error("causal", value, "true, false, top-left or bottom-right")
    causal = _CAUSAL[word]
    if alignment is None or causal == "no":
        return causal
    if causal not in ("yes", alignment):
        raise values.error("alignment", values.get("alignment"), message("that of 'causal', {word}", word=word))
    return alignment


_FARTHEST = 10**15  # keys from a query to an end of its window


def window_of(values: Values) -> tuple[int | None, int | None] | None:
    """Return how many keys before and after a query it sees; None if it sees all."""
    value = values.get("window")
    text = str(value).strip()
    if text.lower() in ("0", "none", "null"):
        return None
    if text.startswith("(") and text.endswith(")"):  # a tuple of Python
        text = f"[{text[1:-1]}]"
    listed = sequence(values.json("window", text) if text.startswith("[") and isinstance(value, str) else value)
    if len(listed) == 2 and all(type(side) is int and side < _FARTHEST for side in listed):
        before, after = (None if cast(int, side) < 0 else cast(int, side) for side in listed)
        return None if before is None and after is None else (before, after)
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        accepted = "a positive whole number, or [keys before, keys after], where -1 means all"
        raise values.error("window", value, accepted)
    if causal_of(values) in (None, "no"):
        accepted = "[keys before, keys after] where attention is not causal, as in flash-attention"
        raise values.error("window", value, accepted)
    return int(text) - 1, 0


def _scale(values: Values) -> float | None:
    """Return the multiplier, which may be a list of one number."""
    if not is_list(values.get("scale")):
        return values.positive("scale")
    listed = values.numbers("scale") or ()
    return listed[0] if len(listed) == 1 else None


def _head_scales(values: Values) -> tuple[float, ...] | None:
    """Return the multiplier of each head, which may be listed under either key."""
    scales = values.numbers("head_scales")
    if not is_list(values.get("scale")):
        return scales
    if scales is not None:
        template = "{where} has both 'scale' and 'head_scales' for each head; keep one of them"
        raise CaptureError(template, where=values.where)
    listed = values.numbers("scale") or ()
    return listed if len(listed) > 1 else None


def _prescaled(values: Values) -> tuple[float | None, float | None]:
    """Return the factors that the stored queries and keys contain; None for one that is unknown."""
    value = values.get("prescaled")
    if value is None:
        return 1.0, 1.0
    factors = [None if item is None else number(item) for item in values.listed("prescaled", value)]
    if len(factors) != 2 or not all(factor is None or SMALLEST <= factor <= LARGEST for factor in factors):
        accepted = message(
            "two positive numbers from {least:g} to {most:g}: the factors in the stored q and k; null if one is "
            "unknown",
            least=SMALLEST,
            most=LARGEST,
        )
        raise values.error("prescaled", value, accepted)
    return factors[0], factors[1]


def _dropout(values: Values) -> float:
    value = values.get("weights_dropout")
    try:
        factor = 0.0 if value is None else float(cast(str, value))
    except (TypeError, ValueError):
        factor = math.nan
    if not 0 <= factor <= 1:
        raise values.error("weights_dropout", value, "a number from 0 to 1")
    return factor


def _changed(values: Values) -> tuple[Plain, ...]:
    """Return the operations that changed weights."""
    value = values.get("weights_changed")
    if value is None:
        return ()
    found = strings(values.listed("weights_changed", value))
    if found is None:
        raise values.error("weights_changed", value, "a JSON list of texts")
    return found


def _not_finite(values: Values) -> tuple[tuple[int, int], ...]:
    """Return of each head how many scores were not finite, and of how many."""
    value = values.get("not_finite")
    if value is None:
        return ()
    listed = values.listed("not_finite", value)
    pairs = [cast("Sequence[int]", sequence(item)) for item in listed]
    if not pairs or not all(
        len(pair) == 2 and all(type(number) is int for number in pair) and 0 <= pair[0] <= pair[1] for pair in pairs
    ):
        raise values.error("not_finite", value, "a JSON list of [count, of], one for each head")
    return tuple((pair[0], pair[1]) for pair in pairs)


def _mask(values: Values) -> str | None:
    mask = values.get("mask")
    if mask is not None and not isinstance(mask, str):
        raise values.error("mask", mask, "the name of a tensor, or null")
    return mask


@dataclass(frozen=True)
class Feature:
    """What files may say in metadata, in a tensor, or in either."""

    name: str
    key: str = ""  # in metadata; by default the name
    aliases: tuple[str, ...] = ()  # other names of the key: those of model configurations
    accepted: str = ""  # values of the key, for docs/capture-format.md
    meaning: str = ""
    places: tuple[str, ...] = ()  # that may have the key: "file", "entry" of `layers`; empty: it is a tensor only
    parse: Callable[[Values], Any] | None = None  # returns the value of a layer, for its field of this name
    changes: bool = False  # whether another spelling of the key refuses a layer
    tensors: tuple[str, ...] = ()  # names, in order of preference
    shape: str = ""  # of the tensor, for docs/capture-format.md
    tensor_means: str = ""
    group: str = ""  # of the tensor: "mask", "added" to logits or their scale, or "evidence"


_BOTH = ("file", "entry")


def _of_file(name: str, accepted: str, meaning: str, **more: Any) -> Feature:
    return Feature(name, name, (), accepted, meaning, ("file",), **more)


def _of_layer(name: str, accepted: str, meaning: str, parse: Callable[[Values], Any], **more: Any) -> Feature:
    more = {"key": name, "changes": True, **more}
    return Feature(name, accepted=accepted, meaning=meaning, places=_BOTH, parse=parse, **more)


def _tensors(name: str, group: str, tensors: str, shape: str = "", means: str = "") -> Feature:
    return Feature(name, tensors=tuple(tensors.split()), shape=shape, tensor_means=means, group=group)


_HEADS = "[head]"
FEATURES: tuple[Feature, ...] = (
    _of_file("schema", "`attn-tui/qk-2`, `attn-tui/qk-1`", "axes are [batch, head, token, d_k]"),
    _of_file("model", "text", "name of the model"),
    _of_file("model_source", "text", "where its weights come from"),
    _of_file("model_licence", "text", "their licence"),
    _of_file("text", "text, or a JSON list with a string for each text", "what the model read"),
    _of_file("text_licence", "text", "its licence"),
    _of_file(
        "tokens", "JSON list of strings, or a list of such lists, one for each text", "a name for every key"
    ),
    _of_file("query_tokens", "as `tokens`", "a name for every query of cross-attention, which are of another text"),
    _of_file(
        "lengths", "JSON list of positive whole numbers, one for each text", "tokens that are not padding",
        changes=True,
    ),
    _of_file("axes", "see [Axes](#axes)", "order of the axes", changes=True),
    Feature("index", "index", places=("entry",), parse=lambda values: values.count("index", least=0)),
    Feature("name", "name", places=("entry",), parse=lambda values: values.text("name")),
    _of_layer(
        "heads", "positive whole number", "query heads; must agree with the shape",
        lambda values: values.count("heads"), changes=False,
    ),
    _of_layer(
        "kv_heads", "positive whole number", "key heads; a disagreement with the shape is noted",
        lambda values: values.count("kv_heads"), changes=False,
    ),
    _of_layer(
        "d_k", "positive whole number", "width of a head; must agree with the shape",
        lambda values: values.count("d_k"), changes=False,
    ),
    _of_layer(
        "scale", "positive number, or a JSON list with one for each head",
        "what q·k as stored is multiplied by, never the divisor: 0.125, not 8", _scale,
    ),
    _of_layer(
        "head_scales", "JSON list of positive numbers, one for each head", "the same, if heads differ", _head_scales
    ),
    _of_layer(
        "prescaled", "JSON list of two positive numbers",
        "the factors that the stored q and k contain; `null` for one that is unknown, such as a learned gain",
        _prescaled,
    ),
    _of_layer(
        "causal",
        "`true`, `yes`, `1`, `causal`, `false`, `no`, `0`, `none`, `top-left`, `bottom-right`",
        "causal mask, and its alignment", causal_of,
    ),
    _of_layer(
        "alignment", "`top-left`, `bottom-right`",
        "the alignment, if `causal` does not say it; also that of windows and chunks", alignment_of,
    ),
    _of_layer(
        "window", "whole number W, `[before, after]` or `(before, after)` with −1 for all, or `none`",
        "query i sees keys i − W + 1 to i, or i − before to i + after", window_of,
        aliases=("sliding_window", "window_size"),
    ),
    _of_layer(
        "chunk", "positive whole number, or `none`", "a query sees keys of its own chunk of this size",
        lambda values: values.count("chunk", none=True), aliases=("attention_chunk_size",),
    ),
    _of_layer(
        "softcap", "positive number; `0` or `none` for none",
        "logits become cap·tanh(logit/cap), after the scale and before biases",
        lambda values: values.positive("softcap", zero_is_none=True), aliases=("attn_logit_softcapping",),
    ),
    _tensors(
        "bias", "added", "bias attn_bias attention_bias position_bias relative_position_bias alibi",
        "[batch, head, queries, keys], [head, queries, keys] or [queries, keys]; axes but the last may be 1; "
        "`alibi` of shape [head] holds slopes",
        "added to the logits after the soft-cap; −10000 or less hides a key",
    ),
    _of_layer(
        "slopes", "JSON list of numbers from 0 up, one for each head",
        "the slope times the distance of query and key is subtracted",
        lambda values: values.numbers("alibi_slopes", least=0), key="alibi_slopes",
        tensors=("alibi_slopes", "slopes"), group="added", shape=_HEADS,
        tensor_means="the slope times the distance of query and key is subtracted (ALiBi)",
    ),
    _of_layer(
        "sinks", "JSON list of numbers, one for each head", "a logit of no key, as in gpt-oss",
        lambda values: values.numbers("sinks", least=-math.inf),
        tensors=("sinks", "attn_sinks", "sink"), group="added", shape=_HEADS,
        tensor_means="a logit of no key, as in gpt-oss",
    ),
    _tensors(
        "scales", "added", "scale scales head_scales",
        "[batch, head, queries, 1], where axes may be 1; or [head], [queries], [batch] or two or three of them in "
        "this order",
        "the multiplier of q·k as stored, instead of the metadata's",
    ),
    _tensors(
        "row_factors", "added", "row_factors",
        "[batch, head, queries, 1], where axes may be 1",
        "the factor of each query that the stored q contains, beside `prescaled`, such as a temperature",
    ),
    _of_layer(
        "rows", "JSON list of whole numbers from 0 up, one for each query",
        "the position of each query among the keys, if only some are saved",
        lambda values: values.whole_numbers(
            "rows", 0, "a JSON list of whole numbers from 0 up, the position of each query"
        ),
        tensors=("rows",), group="added", shape="[queries]",
        tensor_means="the position of each query among the keys, if only some queries are saved",
    ),
    _of_layer(
        "attention", "`self`, `cross`, `heads`",
        "whether queries and keys are of the same text, or the heads of one token",
        lambda values: values.word("attention", {each: each for each in ("self", "cross", "heads")}),
    ),
    _of_layer(
        "mask_true", "`visible`, `hidden`", "what True and 1 mean in masks",
        lambda values: values.word("mask_true", {"visible": "visible", "hidden": "hidden"}),
    ),
    _of_layer(
        "over_queries", "`keys` or `queries`", "the axis of softmax, `keys` by default",
        lambda values: values.word("softmax_axis", {"keys": False, "queries": True}) or False, key="softmax_axis",
    ),
    _of_layer(
        "output_factor", "positive number", "what the weighted values were multiplied by to give `o`",
        lambda values: values.positive("output_factor") or 1.0, changes=False,
    ),
    _of_layer(
        "dropout", "number from 0 to 1", "the share of weights that dropout set to 0: o is not judged",
        _dropout, key="weights_dropout", changes=False,
    ),
    _of_layer(
        "changed", "JSON list of text",
        "what else changed the weights between softmax and the values, in order: o is not judged", _changed,
        key="weights_changed", changes=False,
    ),
    _of_layer(
        "followed", "`true`, `false`",
        "whether the recorder saw how the weights met the values, `true` by default; if not, o is not judged",
        lambda values: values.word("weights_followed", {"true": True, "false": False}) is not False,
        key="weights_followed", changes=False,
    ),
    _of_layer(
        "not_finite", "JSON list of `[count, of]`, one for each head",
        "how many scores were NaN or infinite when they entered softmax though nothing hides them, and of how many",
        _not_finite, changes=False,
    ),
    _of_layer(
        "scores", "text", "number format of what entered softmax", lambda values: values.text("scores"), changes=False
    ),
    _of_layer(
        "observed", "`true`, `false`",
        "whether scale, masks and soft-cap are what a program was seen to do; then they are not what is expected of "
        "it",
        lambda values: values.word("observed", {"true": True, "false": False}) or False, changes=False,
    ),
    _of_layer(
        "mask", "the name of a tensor; in an entry of `layers` also null, for none", "the mask, see [Masks](#masks)",
        _mask, tensors=("mask", "attn_mask", "attention_mask", "src_mask", "tgt_mask", "memory_mask"), group="mask",
        shape="see below", tensor_means="which keys are visible",
    ),
    _tensors("causal_mask", "mask", "causal_mask", "as `mask`", "the same, in addition"),
    _tensors(
        "padding", "mask",
        "key_padding_mask padding_mask src_key_padding_mask tgt_key_padding_mask memory_key_padding_mask",
        "as `mask`", "which keys are padding, in addition",
    ),
    _tensors("key_mask", "mask", "key_mask kv_mask", "as `mask`", "which keys are visible, in addition"),
    _tensors(
        "query_mask", "mask", "query_mask q_mask", "[queries] or [batch, queries]",
        "which queries count: those that it hides are left out",
    ),
    _tensors(
        "v", "evidence", "v V hook_v Vcur value v_proj",
        "axes in the order of k; heads as in k or in q, separate or side by side", "values",
    ),
    _tensors(
        "o", "evidence", "o out output hook_z z",
        "axes in the order of q, or [batch, token, head, d_v]; side by side in `o`, `z` and `hook_z` only",
        "outputs of heads, before they are mixed",
    ),
    _tensors(
        "lse", "evidence", "lse logsumexp softmax_lse", "[batch, head, queries] or [batch, queries, head]",
        "log-sum-exps of logits, natural logarithms",
    ),
    _tensors(
        "weights", "evidence", "weights attn_weights hook_pattern pattern kq_soft_max",
        "[batch, head, queries, keys]; beyond the keys, as in a cache, 0", "weights",
    ),
    _of_file("scale_rule", "text", "how the scale was made, for people"),
    _of_file("layers", "JSON list of objects", "what differs between layers"),
    Feature("layer_type", "layer_type", places=("entry",)),
    _of_file(
        "layer_types", "JSON list of strings, one for each layer of the model",
        "the `layer_type` of each layer, as in configurations of transformers",
    ),
    _of_file("d_model", "whole number", "width of the model"),
    _of_file("n_heads", "whole number", "heads of the model, if only some are saved"),
    _of_file("config", "JSON object", "the model's `config.json`; says how far its context was extended"),
    _of_file("expect", "a rule, number or formula of d", "the multiplier that is intended, whatever was recorded"),
    _of_file("step", "whole number", "step of the training run"),
    _of_file("versions", "text", "versions of libraries"),
    _of_file("capture", "text", "how the capture was made"),
    Feature("backend", "backend", places=("entry",)),
    _of_layer(
        "notes", "text", "for people",
        lambda values: values.text("notes"), changes=False,
    ),
)  # fmt: skip
FEATURE: Mapping[str, Feature] = {feature.name: feature for feature in FEATURES}

KEYS = tuple(feature.key for feature in FEATURES if "file" in feature.places)
KNOWN = (*KEYS, "format")  # `format` is written by libraries
OF_ENTRIES = tuple(feature.key for feature in FEATURES if "entry" in feature.places)
ALIASES = {alias: feature.key for feature in FEATURES for alias in feature.aliases}
# What a misspelt key may have meant, if it changes what is measured.
MEANT = {key for feature in FEATURES if feature.changes for key in (feature.key, *feature.aliases)}
OF_LAYERS = tuple(feature for feature in FEATURES if feature.parse is not None)

# The names of tensors by feature. A layer's tensor has the prefix or the number of its queries; one without either
# belongs to every layer that has none, unless it is evidence: what does not change the logits.
TENSORS = {feature.name: feature.tensors for feature in FEATURES if feature.tensors}
MASKS = tuple(feature.name for feature in FEATURES if feature.group == "mask")  # all of which are applied
ADDED = tuple(feature.name for feature in FEATURES if feature.group == "added")
EVIDENCE = tuple(feature.name for feature in FEATURES if feature.group == "evidence")
SHARED = (*MASKS, *ADDED)
# Keys that are tensors in an .npz file.
ARRAYS = tuple(feature.key for feature in FEATURES if feature.key in feature.tensors and feature.key)

_SLOPES = ("alibi", "slopes")  # of each head, if they are lists


def first_name(key: str, value: object) -> str:
    """Return the first name of a key: `alibi` is another name of slopes if it lists them."""
    return "alibi_slopes" if key in _SLOPES and is_list(value) else ALIASES.get(key, key)


def by_name(where: str, values: Mapping[str, V]) -> dict[str, V]:
    """Return values by the first name of their keys; raise CaptureError if two keys mean the same."""
    named: dict[str, V] = {}
    for key, value in values.items():
        name = first_name(key, value)
        if name in named:
            other = next(other for other in values if first_name(other, values[other]) == name)
            raise CaptureError(
                "{where} has both {other!r} and {key!r}; keep one of them", where=where, other=other, key=key
            )
        named[name] = value
    return named
