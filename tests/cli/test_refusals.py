"""What the command line refuses: one line on stderr that says what, where and what is accepted; exit code 2."""

import argparse
import os
import shlex
from pathlib import Path
from typing import NoReturn

import pytest
from attn_tui.core.attention.presets import PRESETS
from attn_tui.core.captures.files import ENDINGS
from attn_tui.tui.cli.commands.catalogue import COMMANDS
from attn_tui.tui.cli.main import main
from cases import for_each
from cli_runner import SAMPLE, Captured, assert_refused, refusal

# The words of a command, and pieces of the line that refuses them.
MISTAKES: list[tuple[str | list[str], str]] = [
    ("--d-k 8 report", "attn-tui report"), ("report --dk 8", "--dk … --d-k … attn-tui report --help"),
    ("report --dk=8", "--dk … --d-k?"), ("report --n-key 8", "--n-key"),
    ("--frobnicate", "--frobnicate … attn-tui --help"), ("report extra more", "'extra'"),
    ("report extra -1", "unknown option -1;"), ("report --d-k=8 -1", "unknown option -1;"),
    ("--d-k 8 report extra", "report must come before its options"), ("no/such", "no/such: no such file"),
    ("x.npz y.npz", "'y.npz': the app opens one file"), ("reprt.d/x", "reprt.d/x: no such file"),
    ("report --d-k", "--d-k: must have a value … attn-tui report --help"),
    ("report --d-k=--", "--d-k: … '--' … attn-tui report --help"), ("cost --d-model=--", "--d-model: … '--'"),
    ("report -o--", "-o: … '--'"), ("--theme=-- -- x.npz", "--theme: … '--'"),
    ("-- --d-k=--", "--d-k=-- is neither a file nor a command"),
    ("dignose heads.safetensors", "dignose is neither a file nor a command (did you mean diagnose?)"),
    ("chekc heads.safetensors --strict", "did you mean check?"),
    ("report --d-k 0", "--d-k: … '0' … from 1 to 16384"), ("--d-k 0", "--d-k: … '0' … from 1 to 16384"),
    ("report --d-k 1e9", "--d-k: … '1e9'"), ("report --d-k ''", "--d-k: … ''"),
    ("report --std-q -1", "--std-q: … '-1'"), ("report --std-q -inf", "--std-q: … '-inf'"),
    ("report --mean-q nan", "--mean-q: … 'nan' … from -100 to 100"),
    ("report --components Normal", "--components: … 'Normal' … normal, uniform, laplace, "),
    ("report --scale sqrt", "--scale: … 'sqrt' … none, sqrt_d_k, d_k, log_d_k, "),
    ("report --scale nan", "--scale: … 'nan'"), ("report --scale 0.5 --multiplier 2", "--scale … --multiplier"),
    ("report --scale log_d_k --d-k 1", "1/ln d_k … d_k = 1"),
    ("report --arithmetic exact", "--arithmetic: … one of eager, fused … 'exact'"),
    ("report --arithmetic eager --precision float8_e5m2", "arithmetic: … fused … float8 e5m2"),
    ("sweep --arithmetic eager --vary precision=float16,float8_e5m2", "arithmetic: … fused … float8"),
    ("rules --arithmetic eager --precision float8_e4m3fn", "arithmetic: … fused … float8 e4m3"),
    ("report --format xml", "--format: … one of table, json, csv, markdown … 'xml'"),
    ("report -o .", ".: … directory"), ("report -o ''", "-o: must have a value"),
    ("report -o no/such/report.json", "directory"), ("report -o /proc/attn-tui.json", "cannot be written"),
    ("inspect", "FILE; see attn-tui inspect --help"), ("inspect missing.npz", "missing.npz: no such file"),
    ("missing.npz", "missing.npz: no such file"),
    ("inspect .", ".: … no .safetensors, .npz or .npy files in this folder"),
    ("inspect SAMPLE --layer 6", "layer 6 … 0–5"), ("inspect SAMPLE --layer x", "layer x … 0–5"),
    ("inspect SAMPLE --layer 2 --head 12", "head 12 … layer 2 … 0 to 11"),
    ("inspect SAMPLE --head 12", "head 12 … 0 to 11"), ("inspect SAMPLE --head -1", "--head: … '-1'"),
    ("inspect SAMPLE --scale sqrt", "--scale: … 'sqrt' … file, none, sqrt_d_k"),
    ("inspect SAMPLE --axes a,b", "'a,b'"), ("inspect SAMPLE --d-k 8", "--d-k"),
    ("cost --heads 7", "7 … d_model 512"), ("cost --kv-heads 3", "3 … 8 heads"),
    ("cost --model llama-3-8b --heads 4", "8 … 4 heads"),
    ("cost --d-model 0", "--d-model: … '0' … from 1 to 1048576"), ("cost --d-k 1.5", "--d-k: … '1.5'"),
    ("cost --context 1e9", "--context: … '1e9'"),
    ("cost --cache-format int3", "--cache-format: … 'int3' … float64, "),
    ("cost --bias some", "--bias: … 'some' … none, qkv, all"), ("cost --model-d 4", "--model-d"),
    ("cost llama-3-8b", "'llama-3-8b'"), ("cost -o no/such/file", "no/such/file: "),
    ("rules --sort entropy", "--sort: … rule, multiplier, logit_std, … 'entropy' (did you mean entropy_fraction?)"),
    ("rules --d-k 0", "--d-k: … '0'"),
    ("report --scale '1/(n-128)'", "scale 1/(n-128) has no value at keys = 128; choose another"),
    ("report --scale sqrt_dk", "did you mean sqrt_d_k?"),
    ("inspect SAMPLE --scale sqrt_dk", "must be one of file, none"),
    ("rules --reversed", "--reversed … --reverse?"), ("rules 64", "'64'"), ("sweep --d-k 0", "--d-k: … '0'"),
    ("sweep --d-k 5:1", "--d-k: … '5:1'"), ("sweep --d-k 1:1e9", "--d-k: … '1:1e9'"),
    ("sweep --d-k 1:9:log0", "--d-k: … '1:9:log0'"), ("sweep --d-k text", "--d-k: … 'text'"),
    ("sweep --d-k ''", "--d-k: … ''"),
    ("sweep --statistics entropi", "--statistics: … 'entropi' … logit_mean, … did you mean entropy?"),
    ("sweep --vary n-kys=3", "did you mean n-keys?"), ("sweep --stderr 1 --of entropi", "did you mean entropy?"),
    ("report --format jsn", "did you mean json?"),
    ("sweep --statistics ''", "--statistics: … ''"), ("sweep --vary d-k=3", "--vary: … 'd-k=3' … n-keys, "),
    ("sweep --vary n-keys", "--vary: … NAME=VALUES"), ("sweep --vary n-keys=0", "--vary n-keys: … '0'"),
    ("sweep --vary scale=0.1", "--vary multiplier=0.05,0.1"), ("sweep --vary seed=1 --vary batch=2", "--vary: "),
    ("sweep --stderr 0", "--stderr: … '0' … above 0"), ("sweep --stderr nan", "--stderr: … 'nan' … above 0"),
    ("sweep --stderr 1 --of logit_max", "--of: … standard error: logit_mean, … 'logit_max'"),
    ("sweep --batch 4 --stderr 1 --most-draws 3", "--most-draws: 3 … 4"),
    ("sweep --scale log_d_k --d-k 1:4", "1/ln d_k … d_k = 1"),
    ("train --rules sqrt_dk", "--rules … 'sqrt_dk' … did you mean sqrt_d_k?"),
    ("train --rules custom", "--rules … 'custom' has no multiplier here; give the number itself; must be"),
    ("train --rules ''", "--rules … '' is not a scale rule"), ("train --d-k ''", "--d-k … from 1 to 1024 … ''"),
    ("train --lr 0", "--lr … 1e-06 … '0'"), ("train --learning-rate 0", "--lr … 1e-06 … '0'"),
    ("train --steps 1.5", "--steps … whole number … '1.5'"), ("train --d-k 2048", "--d-k … 1024 … 2048"),
    ("train --optimizer rmsprop", "sgd … adam … rmsprop"), ("train --seeds 0", "--seeds … from 1 … '0'"),
    ("watch nothing-here --once", "nothing-here … does not exist yet"),
    ("watch run.jsonl --max-logit -1 --once", "--max-logit … above 0 … '-1'"),
    ("watch run.jsonl --max-logit much --once", "--max-logit … 'much'"),
    ("watch run.jsonl --baseline -1 --once", "--baseline … number of a step … '-1'"),
    ("watch run.jsonl --step x --once", "--step … number of a step … 'x'"),
    ("watch run.jsonl --step ٣", "--step … number of a step … '٣'"),
    ("watch run.jsonl --step 1234567890123456", "--step … number of a step … '1234567890123456'"),
    ("softmax --scores 1,x", "--scores … -1000 to 1000 … 'x'"), ("softmax --scores 1", "--scores … 2 to 8 … 1"),
    ("softmax --temperature 0", "--temperature … 0.01 to 100 … '0'"),
    ("softmax --scale cosine_10", "10·cos(q, k) … normalises queries and keys"),
    ("softmax --softcap 1", "--softcap"), ("learn 13", "STEP … 1 to 12 … q1 to q24 … '13'"),
    ("learn one", "STEP … 'one'"), ("learn --guess 3", "--guess … needs a step"),
    ("learn q1 --guess 3", "--guess … q1 does not"), ("learn q25", "STEP … q1 to q24 … 'q25'"),
    ("learn 1 --guess many", "--guess … a number or a formula, such as … 'many'"),
    ("inspect SAMPLE --worst 0", "--worst: must be a whole number from 1 up, not '0'"),
    ("inspect SAMPLE --worst many", "--worst: must be a whole number from 1 up, not 'many'"),
    ("inspect SAMPLE --worst 3 --scale none", "--worst ranks heads at the file's scale"),
    ("inspect SAMPLE --worst 3 --rules all", "--worst ranks heads at the file's scale"),
    ("HEAD --precision half", "--precision: must be one of float64, float32, float16"),
    ("HEAD --softcap -1", "--softcap: must be a number from 0 to 10000 (0 or at least 1e-06 in size), or file"),
    ("HEAD --precision float8_e5m2 --arithmetic eager", "must be fused with format float8 e5m2"),
    ("HEAD --against precision=float8_e5m2,arithmetic=eager", "must be fused with format float8 e5m2"),
    ("HEAD --against law=laplace", "'law'; A may set scale, multiplier, precision, arithmetic, softcap"),
    ("HEAD --rules all --precision float16", "leave out --precision"),
    ("HEAD --rules all --scale file", "leave out --scale"), ("HEAD --rules all --scale d_k", "leave out --scale"),
    ("HEAD --worst 3 --softcap 0", "leave out --softcap"),
    (["reprot"], f"the commands are {', '.join(COMMANDS)}"),
    (["report", "--x\ny\x1b[31m"], r"--x\ny\x1b[31m"),
    (["report", "--d-k", "9" * 5000], "--d-k: … from 1 to 16384"),
    (["inspect", __file__], ENDINGS),
    (["inspect", SAMPLE, "--head", "9" * 5000], "--head"),
    (["inspect", SAMPLE, "-o", SAMPLE], f"{SAMPLE}: "),
    ("cost --model llama", f"--model: … 'llama' … {', '.join(PRESETS)}, not 'llama' (did you mean llama-2-7b?)"),
    (f"cost --layers {'9' * 5000}", "--layers"),
]  # fmt: skip


@for_each(("words", "says"), MISTAKES)
def test_a_mistake_is_refused_in_one_line(words: str | list[str], says: str, capsys: Captured) -> None:
    if isinstance(words, str):
        words = shlex.split(words.replace("HEAD", "inspect SAMPLE --layer 0 --head 1").replace("SAMPLE", SAMPLE))
    assert_refused(words, says, capsys)


@pytest.mark.parametrize("words", [["report", "--mask", "x" * 10_000], ["inspect", "x" * 10_000 + ".npz"]])
def test_a_very_long_word_is_shortened(words: list[str], capsys: Captured) -> None:
    line = refusal(words, capsys)
    assert len(line) < 400
    assert f"{'x' * 50}…{'x' * 50}" in line


@for_each("content", [b"", b"\0" * 64, b"PK\3\4 no archive", b"\xff" * 9, b'{"a": 1}'])
@for_each("suffix", [".npz", ".npy", ".safetensors", ""])
def test_a_file_of_garbage_is_refused_in_one_line(
    content: bytes, suffix: str, tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / f"garbage{suffix}"
    file.write_bytes(content)
    assert str(file) in refusal(["inspect", str(file)], capsys)


def test_control_characters_in_names_of_files_are_escaped(tmp_path: Path, capsys: Captured) -> None:
    assert r"a\nb\x1b[31m.npz" in refusal(["inspect", str(tmp_path / "a\nb\x1b[31m.npz")], capsys)
    assert r"\udcff.npz" in refusal(["inspect", os.fsdecode(b"\xff.npz")], capsys)


def test_a_missing_argument_is_named_however_python_reports_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect"]) == 2
    said = capsys.readouterr().err

    def raising(*_: object) -> NoReturn:  # as from Python 3.13 on
        raise argparse.ArgumentError(None, "the following arguments are required: FILE")

    monkeypatch.setattr(argparse.ArgumentParser, "parse_known_args", raising)
    assert main(["inspect"]) == 2
    assert capsys.readouterr().err == said
    assert "FILE" in said
    assert "None" not in said
