"""attn-tui inspect: every head of a capture, or one of them, also of extreme files."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.tui.cli.main import main
from cases import for_each
from cli_runner import SAMPLE, WRONG, Captured, assert_refused, printed

HEAD = ["inspect", SAMPLE, "--layer", "0", "--head", "1"]


def capture_file(folder: Path, q: npt.NDArray[np.float32]) -> str:
    """A file of these queries, [head, token, d_k], and keys of ones."""
    file = folder / "capture.npz"
    np.savez(file, q=q, k=np.ones_like(q))
    return str(file)


def one_head(folder: Path) -> str:
    return capture_file(folder, np.linspace(-1, 1, 24, dtype=np.float32).reshape(1, 6, 4))


def test_every_head_is_listed_in_every_format(capsys: Captured) -> None:
    heads = json.loads(printed(["inspect", SAMPLE, "--format", "json"], capsys))["heads"]
    rows = list(csv.DictReader(io.StringIO(printed(["inspect", SAMPLE, "--format", "csv"], capsys))))
    table = printed(["inspect", SAMPLE], capsys)
    markdown = printed(["inspect", SAMPLE, "--format", "markdown"], capsys)
    assert [(h["layer"], h["head"]) for h in heads] == [(layer, head) for layer in range(6) for head in range(12)]
    assert {h["scale"]["rule"] for h in heads} == {"file"}
    assert len(rows) == len(heads) * len(STATISTICS)
    lines = [line.split() for line in table.splitlines() if re.match(r" +\d+ +\d+ ", line)]
    cells = [line.split("|") for line in markdown.splitlines() if re.match(r"\| \d", line)]
    for head, line, cell in zip(heads, lines, cells, strict=True):
        std, dead = (head["measured"][name]["value"] for name in ("logit_std", "dead_rows"))
        assert [int(line[0]), int(line[1])] == [int(cell[1]), int(cell[2])] == [head["layer"], head["head"]]
        assert float(line[2]) == pytest.approx(std, abs=0.005)
        assert float(cell[5]) == pytest.approx(std, rel=1e-3)
        assert float(line[9]) == pytest.approx(100 * dead, abs=0.05)
        assert line[-1] == cell[-2].strip() == head["status"]
    assert lines[2][-1] == "one-hot"
    assert lines[12][-1] == "sink"
    assert "sentence-transformers/all-MiniLM-L6-v2" in table


def test_one_head_is_shown_as_the_app_shows_it(capsys: Captured) -> None:
    words = ["inspect", SAMPLE, "--layer", "3", "--head", "5"]
    table = printed(words, capsys)
    assert re.search(r"unscaled × 1 .*× 0.177", table)
    assert "attention weights" in table
    heads = json.loads(printed([*words, "--format", "json"], capsys))["heads"]
    assert [(h["layer"], h["head"], h["scale"]["rule"]) for h in heads] == [(3, 5, "none"), (3, 5, "file")]


def test_layer_takes_a_number_or_a_name_and_head_a_number(capsys: Captured) -> None:
    number, name = (
        printed(["inspect", SAMPLE, "--layer", layer, "--format", "csv"], capsys)
        for layer in ("3", "encoder.layer.3.attention.self")
    )
    assert name == number
    assert {row["layer"] for row in csv.DictReader(io.StringIO(number))} == {"3"}
    heads = json.loads(printed(["inspect", SAMPLE, "--head", "5", "--format", "json"], capsys))["heads"]
    assert [(h["layer"], h["head"]) for h in heads] == [(layer, 5) for layer in range(6)]


def test_the_only_head_of_a_file_is_shown_in_full_with_notes_on_the_file(tmp_path: Path, capsys: Captured) -> None:
    assert main(["inspect", one_head(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "unscaled × 1" in out
    assert "scale" in err
    assert all(line.startswith("attn-tui: note: ") for line in err.splitlines())


@pytest.mark.parametrize("command", [[], ["inspect"]], ids=["no command", "inspect"])
def test_axes_says_which_axis_is_which(command: list[str], tmp_path: Path, capsys: Captured) -> None:
    assert main([*command, one_head(tmp_path), "--axes", "token,head,d_k"]) == 0
    assert len(re.findall(r"^ +0 +\d ", capsys.readouterr().out, re.M)) == 6


def test_what_a_rule_needs_and_the_file_does_not_tell_is_an_option(tmp_path: Path, capsys: Captured) -> None:
    file = one_head(tmp_path)
    for rule, option in (("yarn", "--context-factor"), ("cosine_learned", "--temperature")):
        assert main(["inspect", file, "--scale", rule]) == 2
        assert option in capsys.readouterr().err
    for told, multiplier in (
        (["--scale", "yarn", "--context-factor", "4"], (1 + 0.1 * np.log(4)) ** 2 / 2),
        (["--scale", "inverse_layer", "--layer-index", "4"], 0.1),
        (["--scale", "cosine_learned", "--temperature", "31.5"], 31.5),
    ):
        assert main(["inspect", file, *told, "--format", "json"]) == 0
        [own, told_one] = json.loads(capsys.readouterr().out)["heads"]
        assert own["scale"]["rule"] == "sqrt_d_k", "the file has no scale"
        assert told_one["scale"]["multiplier"] == pytest.approx(multiplier)
    assert main(["inspect", file, "--scale", "llama4_position", "--position", "-1"]) == 2
    assert "--position: " in capsys.readouterr().err
    assert main(["inspect", file, "--position", "7"]) == 0
    assert "--position" in capsys.readouterr().err


@for_each(
    ("options", "rules"),
    [
        ([], ["none", "file"]),
        (["--scale", "d_k"], ["file", "d_k"]),
        (["--scale", "d_k", "--against", "unscaled"], ["none", "d_k"]),
        (["--against", "log(n)/sqrt(d)"], ["log(n)/sqrt(d)", "file"]),
        (["--scale", "file", "--against", "file"], ["file", "file"]),
        (["--against", "scale=d_k"], ["d_k", "file"]),
    ],
)
def test_against_is_the_scale_of_a_and_scale_that_of_b(
    options: list[str], rules: list[str], capsys: Captured
) -> None:
    heads = json.loads(printed([*HEAD, *options, "--format", "json"], capsys))["heads"]
    assert [each["scale"]["rule"] for each in heads] == rules


def test_against_is_of_a_single_head(capsys: Captured) -> None:
    for options in ([], ["--layer", "0", "--head", "1", "--rules", "all"], ["--worst", "2"]):
        assert_refused(["inspect", SAMPLE, "--against", "d_k", *options], "--against: ", capsys)
    assert main([*HEAD, "--against", "sqrt(n"]) == 2
    assert "^" in capsys.readouterr().err
    assert_refused([*HEAD, "--against", "mask=causal"], "'mask' … scale, multiplier, precision", capsys)


@pytest.mark.parametrize(
    ("options", "apart"),
    [
        (["--against", "precision=float16"], [{"precision": "float16", "arithmetic": "fused"}, {}]),
        (
            ["--precision", "bfloat16", "--arithmetic", "eager"],
            [{"precision": "bfloat16", "arithmetic": "eager"}] * 2,
        ),
        (
            ["--precision", "float8_e4m3fn", "--against", "precision=float64,softcap=3"],
            [{"softcap": 3.0}, {"precision": "float8_e4m3fn", "arithmetic": "fused"}],
        ),
        (["--softcap", "0.5", "--against", "file,softcap=file"], [{}, {"softcap": 0.5}]),
        (["--precision", "float32"], [{"precision": "float32"}] * 2),
    ],
    ids=str,
)
def test_every_format_of_output_says_in_which_number_format_a_and_b_are(
    options: list[str], apart: list[dict[str, object]], capsys: Captured
) -> None:
    heads = json.loads(printed([*HEAD, *options, "--format", "json"], capsys))["heads"]
    assert [head.get("apart", {}) for head in heads] == apart
    rows = list(csv.DictReader(io.StringIO(printed([*HEAD, *options, "--format", "csv"], capsys))))
    both = [row for row in rows if row["statistic"] == "entropy"]
    for row, own, head in zip(both, apart, heads, strict=True):
        assert float(row["value"]) == head["measured"]["entropy"]["value"]
        usual = {"precision": "float64", "arithmetic": "", "softcap": "0.0"}
        for name in {name for each in apart for name in each}:
            assert row[name] == str(own.get(name, usual[name]))
    for text in (printed([*HEAD, *options], capsys), printed([*HEAD, *options, "--format", "markdown"], capsys)):
        for word in {str(each) for own in apart for each in own.values() if isinstance(each, str)} - {"fused"}:
            assert word.replace("e4m3fn", "e4m3").replace("_", " ") in text


def test_a_list_of_heads_takes_a_number_format(capsys: Captured) -> None:
    words = ["inspect", SAMPLE, "--layer", "0", "--precision", "bfloat16", "--format", "csv"]
    rows = list(csv.DictReader(io.StringIO(printed(words, capsys))))
    assert {(row["precision"], row["arithmetic"]) for row in rows} == {("bfloat16", "fused")}
    assert all(row["value"] for row in rows if row["statistic"] in ("weight_error", "weight_lost", "nan_rows"))
    assert "bfloat16" in printed(words[:-2], capsys)
    assert "bfloat16" in printed([*words[:-1], "markdown"], capsys)


def test_an_option_without_effect_is_said(capsys: Captured) -> None:
    assert main([*HEAD, "--arithmetic", "eager", "--against", "multiplier=2"]) == 0
    assert re.findall(r"--\S+(?: multiplier)?", capsys.readouterr().err) == ["--arithmetic", "--against multiplier"]


def test_an_option_that_has_an_effect_on_a_alone_is_not_said_to_have_none(capsys: Captured) -> None:
    one = ["inspect", SAMPLE, "--layer", "0", "--head", "0", "--arithmetic", "eager"]
    for others in (
        ["--against", "precision=bfloat16"],
        ["--precision", "bfloat16", "--against", "precision=float32"],
    ):
        assert main([*one, *others]) == 0
        assert "--arithmetic" not in capsys.readouterr().err
    assert main([*one, "--against", "unscaled"]) == 0
    assert "--arithmetic has no effect" in capsys.readouterr().err


def test_mask_true_says_what_a_mask_means(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "capture.npz"
    rng = np.random.default_rng(0)
    mask = np.array([[1, 0, 1, 1, 0, 1]], np.bool_)
    np.savez(file, q=rng.normal(size=(1, 1, 6, 4)), k=rng.normal(size=(1, 1, 6, 4)), attn_mask=mask)
    assert main(["inspect", str(file)]) == 2
    assert "--mask-true" in capsys.readouterr().err
    found: list[float] = []
    for meaning in ("visible", "hidden"):
        assert main(["inspect", str(file), "--mask-true", meaning, "--format", "json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["heads"][0]["measured"]["entropy"]["value"])
    assert found[0] <= np.log(4)
    assert found[1] <= np.log(2)


def test_what_is_not_used_is_printed(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "capture.npz"
    q = np.random.default_rng(0).normal(size=(1, 1, 6, 4))
    tensors = {"layers.0.attn.q": q, "layers.0.attn.k": q, "layers.0.mlp.act": q}
    np.savez(file, **tensors)  # pyright: ignore[reportArgumentType]
    assert main(["inspect", str(file), "--format", "json"]) == 0
    streams = capsys.readouterr()
    assert json.loads(streams.out)["file"]["unused"] == ["layers.0.mlp.act"]
    assert "'layers.0.mlp.act'" in streams.err


def test_every_rule_is_replayed(capsys: Captured) -> None:
    words = ["inspect", SAMPLE, "--layer", "0", "--head", "2", "--rules", "all"]
    table = printed(words, capsys)
    assert "file = sqrt_d_k" in table
    assert "e−0" in table
    assert not re.search(r"[ e]-\d", table)
    assert all(rule in table for rule in ("layer_norm_sqrt_d_k", "yarn", "deepseek_v2", "longrope"))
    [head] = json.loads(printed([*words, "--format", "json"], capsys))["heads"]
    lines = list(csv.DictReader(io.StringIO(printed([*words, "--format", "csv"], capsys))))
    assert [row["rule"] for row in lines] == [rule for each in head["replayed"] for rule in each["rules"]]
    whole = printed(["inspect", SAMPLE, "--layer", "0", "--rules", "all"], capsys)
    assert whole.split("\n", 1)[0].split()[0] == "rule"
    assert_refused([*words, "--scale", "none"], "--scale", capsys)


def test_worst_ranks_heads_and_tells_why(capsys: Captured) -> None:
    words = ["inspect", SAMPLE, "--worst", "5"]
    heads = json.loads(printed([*words, "--format", "json"], capsys))["heads"]
    ratios = [head["measured"]["saturation"]["value"] for head in heads]
    assert len(heads) == 5
    assert ratios == sorted(ratios, reverse=True)
    assert (heads[0]["layer"], heads[0]["head"], heads[0]["status"]) == (0, 2, "one-hot")
    assert re.match(r"\|q\|.* 3\.5 ×", heads[0]["because"][0])
    table, markdown = printed(words, capsys), printed([*words, "--format", "markdown"], capsys)
    for head in heads:
        reasons = "; ".join(head["because"])
        [line] = [line for line in table.splitlines() if line.startswith(f" {head['layer']}/{head['head']} ")]
        assert f"{head['measured']['saturation']['value']:.2f}" in line
        assert head["status"] in line
        assert line.replace("−", "-").endswith(reasons)
        assert reasons.replace("|", "\\|") in markdown
    rows = list(csv.DictReader(io.StringIO(printed([*words, "--format", "csv"], capsys))))
    assert list(dict.fromkeys((row["layer"], row["head"]) for row in rows)) == [
        (str(head["layer"]), str(head["head"])) for head in heads
    ]
    one = printed(["inspect", SAMPLE, "--layer", "0", "--head", "2", "--worst", "1"], capsys)
    assert heads[0]["because"][0] in one, "compared with the other heads of the layer"


def test_worst_calls_a_head_wrong_whose_scale_the_evidence_contradicts(capsys: Captured) -> None:
    words = ["inspect", WRONG, "--worst", "3"]
    table, markdown = printed(words, capsys), printed([*words, "--format", "markdown"], capsys)
    assert table.count(" wrong     s") == markdown.count("| wrong | s") == 3
    heads = json.loads(printed([*words, "--format", "json"], capsys))["heads"]
    assert {head["status"] for head in heads} == {"sink"}, "in JSON it is computed from the numbers"


def extreme_file(folder: Path, sizes: tuple[float, ...] = (1.0,), **metadata: Any) -> str:
    """A file in float64 with a head of each size."""
    q = np.random.default_rng(0).normal(size=(len(sizes), 5, 4))
    arrays: dict[str, Any] = {"q": q * np.array(sizes)[:, np.newaxis, np.newaxis], "k": q, "causal": False}
    np.savez(folder / "extreme.npz", **arrays, **metadata)
    return str(folder / "extreme.npz")


@for_each("words", [(), ("--format", "json"), ("--layer", "0", "--head", "0"), ("--format", "csv")])
@for_each("metadata", [{"scale": 1e308}, {"scale": 5e-324}, {"scale": 1.0, "softcap": 5e-324}])
def test_an_extreme_scale_or_soft_cap_takes_one_line(
    tmp_path: Path, metadata: dict[str, Any], words: tuple[str, ...], capsys: Captured
) -> None:
    assert main(["inspect", extreme_file(tmp_path, **metadata), *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    *notes, line = err.splitlines()
    assert re.search(
        r"extreme\.npz: layer 0, head 0: logits (over|under)flow float64: the (scale|soft-cap) must", line
    )
    assert all("note: " in note for note in notes)


def test_heads_that_overflow_are_left_out_and_the_others_printed(tmp_path: Path, capsys: Captured) -> None:
    path = extreme_file(tmp_path, (1.0, 1e308, 1e-320, 1e20), scale=0.5)
    for form in ("table", "markdown", "csv", "json"):
        assert main(["inspect", path, "--format", form]) == 2
        out, err = capsys.readouterr()
        assert "no keys" not in out
        assert not re.search(r"\bnan\b", out.lower())
        assert "head 1: logits overflow float64" in err.splitlines()[-1]
        assert err.endswith("(2 of 4 heads are left out)\n")
        if form == "json":
            heads = json.loads(out)["heads"]
            assert [head["head"] for head in heads] == [0, 3]
            assert all(head["measured"]["entropy"]["value"] is not None for head in heads)


def test_the_largest_and_smallest_logits_are_printed_in_full(tmp_path: Path, capsys: Captured) -> None:
    for scale in (1e-49, 1e48):
        path = extreme_file(tmp_path, scale=scale)
        for words in ([], ["--format", "markdown"], ["--format", "csv"]):
            assert main(["inspect", path, *words]) == 0
            assert not re.search(r"\b(nan|inf)\b", capsys.readouterr().out)


def test_a_scale_by_hand_is_bounded(tmp_path: Path, capsys: Captured) -> None:
    for scale in ("1e308", "5e-324"):
        assert main(["inspect", extreme_file(tmp_path), "--scale", scale]) == 2
        assert f"--scale: must be a number from 1e-06 to 1000, not '{scale}'" in capsys.readouterr().err
