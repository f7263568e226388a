"""attn-tui watch --once: what is printed, and the exit codes."""

import csv
import io
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from attn_tui.tui.cli.main import main
from cli_runner import Captured, refusal

ON_PATH = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def run_file(folder: Path, steps: int = 8, rate: float = 1.1, **more: object) -> str:
    """Lines of two layers of two heads; layer 1 head 0 grows by `rate` a step."""
    path = folder / "run.jsonl"
    path.write_text(
        "".join(
            json.dumps({"step": 100 * n, "max_logit": [[5.0, 6.0], [20 * rate**n, 7.0]], **more}) + "\n"
            for n in range(steps)
        )
    )
    return str(path)


def test_a_head_near_the_limit_is_named_with_the_steps_that_are_left(tmp_path: Path, capsys: Captured) -> None:
    path = run_file(tmp_path, 11, scale=0.125, scaled=True)
    assert main(["watch", path, "--once"]) == 0
    out = capsys.readouterr().out.replace("\n", " ")
    left = 100 * math.log(100 / (20 * 1.1**10)) / math.log(1.1)
    words = f"layer 1 head 0, × {1.1**10:.3f} per 1,000 steps, passes it in about {round(left, -1):.0f} steps"
    assert f"No head is over 100; {words}." in out
    assert "step 1000" in out
    assert "the logits include the scale, × 0.125" in out
    assert main(["watch", path, "--once", "--format", "markdown"]) == 0
    header, _, *heads = capsys.readouterr().out.splitlines()
    assert header == "| layer | head | largest \\|logit\\| | per 1,000 steps | steps to 100 |"
    assert heads[:2] == ["| 1 | 0 | 51.9 | × 2.594 | 690 |", "| 1 | 1 | 7.0 | — | — |"]


def test_a_head_over_the_limit_is_a_finding(tmp_path: Path, capsys: Captured) -> None:
    path = run_file(tmp_path)
    assert main(["watch", path, "--once", "--max-logit", "30"]) == 1
    assert "1 head is over 30" in capsys.readouterr().out


def fallen(folder: Path, *rows: object) -> str:
    path = folder / "run.jsonl"
    path.write_text("".join(json.dumps({"step": 10 * n, "max_logit": [row]}) + "\n" for n, row in enumerate(rows)))
    return str(path)


def test_a_head_that_was_over_the_limit_is_a_finding_once_it_came_back(tmp_path: Path, capsys: Captured) -> None:
    path = fallen(tmp_path, [5.0, 1.0], [101.0, 1.0], [120.0, 1.0], [8.0, 1.0])
    assert main(["watch", path, "--once"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "No head is over 100 at step 30, but 1 was earlier." in out
    assert "First over it: layer 0 head 0 at step 10. Peak: 120.0, layer 0 head 0 at step 20; now 8.0." in out
    assert "0/0 8.0 10 120.0 20" in out
    assert main(["watch", path, "--once", "--max-logit", "120"]) == 0
    assert "No head is over 120." in capsys.readouterr().out
    assert main(["watch", path, "--step", "0"]) == 0


@pytest.mark.parametrize("worst", [(0, 0), (1, 0), (1, 1)])
def test_the_program_prints_the_worst_head(worst: tuple[int, int], tmp_path: Path, capsys: Captured) -> None:
    logits = [[50.0, 6.0], [49.0, 7.0]]
    logits[worst[0]][worst[1]] = 91.0
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps({"step": 1, "max_logit": logits}) + "\n")
    assert main(["watch", str(path), "--once", "--format", "python"]) == 0
    out = capsys.readouterr().out
    assert f"layer {worst[0]}, head {worst[1]}\n" in out
    assert out.endswith("91\n")


def test_json_csv_and_markdown_have_the_first_the_most_and_now(tmp_path: Path, capsys: Captured) -> None:
    path = fallen(tmp_path, [5.0, 1.0], [101.0, 1.0], [math.inf, 1.0], [8.0, 1.0])
    assert main(["watch", path, "--once", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["over"], found["came_back"], found["others_over"]) == (0, 1, None)
    past = [
        {name: head[name] for name in ("max_logit", "over", "first_over", "peak", "peak_step")}
        for head in found["heads"]
    ]
    assert past == [
        {"max_logit": 8.0, "over": False, "first_over": 10, "peak": None, "peak_step": 20},
        {"max_logit": 1.0, "over": False, "first_over": None, "peak": 1.0, "peak_step": 0},
    ]
    assert main(["watch", path, "--once", "--format", "csv"]) == 1
    [line, _] = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (line["first_over"], line["peak_step"]) == ("10", "20")
    assert main(["watch", path, "--once", "--format", "markdown"]) == 1
    assert "| first over | peak | at step |" in capsys.readouterr().out


def test_every_head_that_was_over_the_limit_is_printed(tmp_path: Path, capsys: Captured) -> None:
    path = fallen(tmp_path, [120.0] * 30 + [1.0] * 30, [1.0] * 60)
    assert main(["watch", path, "--once"]) == 1
    out = capsys.readouterr().out
    assert "but 30 were earlier" in out
    assert out.count("120.0") == 31
    assert "30 more heads are below these." in out


def test_a_run_without_the_max_logits_is_not_passed(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"step": 7, "maxlogit": [[120.0]]}\n')
    for chosen in ("table", "json"):
        assert main(["watch", str(path), "--once", "--format", chosen]) == 2
        said = capsys.readouterr()
        assert "no step has `max_logit`, so no head is judged" in said.err
        assert "No head is over" not in said.out


def test_json_and_csv_hold_every_head_worst_first(tmp_path: Path, capsys: Captured) -> None:
    path = run_file(tmp_path)
    assert main(["watch", path, "--once", "--max-logit", "30", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["step"], found["over"]) == ("attn-tui/watched-2", 700, 1)
    assert [(each["layer"], each["head"]) for each in found["heads"]] == [("1", 0), ("1", 1), ("0", 1), ("0", 0)]
    assert found["heads"][0]["max_logit"] == pytest.approx(20 * 1.1**7)
    assert main(["watch", path, "--once", "--format", "csv"]) == 0
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [line["head"] for line in lines] == ["0", "1", "1", "0"]


def test_a_folder_that_the_recorder_could_have_written(tmp_path: Path, capsys: Captured) -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    for step in (10, 20):
        np.savez(tmp_path / f"step-{step:06d}.npz", q=rng.normal(size=(1, 3, 8, 4)), k=rng.normal(size=(1, 3, 8, 4)))
    assert main(["watch", str(tmp_path), "--once", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["step"], len(found["heads"])) == (20, 3)


@pytest.mark.parametrize("name", ["lines.jsonl", "one.safetensors"])
def test_a_file_without_steps_is_refused_in_one_line(name: str, tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / name
    file.write_bytes(b"\x00\n" * 30)
    says = {"lines.jsonl": "no step could be read; … line 1: is not JSON", "one.safetensors": "a folder of captures"}
    line = refusal(["watch", str(file), "--once"], capsys)
    assert all(piece in line for piece in (name, *says[name].split(" … ")))


def test_two_steps_are_compared_the_largest_change_first(tmp_path: Path, capsys: Captured) -> None:
    path = run_file(tmp_path)
    assert main(["watch", path, "--step", "350", "--baseline", "100"]) == 0
    out = capsys.readouterr().out
    assert "step 300 since 100" in out
    change = 20 * 1.1**3 - 20 * 1.1
    assert f"Since step 100, 1 of 4 heads grew, most layer 1 head 0 (+{change:.1f})." in out
    assert main(["watch", path, "--step", "300", "--baseline", "100", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["step"], found["baseline"]) == (300, 100)
    assert [each["change"] for each in found["heads"]] == pytest.approx([change, 0, 0, 0])


@pytest.mark.parametrize(
    ("words", "pieces"),
    [
        (["--baseline", "150"], ("no step 150", "0 to 700")),
        (["--step", "50"], ("no step 50", "100 to 700")),
        (["--step", "999"], ("no step 999", "100 to 700")),
    ],
)
def test_a_step_that_the_run_does_not_have_is_refused(
    words: list[str], pieces: tuple[str, ...], tmp_path: Path, capsys: Captured
) -> None:
    path = Path(run_file(tmp_path))
    if words[0] == "--step":
        path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
    message = refusal(["watch", str(path), *words], capsys)
    for piece in pieces:
        assert piece in message


def test_a_run_comes_through_stdin_or_a_pipe(tmp_path: Path) -> None:
    path = Path(fallen(tmp_path, [5.0, 1.0], [8.0, 1.0]))
    printed = [
        subprocess.run(["sh", "-c", command.format(path)], capture_output=True, text=True, check=False, env=ON_PATH)
        for command in (
            "attn-tui watch {} --once --format csv",
            "cat {} | attn-tui watch - --format csv",
            "mkfifo {0}.fifo; cat {0} > {0}.fifo & attn-tui watch {0}.fifo --format csv",
        )
    ]
    assert {(done.returncode, done.stdout, done.stderr) for done in printed} == {(0, printed[0].stdout, "")}
    broken = subprocess.run(
        ["sh", "-c", "echo no | attn-tui watch -"], capture_output=True, text=True, check=False, env=ON_PATH
    )
    assert broken.stderr.startswith("attn-tui: stdin: no step could be read; stdin line 1: is not JSON")
    assert broken.stderr.count("\n") == 1
