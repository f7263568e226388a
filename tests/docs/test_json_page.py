"""docs/json.md: every field that commands print is documented, and nothing else."""

import ast
import csv
import io
import json
import math
import re
import runpy
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias, cast, get_args

import numpy as np
import pytest
from attn_tui.core.files import check_replaceable
from attn_tui.core.learning.claim import Verdict
from attn_tui.core.learning.claims import catalogue
from attn_tui.core.parameters import FIELD
from attn_tui.core.statistics.catalogue import STATISTIC
from attn_tui.tui.cli.commands.catalogue import COMMANDS
from attn_tui.tui.cli.main import main
from cases import for_each
from evidence_files import attended

Json: TypeAlias = "dict[str, Json] | list[Json] | str | float | bool | None"
Captured: TypeAlias = pytest.CaptureFixture[str]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "json.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## [\w -]+: `attn-tui/([\w-]+)`$(.*?)(?=^## )", PAGE, re.M | re.S))
EXAMPLES: list[tuple[str, str]] = re.findall(r"^\$ attn-tui ([^\n]*)\n(\{.*?\n\})$", PAGE, re.M | re.S)

SAMPLE = "core/captures/minilm-sample.safetensors"
PADDED = "tests/data/minilm-sample-padded.safetensors"
WRONG = "tests/data/wrong-scale.safetensors"
SMALL, ONE_KEY = (f"--n-keys {n} --n-queries 4 --batch 2" for n in (16, 1))
ROUGH = "--correlation 0.5"  # makes the error of the logits' variance only known to be at least something
AGAINST = ["--against n-keys=4,mean-q=0.5,components=laplace", "--against none --scale rms_none"]
BY_ROW = f"{SMALL} --mask causal --scale ssmax"  # gives rows different multipliers
SWEEP = f"sweep --d-k 4,8 {SMALL} --statistics entropy,logit_max"
# Commands that together print every field, and null wherever it can be.
RUNS = {
    "report-2": [f"report --d-k 8 {SMALL}", f"report {ONE_KEY}", f"report {SMALL} {ROUGH}", f"report {BY_ROW}"]
    + [f"report --model deepseek-v3 {SMALL}"]
    + [f"report {SMALL} {against}" for against in AGAINST],
    "sweep-2": [SWEEP, f"sweep --d-k 4 {ONE_KEY} --stderr 1", f"sweep --d-k 4 {SMALL} {ROUGH}"]
    + [f"{SWEEP} --vary {axis}" for axis in ("n-keys=2,3", "std-q=0.5", "mask=none,causal")]
    + [f"{SWEEP} {against}" for against in AGAINST]
    + [f"sweep --d-k 4 {SMALL} --n-keys 3,5", f"sweep --d-k 4 {BY_ROW}"],
    "rules-2": [f"rules {SMALL}", f"rules {ONE_KEY}", f"rules {SMALL} {ROUGH}"],
    "mechanisms-1": [f"rules --mechanisms {ONE_KEY}", f"rules --mechanisms {SMALL} {ROUGH}"],
    "softmax-1": ["softmax --precision float16", "softmax --scale 0.5", "softmax --against d_k"],
    "inspect-2": [
        f"inspect {SAMPLE}",
        f"inspect {SAMPLE} --layer 1 --head 2",
        f"inspect {SAMPLE} --worst 3",
        f"inspect {SAMPLE} --layer 1 --head 2 --against precision=float16 --softcap 3",
        f"inspect {PADDED}",
        f"inspect {PADDED} --scale ssmax --layer 0",
        "inspect {bare}",
        f"inspect {{bare}} {SAMPLE}",
    ],
    "replay-2": [
        f"inspect --rules all {SAMPLE} --layer 0",
        "inspect --rules all {one}",
        f"inspect --rules all {SAMPLE} {{one}} --head 0",
    ],
    "diagnosis-2": [
        f"diagnose {WRONG}",
        "diagnose {bare}",
        f"diagnose {{bare}} {WRONG} --head 0",
        f"diagnose {WRONG} --head 0 --config {{unapplied}}",
    ],
    "compare-2": [
        f"compare {SAMPLE} {WRONG} --head 0",
        f"compare {SAMPLE} {PADDED} --head 1",
        "compare {broken} {square}",
        "compare {bare} {bare}",
        f"compare {SAMPLE} {{square}}",
        "compare {whole} {whole}",
    ],
    "check-2": [
        f"check {WRONG} --min-file-entropy 1",
        f"check {SAMPLE} --baseline {WRONG}",
        "check {broken}",
        "check {capped}",
        f"check {{bare}} {SAMPLE}",
    ],
    "watched-2": [
        "watch tests/data/run.jsonl --once",
        "watch {run} --once",
        "watch tests/data/run.jsonl --step 500 --baseline 0",
    ],
    "training-1": [
        "train --d-k 64 --rules none --steps 40 --seeds 1 --lr 5",
        "train --d-k 4 --steps 2 --seeds 2",
        "train --d-k 4 --rules none --lr 1e4 --steps 12 --seeds 2",
    ],
    "learn-1": ["learn 8 --guess 2", "learn 12", "learn q1", "learn b1"],
    "claims-1": ["claims"],
    "cost-1": ["cost", "cost --model llama-3-8b", "cost --preset gemma-2-27b"],
}
CLAIMS = ("variance-equals-dk", "softmax-unscaled-example", "like-cosine", "train-equals-inference", "dot-faster")
NAMES = {"<statistic>": STATISTIC, "<parameter>": FIELD}
PLACEHOLDERS = {"<d_k>": r"\d+", **{placeholder: "|".join(names) for placeholder, names in NAMES.items()}}
TYPES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


@pytest.fixture(autouse=True)
def few_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test only a few claims, and find files from the root of the repository."""
    monkeypatch.setattr(catalogue, "CLAIMS", [claim for claim in catalogue.CLAIMS if claim.id in CLAIMS])
    monkeypatch.chdir(ROOT)


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """A capture of one token, an unknown tensor and no metadata."""
    np.savez(tmp_path / "bare.npz", q=np.eye(3)[:1], k=np.eye(3)[:1], other=np.ones(2))
    return str(tmp_path / "bare.npz")


@pytest.fixture
def unapplied(tmp_path: Path) -> str:
    """A configuration with a key that makes the expected multiplier unknown."""
    (tmp_path / "config.json").write_text('{"use_logn_attn": true}', "utf-8")
    return str(tmp_path / "config.json")


@pytest.fixture
def broken(tmp_path: Path) -> str:
    """A capture with a head that is not finite."""
    np.savez(tmp_path / "broken.npz", q=np.full((3, 3), np.nan), k=np.eye(3))
    return str(tmp_path / "broken.npz")


@pytest.fixture
def capped(tmp_path: Path) -> str:
    """A capture with a soft-cap, whose outputs are not judged."""
    return str(attended(tmp_path, "lse", {"softcap": 5.0}, {"softcap": 5.0, "weights_changed": ["relu"]}))


@pytest.fixture
def square(tmp_path: Path) -> str:
    """A capture of three tokens."""
    np.savez(tmp_path / "square.npz", q=np.eye(3), k=np.eye(3))
    return str(tmp_path / "square.npz")


@pytest.fixture
def whole(tmp_path: Path) -> str:
    """A capture with everything that attention returns."""
    x = np.random.default_rng(0).normal(size=(1, 1, 4, 4))
    named: dict[str, Any] = {f"layers.0.attn.{name}": x for name in ("q", "k", "v", "o", "weights")}
    named["layers.0.attn.lse"] = x[..., 0]
    np.savez(tmp_path / "whole.npz", **named)
    return str(tmp_path / "whole.npz")


@pytest.fixture
def run(tmp_path: Path) -> str:
    """A run with a head that is not finite, whose first step has another head over the limit."""
    lines = [{"step": 0, "max_logit": [[120.0]]}, {"step": 1, "time": 2.5, "max_logit": [[3.5, math.inf]]}]
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(tmp_path / "run.jsonl")


@pytest.fixture
def one(tmp_path: Path) -> str:
    """A capture of a single key."""
    np.savez(tmp_path / "one.npz", q=np.ones((1, 3)), k=np.ones((1, 3)))
    return str(tmp_path / "one.npz")


def printed(command: str, capsys: Captured) -> str:
    """What a command prints on stdout; a check or a run may have findings, and captures may differ."""
    assert main(shlex.split(command)) in ((0, 1) if command.startswith(("check", "compare", "watch")) else (0,))
    return capsys.readouterr().out


def output(command: str, capsys: Captured) -> Json:
    return json.loads(printed(f"{command} --format json", capsys))


def rows(section: str) -> list[list[str]]:
    """The cells of the tables of a section, without headers."""
    lines = re.findall(r"^\| (`.*) \|$", section, re.M)
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)] for line in lines]


def fields(value: Json, path: str = "") -> Iterator[tuple[str, str]]:
    """Every path of a JSON value, with its type."""
    yield path, "null" if value is None else TYPES[type(value)]
    if isinstance(value, dict):
        for key, item in value.items():
            yield from fields(item, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for item in value:
            yield from fields(item, f"{path}[]")


def documented(path: str, paths: Iterable[str]) -> str | None:
    """The documented path, perhaps with placeholders, that describes a printed one."""
    if path in paths:
        return path
    for written in paths:
        pattern = re.escape(written)
        for placeholder, names in PLACEHOLDERS.items():
            pattern = pattern.replace(placeholder, f"(?:{names})")
        if re.fullmatch(pattern, path):
            return written
    return None


def test_every_schema_has_a_section() -> None:
    assert list(SECTIONS) == list(RUNS)


def test_every_command_that_prints_json_is_run() -> None:
    run = {words.split()[0] for runs in RUNS.values() for words in runs}
    assert run == {name for name, row in COMMANDS.items() if "json" in row.load().formats}


def test_every_schema_that_a_table_has_is_on_the_page() -> None:
    written = {
        str(node.args[0].value)
        for path in (ROOT / "core/tables").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Table", "table_of")
        if isinstance(node.args[0], ast.Constant)
    }
    assert len(written) >= len(RUNS)
    assert [each for each in written if f"`attn-tui/{each}`" not in PAGE] == []


@pytest.mark.slow
@pytest.mark.parametrize("schema", RUNS)
def test_the_fields_that_are_printed_are_those_that_are_documented(
    schema: str,
    bare: str,
    unapplied: str,
    broken: str,
    capped: str,
    one: str,
    square: str,
    whole: str,
    run: str,
    capsys: Captured,
) -> None:
    table = {path.strip("`"): set(re.split(", | or ", types)) for path, types, *_ in rows(SECTIONS[schema])}
    found: dict[str, set[str]] = defaultdict(set)
    for command in RUNS[schema]:
        files = {
            "bare": bare,
            "unapplied": unapplied,
            "broken": broken,
            "capped": capped,
            "one": one,
            "square": square,
            "whole": whole,
        }
        command = command.format(**files, run=run)
        printed_object = cast("dict[str, Json]", output(command, capsys))
        assert printed_object["schema"] == f"attn-tui/{schema}"
        for path, kind in fields(printed_object):
            written = documented(path, table)
            assert written or kind in ("object", "array"), f"{path} is not documented"
            if written:
                integral = kind == "integer" and "integer" not in table[written]
                found[written].add("number" if integral else kind)
    assert found == table


@for_each("schema", RUNS)
def test_the_tables_say_when_a_field_is_null(schema: str) -> None:
    for path, types, _, when in rows(SECTIONS[schema]):
        assert ("null" in types) == ("null" in when), path


@pytest.mark.parametrize("schema", ["rules-2", "mechanisms-1"])
def test_the_sections_name_the_statistics_that_are_measured(schema: str, capsys: Captured) -> None:
    measured = re.findall(r'"(\w+)": \{\s*"value"', printed(f"{RUNS[schema][0]} --format json", capsys))
    told = SECTIONS[schema].partition("| field |")[0]
    assert set(re.findall(r"`(\w+)`", told)) == set(measured)


def test_the_verdicts_of_claims_are_documented() -> None:
    [meaning] = [meaning for path, _, meaning, _ in rows(SECTIONS["claims-1"]) if path == "`claims[].verdict`"]
    assert set(re.findall("`(.*?)`", meaning)) == set(get_args(Verdict))


def shows(shown: Json, real: Json) -> bool:
    """Whether an example shows this value: … stands for anything, and numbers are rounded."""
    if shown == "…":
        return True
    if isinstance(shown, dict) and isinstance(real, dict):
        names = [name for name in shown if name != "…"]
        whole = "…" in shown or shown.keys() == real.keys()
        return whole and all(name in real and shows(shown[name], real[name]) for name in names)
    if isinstance(shown, list) and isinstance(real, list):
        if shown[-1:] == ["…"]:
            shown, real = shown[:-1], real[: len(shown) - 1]
        return len(shown) == len(real) and all(map(shows, shown, real))
    return real == pytest.approx(shown, rel=1e-3) if isinstance(shown, float) else shown == real


def test_every_schema_has_an_example() -> None:
    assert {json.loads(text)["schema"] for _, text in EXAMPLES} == {f"attn-tui/{schema}" for schema in RUNS}


@pytest.mark.slow
@pytest.mark.parametrize(("command", "text"), EXAMPLES)
def test_the_examples_are_what_the_commands_print(command: str, text: str, capsys: Captured) -> None:
    assert shows(json.loads(text), json.loads(printed(command, capsys)))


def test_the_tables_of_statistics_and_parameters_are_current() -> None:
    assert runpy.run_path(str(ROOT / "docs" / "tables.py"))["renewed"](PAGE) == PAGE, "run `make docs`"


@pytest.mark.parametrize(("command", "columns"), [(row[0], row[2]) for row in rows(PAGE.partition("## CSV")[2])])
def test_the_columns_of_csv_are_documented_and_recognised(
    command: str, columns: str, tmp_path: Path, capsys: Captured
) -> None:
    names = re.findall(r"`(.+?)`", columns)
    run = next(run for runs in RUNS.values() for run in runs if run.startswith(command.strip("`")))
    text = printed(f"{run} --format csv", capsys)
    header = next(csv.reader(io.StringIO(text)))
    assert {documented(name, names) for name in header} == set(names)
    (tmp_path / "result.csv").write_text(text, "utf-8")
    check_replaceable(tmp_path / "result.csv")  # else -o would not replace its own result
