"""Runs of many steps: which are recorded, their files, and which files stay."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import attn_tui
import pytest
from pytorch import torch
from replay import load
from running import MODEL, plain, program

F: Any = torch.nn.functional
pytestmark = pytest.mark.filterwarnings("default")

X = torch.randn(1, 6, 8, generator=torch.Generator().manual_seed(2))


class Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.k: Any = torch.nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        return F.scaled_dot_product_attention(x[:, None], self.k(x)[:, None], x[:, None])


def files(folder: Path) -> list[int]:
    """The steps that have a file."""
    return sorted(int(path.stem.removeprefix("step-")) for path in folder.glob("step-*.safetensors"))


def train(model: Any, steps: int, micro_batches: int = 1, evaluate: bool = False) -> None:
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        for _ in range(micro_batches):
            model(X).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        if evaluate:
            with torch.no_grad():
                model(X)


@pytest.mark.parametrize("evaluate", [False, True])
@pytest.mark.parametrize("micro_batches", [1, 3])
def test_steps_of_an_optimizer(micro_batches: int, evaluate: bool, tmp_path: Path) -> None:
    model = Attention()
    keys: list[Any] = []

    def keep(_: Any, __: Any, out: Any) -> None:
        keys.append(out.detach()[:, None])

    model.k.register_forward_hook(keep)
    with attn_tui.record(model, tmp_path / "run", every=4) as recorder:
        train(model, 10, micro_batches, evaluate)
    assert recorder.complete
    assert files(tmp_path / "run") == [0, 4, 8]
    held, metadata = load(tmp_path / "run" / "step-000004.safetensors")
    assert metadata["step"] == "4"
    first = 4 * (micro_batches + evaluate)  # the first pass of the step
    assert torch.equal(held["layers.0.attn.k"], keys[first]) or evaluate


def test_models_trained_one_after_the_other_are_all_recorded(tmp_path: Path) -> None:
    with attn_tui.record(None, tmp_path / "run", every=2) as recorder:
        for model in (Attention(), Attention(), Attention()):
            train(model, 4)
    assert recorder.complete, recorder.summary
    assert files(tmp_path / "run") == [0, 2, 4, 6, 8]  # the first step of another optimizer ends none


@pytest.mark.parametrize("more", [1, 3])
def test_two_optimizers_that_take_turns_make_one_step_together(more: int, tmp_path: Path) -> None:
    """`more` is how often the first one steps before the second one does, as a critic of a GAN."""
    critic, generator = Attention(), Attention()
    optimizers: list[Any] = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (critic, generator)]
    with attn_tui.record(None, tmp_path / "run", every=2) as recorder:
        for _ in range(4):
            for model, optimizer, count in zip((critic, generator), optimizers, (more, 1), strict=True):
                for _ in range(count):
                    model(X).square().mean().backward()
                    optimizer.step()
    assert recorder.complete, recorder.summary
    assert files(tmp_path / "run") == list(range(0, 4 * more + 1, 2))


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("every", [1, 2, 3])
def test_without_an_optimizer_passes_are_counted(grad: bool, every: int, tmp_path: Path) -> None:
    model = Attention()
    with torch.set_grad_enabled(grad), attn_tui.record(model, tmp_path / "run", every=every):
        for _ in range(8):
            model(X)
    assert files(tmp_path / "run") == list(range(0, 8, every))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_writes_no_steps(tmp_path: Path) -> None:
    """The step in progress, and those after it, are its parent's."""
    name = program(
        tmp_path,
        MODEL
        + """
import os, attn_tui
recorder = attn_tui.record(model, "run", every=1)
model(x)
model(x)
before = recorder.files
if (child := os.fork()) == 0:
    for _ in range(5):
        model(x)
    recorder.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(os.listdir("run"), [os.path.basename(path) for path in before])
model(x)
recorder.close()
print(sorted(os.listdir("run")))
""",
    )
    done = plain([sys.executable, name], tmp_path)
    *before, last = (f"step-00000{step}.safetensors" for step in range(3))
    assert (done.out, done.code) == (f"{before} {before}\n{[*before, last]}\n", 0), done.err


def test_a_step_does_not_wait_for_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on, flush = threading.Event(), os.fsync

    def wait_and_flush(descriptor: int) -> None:
        assert goes_on.wait(300)
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", wait_and_flush)
    model = Attention()
    with attn_tui.record(model, tmp_path / "run", every=2) as recorder:
        model(X)
        assert files(tmp_path / "run") == []
        goes_on.set()
        assert recorder.files == [str(tmp_path / "run" / "step-000000.safetensors")]
        model(X)
        model(X)
    assert files(tmp_path / "run") == [0, 2]


def test_a_file_that_cannot_be_written_is_named_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("no folder")
    model, threads = Attention(), threading.active_count()
    recorder = attn_tui.record(model, tmp_path / "run", every=1)
    for _ in range(3):
        model(X)
    with pytest.warns(RuntimeWarning, match="FileExistsError"):
        recorder.close()
    assert threading.active_count() == threads


def test_the_newest_files_are_kept(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    model = Attention()
    with attn_tui.record(model, tmp_path / "run", every=2, keep=2) as recorder:
        train(model, 9)
    assert files(tmp_path / "run") == [6, 8]
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"
    assert recorder.files == [str(tmp_path / "run" / f"step-00000{step}.safetensors") for step in (6, 8)]


def test_no_more_files_than_asked_for(tmp_path: Path) -> None:
    model = Attention()
    with attn_tui.record(model, tmp_path / "run", every=2, max_steps=2):
        train(model, 9)
    assert files(tmp_path / "run") == [0, 2]


def test_one_file_has_the_first_step_that_has_attention(tmp_path: Path) -> None:
    other = torch.nn.Linear(8, 8)
    model = Attention()
    both: Any = torch.nn.ModuleList([other, model])
    recorder = attn_tui.record(model, tmp_path / "a.safetensors")
    for _ in range(3):
        both[0](X)
    expected = model.k(X).detach()[:, None]
    train(model, 3)
    recorder.close()
    held, metadata = load(tmp_path / "a.safetensors")
    assert torch.equal(held["layers.0.attn.k"], expected)
    assert "step" not in metadata


def test_after_the_last_step_no_hook_is_left(tmp_path: Path) -> None:
    module: Any = torch.nn.modules.module
    before = (len(module._global_forward_pre_hooks), len(module._global_forward_hooks))
    model = Attention()
    with attn_tui.record(model, tmp_path / "run", every=100):
        train(model, 3)
        assert (len(module._global_forward_pre_hooks), len(module._global_forward_hooks)) == before
        assert not model._forward_hooks
    recorder = attn_tui.record(model, tmp_path / "a.safetensors")
    model(X)
    model(X)
    assert (len(module._global_forward_pre_hooks), len(module._global_forward_hooks)) == before
    recorder.close()


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("a.npz", {}, r"must end with \.safetensors"),
        ("a.safetensors", {"rows": 0}, "rows must be at least 1"),
        ("a.safetensors", {"max_bytes": "lots"}, "not a size"),
    ],
)
def test_arguments_that_are_not_valid(path: str, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        attn_tui.record(Attention(), tmp_path / path, **options)
