import os
import shlex
import subprocess
from typing import Any

import pytest
from attn_tui.core.attention.scales import Setting, multiplier
from attn_tui.core.parameters import FIELDS, Field, ParameterError, Parameters
from attn_tui.tui.command import command_line, in_shell
from attn_tui.tui.options import parse
from attn_tui.tui.requests import Report
from attn_tui.tui.views.glyphs import UNICODE
from hypothesis import assume, example, given
from hypothesis import strategies as st


def values(field: Field) -> st.SearchStrategy[Any]:
    """The default, which the command leaves out, or any value that the field accepts."""
    usual = st.just(getattr(Parameters(), field.name))
    if field.kind == "choice":
        return usual | st.sampled_from(field.choices)
    if field.kind == "integer":
        return usual | st.integers(int(field.low), int(field.high))
    return usual | st.floats(field.low, field.high)


def parameters_of(**values: Any) -> Parameters:
    try:
        return Parameters(**values)
    except ParameterError:  # these values do not go together
        assume(False)
        raise


all_parameters = st.fixed_dictionaries({field.name: values(field) for field in FIELDS}).map(
    lambda values: parameters_of(**values)
)


def asked_by(line: str) -> Parameters:
    program, *words = shlex.split(line)
    assert program == "attn-tui"
    request = parse(words, UNICODE)
    assert isinstance(request, Report)
    return request.parameters


def has_multiplier(parameters: Parameters) -> bool:
    try:
        return multiplier(parameters.scale, Setting.of(parameters)) > 0
    except ParameterError:
        return False


@given(all_parameters)
@example(Parameters(multiplier=0.5))
@example(Parameters(scale="custom"))
@example(Parameters(mean_q=-1e-3, mean_k=-5.0, correlation=-1.0))
def test_a_command_asks_for_the_parameters_that_it_was_made_from(parameters: Parameters) -> None:
    assume(has_multiplier(parameters))  # 1/log 1 and ln 1 are refused, as they should be
    assert asked_by(command_line(parameters)) == parameters


def test_only_what_differs_from_the_defaults_is_written() -> None:
    assert command_line(Parameters()) == "attn-tui report"
    assert command_line(Parameters(), "sweep") == "attn-tui sweep"
    assert command_line(Parameters(d_k=512, scale="d_k")) == "attn-tui report --d-k 512 --scale d_k"
    assert command_line(Parameters(mean_q=-0.5)) == "attn-tui report --mean-q -0.5"


@pytest.mark.parametrize(
    "word", ["a b", "it's", "$HOME", "new\nline", "\x1b[31mred", "\udcff.npz", "é.npz", "'\\\x07'", "*", "~"]
)
def test_a_shell_gets_every_word_as_it_is_from_one_line_of_what_can_be_shown(word: str) -> None:
    line = in_shell(["printf", "%s", word])
    assert line.isprintable()
    if "$'" in line:  # not every sh knows it; every shell that people type into does
        result = subprocess.run(["bash", "-c", line], capture_output=True, check=True, timeout=10)
    else:
        result = subprocess.run(["sh", "-c", line], capture_output=True, check=True, timeout=10)
    assert result.stdout == os.fsencode(word)
