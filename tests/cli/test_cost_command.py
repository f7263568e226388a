"""attn-tui cost."""

import csv
import io
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from attn_tui.core import VERSION
from attn_tui.core.attention.cost import SHAPE_FIELDS, LayerShape
from attn_tui.core.attention.presets import PRESETS
from cases import for_each
from cli_runner import Captured, printed, request_of


def as_json(words: Sequence[str], capsys: Captured) -> Any:
    return json.loads(printed(["cost", *words, "--format", "json"], capsys))


@for_each(
    ("words", "layer"),
    [
        ("", LayerShape()),
        ("--d-model 512 --heads 8", LayerShape(512, 8)),
        ("--d-model 4096 --heads=32 --kv-heads 8 --bias", LayerShape(4096, 32, 8, bias="all")),
        ("--bias qkv --d-k 96 --layers 3", LayerShape(d_k=96, bias="qkv", layers=3)),
        ("--bias --layers 3", LayerShape(bias="all", layers=3)),
        (
            "--context 100 --batch 2 --cache-format float8_e5m2 --mask none",
            LayerShape(context=100, batch=2, cache_format="float8_e5m2", mask="none"),
        ),
        ("--preset gpt2", PRESETS["gpt2"].layer),
        ("--model gemma-7b --d-k 192", LayerShape(3072, 16, 16, 192, layers=28, context=8192)),
    ],
)
def test_options_make_a_layer(words: str, layer: LayerShape) -> None:
    assert request_of("cost", *words.split()).question.layer == layer


def test_the_json_has_every_figure(capsys: Captured) -> None:
    found = as_json(["--model", "llama-3-8b"], capsys)
    assert (found["schema"], found["version"]) == ("attn-tui/cost-1", VERSION)
    assert found["preset"] == {
        "name": "llama-3-8b",
        "model": "Llama 3 8B",
        "source": "meta-llama/Meta-Llama-3-8B, config.json",
        "note": None,
        "changed": False,
    }
    layer = found["layer"]
    assert set(layer) == {field.name for field in SHAPE_FIELDS} | {"kind", "scale_rule", "scale"}
    assert (layer["d_k"], layer["kv_heads"], layer["kind"]) == (128, 8, "grouped-query")
    assert (layer["scale_rule"], layer["scale"]) == ("sqrt_d_k", pytest.approx(128**-0.5))
    matrices = {matrix.pop("name"): matrix for matrix in found["parameters"]["matrices"]}
    assert matrices["W_k"] == {"shape": [4096, 1024], "weights": 2**22, "bias": 0, "parameters": 2**22}
    assert found["parameters"]["all_layers"] == 1_342_177_280
    assert found["kv_cache"] == {"bytes_per_number": 2, "bytes_per_token": 131_072, "bytes": 2**30}
    assert found["flops"]["next_token"] == {
        "projections": 2_684_354_560,
        "scores": 2_147_483_648,
        "weighted_sum": 2_147_483_648,
        "total": 6_979_321_856,
        "pairs": 8192,
    }
    assert found["flops"]["whole_context"]["pairs"] == 8192 * 8193 // 2


def test_the_json_says_whether_a_preset_was_changed(capsys: Captured) -> None:
    usual = as_json([], capsys)
    assert (usual["preset"], usual["layer"]["scale"]) == (None, usual["layer"]["d_k"] ** -0.5)
    assert as_json(["--model", "gpt2", "--heads", "6"], capsys)["preset"]["changed"]


@pytest.mark.parametrize("words", [[], ["--model", "qwen2.5-7b", "--batch", "3"]])
def test_every_format_has_the_same_figures(words: list[str], capsys: Captured) -> None:
    found = as_json(words, capsys)
    expected = {f"parameters_{each['name'].lower()}": each["parameters"] for each in found["parameters"]["matrices"]}
    expected |= {f"parameters_{name}": found["parameters"][name] for name in ("layer", "all_layers")}
    expected |= {"kv_cache_per_token": found["kv_cache"]["bytes_per_token"], "kv_cache": found["kv_cache"]["bytes"]}
    for when, flops in found["flops"].items():
        expected |= {f"flops_{when}_{what}": number for what, number in flops.items() if what != "pairs"}
    rows = list(csv.DictReader(io.StringIO(printed(["cost", *words, "--format", "csv"], capsys))))
    assert [(row["quantity"], int(row["value"])) for row in rows] == [*expected.items()]
    for row in rows:
        assert all(row[name] == str(found["layer"][name]) for name in ("d_model", "kv_heads", "d_k"))
        assert row["preset"] == ("qwen2.5-7b" if words else "")
    markdown = printed(["cost", *words, "--format", "markdown"], capsys)
    for name, value in expected.items():
        assert f"| {value:,} |" in markdown, name
    assert f"{expected['parameters_layer']:,}" in printed(["cost", *words], capsys)


def test_the_table_says_how_figures_come_about(capsys: Captured) -> None:
    table = printed(["cost", "--model", "gpt-oss-120b"], capsys)
    assert table.startswith("gpt-oss 120B\nSource: openai/gpt-oss-120b, config.json; openai/gpt-oss,\n")
    assert "s = 32 multiplies scores by 0.2267, not 1/√d_k, which is 0.125." in " ".join(table.split())
    assert re.search(r"per token +2 × 8 × 64 × 2 bytes × 36 layers +72 KiB", table)
    assert all(len(line) <= 80 for line in table.splitlines())
    ascii_only = printed(["cost", "--model", "gpt-oss-120b", "--ascii"], capsys)
    assert ascii_only.isascii()
    assert "2 x 8 x 64 x 2 bytes x 36 layers" in ascii_only
