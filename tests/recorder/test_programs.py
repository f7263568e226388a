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


MODULES = f"{MODEL}\nmodel(x)\nprint(*sorted(sys.modules))"


def test_a_recorded_program_loads_the_recorder_and_nothing_else(tmp_path: Path) -> None:
    """PyTorch would load its compiler for the recorder: seconds, folders, and an error without room for them."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    words = [sys.executable, program(tmp_path, MODULES)]
    expected = plain(words, tmp_path, TMPDIR=str(temporary))
    done = record([*OPTIONS, *words], tmp_path, TMPDIR=str(temporary))
    assert done.code == expected.code == 0
    assert layers(tmp_path / FILE) == 2
    others = {name for name in done.out.split() if name.partition(".")[0] != "attn_tui_recorder"}
    assert others == {*expected.out.split()}
    assert not [*temporary.iterdir()]


@pytest.mark.parametrize("limit", ["sys.setrecursionlimit(80)", "import resource; resource.setrlimit(1, (0, 0))"])
def test_limits_of_the_program_leave_its_output_and_exit_code(limit: str, tmp_path: Path) -> None:
    words = [sys.executable, program(tmp_path, f"{MODEL}\n{limit}\nprint(model(x).sum().item())")]
    expected = plain(words, tmp_path)
    done = record([*OPTIONS, *words], tmp_path)
    assert (done.code, done.out) == (expected.code, expected.out)
    assert done.code == 0
    assert (tmp_path / FILE).exists() or "File too large" in done.err


def test_a_file_that_the_program_writes_itself_stays(tmp_path: Path) -> None:
    text = f"{MODEL}\nopen('{FILE}', 'w').write('weights')\nmodel(x)\n"
    done = record([*OPTIONS, sys.executable, program(tmp_path, text)], tmp_path)
    assert (tmp_path / FILE).read_text() == "weights"
    [other] = tmp_path.glob("a.process*.safetensors")
    assert layers(other) == 2
    assert str(other) in done.err


def test_the_file_of_another_run_is_replaced_where_a_link_leads(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / FILE).symlink_to(Path("disk") / "b.safetensors")
    for count in (1, 2):
        text = f"{MODEL}\nmodel[:{count}](x)\n"
        assert record([*OPTIONS, sys.executable, program(tmp_path, text)], tmp_path).code == 0
        assert (tmp_path / FILE).is_symlink()
        assert layers(tmp_path / "disk" / "b.safetensors") == count


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


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the system tells no other process of the end of one")
@pytest.mark.parametrize("closed", ["os.closerange(0, 1024)", "sys.stdout.close(); sys.stderr.close()"])
def test_the_end_of_a_program_that_closed_stderr_is_told(closed: str, tmp_path: Path) -> None:
    done = record(
        [*OPTIONS, sys.executable, program(tmp_path, f"import os, sys\n{MODEL}\n{closed}\nmodel(x)")], tmp_path
    )
    assert done.code == 0
    assert done.err.startswith(f"attn-tui: {tmp_path / FILE}: 2 attention calls seen, 2 recorded, ")
    assert done.err.count("\n") == 1


def test_layers_that_the_program_lacks_are_told_beside_those_it_has(tmp_path: Path) -> None:
    """Also where steps follow each other: what is known of the first is not forgotten."""
    text = f"{MODEL}\nfor _ in range(3): model(x).sum().backward(); torch.optim.SGD(model.parameters()).step()"
    words = ["-o", str(tmp_path / FILE), "--layers", "nosuch", "--", sys.executable, program(tmp_path, text)]
    done = record(words, tmp_path)
    assert done.code == 0
    [line] = done.err.splitlines()
    assert line.startswith("attn-tui: nothing recorded: 'nosuch' ")
    assert line.endswith(" 0, 1")


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the system tells no other process of the end of one")
def test_a_child_that_sees_no_attention_has_its_reason_told(tmp_path: Path) -> None:
    name = program(tmp_path, "import torch")
    done = record([*OPTIONS, "sh", "-c", f"{sys.executable} {name}; exit 0"], tmp_path)
    assert done.code == 0
    assert done.err.startswith("attn-tui: nothing recorded: no forward pass of a module was seen; ")


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the system tells no other process of the end of one")
def test_one_line_says_what_the_most_telling_process_saw(tmp_path: Path) -> None:
    name = program(tmp_path, "import torch; torch.nn.Linear(2, 2)(torch.ones(3, 2))")
    launcher = f"import subprocess, sys; subprocess.run([sys.executable, '{name}'])"
    done = record([*OPTIONS, sys.executable, "-c", launcher], tmp_path)
    assert done.code == 0
    assert done.err.count("\n") == 1
    assert done.err.startswith("attn-tui: nothing recorded: 1 forward pass seen, with ")


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
