"""attn-tui cost, as people and scripts meet it."""

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attn_tui.core.attention.cost import SHAPE_FIELDS, Layer, cost
from attn_tui.core.attention.presets import PRESETS
from attn_tui.core.export.cost import cost_json
from attn_tui.core.export.formats import version
from attn_tui.tui.cli import main
from attn_tui.tui.options import parse
from attn_tui.tui.requests import Cost
from attn_tui.tui.views.glyphs import UNICODE
from test_cli import Captured, printed, refusal


def asked(*words: str) -> Cost:
    request = parse(["cost", *words], UNICODE)
    assert isinstance(request, Cost)
    return request


def as_json(words: Sequence[str], capsys: Captured) -> Any:
    return json.loads(printed(["cost", *words, "--format", "json"], capsys))


@pytest.mark.parametrize(
    ("words", "layer"),
    [
        ([], Layer()),
        (["--d-model", "512", "--heads", "8"], Layer(512, 8)),
        (["--d-model", "4096", "--heads=32", "--kv-heads", "8", "--bias"], Layer(4096, 32, 8, bias="all")),
        (["--bias", "qkv", "--d-k", "96", "--layers", "3"], Layer(d_k=96, bias="qkv", layers=3)),
        (["--bias", "--layers", "3"], Layer(bias="all", layers=3)),
        (["--context", "100", "--batch", "2", "--cache-format", "float8_e5m2", "--mask", "none"],
         Layer(context=100, batch=2, cache_format="float8_e5m2", mask="none")),
        (["--preset", "gpt2"], PRESETS["gpt2"].layer),
        (["--preset", "gemma-7b", "--d-k", "192"], Layer(3072, 16, 16, 192, layers=28, context=8192)),
    ],
)  # fmt: skip
def test_words_make_a_layer(words: list[str], layer: Layer) -> None:
    assert asked(*words).layer == layer


def test_the_json_has_every_figure(capsys: Captured) -> None:
    found = as_json(["--preset", "llama-3-8b"], capsys)
    assert found["schema"] == "attn-tui/cost-1"
    assert found["version"] == version()
    assert found["preset"] == {
        "name": "llama-3-8b",
        "model": "Llama 3 8B",
        "source": "meta-llama/Meta-Llama-3-8B, config.json",
        "note": None,
        "changed": False,
    }
    assert set(found["layer"]) == {field.name for field in SHAPE_FIELDS} | {"kind", "scale"}
    assert (found["layer"]["d_k"], found["layer"]["kv_heads"], found["layer"]["kind"]) == (128, 8, "grouped-query")
    assert found["layer"]["scale"] == pytest.approx(0.08838834764831845)
    matrices = {matrix["name"]: matrix for matrix in found["parameters"]["matrices"]}
    assert matrices["W_k"] == {
        "name": "W_k", "shape": [4096, 1024], "weights": 4_194_304, "bias": 0, "parameters": 4_194_304,
    }  # fmt: skip
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


def test_without_a_preset_there_is_none(capsys: Captured) -> None:
    assert as_json([], capsys)["preset"] is None
    assert as_json(["--preset", "gpt2", "--heads", "6"], capsys)["preset"]["changed"]


@pytest.mark.parametrize("words", [[], ["--preset", "qwen2.5-7b", "--batch", "3"]])
def test_every_format_has_the_same_figures(words: list[str], capsys: Captured) -> None:
    found = as_json(words, capsys)
    rows = list(csv.DictReader(io.StringIO(printed(["cost", *words, "--format", "csv"], capsys))))
    values = {row["quantity"]: int(row["value"]) for row in rows}
    assert len(values) == len(rows) == 4 + 4 + 8
    for matrix in found["parameters"]["matrices"]:
        assert values[f"parameters_{matrix['name'].lower()}"] == matrix["parameters"]
    assert values["parameters_layer"] == found["parameters"]["layer"]
    assert values["parameters_all_layers"] == found["parameters"]["all_layers"]
    assert values["kv_cache_per_token"] == found["kv_cache"]["bytes_per_token"]
    assert values["kv_cache"] == found["kv_cache"]["bytes"]
    for when, flops in found["flops"].items():
        for what in ("projections", "scores", "weighted_sum", "total"):
            assert values[f"flops_{when}_{what}"] == flops[what]
    for row in rows:
        assert {name: row[name] for name in ("d_model", "kv_heads", "d_k")} == {
            name: str(found["layer"][name]) for name in ("d_model", "kv_heads", "d_k")
        }
        assert row["preset"] == ("qwen2.5-7b" if words else "")
    markdown = printed(["cost", *words, "--format", "markdown"], capsys)
    table = printed(["cost", *words], capsys)
    for name, value in values.items():
        assert f"| {value:,} |" in markdown, name
        assert not name.startswith("parameters_layer") or f"{value:,}" in table


def test_the_table_is_what_the_view_shows(capsys: Captured) -> None:
    table = printed(["cost", "--preset", "gpt-oss-120b"], capsys)
    assert table.startswith("gpt-oss 120B\nSource: openai/gpt-oss-120b, config.json.\n")
    assert re.search(r"a token +2 × 8 × 64 × 2 bytes × 36 layers +72 KiB", table)
    assert all(len(line) <= 80 for line in table.splitlines())
    ascii_only = printed(["cost", "--preset", "gpt-oss-120b", "--ascii"], capsys)
    assert ascii_only.isascii()
    assert "2 x 8 x 64 x 2 bytes x 36 layers" in ascii_only


def test_a_file_takes_the_result(tmp_path: Path, capsys: Captured) -> None:
    target = tmp_path / "cost.json"
    assert main(["cost", "--preset", "gpt2", "--format", "json", "-o", str(target)]) == 0
    assert capsys.readouterr() == ("", "")
    assert target.read_text() == cost_json(cost(PRESETS["gpt2"].layer), PRESETS["gpt2"])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--heads", "7"], "heads: 7 do not divide d_model 512; give d_k as well"),
        (["--kv-heads", "3"], "key heads: 3 do not divide 8 heads"),
        (["--preset", "llama-3-8b", "--heads", "4"], "key heads: 8 do not divide 4 heads"),
        (["--preset", "llama"], "--preset: 'llama' is not accepted; it takes one of bert-base, "),
        (["--d-model", "0"], "--d-model: '0' is not accepted; it takes a whole number from 1 to 1048576"),
        (["--d-k", "1.5"], "--d-k: '1.5' is not accepted"),
        (["--context", "1e9"], "--context: '1e9' is not accepted"),
        (["--cache-format", "int3"], "--cache-format: 'int3' is not accepted; it takes one of float64, "),
        (["--bias", "some"], "--bias: 'some' is not accepted; it takes one of none, qkv, all"),
        (["--layers", "9" * 5000], "--layers"),
        (["--model-d", "4"], "there is no option --model-d"),
        (["llama-3-8b"], "'llama-3-8b' is one word too many"),
        (["-o", "no/such/file"], "there is no directory"),
    ],
)
def test_what_is_not_accepted_is_one_line(words: list[str], reason: str, capsys: Captured) -> None:
    assert reason in refusal(["cost", *words], capsys)


def test_help_lists_every_option_and_every_preset(capsys: Captured) -> None:
    shown = printed(["cost", "--help"], capsys)
    assert all(len(line) <= 80 for line in shown.splitlines())
    for field in SHAPE_FIELDS:
        assert field.option in shown
    for preset in PRESETS.values():
        assert re.search(rf"^  {re.escape(preset.name)} +{re.escape(preset.model)}$", shown, re.M)
    examples = re.findall(r"^  attn-tui (cost.*?)(?:   .*| \|.*)?$", shown, re.M)
    assert len(examples) == 5
    for example in examples:
        assert main(example.split()) == 0


def test_counting_loads_no_numpy() -> None:
    script = (
        "import sys; from attn_tui.core.attention.cost import Layer, cost; "
        "from attn_tui.core.attention.presets import PRESETS; cost(Layer()); "
        "print([m for m in ('textual', 'numpy', 'rich') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == ["[]"]
