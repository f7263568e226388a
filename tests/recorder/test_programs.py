"""Whole programs under `attn-tui record`: same output and exit code, and a valid file whatever happens."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from pytorch import torch
from replay import load
from running import MODEL, TRAIN, plain, program, record, started

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

FILE = "a.safetensors"
OPTIONS = ("-o", FILE, "--")


def layers(path: Path) -> int:
    return len(load(path)[1]["layers"])


def test_a_program_is_recorded_without_attn_tui_and_prints_the_same(tmp_path: Path) -> None:
    text = f"{TRAIN}\nprint(sorted(n for n in sys.modules if n.partition('.')[0] == 'attn_tui'))"
    words = [sys.executable, program(tmp_path, text), "4"]
    expected = plain(words, tmp_path)
    done = record([*OPTIONS, *words], tmp_path)
    assert (done.code, done.out) == (expected.code, expected.out)
    assert done.out.endswith("[]\n")
    assert done.err.splitlines()[-1].startswith(f"attn-tui: {tmp_path / FILE}: 2 attention calls seen, 2 recorded, ")
    assert layers(tmp_path / FILE) == 2


def test_a_folder_of_steps(tmp_path: Path) -> None:
    words = [sys.executable, program(tmp_path, TRAIN), "7"]
    done = record(["-o", "run/", "--every", "3", "--keep", "2", "--", *words], tmp_path)
    assert done.code == 0
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "step-000003.safetensors",
        "step-000006.safetensors",
    ]
    assert f"attn-tui: {tmp_path / 'run'}: 2 files, " in done.err


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("sys.exit(7)", 7),
        ("raise RuntimeError('end')", 1),
        ("import os; os._exit(9)", 9),
        ("import signal, os; os.kill(os.getpid(), signal.SIGKILL)", -9),
        ("import signal, os; os.kill(os.getpid(), signal.SIGTERM)", -15),
        ("raise KeyboardInterrupt", -2),
    ],
)
def test_a_file_is_left_however_the_program_ends(end: str, code: int, tmp_path: Path) -> None:
    done = record([*OPTIONS, sys.executable, program(tmp_path, f"{MODEL}\nmodel(x)\n{end}\n")], tmp_path)
    assert done.code == code
    assert layers(tmp_path / FILE) == 2


INSIDE = (
    MODEL
    + """
import time
class Slow(nn.Module):
    def forward(self, x):
        print("inside", flush=True)
        time.sleep(60)
        return x
model.insert(1, Slow())
model(x)
"""
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_inside_a_layer_ends_the_program(number: signal.Signals, tmp_path: Path) -> None:
    process = started([*OPTIONS, sys.executable, program(tmp_path, INSIDE)], tmp_path)
    assert process.stdout is not None
    while process.stdout.readline() != "inside\n":
        pass
    time.sleep(0.2)
    os.kill(process.pid, number)
    process.communicate(timeout=300)
    assert process.returncode == -number
    if number == signal.SIGINT:
        assert layers(tmp_path / FILE) == 1
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".part"]


def test_a_program_without_attention_is_told_so(tmp_path: Path) -> None:
    text = "import torch; torch.nn.Linear(2, 2)(torch.ones(3, 2))"
    done = record([*OPTIONS, sys.executable, program(tmp_path, text)], tmp_path)
    assert done.code == 0
    assert "attn-tui: nothing recorded: 1 forward pass seen, with " in done.err
    assert not (tmp_path / FILE).exists()


def test_every_python_process_of_a_script_is_recorded(tmp_path: Path) -> None:
    program(tmp_path, f"{MODEL}\nmodel(x)\n")
    script = f"{sys.executable} program.py && {sys.executable} program.py"
    done = record([*OPTIONS, "sh", "-c", script], tmp_path)
    assert done.code == 0
    assert len(list(tmp_path.glob("a*.safetensors"))) == 2


RANKS = (
    MODEL
    + """
import os
import torch.distributed as dist
dist.init_process_group("gloo")
wrapped = nn.parallel.DistributedDataParallel(model)
loss = wrapped(x + dist.get_rank()).square().mean()
loss.backward()
dist.barrier()
dist.destroy_process_group()
os._exit(0)  # PyTorch's own threads abort about one in twenty such programs at the interpreter's end, recorded or not
"""
)


@pytest.mark.parametrize("ranks", ["0", "all"])
def test_two_ranks(ranks: str, tmp_path: Path) -> None:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    words = [*launcher, program(tmp_path, RANKS)]
    done = record(["-o", FILE, "--ranks", ranks, "--", *words], tmp_path)
    assert done.code == 0, done.err
    found = sorted(path.name for path in tmp_path.glob("*.safetensors"))
    assert found == ([FILE] if ranks == "0" else ["a.rank0.safetensors", "a.rank1.safetensors"])
    assert layers(tmp_path / found[0]) == 2
    assert load(tmp_path / found[0])[1]["layers"][0]["name"] == "0"
    if ranks == "all":
        first, second = (load(tmp_path / name)[0]["layers.0.attn.q"] for name in found)
        assert not torch.equal(first, second)
    assert "nothing recorded" not in done.err
