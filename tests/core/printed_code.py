"""Run the programs that attn-tui writes, and compare what they print with the expected values in their comments."""

import ast
import contextlib
import importlib.util
import io
import math
import re
import warnings
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple, cast, get_args

import pytest
from attn_tui.core.program.text import Dialect

INSTALLED = [
    pytest.param(each, marks=pytest.mark.skipif(each == "torch" and not importlib.util.find_spec("torch"),
                                                reason="PyTorch programs need PyTorch: make test-torch"))
    for each in get_args(Dialect)
]  # fmt: skip


class Expected(NamedTuple):
    """A value in a comment, and its standard error."""

    value: float
    stderr: float


def printed_by(program: str) -> list[str]:
    """Run a program in a namespace of its own, and return the lines that it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of infinities and NaN in float16
        namespace: dict[str, Any] = {"__name__": "program"}
        exec(compile(program, "program", "exec"), namespace)
        if hasattr(namespace.get("file"), "close"):  # an archive of NumPy
            namespace["file"].close()
    return out.getvalue().splitlines()


def expected_in(program: str) -> Mapping[str, list[Expected]]:
    """Return the values in the comments at the end of a program."""
    _, *lines = program[program.index("# expected") :].splitlines()
    found: dict[str, list[Expected]] = {}
    for line in lines:
        name, *_ = re.split("  +", line.removeprefix("# "))
        values = re.findall(r"([-+.\de]+|nan)(?: ± ([-+.\de]+))?", line.removeprefix(f"# {name}"))
        found[name] = [Expected(float(value), float(stderr or 0)) for value, stderr in values]
    return found


def lines_of(program: str) -> int:
    """Return the number of lines of a program, without blank ones and comments."""
    return len([line for line in program.splitlines() if line.strip() and not line.startswith("#")])


def assert_laid_out(program: str) -> None:
    """Two empty lines surround each function, and one at most is elsewhere."""
    body, lines = ast.parse(program).body, program.splitlines()
    for one, other in pairwise(body):
        between = lines[cast(int, one.end_lineno) : other.lineno - 1]
        around = isinstance(one, ast.FunctionDef) or isinstance(other, ast.FunctionDef)
        assert between.count("") == 2 if around else between.count("") < 2


def compared(program: str, *, least: float = 2e-5) -> str:
    """Run a program, and return what it prints that is not what its comments say; empty if all is.

    `least` is the difference that rounding may make; in values of four digits it is half a unit of the last.
    """
    expected, lines = expected_in(program), printed_by(program)
    assert expected
    assert_laid_out(program)
    assert len(expected) == len(lines)
    for line, (name, wanted) in zip(lines, expected.items(), strict=True):
        assert line.startswith(f"{name}  ")
        found = [float(word) for word in line.removeprefix(name).split()]
        assert len(found) == len(wanted)
        for value, (exact, stderr) in zip(found, wanted, strict=True):
            if math.isnan(exact) and math.isnan(value):
                continue
            allowed = max(1e-3 * abs(exact), least) + (stderr if name == "weight lost" else 0)
            if not abs(value - exact) <= allowed:
                return f"{name}: {value}, not {exact} ± {stderr}"
    return ""
