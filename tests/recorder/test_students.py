"""Attention as people write it by hand: each multiplier is right or unknown; every file is read, and not accused."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attn_tui
import numpy as np
import pytest
from pytorch import torch
from replay import load
from written import assert_explained

F: Any = torch.nn.functional
nn: Any = torch.nn
pytestmark = pytest.mark.filterwarnings("default")
B, H, N, C = 2, 4, 12, 32
D = C // H
SCALE, WHOLE = D**-0.5, C**-0.5
CAUSAL = torch.ones(N, N, dtype=torch.bool).tril()
PLACES = torch.arange(N)[:, None] - torch.arange(N)
UNSEEN = "not recorded"  # the recording says that this attention was missed
NOTHING = "nothing recorded: 1 forward pass seen"  # this is not attention
PARTLY = "not recorded: 1 call: weights that are not of queries and keys are added"  # beside one that was recorded


def heads(x: Any, count: int = H) -> Any:
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


def together(o: Any) -> Any:
    return o.transpose(1, 2).flatten(2)


def rotate(x: Any) -> Any:
    angles = torch.arange(x.shape[-2])[:, None] * 10.0 ** -torch.arange(0, D, 2).div(D).repeat(2)
    return x * angles.cos() + torch.cat((-x[..., D // 2 :], x[..., : D // 2]), -1) * angles.sin()


def single(q: Any, k: Any, v: Any) -> Any:
    return (q @ k.transpose(1, 2) / math.sqrt(C)).softmax(-1) @ v


def single_sdpa(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v)


def list_of_heads(q: Any, k: Any, v: Any) -> Any:
    """Karpathy's: one head after another."""
    done: list[Any] = []
    for a, b, c in zip(*(x.chunk(H, -1) for x in (q, k, v)), strict=True):
        w = (a @ b.transpose(-2, -1) * SCALE).masked_fill(~CAUSAL, -torch.inf)
        done.append(F.dropout(w.softmax(-1), 0.0) @ c)
    return torch.cat(done, -1)


def of_scores(change: Callable[[Any], Any], scale: float = SCALE) -> Callable[..., Any]:
    """Attention of several heads in which `change` is what happens to the scaled scores before softmax."""

    def attend(q: Any, k: Any, v: Any) -> Any:
        q, k, v = map(heads, (q, k, v))
        return together(change(q @ k.transpose(-1, -2) * scale).softmax(-1) @ v)

    return attend


def of_weights(change: Callable[[Any], Any]) -> Callable[..., Any]:
    """Attention of several heads in which `change` is what happens to the weights."""

    def attend(q: Any, k: Any, v: Any) -> Any:
        q, k, v = map(heads, (q, k, v))
        return together(change((q @ k.transpose(-1, -2) * SCALE).softmax(-1)) @ v)

    return attend


def of_vectors(change_q: Callable[[Any], Any], change_k: Callable[[Any], Any], scale: float = 1.0) -> Any:
    """Attention of several heads in which q and k change before the product."""

    def attend(q: Any, k: Any, v: Any) -> Any:
        q, k, v = map(heads, (q, k, v))
        return together((change_q(q) @ change_k(k).transpose(-1, -2) * scale).softmax(-1) @ v)

    return attend


def as_it_is(x: Any) -> Any:
    return x


def index_put(scores: Any) -> Any:
    scores[:, :, ~CAUSAL] = -1e9
    return scores


def index_put_of_batch(scores: Any) -> Any:
    scores[(~CAUSAL).expand(B, H, N, N)] = -torch.inf
    return scores


def part_filled(scores: Any) -> Any:
    scores[..., -2:] = -torch.inf
    return scores


def part_added(scores: Any) -> Any:
    scores[:, :, 1:, 1:] += torch.linspace(-1, 1, N - 1)
    return scores


def part_replaced(scores: Any) -> Any:
    """Relative positions of height and width between all but two tokens, as in MViTv2 with its class token."""
    h, w = 2, 5
    rows = torch.linspace(-1, 1, h * w).view(h, w, 1) @ torch.linspace(-1, 1, h * h).view(h, 1, h)
    columns = torch.linspace(-1, 1, w * h).view(w, h, 1) @ torch.linspace(0, 2, w * w).view(w, 1, w)
    part = scores[:, :, 2:, 2:].view(B, H, h, w, h, w) + rows[..., None] + columns.transpose(0, 1)[:, :, None]
    scores[:, :, 2:, 2:] = part.view(B, H, N - 2, N - 2)
    return scores


def split_bias(scores: Any) -> Any:
    """Relative positions of height and width, as in SAM and ViTDet."""
    h, w = 3, 4
    rows = torch.linspace(-1, 1, h * w * h).reshape(h, w, h)
    columns = torch.linspace(1, -1, h * w * w).reshape(h, w, w)
    split = scores.view(B, H, h, w, h, w) + rows[:, :, :, None] + columns[:, :, None, :]
    return split.view(B, H, N, N)


def alibi(scores: Any) -> Any:
    return scores - torch.exp2(-torch.arange(1.0, H + 1))[:, None, None] * PLACES.abs()


def relative_table(scores: Any) -> Any:
    return scores + torch.linspace(-1, 1, (2 * N - 1) * H).reshape(-1, H)[PLACES + N - 1].permute(2, 0, 1)


def triu_added(scores: Any) -> Any:
    return scores + torch.full((N, N), -torch.inf).triu(1)


def stable(scores: Any) -> Any:
    return scores - scores.max(dim=-1, keepdim=True)[0]


def padded(scores: Any) -> Any:
    return scores.masked_fill(
        torch.arange(N) >= torch.tensor([N, 7]).view(B, 1, 1, 1), -torch.finfo(torch.float32).max
    )


def hidden_times(scores: Any) -> Any:
    """The code of GPT-1 and BERT: scores times a mask, minus 10,000 where it is 0."""
    return scores * CAUSAL + -1e4 * ~CAUSAL


def tokens_first(q: Any, k: Any, v: Any) -> Any:
    q, k, v = (x.unflatten(-1, (H, D)) for x in (q, k, v))
    w = torch.einsum("bqhd,bkhd->bhqk", q, k).div(D**0.5).softmax(-1)
    return torch.einsum("bhqk,bkhd->bqhd", w, v).flatten(2)


def energy(q: Any, k: Any, v: Any) -> Any:
    """Aladdin Persson's: einsum, masked, divided by √C inside softmax."""
    q, k, v = (x.reshape(B, N, H, D) for x in (q, k, v))
    scores = torch.einsum("nqhd,nkhd->nhqk", [q, k]).masked_fill(~CAUSAL, float("-1e20"))
    return torch.einsum("nhql,nlhd->nqhd", [torch.softmax(scores / C**0.5, dim=3), v]).reshape(B, N, C)


def keys_first(q: Any, k: Any, v: Any) -> Any:
    q, k, v = map(heads, (q, k, v))
    w = (k @ q.transpose(-1, -2) * SCALE).softmax(-2)
    return together(w.transpose(-1, -2) @ v)


def wrong_axis(q: Any, k: Any, v: Any) -> Any:
    q, k, v = map(heads, (q, k, v))
    return together((q @ k.transpose(-1, -2) * SCALE).softmax(-2) @ v)


def over_heads(q: Any, k: Any, v: Any) -> Any:
    """The axis of heads was forgotten: tokens attend to channels of their own, head by head."""
    q, k, v = (x.unflatten(-1, (H, D)) for x in (q, k, v))
    return ((q @ k.transpose(-1, -2) * SCALE).softmax(-1) @ v).flatten(2)


def batch_last(q: Any, k: Any, v: Any) -> Any:
    """[tokens, batch × heads, d], as in fairseq."""
    q, k, v = (x.transpose(0, 1).reshape(N, B * H, D).transpose(0, 1) for x in (q * SCALE, k, v))
    o = torch.bmm(torch.bmm(q, k.transpose(1, 2)).softmax(-1), v)
    return o.transpose(0, 1).reshape(N, B, C).transpose(0, 1)


def flat_heads(q: Any, k: Any, v: Any) -> Any:
    """[heads × batch, tokens, d], as in the first transformers for PyTorch."""
    q, k, v = (torch.cat(x.chunk(H, -1)) for x in (q, k, v))
    w = F.softmax(torch.bmm(q, k.transpose(1, 2)) / D**0.5, dim=2)
    return torch.cat(torch.bmm(w, v).chunk(H), -1)


def by_loop(q: Any, k: Any, v: Any) -> Any:
    """Text by text."""
    return torch.stack([(a @ b.T / math.sqrt(C)).softmax(-1) @ c for a, b, c in zip(q, k, v, strict=True)])


def grouped(q: Any, k: Any, v: Any) -> Any:
    k, v = (heads(x[..., : 2 * D], 2).repeat_interleave(2, 1) for x in (k, v))
    return together((heads(q) @ k.mT * SCALE).softmax(-1) @ v)


def grouped_expand(q: Any, k: Any, v: Any) -> Any:
    k, v = (heads(x[..., : 2 * D], 2)[:, :, None].expand(B, 2, 2, N, D).reshape(B, H, N, D) for x in (k, v))
    return together((heads(q) @ k.mT * SCALE).softmax(-1) @ v)


def grouped_rows(q: Any, k: Any, v: Any) -> Any:
    k, v = (heads(x[..., : 2 * D], 2) for x in (k, v))
    scores = (heads(q).unflatten(1, (2, 2)).flatten(2, 3) @ k.mT * SCALE).unflatten(2, (2, N))
    return together((scores.softmax(-1).flatten(2, 3) @ v).unflatten(2, (2, N)).flatten(1, 2))


def grouped_groups(q: Any, k: Any, v: Any) -> Any:
    k, v = (heads(x[..., : 2 * D], 2)[:, :, None] for x in (k, v))
    return together(((heads(q).unflatten(1, (2, 2)) @ k.mT * SCALE).softmax(-1) @ v).flatten(1, 2))


def multi_query(q: Any, k: Any, v: Any) -> Any:
    k, v = (x[:, None, :, :D] for x in (k, v))
    return together((heads(q) @ k.mT * SCALE).softmax(-1) @ v)


def cross(q: Any, k: Any, v: Any) -> Any:
    q, k, v = heads(q), heads(k[:, :7]), heads(v[:, :7])
    return together(F.scaled_dot_product_attention(q, k, v))


def packed(q: Any, k: Any, v: Any) -> Any:
    q, k, v = torch.stack((q, k, v), 2).reshape(B, N, 3, H, D).permute(2, 0, 3, 1, 4).unbind(0)
    return together(((q * SCALE) @ k.mT).softmax(-1) @ v)


def with_cache(q: Any, k: Any, v: Any) -> Any:
    cache = torch.zeros(2, B, H, 20, D)
    cache[0, :, :, :N], cache[1, :, :, :N] = heads(k), heads(v)
    return together((heads(q) @ cache[0, :, :, :N].mT * SCALE).softmax(-1) @ cache[1, :, :, :N])


def with_sink(q: Any, k: Any, v: Any) -> Any:
    scores = heads(q) @ heads(k).mT * SCALE
    sinks = torch.linspace(-1, 1, H).view(1, H, 1, 1).expand(B, H, N, 1)
    return together(torch.cat((scores, sinks), -1).softmax(-1)[..., :-1] @ heads(v))


def softmax_one(q: Any, k: Any, v: Any) -> Any:
    """Miller's softmax, which adds 1 to the sum."""
    e = torch.exp(heads(q) @ heads(k).mT * SCALE)
    return together(e / (1 + e.sum(-1, keepdim=True)) @ heads(v))


def by_exponentials(q: Any, k: Any, v: Any) -> Any:
    e = torch.exp(heads(q) @ heads(k).mT * SCALE) * CAUSAL
    return together(e / e.sum(-1, keepdim=True) @ heads(v))


def by_logarithm(q: Any, k: Any, v: Any) -> Any:
    return together(F.log_softmax(heads(q) @ heads(k).mT * SCALE, -1).exp() @ heads(v))


def by_logsumexp(q: Any, k: Any, v: Any) -> Any:
    z = heads(q) @ heads(k).mT * SCALE
    return together(torch.exp(z - z.logsumexp(-1, keepdim=True)) @ heads(v))


def masked_afterwards(q: Any, k: Any, v: Any) -> Any:
    w = (heads(q) @ heads(k).mT * SCALE).softmax(-1) * CAUSAL
    return together(w / w.sum(-1, keepdim=True) @ heads(v))


def divided_afterwards(q: Any, k: Any, v: Any) -> Any:
    return together((heads(q) @ heads(k).mT).softmax(-1) / D**0.5 @ heads(v))


def half(q: Any, k: Any, v: Any) -> Any:
    q, k, v = (heads(x).bfloat16() for x in (q, k, v))
    return together(((q @ k.mT) * SCALE).float().softmax(-1).bfloat16() @ v).float()


def elementwise(q: Any, k: Any, v: Any) -> Any:
    """Scores as sums of products: no product of matrices."""
    scores = (heads(q)[:, :, :, None] * heads(k)[:, :, None]).sum(-1) * SCALE
    return together(scores.softmax(-1) @ heads(v))


def query_by_query(q: Any, k: Any, v: Any) -> Any:
    q, k, v = map(heads, (q, k, v))
    rows = [(q[:, :, i : i + 1] @ k[:, :, : i + 1].mT * SCALE).softmax(-1) @ v[:, :, : i + 1] for i in range(N)]
    return together(torch.cat(rows, 2))


def sdpa_prescaled(q: Any, k: Any, v: Any) -> Any:
    return together(F.scaled_dot_product_attention(heads(q) * SCALE, heads(k), heads(v)))


def sdpa(**options: Any) -> Callable[..., Any]:
    def attend(q: Any, k: Any, v: Any) -> Any:
        return together(F.scaled_dot_product_attention(heads(q), heads(k), heads(v), **options))

    return attend


def sdpa_undone(q: Any, k: Any, v: Any) -> Any:
    return sdpa()(q * D**0.5, k, v)


def talking(scores: Any) -> Any:
    """Mix scores, or weights, of all heads."""
    return F.linear(scores.permute(0, 2, 3, 1), torch.linspace(0, 1, H * H).view(H, H)).permute(0, 3, 1, 2)


def a_part_of_q(q: Any) -> Any:
    q = q.clone()
    q[:, :2] *= SCALE
    return q


def other_sum(q: Any, k: Any, v: Any) -> Any:
    e = torch.exp(heads(q) @ heads(k).mT * SCALE)
    return together(e / e.sum(-2, keepdim=True) @ heads(v))


def features(q: Any, k: Any, v: Any) -> Any:
    """Exponentials of products with random vectors, as in Performer, and a classifier of tokens."""
    a, b = (torch.exp(heads(x) @ torch.linspace(-1, 1, D * 3).view(D, 3)) for x in (q, k))
    o = together(a @ (b.mT @ heads(v)) / (a @ b.sum(2)[..., None]))
    return o * (q @ torch.linspace(-1, 1, C * 5).view(C, 5)).softmax(-1)[..., :1]


def positional(q: Any, k: Any, v: Any) -> Any:
    """Gated with weights of positions, as in ConViT."""
    w = (heads(q) @ heads(k).mT * SCALE).softmax(-1)
    places = (-PLACES.abs().float()).softmax(-1)
    gate = torch.linspace(0, 1, H).view(H, 1, 1)
    w = (1 - gate) * w + gate * places
    return together(w / w.sum(-1, keepdim=True) @ heads(v))


def outlook(q: Any, k: Any, v: Any) -> Any:
    """Weights of a linear layer of each token, as in VOLO."""
    w = (q @ torch.linspace(-1, 1, C * H * N).view(C, H * N)).unflatten(-1, (H, N)).transpose(1, 2)
    return together((w * SCALE).softmax(-1) @ heads(v))


def log_n(q: Any) -> Any:
    return q * torch.arange(2, N + 2).log()[:, None]


# What the scores of all heads, or of each, are multiplied by, as the file must say; None: unknown or not recorded.
# Then what the recording names as missed, or the cause that a diagnosis finds.
WRITTEN: dict[str, tuple[Any, ...]] = {
    "single head": (single, WHOLE),
    "single head, SDPA": (single_sdpa, WHOLE),
    "a list of heads": (list_of_heads, SCALE),
    "several heads": (of_scores(as_it_is), SCALE),
    "forgotten scale": (of_scores(as_it_is, 1.0), 1.0),
    "√C for √d": (of_scores(as_it_is, WHOLE), WHOLE),
    "scaled twice": (of_vectors(lambda q: q * SCALE, as_it_is, SCALE), SCALE**2),
    "scale inside q": (of_vectors(lambda q: q / D**0.5, as_it_is), SCALE),
    "scale inside k": (of_vectors(as_it_is, lambda k: k * SCALE), SCALE),
    "√scale inside both": (of_vectors(lambda q: q * SCALE**0.5, lambda k: k * SCALE**0.5), SCALE),
    "SDPA of q with a scale": (sdpa_prescaled, SCALE**2),
    "SDPA, multiplied back": (sdpa_undone, 1.0),
    "rotary": (of_vectors(rotate, rotate, SCALE), SCALE),
    "rotary after the scale": (of_vectors(lambda q: rotate(q * SCALE), rotate), SCALE),
    "QK-norm": (of_vectors(lambda q: F.normalize(q, dim=-1), lambda k: F.normalize(k, dim=-1), 10.0), 10.0),
    "RMS norms": (of_vectors(lambda q: F.rms_norm(q, (D,)), lambda k: F.rms_norm(k, (D,)), SCALE), SCALE),
    "layer norms": (of_vectors(lambda q: F.layer_norm(q, (D,)), lambda k: F.layer_norm(k, (D,)), SCALE), SCALE),
    "temperatures of rows": (of_scores(lambda s: s * torch.linspace(1, 2, N)[:, None]), None),
    "a gate of keys": (of_scores(lambda s: s * torch.linspace(1, 2, N)), None),
    "log n inside q": (of_vectors(log_n, as_it_is, SCALE), None),
    "added -inf": (of_scores(triu_added), SCALE),
    "filled -inf": (of_scores(lambda s: s.masked_fill(~CAUSAL, -torch.inf)), SCALE),
    "where": (of_scores(lambda s: torch.where(CAUSAL, s, torch.tensor(-1e9))), SCALE),
    "where, a number": (of_scores(lambda s: torch.where(CAUSAL, s, -torch.inf)), SCALE),
    "indexed": (of_scores(index_put), SCALE),
    "indexed by all axes": (of_scores(index_put_of_batch), SCALE),
    "the last keys filled": (of_scores(part_filled), SCALE),
    "a part of the scores added to": (of_scores(part_added), SCALE),
    "a part of the scores replaced": (of_scores(part_replaced), SCALE),
    "times a mask": (of_scores(hidden_times), SCALE),
    "padding": (of_scores(padded), SCALE),
    "divided after the mask": (of_scores(lambda s: triu_added(s) / D**0.5, 1.0), SCALE),
    "less the largest": (of_scores(stable), SCALE),
    "ALiBi": (of_scores(alibi), SCALE),
    "a table of relative positions": (of_scores(relative_table), SCALE),
    "a bias of height and width": (of_scores(split_bias), SCALE),
    "soft-cap": (of_scores(lambda s: 5 * torch.tanh(s / 5)), SCALE),
    "clamped": (of_scores(lambda s: s.clamp(-50, 50)), SCALE),
    "temperature": (of_scores(lambda s: s / 0.7), SCALE / 0.7),
    "temperatures of heads": (
        of_scores(lambda s: s * torch.linspace(1, 2, H)[:, None, None]),
        [SCALE * (3 + h) / 3 for h in range(H)],
    ),
    "dropout": (of_weights(lambda w: F.dropout(w, 0.5)), SCALE),
    "masked and divided by the sum after softmax": (masked_afterwards, SCALE),
    "masked after softmax": (of_weights(lambda w: w * CAUSAL), SCALE),
    "scaled after softmax": (divided_afterwards, 1.0),
    "tokens first": (tokens_first, SCALE),
    "einsum, divided by √C": (energy, WHOLE),
    "keys first": (keys_first, SCALE),
    "softmax over queries": (wrong_axis, SCALE, "softmax-axis"),
    "over heads": (over_heads, SCALE),
    "batch × heads": (batch_last, SCALE),
    "heads × batch": (flat_heads, SCALE),
    "text by text": (by_loop, WHOLE),
    "repeated keys": (grouped, SCALE),
    "expanded keys": (grouped_expand, SCALE),
    "groups of heads": (grouped_groups, SCALE),
    "groups of rows": (grouped_rows, SCALE),
    "one key head": (multi_query, SCALE),
    "cross-attention": (cross, SCALE),
    "packed qkv": (packed, SCALE),
    "a cache": (with_cache, SCALE),
    "a sink": (with_sink, SCALE),
    "1 added to the sum": (softmax_one, SCALE, "sink-extra"),
    "exponentials times a mask": (by_exponentials, SCALE, "causal-extra"),
    "log_softmax().exp()": (by_logarithm, SCALE),
    "less the log-sum-exp": (by_logsumexp, SCALE),
    "bfloat16": (half, SCALE),
    "SDPA, causal": (sdpa(is_causal=True), SCALE),
    "SDPA, another scale": (sdpa(scale=0.1), 0.1),
    "SDPA, dropout": (sdpa(dropout_p=0.3), SCALE),
    "query by query": (query_by_query, SCALE),
    "sums of products": (elementwise, None, UNSEEN),
    "talking heads": (of_scores(talking), None, UNSEEN),
    "talking heads beside their own scores": (of_scores(lambda s: s + talking(s)), None, UNSEEN),
    "the mean of all heads added": (of_scores(lambda s: s + s.mean(1, keepdim=True)), None, UNSEEN),
    "talking heads after softmax": (of_weights(talking), SCALE),
    "scores normalised": (of_scores(lambda s: F.layer_norm(s, (N,))), None, UNSEEN),
    "limits of keys": (of_scores(lambda s: torch.maximum(torch.linspace(-1, 1, N), s)), None, UNSEEN),
    "a part of q scaled in place": (of_vectors(a_part_of_q, as_it_is), None),
    "exponentials over sums of queries": (other_sum, None, UNSEEN),
    "features of a kernel": (features, None, NOTHING),
    "where, a tensor": (of_scores(lambda s: torch.where(CAUSAL, s, torch.full_like(s, -torch.inf))), SCALE),
    "at least the least number": (of_scores(lambda s: torch.max(triu_added(s), torch.tensor(-3e38))), SCALE),
    "weights of no keys": (outlook, None, UNSEEN),
    "weights of positions": (positional, SCALE, PARTLY),
}  # fmt: skip
KEY_HEADS = {"repeated keys": 2, "expanded keys": 2, "groups of heads": 2, "groups of rows": 2, "one key head": 1}
# Outputs that do not follow from the logits alone: weights change after softmax, or are not of the keys.
BEYOND_LOGITS = {
    "dropout", "SDPA, dropout", "masked and divided by the sum after softmax", "masked after softmax",
    "scaled after softmax", "talking heads after softmax", "softmax over queries", "1 added to the sum",
    "exponentials times a mask", "less the log-sum-exp", "weights of positions",
}  # fmt: skip
# Weights that are changed after softmax, by more than dropout: what they were is not judged.
CHANGED = {
    "masked and divided by the sum after softmax", "masked after softmax", "scaled after softmax",
    "talking heads after softmax", "weights of positions",
}  # fmt: skip


class Attention(torch.nn.Module):
    """Projections, and a function of queries, keys and values [batch, tokens, channels]."""

    def __init__(self, attend: Callable[..., Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.num_heads, self.attend = H, attend
        self.q, self.k, self.v, self.out = (nn.Linear(C, C) for _ in range(4))
        for each in (self.q, self.k):
            each.weight.data.mul_(3)

    def forward(self, x: Any) -> Any:
        return self.out(self.attend(self.q(x), self.k(x), self.v(x)))


@pytest.mark.parametrize("name", WRITTEN)
def test_attention_written_by_hand(name: str, tmp_path: Path) -> None:
    attend, expected, *said = WRITTEN[name]
    x = torch.randn(B, N, C, generator=torch.Generator().manual_seed(1))
    path = tmp_path / "a.safetensors"
    module = Attention(attend)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(2)
        without = module(x)
        torch.manual_seed(2)
        with attn_tui.record(module, path, values=True) as recorder:
            found = module(x)
    assert torch.equal(without, found)
    missed = [each for each in said if "recorded" in each]
    assert recorder.complete == (not missed), recorder.summary
    assert all(each in recorder.summary for each in missed)
    assert path.exists() == (not {UNSEEN, NOTHING} & {*missed})
    if not path.exists():
        return
    held, metadata = load(path)
    for layer in metadata["layers"]:
        factors: list[Any] = layer.get("prescaled", [1.0, 1.0])
        if expected is None:
            assert (None in factors) != (f"layers.{layer['index']}.attn.row_factors" in held)
        else:
            scales = layer["scale"] if "scale" in layer else layer["head_scales"]
            assert np.multiply(scales, math.prod(factors)) == pytest.approx(expected)
        assert layer["kv_heads"] == KEY_HEADS.get(name, layer["heads"])
        assert layer["scores"] == ("bfloat16" if name == "bfloat16" else "float32")
        if name not in BEYOND_LOGITS:
            assert_explained(layer, held, 3e-2 if name == "bfloat16" else 2e-6)
    diagnosis = attn_tui.diagnose(path, expect=expected if isinstance(expected, float) else None)
    causes = {head.verdict.cause for head in diagnosis.heads}
    assert causes == ({None} if not said or missed else {*said})
    verdicts = {head.verdict.word for head in diagnosis.heads}
    judged = expected is not None and name not in CHANGED
    wanted = {"cause" if causes != {None} else "healthy" if judged else "undecided"}
    wanted |= {"undecided"} if isinstance(expected, list) else set()  # temperatures that nobody says are intended
    assert verdicts == wanted


def test_the_scale_of_maxvit_is_named(tmp_path: Path) -> None:
    """Torchvision's multiplies keys by 1/√ of the width of the whole layer."""
    model = Attention(of_vectors(as_it_is, lambda k: k * WHOLE))
    with torch.no_grad(), attn_tui.record(model, tmp_path / "a.safetensors"):
        model(torch.randn(B, N, C, generator=torch.Generator().manual_seed(1)))
    diagnosis = attn_tui.diagnose(tmp_path / "a.safetensors", expect="1/sqrt(d)")
    assert {head.verdict.cause for head in diagnosis.heads} == {"scale-d-model"}
    assert "1/√d_model = 1/√32" in str(diagnosis)
