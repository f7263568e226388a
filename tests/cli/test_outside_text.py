"""Text from outside is never code, a control sequence, a formula or an annotation: every reader, every output."""

import ast
import csv
import io
import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from attn_tui.core.message import without_commands
from attn_tui.tui.cli.main import main
from hypothesis import given as each
from hypothesis import strategies as st
from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]

CODE = "__import__('os').system('exit')"
HOSTILE = (
    f"0\n{CODE}\n#",
    f"0\r{CODE}",
    f"'][0]; {CODE}; x['",
    f'"); {CODE}; print("',
    f"{{{CODE}}}",
    "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x1b]0;title\x07",
    "\x9b2J\x85\u2028\u202eevil\x00",
    "=cmd|' /C calc'!A0\n::error file=x::\n</testcase> |x|`",
    "::error file=x::one ##[error]two ##vso[task.complete]three",
)
NUMBERS = ("json", "jsonl", "csv", "markdown")
PROGRAMS = ("python", "torch")


def a_line(name: str, folder: Path) -> Path:
    """A watched file with this name of a layer."""
    lines = [
        {"step": step, "layers": [name], "max_logit": [[300.0 + step, 2.0]], "entropy": [[1.0, 0.5]]}
        for step in range(6)
    ]
    (folder / "run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder / "run.jsonl"


def a_statistic(name: str, folder: Path) -> Path:
    """A watched file with this name of a statistic, and of a key that is none."""
    line = {"step": 1, name: [[1.0, 2.0]], "max_logit": [[300.0, 2.0]], name + "!": 3}
    (folder / "run.jsonl").write_text(json.dumps(line) + "\n")
    return folder / "run.jsonl"


def a_capture(name: str, folder: Path) -> Path:
    """A capture with this text as its name and wherever a file may have some; its lse is that of twice the scale."""
    rng = np.random.default_rng(1)
    q, k = (rng.standard_normal((1, 1, 8, 16), dtype=np.float32) for _ in "qk")
    z = q.astype(float) @ k.astype(float).swapaxes(-1, -2) / 2
    tensors = {f"layers.0.attn.{side}": array for side, array in (("q", q), ("k", k))}
    tensors["layers.0.attn.lse"] = np.log(np.exp(z).sum(-1)).astype(np.float32)
    tensors[name] = np.ones(3, np.float32)
    about = dict.fromkeys(("model", "model_source", "model_licence", "text", "text_licence", name), name)
    about |= {"tokens": json.dumps([name] * 8), "config": json.dumps({"model_type": name, name: name})}
    about["layers"] = json.dumps([{"name": name, "index": 0, "scale": 0.25, "notes": [name], name: name}])
    file = folder / (name.replace("/", "_").replace("\x00", "") + ".safetensors")
    save_file(tensors, file, about)
    return file


def a_folder(name: str, folder: Path) -> Path:
    """A folder with such a capture, which is a run too."""
    return a_capture(name, folder).parent


WATCHED = tuple(("watch", "{file}", "--once", "--format", form) for form in ("table", *NUMBERS, *PROGRAMS))
CAPTURED = (
    *(("inspect", "{file}", "--format", form) for form in ("table", *NUMBERS)),
    *(("inspect", "{file}", "--layer", "0", "--head", "0", "--format", form) for form in ("table", *PROGRAMS)),
    *(("diagnose", "{file}", "--format", form) for form in ("table", *NUMBERS)),
    *(("diagnose", "{file}", "--layer", "0", "--head", "0", "--format", form) for form in PROGRAMS),
    *(("compare", "{file}", "{file}", "--format", form) for form in ("table", *NUMBERS)),
    *(("check", "{file}", "--format", form) for form in ("table", *NUMBERS, "junit", "github", *PROGRAMS)),
)
READERS: dict[str, tuple[Callable[[str, Path], Path], Sequence[Sequence[str]]]] = {
    "the name of a layer in a line": (a_line, WATCHED),
    "the name of a statistic": (a_statistic, WATCHED),
    "the name and the texts of a capture": (a_capture, CAPTURED),
    "the name of a step": (a_folder, WATCHED),
    "what is no file": (lambda name, folder: folder / name.replace("\x00", ""), (*WATCHED[:1], *CAPTURED[:1])),
}


def commands(line: str) -> bool:
    """Whether the program that runs a build obeys something in a line of its log."""
    return line.lstrip().startswith("::") or re.search(r"##\w*\[", line) is not None


def harm(text: str, form: str) -> str:
    """What is wrong with what was printed in a format; empty if nothing is."""
    if strange := {c for c in text if not (c.isprintable() or c == "\n")}:
        return f"{strange} is printed"
    ours = "::error file=" if form == "github" else None
    if obeyed := [line for line in text.splitlines() if commands(line.removeprefix(ours or ""))]:
        return f"{obeyed} are obeyed by the runner of a build"
    match form:
        case "python" | "torch":
            names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
            return "text has become code" if "__import__" in names else ""
        case "csv":
            rows = [*csv.reader(io.StringIO(text))]
            cells = [cell for row in rows for cell in row if cell.startswith(("=", "@", "+cmd", "-cmd"))]
            return f"{cells} are formulas" if cells else "" if len({*map(len, rows)}) == 1 else "a row was added"
        case "json":
            json.loads(text)
        case "jsonl":
            assert all(json.loads(line) for line in text.splitlines())
        case "junit":
            ElementTree.fromstring(text)
        case "github":
            others = [line for line in text.splitlines() if not line.startswith("::error file=")]
            return f"{others} are not annotations of this program" if others else ""
        case _:
            pass
    return ""


@pytest.mark.parametrize("reader", READERS)
def test_hostile_text_is_never_obeyed(
    reader: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write, commands = READERS[reader]
    wrong: list[str] = []
    for number, name in enumerate(HOSTILE):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        file = write(name, folder)
        for at, words in enumerate(commands):
            if (number + at) % 2 and words in CAPTURED:  # each command with every other text
                continue
            given = [word.format(file=os.path.relpath(file)) if "{" in word else word for word in words]
            status = main(given)
            out, err = capsys.readouterr()
            form = words[-1] if words[-2] == "--format" else "table"
            faults = (harm(out, form) if out else "", harm(err, ""), "" if status in (0, 1, 2) else "a crash")
            wrong += [f"{name!r}, {' '.join(words)}: {fault}" for fault in faults if fault]
    assert wrong == []


@each(st.text("#[:\\\\'\" v\n"))
def test_a_program_reads_the_same_from_escaped_output(text: str) -> None:
    for written, read in ((json.dumps(text), json.loads), (repr(text), ast.literal_eval)):
        shown = without_commands(f"  {written}")
        assert not commands(shown)
        assert read(shown.strip()) == text


@pytest.mark.parametrize("command", ["inspect", "diagnose", "compare", "check"])
def test_csv_in_a_file_is_what_is_printed(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = str(a_capture(HOSTILE[-1], Path()))
    words = [command, *[file] * (1 + (command == "compare")), "--format", "csv"]
    main(words)
    printed = capsys.readouterr().out
    main([*words, "-o", "rows.csv"])
    assert Path("rows.csv").read_text("utf-8") == printed
