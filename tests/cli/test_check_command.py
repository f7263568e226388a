"""attn-tui check: exit codes, limits, formats."""

import csv
import io
import json
import os
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.tui.cli.main import main
from attn_tui.tui.cli.open_app import parse as parse_app
from attn_tui.tui.views.glyphs import UNICODE
from capture_files import save
from cases import for_each
from cli_runner import SAMPLE, WRONG, Captured, assert_refused, kept, refusal
from evidence_files import attended
from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder without pyproject.toml."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(words: list[str], capsys: Captured) -> tuple[int, str]:
    """The exit code and what is printed on stdout."""
    words = ["check", *words]
    code = main(kept(words, __name__) if words[1] in (SAMPLE, WRONG) else words)
    return code, capsys.readouterr().out


def rules(words: list[str], capsys: Captured) -> list[tuple[str | None, int | None, str]]:
    code, out = checked([*words, "--format", "json"], capsys)
    found = [each for each in json.loads(out)["findings"] if not each["allowed"]]
    assert code == (1 if found else 0)
    return [(each["layer"], each["head"], each["rule"]) for each in found]


def capture(folder: Path, scale: float = 1.0, name: str = "capture", seed: int = 0, **changed: Any) -> str:
    """A healthy file of two heads."""
    rng = np.random.default_rng(seed)
    arrays: dict[str, Any] = {side: scale * rng.normal(size=(1, 2, 20, 16)) for side in "qk"} | changed
    file = folder / f"{name}.npz"
    named: dict[str, Any] = {f"layers.3.attn.{side}" if side in "qk" else side: a for side, a in arrays.items()}
    np.savez(file, **named)
    return str(file)


def test_healthy_heads_have_no_findings(tmp_path: Path, capsys: Captured) -> None:
    code, out = checked([SAMPLE], capsys)
    assert code == 0
    assert out.splitlines()[-1] == "72 heads: 72 not judged (no evidence)"
    assert checked([SAMPLE, "--strict"], capsys) == (1, out)
    assert rules([capture(tmp_path)], capsys) == []


def test_wrong_scales_are_found_where_there_is_evidence(capsys: Captured) -> None:
    code, out = checked([WRONG], capsys)
    assert code == 1
    blocks = [block for block in out.split("\n\n") if "cause: " in block]
    facts = (
        ("layer 1, all 6 heads", "× 1 ", "scale-missing"),
        ("layer 2, head 0", "× 0.03125 ", "scale-twice, or scale-1-over-d"),
        ("layer 2, head 2", "× 0.4204 ", "scale-quarter"),
        ("layer 2, head 3", "20", "softcap-extra"),
        ("layer 2, head 4", "× 0.1874 ", "scale-other"),
    )
    assert len(blocks) == len(facts)
    for block, (place, number, cause) in zip(blocks, facts, strict=True):
        assert place in block
        assert number in block
        assert f"cause: {cause}" in block
        assert ("× 0.1768 = 1/√32" in block) == cause.startswith("scale-")
    assert out.endswith("24 heads: 10 wrong, 8 right, 6 not judged (no evidence)\n")


def test_large_logits_are_a_finding_of_every_head_told_once(tmp_path: Path, capsys: Captured) -> None:
    file = capture(tmp_path, scale=8.0)
    code, out = checked([file], capsys)
    assert code == 1
    assert rules([file], capsys)[:2] == [("3", 0, "max-logit"), ("3", 1, "max-logit")]
    assert out.count("largest |logit| ") == 1
    assert "layer 3, all 2 heads" in out
    assert " > 100" in out
    q = 10 + np.random.default_rng(0).normal(size=(1, 2, 20, 16))
    assert ("3", 0, "max-logit") in rules([capture(tmp_path, q=q, k=-q)], capsys)  # all logits are far below 0


def test_collapsed_and_dead_heads_are_found(tmp_path: Path, capsys: Captured) -> None:
    q = np.ones((1, 2, 20, 16))
    q[:, 1] = np.random.default_rng(1).normal(size=(1, 20, 16))
    assert rules([capture(tmp_path, q=q)], capsys) == [("3", 0, "token-spread")]
    dead = np.zeros((1, 2, 20, 16))
    assert ("3", 1, "min-spread") in rules([capture(tmp_path, k=dead)], capsys)
    words = [
        capture(tmp_path, name="same", k=dead),
        "--min-spread",
        "0",
        "--min-token-spread",
        "0",
    ]  # nothing is below 0
    assert rules(words, capsys) == []


def test_numbers_that_are_not_finite_are_found(tmp_path: Path, capsys: Captured) -> None:
    q = np.random.default_rng(0).normal(size=(1, 2, 20, 16))
    q[0, 1, 2, 3] = np.inf
    later: dict[str, Any] = {"layers.4.attn.q": q, "layers.4.attn.k": np.random.default_rng(1).normal(size=q.shape)}
    file = capture(tmp_path, q=q, **later)
    assert rules([file], capsys) == [("3", 1, "not-finite")]
    heads = json.loads(checked([file, "--format", "json"], capsys)[1])["heads"]
    assert [each["verdict"] for each in heads] == ["no-evidence", "cause", "no-evidence", "undecided"]


def test_a_file_whose_heads_are_nearly_one_hot_is_found(tmp_path: Path, capsys: Captured) -> None:
    found = rules([capture(tmp_path, scale=8.0), "--max-logit", "10000"], capsys)
    assert found == [(None, None, "file-entropy")]


def test_size_alone_fails_no_head_whose_scale_is_as_expected(tmp_path: Path, capsys: Captured) -> None:
    file = str(attended(tmp_path, "lse", {"scale": 20.0}, {"scale": 20.0}))
    code, out = checked([file], capsys)
    assert code == 0
    assert all(f"layer 0 head {head}: largest |logit| " in out for head in range(4))
    assert out.endswith("4 heads: 4 right, 5 allowed\n")
    assert {rule for *_, rule in rules([file, "--max-logit", "100"], capsys)} == {"max-logit"}


def test_a_soft_cap_hides_neither_large_logits_nor_that_most_are_beyond_it(tmp_path: Path, capsys: Captured) -> None:
    said = {"scale": 20.0, "softcap": 5.0}
    file = str(attended(tmp_path, "lse", said, said))
    assert rules([file], capsys) == [("0", head, "capped") for head in range(4)]
    assert ("0", 0, "max-logit") in rules([file, "--max-logit", "100", "--max-capped", "1"], capsys)
    q, k = (load_file(file)[f"layers.0.attn.{side}"] for side in "qk")
    found = json.loads(checked([file, "--format", "json"], capsys)[1])["findings"]
    shares = [each["value"] for each in found if each["rule"] == "capped"]
    assert shares == pytest.approx([*(abs(20 * q @ k.mT) > 10).mean((0, 2, 3))], abs=0.01)


def test_layers_that_disagree_are_a_finding(tmp_path: Path, capsys: Captured) -> None:
    q = np.random.default_rng(0).normal(size=(1, 2, 20, 16)).astype(np.float32)
    scales = [0.25, 0.25, 0.0625]
    file = save(
        tmp_path / "x.safetensors",
        {f"layers.{index}.attn.{side}": q for index in range(3) for side in "qk"},
        layers=[{"index": index, "name": f"a.{index}", "scale": scale} for index, scale in enumerate(scales)],
    )
    assert rules([str(file)], capsys) == [(None, None, "inconsistent")]
    assert "layer 2 is × 0.0625, the others × 0.25" in checked([str(file)], capsys)[1]


def test_the_program_is_of_the_first_head_with_a_finding_else_of_the_first_that_can_be_read(
    tmp_path: Path, capsys: Captured
) -> None:
    q = np.random.default_rng(0).normal(size=(1, 3, 20, 16))
    q[:, 0] = np.nan
    for scale, head in (((1, 1, 1), 1), ((1, 1, 90), 2)):
        file = capture(tmp_path, q=q * np.reshape(scale, (3, 1, 1)), k=np.nan_to_num(q, nan=1.0))
        assert f"# layer 3, head {head}\n" in checked([file, "--format", "python"], capsys)[1]


def test_optional_limits(tmp_path: Path, capsys: Captured) -> None:
    file = capture(tmp_path)
    assert {rule for *_, rule in rules([file, "--max-first-key", "0", "--min-entropy", "1"], capsys)} == {
        "first-key",
        "entropy",
    }


@pytest.mark.parametrize(
    ("pattern", "left"),
    [("layers.1.*:scale-missing", 4), ("*:scale-missing", 4), ("layers.2.0:*", 9), ("layers.1.*", 4), ("file:*", 10)],
)
def test_allowed_findings_do_not_count(pattern: str, left: int, capsys: Captured) -> None:
    pattern = pattern if ":" in pattern else f"{pattern}:*"
    assert len(rules([WRONG, "--allow", pattern], capsys)) == left
    code, out = checked([WRONG, "--allow", pattern, "--allow", "*:*"], capsys)
    assert code == 0
    assert out.endswith("24 heads: 10 wrong, 8 right, 10 allowed, 6 not judged (no evidence)\n")


def test_limits_come_from_the_project_and_options_override_them(empty_folder: Path, capsys: Captured) -> None:
    file = capture(empty_folder)
    project = empty_folder / "pyproject.toml"
    project.write_text('[tool.attn-tui.check]\nmax-logit = 0.1\nallow = ["layers.3.1:*"]\n')
    assert rules([file], capsys) == [("3", 0, "max-logit")]
    assert rules([file, "--max-logit", "100"], capsys) == []
    assert rules([file, "--allow", "layers.3.0:*"], capsys) == []  # beside what the project allows
    project.write_text("[tool.attn-tui.check]\nstrict = true\n")
    assert checked([file], capsys)[0] == 1  # nothing is judged
    project.write_text("[tool.attn-tui.check]\nmax-logits = 1\n")
    assert_refused(["check", file], "tool.attn-tui.check.max-logits: … did you mean max-logit?", capsys)
    project.write_text("[tool.attn-tui.check]\nmax-logit = true\n")
    assert "must be a number" in refusal(["check", file], capsys)
    for other in ("[tool]\n", "[tool.other]\nattn-tui = 3\n", "[tool.attn-tui]\n", "[tool.attn-tui.check]\n"):
        project.write_text(other)
        assert rules([file], capsys) == []


IN_TABLE = "must be in the table [tool.attn-tui.check]"


@for_each(
    ("text", "says"),
    [
        ('[tool.attn-tui]\nexpect = "1/d"', f"tool.attn-tui.expect: {IN_TABLE}"),
        ("[tool.attn-tui]\nmax_logit = 50", f"tool.attn-tui.max_logit: {IN_TABLE}"),
        ("[tool.attn-tui]\nmax-logits = 50", "tool.attn-tui.max-logits: unknown; … did you mean max-logit?"),
        ("[tool.attn-tui.chek]\nstrict = true", "tool.attn-tui.chek: … [tool.attn-tui.check] … did you mean check?"),
        ("[tool.attn_tui.check]\nstrict = true", "tool.attn_tui: must be tool.attn-tui"),
        ("[tool.attn-tui.check]\nexpct = '1/d'", "tool.attn-tui.check.expct: must be one of … did you mean expect?"),
        ("[tool.attn-tui.check]\nmax-logit = 1\nmax_logit = 2", "tool.attn-tui.check.max_logit: is there twice"),
        ("[tool.attn-tui.check.max-logit]\nx = 1", "tool.attn-tui.check.max-logit: must be a number"),
        ("[tool.attn-tui.check]\nstrict = 1", "tool.attn-tui.check.strict: must be true or false, not 1"),
        ("[tool.attn-tui.check]\nexpect = []", "tool.attn-tui.check.expect: must be a formula, not []"),
        ("[tool.attn-tui.check]\nallow = [1]", "tool.attn-tui.check.allow: must be a list of patterns, not [1]"),
        ("[[tool.attn-tui.check]]\nstrict = true", "tool.attn-tui.check: must be a table, not [{'strict': True}]"),
        ("[tool]\nattn-tui = 3", "tool.attn-tui: must be a table, not 3"),
        ("tool = 3", "tool: must be a table, not 3"),
    ],
)
def test_a_setting_of_the_project_that_is_not_read_is_refused_by_every_command(
    text: str, says: str, empty_folder: Path, capsys: Captured
) -> None:
    (empty_folder / "pyproject.toml").write_text(text)
    for words in (["check", SAMPLE], ["diagnose", SAMPLE], ["record", "-o", "a.safetensors", "--", "true"], [SAMPLE]):
        assert_refused(words, f"pyproject.toml: {says}", capsys)


DEEP = "[" * 3000 + "]" * 3000


@for_each(
    ("text", "says"),
    [
        *(
            (f"[{table}]\n{key} = {value}", says)
            for table in ("tool.attn-tui.check", "tool.other")
            for key in ("max-logit", "expect", "allow")
            for value, says in (
                ("9" * 5000, "has a whole number of more than 308 digits"),
                ("-1" + "0" * 400, "has a whole number of more than 308 digits"),
                (DEEP, "is nested deeper than 100 levels"),
            )
        ),
        (".".join(["a"] * 3000) + " = 1", "is nested deeper than 100 levels"),
        ("[tool.attn-tui.check]\nmax-logit = 1e999", "must be a number from 0 up, not inf"),
        ("[tool.attn-tui.check]\nexpect = 1" + "0" * 300, "a formula must have at most 80 characters"),
        ("[tool", "is not TOML: "),
        (b"\xff\xfe", "is not UTF-8"),
        ("#" * (9 << 20), "must have at most 8388608 bytes"),
    ],
)
def test_a_project_that_cannot_be_read_is_refused_in_one_line(
    text: str | bytes, says: str, empty_folder: Path, capsys: Captured
) -> None:
    (empty_folder / "pyproject.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert_refused(["check", SAMPLE], f"pyproject.toml: … {says}", capsys)


def test_a_byte_order_mark_is_no_part_of_the_project(empty_folder: Path, capsys: Captured) -> None:
    (empty_folder / "pyproject.toml").write_text("[tool.attn-tui.check]\nmax-logit = 0.1\n", "utf-8-sig")
    assert len(rules([capture(empty_folder)], capsys)) == 2


def test_a_project_file_that_is_none_is_not_waited_for(empty_folder: Path, capsys: Captured) -> None:
    project = empty_folder / "pyproject.toml"
    file = capture(empty_folder)
    project.mkdir()
    assert rules([file], capsys) == []
    project.rmdir()
    os.mkfifo(project)
    assert_refused(["check", file], "pyproject.toml: is not a regular file", capsys)
    project.rename(empty_folder / "pipe")
    assert_refused(["diagnose", file, "--config", "pipe"], "pipe: is not a regular file", capsys)
    project.symlink_to(os.devnull)
    assert_refused(["check", file], "pyproject.toml: is not a regular file", capsys)


def test_what_is_intended_comes_from_the_project_for_every_command(empty_folder: Path, capsys: Captured) -> None:
    file, project = attended(empty_folder, "lse", {"scale": 0.125}, {"scale": 0.125}), empty_folder / "pyproject.toml"
    for words in (["check", str(file)], ["diagnose", str(file)], ["record", "-o", "a.safetensors", "--", "true"]):
        project.write_text('[tool.attn-tui.check]\nexpect = "1/sqrt("\n')
        assert "pyproject.toml: tool.attn-tui.check.expect: " in refusal(words, capsys)
        project.write_text("[tool.attn-tui.check]\nexpect = true\n")
        assert "must be a formula" in refusal(words, capsys)
    project.write_text('[tool.attn-tui.check]\nexpect = "1/sqrt(d)"\n')
    opened = parse_app([str(file)], UNICODE).file
    assert opened is not None
    assert opened.expect == "1/sqrt(d)"
    assert parse_app(["--d-k", "8"], UNICODE).file is None
    assert rules([str(file)], capsys) == [("0", head, "scale-twice") for head in range(4)]
    assert rules([str(file), "--expect", "1/d"], capsys) == []


def test_the_first_stage_that_differs_from_a_baseline_is_a_finding(tmp_path: Path, capsys: Captured) -> None:
    old, new = capture(tmp_path, name="old"), capture(tmp_path, scale=2.0, name="new")
    assert rules([old, "--baseline", old], capsys) == []
    assert rules([new, "--baseline", old], capsys) == [("3", head, "baseline-multiplier") for head in (0, 1)]
    code, out = checked([new, "--baseline", old], capsys)
    assert code == 1
    assert "layer 3, all 2 heads" in out
    assert "is × 1 " in out  # 2² / √16
    assert "in the baseline × 0.25\n" in out
    assert checked([new, "--baseline", old, "--allow", "*:baseline-*"], capsys)[0] == 0
    other = capture(tmp_path, name="other", seed=1)
    assert rules([other, "--baseline", old], capsys) == [("3", head, "baseline-qk") for head in (0, 1)]


def test_a_head_in_another_basis_is_that_of_the_baseline(tmp_path: Path, capsys: Captured) -> None:
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(16, 16)))[0]
    q, k = (rng.normal(size=(1, 2, 20, 16)) for _ in "qk")
    old = capture(tmp_path, name="old", q=q, k=k)
    assert rules([capture(tmp_path, name="turned", q=q @ turn, k=k @ turn), "--baseline", old], capsys) == []


def test_of_a_baseline_of_another_text_multipliers_and_spreads_are_compared(tmp_path: Path, capsys: Captured) -> None:
    found = rules([WRONG, "--baseline", SAMPLE], capsys)
    assert [each for each in found if each[0] == "0"] == []
    assert ("1", 0, "baseline-multiplier") in found
    assert ("2", 3, "baseline-softcap") in found
    assert (None, None, "baseline-missing") in found
    old, new = (capture(tmp_path, scale=s, seed=i, name=f"{i}", text=f"text {i}") for i, s in ((1, 1.0), (2, 0.4)))
    assert rules([new, "--baseline", old], capsys) == [("3", head, "baseline-spread") for head in (0, 1)]
    assert rules([old, "--baseline", new], capsys) == [("3", head, "baseline-spread") for head in (0, 1)]
    assert main(["check", new, "--baseline", old]) == 1
    out, err = capsys.readouterr()
    assert "in the baseline" in out
    assert "the texts are different" in err


def test_a_layer_of_one_file_only_is_a_finding_of_the_file(tmp_path: Path, capsys: Captured) -> None:
    rng = np.random.default_rng(0)
    more: dict[str, Any] = {f"layers.4.attn.{side}": rng.normal(size=(1, 2, 20, 16)) for side in "qk"}
    old, new = capture(tmp_path, name="old"), capture(tmp_path, name="new")
    with np.load(old) as arrays:
        more |= dict(arrays)
    np.savez(new, **more)
    assert rules([new, "--baseline", old], capsys) == [(None, None, "baseline-missing")]
    assert "only this file has layer 4" in checked([new, "--baseline", old], capsys)[1]
    assert "only the baseline has layer 4" in checked([old, "--baseline", new], capsys)[1]


@pytest.mark.parametrize("format", ["junit", "markdown", "csv"])
def test_each_finding_against_a_baseline_is_one_line(format: str, capsys: Captured) -> None:
    code, out = checked([WRONG, "--baseline", SAMPLE, "--format", format], capsys)
    assert code == 1
    if format == "junit":
        failures = ElementTree.fromstring(out).findall(".//failure")
        assert [each.get("type") for each in failures].count("baseline-multiplier") >= 9
        assert all(each.text and "\n" not in each.text for each in failures)
    else:
        assert sum("is not that of the baseline" in line for line in out.splitlines()) == 10


@pytest.mark.parametrize("format", ["table", "github"])
def test_a_wrong_scale_that_is_not_that_of_the_baseline_is_told_once(format: str, capsys: Captured) -> None:
    code, out = checked([WRONG, "--baseline", SAMPLE, "--format", format], capsys)
    assert code == 1
    for number in ("× 1", "× 0.03125", "× 0.4204", "× 0.1874"):
        assert len(re.findall(rf"{re.escape(number)}\b(?!\.)", out)) == 1
    assert "baseline-multiplier" not in out
    found = rules([WRONG, "--baseline", SAMPLE], capsys)
    assert sum(rule == "baseline-multiplier" for *_, rule in found) == 9


def test_junit_has_a_case_for_each_head_and_the_file(capsys: Captured) -> None:
    code, out = checked([WRONG, "--format", "junit"], capsys)
    suite = ElementTree.fromstring(out)[0]
    cases = suite.findall("testcase")
    failed = [case for case in cases if case.find("failure") is not None]
    assert (code, len(cases), len(failed)) == (1, 25, 10)
    assert (suite.get("tests"), suite.get("failures")) == ("25", "10")
    assert {case.find("failure").get("type") for case in failed} >= {"scale-missing"}  # pyright: ignore


def test_github_has_a_command_for_each_fault(capsys: Captured) -> None:
    _, out = checked([WRONG, "--format", "github"], capsys)
    lines = out.splitlines()
    assert all(line.startswith(f"::error file={WRONG},title=attn-tui ") for line in lines)
    causes = ["scale-missing", "scale-twice", "scale-quarter", "softcap-extra", "scale-other"]
    assert [line.split("::")[1].rpartition(" ")[2] for line in lines] == causes
    assert "layer 1, all 6 heads" in lines[0]
    assert "× 1, should be × 0.1768 = 1/√32" in lines[0]


def test_a_file_s_name_ends_no_property_of_github(tmp_path: Path, capsys: Captured) -> None:
    _, out = checked([capture(tmp_path, scale=8.0, name="a,title=b:c%2C"), "--format", "github"], capsys)
    assert f"::error file={tmp_path}/a%2Ctitle=b%3Ac%252C.npz,title=attn-tui max-logit::" in out


def test_csv_and_markdown_list_the_findings(capsys: Captured) -> None:
    _, out = checked([WRONG, "--format", "csv"], capsys)
    assert [row["rule"] for row in csv.DictReader(io.StringIO(out))][-1] == "scale-other"
    _, out = checked([WRONG, "--format", "markdown"], capsys)
    assert "| layer 1 head 0 | scale-missing |" in out


def test_what_cannot_be_read_exits_with_2(tmp_path: Path, capsys: Captured) -> None:
    assert "no such file" in refusal(["check", str(tmp_path / "nothing.npz")], capsys)
    assert "--max-logit: must be a number" in refusal(["check", WRONG, "--max-logit", "-1"], capsys)
