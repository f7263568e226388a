"""docs/scale.md: the example that gives the rows of a sweep labelled axes."""

import ast
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from attn_tui.tui.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs" / "scale.md").read_text("utf-8")
[EXAMPLE] = re.findall(r"```python\n(import pandas\n.*?)```", PAGE, re.S)
D_K, KEYS = (2, 8), (4, 16)


@pytest.fixture
def swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The table of a sweep over both axes, in the file that the example reads."""
    parquet: Any = pytest.importorskip("pyarrow.parquet", reason="needs pip install 'attn-tui[table]'")
    monkeypatch.chdir(tmp_path)
    size = ["--n-queries", "4", "--batch", "2", "--n-keys", "4,16"]
    assert main(["sweep", "--d-k", "2,8", *size, "-o", "sweep.parquet"]) == 0
    return parquet.read_table("sweep.parquet")


def test_the_axes_of_the_example_tell_every_row_from_the_others(swept: Any) -> None:
    [axes] = [ast.literal_eval(found) for found in re.findall(r"set_index\((\[.*?\])\)", EXAMPLE)]
    [values] = [ast.literal_eval(found) for found in re.findall(r"\)\[(\[.*?\])\]", EXAMPLE)]
    rows = [*zip(*(swept[name].to_pylist() for name in axes), strict=True)]
    statistics = list(dict.fromkeys(swept["statistic"].to_pylist()))
    assert sorted(rows) == sorted(product(KEYS, D_K, ("none", "sqrt_d_k"), statistics))
    assert {str(swept.schema.field(name).type) for name in values} == {"double"}


def test_the_example_gives_labelled_axes(swept: Any) -> None:
    for name in ("pandas", "xarray"):
        pytest.importorskip(name)
    found: dict[str, Any] = {}
    exec(EXAMPLE, found)
    values = found["values"]
    assert values.sizes == {"n_keys": 2, "d_k": 2, "scale": 2, "statistic": len({*swept["statistic"].to_pylist()})}
    row = next(
        row
        for row in swept.to_pylist()
        if (row["n_keys"], row["d_k"], row["scale"], row["statistic"]) == (16, 8, "sqrt_d_k", "entropy")
    )
    chosen = values.sel(n_keys=16, d_k=8, scale="sqrt_d_k", statistic="entropy")
    assert [float(chosen[name]) for name in ("value", "stderr", "theory")] == [
        row[name] for name in ("value", "stderr", "theory")
    ]
