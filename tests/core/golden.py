"""The references of data/golden.npz, made by automatic differentiation in float64."""

import json
from pathlib import Path
from typing import Any

import numpy as np

GOLDEN = np.load(Path(__file__).parents[1] / "data" / "golden.npz")
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
