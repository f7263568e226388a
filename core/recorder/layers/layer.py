"""One attention call: the kept queries and keys, how they became logits, and how well that explains what was seen."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch

from .chain import Reading
from .visibility import Visible, shared, visible_of

CHECKED = 32  # rows that the self-check computes again

FORMATS = {
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float32: "float32",
    torch.float64: "float64",
}


@dataclass(frozen=True)
class Site:
    """Where a call happened."""

    name: str  # of the innermost module
    head_counts: tuple[int, ...] = ()  # what modules around the call say of their heads, the innermost first
    batch: int | None = None  # of the outermost module's input


@dataclass(frozen=True)
class Part:
    """The queries of one call. Decoding with a cache makes several calls with more and more keys."""

    q: torch.Tensor  # [batch, heads, rows, d_k]
    lse: torch.Tensor | None  # [batch, heads, rows]
    rows: torch.Tensor  # the kept queries, by number
    queries: int
    keys: int
    visible: Visible
    bias: torch.Tensor | None  # [batch or 1, heads or 1, rows, keys]
    o: torch.Tensor | None = None  # [batch, heads, rows, d_v]


@dataclass
class Layer:
    """The recording of one attention call, or of several over a growing cache."""

    site: Site
    parts: list[Part]
    k: list[torch.Tensor]  # [batch, kv_heads, keys, d_k], to be joined
    v: list[torch.Tensor]
    scale: float
    head_scales: torch.Tensor | None
    prescaled: tuple[float | None, float | None]
    softcap: float | None
    sinks: torch.Tensor | None
    scores: str  # number format
    over_queries: bool = False  # whether softmax ran over the queries instead of the keys
    notes: list[str] = field(default_factory=list[str])
    residual: float = 0.0  # of logits, or of lse if the kernel is fused
    tolerance: float = 0.0  # of rounding
    checked: str = ""  # what was compared

    @property
    def keys(self) -> int:
        return self.parts[-1].keys

    @property
    def nbytes(self) -> int:
        """The bytes that the layer takes in a file."""
        tensors = [*self.k, *self.v]
        for part in self.parts:
            tensors += [t for t in (part.q, part.lse, part.bias, part.o, part.visible.mask) if t is not None]
        return sum(t.numel() * t.element_size() for t in tensors)

    @property
    def exact(self) -> bool:
        """Whether the self-check found nothing but rounding."""
        return self.residual <= self.tolerance


def chosen_rows(queries: int, most: int) -> torch.Tensor:
    """Return evenly spaced queries, at most `most`, the first and the last among them."""
    if queries <= most:
        return torch.arange(queries)
    if most == 1:
        return torch.tensor([queries - 1])
    return torch.linspace(0, queries - 1, most, dtype=torch.float64).round().long()


def kept(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy in main memory."""
    tensor = tensor.detach()
    if tensor.device.type != "cpu":
        return tensor.cpu().contiguous()
    return tensor.clone(memory_format=torch.contiguous_format)


def make_layer(
    site: Site,
    q: torch.Tensor,  # [batch, heads, rows, d_k], kept rows only
    k: torch.Tensor,  # [batch, kv_heads, keys, d_k]
    rows: torch.Tensor,
    queries: int,
    reading: Reading,
    *,
    logits: torch.Tensor | None = None,  # [batch, heads, rows, keys + sinks] that entered softmax
    lse: torch.Tensor | None = None,  # [batch, heads, rows] that a kernel returned
    factors: tuple[float | None, float | None] = (1.0, 1.0),
    scores: torch.dtype = torch.float32,
) -> Layer:
    """Return the layer after its self-check. All tensors may be on any device; what is kept is copied."""
    keys = k.shape[2]
    hidden = reading.hidden
    if logits is not None:
        finite = torch.finfo(logits.dtype).min / 2
        unseen = logits[..., :keys] <= finite
        hidden = unseen if hidden is None else hidden | unseen
    pairs = torch.ones(1, 1, 1, 1, dtype=torch.bool) if hidden is None else ~shared(hidden.broadcast_to(
        *hidden.shape[:2], len(rows), keys)).cpu()  # fmt: skip
    pairs = pairs.expand(*pairs.shape[:2], len(rows), keys)
    if logits is not None:
        lse = torch.logsumexp(logits if logits.dtype == torch.float64 else logits.float(), dim=-1)
        if reading.shift is not None:
            lse = lse - reading.shift[..., 0]
    blind = ~pairs.any(dim=-1)  # queries that see no key, such as padding: what comes out for them means nothing
    if lse is not None and reading.sinks is None and bool(blind.any()):
        lse = lse.masked_fill(blind.to(lse.device), -float("inf"))
    k_kept = kept(k)
    group = _repeated(k_kept) if k.shape[1] == q.shape[1] else 1
    layer = Layer(
        site=site,
        parts=[Part(kept(q), None if lse is None else kept(lse.float()), rows, queries, keys,
              visible_of(pairs, rows, queries), None)],
        k=[k_kept[:, ::group].contiguous()],
        v=[],
        scale=reading.scale,
        head_scales=None if reading.head_scales is None else kept(reading.head_scales),
        prescaled=factors,
        softcap=reading.softcap,
        sinks=None if reading.sinks is None else kept(reading.sinks).float(),
        scores=FORMATS.get(scores, str(scores).removeprefix("torch.")),
        notes=[*reading.notes],
    )  # fmt: skip
    _check(layer, q, k, reading, pairs, logits, scores)
    return layer


def _repeated(k: torch.Tensor) -> int:
    """Return how many neighbouring heads have the same keys."""
    heads = k.shape[1]
    group = 1
    while group < heads and torch.equal(k[:, group], k[:, 0]):
        group += 1
    if group == 1 or heads % group:
        return 1
    groups = k.unflatten(1, (heads // group, group))
    return group if bool((groups == groups[:, :, :1]).all()) else 1


def products(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Return q·k in float64: [batch, heads, rows, keys]."""
    batch, heads, rows, d = q.shape
    grouped = q.double().reshape(batch, k.shape[1], -1, d)
    return (grouped @ k.double().transpose(-1, -2)).reshape(batch, heads, rows, k.shape[2])


def explained(q: torch.Tensor, k: torch.Tensor, reading: Reading) -> torch.Tensor:
    """Return the logits that the reading gives, without its bias: [batch, heads, rows, keys]."""
    z = products(q, k) * reading.scale
    if reading.head_scales is not None:
        z = z * reading.head_scales.to(z)[:, None, None]
    return z if reading.softcap is None else reading.softcap * torch.tanh(z / reading.softcap)


def _check(
    layer: Layer,
    q: torch.Tensor,
    k: torch.Tensor,
    reading: Reading,
    pairs: torch.Tensor,
    logits: torch.Tensor | None,
    scores: torch.dtype,
) -> None:
    """Compare the logits, or their log-sum-exp, with scale · q·k on some rows; keep the bias, or what is left."""
    device = torch.device("cpu") if q.device.type == "mps" else q.device
    some = chosen_rows(q.shape[2], CHECKED).to(device)
    qs = q.to(device)[:, :, some]
    z = explained(qs, k.to(device), reading)
    size = products(qs.abs(), k.to(device).abs()).max() * abs(reading.scale) if z.numel() else torch.zeros(())
    if reading.head_scales is not None:
        size = size * reading.head_scales.abs().max().to(device)
    bias = None if reading.bias is None else reading.bias.to(device)
    if bias is not None:
        z = z + (bias if bias.shape[2] == 1 else bias[:, :, some])
    seen = pairs.to(device)[:, :, some].expand(z.shape)
    largest = float(z[seen].abs().max()) if bool(seen.any()) else 0.0
    rounding = torch.finfo(scores).eps if scores.is_floating_point else 0.0
    layer.tolerance = 4 * (rounding * largest + 1.2e-7 * float(size))
    shortened = _shortened(q) * float(size)
    part = layer.parts[0]
    if logits is not None:
        x = logits.to(device)[..., : k.shape[2]]
        entered = x[:, :, some].double()
        if reading.shift is not None:
            entered = entered - reading.shift.to(device)[:, :, some]
        difference = (entered - z)[seen].abs()
        layer.checked = "logits"
        layer.residual = float(difference.max()) if difference.numel() else 0.0
        _allow_shortened(layer, shortened)
        if reading.problems or not layer.exact:
            full = x.double() - explained(q.to(device), k.to(device), reading)
            if reading.shift is not None:
                full = full - reading.shift.to(device)
            why = "; ".join(reading.problems) or f"scale · q·k is off by up to {layer.residual:.2g}"
            layer.notes.append(f"bias is the difference of the logits and scale · q·k, because {why}")
            layer.residual = 0.0
            bias = full.masked_fill(~pairs.to(device), 0.0)
            layer.parts[0] = replace(part, bias=kept(shared(bias).float()))
            return
    elif part.lse is not None:
        terms = z.masked_fill(~seen, -float("inf"))
        if reading.sinks is not None:
            column = reading.sinks.to(terms)[None, :, None, None].expand(*terms.shape[:3], 1)
            terms = torch.cat((terms, column), dim=-1)
        given = part.lse.to(device)[:, :, some].double()
        difference = (torch.logsumexp(terms, dim=-1) - given)[torch.isfinite(given)].abs()
        layer.checked = "lse"
        layer.residual = float(difference.max()) if difference.numel() else 0.0
        layer.tolerance = max(layer.tolerance, 2e-4 if torch.finfo(q.dtype).eps > 1e-6 else 1e-5)  # kernels' exp
        _allow_shortened(layer, shortened)
    if bias is not None:
        dtype = reading.bias_dtype if reading.bias_dtype in FORMATS else torch.float32
        layer.parts[0] = replace(part, bias=kept(shared(bias).to(dtype)))


def _shortened(q: torch.Tensor) -> float:
    """Return how much products of float32 may be off, relative to Σ|q·k|, because the program lets them be shortened.

    TF32 rounds both factors to 11 bits, bfloat16 to 8.
    """
    if q.dtype != torch.float32:
        return 0.0
    backend: Any = torch.backends.cuda.matmul if q.device.type == "cuda" else torch.backends.mkldnn
    backend = getattr(backend, "matmul", backend)
    named = getattr(backend, "fp32_precision", "tf32" if getattr(backend, "allow_tf32", False) else "")
    return {"tf32": 2.0**-10, "bf16": 2.0**-7}.get(named, 0.0)


def _allow_shortened(layer: Layer, error: float) -> None:
    """Take a residual that shortened products explain for their rounding, and name the format."""
    if layer.tolerance < layer.residual <= error:
        layer.tolerance = error
        layer.scores = "tfloat32"
        layer.notes.append("products of float32 are shortened, as the program allows (TF32)")


def grown(old: Layer, new: Layer) -> bool:
    """Add the queries of a call that continues another one with more keys; return False if it does not."""
    before, part = old.parts[-1], new.parts[0]
    added = part.keys - before.keys
    same = (
        added == part.queries > 0
        and len(part.rows) == part.queries
        and old.scale == new.scale
        and old.softcap == new.softcap
        and old.k[0].shape[:2] == new.k[0].shape[:2]
        and old.k[0].dtype == new.k[0].dtype
        and bool(old.v) == bool(new.v)
    )
    if not same or not torch.equal(new.k[0][:, :, before.keys - 1], old.k[-1][:, :, -1]):
        return False
    old.k.append(new.k[0][:, :, before.keys :].clone())
    if new.v:
        old.v.append(new.v[0][:, :, before.keys :].clone())
    old.parts.append(part)
    old.residual, old.tolerance = max(old.residual, new.residual), max(old.tolerance, new.tolerance)
    old.notes += [note for note in new.notes if note not in old.notes]
    return True
