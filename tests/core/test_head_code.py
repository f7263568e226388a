"""The code of captured heads: it reads them from their file, and prints the numbers that its comments say."""

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.heads import measure_head, named_rule
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.export.code.captured.head import head_code
from attn_tui.core.export.code.program import Dialect
from printed_code import INSTALLED, compared
from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]

SHAPE = (2, 4, 6, 8)  # batch, heads, tokens, d_k


def program(path: Path, dialect: Dialect = "python", rules: tuple[str, ...] = ("none", "file"), head: int = 1) -> str:
    found = open_capture(path)
    layer = found.layers[0]
    measured = measure_head(found, layer, head, [named_rule(rule, layer) for rule in rules])
    return head_code(measured, dialect, "attn-tui inspect")


def saved(
    folder: Path, shape: tuple[int, ...] = SHAPE, keys: tuple[int, ...] = (), dtype: Any = np.float32, **layer: Any
) -> Path:
    """Save random queries and keys of one layer, with its metadata, as safetensors."""
    rng = np.random.default_rng(0)
    path = folder / "heads.safetensors"
    arrays = {
        "layers.0.attn.q": rng.standard_normal(shape).astype(dtype),
        "layers.0.attn.k": rng.standard_normal(keys or shape).astype(dtype),
    }
    sinks = layer.pop("sinks", None)
    if sinks is not None:
        arrays["layers.0.attn.sinks"] = np.array(sinks, np.float32)
    about = [{"name": "0", "index": 0, "causal": False, "scale": 0.3} | layer]
    save_file(arrays, path, {"schema": "attn-tui/qk-2", "layers": json.dumps(about)})
    return path


@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize("head", [0, 7])
def test_the_code_of_a_head_of_the_sample_prints_its_numbers(head: int, dialect: Dialect) -> None:
    assert compared(program(sample_path(), dialect, head=head)) == ""


@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize(
    "layer",
    [{}, {"causal": True}, {"softcap": 1.5}, {"sinks": [0.5, -1.0, 2.0, 0.0]}, {"prescaled": [0.5, 2.0]},
     {"causal": True, "softcap": 2.0, "sinks": [1.0, 1.0, 1.0, 1.0]}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("rules", [("none", "file"), ("rms_sqrt_d_k", "file"), ("d_k", "1/sqrt(d)")], ids=str)
def test_the_code_of_a_head_prints_its_numbers(
    layer: dict[str, Any], rules: tuple[str, ...], dialect: Dialect, tmp_path: Path
) -> None:
    assert compared(program(saved(tmp_path, **layer), dialect, rules)) == ""


@pytest.mark.parametrize("dialect", INSTALLED)
def test_grouped_queries_and_other_formats_are_read(dialect: Dialect, tmp_path: Path) -> None:
    assert compared(program(saved(tmp_path, keys=(2, 2, 6, 8)), dialect, head=3)) == ""
    assert compared(program(saved(tmp_path, dtype=ml_dtypes.bfloat16), dialect)) == ""
    assert compared(program(saved(tmp_path, dtype=np.float64), dialect)) == ""


@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize("name", ["q", "blocks.0.attn.hook_rot_q", "model.layers.0.self_attn.q_proj"])
def test_other_names_axes_and_archives_are_read(name: str, dialect: Dialect, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    shape = {"q": (4, 6, 8), "blocks.0.attn.hook_rot_q": (2, 6, 4, 8)}.get(name, (2, 6, 32))
    other = name.replace("q", "k") if name != "model.layers.0.self_attn.q_proj" else name.replace("q_proj", "k_proj")
    arrays = {each: rng.standard_normal(shape).astype(np.float32) for each in (name, other)}
    path = tmp_path / "heads.npz"
    np.savez(path, allow_pickle=False, heads=np.array(4), **arrays)
    assert compared(program(path, dialect)) == ""
