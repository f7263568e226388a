"""Which dimensions are texts, heads and windows; and modules in which nothing was seen."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import attn_tui
import pytest
from attn_tui.core.captures.reader import open_capture
from cases import for_each
from pytorch import torch
from replay import load, replay

layout_of: Any = importlib.import_module("attn_tui.core.recorder.layers.layout").layout_of

nn: Any = torch.nn
F: Any = torch.nn.functional
pytestmark = pytest.mark.filterwarnings("default")
WIDTH = 32


class OneHead(torch.nn.Module):
    """Attention without an axis of heads."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x: Any) -> Any:
        return torch.softmax(self.q(x) @ self.k(x).transpose(1, 2) / WIDTH**0.5, -1) @ self.v(x)


class SeveralOfOneHead(torch.nn.Module):
    """Its number of heads is that of its modules."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads = 2
        self.heads = nn.ModuleList([OneHead(), OneHead()])

    def forward(self, x: Any) -> Any:
        return sum(head(x) for head in self.heads)


class Windows(torch.nn.Module):
    """Attention within windows of an image [batch, height, width, channels]."""

    def __init__(self, order: str) -> None:
        super().__init__()
        self.order = order
        self.num_heads = 4
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x: Any) -> Any:
        batch = x.shape[0]
        tokens = self.qkv(x.reshape(batch, -1, 16, WIDTH)).unflatten(-1, (3, self.num_heads, -1))
        if self.order == "stacked":  # batch, windows and heads in one dimension
            q, k, v = tokens.permute(3, 0, 1, 4, 2, 5).flatten(1, 3)
        elif self.order == "windows first":
            q, k, v = tokens.permute(3, 0, 1, 4, 2, 5)
        else:  # as in Hiera: [batch, heads, windows, tokens, d]
            q, k, v = tokens.permute(3, 0, 4, 1, 2, 5)
        return torch.softmax(q @ k.transpose(-1, -2) * 0.25, -1) @ v


def recorded(module: Any, path: Path, *inputs: Any, **options: Any) -> tuple[Any, Any]:
    torch.manual_seed(0)
    with torch.no_grad(), attn_tui.record(module, path / "a.safetensors", **options):
        module(*inputs)
    held, metadata = load(path / "a.safetensors")
    return metadata["layers"], held


def test_one_dimension_before_the_queries_is_split_into_texts_and_heads() -> None:
    for lead, counts, batch, texts, heads in (
        (8, (), 2, 2, 4), (8, (), None, 1, 8), (8, (), 3, 1, 8), (8, (4,), 2, 2, 4), (8, (2,), None, 4, 2),
        (2, (), 2, 2, 1),
    ):  # fmt: skip
        found = layout_of((lead, 10), 10, counts, batch)
        assert (found.outer, found.heads, found.queries) == (texts, heads, 10)
        assert found.assumed == (heads > 1 and not counts)


@for_each(
    ("lead", "rows", "counts", "batch", "split"),
    [
        ((2, 4, 10), 10, (4,), 2, (2, 4, 1)), ((2, 3, 4, 10), 10, (4,), 2, (6, 4, 1)),
        ((2, 4, 3, 10), 10, (4,), 2, (2, 4, 3)), ((2, 2, 3, 10), 10, (6,), 2, (2, 6, 1)),
        ((2, 2, 2, 10), 10, (4,), None, (2, 4, 1)), ((3, 2, 2, 10), 10, (4,), None, (3, 4, 1)),
        ((4, 3, 10), 10, (4,), None, (1, 4, 3)), ((2, 2, 10), 10, (4,), None, (1, 4, 1)),
        ((2, 2, 10), 10, (4,), 10, (1, 4, 1)), ((2, 2, 10), 10, (4,), 2, (2, 2, 1)),
        ((2, 2, 2), 2, (4,), 2, (1, 4, 1)), ((2, 3, 4, 10), 40, (), None, (2, 12, 1)),
        ((2, 3, 4, 10), 10, (), None, (6, 4, 1)), ((3, 4, 10), 40, (), None, (3, 4, 1)),
        ((2, 4, 10), 10, (3, 8), None, (1, 8, 1)), ((2, 3, 4, 5, 10), 10, (20,), 6, (6, 20, 1)),
        ((6, 2, 5, 10), 10, (10,), 6, (6, 10, 1)), ((2, 3, 5, 10), 10, (5,), 6, (6, 5, 1)),
    ],
)  # fmt: skip
def test_of_several_dimensions_those_are_heads_whose_number_the_modules_have(
    lead: tuple[int, ...], rows: int, counts: tuple[int, ...], batch: int | None, split: tuple[int, int, int]
) -> None:
    found = layout_of(lead, rows, counts, batch)
    assert (found.outer, found.heads, found.inner) == split
    assert (found.queries, found.assumed) == (lead[-1], False)


class OneKeyHead(torch.nn.Module):
    """Attention of four heads over one key head, whose scores are one product of two matrices."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads = 4
        self.q, self.k = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 8)

    def forward(self, x: Any) -> Any:
        q, k = self.q(x).view(-1, 4, 8).transpose(0, 1).reshape(-1, 8), self.k(x)
        weights = torch.softmax((q @ k.T * 8**-0.5).view(4, len(x), len(x)), -1)
        return (weights @ k).transpose(0, 1).reshape(x.shape)


def test_heads_that_share_a_key_head_in_one_product_are_recorded(tmp_path: Path) -> None:
    layers, held = recorded(OneKeyHead(), tmp_path, torch.randn(10, WIDTH))
    assert (layers[0]["heads"], layers[0]["kv_heads"]) == (4, 1)
    assert torch.allclose(replay(layers[0], held)[0].float(), held["layers.0.attn.lse"], atol=1e-5)


@pytest.mark.parametrize("module", [OneHead(), SeveralOfOneHead()])
def test_the_batch_of_a_module_without_heads_is_not_its_heads(module: Any, tmp_path: Path) -> None:
    layers, held = recorded(module, tmp_path, torch.randn(2, 10, WIDTH))
    for layer in layers:
        assert list(held[f"layers.{layer['index']}.attn.q"].shape) == [2, 1, 10, WIDTH]
        assert "taken for" not in layer["notes"]


@pytest.mark.parametrize("order", ["stacked", "windows first", "heads first"])
@pytest.mark.parametrize("batch", [1, 3])
def test_windows_are_texts_and_not_heads(order: str, batch: int, tmp_path: Path) -> None:
    layers, held = recorded(Windows(order), tmp_path, torch.randn(batch, 8, 12, WIDTH), batch=99, values=True)
    assert list(held["layers.0.attn.q"].shape) == [6 * batch, 4, 16, 8]
    lse, o = replay(layers[0], held)
    assert o is not None
    assert torch.allclose(lse.float(), held["layers.0.attn.lse"], atol=1e-5)
    assert torch.allclose(o.float(), held["layers.0.attn.o"], atol=1e-5)


class Packed(torch.nn.Module):
    """Attention of tokens without a batch, over groups of key heads, with a sink, as in gpt-oss's own model."""

    def __init__(self) -> None:
        super().__init__()
        self.num_attention_heads, self.sinks = 4, nn.Parameter(torch.tensor([0.0, 1.0, 2.0, 3.0]))
        self.q, self.k = nn.Linear(WIDTH, 4 * 8), nn.Linear(WIDTH, 2 * 8)

    def forward(self, x: Any) -> Any:
        q, k = self.q(x).view(-1, 2, 2, 8), self.k(x).view(-1, 2, 1, 8).expand(-1, -1, 2, -1)
        scores = torch.einsum("qhmd,khmd->hmqk", q, k) * 8**-0.5
        scores = scores + scores.new_full(scores.shape[-2:], -torch.inf).triu(1)
        sinks = self.sinks.view(2, 2, 1, 1).expand(-1, -1, len(x), 1)
        weights = torch.softmax(torch.cat((scores, sinks), -1), -1)[..., :-1]
        return torch.einsum("hmqk,khmd->qhmd", weights, k).flatten(1)


@pytest.mark.parametrize("tokens", [1, 2, 4, 9])  # also as many as there are heads
def test_groups_of_key_heads_are_not_taken_for_texts(tokens: int, tmp_path: Path) -> None:
    layers, held = recorded(nn.Sequential(Packed()), tmp_path, torch.randn(tokens, WIDTH), values=True)
    assert (layers[0]["heads"], layers[0]["kv_heads"]) == (4, 2)
    assert held["layers.0.attn.q"].shape == (1, 4, tokens, 8)
    assert held["layers.0.attn.sinks"].tolist() == [0, 1, 2, 3]
    assert "layers.0.attn.bias" not in held
    lse, o = replay(layers[0], held)
    assert o is not None
    assert torch.allclose(lse.float(), held["layers.0.attn.lse"], atol=1e-5)
    assert torch.allclose(o.float(), held["layers.0.attn.o"], atol=1e-5)
    heads = attn_tui.diagnose(str(tmp_path / "a.safetensors"), expect="1/sqrt(d)").heads
    assert {head.verdict.word for head in heads} == {"healthy"}


def test_a_bias_that_is_what_is_left_of_the_logits_proves_nothing(tmp_path: Path) -> None:
    class Unknown(OneHead):
        def forward(self, x: Any) -> Any:
            scores = self.q(x) @ self.k(x).mT * (1 + torch.arange(10.0)) / WIDTH
            return torch.softmax(scores, -1) @ x

    torch.manual_seed(0)
    module = Unknown()
    with torch.no_grad(), attn_tui.record(module, tmp_path / "a.safetensors", values=True) as recorder:
        module(torch.randn(1, 10, WIDTH))
    assert "multiplier unknown" in recorder.summary
    [layer] = load(tmp_path / "a.safetensors")[1]["layers"]
    assert layer["prescaled"] == [None, 1.0]
    assert "; verified" not in f"; {layer['notes']}"
    [head] = attn_tui.diagnose(str(tmp_path / "a.safetensors"), expect="1/sqrt(d)").heads
    assert head.verdict.word == "undecided"


def test_texts_behind_tokens_are_not_taken_for_heads(tmp_path: Path) -> None:
    layers, _ = recorded(nn.MultiheadAttention(WIDTH, 4), tmp_path, *(torch.randn(4, 2, WIDTH),) * 3)
    assert layers[0]["heads"] == 4


@pytest.mark.parametrize(("keys", "cross"), [(7, True), (10, False)])
def test_queries_of_another_number_than_keys_are_of_another_text(keys: int, cross: bool, tmp_path: Path) -> None:
    class Cross(OneHead):
        def forward(self, x: Any, y: Any = None) -> Any:
            return F.scaled_dot_product_attention(self.q(x), self.k(y), self.v(y))

    names = {"tokens": [f"k{n}" for n in range(keys)], "query_tokens": [f"q{n}" for n in range(10)]}
    layers, _ = recorded(Cross(), tmp_path, torch.randn(1, 10, WIDTH), torch.randn(1, keys, WIDTH), **names)
    assert (layers[0].get("attention") == "cross") == cross
    capture = open_capture(tmp_path / "a.safetensors")
    of_queries, of_keys = capture.tokens_of(capture.layers[0], 0)
    assert of_queries is not None
    assert of_keys is not None
    assert (of_queries[3], of_keys[3]) == ("q3" if cross else "k3", "k3")


@pytest.mark.parametrize("fused", [False, True])
def test_attention_over_the_heads_of_each_token_is_noted(fused: bool, tmp_path: Path) -> None:
    class OverHeads(Windows):
        def forward(self, x: Any) -> Any:
            q, k, v = self.qkv(x).unflatten(-1, (3, self.num_heads, -1)).unbind(2)
            return F.scaled_dot_product_attention(q, k, v) if fused else torch.softmax(q @ k.mT * 8**-0.5, -1) @ v

    recorded(OverHeads(""), tmp_path, torch.randn(2, 10, WIDTH))
    assert any("heads of one token" in note for note in open_capture(tmp_path / "a.safetensors").notes)


class SomeAttention(torch.nn.Module):
    """An attention that no operation shows, such as a kernel that the program compiled itself."""

    def forward(self, x: Any) -> Any:
        return torch.from_numpy(x.numpy().copy())


def test_an_attention_in_which_nothing_was_seen_is_named(tmp_path: Path) -> None:
    model = nn.Sequential(OneHead(), SomeAttention())
    with (
        torch.no_grad(),
        pytest.warns(RuntimeWarning, match=r"inside \(1\)"),
        attn_tui.record(model, tmp_path / "a.safetensors") as recorder,
    ):
        model(torch.randn(2, 10, WIDTH))
    assert recorder.files
    assert not recorder.complete
    assert "asked for" not in recorder.summary


class Gates(torch.nn.Module):
    """The gates of a recurrence: products with blocks of parameters, and a decay (RG-LRU)."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 8, 8))

    def forward(self, x: Any) -> Any:
        gates = torch.bmm(x.unflatten(-1, (4, 8)).flatten(0, 1).transpose(0, 1), self.weight).sigmoid()
        return torch.exp(-8 * gates) * 2


def test_the_gates_of_a_recurrence_are_no_attention(tmp_path: Path) -> None:
    model = nn.Sequential(Gates())
    with torch.no_grad(), pytest.warns(RuntimeWarning) as warned, attn_tui.record(model, tmp_path / "a.safetensors"):
        model(torch.randn(2, 10, WIDTH))
    assert "no softmax of a product among them" in str(warned[0].message)
