"""Recording needs little memory beside copies of what it keeps, whatever the lengths of texts."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import attn_tui
import pytest
from pytorch import torch
from replay import load, replay
from written import Written

recorded_layers: Any = importlib.import_module("attn_tui.core.recorder.layers.layer")
recorded_flex: Any = importlib.import_module("attn_tui.core.recorder.trace.flex")
recorded_modes: Any = importlib.import_module("attn_tui.core.recorder.trace.mode")
recorded_session: Any = importlib.import_module("attn_tui.core.recorder.session")
dispatch: Any = importlib.import_module("torch.utils._python_dispatch")
TorchDispatchMode: Any = dispatch.TorchDispatchMode
F: Any = torch.nn.functional
pytestmark = pytest.mark.filterwarnings("default")
BATCH, HEADS, TOKENS, WIDTH = 1, 2, 1024, 8
SCORES = BATCH * HEADS * TOKENS * TOKENS
AT_ONCE = SCORES // 64


class Largest(TorchDispatchMode):
    """Remembers the largest tensor that any operation made, those of the recorder included."""

    supports_higher_order_operators = True
    elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out: Any = func(*args, **(kwargs or {}))
        if getattr(func, "_name", "") == "flex_attention":  # unfused, it makes all scores of these queries and keys
            self.elements = max(self.elements, args[0].shape[:3].numel() * args[1].shape[2])
        leaves: Any = torch.utils._pytree.tree_leaves
        for each in leaves(out):
            if isinstance(each, torch.Tensor) and 0 not in each.stride():
                self.elements = max(self.elements, each.numel())
        return out


def sdpa(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def masked(q: Any, k: Any, v: Any) -> Any:
    seen = torch.arange(TOKENS) < TOKENS - 100
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen.expand(TOKENS, TOKENS))


def biased(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    return s + (j - i) * 0.1 * (h + 1)


def not_later(b: Any, h: Any, i: Any, j: Any) -> Any:
    return i >= j


FLEX: Any = importlib.import_module("torch.nn.attention.flex_attention")
BLOCK = FLEX.create_block_mask(not_later, None, None, TOKENS, TOKENS, device="cpu")


def flex(q: Any, k: Any, v: Any) -> Any:
    with torch.compiler.set_stance("force_eager"):
        return FLEX.flex_attention(q, k, v, score_mod=biased, block_mask=BLOCK)


def vectors() -> list[Any]:
    torch.manual_seed(0)
    return [torch.randn(BATCH, HEADS, TOKENS, WIDTH) for _ in range(3)]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_layers, "AT_ONCE", AT_ONCE)
    monkeypatch.setattr(recorded_flex, "AT_ONCE", AT_ONCE)


@pytest.fixture
def visible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a mode of the program see what the recorder computes, which is hidden from it otherwise."""

    def seen(call: Callable[[], object]) -> None:
        with torch.no_grad():
            call()

    for module in (recorded_modes, recorded_session):
        monkeypatch.setattr(module, "unseen", seen)
    monkeypatch.setattr(recorded_session, "put", dispatch._push_mode)


@pytest.mark.usefixtures("small_blocks", "visible")
@pytest.mark.parametrize("function", [sdpa, flex])
def test_recording_makes_no_tensor_of_all_scores(function: Any, tmp_path: Path) -> None:
    """No more than a block at a time, or a bias of the kept rows, which is recorded."""
    largest: Any = Largest()
    module = Written(function)
    with torch.no_grad(), largest, attn_tui.record(module, tmp_path / "a.safetensors", rows=64) as found:
        module(*vectors())
    assert found.complete, found.summary
    kept = BATCH * HEADS * 64 * TOKENS
    assert 0 < largest.elements <= max(AT_ONCE, kept) < SCORES // 8


def eager(q: Any, k: Any, v: Any) -> Any:
    hidden = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)
    return torch.softmax((q @ k.mT * 0.3).masked_fill(hidden, -torch.inf) + 0.1 * torch.arange(TOKENS), -1) @ v


def by_rows(q: Any, k: Any, v: Any) -> Any:
    return torch.softmax(q @ k.mT * torch.linspace(0.1, 0.4, TOKENS)[:, None], -1) @ v


@pytest.mark.parametrize("function", [sdpa, masked, flex, eager, by_rows])
def test_what_is_recorded_does_not_depend_on_blocks(
    function: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files: list[tuple[Any, Any]] = []
    for at_once in (1 << 30, AT_ONCE):
        monkeypatch.setattr(recorded_layers, "AT_ONCE", at_once)
        module = Written(function)
        with torch.no_grad(), attn_tui.record(module, tmp_path / "a.safetensors", values=True, rows=100):
            module(*vectors())
        files.append(load(tmp_path / "a.safetensors"))
    (one, of_one), (two, of_two) = files
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        assert tensor.shape == two[name].shape
        if "bias" not in name or function is not by_rows:
            assert torch.allclose(tensor.double(), two[name].double(), atol=2e-6)
    first, second = (metadata["layers"][0] for metadata in (of_one, of_two))
    keys = ("causal", "window", "softcap", *(() if function is by_rows else ("scale", "prescaled")))
    assert [first.get(key) for key in keys] == pytest.approx([second.get(key) for key in keys])
    lse, _ = replay(second, two)
    assert torch.allclose(lse.float(), two["layers.0.attn.lse"], atol=1e-5)


def test_flex_attention_in_blocks_returns_what_it_does_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    expected = flex(*vectors())
    monkeypatch.setattr(recorded_flex, "AT_ONCE", AT_ONCE)
    module = Written(flex)
    with torch.no_grad(), attn_tui.record(module, tmp_path / "a.safetensors"):
        assert torch.allclose(module(*vectors()), expected, atol=1e-6)


class LateEvent:
    """Completes the copies that were begun before it when it is waited for, and notes who waits."""

    begun: ClassVar[list[tuple[Any, Any]]] = []
    waiting: ClassVar[set[str]] = set()

    def __init__(self) -> None:
        self.copies = [*self.begun]

    def synchronize(self) -> None:
        self.waiting.add(threading.current_thread().name)
        for copy, tensor in self.copies:
            copy.copy_(tensor)

    @classmethod
    def copy(cls, tensor: Any) -> Any:
        cls.begun.append((torch.full_like(tensor, torch.nan), tensor.clone()))
        return cls.begun[-1][0]


@pytest.mark.parametrize("function", [sdpa, eager])
def test_the_thread_that_writes_waits_for_copies_and_the_step_does_not(
    function: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU, which completes copies some time after they were begun."""
    tensors, module = vectors(), Written(function)

    def event(_: Any) -> LateEvent:
        return LateEvent()

    for folder in ("usual", "late"):
        if folder == "late":
            for where in ("layer", "eager"):
                monkeypatch.setattr(f"attn_tui.core.recorder.layers.{where}.kept", LateEvent.copy)
                monkeypatch.setattr(f"attn_tui.core.recorder.layers.{where}.copied", event)
        with torch.no_grad(), attn_tui.record(module, tmp_path / folder, every=1, values=True) as found:
            module(*tensors)
        assert found.complete, found.summary
    files = [load(tmp_path / folder / "step-000000.safetensors")[0] for folder in ("usual", "late")]
    assert all(torch.equal(files[1][name], tensor) for name, tensor in files[0].items())
    assert LateEvent.waiting == {"attn-tui writer"}


def test_a_layer_for_which_a_gpu_has_no_memory_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = {"is_available": True, "is_initialized": True, "is_current_stream_capturing": False}
    memory = {"memory_reserved": 9, "memory_allocated": 9, "mem_get_info": (100 << 20, 1 << 40)}
    for name, value in {**gpu, **memory}.items():
        monkeypatch.setattr(torch.cuda, name, lambda value=value: value)
    module = Written(sdpa)
    with pytest.warns(RuntimeWarning, match="memory are free"), attn_tui.record(module, tmp_path / "a.safetensors"):
        module(*vectors())
    assert not (tmp_path / "a.safetensors").exists()
