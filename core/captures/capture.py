"""The contents of a capture file as plain values; this module does not need NumPy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from ..errors import InputError, not_one_of
from ..message import Plain, message
from ..scales import RuleSetting

Meaning: TypeAlias = Literal["visible", "hidden"]  # of True and 1 in a mask
Corner: TypeAlias = Literal["top_left", "bottom_right"]  # where the diagonal of a causal mask begins or ends
Tokens: TypeAlias = tuple[Sequence[str] | None, Sequence[str] | None]  # of a text's queries, and of its keys
Texts: TypeAlias = tuple[tuple[Plain, ...], ...]  # the tokens of each
Sizes: TypeAlias = tuple[int, int, int, int]  # batch, heads, queries, keys
# What True and 1 mean in a mask, or the number at and below which a mask that is added to logits hides a key.
Form: TypeAlias = "Literal['visible', 'hidden'] | float"


class Hints(NamedTuple):
    """What a user says of a file that it does not tell, or tells wrong: the options of the same names."""

    axes: str | None = None  # of every tensor of queries and keys
    mask_true: Meaning | None = None
    tensor: str | None = None  # the names of q and k


NO_HINTS = Hints()


def sample_path() -> Path:
    """Return the path of the real capture shipped with the program."""
    return Path(__file__).with_name("minilm-sample.safetensors")


# Captures that are shipped, and what is in them: of a real model, and of a tiny one, by examples/make_captures.py.
EXAMPLES = {
    "minilm": message("q, k and v of a real model, all-MiniLM-L6-v2, which say nothing of the scale"),
    "right": message("nothing to find: attention is what the file says"),
    "scale-twice": message("the second layer applies the scale twice"),
    "d-model": message("√d_model is used instead of √d_k, the width of a head"),
    "mask-added": message("the causal mask is added as ones and zeros, and hides nothing"),
}


def example_path(name: str) -> Path:
    """Return the path of one of EXAMPLES."""
    if name == "minilm":
        return sample_path()
    return Path(__file__).parent / "examples" / f"{name}.safetensors"


def capture_path(text: str | PathLike[str]) -> Path:
    """Return the path of a capture: `example:right` is that of an example; raise InputError if there is none."""
    scheme, _, name = str(text).partition(":")
    if scheme != "example":
        return Path(text)
    if name not in EXAMPLES:
        raise InputError("{text}: {reason}", text=text, reason=not_one_of(name, EXAMPLES))
    return example_path(name)


@dataclass(frozen=True)
class MaskTensor:
    """A mask or a bias of one head, as its values were understood."""

    path: Path
    name: str
    # (batch or 1, heads or 1, queries or 1, keys); of a mask of queries, (batch or 1, queries)
    shape: tuple[int, ...]
    head: int  # the place along the axis of heads
    form: Form
    adds: bool = False  # whether its numbers are added to the logits
    hides: bool = True  # whether some of them hide keys
    of_queries: bool = False  # whether it tells which queries count
    of_tokens: bool = False  # whether its queries are all tokens, of which only some are stored


@dataclass(frozen=True)
class Extras:
    """What changes the logits of one head, beside its queries, keys and scale."""

    masks: tuple[MaskTensor, ...] = ()
    positions: tuple[int, ...] | None = None  # of the queries, if the file lists them
    lengths: tuple[int, ...] | None = None  # tokens of each text, if those beyond are hidden for it
    padding: bool = False  # whether tokens that no query sees do not count as queries
    slope: float | None = None  # of ALiBi
    sink: float | None = None
    scales: tuple[Path, str, tuple[int, int, int]] | None = None  # the tensor, as (batch, heads, queries) or 1 each


NO_EXTRAS = Extras()


def values_of(kind: type[Any], given: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name, with the values that another one which has them gives to them."""
    return {each.name: getattr(given, each.name) for each in fields(kind)}


@dataclass(frozen=True)
class Tensor:
    """Where queries or keys are stored."""

    path: Path
    name: str
    axes: tuple[str, ...]  # batch, head, token, d_k, in the order of the file
    shape: tuple[int, ...]  # by these axes
    as_stored: bool = True  # whether this is the tensor's own shape: a projection has heads and d_k in one axis


@dataclass(frozen=True, kw_only=True)
class StatedAttention:
    """What a file says of the attention of a layer and of each of its heads, by the names of FEATURES."""

    scale: float | None = None  # the multiplier of q·k as stored
    softcap: float | None = None
    over_queries: bool = False  # whether softmax ran over the queries instead of the keys
    dropout: float = 0.0  # the share of weights that dropout set to 0
    changed: tuple[Plain, ...] = ()  # what else changed the weights between softmax and the values
    followed: bool = True  # whether it is known how the weights met the values
    scores: str | None = None  # the number format of what entered softmax
    observed: bool = False  # whether scale, mask and soft-cap are what a program did, not what it was meant to do


@dataclass(frozen=True, kw_only=True)
class StatedLayer(StatedAttention):
    """What a file says of the attention of a layer, by the names of FEATURES."""

    head_scales: tuple[float, ...] | None = None  # the multiplier of each head, instead of `scale`
    prescaled: tuple[float | None, float | None] = (1.0, 1.0)  # the factors in stored q and k; None: not one number
    output_factor: float = 1.0  # of the stored outputs, over the weighted values
    not_finite: tuple[tuple[int, int], ...] = ()  # of each head, scores that were not finite, and of how many
    window: tuple[int | None, int | None] | None = None  # keys before and after a query that it sees; None: all
    chunk: int | None = None  # a query sees keys of its own chunk of this size


@dataclass(frozen=True, kw_only=True, repr=False)
class Layer(StatedLayer):
    """One layer's queries and keys: what the file says of it, and the shapes and names of its tensors."""

    position: int  # among the layers of the file, from 0
    index: int  # the layer's number in the model
    name: Plain
    heads: int
    kv_heads: int
    batch: int
    queries: int
    keys: int
    d_k: int
    dtype: str  # of q, as stored
    k_dtype: str | None = None  # of k, if it is another one
    causal: Corner | None = None
    alignment: Corner = "top_left"  # of queries and keys, where `rows` do not tell
    cross: bool = False  # whether queries and keys are of different texts
    mask: str | None = None  # the name of the mask's tensor
    bias: str | None = None  # the name of the tensor added to the logits
    sinks: str | None = None  # the name of the tensor of sink logits
    scales: str | None = None  # the name of the tensor of multipliers
    row_factors: str | None = None  # the name of the tensor of factors that the stored queries contain, row by row
    rows: str | None = None  # the name of the tensor of the queries' positions, if not all queries are stored
    evidence: tuple[str, ...] = ()  # of v, o, lse and weights, those that the file has
    context_factor: float | None = None  # how many times longer the context was made, from the model's configuration
    numbered: bool = True  # whether the file tells the layer's number
    features: tuple[str, ...] = ()  # of FEATURES, those that change attention and that the file has
    refusal: str = ""  # why its heads cannot be measured
    file: str = ""  # the name of its file, if there are several
    path: Path = field(default=Path(), compare=False)  # of its file, as given
    q: tuple[Tensor, ...] = field(default=(), compare=False)  # whose components follow each other
    k: tuple[Tensor, ...] = field(default=(), compare=False)

    def __repr__(self) -> str:
        scale = "unknown" if self.scale is None else f"{self.scale:.4g}"
        return f"<{self.place}: {self.heads} heads of {self.queries} × {self.keys}, d_k {self.d_k}, scale {scale}>"

    @property
    def place(self) -> str:
        """Its number, after its file if there are several, for people."""
        number = message("layer {index}", index=self.index)
        return message("{file}: {number}", file=self.file, number=number) if self.file else number

    def place_of(self, head: int) -> str:
        """Return where a head is, such as `layer 3 head 7`."""
        return message("{place} head {head}", place=self.place, head=head)

    @property
    def inside(self) -> tuple[float, float]:
        """The factors in the stored queries and keys; 1 if unknown."""
        return self.prescaled[0] or 1.0, self.prescaled[1] or 1.0

    @property
    def unknown_factor(self) -> bool:
        """Whether one of them is not one known number, such as a gain that is learned."""
        return None in self.prescaled

    @property
    def own_factor(self) -> float:
        """The factor that the stored queries and keys contain: q·k as stored is this factor times q·k."""
        of_q, of_k = self.inside
        return of_q * of_k

    @property
    def applied(self) -> float | None:
        """What q·k is multiplied by in all: the scale, and the factors in q and k; None if it is not one number."""
        several = self.unknown_factor or self.row_factors is not None
        return None if self.scale is None or several else self.scale * self.own_factor

    @property
    def kind(self) -> str:
        """The name without its numbers: layers of one kind should be alike."""
        return re.sub(r"\d+", "#", self.name)

    @property
    def of_one_text(self) -> bool:
        """Whether each query is a token of the text of the keys, at a position that is known."""
        cached = self.alignment == "bottom_right" and self.queries < self.keys  # the queries are the last tokens
        return not self.cross and (self.queries == self.keys or self.rows is not None or cached)

    @property
    def sizes(self) -> Sizes:
        """The shape of the layer's scores: [batch, heads, queries, keys]."""
        return self.batch, self.heads, self.queries, self.keys


@dataclass(frozen=True)
class HeadContext:
    """What a file may not say, from the user; None if not given."""

    context_factor: float | None = None  # how many times longer the context was made
    position: int | None = None  # of the last query
    layer: int | None = None  # its number
    temperature: float | None = None  # that the head learned, the factor of cosines


NOTHING = HeadContext()


@dataclass(frozen=True)
class HeadSubject:
    """The head that a measurement is of."""

    layer: Layer
    head: int
    extras: Extras = field(default=NO_EXTRAS, compare=False)
    # Of each rule whose multipliers differ between rows: what they depend on, and the position of the first query.
    by_row: Mapping[str, tuple[RuleSetting, int]] = field(
        default_factory=dict[str, "tuple[RuleSetting, int]"], compare=False
    )


@dataclass(frozen=True, repr=False)
class CaptureContents:
    """The contents of a file, from its headers alone."""

    path: Path
    model: Plain | None
    source: Plain | None
    licence: Plain | None
    text: tuple[Plain, ...] | None  # of each batch element, or one for all
    text_licence: Plain | None
    tokens: Texts | None  # of each batch element, one per key
    lengths: tuple[int, ...] | None  # tokens of each batch element that are not padding
    layers: tuple[Layer, ...]  # in order of index
    notes: tuple[str, ...]  # everything that was assumed, and what layers disagree on
    files: tuple[Path, ...]  # all files read
    unused: tuple[str, ...] = ()  # tensors and metadata without meaning here
    step: int | None = None  # of the training run
    d_model: int | None = None  # of the model
    n_heads: int | None = None  # of a layer of the model, should only some be saved
    config: Mapping[str, object] | None = None  # the model's config.json
    expect: Plain | None = None  # the multiplier that is intended: a rule, a number or a formula
    disagreements: tuple[str, ...] = ()  # what layers disagree on, without a known reason
    query_tokens: Texts | None = None  # of each batch element, one per query of cross-attention

    def __repr__(self) -> str:
        heads = sum(layer.heads for layer in self.layers)
        return f"<capture {self.path.name}: {len(self.layers)} layers, {heads} heads>"

    def tokens_of(self, layer: Layer, text: int) -> Tokens:
        """Return the tokens of a layer's queries and of its keys; None where the file does not have them."""
        both = [
            tokens[text] if tokens and text < len(tokens) else None for tokens in (self.tokens, self.query_tokens)
        ]
        keys = next((texts for texts in both if texts is not None and len(texts) == layer.keys), None)
        return both[1] if layer.cross else keys, keys
