"""One attention call: the kept queries and keys, how they became logits, and how well that explains what was seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import torch

from .chain import ScoreChain
from .copies import DONE, CopyEvent, copied, kept
from .scores import PLAIN, ScoreFactors
from .visibility import Visible, shared, visible_of

CHECKED = 32  # rows that the self-check computes again
_WIDE = 1e30  # largest numbers of formats that no score of finite queries and keys leaves in practice
AT_ONCE = 1 << 21  # scores that are computed at once: 16 MiB in float64

FORMATS = {
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float32: "float32",
    torch.float64: "float64",
}

# A call of attention in a pass: the id of the outermost module, the name, and which of this name it is.
Call: TypeAlias = tuple[int, str, int]


@dataclass(frozen=True)
class Site:
    """Where a call happened."""

    name: str  # of the innermost module around product and softmax
    head_counts: tuple[int, ...] = ()  # what modules around the call say of their heads, the innermost first
    batch: int | None = None  # of the outermost module's input
    model: int = 0  # in which the module has this name
    turn: int = 0  # of the softmax or kernel among all of the program


@dataclass(frozen=True)
class LayerCall:
    """The queries of one call. Decoding with a cache makes several calls of a layer."""

    q: torch.Tensor  # [batch, heads, rows, d_k]
    lse: torch.Tensor | None  # [batch, heads, rows]
    rows: torch.Tensor  # the kept queries, by number
    queries: int
    keys: int
    visible: Visible
    bias: torch.Tensor | None  # [batch or 1, heads or 1, rows, keys]
    o: torch.Tensor | None = None  # [batch, heads, rows, d_v]
    row_factors: torch.Tensor | None = None  # inside q, [batch or 1, heads or 1, rows, 1]; None: 1
    begun: int = 0  # keys of the layer before those of this call

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors that a file has of it, by name."""
        named = {"q": self.q, "lse": self.lse, "o": self.o, "bias": self.bias, "mask": self.visible.mask,
                 "row_factors": self.row_factors}  # fmt: skip
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    def cut(self, by: Callable[[torch.Tensor], torch.Tensor]) -> LayerCall:
        """Return the part with each of its tensors cut."""
        tensors = {name: by(tensor) for name, tensor in self.tensors.items()}
        return replace(self, visible=replace(self.visible, mask=tensors.pop("mask", None)), **tensors)


@dataclass
class RecordedLayer:
    """The recording of one attention call, or of several over a cache of keys."""

    site: Site
    parts: list[LayerCall]
    k: torch.Tensor  # [batch, kv_heads, keys, d_k]
    v: torch.Tensor | None
    scale: float
    head_scales: torch.Tensor | None
    prescaled: tuple[float | None, float | None]
    softcap: float | None
    sinks: torch.Tensor | None
    scores: str  # number format
    over_queries: bool = False  # whether softmax ran over the queries instead of the keys
    dropout: float = 0.0  # the share of weights that dropout set to 0
    changed: tuple[str, ...] = ()  # other operations that changed the weights before they met the values
    followed: bool = True  # whether the weights were seen to meet the values, along the keys
    not_finite: tuple[tuple[int, int], ...] = ()  # of each head, scores that were NaN or infinite, and of how many
    notes: list[str] = field(default_factory=list[str])
    residual: float = 0.0  # of logits, or of lse if the kernel is fused
    tolerance: float = 0.0  # of rounding
    checked: str = ""  # what was compared: logits or lse; bias: nothing, as it is what is left of the logits
    rows_checked: tuple[int, int] = (0, 0)  # how many of the rows that were compared see a key, and of how many
    copied: CopyEvent = DONE  # after which the copies of its tensors are complete
    call: Call = (0, "", 0)
    asked: bool = True  # False: it only tells which passes are of one generation
    refused: str = ""  # why the queries of later calls are not kept

    @property
    def nbytes(self) -> int:
        """The bytes that the layer takes in a file."""
        tensors = [self.k, self.v, *(tensor for part in self.parts for tensor in part.tensors.values())]
        return sum(t.numel() * t.element_size() for t in tensors if t is not None)

    @property
    def uniform(self) -> bool:
        """Whether all queries are alike, and all keys, to rounding, as where a framework tries a model with ones."""
        self.copied.synchronize()
        q, k = self.parts[0].q, self.k
        return min(q.shape[2], k.shape[2]) > 1 and all(_alike(tensor) for tensor in (q, k))

    @property
    def single(self) -> bool:
        """Whether there is one query and one key, whose weight is 1 whatever the scale."""
        return self.parts[0].queries == self.k.shape[2] == 1

    @property
    def over_heads(self) -> bool:
        """Whether queries and keys are heads, as where these were not moved before the tokens."""
        part, known = self.parts[0], self.site.head_counts
        return part.queries == part.keys > 1 and part.queries in known and 1 < part.q.shape[1] not in known

    @property
    def exact(self) -> bool:
        """Whether the self-check found nothing but rounding."""
        return self.checked != "bias" and self.residual <= self.tolerance


def _alike(rows: torch.Tensor) -> bool:
    return _largest(rows - rows[:, :, :1]) <= torch.finfo(rows.dtype).eps ** 0.5 * _largest(rows)


def chosen_rows(queries: int, most: int) -> torch.Tensor:
    """Return evenly spaced queries, at most `most`, the first and the last among them."""
    if queries <= most:
        return torch.arange(queries)
    if most == 1:
        return torch.tensor([queries - 1])
    return torch.linspace(0, queries - 1, most, dtype=torch.float64).round().long()


def make_layer(
    site: Site,
    q: torch.Tensor,  # [batch, heads, rows, d_k], kept rows only
    k: torch.Tensor,  # [batch, kv_heads, keys, d_k]
    rows: torch.Tensor,
    queries: int,
    read: Callable[[torch.Tensor], ScoreChain],  # the steps of some kept rows, given by their places among them
    *,
    lse: torch.Tensor | None = None,  # [batch, heads, rows] that a kernel returned
    factors: ScoreFactors = PLAIN,
    scores: torch.dtype = torch.float32,
) -> RecordedLayer:
    """Return the layer after its self-check. All tensors may be on any device; what is kept is copied.

    Beside these copies, memory is needed for AT_ONCE scores in float64, and a few results of that size.
    """
    keys = k.shape[2]
    blocks = torch.arange(len(rows)).split(max(1, AT_ONCE // (q.shape[0] * q.shape[1] * max(1, keys))))
    check = _Check(q, k, read(blocks[0]), scores, lse)
    for some in blocks:
        check.add(some, read(some))
    first = check.first
    pairs = joined_rows(check.pairs)
    found = lse if lse is not None else joined_rows(check.lses)[..., 0] if check.lses else None
    blind = ~pairs.any(dim=-1)  # queries that see no key, such as padding: what comes out for them means nothing
    if found is not None and first.sinks is None and bool(blind.any()):
        found = found.masked_fill(blind.to(found.device), -float("inf"))
    group = _repeated(k) if k.shape[1] == q.shape[1] else 1
    inside = _told_apart(factors)
    layer = RecordedLayer(
        site=site,
        parts=[LayerCall(kept(q), None if found is None else kept(found.float()), rows, queries, keys,
              visible_of(pairs, rows, queries), None)],
        k=kept(k[:, ::group]),
        v=None,
        scale=first.scale,
        head_scales=None if first.head_scales is None else first.head_scales.cpu(),
        prescaled=(None if check.unknown else inside.q, inside.k),
        softcap=first.softcap,
        sinks=None if first.sinks is None else first.sinks.float().cpu(),
        scores=FORMATS.get(scores, str(scores).removeprefix("torch.")),
        not_finite=check.not_finite,
        notes=list(first.notes),
        checked=check.of,
        rows_checked=(check.seeing, check.compared),
        residual=check.residual,
        tolerance=check.tolerance,
    )  # fmt: skip
    _allow_shortened(layer, _shortened(q) * check.size)
    problems = list(dict.fromkeys(check.problems))
    if check.of == "logits" and (problems or not layer.exact):
        why = "; ".join(problems) or f"scale · q·k is off by up to {layer.residual:.2g}"
        layer.notes.append(f"not verified: bias is the difference of the logits and scale · q·k, because {why}")
        layer.checked, layer.prescaled = "bias", (None, inside.k)  # which may hide another factor
        bias = joined_rows([check.difference(some, read(some)) for some in blocks])
    else:
        bias = check.bias()
    of_rows = None if check.unknown or inside.rows is None else kept(inside.rows.float())
    layer.parts[0] = replace(layer.parts[0], bias=bias, row_factors=of_rows)
    layer.copied = copied(q.device)
    return layer


def joined_rows(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return blocks of rows [batch or 1, heads or 1, rows or 1, …] as one; rows that are the same in all, once."""
    if len(parts) == 1:
        return parts[0]
    sizes = [max(part.shape[axis] for part in parts) for axis in (0, 1)]
    return shared(torch.cat([part.expand(*sizes, *part.shape[2:]) for part in parts], dim=2))


def _told_apart(factors: ScoreFactors) -> ScoreFactors:
    """Return factors whose rows differ; numbers that differ between texts or heads alone are not known."""
    rows = factors.rows
    if rows is None:
        return factors
    rows = shared(rows)
    if bool((rows == rows[:, :, :1]).all()):
        number = float(rows[0, 0, 0]) if rows.shape[:2] == (1, 1) and rows.numel() else None
        return ScoreFactors(None if factors.q is None or number is None else factors.q * number, factors.k)
    return replace(factors, rows=rows)


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


def products(q: torch.Tensor, k: torch.Tensor, absolute: bool = False) -> torch.Tensor:
    """Return q·k, or the sum of the absolute values of its terms, in float64: [batch, heads, rows, keys].

    Keys are converted head by head: those of all heads may take more memory than the scores.
    """
    batch, heads, rows, _ = q.shape
    found = torch.empty(batch, heads, rows, k.shape[2], dtype=torch.float64, device=q.device)
    group = heads // k.shape[1]
    for text in range(batch):
        for head in range(heads):
            a, b = q[text, head].double(), k[text, head // group].double()
            found[text, head] = a.abs() @ b.abs().mT if absolute else a @ b.mT
    return found


def explained(q: torch.Tensor, k: torch.Tensor, reading: ScoreChain) -> torch.Tensor:
    """Return the logits that the reading gives, without its bias: [batch, heads, rows, keys]."""
    z = products(q, k).mul_(reading.scale)
    if reading.head_scales is not None:
        z *= reading.head_scales.to(z)[:, None, None]
    return z if reading.softcap is None else torch.tanh(z / reading.softcap).mul_(reading.softcap)


class _Check:
    """Compares logits, or their log-sum-exp, with scale · q·k block by block; collects masks and biases."""

    def __init__(
        self, q: torch.Tensor, k: torch.Tensor, first: ScoreChain, scores: torch.dtype, lse: torch.Tensor | None
    ) -> None:
        self._device = torch.device("cpu") if q.device.type == "mps" else q.device
        self._q, self._k, self.first, self._scores, self._lse = q, k, first, scores, lse
        self._checked = set(chosen_rows(q.shape[2], CHECKED).tolist())
        self.of = ""
        self.unknown = False
        self.residual = self.size = self._largest = 0.0
        self.seeing = self.compared = 0  # rows
        self.problems: list[str] = []
        self.pairs: list[torch.Tensor] = []
        self.lses: list[torch.Tensor] = []
        self._not_finite: list[torch.Tensor] = []  # [heads, 2] of each block: visible scores not finite, and all
        self._biases: list[torch.Tensor | None] = []
        self._dtypes: set[torch.dtype] = set()

    def _explained(self, rows: torch.Tensor, reading: ScoreChain) -> torch.Tensor:
        device = self._device
        return explained(self._q[:, :, rows.to(self._q.device)].to(device), self._k.to(device), reading)

    def add(self, rows: torch.Tensor, reading: ScoreChain) -> None:
        """Take a block of rows."""
        logits, keys = reading.logits, self._k.shape[2]
        same = _same(reading, self.first)
        self.unknown |= reading.unknown or not same
        self.problems += reading.problems
        if not same:  # what differs from row to row is a bias
            away = self._explained(rows, reading) - self._explained(rows, self.first)
            reading.bias = away if reading.bias is None else away + reading.bias.to(away)
            reading.bias_dtype = None
        if logits is not None:
            reading.hide(self._unseen(rows, reading, logits[..., :keys]))
        hidden = reading.hidden
        pairs = torch.ones(1, 1, 1, 1, dtype=torch.bool) if hidden is None else ~shared(
            hidden.broadcast_to(*hidden.shape[:2], len(rows), keys)).cpu()  # fmt: skip
        pairs = pairs.expand(*pairs.shape[:2], len(rows), keys)
        self.pairs.append(pairs)
        self._count_not_finite(reading, pairs)
        if logits is not None:
            lse = torch.logsumexp(logits if logits.dtype == torch.float64 else logits.float(), dim=-1)[..., None]
            self.lses.append(lse if reading.shift is None else lse - reading.shift)
        dtype = reading.bias_dtype if reading.bias_dtype in FORMATS else torch.float32
        self._biases.append(None if reading.bias is None else shared(reading.bias).to(dtype).cpu())
        if reading.bias is not None:
            self._dtypes.add(dtype)
        checked = [place for place, row in enumerate(rows.tolist()) if row in self._checked]
        if checked:
            self._compare(rows, torch.tensor(checked), reading, pairs)

    def _unseen(self, rows: torch.Tensor, reading: ScoreChain, logits: torch.Tensor) -> torch.Tensor:
        """Return which logits are so low that they are hidden, and not because they left the number format."""
        limit = torch.finfo(logits.dtype).max / 2
        unseen = logits <= -limit
        doubtful = unseen if reading.hidden is None else unseen & ~reading.hidden
        if limit > _WIDE or not bool(doubtful.any()):
            return unseen
        z = products(self._q[:, :, rows.to(self._q.device)].to(self._device), self._k.to(self._device))
        large = torch.maximum(z.abs(), (z * reading.scale).abs()) > limit
        return unseen & ~(doubtful & large.to(unseen.device))

    def _count_not_finite(self, reading: ScoreChain, pairs: torch.Tensor) -> None:
        """Count the visible scores that are not finite, and take those out of the bias that are not in it."""
        wrong = torch.zeros(1, 1, 1, 1, dtype=torch.bool)
        if reading.logits is not None:
            wrong = ~torch.isfinite(reading.logits[..., : self._k.shape[2]]).cpu()
        bias = reading.bias
        if bias is not None and not bool(torch.isfinite(bias).all()):
            finite = torch.isfinite(bias)
            wrong = wrong | ~finite.cpu()
            reading.bias = bias.masked_fill(~finite, 0.0)
        shape = (self._q.shape[0], self._q.shape[1], *pairs.shape[2:])
        wide = pairs.expand(shape)
        self._not_finite.append(torch.stack([(wide & wrong).sum((0, 2, 3)), wide.sum((0, 2, 3))], -1))

    @property
    def not_finite(self) -> tuple[tuple[int, int], ...]:
        """Of each head, how many visible scores are not finite, and of how many."""
        return tuple((bad, count) for bad, count in torch.stack(self._not_finite).sum(0).tolist())

    def _compare(self, rows: torch.Tensor, places: torch.Tensor, reading: ScoreChain, pairs: torch.Tensor) -> None:
        device, some = self._device, rows[places]

        def picked(tensor: torch.Tensor) -> torch.Tensor:
            tensor = tensor.to(device)
            return tensor if tensor.shape[2] == 1 else tensor[:, :, places.to(device)]

        z = self._explained(some, self.first)
        terms = products(self._q[:, :, some.to(self._q.device)].to(device), self._k.to(device), absolute=True)
        factor = abs(self.first.scale)
        if self.first.head_scales is not None:
            factor *= float(self.first.head_scales.abs().max())
        self.size = max(self.size, _largest(terms) * factor)
        del terms
        if reading.bias is not None:
            z += picked(reading.bias)
        seen = picked(pairs).expand(z.shape)
        if bool(seen.any()):
            self._largest = max(self._largest, _largest(z.masked_fill(~seen, 0.0)))
        if reading.logits is not None:
            self.of = "logits"
            off = picked(reading.logits)[..., : z.shape[-1]].double() - z
            if reading.shift is not None:
                off -= picked(reading.shift)
            off = off.masked_fill(~(seen & torch.isfinite(off)), 0.0).abs()
        elif self._lse is not None:
            self.of = "lse"
            z.masked_fill_(~seen, -float("inf"))
            lse = torch.logsumexp(z, dim=-1)
            if reading.sinks is not None:
                lse = torch.logaddexp(lse, reading.sinks.to(lse)[None, :, None])
            given = self._lse.to(device)[:, :, some.to(device)].double()
            known = torch.isfinite(given) & torch.isfinite(lse)  # of a row that sees no key, kernels return anything
            off = (lse - given).masked_fill(~known, 0.0).abs()
        else:
            return
        self.compared += len(some)
        self.seeing += int(seen.any(dim=3).any(dim=1).any(dim=0).sum())
        largest = float(off.max()) if off.numel() else 0.0
        self.residual = max(self.residual, math.inf if math.isnan(largest) else largest)

    @property
    def tolerance(self) -> float:
        """What rounding may make of the comparison."""
        info = torch.finfo(self._scores)
        found = 4 * (info.eps * self._largest + 1.2e-7 * self.size) + info.tiny
        if self.of == "lse":
            found = max(found, 2e-4 if torch.finfo(self._q.dtype).eps > 1e-6 else 1e-5)  # kernels' exp
        return found

    def difference(self, rows: torch.Tensor, reading: ScoreChain) -> torch.Tensor:
        """Return what is left of the logits of a block, where they are visible."""
        assert reading.logits is not None
        full = reading.logits.to(self._device)[..., : self._k.shape[2]].double() - self._explained(rows, self.first)
        if reading.shift is not None:
            full -= reading.shift.to(self._device)
        pairs = self.pairs[int(rows[0]) // self.pairs[0].shape[2]]
        return shared(full.masked_fill_(~(pairs.to(self._device) & torch.isfinite(full)), 0.0)).float().cpu()

    def bias(self) -> torch.Tensor | None:
        """Return the bias of all rows, in the format of what was added if that is known."""
        if all(bias is None for bias in self._biases):
            return None
        dtype = self._dtypes.pop() if len(self._dtypes) == 1 else torch.float32
        blocks = [torch.zeros(1, 1, 1, 1) if bias is None else bias for bias in self._biases]
        if all(block.shape[2] == 1 and torch.equal(block, blocks[0]) for block in blocks):
            return blocks[0].to(dtype)
        counts, keys = [pairs.shape[2] for pairs in self.pairs], self._k.shape[2]
        wide = [block.expand(*block.shape[:2], count, keys) for block, count in zip(blocks, counts, strict=True)]
        return joined_rows(wide).to(dtype).contiguous()


def _largest(values: torch.Tensor) -> float:
    """Return the largest absolute value of those that are finite; 0 if there is none."""
    return float(values.masked_fill(~torch.isfinite(values), 0.0).abs().max()) if values.numel() else 0.0


def _same(a: ScoreChain, b: ScoreChain) -> bool:
    """Return whether two readings have the same multipliers and soft-cap, to a rounding."""
    if (a.softcap is None, a.head_scales is None) != (b.softcap is None, b.head_scales is None):
        return False
    near = math.isclose(a.scale, b.scale, rel_tol=1e-6)
    if a.softcap is not None and b.softcap is not None:
        near = near and math.isclose(a.softcap, b.softcap, rel_tol=1e-6)
    if a.head_scales is not None and b.head_scales is not None:
        near = near and torch.equal(a.head_scales, b.head_scales)
    return near


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


def _allow_shortened(layer: RecordedLayer, error: float) -> None:
    """Take a residual that shortened products explain for their rounding, and name the format."""
    if layer.tolerance < layer.residual <= error:
        layer.tolerance = error
        layer.scores = "tfloat32"
        layer.notes.append("products of float32 are shortened, as the program allows (TF32)")


def turned(layer: RecordedLayer, most: int) -> RecordedLayer:
    """Return a layer whose weights met the values along its rows: they are the keys, and softmax was over queries.

    If some rows were not kept, the keys are not all there: the layer is returned as it is, not followed.
    """
    [part], heads = layer.parts, layer.parts[0].q.shape[1]
    if len(part.rows) < part.queries or layer.sinks is not None or part.row_factors is not None:
        layer.followed = False
        return layer
    layer.copied.synchronize()
    rows = chosen_rows(part.keys, most)
    q = layer.k.repeat_interleave(heads // layer.k.shape[1], 1)
    pairs = part.visible.pairs(part.rows, part.keys).mT[:, :, rows].contiguous()
    bias = part.bias
    if bias is not None:
        wide = bias.expand(*bias.shape[:2], len(part.rows), part.keys)
        bias = wide.mT[:, :, rows].contiguous()
    visible = visible_of(pairs, rows, part.keys)
    part = LayerCall(q[:, :, rows].contiguous(), None, rows, part.keys, part.queries, visible, bias)
    keys = layer.parts[0].q
    return replace(layer, parts=[part], k=keys, v=None, prescaled=layer.prescaled[::-1], over_queries=True)
