"""Every way of writing attention is seen, with the right multiplier, and explains what was computed."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attn_tui
import pytest
from cases import for_each
from pytorch import torch
from replay import load, replay
from written import B, D, H, M, N, Written, assert_explained, causal_of, recorded, vectors

F: Any = torch.nn.functional
pytestmark = pytest.mark.filterwarnings("default")


def divided(q: Any, k: Any, v: Any) -> Any:
    return torch.softmax(torch.matmul(q, k.transpose(2, 3)) / D**0.5, dim=-1) @ v


def heads_between(q: Any, k: Any, v: Any) -> Any:
    """Scores as [batch, queries, heads, keys]."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    weights = torch.softmax(torch.einsum("bqhd,bkhd->bqhk", q, k) * 0.3, dim=-1)
    return torch.einsum("bqhk,bkhd->bqhd", weights, v)


def keys_first(q: Any, k: Any, v: Any) -> Any:
    """Scores as [batch, heads, keys, queries]; softmax runs over the keys all the same."""
    weights = torch.softmax(k @ q.transpose(-1, -2) * 0.3, dim=-2)
    return weights.transpose(-1, -2) @ v


def values_first(q: Any, k: Any, v: Any) -> Any:
    """Values times transposed weights, as in convolutional attention blocks."""
    weights = torch.softmax(q @ k.transpose(-1, -2) * 0.3, -1)
    return v.transpose(-1, -2) @ weights.transpose(-1, -2)


def with_baddbmm(q: Any, k: Any, v: Any) -> Any:
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    bias = torch.linspace(-1, 1, M).expand(B * H, N, M)
    return torch.bmm(torch.softmax(torch.baddbmm(bias, q, k.transpose(1, 2), beta=1.0, alpha=0.3), -1), v)


def prescaled(q: Any, k: Any, v: Any) -> Any:
    return torch.softmax((q * 0.5) @ (k * 0.6).transpose(-1, -2), -1) @ v


def in_place(q: Any, k: Any, v: Any) -> Any:
    scores = torch.empty(B, H, N, M)
    scores.copy_(q @ k.transpose(-1, -2))
    scores *= 0.3
    scores += torch.linspace(-1, 1, M)
    return scores.softmax(-1) @ v


def rotated(q: Any, k: Any, v: Any) -> Any:
    """With a rotary embedding whose angles are a product of matrices, applied to vectors that are already scaled."""
    frequencies: Any = torch.exp(-torch.arange(0, D, 2) / D * 9.21034)[None, :, None]  # 10000^(-i/d)
    q, k = q * 0.5, k * 0.6
    for_both: list[Any] = []
    for x in (q, k):
        positions = torch.arange(x.shape[2]).float()[None, None]
        angles = torch.cat(((frequencies @ positions).transpose(1, 2),) * 2, -1)[:, None]
        turned = torch.cat((-x[..., D // 2 :], x[..., : D // 2]), -1)
        for_both.append(x * angles.cos() + turned * angles.sin())
    return torch.softmax(for_both[0] @ for_both[1].transpose(-1, -2), -1) @ v


def normalised_by_hand(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.transpose(-1, -2) * 0.3
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    return weights / weights.sum(-1, keepdim=True) @ v


@pytest.mark.parametrize(
    "function",
    [heads_between, values_first, with_baddbmm, prescaled, in_place, normalised_by_hand],
)
def test_a_product_softmax_and_a_product(function: Callable[..., Any], tmp_path: Path) -> None:
    q, k, v = vectors()
    _, layer, held, _ = recorded(tmp_path, function, q, k, v)
    assert (layer["heads"], layer["kv_heads"], layer["d_k"]) == (H, H, D)
    factors = layer.get("prescaled", [1, 1])
    assert layer["scale"] * factors[0] * factors[1] == pytest.approx(0.3)
    prefix = f"layers.{layer['index']}.attn"
    assert torch.equal(held[f"{prefix}.q"], q * factors[0])
    assert torch.equal(held[f"{prefix}.k"], k * factors[1])
    assert_explained(layer, held)


def test_angles_made_by_a_product_of_matrices_are_no_scores(tmp_path: Path) -> None:
    _, layer, held, _ = recorded(tmp_path, rotated, *vectors())
    assert layer["scale"] * layer["prescaled"][0] * layer["prescaled"][1] == pytest.approx(0.3)
    assert_explained(layer, held)


def test_a_division_and_its_number_format(tmp_path: Path) -> None:
    q, k, v = (x.bfloat16() for x in vectors())
    _, layer, held, _ = recorded(tmp_path, divided, q, k, v)
    assert layer["scale"] == 0.25
    assert layer["scores"] == "bfloat16"
    assert held["layers.0.attn.q"].dtype == torch.bfloat16
    assert_explained(layer, held, 3e-2)


def test_a_bias_in_bfloat16_is_the_one_that_was_added(tmp_path: Path) -> None:
    bias = torch.randn(1, H, N, M, generator=torch.Generator().manual_seed(5)).bfloat16()

    def function(q: Any, k: Any, v: Any) -> Any:
        return torch.softmax(q @ k.transpose(-1, -2) * 0.25 + bias, -1) @ v

    _, _, held, _ = recorded(tmp_path, function, *(x.bfloat16() for x in vectors()))
    assert torch.equal(held["layers.0.attn.bias"], bias)


LEARNED = torch.linspace(0.2, 1.5, D)
TURN = torch.arange(N)[:, None] * torch.exp(-torch.arange(0, D, 2) / D * 9.21034).repeat(2)


def half_turned(x: Any) -> Any:
    return torch.cat((-x[..., D // 2 :], x[..., : D // 2]), -1)


def rotary(x: Any, amplitude: float = 1.0) -> Any:
    return x * (TURN.cos() * amplitude) + half_turned(x) * (TURN.sin() * amplitude)


def rms_normed(x: Any) -> Any:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


def angles_lost(x: Any) -> Any:
    """A rotation by angles that look like scores: a product of stacked matrices."""
    places = torch.stack((torch.arange(N), torch.zeros(N)), -1).expand(B, N, 2)
    turn = (places @ torch.stack((TURN[1], TURN[1])).expand(B, 2, D))[:, None]
    return x * turn.cos() + half_turned(x) * turn.sin()


def linear(x: Any) -> Any:
    """A layer of each head: a product of stacked matrices, as that of queries and keys is."""
    return x @ torch.linspace(-1, 1, H * D * D).view(H, D, D)


FACTORS: list[tuple[Callable[[Any], Any], float | None]] = [
    (lambda q: q * (F.softplus(LEARNED) * 0.36), None),  # TimesFM
    (lambda q: q * LEARNED[:H].view(1, H, 1, 1), None),
    (lambda q: rms_normed(q) * LEARNED * F.softplus(LEARNED), None),
    (lambda q: q * 0.5 + LEARNED, None),
    (lambda q: linear(q) * 0.5 + LEARNED, None),
    (lambda q: (linear(q) + LEARNED) * 0.5, 0.5),
    (lambda q: q * torch.sigmoid(q.roll(1, 0)), None),
    (lambda q: q * torch.full((D,), 0.5), 0.5),
    (lambda q: q * (torch.arange(N) < 9)[:, None], 1.0),
    (lambda q: (q + LEARNED) * 0.5, 0.5),
    (lambda q: rms_normed(q) * LEARNED, 1.0),
    (lambda q: F.rms_norm(q * 7, (D,)) * LEARNED, 1.0),
    (lambda q: F.normalize(q * 7, dim=-1) * 3, 3.0),
    (lambda q: rotary(rms_normed(q) * LEARNED, 1.3) * 0.5, 0.65),
    (lambda q: rotary(rms_normed(q)), 1.0),
    (lambda q: torch.addcmul(q * TURN.cos(), half_turned(q), TURN.sin()) * 0.5, 0.5),
    (lambda q: angles_lost(q * 0.5), 0.5),
]


@pytest.mark.parametrize(("change", "factor"), FACTORS)
def test_the_factor_inside_q_is_one_known_number_or_unknown(
    change: Callable[[Any], Any], factor: float | None, tmp_path: Path
) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return torch.softmax(change(q) @ k.transpose(-1, -2), -1) @ v

    _, layer, held, _ = recorded(tmp_path, function, *vectors())
    found = layer.get("prescaled", [1.0, 1.0])
    assert found == [None if factor is None else pytest.approx(factor), 1.0]
    assert_explained(layer, held)


def test_a_norm_over_the_width_takes_no_factor_with_it(tmp_path: Path) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        q = q * 7.0
        q = q * torch.rsqrt(q.square().mean(-1, keepdim=True)) * torch.linspace(0.5, 1.5, D)
        return torch.softmax(q @ k.transpose(-1, -2) * 0.25, -1) @ v

    _, layer, held, _ = recorded(tmp_path, function, *vectors())
    assert "prescaled" not in layer
    assert_explained(layer, held)


HIDDEN = ~causal_of(N, M, M - N)


@pytest.mark.parametrize("value", [-torch.inf, torch.finfo(torch.float32).min, -1e4])
def test_masks_are_read_off_what_enters_softmax(value: float, tmp_path: Path) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return torch.softmax(q @ k.transpose(-1, -2) * 0.25 + torch.zeros(N, M).masked_fill(HIDDEN, value), -1) @ v

    _, layer, held, _ = recorded(tmp_path, function, *vectors())
    assert layer["causal"] is True
    assert layer["alignment"] == "bottom-right"
    assert set(held) == {f"layers.0.attn.{name}" for name in ("q", "k", "v", "o", "lse")}
    assert_explained(layer, held)


def test_a_top_left_mask_of_a_rectangle(tmp_path: Path) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    _, layer, held, _ = recorded(tmp_path, function, *vectors())
    assert (layer["causal"], layer["alignment"], layer["scale"]) == (True, "top-left", 0.25)
    assert_explained(layer, held)


def test_a_window_and_padding(tmp_path: Path) -> None:
    padding = torch.ones(B, 1, 1, N, dtype=torch.bool)
    padding[1, ..., :3] = False
    distance = torch.arange(N)[:, None] - torch.arange(N)
    seen = (distance >= 0) & (distance < 5) & padding

    def function(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen)

    _, layer, held, _ = recorded(tmp_path, function, *vectors(m=N))
    assert (layer["causal"], layer["window"]) == (True, 5)
    assert torch.equal(held["layers.0.attn.mask"], padding)
    prefix = "layers.0.attn."
    lse, o = replay(layer, held)
    some = torch.isfinite(lse)
    assert o is not None
    assert torch.allclose(o[some].float(), held[prefix + "o"][some], atol=2e-6)
    assert not some[1, :, :3].any()


def test_softmax_over_the_queries_is_said_and_nothing_is_exchanged(tmp_path: Path) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        return torch.softmax(q @ k.transpose(-1, -2) * 0.3, dim=-2) @ v

    q, k, v = vectors()
    o, layer, held, _ = recorded(tmp_path, function, q, k, v)
    assert layer["softmax_axis"] == "queries"
    assert torch.equal(held["layers.0.attn.q"], q)
    assert torch.equal(held["layers.0.attn.o"], o)
    assert "layers.0.attn.lse" not in held


def test_softmax_over_the_rows_of_a_product_is_over_the_keys_if_values_meet_them(tmp_path: Path) -> None:
    q, k, v = vectors()
    _, layer, held, _ = recorded(tmp_path, keys_first, q, k, v)
    assert "softmax_axis" not in layer
    assert "over the rows of the product" in layer["notes"]
    assert torch.equal(held["layers.0.attn.q"], q)


def test_multiples_of_a_product_add_up(tmp_path: Path) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.transpose(-1, -2) * 0.25
        return torch.softmax(scores + scores / 2, -1) @ v

    _, layer, held, _ = recorded(tmp_path, function, *vectors())
    assert layer["scale"] == pytest.approx(0.375)
    assert "layers.0.attn.bias" not in held
    assert_explained(layer, held)


BIAS = torch.linspace(-1, 1, H * N * M).reshape(1, H, N, M)
SEEN = causal_of(N, M, M - N)


def with_part(scores: Any, change: Callable[[Any], Any]) -> Any:
    changed = scores.clone()
    changed[..., :3] = change(changed[..., :3])
    return changed


# What a program may do with scores between their product and softmax, and what it multiplies them by.
MULTIPLIED: list[tuple[Callable[[Any], Any], float]] = [
    (lambda s: s * 0.5, 0.5), (lambda s: 2.0 * s, 2.0), (lambda s: s / 1.25, 0.8), (lambda s: s.mul_(0.5), 0.5),
    (lambda s: s.div_(0.5), 2.0), (lambda s: s * torch.tensor(0.75), 0.75),
    (lambda s: torch.true_divide(s, torch.full((1, 1, 1, 1), 2.0)), 0.5),
]  # fmt: skip
MOVED: list[Callable[[Any], Any]] = [
    lambda s: s.clone(), lambda s: s.contiguous(), lambda s: s.transpose(1, 2).contiguous().transpose(1, 2),
    lambda s: s.reshape(B * H, N, M).view(B, H, N, M), lambda s: s.permute(2, 0, 3, 1).clone().permute(1, 3, 0, 2),
    lambda s: s.double().float(), lambda s: s.unsqueeze(2).squeeze(2), lambda s: s * 1,
    lambda s: torch.empty_like(s).copy_(s), lambda s: s.expand(B, H, N, M),
]  # fmt: skip
ADDED: list[Callable[[Any], Any]] = [
    lambda s: s + BIAS, lambda s: s - BIAS[:, :1], lambda s: s.add_(BIAS[..., :1, :]), lambda s: s + 1,
    lambda s: BIAS[:, :, :1] + s, lambda s: torch.add(s, BIAS, alpha=0.5), lambda s: s - s.amax(-1, keepdim=True),
    lambda s: s.masked_fill(~SEEN, -torch.inf), lambda s: s.masked_fill_(~SEEN, torch.finfo(s.dtype).min),
    lambda s: torch.where(SEEN, s, torch.tensor(-1e9)),
    lambda s: s + torch.zeros(N, M).masked_fill(~SEEN, -torch.inf),
]  # fmt: skip
BENT: list[Callable[[Any], Any]] = [
    lambda s: 5 * torch.tanh(s / 5), lambda s: s.clamp(-2, 2), lambda s: with_part(s, lambda part: part * 2),
    lambda s: with_part(s, lambda part: part + 1), lambda s: s.abs(), lambda s: s * BIAS, lambda s: s.flip(-1),
    lambda s: torch.cat(s.split(5, 2), 2), lambda s: F.pad(s, (0, 2), value=-torch.inf)[..., :M],
    lambda s: torch.stack(s.unbind(0), 0), lambda s: s + s, lambda s: s - s * 0.5,
]  # fmt: skip


@for_each("seed", range(60))
def test_whatever_is_done_to_scores_the_file_explains_the_logits_or_says_that_it_does_not(
    seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    chosen: list[Callable[[Any], Any]] = []
    multiplier = 0.25
    for _ in range(chance.randint(1, 5)):
        kind = chance.choice("×→+")
        if kind == "×":
            step, factor = chance.choice(MULTIPLIED)
            multiplier *= factor if not any(each in ADDED for each in chosen) else 1.0
        else:
            step = chance.choice(MOVED if kind == "→" else ADDED)
        chosen.append(step)
    bent = seed % 3 == 0
    if bent:
        chosen.insert(chance.randint(0, len(chosen)), chance.choice(BENT))

    def function(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.transpose(-1, -2) * 0.25
        for step in chosen:
            scores = step(scores)
        return torch.softmax(scores, -1) @ v

    module, path = Written(function), tmp_path / f"{seed}.safetensors"
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = module(*vectors())
        with attn_tui.record(module, path, values=True) as recorder:
            assert torch.equal(module(*vectors()), expected)
    if not path.exists():
        assert bent
        return
    held, metadata = load(path)
    [layer] = metadata["layers"]
    unknown = "multiplier unknown" in recorder.summary
    assert bent or not unknown
    if not unknown:
        assert_explained(layer, held, 2e-5)
        if not bent and not any(each in ADDED for each in chosen):
            factors = layer.get("prescaled", [1, 1])
            assert layer["scale"] * factors[0] * factors[1] == pytest.approx(multiplier)


def convolved(scores: Any) -> Any:
    return F.conv2d(scores, torch.ones(H, H, 1, 1))


TALKING: Any = torch.nn.Parameter(torch.linspace(-1, 1, H * H).reshape(H, H))


def mixed(scores: Any) -> Any:
    return torch.einsum("bhij,hg->bgij", scores, TALKING)


@pytest.mark.parametrize("mix", [torch.sin, torch.abs, convolved, mixed])
def test_a_function_of_scores_is_no_bias_of_theirs(mix: Callable[[Any], Any], tmp_path: Path) -> None:
    def function(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.transpose(-1, -2) * 0.25
        return torch.softmax(scores + mix(scores), -1) @ v

    module = Written(function)
    module.register_parameter("mix", TALKING)
    with pytest.warns(RuntimeWarning, match="not understood"), attn_tui.record(module, tmp_path / "a.safetensors"):
        module(*vectors())


def test_a_router_and_a_classifier_are_no_attention(tmp_path: Path) -> None:
    class Router(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = torch.nn.Linear(D, 4)
            self.experts = torch.nn.Linear(D, D)

        def forward(self, x: Any) -> Any:
            pairs = torch.softmax(x[..., :1] @ x[..., :1].mT, -1) @ x  # of single numbers, as of angles
            return torch.softmax(self.gate(x), -1) @ torch.ones(4, D) + self.experts(pairs)

    model = Router()
    with (
        pytest.warns(RuntimeWarning, match="no softmax of a product"),
        attn_tui.record(model, tmp_path / "a.safetensors"),
    ):
        model(torch.randn(2, 5, D))
    assert not (tmp_path / "a.safetensors").exists()
