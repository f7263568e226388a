"""What a layer of attention costs: its parameters, its KV cache and its floating-point operations.

A multiplication and the addition that follows it count as two operations. Only products of matrices are counted:
no biases, norms, rotary embeddings or softmax. Values are as wide as keys.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, get_args

from ..parameters import Field, MaskName, ParameterError
from .formats import FORMATS

Bias: TypeAlias = Literal["none", "qkv", "all"]
Kind: TypeAlias = Literal["multi-head", "grouped-query", "multi-query"]


@dataclass(frozen=True)
class Layer:
    """The shape of a layer of attention, and what it is used for; raises ParameterError for a shape that is none."""

    d_model: int = 512
    heads: int = 8
    kv_heads: int | None = None  # None: as many as there are heads
    d_k: int | None = None  # None: d_model/heads
    bias: Bias = "none"
    layers: int = 1
    context: int = 4_096
    batch: int = 1
    cache_format: str = "bfloat16"
    mask: MaskName = "causal"

    def __post_init__(self) -> None:
        for field in SHAPE_FIELDS:
            value = getattr(self, field.name)
            if value is not None:
                field.check(value)
        if self.d_k is None and self.d_model % self.heads:
            raise ParameterError(f"heads: {self.heads} do not divide d_model {self.d_model}; give d_k as well")
        if self.heads % self.key_heads:
            raise ParameterError(f"key heads: {self.key_heads} do not divide {self.heads} heads")

    @property
    def key_heads(self) -> int:
        """Heads of keys, and of values."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def width(self) -> int:
        """d_k, given or not."""
        return self.d_model // self.heads if self.d_k is None else self.d_k

    @property
    def kind(self) -> Kind:
        """By how many query heads share a key head: one, some, all."""
        if self.key_heads == self.heads:
            return "multi-head"
        return "multi-query" if self.key_heads == 1 else "grouped-query"

    @property
    def number_bytes(self) -> int:
        """Bytes of a number in the cache."""
        return FORMATS[self.cache_format].bits // 8

    @property
    def pairs(self) -> int:
        """Pairs of a query of the context and a key that it sees: with a causal mask n(n + 1)/2 of n²."""
        n = self.context
        return n * (n + 1) // 2 if self.mask == "causal" else n * n


@dataclass(frozen=True)
class Matrix:
    """One projection, from `rows` numbers to `columns`."""

    name: str
    rows: int
    columns: int
    bias: int  # numbers in its bias

    @property
    def weights(self) -> int:
        """Without the bias."""
        return self.rows * self.columns

    @property
    def parameters(self) -> int:
        """With the bias."""
        return self.weights + self.bias


@dataclass(frozen=True)
class Flops:
    """Floating-point operations, by what they are for."""

    projections: int  # through the four matrices
    scores: int  # q·k
    weighted_sum: int  # of values

    @property
    def total(self) -> int:
        """All of them."""
        return self.projections + self.scores + self.weighted_sum


@dataclass(frozen=True)
class Cost:
    """What a layer costs. The cache and the operations are of all its layers together."""

    layer: Layer
    matrices: tuple[Matrix, ...]  # of one layer
    parameters: int  # of one layer
    all_parameters: int  # of all layers
    cache_per_token: int  # bytes for each token of each text
    cache: int  # bytes for all tokens of all texts
    next_token: Flops  # for the last token of the context of each text, when the others are in the cache
    whole_context: Flops  # for all tokens of each text at once


def cost(layer: Layer) -> Cost:
    """The cost of a layer.

    Pairs of a query and a key that the mask hides are not counted: a kernel that multiplies them all the same does
    n² of them in place of n(n + 1)/2.
    """
    wide, narrow = layer.heads * layer.width, layer.key_heads * layer.width
    of_qkv, of_output = layer.bias != "none", layer.bias == "all"
    matrices = (
        Matrix("W_q", layer.d_model, wide, wide if of_qkv else 0),
        Matrix("W_k", layer.d_model, narrow, narrow if of_qkv else 0),
        Matrix("W_v", layer.d_model, narrow, narrow if of_qkv else 0),
        Matrix("W_o", wide, layer.d_model, layer.d_model if of_output else 0),
    )
    parameters = sum(matrix.parameters for matrix in matrices)
    per_token = 2 * narrow * layer.number_bytes * layer.layers
    return Cost(
        layer=layer,
        matrices=matrices,
        parameters=parameters,
        all_parameters=parameters * layer.layers,
        cache_per_token=per_token,
        cache=per_token * layer.context * layer.batch,
        next_token=_flops(layer, matrices, 1, layer.context),
        whole_context=_flops(layer, matrices, layer.context, layer.pairs),
    )


def _flops(layer: Layer, matrices: tuple[Matrix, ...], tokens: int, pairs: int) -> Flops:
    """The operations for so many tokens of each text, which see so many keys in all."""
    times = 2 * layer.layers * layer.batch
    products = times * layer.heads * layer.width * pairs
    return Flops(times * tokens * sum(matrix.weights for matrix in matrices), products, products)


SHAPE_FIELDS: tuple[Field, ...] = (
    Field(
        "d_model", "d_model", "d_model", "Width of the hidden state that queries, keys and values are made from.",
        "integer", 1, 2**20, step="double", group="layer",
    ),
    Field(
        "heads", "heads", "h", "Heads of queries.",
        "integer", 1, 2**14, step="double", group="layer",
    ),
    Field(
        "kv_heads", "key heads", "h_kv",
        "Heads of keys and of values, each of which serves equally many heads of queries; as many as those if it is "
        "not given.",
        "integer", 1, 2**14, step="double", group="layer",
    ),
    Field(
        "d_k", "d_k", "d_k", "Width of a head; d_model over heads if it is not given.",
        "integer", 1, 2**14, step="double", group="layer",
    ),
    Field(
        "bias", "bias", "b", "Which of the four matrices have a bias: none, those of queries, keys and values, all.",
        "choice", choices=get_args(Bias), group="layer",
    ),
    Field(
        "layers", "layers", "L", "How many such layers the model has.",
        "integer", 1, 2**14, group="layer",
    ),
    Field(
        "context", "context", "n", "Tokens of a text.",
        "integer", 1, 2**30, step="double", group="use",
    ),
    Field(
        "batch", "batch", "B", "Texts at once.",
        "integer", 1, 2**20, step="double", group="use",
    ),
    Field(
        "cache_format", "cache format", "format", "The number format of the KV cache.",
        "choice", choices=tuple(FORMATS), group="use",
    ),
    Field(
        "mask", "mask", "M", "Which keys a query sees: all of them, or, causal, those up to its own.",
        "choice", choices=get_args(MaskName), group="use",
    ),
)  # fmt: skip

assert [field.name for field in SHAPE_FIELDS] == [field.name for field in fields(Layer)]
