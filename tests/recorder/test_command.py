"""The command that becomes a program: options, refusals, and programs that notice nothing. None has PyTorch."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from attn_tui.core.recorder.options import VARIABLE, Options, size_in_bytes, wanted_layer
from attn_tui.tui.cli.main import main
from cases import for_each
from running import plain, program, record, started

Captured = pytest.CaptureFixture[str]
NOTHING = "attn-tui: nothing recorded: no Python process loaded the recorder (with -I or -E, none does)\n"


def refusal(words: list[str], capsys: Captured) -> str:
    """The one line with which these words are refused."""
    assert main(["record", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["-o", "a.safetensors"], "missing command: attn-tui record -o FILE -- COMMAND"),
        (["-o", "a.safetensors", "--"], "missing command"),
        (["--", "true"], "missing argument --output"),
        (["-o", "a.npz", "--", "true"], "a.npz: must end with .safetensors, or be a folder together with --every N"),
        (["-o", "a.safetensors", "--every", "2", "--", "true"], "must be a folder if there is a file for each step"),
        (["-o", "nowhere/a.safetensors", "--", "true"], "no such directory"),
        (["-o", "a.safetensors", "--rows", "0", "--", "true"], "--rows: must be a whole number from 1 up, not '0'"),
        (["-o", "a.safetensors", "--batch", "x", "--", "true"], "--batch: must be a whole number from 1 up, not 'x'"),
        (["-o", "r", "--every", "1.5", "--", "true"], "--every: must be a whole number from 1 up, not '1.5'"),
        (["-o", "a.safetensors", "--max-bytes", "2X", "--", "true"], "--max-bytes: must be a size such as 500k"),
        (["-o", "a.safetensors", "--ranks", "1", "--", "true"], "--ranks: must be one of 0, all, not '1'"),
        (["-o", "a.safetensors", "--layers", "(", "--", "true"], "--layers: must be numbers such as 0,4,8-11"),
        (["-o", "a.safetensors", "--", "no-such-program"], "no-such-program: no such command"),
        (["-o", "a.safetensors", "--", "./train.py"], "./train.py: is not a program; try python ./train.py"),
        (["-o", "a.safetensors", "--row", "1", "--", "true"], "unknown option --row (did you mean --rows?)"),
    ],
)
def test_refusals(
    words: list[str], line: str, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    assert line in refusal(words, capsys)


@pytest.mark.parametrize(
    ("text", "size"), [("1000", 1000), ("500k", 500 << 10), ("256M", 256 << 20), ("1.5G", 3 << 29), ("2GiB", 2 << 30)]
)
def test_sizes(text: str, size: int) -> None:
    assert size_in_bytes(text) == size


@for_each("text", ["", "-1", "1X", "M", "1e3", "1 2"])
def test_texts_that_are_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="not a size"):
        size_in_bytes(text)


def test_layers_by_number_and_by_name() -> None:
    assert [n for n in range(14) if wanted_layer("0,4,8-11", n, "")] == [0, 4, 8, 9, 10, 11]
    assert wanted_layer(r"encoder\..*self", 3, "encoder.layers.3.self_attn")
    assert not wanted_layer(r"encoder\..*self", 3, "decoder.layers.3.self_attn")
    assert wanted_layer(None, 99, "anything")


def test_options_survive_the_environment() -> None:
    options = Options(
        "a.safetensors", "0,1", 7, 3, None, None, True, 99, "all", 4, ("a", "b"), "1/d", ("c",), "1", 2, 3.5
    )
    assert Options.from_json(options.to_json()) == options


REPORT = """
import json, os, signal, sys
found = {
    "arguments": sys.argv[1:],
    "path": sys.path,
    "variables": {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "ATTN_TUI_RECORD")},
    "pipe": signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN,
    "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "folder": os.getcwd(),
    "masks": [line for line in open("/proc/self/status") if line[:6] in ("SigBlk", "SigIgn", "SigCgt")],
}
print(json.dumps(found))
"""


def test_the_program_has_its_own_arguments_variables_signals_and_path(tmp_path: Path) -> None:
    words = [program(tmp_path, REPORT), "--lr", "-1e-3", "--", "-o", "x", "--help", "ä b"]
    words = [sys.executable, *words]
    expected = json.loads(plain(words, tmp_path).out)
    done = record(["-o", "a.safetensors", "--", *words], tmp_path)
    found = json.loads(done.out)
    assert found == expected
    assert done.code == 0
    assert done.err == "attn-tui: nothing recorded: the program did not import PyTorch\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_reach_the_program(number: signal.Signals, tmp_path: Path) -> None:
    code = "import time; print('ready', flush=True); time.sleep(60)"
    process = started(["-o", "a.safetensors", "--", sys.executable, "-c", code], tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, number)
    process.communicate(timeout=300)
    assert process.returncode == -number


def test_a_program_that_is_no_python(tmp_path: Path) -> None:
    done = record(["-o", "a.safetensors", "--", "sh", "-c", "echo $0 $1; exit 4", "a", "b"], tmp_path)
    assert (done.code, done.out) == (4, "a b\n")
    assert done.err.removeprefix(NOTHING) == ""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the system tells no other process of the end of one")
@pytest.mark.parametrize("words", [("true",), (sys.executable, "-I", "-c", "1"), (sys.executable, "-E", "-c", "1")])
def test_a_program_that_loads_no_recorder_is_told_so_and_leaves_no_file_of_another_run(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    for name in ("a.safetensors", "a.process7.safetensors", "ab.safetensors"):
        (tmp_path / name).write_text("yesterday")
    done = record(["-o", "a.safetensors", "--", *words], tmp_path)
    assert done.code == 0
    assert (
        done.err == "attn-tui: nothing recorded: no Python process loaded the recorder (with -I or -E, none does)\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["ab.safetensors"]


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the system tells no other process of the end of one")
def test_files_of_processes_that_say_nothing_are_named(tmp_path: Path) -> None:
    program = "import os; open('a.process9.safetensors', 'w').close(); os._exit(4)"
    done = record(["-o", "a.safetensors", "--", sys.executable, "-c", program], tmp_path)
    assert done.code == 4
    assert done.err == f"attn-tui: recorded by other processes: {tmp_path / 'a.process9.safetensors'}\n"


def test_the_users_own_sitecustomize_and_pythonpath_work(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import builtins; builtins.own = __name__")
    code = "import sys, sitecustomize; print(own, sitecustomize.__file__, sys.path[1])"
    words = [sys.executable, "-c", code]
    expected = plain(words, tmp_path, PYTHONPATH=str(tmp_path / "own"))
    done = record(["-o", "a.safetensors", "--", *words], tmp_path, PYTHONPATH=str(tmp_path / "own"))
    assert done.out == expected.out
    assert done.out.startswith(f"sitecustomize {tmp_path}")


def test_an_error_in_the_users_sitecustomize_is_reported_as_without_a_recorder(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("1 / 0")
    words = [sys.executable, "-c", "print('runs')"]
    expected = plain(words, tmp_path, PYTHONPATH=str(tmp_path))
    done = record(["-o", "a.safetensors", "--", *words], tmp_path, PYTHONPATH=str(tmp_path))
    assert done.out == expected.out
    assert "ZeroDivisionError" in expected.err
    assert "ZeroDivisionError" in done.err


def test_pytorch_that_cannot_be_imported_fails_as_without_a_recorder(tmp_path: Path) -> None:
    program(tmp_path, "raise ImportError('broken')", "torch.py")
    text = "try:\n    import torch\nexcept ImportError as error:\n    print(error)\n"
    words = [sys.executable, program(tmp_path, text)]
    done = record(["-o", "a.safetensors", "--", *words], tmp_path)
    assert (done.code, done.out) == (0, plain(words, tmp_path).out)


def test_a_pytorch_that_the_recorder_does_not_fit_leaves_the_program_alone(tmp_path: Path) -> None:
    program(tmp_path, "answer = 42", "torch.py")
    text = "import torch; print(torch.answer, type(torch.__loader__).__name__)"
    words = [sys.executable, program(tmp_path, text)]
    done = record(["-o", "a.safetensors", "--", *words], tmp_path)
    assert (done.code, done.out) == (0, "42 SourceFileLoader\n")
    assert done.err.startswith("attn-tui: cannot record: ")


def test_options_reach_the_program_in_one_variable(tmp_path: Path) -> None:
    code = f"import os; print(os.environ['{VARIABLE}'])"
    words = ["-o", "run", "--every", "3", "--keep", "2", "--values", "--max-bytes", "1M", "--layers", "1-2"]
    done = record([*words, "--expect", "1/d", "--", sys.executable, "-c", code], tmp_path)
    options = Options.from_json(done.out)
    assert options.path == str(tmp_path / "run")
    assert (options.every, options.keep, options.values, options.max_bytes) == (3, 2, True, 1 << 20)
    assert (options.layers, options.expect) == ("1-2", "1/d")
    assert (tmp_path / "run").is_dir()


def test_options_without_effect_are_noted(tmp_path: Path) -> None:
    done = record(["-o", "a.safetensors", "--keep", "2", "--", "true"], tmp_path)
    assert done.code == 0
    assert "--keep" in done.err
    assert done.err.startswith("attn-tui: note: ")


def test_steps_of_another_run_in_the_folder_are_noted(tmp_path: Path) -> None:
    words = ["-o", "run/", "--every", "2", "--", "true"]
    assert record(words, tmp_path).err.removeprefix(NOTHING) == ""
    (tmp_path / "run" / "step-000010.safetensors").write_bytes(b"")
    done = record(words, tmp_path)
    assert done.code == 0
    note = "attn-tui: note: run/ already holds steps of another run; a separate folder keeps runs apart\n"
    assert done.err.removesuffix(NOTHING) == note
