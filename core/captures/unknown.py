"""Tell whether what is not understood may change attention, by its name, its value or its shape.

A tensor or a metadata key that may change attention is never ignored: the layers it may belong to are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..message import message, quoted
from .capture import Sizes
from .files.stored import FLOATS, Stored
from .naming import WORDS, NamePair

# Words in the names of tensors and metadata that change attention.
_CHANGES = {
    *("bias", "biases", "mask", "masks", "alibi", "slope", "slopes", "sink", "sinks", "scale", "scales", "scaling"),
    *("temperature", "temperatures", "window", "softcap", "softcapping", "cap", "relative", "rel", "decay"),
    *("forget", "lambda", "dropout", "prescale", "prescaled", "multiplier", "scalar", "chunk", "segments", "packed"),
    *("tau", "gain", "descale", "rpb", "rpe", "seqlens", "segment", "rows", "causal", "capping", "masked", "windows"),
    *("logn", "sliding", "divisor", "normaliser", "normalizer", "temp", "topk", "dilation", "dilated", "sparsity"),
    *("sparse", "sigmoid", "entmax", "sparsemax", "weighting", "differential", "fgate", "document", "divide"),
    *("masking", "forgetting", "lengths", "lens", "seqlen", "talking", "unidirectional", "autoregressive"),
    *("win", "swa", "band", "bandwidth", "neighborhood", "packing", "varlen", "dequant", "lam", "mup", "retnet"),
    "kerple",
}  # fmt: skip
# Words in the names of tensors that tell which keys are visible; in metadata they mean other things.
_OF_TENSORS = {
    *("padding", "padded", "pad", "valid", "visible", "allowed", "doc", "documents", "prefix", "span"),
    *("indices", "selected", "bucket", "buckets", "cluster", "clusters", "routing"),
}  # fmt: skip
# Keys that are added to those of the text: memories, caches, and vectors of zeros.
_MORE = (
    "(?:null|mem|memory|past|cached?|persistent|add|extra|virtual|prefix|global|registers?|cross|ip|image|encoder)"
)
_MORE_KEYS = re.compile(
    rf"(?:^|[._])(?:{_MORE}_(?:k|keys?|kv|key_values?)|(?:k|keys?|kv|key_values?)_{_MORE})s?$", re.IGNORECASE
)
# Metadata keys that change attention if their value is false or 0: not scaled, not rotated, no key to the right.
_DENIED = re.compile(
    r"^scaled$|^use_scal|scale_attn_weights$|window_(?:size_)?right$|right_(?:window|context)$|context_right$"
    r"|(?:rope|rotary)_applied$|^post_?(?:rope|rotary)$|^(?:is_)?(?:bidirectional|rotated|normali[sz]ed)$"
    r"|^(?:use_)?softmax$|attend_future$|look_?ahead$|sink_(?:logit|value)$|^heads?_first$",
    re.IGNORECASE,
)
# Words in metadata keys that tell a scale; in tensors they are of results, such as scaled scores.
_OF_METADATA = {"scaled", "unscaled"}
_PACKED = re.compile(
    r"(?:seq(?:uence)?|sample|example|instance|image|batch|group|block|chunk)_ids?$|(?:^|[._])seg$", re.IGNORECASE
)  # which of several texts in one a token belongs to
# Further kinds of attention: softmax with one more term, clipped logits, global, prefix and padding tokens, …
_KINDS = re.compile(
    r"softmax_?(?:1|one|plus|base|beta)|off_by_one|zero_attn|null_(?:attn|key|logit)|no_?op|global_(?:token|att)|prefix_(?:len|lm|tok)"
    r"|local_(?:att|block|context)|(?:softmax|logits?|scores?)_(?:offset|shift)|(?:norm|normalization)_fact|inv_norm"
    r"|random_blocks|pre_?(?:rope|rotary)|(?:attn|attention|logits?|scores?)_clip|clip_(?:attn|attention|logit|score)"
    r"|(?:left|right)_pad|pad(?:ding)?_(?:left|right|len)|valid_(?:len|tok)|shift_size|tanh_clip|(?:attn|attention)_span"
    r"|is_cross|cross_att|^(?:use_)?cosine|diff_attn|feature_map|(?:^|_)local$|clamp|denominator|sharpness|attn_mult$"
    r"|(?:left|right)_(?:context|chunks)|context_(?:left|right|size)|look_?(?:ahead|back)|left_to_right|triangular"
    r"|(?:^|_)(?:max_)?span$|before_(?:rope|rotary)|(?:^|_)layout$|^qkv?_format|^heads?_first|transposed|(?:^|_)resets?$"
    r"|swap_qk|qk_swapped|zero_points?$|pre_softmax_(?:proj|mix)",
    re.IGNORECASE,
)
# Which queries and keys these are, where their text begins, and which key head a query head reads.
_WHICH = re.compile(
    r"^(?:(?:q|query|queries|rows?|k|kv|keys?|cache|sampled|selected|kept)_(?:pos|positions?|idx|index|indices)"
    r"|(?:pos|positions?|idx|index|indices)_(?:q|query|queries|k|kv|keys?|rows?)|input_pos|start_pos|offsets?"
    r"|(?:n|num)_past(?:_tokens)?|past_(?:len|length|(?:kv|key_values?)_len(?:gth)?|seen_tokens)|cache_(?:len|length)"
    r"|(?:q|query|k|kv|key|causal|mask|diagonal)_offset|(?:q|query|row|k|kv)_start"
    r"|(?:gqa|kv|kv_heads?|key_heads?|groups?)_(?:map|mapping|layout|order|assignment)|kv_head_(?:idx|index|indices))$",
    re.IGNORECASE,
)
# Tensors of relative positions, whose products with queries and keys are added to scores.
_RELATIVE = re.compile(
    r"(?:^|[._])(?:distance|relative|rel)[a-z_]*emb|(?:^|\.)(?:linear_pos|r_net|r_proj|pos_(?:key|query|[qk])_proj)\b",
    re.IGNORECASE,
)
# Integers of texts, and maps of heads, which are results or descriptions in metadata.
_OF_TENSORS_ONLY = re.compile(
    r"^(?:(?:num|n)_(?:tokens|keys)|(?:seq|text|input|real)_len(?:gth)?|len(?:gth)?"
    r"|(?:q|query|k|key|kv)_len(?:gth)?|heads?_(?:map|idx|index|indices|order)"
    r"|top_?k_(?:idx|index)|block_tables?|slot_mapping)$",
    re.IGNORECASE,
)
# Lists of numbers in metadata that tell tokens, or which queries these are.
_LISTED = re.compile(
    r"(?:^|_)(?:tokens|counts|real|valid|positions?|rows|row_(?:ids?|idx|indices)|queries|boundaries)$", re.IGNORECASE
)
_NUMBERS = re.compile(r"\[[\d_,.\[\]]*\]")
# Values that mean other logits under any key: slopes, and query heads that do not read key heads in groups.
_VALUES = re.compile(r"alibi|kerple|tiled?", re.IGNORECASE)
# Values of metadata on attention or positions that mean other logits or weights than softmax of scaled scores.
_ABOUT = {"attention", "attn", "softmax", "position", "positional", "positions", "pos", "score", "scores", "weights"}
_OTHER_ATTENTION = re.compile(
    r"sigmoid|entmax|sparsemax|relu|softmax_?(?:1|one|plus)|off_by_one|quiet|sparse|relative|alibi|t5|sliding|chunked"
    r"|linear|performer|retention|differential|forget|dilated|local|longformer|bigbird|cosine|distance|additive"
    r"|bahdanau|kerple|fire|learn|cross|^quer|^_2$",
    re.IGNORECASE,
)
_EVERYWHERE = {"relative", "rel", "position", "positions", "pos", "alibi"}  # often stored once, for all layers
# Modules whose parameters have been applied before attention, or are applied after it.
_OUTSIDE = re.compile(
    r"(?:^|[._])(?:mlp|ffn|feed_forward|fc\d*|[a-z_]*norm\d*|ln_?\w*|embed\w*|lm_head|[a-z_]*proj|dense|qkv|c_attn"
    r"|query|key|value|[qkvo])\."
    r"|(?:^|[._])(?:(?:in|out)_proj|[qkv]|qkv|in|out)_bias$|(?:^|\.)[vo]_scale$|(?:^|[._])rope_scaling$"
    r"|(?:logits_scaling|final_logit_softcapping)$|(?:^|[._])padding_(?:side|token|id|idx)|pad_token",
    re.IGNORECASE,
)
_EARLIER = re.compile(r"(?:q|k|query|key)_(?:before|pre)_(?:rope|rotary)$")  # not those multiplied
_PARTS = {word for words in WORDS for word in words.rotary or ()}  # of queries and keys: never to be left out
# The words of results of attention, and of queries and keys that are not used: names of these words alone.
_RESULTS = {
    *("score", "scores", "prob", "probs", "probability", "probabilities", "weight", "weights", "pattern", "patterns"),
    *("attn", "attention", "attentions", "logit", "logits", "softmax", "soft", "map", "maps", "matrix", "result"),
    *("value", "values", "out", "output", "outputs", "context", "hidden", "state", "states", "proj", "norm", "norms"),
    *("query", "queries", "key", "keys", "q", "k", "v", "o", "z", "qk", "kq", "kqv", "qkv", "p", "s", "cur", "rot"),
    *("row", "col", "head", "heads", "token", "tokens", "position", "type", "max", "min", "sum", "mean", "std"),
    *("var", "entropy", "rank", "loss", "freq", "freqs", "inv", "cos", "sin", "id", "ids", "raw", "pre", "post"),
    *("before", "after", "final", "scaled", "unscaled", "dropped", "self", "cross", "grad", "input", "inputs", "ext"),
    *("merged", "rollout", "flow", "saliency", "importance"),
}  # fmt: skip


def changes_attention(name: str) -> bool:
    """Return whether a tensor or a metadata key of this name may change attention."""
    if name.rpartition(".")[2] in _PARTS:
        return True
    return not _CHANGES.isdisjoint(_words(name)) and not _OUTSIDE.search(name)


def tensor_changes_attention(name: str) -> bool:
    """Return whether a tensor of this name may change attention."""
    word = _SUFFIX.sub("", name).rpartition(".")[2]
    hides = not _OF_TENSORS.isdisjoint(_words(name)) or bool(_PACKED.search(name) or _MORE_KEYS.search(name))
    hides = hides or any(pattern.search(_EARLIER.sub("", word)) for pattern in (_KINDS, _WHICH, _OF_TENSORS_ONLY))
    return changes_attention(name) or bool(_RELATIVE.search(name)) or (hides and not _OUTSIDE.search(name))


def denied_changes_attention(key: str, value: object) -> bool:
    """Return whether a metadata key may change attention because its value is false or 0."""
    return str(value).strip().lower() in ("false", "no", "off", "0", "0.0") and bool(_DENIED.search(key))


def metadata_changes_attention(key: str, value: object) -> bool:
    """Return whether a metadata key with this value may change attention."""
    words = _words(key)
    if changes_attention(key) or not _OF_METADATA.isdisjoint(words):
        return True
    text = str(value).strip()
    few_words = len(text.split()) <= _FEW_WORDS
    text = re.sub(r"[\s-]+", "_", text)
    about = not _ABOUT.isdisjoint(words)
    kind = about and few_words and bool(_OTHER_ATTENTION.search(text) or _OTHER_ATTENTION.search(key))
    listed = bool(_NUMBERS.fullmatch(text) and (_OF_TENSORS_ONLY.search(key) or _LISTED.search(key)))
    return (
        kind
        or listed
        or bool(_VALUES.fullmatch(text))
        or (about and text.startswith("{"))
        or bool(_KINDS.search(key) or _WHICH.search(key))
    )


def _words(name: str) -> list[str]:
    return re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())


class Unknown:
    """Unused tensors, by the layers that they may belong to: a layer's own, and those of no layer in particular."""

    def __init__(self, unused: Iterable[str]) -> None:
        self._changing: dict[str, list[str]] = {}  # those that may change attention, by prefix, suffix, or neither
        self._modules: dict[str, list[str]] = {}  # all, by module or suffix
        self._alone: list[str] = []  # those that belong to no module
        for name in unused:
            module, dot, _ = name.rpartition(".")
            suffix = _SUFFIX.search(name)
            for place in (module + dot, suffix[0] if suffix else ""):
                self._modules.setdefault(place, []).append(name)
            if not module and not suffix:
                self._alone.append(name)
            if not tensor_changes_attention(name):
                continue
            parts = name.split(".")
            places = {".".join(parts[:count]) + "." for count in range(1, min(len(parts), _DEEPEST + 1))} | {"."}
            if len(parts) > _DEEPEST or not _EVERYWHERE.isdisjoint(re.split(r"[^a-z]+", name.lower())):
                places = {_ALL}
            else:
                places |= {f"numbered {suffix[0]}" if suffix else "numbered"}
                places |= set() if re.search(r"(?:^|\.)\d+\.", name) else {"no layer"}
            for place in places:
                self._changing.setdefault(place, []).append(name)

    def refusal(self, pair: NamePair, arrays: Mapping[str, Stored], sizes: Sizes) -> str:
        """Return why a layer is refused for a tensor that may change its attention; empty if there is none."""
        places = ["numbered", f"numbered {pair.after}"] if pair.after else ["no layer", pair.root or "."]
        names = [self._changing[place][0] for place in (_ALL, *places) if place in self._changing]
        if names:
            return unknown_change(message("tensor {name}", name=quoted(min(names))), min(names))
        place = pair.after or pair.before
        beside = [name for name in self._modules.get(place, []) if pair.named(_own(name, pair)) == name]
        found = [name for name in beside if "." not in _own(name, pair)] if place else self._alone
        changing = [name for name in found if _changes_by_shape(_own(name, pair), arrays[name], sizes)]
        if place:
            changing += [name for name in self._alone if _changes_all(name, arrays[name], sizes)]
        if not changing:
            return ""
        named = message("tensor {name} of shape {shown}", name=quoted(changing[0]), shown=arrays[changing[0]].shown)
        return unknown_change(named, changing[0])


def unknown_change(what: str, name: str, hint: str = "") -> str:
    """Return why a layer is refused for a tensor or a key of this name, and how to save what it says, if usual."""
    word = _SUFFIX.sub("", name).rpartition(".")[2]
    remedy = ""
    if re.search(r"cu_?seq_?lens", word):
        remedy = message(
            "texts are packed into one; save them as a padded batch with metadata 'lengths', or save a mask [tokens, "
            "tokens] that is True within a text"
        )
    elif re.fullmatch(r"[qk]_(?:de)?scale(?:_inv)?", word):
        remedy = message(
            "save q and k multiplied by their scales; or, of one number for all, say the product of all scales as "
            "metadata 'scale', and their inverses as 'prescaled'"
        )
    if remedy:
        return message("{what} may change attention: {remedy}", what=what, remedy=remedy)
    hint = hint or message("; if it does not, save the file without it")
    return message("{what} may change attention, and attn-tui does not know it{hint}", what=what, hint=hint)


def _own(name: str, pair: NamePair) -> str:
    return name.removeprefix(pair.before).removesuffix(pair.after)


def _changes_by_shape(word: str, array: Stored, sizes: Sizes) -> bool:
    """Return whether an unused tensor of the module of q and k may change attention by its shape.

    It does if it has a number for each score or head, or for each pair of heads, a number for each query or key, one
    floating-point number for all, or a boolean for each key. One named like a result, such as scores, may have such a
    shape, but not a position for each of some queries.
    """
    batch, heads, queries, keys = sizes
    if _is_of_scores(word, array, sizes):
        return True
    integers = array.format is not None and array.format.kind in "iu"
    if integers and array.shape[-1:] == (queries,) != (keys,):
        return True
    if _is_boolean(array) or _is_result(word):
        return _is_boolean(array) and array.shape[-1:] in ((queries,), (keys,))
    long = tuple(length for length in array.shape if length > 1)
    if long in ((heads,), (heads, heads)) or (not long and array.dtype in FLOATS):
        return True
    before = {tuple(length for length in axes if length > 1) for axes in ((), (heads,), (batch,), (batch, heads))}
    return long[-1:] in ((queries,), (keys,)) and long[:-1] in before


def _changes_all(word: str, array: Stored, sizes: Sizes) -> bool:
    """Return whether a tensor of no layer may change attention by its shape: that of scores, or of padding."""
    batch, _, _, keys = sizes
    of_keys = array.shape[-1:] == (keys,) and array.shape[:-1] in ((), (1,), (batch,))
    return _is_of_scores(word, array, sizes) or (_is_boolean(array) and of_keys)


def _is_of_scores(word: str, array: Stored, sizes: Sizes) -> bool:
    """Return whether a tensor has a number or a boolean for each score, and is not named like a result."""
    of_scores = len(array.shape) > 1 and array.shape[-2:] == sizes[2:]
    return of_scores and (_is_boolean(array) or not _is_result(word))


def _is_result(word: str) -> bool:
    """Return whether a tensor is named like a result of attention, such as attn_scores."""
    return word.startswith("hook_") or _RESULTS.issuperset(filter(None, _words(word)))


def _is_boolean(array: Stored) -> bool:
    return array.format is not None and array.format.kind == "b"


_FEW_WORDS = 3  # of a value that names a kind of attention; a longer one is a text for people
_SUFFIX = re.compile(r"[.-]\d+$")
_ALL = "all layers"
_DEEPEST = 32  # parts of a name; one with more may belong to any layer
