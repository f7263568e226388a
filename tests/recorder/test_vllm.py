"""vLLM's operator is recorded by its context: prompts, decoded tokens, several texts. A module stands in for vLLM.

It has what the recorder reads: an operator, a context with the metadata of the batch, and a layer with its `impl`.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import attn_tui
import pytest
from pytorch import torch
from replay import load

HEADS, KV_HEADS, WIDTH, LAYERS = 4, 2, 16, 2
MODULE = "vllm.model_executor.layers.attention.attention"


class Context:
    """The forward context: metadata of the batch, layers by name, and the cache of each text."""

    def __init__(self) -> None:
        self.metadata: Any = None
        self.layers: dict[str, Any] = {}
        self.cache: dict[tuple[str, int], tuple[Any, Any]] = {}


CONTEXT = Context()


@torch.library.custom_op("vllm::unified_attention_with_output", mutates_args=("output",))
def unified_attention_with_output(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, output: torch.Tensor, layer_name: str
) -> None:
    metadata, layer = CONTEXT.metadata, CONTEXT.layers[layer_name]
    if metadata is None:
        return
    starts = metadata.query_start_loc.tolist()
    for text, (first, last) in enumerate(pairwise(starts)):
        place = layer_name, int(metadata.block_table[text, 0])
        k, v = key[first:last], value[first:last]
        if last - first < int(metadata.seq_lens[text]):
            k, v = (torch.cat(both) for both in zip(CONTEXT.cache[place], (k, v), strict=True))
        CONTEXT.cache[place] = k, v
        output[first:last] = attention(query[first:last], k, v, layer.does)


@torch.library.custom_op("vllm::unified_mla_attention_with_output", mutates_args=("output",))
def unified_mla_attention_with_output(
    q: torch.Tensor, kv_c_normed: torch.Tensor, k_pe: torch.Tensor, output: torch.Tensor, layer_name: str
) -> None:
    output.copy_(q)


def attention(q: Any, k: Any, v: Any, does: dict[str, Any]) -> Any:
    """One text, [tokens, heads, d], whose last query sees all keys."""
    q, k, v = (each.double().transpose(0, 1) for each in (q, k, v))
    k, v = (each.repeat_interleave(HEADS // KV_HEADS, 0) for each in (k, v))
    z = does["scale"] * (q @ k.mT)
    if cap := does.get("softcap"):
        z = cap * torch.tanh(z / cap)
    distance = torch.arange(k.shape[1] - q.shape[1], k.shape[1])[:, None] - torch.arange(k.shape[1])
    if (slopes := does.get("slopes")) is not None:
        z = z - torch.tensor(slopes)[:, None, None] * distance
    z = z.masked_fill((distance < 0) | (distance >= does.get("window", 1 << 30)), -torch.inf)
    none = torch.full((HEADS, z.shape[1], 1), -torch.inf, dtype=z.dtype)
    if (sinks := does.get("sinks")) is not None:
        none[:] = torch.tensor(sinks)[:, None, None]
    return (torch.cat((z, none), -1).softmax(-1)[..., :-1] @ v).transpose(0, 1).float()


class Attention(torch.nn.Module):
    """A layer as vLLM has it, with an implementation that says one thing and does another if they differ."""

    def __init__(self, name: str, says: dict[str, Any], does: dict[str, Any]) -> None:
        super().__init__()
        self.layer_name, self.does = name, does
        self.impl = types.SimpleNamespace(**says)
        self.q, self.k, self.v = (
            torch.nn.Linear(32, heads * WIDTH, bias=False) for heads in (HEADS, KV_HEADS, KV_HEADS)
        )

    def forward(self, x: Any) -> Any:
        q, k, v = (side(3 * x).unflatten(-1, (-1, WIDTH)) for side in (self.q, self.k, self.v))
        output = torch.empty_like(q)
        torch.ops.vllm.unified_attention_with_output(q, k, v, output, self.layer_name)
        return x + output.flatten(1)[:, :32]


class Model(torch.nn.Module):
    """Layers, and steps of an engine: each has the new tokens of some texts, by the first block of their cache."""

    def __init__(self, says: dict[str, Any] | None = None, does: dict[str, Any] | None = None) -> None:
        super().__init__()
        torch.manual_seed(0)
        said, done = {"scale": 0.25, **(says or {})}, {"scale": 0.25, **(does or {})}
        names = [f"model.layers.{index}.self_attn.attn" for index in range(LAYERS)]
        self.layers = torch.nn.ModuleList([Attention(name, said, done) for name in names])
        CONTEXT.layers = {each.layer_name: each for each in self.layers}
        CONTEXT.cache = {}
        self.lengths: dict[int, int] = {}

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x

    def step(self, **new: int) -> Any:
        """Read this many new tokens of each text."""
        texts = {int(name.removeprefix("text")): count for name, count in new.items()}
        starts = torch.tensor([0, *texts.values()]).cumsum(0)
        for block, count in texts.items():
            self.lengths[block] = self.lengths.get(block, 0) + count
        CONTEXT.metadata = types.SimpleNamespace(
            query_start_loc=starts.int(),
            seq_lens=torch.tensor([self.lengths[block] for block in texts]),
            block_table=torch.tensor([[block, 90] for block in texts]),
            causal=True,
        )
        with torch.no_grad():
            return self(torch.randn(int(starts[-1]) + 3, 32))  # the batch is padded, as for a CUDA graph


@pytest.fixture(autouse=True)
def vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = types.ModuleType(MODULE)

    def get_attention_context(layer_name: str) -> tuple[Any, ...]:
        return CONTEXT.metadata, CONTEXT.layers[layer_name], torch.tensor([]), None

    module.get_attention_context = get_attention_context
    monkeypatch.setitem(sys.modules, MODULE, module)


def verdicts(path: Path) -> set[tuple[str, str | None]]:
    return {(each.verdict.word, each.verdict.cause) for each in attn_tui.diagnose(path, expect="1/sqrt(d)").heads}


FEATURES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "soft-cap": ({"logits_soft_cap": 5.0}, {"softcap": 5.0}),
    "window": ({"sliding_window": 4}, {"window": 4}),
    "window of flash-attention": ({"sliding_window": (3, 0)}, {"window": 4}),
    "sinks": ({"sinks": torch.tensor([0.5, 1.0, 2.0, -1.0])}, {"sinks": [0.5, 1.0, 2.0, -1.0]}),
    "slopes": ({"alibi_slopes": [0.5, 0.25, 0.1, 0.05]}, {"slopes": [0.5, 0.25, 0.1, 0.05]}),
}


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("texts", [("text7",), ("text7", "text3", "text5")], ids=["one text", "several"])
def test_prompts_and_decoded_tokens_are_recorded(feature: str, texts: Sequence[str], tmp_path: Path) -> None:
    model = Model(*FEATURES[feature])
    prompts = dict(zip(texts, (12, 5, 9), strict=False))
    with attn_tui.record(model, tmp_path / "a.safetensors", values=True, batch=3) as recorder:
        model.step(**prompts)
        for _ in range(4):
            model.step(**dict.fromkeys(reversed(texts), 1))  # in another order
    assert recorder.complete, recorder.summary
    held, metadata = load(tmp_path / "a.safetensors")
    assert [layer["name"] for layer in metadata["layers"]] == [each.layer_name for each in CONTEXT.layers.values()]
    for index, name in enumerate(CONTEXT.layers):
        for text, block in enumerate(sorted(int(each.removeprefix("text")) for each in texts)):
            keys, tokens = CONTEXT.cache[name, block][0], model.lengths[block]
            found = held[f"layers.{index}.attn.k"][text]
            assert found.shape[1] == 16
            assert torch.equal(found[:, -tokens:], keys.transpose(0, 1))
    assert verdicts(tmp_path / "a.safetensors") == {("healthy", None)}


def test_a_kernel_that_does_not_do_what_it_says_is_named(tmp_path: Path) -> None:
    model = Model({}, {"scale": 1 / 32})
    with attn_tui.record(model, tmp_path / "a.safetensors", values=True):
        model.step(text1=12)
    assert {verdict for verdict, _ in verdicts(tmp_path / "a.safetensors")} == {"cause"}


def test_texts_beyond_those_that_are_kept_are_said(tmp_path: Path) -> None:
    model = Model()
    with attn_tui.record(model, tmp_path / "a.safetensors", values=True, batch=2):
        model.step(text1=12, text2=7, text3=9)
    _, metadata = load(tmp_path / "a.safetensors")
    assert "only 2 of 3 texts are kept" in metadata["layers"][0]["notes"]
    assert verdicts(tmp_path / "a.safetensors") == {("healthy", None)}


def missed(model: Model, path: Path, **new: int) -> str:
    with pytest.warns(RuntimeWarning), attn_tui.record(model, path / "a.safetensors") as recorder:
        model.step(**new)
    assert not recorder.complete
    return recorder.summary


def test_a_cached_prefix_is_said(tmp_path: Path) -> None:
    model = Model()
    model.step(text1=12)
    assert "the first keys of its texts were not seen" in missed(model, tmp_path, text1=3)


@pytest.mark.parametrize(
    ("place", "name", "value", "why"),
    [
        ("impl", "attn_type", "encoder_decoder", "cross-attention"),
        ("layer", "kv_cache_dtype", "fp8", "its cache is of fp8"),
        ("layer", "attention_chunk_size", 8, "within chunks"),
        ("impl", "use_alibi_sqrt", True, "square root"),
    ],
)
def test_what_is_not_understood_is_said(place: str, name: str, value: Any, why: str, tmp_path: Path) -> None:
    model = Model()
    for layer in model.layers:
        setattr(layer.impl if place == "impl" else layer, name, value)
    assert why in missed(model, tmp_path, text1=12)


def test_a_run_without_texts_is_not_a_call(tmp_path: Path) -> None:
    model = Model()
    with attn_tui.record(model, tmp_path / "a.safetensors", values=True) as recorder:
        CONTEXT.metadata = None
        model(torch.randn(4, 32))
        model.step(text1=12)
    assert recorder.complete, recorder.summary
    assert verdicts(tmp_path / "a.safetensors") == {("healthy", None)}


def test_latent_attention_is_named(tmp_path: Path) -> None:
    class Latent(Model):
        def forward(self, x: Any) -> Any:
            name = next(iter(CONTEXT.layers))
            torch.ops.vllm.unified_mla_attention_with_output(x, x, x, torch.empty_like(x), name)
            return x

    said = missed(Latent(), tmp_path, text1=12)
    assert "vllm::unified_mla_attention_with_output: latent attention (MLA)" in said
