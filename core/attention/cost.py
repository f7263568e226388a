"""The cost of an attention layer: its parameters, its KV cache and its floating-point operations.

A multiply–add counts as two operations. Only matrix products are counted, not biases, norms, rotary embeddings or
softmax. Values are as wide as keys.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, get_args

from ..errors import ParameterError
from ..parameters import Field, MaskName
from .formats import FORMATS

Bias: TypeAlias = Literal["none", "qkv", "all"]
Kind: TypeAlias = Literal["multi-head", "grouped-query", "multi-query"]


@dataclass(frozen=True)
class Layer:
    """The shape of an attention layer and its use; raise ParameterError if the shape is invalid."""

    d_model: int = 512
    heads: int = 8
    kv_heads: int | None = None  # None: the same as heads
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
            raise ParameterError(f"heads: d_model {self.d_model} is not divisible by {self.heads}; set d_k as well")
        if self.heads % self.key_heads:
            raise ParameterError(f"key heads: {self.heads} heads cannot be shared evenly among {self.key_heads}")

    @property
    def key_heads(self) -> int:
        """The number of key/value heads."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def width(self) -> int:
        """The width of a head, d_k."""
        return self.d_model // self.heads if self.d_k is None else self.d_k

    @property
    def kind(self) -> Kind:
        """The kind of sharing: each key head serves one, some or all query heads."""
        if self.key_heads == self.heads:
            return "multi-head"
        return "multi-query" if self.key_heads == 1 else "grouped-query"

    @property
    def number_bytes(self) -> int:
        """Bytes per number in the cache."""
        return FORMATS[self.cache_format].bits // 8

    @property
    def pairs(self) -> int:
        """Visible query–key pairs of the context: n(n + 1)/2 with a causal mask, otherwise n²."""
        n = self.context
        return n * (n + 1) // 2 if self.mask == "causal" else n * n


@dataclass(frozen=True)
class Matrix:
    """One projection from `rows` to `columns` numbers."""

    name: str
    rows: int
    columns: int
    bias: int  # numbers in its bias

    @property
    def weights(self) -> int:
        """The number of weights, without the bias."""
        return self.rows * self.columns

    @property
    def parameters(self) -> int:
        """The number of weights and biases."""
        return self.weights + self.bias


@dataclass(frozen=True)
class Flops:
    """Floating-point operations by purpose."""

    projections: int  # through the four matrices
    scores: int  # q·k
    weighted_sum: int  # of values

    @property
    def total(self) -> int:
        """All operations."""
        return self.projections + self.scores + self.weighted_sum


@dataclass(frozen=True)
class Cost:
    """The cost of a layer. The cache and the operations are for all `layers` together."""

    layer: Layer
    matrices: tuple[Matrix, ...]  # of one layer
    parameters: int  # of one layer
    all_parameters: int  # of all layers
    cache_per_token: int  # bytes per token of each text
    cache: int  # bytes for all tokens of all texts
    next_token: Flops  # for the last token of each context, with all others in the cache
    whole_context: Flops  # for all tokens of each text at once


def cost(layer: Layer) -> Cost:
    """Return the cost of a layer.

    Pairs hidden by the mask are not counted; a kernel that computes them anyway takes n² instead of n(n + 1)/2.
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
    """Return the operations for `tokens` tokens of each text, which see `pairs` keys in total."""
    times = 2 * layer.layers * layer.batch
    products = times * layer.heads * layer.width * pairs
    return Flops(times * tokens * sum(matrix.weights for matrix in matrices), products, products)


SHAPE_FIELDS: tuple[Field, ...] = (
    Field(
        "d_model", "d_model", "d_model", "Width of the hidden state that is projected to queries, keys and values.",
        "integer", 1, 2**20, step="double", group="layer",
    ),
    Field(
        "heads", "heads", "h", "Number of query heads.",
        "integer", 1, 2**14, step="double", group="layer",
    ),
    Field(
        "kv_heads", "key heads", "h_kv",
        "Number of key/value heads, each shared by the same number of query heads. If not set, the same as heads.",
        "integer", 1, 2**14, step="double", group="layer",
    ),
    Field(
        "d_k", "d_k", "d_k", "Width of a head. If not set, d_model/heads.",
        "integer", 1, 2**14, step="double", group="layer",
    ),
    Field(
        "bias", "bias", "b",
        "Which of the four matrices have a bias: none; qkv, those of queries, keys and values; or all.",
        "choice", choices=get_args(Bias), group="layer",
    ),
    Field(
        "layers", "layers", "L", "Number of such layers in the model.",
        "integer", 1, 2**14, group="layer",
    ),
    Field(
        "context", "context", "n", "Tokens in a text.",
        "integer", 1, 2**30, step="double", group="use",
    ),
    Field(
        "batch", "batch", "B", "Texts processed at once.",
        "integer", 1, 2**20, step="double", group="use",
    ),
    Field(
        "cache_format", "cache format", "format", "The number format of the KV cache.",
        "choice", choices=tuple(FORMATS), group="use",
    ),
    Field(
        "mask", "mask", "M",
        "Which keys a query sees: none hides no key; causal hides the keys after the query's position.",
        "choice", choices=get_args(MaskName), group="use",
    ),
)  # fmt: skip

assert [field.name for field in SHAPE_FIELDS] == [field.name for field in fields(Layer)]
