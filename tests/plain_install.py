"""Try every public name and every command of an attn-tui that is installed without extras; needs no test framework.

`make test-plain` and `make release` run this with the Python of such an environment. A name or a command without a
row below is an error.
"""

from __future__ import annotations

import inspect
import os
import pydoc
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import attn_tui
import numpy as np
from attn_tui.tui.cli.commands.catalogue import COMMANDS

DATA = Path(__file__).resolve().parent / "data"
WRONG, RUN = DATA / "wrong-scale.safetensors", DATA / "run.jsonl"
SMALL: dict[str, Any] = {"n_keys": 16, "n_queries": 8, "batch": 4}


def saved() -> None:
    """Save calls of attention, and ask of the file what can be asked."""
    q, k, v = np.random.default_rng(0).normal(size=(3, 1, 2, 24, 16)).astype(np.float32)
    weights = np.exp(0.25 * q @ k.mT)
    o = weights @ v / weights.sum(axis=-1, keepdims=True)
    attn_tui.save("heads.safetensors", [attn_tui.call(q, k, v, o, scale=0.25, name="first")])
    head = attn_tui.open("heads.safetensors")[0, 1]
    assert np.allclose(head.weights() @ v[:, 1], o[:, 1], atol=1e-5)
    assert attn_tui.diagnose("heads.safetensors", expect="1/sqrt(d)").healthy
    assert attn_tui.compare("heads.safetensors", "heads.safetensors").same
    assert attn_tui.check("heads.safetensors", expect="1/d").checked.findings
    told(head.measure(), head.replay(), head.diagnose())


def told(*results: Any) -> None:
    """Ask results for everything that they can be written as."""
    for result in results:
        assert repr(result), result
        assert result.to_dict(), result
        assert isinstance(result.rows(), list), result


def refused() -> None:
    """Give a value that is not accepted."""
    assert "d_k" in str(raised(attn_tui.InputError, lambda: attn_tui.measure(d_k=0)))


def raised(kind: type[BaseException], call: Callable[[], object]) -> Any:
    """Return the error that a call raises."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")


def lacks(library: str, call: Callable[[], object]) -> Callable[[], None]:
    """Return a test that a call says which library it lacks, and how to install it."""

    def test() -> None:
        error = raised(ImportError, call)
        assert error.name == library, error.name
        assert "pip install" in str(error), error

    return test


def one_of(name: str, call: Callable[[], object]) -> Callable[[], None]:
    """Return a test that a call returns an object of a public type."""

    def test() -> None:
        found = call()
        assert isinstance(found, getattr(attn_tui, name)), type(found)

    return test


def array_call() -> attn_tui.Call:
    return attn_tui.call(*np.ones((2, 1, 1, 4, 8), np.float32), scale=0.5)


TYPES: dict[str, Callable[[], object]] = {
    "Answer": attn_tui.cost,
    "Call": array_call,
    "Capture": lambda: attn_tui.open(array_call()),
    "Check": lambda: attn_tui.check(array_call()),
    "Diagnosis": lambda: attn_tui.diagnose(array_call()),
    "Differences": lambda: attn_tui.compare(array_call(), array_call()),
    "Estimate": lambda: attn_tui.measure(**SMALL).b["entropy"],
    "Exact": lambda: attn_tui.predict(**SMALL),
    "Head": lambda: attn_tui.open(WRONG)[0][0],
    "HeadMeasurement": lambda: attn_tui.open(WRONG)[0, 0].measure(),
    "HeadReplay": lambda: attn_tui.open(WRONG)[0, 0].replay(),
    "Lab": lambda: attn_tui.measure(**SMALL),
    "Layer": lambda: attn_tui.open(WRONG).layers[0],
    "Result": attn_tui.cost,
    "Sweep": lambda: attn_tui.sweep([4], **SMALL),
    "Verdict": lambda: attn_tui.open(WRONG)[0, 0].diagnose().verdict,
}

# A run of each public name, and of each command: its words, exit status, and what it says on stderr.
NAMES: dict[str, Callable[[], object]] = {
    **{name: one_of(name, call) for name, call in TYPES.items()},
    "InputError": refused,
    "RULES": lambda: attn_tui.RULES["sqrt_d_k"],
    "STATISTICS": lambda: attn_tui.STATISTICS["entropy"],
    **dict.fromkeys(("call", "save", "open"), saved),
    "check": lambda: told(attn_tui.check(WRONG)),
    "claims": lambda: told(attn_tui.claims("three-matrices")),
    "compare": lambda: told(attn_tui.compare(WRONG, WRONG)),
    "cost": lambda: told(attn_tui.cost("llama-3-8b", batch=2)),
    "diagnose": lambda: told(attn_tui.diagnose(WRONG)),
    "learn": lambda: told(attn_tui.learn("q1")),
    "measure": lambda: told(attn_tui.measure(d_k=8, **SMALL)),
    "predict": lambda: told(attn_tui.predict(d_k=8, **SMALL)),
    "record": lacks("torch", lambda: attn_tui.record(None, "a.safetensors")),
    "record_jax": lacks("jax", lambda: attn_tui.record_jax("a.safetensors").__enter__()),
    "sweep": lambda: told(attn_tui.sweep([4, 16], **SMALL)),
    "testing": lacks("torch", lambda: attn_tui.testing.assert_attention_scale(cast("Any", None))),
    "watch": lambda: told(attn_tui.watch(RUN, step=3)),
}
RUNS: list[tuple[str, int, str]] = [
    ("report --batch 2", 0, ""),
    ("sweep --d-k 4,8 --batch 2 -o sweep.svg", 0, ""),
    ("sweep --d-k 4,8 --batch 2 -o x.parquet", 2, "pip install 'attn-tui[table]'"),
    ("sweep --d-k 4,8 --batch 2 -o x.png", 2, "pip install 'attn-tui[figure]'"),
    ("sweep --d-k 4,8 --batch 2 --executor dask", 2, "pip install 'attn-tui[cluster]'"),
    ("softmax", 0, ""),
    ("rules --n-keys 16 --n-queries 8 --batch 2", 0, ""),
    ("inspect {wrong} --head 0", 0, ""),
    ("examples scale-twice", 0, ""),
    ("diagnose {wrong}", 0, ""),
    ("compare {wrong} {wrong}", 0, ""),
    ("check {wrong}", 1, ""),
    ("record -o heads.safetensors -- {python} -c pass", 0, "no process imported PyTorch"),
    ("watch {run} --once", 0, ""),
    ("train --d-k 4 --rules none --steps 2 --seeds 1", 0, ""),
    ("learn q1", 0, ""),
    ("claims", 0, ""),
    ("cost", 0, ""),
    ("help", 0, ""),
    ("completion bash", 0, ""),
    ("", 0, ""),  # the report, where there is no terminal
]


def wrong_environment() -> Iterator[str]:
    """Yield what makes this an environment in which the tests would prove nothing."""
    if Path(sys.prefix) not in Path(attn_tui.__file__).parents:
        yield f"attn-tui is not installed here, but in {attn_tui.__file__}"
    needs = metadata.requires("attn-tui") or []
    name = re.compile(r"[\w-]+")
    dependencies = {name.findall(each)[0] for each in needs if "extra ==" not in each}
    installed = {found.metadata["Name"] for found in metadata.distributions()}
    for extra in {name.findall(each)[0] for each in needs if "extra ==" in each} - dependencies:
        if extra in installed:
            yield f"{extra} is installed, which only an extra needs"


def wrong_names() -> Iterator[str]:
    """Yield what is wrong with looking at public names, and with using them."""
    for name in dir(attn_tui):
        if not hasattr(attn_tui, name):
            yield f"attn_tui.{name} is missing"
    public = {name: value for name, value in inspect.getmembers(attn_tui) if not name.startswith("_")}
    if public.keys() != NAMES.keys():
        yield f"names and their runs differ: {', '.join(sorted(public.keys() ^ NAMES.keys()))}"
    for name, value in public.items():
        if callable(value) and not (value.__doc__ and inspect.signature(value)):
            yield f"attn_tui.{name} has no description"
    if "Record the attention of a model" not in pydoc.render_doc(attn_tui):
        yield "help(attn_tui) describes no record"
    exec("from attn_tui import *", {})
    for name, run in NAMES.items():
        try:
            run()
        except Exception as error:
            yield f"attn_tui.{name}: {type(error).__name__}: {error}"


def wrong_command(run: tuple[str, int, str]) -> list[str]:
    """Return what is wrong with one run of the command line, in a process of its own."""
    words, code, says = run
    program = str(Path(sys.executable).with_name("attn-tui"))
    own = {"XDG_CONFIG_HOME": str(Path.cwd()), "XDG_STATE_HOME": str(Path.cwd()), "LC_ALL": "C.UTF-8"}
    found = subprocess.run(
        [program, *(each.format(wrong=WRONG, run=RUN, python=sys.executable) for each in words.split())],
        env={**{name: value for name, value in os.environ.items() if not name.startswith("ATTN_TUI_")}, **own},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )
    if found.returncode == code and says in found.stderr and len(found.stderr.splitlines()) == bool(says):
        return []
    return [f"attn-tui {words}: exit status {found.returncode} instead of {code}: {found.stderr}"]


def wrong_commands() -> Iterator[str]:
    """Yield what is wrong with the commands and their help."""
    tried = {words.split()[0] for words, _, _ in RUNS if words}
    if tried != COMMANDS.keys():
        yield f"commands and their runs differ: {', '.join(sorted(tried ^ COMMANDS.keys()))}"
    helps = [(f"{words} --help", 0, "") for words in ("", *COMMANDS)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for wrong in pool.map(wrong_command, [*RUNS, *helps]):
            yield from wrong


def main() -> None:
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        wrong = [*wrong_environment()] or [*wrong_names(), *wrong_commands()]
        os.chdir(DATA)
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main()
