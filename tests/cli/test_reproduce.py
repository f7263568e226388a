"""The command line that prints what is on screen, or a result again."""

import json
import os
import shlex
import subprocess
from typing import Any

import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.field import Field
from attn_tui.core.parameters import FIELDS, ParameterError, Parameters
from attn_tui.core.questions.lab import Measure
from attn_tui.core.questions.question import in_shell
from attn_tui.core.scales import multiplier
from attn_tui.core.tables.table import written
from attn_tui.core.watching.snapshot import sample_run
from cases import for_each
from cli_runner import Captured, printed, request_of
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sweeps import cut_small

SMALL = ("--n-keys", "16", "--n-queries", "4", "--batch", "4")


def values(field: Field) -> st.SearchStrategy[Any]:
    """The default, which the command leaves out, or any value that the field accepts."""
    usual = st.just(getattr(Parameters(), field.name))
    if field.kind == "choice":
        return usual | st.sampled_from(field.choices)
    if field.kind == "integer":
        return usual | st.integers(int(field.low), int(field.high))
    return usual | st.floats(field.low, field.high).filter(lambda x: x == 0 or abs(x) >= field.least)


def parameters_of(values: dict[str, Any]) -> Parameters:
    try:
        parameters = Parameters(**values)
        assume(multiplier(parameters.scale, parameters.setting) > 0)
        return parameters
    except ParameterError:  # these values do not go together, or have no multiplier, such as 1/ln 1
        assume(False)
        raise


@given(st.fixed_dictionaries({field.name: values(field) for field in FIELDS}).map(parameters_of))
@example(Parameters(multiplier=0.5))
@example(Parameters(scale="custom"))
@example(Parameters(mean_q=-1e-3, mean_k=-5.0, correlation=-1.0))
def test_a_command_line_makes_the_parameters_it_was_made_from(parameters: Parameters) -> None:
    program, *words = shlex.split(Measure(parameters).line())
    assert program == "attn-tui"
    assert request_of(*words).parameters == parameters


def test_only_what_differs_from_the_defaults_is_written() -> None:
    assert Measure(Parameters()).line() == "attn-tui report"
    assert Measure(Parameters(d_k=512, scale="d_k")).line() == "attn-tui report --d-k 512 --scale d_k"
    assert Measure(Parameters(mean_q=-0.5)).line() == "attn-tui report --mean-q -0.5"
    gemma = Parameters().with_value("model", "gemma-2-27b")
    assert Measure(gemma).line() == "attn-tui report --model gemma-2-27b"
    assert Measure(gemma.with_value("softcap", 0.0)).line() == "attn-tui report --model gemma-2-27b --softcap 0"


@for_each(
    "words",
    [
        "sweep --d-k 1:64:log5 --vary scale=d_k,none --statistics all",
        "sweep --scale 0.05 --stderr 1e-05 --of grad_q_median --most-draws 77 --mean-q -1",
        "sweep --vary multiplier=0.5",
        "sweep --stderr 0.5",
        "rules --sort dead-rows --reverse --position 0",
        "rules --sort rule",
        "rules --mechanisms --gain 3",
        "rules --scale 0.25",
        "rules --model gpt-oss-120b --sink none",
        "rules --mechanisms --model gemma-2-27b",
        "sweep --model gemma-2-27b --d-k 16,64 --softcap 0",
        "sweep --vary model=gemma-2-27b,qwen3-8b --d-k 16,64",
    ],
)
def test_a_command_line_makes_the_request_it_was_made_from(words: str) -> None:
    request = request_of(*words.split())
    assert request_of(*shlex.split(request.question.line())[1:]).question == request.question


@pytest.mark.slow
@pytest.mark.parametrize("form", ["table", "json", "markdown", "csv"])
@pytest.mark.parametrize(
    "words",
    [
        ["sweep", "--d-k", "2:9:log3"],
        ["sweep", "--d-k", " 2, 4:5", "--vary", "seed=7,9", "--statistics", "max-weight,logit_std"],
        ["sweep", "--d-k", "4", "--stderr", "0.02", "--of", "max_weight", "--most-draws", "40", "--ascii"],
        ["sweep", "--d-k", "4,8", "--vary", "multiplier=0.1,0.2", "--components", "laplace"],
        ["rules", "--reverse"],
        ["rules", "--mechanisms"],
        ["rules", "--sort", "max-weight", "--precision", "float16", "--softcap", "5", "--ascii"],
        ["rules", "--multiplier", "0.05", "--d-k", "1", "--sort", "multiplier"],
    ],
    ids=" ".join,
)
def test_the_printed_command_prints_the_same_bytes_again(
    form: str, words: list[str], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attn_tui.core.lab.rule_curves.LAST", 16)
    monkeypatch.setattr("attn_tui.core.lab.mechanisms.D_KS", (16, 64))
    first = printed([*words, *SMALL, "--format", form], capsys)
    if form == "csv":  # it has no room for the command
        assert printed([*words, *SMALL, "--format", form], capsys) == first
        return
    lines = [json.loads(first)["command"]] if form == "json" else [s.strip("`") for s in first.splitlines()]
    (command,) = [line for line in lines if line.startswith(f"attn-tui {words[0]}")]
    assert printed(shlex.split(command)[1:], capsys) == first


@for_each(
    "words",
    [
        "sweep --d-k 2,3,4 --n-keys 8,24 --vary scale=d_k,none",
        "sweep --d-k 3 --statistics grad_q_median",
        "rules",
        "softmax",
        "cost --model gpt2",
        "train --d-k 4,8 --steps 2 --seeds 2",
        f"inspect {sample_path()} --layer 1 --head 2",
        f"inspect {sample_path()} --layer 0 --worst 2",
        f"diagnose {sample_path()}",
        f"compare {sample_path()} {sample_path()} --head 0",
        f"check {sample_path()}",
        f"watch {sample_run()} --step 100 --baseline 50 --max-logit 1e6",
    ],
)
def test_a_question_answers_itself_as_its_command_does(
    words: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attn_tui.core.lab.rule_curves.LAST", 16)
    cut_small(monkeypatch)
    question = request_of(*words.split()).question
    answered, shown = (
        json.loads(text)
        for text in (
            written(question.table(question.answer()), "json"),
            printed([*words.split(), "--format", "json"], capsys),
        )
    )
    assert answered | {"command": ""} == shown | {"command": ""}


@for_each(
    "words",
    [
        "inspect ./-x.npz ./-y.npz",
        "diagnose ./-x.npz --config ./-c.json",
        "compare ./-x.npz ./-y.npz",
        "check ./-x.npz --baseline ./-y.npz",
        "watch ./-run --once",
    ],
)
def test_a_path_is_not_written_as_an_option(words: str) -> None:
    assert request_of(*words.split()).question.line() == f"attn-tui {words}"


@for_each("word", ["a b", "it's", "$HOME", "new\nline", "\x1b[31mred", "\udcff.npz", "é.npz", "'\\\x07'", "*", "~"])
def test_a_shell_reads_any_word_from_one_printable_line(word: str) -> None:
    line = in_shell(["printf", "%s", word])
    assert line.isprintable()
    shell = "bash" if "$'" in line else "sh"  # not every sh knows $'', but the shells that people type into do
    result = subprocess.run([shell, "-c", line], capture_output=True, check=True, timeout=300)
    assert result.stdout == os.fsencode(word)
