"""attn-tui softmax."""

import csv
import io
import math

import pytest
from attn_tui.tui.cli.main import main
from cli_runner import Captured, printed


def test_it_prints_the_weights_of_the_scores(capsys: Captured) -> None:
    text = printed(["softmax", "--scores", "-1,0", "--format", "csv", "--scale", "0.5"], capsys)
    assert text.startswith("temperature,shift,precision,scale,multiplier,quantity,row,column,value\n")
    weights = [
        float(row[-1]) for row in csv.reader(io.StringIO(text)) if row[-4] == "weights" and row[-6] == "custom"
    ]
    assert weights == pytest.approx([1 / (1 + math.exp(0.5)), 1 / (1 + math.exp(-0.5))])
    assert "5 of 5 overflow" in printed(["softmax", "--shift", "800"], capsys)


def test_options_without_effect_are_noted(capsys: Captured) -> None:
    words = ["softmax", "--scale", "0.5", "--d-k", "9", "--n-keys", "9", "--layer", "2"]
    assert main(words) == 0
    assert [line.split()[2] for line in capsys.readouterr().err.splitlines()] == ["--layer", "--d-k", "--n-keys"]
    assert main(["softmax", "--against", "d_k,softcap=5,components=laplace,precision=float16"]) == 0
    noted = [line.split()[2:4] for line in capsys.readouterr().err.splitlines()]
    assert noted == [["--against", "softcap"], ["--against", "components"]]
    assert printed(["softmax", "--scale", "ssmax", "--d-k", "9", "--n-keys", "9"], capsys)
