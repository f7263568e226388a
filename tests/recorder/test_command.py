"""The command that becomes a program: options, refusals, and programs that notice nothing. None has PyTorch."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import attn_tui
import numpy as np
import pytest
from attn_tui.core.recorder.options import (
    VARIABLE,
    Options,
    recorded_files,
    size_in_bytes,
    wanted_layer,
    with_earlier_files,
)
from attn_tui.tui.cli.main import main
from cases import for_each
from running import ATTN_TUI, finished, plain, program, record, started

Captured = pytest.CaptureFixture[str]
KILLED = "nothing recorded: process {} was killed, or left by os._exit or exec, before it reported"
NO_RECORDER = "nothing recorded: this Python did not load the recorder"
NO_PYTORCH = "nothing recorded: no process imported PyTorch"
NOTHING = (
    "attn-tui: nothing recorded: no Python process loaded the recorder; -I, -E, -S, another PYTHONPATH, sudo and "
    "containers keep it out\n"
)
needs_a_witness = pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="the system tells no other process of the end of one"
)


def recording(path: Path) -> bytes:
    """Write a small capture; return what is in it."""
    attn_tui.save(path, [attn_tui.call(*np.ones((3, 1, 1, 4, 8)), scale=1.0)])
    return path.read_bytes()


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
        (["-o", "model.safetensors", "--", "true"], "model.safetensors: exists and is not a recording; use"),
        (
            ["-o", "checkpoints", "--every", "1", "--ranks", "all", "--", "true"],
            "checkpoints/rank1/step-000100.safetensors: exists and",
        ),
    ],
)
def test_refusals(
    words: list[str], line: str, capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    (tmp_path / "model.safetensors").write_text("weights")
    (tmp_path / "checkpoints" / "rank1").mkdir(parents=True)
    (tmp_path / "checkpoints" / "rank1" / "step-000100.safetensors").write_text("weights")
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
        "a.safetensors", "0,1", 7, 3, None, None, True, 99, "all", 4, ("a", "b"), "1/d", ("c",), "1", 2, 3.5,
        (("a.safetensors", 7, 9),), ("/proc/7/fd/3", "pipe:[9]"), True,
    )  # fmt: skip
    assert Options.from_json(options.to_json()) == options


REPORT = """
import json, os, signal, sys
with open("/proc/self/status") as status:
    masks = [line for line in status if line[:6] in ("SigBlk", "SigIgn", "SigCgt")]
found = {
    "arguments": sys.argv[1:],
    "path": sys.path,
    "variables": {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "ATTN_TUI_RECORD")},
    "pipe": signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN,
    "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "folder": os.getcwd(),
    "masks": masks,
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
    assert done.err == f"attn-tui: {NO_PYTORCH}\n"


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


def python(code: str, *options: str) -> list[str]:
    """The words that run some code."""
    return [sys.executable, *options, "-c", code]


def in_shell(*words: str) -> list[str]:
    """The words that run others in a shell, which waits for them."""
    return ["sh", "-c", '"$@"; exit $?', "sh", *words]


@needs_a_witness
@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["true"], 0, "nothing recorded: no Python process loaded the recorder"),
        (python("1", "-I"), 0, NO_RECORDER),
        (python("1", "-E"), 0, NO_RECORDER),
        (python("1", "-S"), 0, NO_RECORDER),
        (in_shell(*python("1")), 0, NO_PYTORCH),
        (["env", *python("raise SystemExit(3)")], 3, NO_PYTORCH),
        (python("import os; os.execlp('true', 'true')"), 0, KILLED),
        (in_shell(*python("import os; os._exit(5)")), 5, KILLED),
        (python("import os, signal; os.kill(os.getpid(), signal.SIGTERM)"), -signal.SIGTERM, KILLED),
    ],
    ids=["no python", "-I", "-E", "-S", "in a shell", "itself", "exec", "left", "killed"],
)
def test_a_run_that_records_nothing_says_why_and_leaves_files_of_another_run(
    words: list[str], code: int, why: str, tmp_path: Path
) -> None:
    names = ("a.process7.safetensors", "a.safetensors", "ab.safetensors")
    before = {name: recording(tmp_path / name) for name in names}
    done = record(["-o", "a.safetensors", "--", *words], tmp_path)
    assert done.code == code
    assert done.err.count("\n") == 1
    assert re.match("attn-tui: " + re.escape(why).replace(re.escape("{}"), r"\d+"), done.err)
    assert done.err.endswith(f"; {tmp_path / 'a.safetensors'} was there before and is unchanged\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == [*names]
    assert {name: (tmp_path / name).read_bytes() for name in names} == before


def test_a_file_dated_in_the_future_is_of_another_run(tmp_path: Path) -> None:
    path, tomorrow = tmp_path / "a.safetensors", time.time() + 86400
    recording(path)
    os.utime(path, (tomorrow, tomorrow))
    done = record(["-o", "a.safetensors", "--", *python("1")], tmp_path)
    assert done.err.endswith(f"; {path} was there before and is unchanged\n")
    options = with_earlier_files(Options(str(path)))
    assert recorded_files(options) == []
    recording(path)
    os.utime(path, (tomorrow, tomorrow))
    assert recorded_files(options) == [path]


@needs_a_witness
def test_a_process_that_outlives_the_program_is_named(tmp_path: Path) -> None:
    script = '"$@" & while [ ! -e ready ]; do sleep 0.01; done; exit 0'
    code = "import pathlib, time; pathlib.Path('ready').touch(); time.sleep(600)"
    process = started(["-o", "a.safetensors", "--", "sh", "-c", script, "sh", *python(code)], tmp_path)
    try:
        assert process.stderr is not None
        assert re.fullmatch(r"attn-tui: nothing recorded so far: process \d+ still runs\n", process.stderr.readline())
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=300)


def test_a_command_that_is_no_program_leaves_the_file_and_says_one_line(tmp_path: Path) -> None:
    before = recording(tmp_path / "a.safetensors")
    (tmp_path / "script").write_text("echo without a first line that names a program\n")
    (tmp_path / "script").chmod(0o755)
    done = record(["-o", "a.safetensors", "--", "./script"], tmp_path)
    assert (done.code, done.err) == (2, "attn-tui: ./script: cannot be run: Exec format error\n")
    assert (tmp_path / "a.safetensors").read_bytes() == before


@needs_a_witness
def test_no_disk_has_to_be_writable(tmp_path: Path) -> None:
    """Where no file may have a byte, there is no folder for temporary files either."""
    limited = "import os, resource, sys; resource.setrlimit(1, (0, 0)); os.execv(sys.argv[1], sys.argv[1:])"
    words = in_shell(*python("import sys; print('runs')"))
    done = finished(started(["-o", "a.safetensors", "--", *words], tmp_path, [*python(limited), *ATTN_TUI]))
    assert (done.code, done.out) == (0, "runs\n")
    assert NO_PYTORCH in done.err


@pytest.mark.parametrize("options", [[], ["--overwrite"]])
def test_empty_files_and_files_to_overwrite_stay_until_there_is_a_recording(
    options: list[str], tmp_path: Path
) -> None:
    (tmp_path / "a.safetensors").write_text("weights" if options else "")
    done = record([*options, "-o", "a.safetensors", "--", *python("print('runs')")], tmp_path)
    assert (done.code, done.out) == (0, "runs\n")
    assert (tmp_path / "a.safetensors").read_text() == ("weights" if options else "")


@needs_a_witness
def test_files_of_processes_that_say_nothing_are_named(tmp_path: Path) -> None:
    recording(tmp_path / "here")
    program = "import os; os.utime('here'); os.rename('here', 'a.process9.safetensors'); os._exit(4)"
    done = record(["-o", "a.safetensors", "--", *python(program)], tmp_path)
    assert done.code == 4
    assert done.err == f"attn-tui: recorded by processes that did not report: {tmp_path / 'a.process9.safetensors'}\n"


@needs_a_witness
@pytest.mark.parametrize("made", ["pathlib.Path(path).write_text('text')", "os.mkdir(path)", "os.mkfifo(path)"])
def test_what_the_program_puts_in_the_place_of_the_file_is_no_recording(made: str, tmp_path: Path) -> None:
    done = record(
        ["-o", "a.safetensors", "--", *python(f"import os, pathlib; path = 'a.safetensors'; {made}")], tmp_path
    )
    assert done.code == 0
    assert done.err.startswith(f"attn-tui: {NO_PYTORCH}")


@needs_a_witness
@pytest.mark.parametrize(
    "before",
    [
        "os.close(0), os.close(1)",
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
        "[os.dup(2) for _ in range(1100)]",
        "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)",  # PR_SET_CHILD_SUBREAPER: orphans become its children
    ],
    ids=["closed streams", "ignored children", "many files", "orphans"],
)
def test_whatever_the_command_inherits_the_program_runs_and_waits_for_nobody(before: str, tmp_path: Path) -> None:
    code = f"import ctypes, os, signal, sys; {before}; os.execv(sys.argv[1], sys.argv[1:])"
    program = "import os, pathlib\ntry:\n    os.wait()\nexcept ChildProcessError: pathlib.Path('ran').touch()"
    words = ["-o", "a.safetensors", "--", *python(program)]
    done = finished(started(words, tmp_path, [*python(code), *ATTN_TUI]))
    assert (tmp_path / "ran").exists()
    assert done.code == 0
    assert re.fullmatch(r"attn-tui: nothing recorded: (no process|the program did not) import.* PyTorch\n", done.err)


def test_the_program_has_no_module_that_it_has_not_without_a_recorder(tmp_path: Path) -> None:
    code = "import sys; print(*sorted(name for name in sys.modules if not name.startswith('attn_tui_recorder')))"
    expected = set(plain(python(code), tmp_path).out.split())
    found = set(record(["-o", "a.safetensors", "--", *python(code)], tmp_path).out.split())
    assert found >= expected
    own = {name.partition(".")[0] for name in found - expected}
    assert own <= {*sys.stdlib_module_names}  # of the recorder's options: all without PyTorch
    assert "sitecustomize" not in own


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
