"""Situations in which a program's attention is hard to see, or in which a recorder could change the program."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attn_tui
import pytest
from pytorch import torch
from replay import load
from running import plain

F: Any = torch.nn.functional
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

X = torch.randn(2, 20, 32, generator=torch.Generator().manual_seed(2))


class Block(torch.nn.Module):
    def __init__(self, d: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.qkv, self.out, self.num_heads = torch.nn.Linear(d, 3 * d), torch.nn.Linear(d, d), heads

    def forward(self, x: Any) -> Any:
        q, k, v = (t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(o.transpose(1, 2).flatten(2))


class Failing(torch.nn.Module):
    """Raises an error on request."""

    error: type[BaseException] | None = None

    def forward(self, x: Any) -> Any:
        if self.error is not None:
            raise self.error("stop")
        return x


def model_of(*modules: torch.nn.Module) -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(*(modules or (Block(), Block())))


def active_modes() -> int:
    dispatch: Any = torch.utils._python_dispatch
    return len(dispatch._get_current_dispatch_mode_stack())


def names(path: Path) -> list[str]:
    """The names of the layers in a file."""
    return [layer["name"] for layer in load(path)[1]["layers"]]


def compiled(how: str, model: Any, **options: Any) -> Callable[[Any], Any]:
    if how == "model":
        return torch.compile(model, **options)
    if how == "in place":
        model.compile(**options)
        return model

    def step(x: Any) -> Any:
        return model(x).square().mean()

    return torch.compile(step, **options)


@pytest.mark.parametrize("how", ["model", "in place", "function"])
@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("warm", [False, True])
def test_compiled_code_runs_eagerly_for_one_step_and_compiled_again(
    how: str, fullgraph: bool, warm: bool, tmp_path: Path
) -> None:
    testing: Any = pytest.importorskip("torch._dynamo.testing")
    torch._dynamo.reset()
    counter = testing.CompileCounterWithBackend("eager")
    model = model_of()
    run = compiled(how, model, backend=counter, fullgraph=fullgraph)
    with torch.no_grad():
        if warm:
            run(X)
        with attn_tui.record(model, tmp_path / "a.safetensors") as recorder:
            first = run(X)
            run(X)  # the call that ends the step
        assert recorder.complete
        assert counter.frame_count == int(warm)
        assert torch.equal(run(X), first)
        assert counter.frame_count == 1
    assert names(tmp_path / "a.safetensors") == ["0", "1"]


@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler")
def test_a_model_compiled_by_inductor_is_recorded_and_runs_compiled_again(tmp_path: Path) -> None:
    torch._dynamo.reset()
    model = model_of()
    run = torch.compile(model)
    with torch.no_grad(), warnings.catch_warnings():
        expected = run(X)
        warnings.simplefilter("error")  # PyTorch warns of global hooks, which the program did not make
        filters = list(warnings.filters)
        with attn_tui.record(model, tmp_path / "a.safetensors") as recorder:
            eager = run(X)
            run(X)  # the call that ends the step
        assert recorder.complete
        assert torch.allclose(eager, expected, atol=1e-5)
        assert torch.equal(run(X), expected)
        assert list(warnings.filters) == filters
    assert names(tmp_path / "a.safetensors") == ["0", "1"]


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_a_generation_is_one_growing_rectangle(implementation: str, tmp_path: Path) -> None:
    transformers: Any = pytest.importorskip("transformers")
    model = tiny_llama(transformers, implementation)
    ids = torch.randint(3, 99, (2, 20), generator=torch.Generator().manual_seed(1))
    options = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0}
    expected = model.generate(ids, **options)
    with attn_tui.record(model, tmp_path / "a.safetensors") as recorder:
        found = model.generate(ids, **options)
    assert recorder.complete
    assert torch.equal(expected, found)
    held, metadata = load(tmp_path / "a.safetensors")
    assert held["layers.0.attn.q"].shape == (2, 4, 27, 16)
    assert held["layers.0.attn.k"].shape == (2, 2, 27, 16)
    assert (metadata["layers"][0]["causal"], metadata["layers"][0]["alignment"]) == (True, "bottom-right")
    assert "layers.0.attn.mask" not in held


def tiny_llama(transformers: Any, implementation: str) -> Any:
    config = transformers.LlamaConfig(
        hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=99,
    )  # fmt: skip
    config._attn_implementation = implementation
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(config).eval()


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing_records_each_layer_once_and_keeps_gradients(reentrant: bool, tmp_path: Path) -> None:
    checkpoint: Any = pytest.importorskip("torch.utils.checkpoint").checkpoint
    model = model_of()

    class Checkpointed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, x: Any) -> Any:
            for block in self.inner:
                x = checkpoint(block, x, use_reentrant=reentrant)
            return x

    whole = Checkpointed()
    x = X.clone().requires_grad_()

    def gradients() -> list[Any]:
        model.zero_grad()
        whole(x).square().mean().backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    expected = gradients()
    with attn_tui.record(whole, tmp_path / "a.safetensors") as recorder:
        found = gradients()
    assert recorder.complete, recorder.summary
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
    assert names(tmp_path / "a.safetensors") == ["inner.0", "inner.1"]


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("guard", [torch.no_grad, torch.inference_mode])
def test_the_fast_path_of_multihead_attention(weights: bool, guard: Any, tmp_path: Path) -> None:
    model: Any = torch.nn.MultiheadAttention(32, 4, batch_first=True).eval()
    with guard():
        expected = model(X, X, X, need_weights=weights)[0]
        with attn_tui.record(model, tmp_path / "a.safetensors") as recorder:
            found = model(X, X, X, need_weights=weights)[0]
    assert recorder.complete
    assert torch.allclose(expected, found, atol=1e-6)
    assert torch.backends.mha.get_fastpath_enabled()
    layer = load(tmp_path / "a.safetensors")[1]["layers"][0]
    factors = layer.get("prescaled", [1, 1])
    assert layer["scale"] * factors[0] * factors[1] == pytest.approx(8**-0.5)
    assert layer["heads"] == 4


def test_an_encoder_with_padding_and_nested_tensors(tmp_path: Path) -> None:
    nn: Any = torch.nn
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2).eval()
    padding = torch.zeros(2, 20, dtype=torch.bool)
    padding[1, 15:] = True
    with torch.no_grad():
        expected = model(X, src_key_padding_mask=padding)
        with attn_tui.record(model, tmp_path / "a.safetensors"):
            found = model(X, src_key_padding_mask=padding)
    assert torch.allclose(expected[0], found[0], atol=1e-5)
    held, _ = load(tmp_path / "a.safetensors")
    assert torch.equal(held["layers.0.attn.mask"][:, 0, 0], ~padding)


def test_a_pass_that_only_tries_a_model_is_replaced_by_the_first_real_one(tmp_path: Path) -> None:
    """As Keras tries one with ones, twice with other numbers of texts."""
    model, path = model_of(), tmp_path / "a.safetensors"
    with torch.no_grad(), attn_tui.record(model, path) as recorder:
        for texts in (83, 89):
            model(torch.ones(texts, 20, 32))
        assert not path.exists()
        model(X)
        model(X + 1)
    assert recorder.complete, recorder.summary
    assert "2 attention calls seen, 2 recorded" in recorder.summary
    with torch.no_grad(), attn_tui.record(model, tmp_path / "b.safetensors"):
        model(X)
    for name in ("layers.0.attn.q", "layers.1.attn.k"):
        assert torch.equal(load(path)[0][name], load(tmp_path / "b.safetensors")[0][name])


def test_a_model_that_is_only_tried_is_recorded_all_the_same(tmp_path: Path) -> None:
    model = model_of()
    with torch.no_grad(), attn_tui.record(model, tmp_path / "a.safetensors"):
        model(torch.ones(2, 20, 32))
    assert names(tmp_path / "a.safetensors") == ["0", "1"]


class Attention(torch.nn.Module):
    """Attention that makes its parameters when they are asked for, as Keras's layers do."""

    def __init__(self) -> None:
        super().__init__()
        self.block, self.asked = Block(), 0

    def named_parameters(self, *given: Any, **named: Any) -> Any:
        self.asked += 1
        return super().named_parameters(*given, **named)

    def forward(self, x: Any) -> Any:
        return self.block(x) if isinstance(x, torch.Tensor) else x


class KerasTensor:
    """A symbol of Keras."""


def test_symbols_pass_without_a_word_and_parameters_are_not_asked_for(tmp_path: Path) -> None:
    model = Attention()
    with torch.no_grad(), attn_tui.record(model, tmp_path / "a.safetensors") as recorder:
        model(KerasTensor())
        model(X)
    assert recorder.complete, recorder.summary
    assert model.asked == 0
    with torch.no_grad(), attn_tui.record(model, tmp_path / "a.safetensors") as recorder:
        kept = model.block
        model.block = Block().to("meta")
        model(X.to("meta"))
        model.block = kept
        model(X)
    assert recorder.complete, recorder.summary
    assert names(tmp_path / "a.safetensors") == ["block"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_pass_that_ends_by_an_error_is_replaced_by_the_next(error: type[BaseException], tmp_path: Path) -> None:
    """As where a program tries a smaller batch after an error of memory."""
    path, failing = tmp_path / "a.safetensors", Failing()
    model = model_of(Block(), failing, Block())
    with attn_tui.record(model, path) as recorder:
        failing.error = error
        with pytest.raises(error, match="stop"):
            model(X[:, :10])
        assert error is KeyboardInterrupt or names(path) == ["0"]
        failing.error = None
        expected = model(X)
        assert torch.equal(model(X), expected)
    assert active_modes() == 0
    assert recorder.complete
    assert ": 2 attention calls seen, 2 recorded" in recorder.summary
    assert names(path) == ["0", "2"]
    assert load(path)[0]["layers.0.attn.q"].shape[2] == X.shape[1]


def test_a_pass_after_an_error_replaces_its_own_module_and_no_other_of_the_same_names(tmp_path: Path) -> None:
    path, failing = tmp_path / "a.safetensors", Failing()
    first, second, third = model_of(Block()), model_of(Block()), model_of(Block(), failing)
    with attn_tui.record(None, path) as recorder:
        first(X)
        second(X)
        failing.error = ValueError
        with pytest.raises(ValueError, match="stop"):
            third(X[:, :10])
        failing.error = None
        third(X)
    assert ": 3 attention calls seen, 3 recorded" in recorder.summary
    assert recorder.complete
    held, metadata = load(path)
    shapes = [held[f"layers.{place}.attn.q"].shape for place in range(len(metadata["layers"]))]
    assert [shape[2] for shape in shapes] == [X.shape[1]] * 3


class Nested(torch.nn.Module):
    """Attention over texts of different lengths, in one nested tensor."""

    def forward(self, x: Any) -> Any:
        n = torch.nested.nested_tensor([x[0], x[1][:3]])
        n = torch.nn.functional.linear(n, torch.eye(x.shape[-1]))
        return torch.nested.to_padded_tensor(torch.softmax(n @ n.transpose(1, 2), -1) @ n, 0.0)


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.filterwarnings("ignore")
def test_nested_tensors_pass_unseen(given: bool, tmp_path: Path) -> None:
    model = Nested()
    with torch.no_grad():
        expected = model(X)
        with attn_tui.record(model if given else None, tmp_path / "a.safetensors"):
            assert torch.equal(model(X), expected)


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.filterwarnings("ignore")
def test_a_module_is_traced_while_the_recorder_waits(given: bool, tmp_path: Path) -> None:
    model = torch.nn.MultiheadAttention(32, 4, batch_first=True).eval()
    x = torch.randn(2, 7, 32)
    with torch.no_grad():
        expected = model(x, x, x)[0]
        with attn_tui.record(model if given else None, tmp_path / "a.safetensors"):
            traced = torch.jit.trace(model, (x, x, x))
            found = traced(x, x, x)[0]
    torch.testing.assert_close(found, expected)


def test_many_recordings_leave_the_program_as_it_was(tmp_path: Path) -> None:
    """In a process of their own, because a program that has not compiled anything yet has no torch._dynamo."""
    words = [sys.executable, "-c", "import test_situations; test_situations.many_recordings()"]
    done = plain(words, tmp_path, PYTHONPATH=str(Path(__file__).parent))
    assert done.code == 0, done.err


def many_recordings() -> None:
    """Record into the current folder, also passes that fail."""
    assert "torch._dynamo" not in sys.modules
    os.fsync = int  # which takes most of the time
    model, failing = model_of(), model_of(Block(), Failing())
    failing[1].error = ArithmeticError

    def state() -> tuple[object, ...]:
        from torch.nn.modules import module
        from torch.optim import optimizer
        from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

        hooks: list[tuple[str, Any]] = [*module.__dict__.items(), *optimizer.__dict__.items()]
        return (
            [*sys.meta_path],
            [*warnings.filters],
            [(name, len(held)) for name, held in hooks if name.startswith("_global") and hasattr(held, "clear")],
            [
                len(each._forward_hooks) + len(each._forward_pre_hooks)
                for each in (*model.modules(), *failing.modules())
            ],
            len(_get_current_dispatch_mode_stack()),
            torch.backends.mha.get_fastpath_enabled(),
            [thread.name for thread in threading.enumerate()],
        )

    before = state()
    recorders: list[weakref.ref[Any]] = []
    for number in range(60):
        path = Path(f"{number % 3}.safetensors")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with attn_tui.record(model, path if number % 3 else Path("run"), every=None if number % 3 else 1):
                if number % 2:
                    model(X)
            with pytest.raises(ArithmeticError), attn_tui.record(failing, path):
                failing(X)
            recorder = attn_tui.record(None, path)
            model(X)
            recorder.close()
            recorders.append(weakref.ref(recorder))
        del recorder
    gc.collect()
    assert state() == before
    assert not any(each() for each in recorders)


def test_threads_get_their_own_results(tmp_path: Path) -> None:
    model = model_of()
    with torch.no_grad():
        expected = [model(X + i) for i in range(4)]
    found: dict[int, Any] = {}

    def work(i: int) -> None:
        with torch.no_grad():
            found[i] = model(X + i)

    with attn_tui.record(model, tmp_path / "a.safetensors"):
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all(torch.equal(expected[i], found[i]) for i in range(4))
    assert names(tmp_path / "a.safetensors") == ["0", "1"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_number_formats(dtype: Any, tmp_path: Path) -> None:
    model = model_of().to(dtype)
    with torch.no_grad(), attn_tui.record(model, tmp_path / "a.safetensors") as recorder:
        model(X.to(dtype))
    assert recorder.complete
    held, metadata = load(tmp_path / "a.safetensors")
    assert held["layers.0.attn.q"].dtype == dtype
    assert held["layers.0.attn.lse"].dtype == torch.float32
    assert "verified to rounding" in metadata["layers"][0]["notes"]


def test_autocast(tmp_path: Path) -> None:
    model = model_of()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        expected = model(X)
        with attn_tui.record(model, tmp_path / "a.safetensors"):
            assert torch.equal(model(X), expected)
    assert load(tmp_path / "a.safetensors")[0]["layers.0.attn.k"].dtype == torch.bfloat16


def operations(traced: Any) -> list[str]:
    return [node.kind() for node in traced.inlined_graph.nodes()]


def test_tracing_records_nothing_into_the_trace(tmp_path: Path) -> None:
    model = model_of()
    plain = operations(torch.jit.trace(model, (X,)))
    recorder = attn_tui.record(model, tmp_path / "a.safetensors")
    traced = operations(torch.jit.trace(model, (X,)))
    with pytest.warns(RuntimeWarning, match=r"1 pass traced by torch\.jit\.trace"):
        recorder.close()
    assert traced == plain


def test_passes_inside_torch_func_are_named_and_compute_the_same(tmp_path: Path) -> None:
    model = model_of()
    parameters = dict(model.named_parameters())

    def loss(values: Any) -> Any:
        return torch.func.functional_call(model, values, (X,)).square().mean()

    expected = torch.func.grad(loss)(parameters)
    recorder = attn_tui.record(model, tmp_path / "a.safetensors")
    found = torch.func.grad(loss)(parameters)
    with pytest.warns(RuntimeWarning, match=r"inside torch\.func"):
        recorder.close()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_an_export_is_as_without_a_recorder(tmp_path: Path) -> None:
    model = model_of()
    plain = torch.export.export(model, (X,)).graph_module.code
    recorder = attn_tui.record(model, tmp_path / "a.safetensors")
    exported = torch.export.export(model, (X,)).graph_module.code
    expected = model(X)
    recorder.close()
    assert exported == plain
    assert torch.equal(model(X), expected)
    assert names(tmp_path / "a.safetensors") == ["0", "1"]


@pytest.mark.slow
def test_a_scripted_model_is_recorded(tmp_path: Path) -> None:
    model: Any = torch.jit.script(torch.nn.MultiheadAttention(32, 4, batch_first=True))
    with attn_tui.record(model, tmp_path / "a.safetensors") as recorder:
        model(X, X, X)
    assert recorder.complete, recorder.summary


def test_whatever_a_thread_computes_can_be_recorded(tmp_path: Path) -> None:
    traced = torch.jit.trace(model_of(), (X,))
    with attn_tui.record(None, tmp_path / "a.safetensors") as recorder:
        traced(X)
        F.scaled_dot_product_attention(X[:, None], X[:, None], X[:, None])
    assert recorder.complete
    assert len(names(tmp_path / "a.safetensors")) == 3
    assert active_modes() == 0


def test_an_error_of_the_recorder_never_reaches_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of()
    expected = model(X)

    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("of the recorder")

    monkeypatch.setattr("attn_tui.core.recorder.trace.tracer.record_call", broken)
    with pytest.warns(RuntimeWarning, match="of the recorder"), attn_tui.record(model, tmp_path / "a.safetensors"):
        assert torch.equal(model(X), expected)
    assert not (tmp_path / "a.safetensors").exists()


@pytest.mark.parametrize(
    ("size", "every", "rows"), [("9M", 1, 200), ("1M", 1, 50), ("400k", 2, 16), ("150k", 4, 16), ("1k", 8, 1)]
)
def test_too_little_room_takes_rows_then_layers_and_never_everything(
    size: str, every: int, rows: int, tmp_path: Path
) -> None:
    """Of the layers, every second, fourth … one is kept, so that they are of all depths."""
    model = model_of(*(Block(64) for _ in range(8)))
    x = torch.randn(2, 200, 64)
    with attn_tui.record(model, tmp_path / "a.safetensors", max_bytes=size):
        model(x)
    held, metadata = load(tmp_path / "a.safetensors")
    assert names(tmp_path / "a.safetensors") == [str(layer) for layer in range(0, 8, every)]
    assert held["layers.0.attn.q"].shape[2] <= rows
    assert held["layers.0.attn.k"].shape[2] == 200
    assert ("to stay below" in metadata.get("notes", "")) == (size != "9M")
