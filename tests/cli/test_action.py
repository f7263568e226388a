"""The action for GitHub, by its steps: what a workflow that uses it runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import attn_tui
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
ACTION = (ROOT / "action.yml").read_text("utf-8")
DEFAULTS = dict(re.findall(r"^  (\w+):\n    description: .*\n    default: \"?(.*?)\"?$", ACTION, re.M))
STEPS = re.findall(
    r"^    - name: (.*)\n      shell: bash\n      env:\n((?: {8}.*\n)+)      run: \|\n((?: {8}.*\n)+)", ACTION, re.M
)


def run(name: str, folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run a step with these inputs, as a runner does: in bash -e -o pipefail, with its variables."""
    [(environment, script)] = [(environment, script) for step, environment, script in STEPS if step == name]
    values = {f"inputs.{key}": value for key, value in {**DEFAULTS, **inputs}.items()} | {
        "github.action_path": str(ROOT)
    }
    variables = {key: values[value] for key, value in re.findall(r"(\w+): \$\{\{ ([\w.]+) \}\}", environment)}
    own = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}  # pip has warnings
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", dedent(script)],
        env={**own, "RUNNER_TEMP": str(folder), **variables},
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Return a folder of a runner in which attn-tui is installed as the first step does."""
    (tmp_path / "attn-tui" / "bin").mkdir(parents=True)
    program = Path(sys.executable).with_name("attn-tui")
    (tmp_path / "attn-tui" / "bin" / "attn-tui").symlink_to(program)
    q, k, v = np.random.default_rng(0).normal(size=(3, 1, 2, 24, 16)).astype(np.float32)
    weights = np.exp(0.25 * q @ k.mT)
    o = weights @ v / weights.sum(axis=-1, keepdims=True)
    attn_tui.save(tmp_path / "right.safetensors", [attn_tui.call(q, k, v, o, scale=0.25)])
    attn_tui.save(tmp_path / "unjudged.safetensors", [attn_tui.call(q, k, scale=None)])
    return tmp_path


def test_a_right_capture_passes_and_a_wrong_one_is_annotated(installed: Path) -> None:
    right = run("Check the capture", installed, file="right.safetensors", expect="1/sqrt(d)", strict="true")
    assert (right.returncode, right.stdout, right.stderr) == (0, "", "")
    wrong = run("Check the capture", installed, file="right.safetensors", expect="1/d")
    assert wrong.returncode == 1
    assert wrong.stdout.startswith("::error file=right.safetensors,title=attn-tui ")


def test_strict_and_options_are_passed_on(installed: Path) -> None:
    assert run("Check the capture", installed, file="unjudged.safetensors").returncode == 0
    assert run("Check the capture", installed, file="unjudged.safetensors", strict="true").returncode == 1
    several = run(
        "Check the capture", installed, file="right.safetensors", options="--max-logit 0.1 --allow *:spread"
    )
    assert several.returncode == 1
    assert "max-logit" in several.stdout


def test_inputs_are_words_and_no_code(installed: Path) -> None:
    done = run("Check the capture", installed, file="$(touch made) right.safetensors", expect="'; touch made; '")
    assert done.returncode == 2
    assert not (installed / "made").exists()


@pytest.mark.slow
def test_the_first_step_installs_it(tmp_path: Path) -> None:
    done = run("Install attn-tui", tmp_path, python=sys.executable)
    assert done.returncode == 0, done.stderr
    found = subprocess.run(
        [tmp_path / "attn-tui" / "bin" / "attn-tui", "-V"], capture_output=True, text=True, check=True
    )
    assert found.stdout.startswith("attn-tui ")
