"""The code of captured heads: it reads them from their file, and prints the numbers that its comments say."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.heads import measure_head, named_rule
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.captures.rules import rule_of
from attn_tui.core.captures.settings import HeadSetting
from attn_tui.core.program.captured import head_code
from attn_tui.core.program.text import Dialect, NoCodeError
from cases import for_each
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
    arrays["layers.0.attn.q"] = (arrays["layers.0.attn.q"] * layer.pop("scale_of_q", 1)).astype(dtype)
    if layer.pop("bias", None):
        arrays["layers.0.attn.bias"] = rng.standard_normal((1, shape[1], shape[2], shape[2])).astype(np.float32)
    if layer.pop("alibi_slopes", None):
        arrays["layers.0.attn.alibi_slopes"] = np.linspace(0.1, 0.5, shape[1]).astype(np.float32)
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
@for_each(
    "layer",
    [{}, {"causal": True}, {"softcap": 1.5}, {"sinks": [0.5, -1.0, 2.0, 0.0]}, {"prescaled": [0.5, 2.0]},
     {"causal": True, "softcap": 2.0, "sinks": [1.0, 1.0, 1.0, 1.0]}],
)  # fmt: skip
@for_each("rules", [("none", "file"), ("rms_sqrt_d_k", "file"), ("d_k", "1/sqrt(d)")])
def test_the_code_of_a_head_prints_its_numbers(
    layer: dict[str, Any], rules: tuple[str, ...], dialect: Dialect, tmp_path: Path
) -> None:
    assert compared(program(saved(tmp_path, **layer), dialect, rules)) == ""


LOW = {"precision": "float16", "arithmetic": "eager"}
SETTINGS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"precision": "float16"}, {}),
    ({}, LOW),
    (LOW | {"scale": "quarter"}, LOW),
    ({"precision": "bfloat16", "arithmetic": "eager", "scale": "rms_sqrt_d_k"}, {"precision": "bfloat16"}),
    ({"precision": "float8_e4m3fn"}, {"precision": "float8_e5m2", "scale": "ssmax"}),
    ({"precision": "float32"}, {"softcap": 0.4}),
    (LOW | {"softcap": 0.0}, LOW | {"scale": "ssmax"}),
]


def program_of(path: Path, settings: Sequence[dict[str, Any]], dialect: Dialect, head: int = 1) -> str:
    found = open_capture(path)
    layer = found.layers[0]
    rules = [rule_of(HeadSetting(**each), layer) for each in settings]
    return head_code(measure_head(found, layer, head, rules), dialect, "attn-tui inspect")


@pytest.mark.parametrize("dialect", INSTALLED)
@for_each(
    "layer",
    [{}, {"causal": True, "softcap": 2.0, "sinks": [1.0, 1.3, 1.0, 1.0]}, {"bias": 1}, {"alibi_slopes": 1}],
)
@for_each("settings", SETTINGS)
def test_the_code_of_a_head_in_number_formats_prints_its_numbers(
    settings: Sequence[dict[str, Any]], layer: dict[str, Any], dialect: Dialect, tmp_path: Path
) -> None:
    assert compared(program_of(saved(tmp_path, **layer), settings, dialect)) == ""


@pytest.mark.parametrize("dialect", INSTALLED)
def test_the_code_of_a_head_with_nan_rows_prints_its_numbers(dialect: Dialect, tmp_path: Path) -> None:
    path = saved(tmp_path, shape=(1, 2, 32, 64), scale_of_q=4000.0)
    assert "NaN rows" in program_of(path, [LOW | {"scale": "none"}, LOW], dialect)
    assert compared(program_of(path, [LOW | {"scale": "none"}, LOW], dialect)) == ""


@pytest.mark.parametrize(
    ("layer", "setting", "reason"),
    [
        ({"bias": 1, "alibi_slopes": 1}, LOW, "it adds two biases in float16"),
        ({"prescaled": [0.5, 2.5]}, LOW | {"scale": "quarter"}, "q and k as stored have a factor"),
        ({"causal": True, "scale_of_q": 30000.0}, LOW, "its scores overflow float16"),
    ],
    ids=str,
)
def test_formats_that_no_short_program_computes_are_refused_in_one_line(
    layer: dict[str, Any], setting: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    path = saved(tmp_path, **layer)
    with pytest.raises(NoCodeError, match=reason):
        program_of(path, [setting, {}], "python")
    assert program_of(path, [{}, {"scale": "none"}], "python")


@pytest.mark.parametrize("dialect", INSTALLED)
def test_grouped_queries_and_other_formats_are_read(dialect: Dialect, tmp_path: Path) -> None:
    assert compared(program(saved(tmp_path, keys=(2, 2, 6, 8)), dialect, head=3)) == ""
    assert compared(program(saved(tmp_path, dtype=ml_dtypes.bfloat16), dialect)) == ""
    assert compared(program(saved(tmp_path, dtype=np.float64), dialect)) == ""


@pytest.mark.parametrize("dialect", INSTALLED)
@for_each("name", ["q", "blocks.0.attn.hook_rot_q", "model.layers.0.self_attn.q_proj"])
def test_other_names_axes_and_archives_are_read(name: str, dialect: Dialect, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    shape = {"q": (4, 6, 8), "blocks.0.attn.hook_rot_q": (2, 6, 4, 8)}.get(name, (2, 6, 32))
    other = name.replace("q", "k") if name != "model.layers.0.self_attn.q_proj" else name.replace("q_proj", "k_proj")
    arrays = {each: rng.standard_normal(shape).astype(np.float32) for each in (name, other)}
    path = tmp_path / "heads.npz"
    np.savez(path, allow_pickle=False, heads=np.array(4), **arrays)
    assert compared(program(path, dialect)) == ""
