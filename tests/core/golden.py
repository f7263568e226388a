"""Numbers in files: data/golden.npz, made by automatic differentiation in float64, and data/learning.csv."""

import csv
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).parents[1] / "data"
GOLDEN = np.load(DATA / "golden.npz")
CASES: list[dict[str, Any]] = json.loads(str(GOLDEN["manifest"]))


def reference(case: dict[str, Any], name: str) -> Any:
    """One array of a case, None if it has none; a string stands for an array shared with another case."""
    if f"{case['case']}.{name}" not in GOLDEN:
        return None
    value = GOLDEN[f"{case['case']}.{name}"]
    return GOLDEN[str(value)[1:]] if value.dtype.kind == "U" else value


def cases(kind: str) -> list[dict[str, Any]]:
    """The cases whose names begin with this."""
    return [case for case in CASES if case["case"].startswith(kind)]


@cache
def learning_numbers() -> dict[str, list[dict[str, str]]]:
    """The rows of each step, question and claim: a number that its texts name, given or found, and what is claimed.

    They are those of the day when each was checked against an oracle, in test_learning_figures or by the guide.
    """
    rows: dict[str, list[dict[str, str]]] = {}
    with (DATA / "learning.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            rows.setdefault(row["item"], []).append(row)
    return rows
