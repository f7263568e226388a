"""The cost of an attention layer: its parameters, its KV cache and its floating-point operations.

A multiply–add counts as two operations. Only matrix products are counted, not biases, norms, rotary embeddings or
softmax.

Latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1) projects keys and values from one vector c of
`kv_latent` numbers; a rotary part of each key comes straight from the hidden state and is shared by all heads. The
cache holds c and the rotary part. For the next token, the matrices that project from c are absorbed into those of
queries and outputs, so all heads attend to c itself; for all tokens at once, keys and values are projected.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

from ..errors import ParameterError
from ..field import Field
from ..message import message
from ..parameters import MaskName
from .formats import FORMATS

Bias: TypeAlias = Literal["none", "qkv", "all"]


@dataclass(frozen=True)
class LayerShape:
    """The shape of an attention layer and its use; raise ParameterError if the shape is invalid."""

    d_model: int = 512
    heads: int = 8
    kv_heads: int | None = None  # None: the same as heads
    d_k: int | None = None  # None: d_model/heads
    d_v: int | None = None  # None: the same as d_k
    kv_latent: int = 0  # 0: keys and values are projected from the hidden state
    q_latent: int = 0  # 0: queries are
    rotary: int = 0  # components of a key that are not projected from the latent
    bias: Bias = "none"
    layers: int = 1
    context: int = 4_096
    batch: int = 1
    cache_format: str = "bfloat16"
    mask: MaskName = "causal"

    def __post_init__(self) -> None:
        for field in SHAPE_FIELDS:
            value = getattr(self, field.name)
            if value is not None or getattr(LayerShape, field.name) is not None:
                field.check(value)
        if self.d_k is None and self.d_model % self.heads:
            raise ParameterError(
                "heads: d_model {d_model} is not divisible by {heads}; set d_k as well",
                d_model=self.d_model,
                heads=self.heads,
            )
        if self.heads % self.key_heads:
            raise ParameterError(
                "key heads: {heads} heads cannot be shared evenly among {key_heads}",
                heads=self.heads,
                key_heads=self.key_heads,
            )
        if self.kv_latent and self.key_heads != self.heads:
            raise ParameterError("key heads: must be {heads}, like heads, with a KV latent", heads=self.heads)
        if self.rotary and not self.kv_latent:
            raise ParameterError("rotary: only with a KV latent")
        if self.rotary >= self.width:
            raise ParameterError(
                "rotary: must be below d_k, which is {width}, not {rotary}", width=self.width, rotary=self.rotary
            )

    @property
    def key_heads(self) -> int:
        """The number of key/value heads."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def width(self) -> int:
        """The width of a head, d_k."""
        return self.d_model // self.heads if self.d_k is None else self.d_k

    @property
    def value_width(self) -> int:
        """The width of a value of a head, d_v."""
        return self.width if self.d_v is None else self.d_v

    @property
    def shape(self) -> dict[str, Any]:
        """All values by name, with those that follow from others."""
        followed = {"kv_heads": self.key_heads, "d_k": self.width, "d_v": self.value_width}
        return vars(self) | followed

    @property
    def cached(self) -> int:
        """Numbers in the cache for a token: keys and values of all key heads, or the latent and the rotary part."""
        return self.kv_latent + self.rotary if self.kv_latent else self.key_heads * (self.width + self.value_width)

    @property
    def kind(self) -> str:
        """The kind of sharing: by a latent; or each key head serves one, some or all query heads."""
        if self.kv_latent:
            return message("latent")
        if self.key_heads == self.heads:
            return message("multi-head")
        return message("multi-query") if self.key_heads == 1 else message("grouped-query")

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
class ProjectionMatrix:
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

    projections: int  # through the matrices
    scores: int  # q·k
    weighted_sum: int  # of values

    @property
    def total(self) -> int:
        """All operations."""
        return self.projections + self.scores + self.weighted_sum


@dataclass(frozen=True)
class Cost:
    """The cost of a layer. The cache and the operations are for all `layers` together."""

    layer: LayerShape
    matrices: tuple[ProjectionMatrix, ...]  # of one layer
    parameters: int  # of one layer
    all_parameters: int  # of all layers
    cache_per_token: int  # bytes per token of each text
    cache: int  # bytes for all tokens of all texts
    next_token: Flops  # for the last token of each context, with all others in the cache
    whole_context: Flops  # for all tokens of each text at once


def cost(layer: LayerShape) -> Cost:
    """Return the cost of a layer.

    Pairs hidden by the mask are not counted; a kernel that computes them anyway takes n² instead of n(n + 1)/2.
    """
    matrices = _matrices(layer)
    parameters = sum(matrix.parameters for matrix in matrices)
    per_token = layer.cached * layer.number_bytes * layer.layers
    return Cost(
        layer=layer,
        matrices=matrices,
        parameters=parameters,
        all_parameters=parameters * layer.layers,
        cache_per_token=per_token,
        cache=per_token * layer.context * layer.batch,
        next_token=_flops(layer, matrices, 1, layer.context, absorbed=bool(layer.kv_latent)),
        whole_context=_flops(layer, matrices, layer.context, layer.pairs),
    )


def _matrices(layer: LayerShape) -> tuple[ProjectionMatrix, ...]:
    """Return the matrices. What is projected from a latent has no bias, as in DeepSeek-V3."""
    queries, values = layer.heads * layer.width, layer.heads * layer.value_width
    qkv = layer.bias != "none"

    def from_hidden(name: str, columns: int) -> ProjectionMatrix:
        return ProjectionMatrix(name, layer.d_model, columns, columns if qkv else 0)

    if layer.q_latent:
        of_queries = [from_hidden("W_dq", layer.q_latent), ProjectionMatrix("W_uq", layer.q_latent, queries, 0)]
    else:
        of_queries = [from_hidden("W_q", queries)]
    if layer.kv_latent:
        of_keys = [
            from_hidden("W_dkv", layer.kv_latent),
            *([from_hidden("W_kr", layer.rotary)] if layer.rotary else []),
            ProjectionMatrix("W_uk", layer.kv_latent, layer.heads * (layer.width - layer.rotary), 0),
            ProjectionMatrix("W_uv", layer.kv_latent, values, 0),
        ]
    else:
        of_keys = [
            from_hidden("W_k", layer.key_heads * layer.width),
            from_hidden("W_v", layer.key_heads * layer.value_width),
        ]
    return (
        *of_queries,
        *of_keys,
        ProjectionMatrix("W_o", values, layer.d_model, layer.d_model if layer.bias == "all" else 0),
    )


def _flops(
    layer: LayerShape, matrices: tuple[ProjectionMatrix, ...], tokens: int, pairs: int, absorbed: bool = False
) -> Flops:
    """Return the operations for `tokens` tokens of each text, which see `pairs` keys in total.

    If the projections from the latent are `absorbed`, scores and weighted sums are over the cached vectors: as many
    operations of projection, and wider products.
    """
    times = 2 * layer.layers * layer.batch
    key, value = (layer.cached, layer.kv_latent) if absorbed else (layer.width, layer.value_width)
    return Flops(
        times * tokens * sum(matrix.weights for matrix in matrices),
        times * layer.heads * key * pairs,
        times * layer.heads * value * pairs,
    )


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
        "d_v", "d_v", "d_v", "Width of a value of a head. If not set, the same as d_k.",
        "integer", 1, 2**14, step="double", group="layer",
    ),
    Field(
        "kv_latent", "KV latent", "c_kv",
        "Width of the vector from which the keys and values of all heads are projected, and which the cache holds "
        "(latent attention, as in DeepSeek-V3); 0: they are projected from the hidden state.",
        "integer", 0, 2**20, step="double", group="layer",
    ),
    Field(
        "q_latent", "q latent", "c_q",
        "Width of the vector from which the queries of all heads are projected; 0: they are projected from the "
        "hidden state.",
        "integer", 0, 2**20, step="double", group="layer",
    ),
    Field(
        "rotary", "rotary", "d_r",
        "With a KV latent, how many of the d_k components have a rotary embedding: in keys, these are shared by all "
        "heads and do not come from the latent.",
        "integer", 0, 2**14, step="double", group="layer",
    ),
    Field(
        "bias", "bias", "b",
        "Which matrices have a bias: none; qkv, those from the hidden state to queries, keys, values and latents; or "
        "all, the output's too.",
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

assert [field.name for field in SHAPE_FIELDS] == [field.name for field in fields(LayerShape)]
