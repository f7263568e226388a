"""What reads, traces or counts a model does so as without a recorder: before a pass, inside one, between steps."""

from __future__ import annotations

import copy
import inspect
import signal
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import attn_tui
import pytest
from pytorch import torch
from replay import load

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

F: Any = torch.nn.functional
X = torch.randn(1, 12, 64, generator=torch.Generator().manual_seed(2))
LIMIT = sys.getrecursionlimit()


class Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.qkv = torch.nn.Linear(64, 192)

    def forward(self, x: Any) -> Any:
        q, k, v = self.qkv(x).unflatten(-1, (3, 4, 16)).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v)


class Busy(Attention):
    """Does something to another model in its first pass."""

    task: Callable[[Any], object] | None = None
    found: object = None

    def forward(self, x: Any) -> Any:
        if self.task is not None:
            task, self.task = self.task, None
            self.found = task(Attention())
        return super().forward(x)


def nodes(traced: Any) -> list[str]:
    return [f"{node.op} {node.target}" for node in traced.graph.nodes]


def export(model: Any, strict: bool) -> object:
    return nodes(torch.export.export(model, (X,), strict=strict))


def ahead_of_time(model: Any) -> object:
    return _ahead_of_time(torch.compile(model, fullgraph=True, backend="eager").forward)


def ahead_of_time_function(model: Any) -> object:
    return _ahead_of_time(torch.compile(model.forward, fullgraph=True, backend="eager"))


def _ahead_of_time(compiled: Any) -> object:
    if not hasattr(compiled, "aot_compile"):
        pytest.skip("PyTorch compiles nothing ahead of time before 2.9")
    return compiled.aot_compile(((X,), {})) is not None


def old_export(model: Any) -> object:
    return nodes(torch._dynamo.export(model)(X)[0])


def explanation(model: Any) -> object:
    return torch._dynamo.explain(model)(X).graph_count


def recipe(model: Any) -> object:
    tracing: Any = import_module("torch.fx.experimental.proxy_tensor")
    # Under any mode, PyTorch 2.6 detaches once more.
    return [node for node in nodes(tracing.make_fx(model)(X)) if "detach" not in node]


def fake(model: Any) -> object:
    """Also views outside of the mode, which copies of the tensor are made with."""
    tensors: Any = import_module("torch._subclasses.fake_tensor")
    with tensors.FakeTensorMode(allow_non_fake_inputs=True) as mode:
        whole, part = mode.from_tensor(X), mode.from_tensor(X[:, 1:])
        shape = model(whole).shape
    return shape, (part + 1).as_strided((2, 2), (1, 1)).shape


def meta(model: Any) -> object:
    return model.to("meta")(X.to("meta")).shape


def flops(model: Any) -> object:
    counting: Any = import_module("torch.utils.flop_counter")
    with counting.FlopCounterMode(display=False) as counter:
        model(X)
    return counter.get_total_flops()


def calls(model: Any) -> object:
    """The functions of PyTorch that are called."""

    class Calls(torch.overrides.TorchFunctionMode):
        seen: list[str]

        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.seen.append(function.__name__)
            return function(*args, **kwargs or {})

    mode = Calls()
    mode.seen = []
    with mode:
        model(X)
    return [name for name in mode.seen if name != "__get__"]  # of attributes, such as the device


TASKS: tuple[Callable[[Any], object], ...] = (
    lambda model: export(model, True),
    lambda model: export(model, False),
    ahead_of_time,
    ahead_of_time_function,
    old_export,
    explanation,
    recipe,
    fake,
    meta,
    flops,
    calls,
)
IDS = ["strict", "export", *(task.__name__ for task in TASKS[2:])]


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


@pytest.mark.parametrize("task", TASKS, ids=IDS)
def test_a_model_is_read_as_without_a_recorder(task: Callable[[Any], object], tmp_path: Path) -> None:
    expected = task(Attention())
    busy, model, path = Busy(), Attention(), tmp_path / "a.safetensors"
    output = model(X)
    with attn_tui.record(model, path) as recorder:
        assert task(Attention()) == expected, "before the first pass"
        busy.task = task
        assert torch.equal(model(X), output)
    assert recorder.complete, recorder.summary
    with attn_tui.record(busy, path) as recorder:
        assert torch.equal(busy(X), output)
    assert busy.found == expected, "inside a pass"
    assert recorder.complete, recorder.summary
    assert "Busy" in {layer["name"] for layer in load(path)[1]["layers"]}  # the task may call its model, too
    with attn_tui.record(model, tmp_path / "run", every=3) as recorder:
        for _ in range(2):
            model(X)
        assert task(model if task is not meta else Attention()) == expected, "between steps"
        for _ in range(2):
            model(X)
    assert Path(recorder.files[0]).name == "step-000000.safetensors"
    assert torch.equal(model(X), output)


class Subclass(torch.nn.Parameter):
    """A parameter of a class of the program's own, as libraries for quantisation have them."""


def data_of_a_subclass() -> object:
    return Subclass(torch.ones(2)).data.tolist()


def lazy() -> object:
    return torch.nn.Sequential(torch.nn.LazyLinear(4))(torch.ones(2, 3)).shape


def stance() -> object:
    """A stance that the program sets, and a function that it then compiles."""
    with torch.compiler.set_stance("default"):
        compiled: Any = torch.compile(softmax, fullgraph=True, backend="eager")
        return compiled(X).tolist()


def softmax(x: Any) -> Any:
    return F.softmax(x @ x.mT, -1)


def recursion() -> object:
    """As many modules in each other as fit into the limit: each takes four frames, and with hooks a fifth."""
    model: Any = torch.nn.Linear(64, 64, bias=False)
    torch.nn.init.ones_(model.weight)
    for _ in range((LIMIT - len(inspect.stack()) - 60) // 4):
        model = torch.nn.Sequential(model)
    return model(X).tolist()


@pytest.mark.parametrize("task", [data_of_a_subclass, lazy, stance, recursion])
def test_what_the_program_does_inside_a_pass_works(task: Callable[[], object], tmp_path: Path) -> None:
    busy = Busy()
    expected = task() if task is not recursion else None
    busy.task = lambda _: task()
    with attn_tui.record(busy, tmp_path / "a.safetensors") as recorder:
        output = busy(X)
    assert busy.found == expected or task is recursion
    assert torch.equal(busy(X), output)
    assert recorder.files


def test_lazy_modules_are_recorded_once_they_have_parameters(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.LazyLinear(64), Attention())
    recorder = attn_tui.record(model, tmp_path / "a.safetensors")
    model(X)
    model(X)
    with pytest.warns(RuntimeWarning, match="not initialised yet"):
        recorder.close()
    assert len(load(tmp_path / "a.safetensors")[1]["layers"]) == 1


def test_a_stance_that_the_program_sets_during_a_pass_is_the_one_afterwards(tmp_path: Path) -> None:
    frames: Any = import_module("torch._dynamo.eval_frame")
    busy = Busy()
    busy.task = lambda _: torch.compiler.set_stance("eager_on_recompile")
    try:
        with attn_tui.record(busy, tmp_path / "a.safetensors"):
            busy(X)
            assert frames._stance.stance == "force_eager"
        assert frames._stance.stance == "eager_on_recompile"
    finally:
        torch.compiler.set_stance("default")


def test_compiled_models_do_not_warn_of_the_recorders_hooks(tmp_path: Path) -> None:
    compiled: Any = torch.compile(Attention(), backend="eager")
    with warnings.catch_warnings(), attn_tui.record(compiled, tmp_path / "run", every=2) as recorder:
        warnings.simplefilter("error")
        for _ in range(3):
            compiled(X)
    assert len(recorder.files) == 2


def test_a_mode_of_the_program_may_end_inside_a_pass(tmp_path: Path) -> None:
    counting: Any = import_module("torch.utils.flop_counter")
    counter = counting.FlopCounterMode(display=False)
    busy = Busy()
    busy.task = lambda _: counter.__exit__(None, None, None)
    with attn_tui.record(busy, tmp_path / "a.safetensors") as recorder:
        counter.__enter__()
        busy(X)
        before = counter.get_total_flops()
        busy(X)
    assert counter.get_total_flops() == before
    assert recorder.complete


def test_between_steps_the_model_can_be_copied_saved_and_scripted(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(64, 64))
    with attn_tui.record(None, tmp_path / "run", every=9):
        for _ in range(2):
            torch.nn.Sequential(model, Attention())(X)
        whole = torch.nn.Sequential(model, Attention())
        for _ in range(3):
            whole(X)
        torch.save(copy.deepcopy(whole), tmp_path / "model.pt")
        torch.jit.script(model)
    assert (tmp_path / "model.pt").stat().st_size


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no such timer")
def test_an_error_of_a_signal_handler_reaches_the_program(tmp_path: Path) -> None:
    """Whatever runs at that moment, such as the recorder."""

    class TimeOutError(Exception):
        pass

    def handler(*_: object) -> None:
        raise TimeOutError

    model = torch.nn.Sequential(*(Attention() for _ in range(20)))
    model.forward = lambda x: [layer(x) for layer in model]  # type: ignore[method-assign]
    before = signal.signal(signal.SIGALRM, handler)
    ended, trials = 0, 20
    try:
        for number in range(trials):
            with attn_tui.record(model, tmp_path / "a.safetensors", overwrite=True):
                signal.setitimer(signal.ITIMER_REAL, 0.002 + 0.0005 * number)
                try:
                    while True:
                        model(X)
                except TimeOutError:
                    ended += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ended == trials


def modes_of_pytorch() -> tuple[object, ...]:
    return (
        torch.is_grad_enabled(),
        repr(torch._C._dispatch_tls_local_include_set()),
        repr(torch._C._dispatch_tls_local_exclude_set()),
        torch._C._len_torch_dispatch_stack(),
        torch._C._is_torch_function_enabled(),
    )


def test_an_error_of_a_signal_handler_leaves_pytorch_as_it_was(tmp_path: Path) -> None:
    """Python runs handlers as functions begin: here, at the beginning of each one that the recorder calls."""

    class TimeOutError(Exception):
        pass

    def handler(*_: object) -> None:
        raise TimeOutError

    def raised_at(place: int) -> tuple[int, bool]:
        """Run the handler at this one of the functions; return how many there were, and whether its error came."""
        begun = 0

        def see(frame: Any, *_: object) -> None:
            nonlocal begun
            above: Any = frame
            while above is not None and "recorder" not in Path(above.f_code.co_filename).parts:
                above = above.f_back
            if above is None or frame.f_code.co_flags & inspect.CO_GENERATOR:  # which may be closing: errors are lost
                return
            begun += 1
            if begun == place:
                sys.settrace(None)
                handler()

        with attn_tui.record(model, tmp_path / "a.safetensors", overwrite=True):
            sys.settrace(see)
            try:
                model(X)
            except TimeOutError:
                return begun, True
            finally:
                sys.settrace(None)
        return begun, False

    model = Attention()
    before = signal.signal(signal.SIGINT, handler)  # no signal is sent: the recorder knows handlers by their code
    try:
        raised_at(0)
        number, _ = raised_at(0)
        modes = modes_of_pytorch()
        assert number > 100
        for place in range(1, number, 3):
            _, raised = raised_at(place)
            assert raised
            assert modes_of_pytorch() == modes
    finally:
        signal.signal(signal.SIGINT, before)
