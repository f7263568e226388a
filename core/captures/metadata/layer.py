"""The metadata of one layer: those of its own entry, else those of the file."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, cast

from ...message import message
from ...plain import Plain, plain, quoted
from ..beside.unknown import denied_changes_attention, metadata_changes_attention
from ..capture import Corner, Meaning
from ..files import CaptureError
from .keys import KNOWN, MEANT, NOTHING, OF_ENTRIES, OTHERS, by_name
from .values import Values, number, sequence

Causal = Literal["yes", "no", "top_left", "bottom_right"]  # "yes": corner not specified

_CAUSAL: dict[str, Causal] = {
    "true": "yes", "yes": "yes", "1": "yes", "causal": "yes",
    "false": "no", "no": "no", "0": "no", "none": "no", "null": "no",
    "top_left": "top_left", "upper_left": "top_left",
    "bottom_right": "bottom_right", "lower_right": "bottom_right",
}  # fmt: skip
# Types of layers whose weights are not softmax of scaled scores of every key.
_OTHER_LAYERS = re.compile(
    r"linear|sparse_att|block_sparse|recurrent|mamba|conv|delta|compressed|sigmoid|differential"
)


@dataclass(frozen=True)
class LayerMetadata:
    """The metadata of one layer; None where a value is missing."""

    name: Plain | None
    scale: float | None
    head_scales: tuple[float, ...] | None
    prescaled: tuple[float, float]  # the factors in the stored queries and keys; 1 if unknown
    unknown_factor: bool  # whether one of them is not one known number
    causal: Causal | None
    alignment: Corner | None  # of a window, and of a causal mask
    flash: bool  # whether the alignment is flash-attention's, since the window has its name and form
    window: tuple[int | None, int | None] | None  # keys before and after a query that it sees; None: all
    chunk: int | None
    softcap: float | None
    sinks: tuple[float, ...] | None  # a logit of no key for each head
    slopes: tuple[float, ...] | None  # of each head, for distances of query and key (ALiBi)
    rows: tuple[int, ...] | None  # the position of each query
    cross: bool | None  # whether queries and keys are of different texts
    heads: int | None
    kv_heads: int | None
    d_k: int | None
    mask: str | None
    unmasked: bool  # whether the mask is explicitly null
    mask_true: Meaning | None
    scores: str | None  # the number format of what entered softmax
    over_queries: bool  # whether softmax ran over the queries
    left_padded: bool  # whether padding precedes the tokens of texts
    observed: bool = False  # whether the values are what a program did, and not what it was meant to do
    index: int | None = None  # the layer's number, in its entry
    refusal: str = ""  # why the layer cannot be measured


def layer_metadata(
    where: str, entry: Mapping[str, object], shared: Mapping[str, str], given: Collection[str]
) -> LayerMetadata:
    """Return the metadata of a layer with this entry in a file with the `shared` values, under their first names.

    `given` are the keys as the file has them. Raise CaptureError, naming the key, for a value that is not accepted.
    """
    own = by_name(where, entry)
    kind = _kind(own)
    others = [key for key, word in (("window", "slid"), ("chunk", "chunk")) if kind and word not in kind]
    if others and any(word in kind for word in ("full", "global", "slid", "chunk")):  # the file's are of other layers
        shared = {key: value for key, value in shared.items() if key not in others}
    values = Values(where, own, shared)
    mask = values.get("mask")
    if mask is not None and not isinstance(mask, str):
        raise values.error("mask", mask, "the name of a tensor, or null")
    name, scores = own.get("name"), values.get("scores")
    causal, alignment = _causal(values), _alignment(values)
    flash = alignment is None and "window_size" in (entry if "window" in own else given)
    flash = flash and not str(values.get("window")).strip().isdigit()
    scale, head_scales = _scales(values)
    prescaled = _factors(values)
    return LayerMetadata(
        name=None if name is None else plain(name),
        scale=scale,
        head_scales=head_scales,
        prescaled=(prescaled[0] or 1.0, prescaled[1] or 1.0),
        unknown_factor=None in prescaled,
        causal=causal,
        alignment="bottom_right" if flash else alignment,
        flash=flash,
        window=_window(values, causal),
        chunk=values.count("chunk", none=True),
        softcap=values.positive("softcap", zero_is_none=True),
        sinks=values.numbers("sinks", least=-math.inf),
        slopes=values.numbers("alibi_slopes", least=0),
        rows=_rows(values),
        cross=values.word("attention", {"self": False, "cross": True}),
        heads=values.count("heads"),
        kv_heads=values.count("kv_heads"),
        d_k=values.count("d_k"),
        mask=mask,
        unmasked="mask" in own and mask is None,
        mask_true=values.word("mask_true", {"visible": "visible", "hidden": "hidden"}),
        scores=None if scores is None else plain(scores),
        over_queries=values.word("softmax_axis", {"keys": False, "queries": True}) or False,
        left_padded=str(values.get("padding_side")).strip().lower() == "left",
        observed=values.word("observed", {"true": True, "false": False}) or False,
        index=values.count("index", least=0),
        refusal=_unknown_change(values) or _missing_window(values, causal),
    )


def _scales(values: Values) -> tuple[float | None, tuple[float, ...] | None]:
    """Return the multiplier, or that of each head, which may be lists under either key."""
    value = values.get("scale")
    head_scales = values.numbers("head_scales")
    if not (isinstance(value, list) or (isinstance(value, str) and value.strip().startswith("["))):
        return values.positive("scale"), head_scales
    listed = values.numbers("scale")
    assert listed is not None, "there is a list"
    if head_scales is not None:
        raise CaptureError(
            "{where} has both 'scale' and 'head_scales' for each head; keep one of them", where=values.where
        )
    return (listed[0], None) if len(listed) == 1 else (None, listed)


def _rows(values: Values) -> tuple[int, ...] | None:
    """Return the positions of queries."""
    value = values.get("rows")
    if value is None:
        return None
    listed = sequence(values.json("rows", value) if isinstance(value, str) else value)
    if not listed or not all(type(row) is int and 0 <= row < 1 << 62 for row in listed):
        raise values.error("rows", value, "a JSON list of whole numbers from 0 up, the position of each query")
    return tuple(cast("Sequence[int]", listed))


def _factors(values: Values) -> tuple[float | None, float | None]:
    """Return the factors that the stored queries and keys contain; None for one that is unknown."""
    value = values.get("prescaled")
    if value is None:
        return 1.0, 1.0
    listed = sequence(values.json("prescaled", value) if isinstance(value, str) else value)
    found = [None if each is None else number(each) for each in listed]
    if len(found) != 2 or not all(each is None or 0 < each < math.inf for each in found):
        accepted = message("two positive numbers: the factors in the stored q and k; null if one is unknown")
        raise values.error("prescaled", value, accepted)
    return found[0], found[1]


def _window(values: Values, causal: Causal | None) -> tuple[int | None, int | None] | None:
    """Return how many keys before and after a query it sees; None if it sees all."""
    value = values.get("window")
    text = str(value).strip()
    if value is None or text.lower() in ("0", "none", "null"):
        return None
    if text.startswith("(") and text.endswith(")"):  # a tuple of Python
        text = f"[{text[1:-1]}]"
    listed = sequence(values.json("window", text) if text.startswith("[") and isinstance(value, str) else value)
    if len(listed) == 2 and all(isinstance(side, int) and not isinstance(side, bool) for side in listed):
        before, after = (None if cast(int, side) < 0 else cast(int, side) for side in listed)
        return None if before is None and after is None else (before, after)
    if listed or isinstance(value, bool) or not (text.isascii() and text.isdigit() and 0 < len(text) < 10):
        raise values.error(
            "window", value, "a positive whole number, or [keys before, keys after], where -1 means all"
        )
    if causal in (None, "no"):
        raise values.error(
            "window", value, "[keys before, keys after] where attention is not causal, as in flash-attention"
        )
    return int(text) - 1, 0


def _causal(values: Values) -> Causal | None:
    """Return whether attention is causal, and the corner if it is specified."""
    value = values.get("causal")
    alignment: Causal | None = _alignment(values)
    if value is None:
        return None
    word = str(value).strip().lower().replace("-", "_").replace(" ", "_")
    if word not in _CAUSAL:
        raise values.error("causal", value, "true, false, top-left or bottom-right")
    found = _CAUSAL[word]
    if alignment is None or found == "no":
        return found
    if found not in ("yes", alignment):
        raise values.error("alignment", values.get("alignment"), message("that of 'causal', {word}", word=word))
    return alignment


def _alignment(values: Values) -> Corner | None:
    return values.word("alignment", {"top-left": "top_left", "bottom-right": "bottom_right"})


def _kind(own: Mapping[str, object]) -> str:
    """Return the type of a layer; local attention is of a sliding window, as in GPT-Neo and ModernBERT."""
    return str(own.get("layer_type") or "").lower().replace("local", "sliding")


def _missing_window(values: Values, causal: Causal | None) -> str:
    """Return why a layer is refused for its type, which is unknown, or needs a window or chunks that are missing."""
    kind = _kind(values.own)
    if _OTHER_LAYERS.search(kind):
        return message("metadata 'layer_type' is {kind}, which attn-tui does not know", kind=quoted(kind))
    missing = "window" if "slid" in kind and _window(values, causal) is None else ""
    missing = "chunk" if "chunk" in kind and values.count("chunk", none=True) is None else missing
    return (
        message("metadata 'layer_type' is {kind}, but {missing!r} is missing", kind=quoted(kind), missing=missing)
        if missing
        else ""
    )


def _unknown_change(values: Values) -> str:
    """Return why a layer is refused for a key that may change its attention; empty if there is none."""
    unknown = {key: value for key, value in values.shared.items() if key not in KNOWN}
    unknown |= {key: value for key, value in values.own.items() if key not in OF_ENTRIES}
    for key, value in unknown.items():
        nothing = value is None or str(value).strip().lower() in NOTHING
        if nothing and not denied_changes_attention(key, value):
            continue
        near = [] if nothing or key in OTHERS else get_close_matches(key.lower(), MEANT, 1, 0.8)
        if near or nothing or metadata_changes_attention(key, value):
            hint = message("; did you mean {near!r}?", near=near[0]) if near else ""
            return message(
                "metadata {key} may change attention, and attn-tui does not know it{hint}", key=quoted(key), hint=hint
            )
    return ""
