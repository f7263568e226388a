"""Comparing what attention returned: no stage is the same beyond what rounding and noise make of it, as a number."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.diagnosis.comparing.compare import compare
from attn_tui.core.diagnosis.comparing.results import Comparison, Stage
from attn_tui.core.diagnosis.results import ORDER, StageName
from attn_tui.core.tables.diagnosis import verdict
from pairs import D_K, TOKENS, Array, Layer, Recipe, attention, causal, changed, recipe, rotated, rounded, written

FORMATS = ("float32", "float16", "bfloat16")
BIAS = 96.0  # a common part of all queries and keys, as the biases of Qwen2 make it


def compared(one: Recipe, other: Recipe, folder: Path) -> Comparison:
    return compare(written(one, folder / "one.safetensors"), written(other, folder / "other.safetensors"))


def first(found: Comparison) -> tuple[StageName, int]:
    assert found.first is not None
    stage, heads = found.first
    return stage.name, heads[0].layer.index


def stages(found: Comparison, name: StageName, layer: int = 1) -> list[Stage]:
    return [each.stages[ORDER.index(name)] for each in found.heads if each.layer.index == layer]


def with_layers(one: Recipe, **values: Any) -> Recipe:
    return replace(one, layers=[replace(each, **values) for each in one.layers])


def one_head(format: str = "float32") -> Recipe:
    """A healthy capture of one head."""
    whole = recipe(format, layers=1)
    sides = {side: getattr(whole.layers[0], side)[:, :1] for side in ("q", "k", "v")}
    return with_layers(whole, **sides)


def returning(one: Recipe, **values: Any) -> Recipe:
    """A copy of a capture of one layer with the same log-sum-exps, and weights and outputs of something else."""
    return replace(one, returned=[replace(one.layers[0], **values)])


MASKED = causal()
WRONG: dict[str, dict[str, Any]] = {
    "unscaled": {"scale": 1.0},
    "twice": {"scale": 1 / D_K},
    "without mask": {"seen": None},
    "window": {"seen": MASKED & ~causal(shift=-8)},
    "sink": {"sink": 2.0},
    "bias": {"bias": -0.2 * np.abs(np.subtract.outer(np.arange(TOKENS), np.arange(TOKENS)))},
    "other keys": {"used_k": recipe(layers=1).layers[0].k[:, 1:2]},
}


@pytest.mark.parametrize(("fault", "format"), [*zip(WRONG, FORMATS * 3, strict=False)])
@pytest.mark.parametrize("kind", ["weights", "o"])
def test_wrong_outputs_and_weights_beside_the_right_log_sum_exps_differ(
    kind: StageName, fault: str, format: str, tmp_path: Path
) -> None:
    one = replace(with_layers(one_head(format), seen=MASKED, causal="top-left"), evidence=("lse", kind))
    found = compared(one, returning(one, **WRONG[fault]), tmp_path)
    assert [stage.state for stage in stages(found, "lse", 0)] == ["same"]
    assert first(found)[1] == 0
    assert {stage.state for stage in stages(found, kind, 0)} <= {"differs", "follows"}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("factor", [0.5, 1.5, 0.97])
def test_outputs_that_are_a_factor_times_those_of_the_reference_say_it(
    factor: float, format: str, tmp_path: Path
) -> None:
    one = replace(one_head(format), evidence=("lse", "o"))
    found = compared(one, returning(one, whole=factor), tmp_path)
    assert first(found) == ("o", 0)
    says = stages(found, "o", 0)[0].says
    [said] = re.findall(r"outputs are × ([\d.]+)", says)
    assert float(said) == pytest.approx(factor, rel=1e-3)


@pytest.mark.parametrize("kind", ["weights", "o"])
@pytest.mark.parametrize("noise", [0.03, 0.3])
def test_what_is_off_says_by_how_much(noise: float, kind: StageName, tmp_path: Path) -> None:
    one = replace(one_head(), evidence=("lse", kind))
    spoiled = 1 + noise * np.random.default_rng(1).normal(size=(1, 1, TOKENS, TOKENS))
    found = compared(one, returning(one, kept=spoiled), tmp_path)
    assert first(found) == (kind, 0)
    [said] = re.findall(r"([\d.]+) % of their size off", stages(found, kind, 0)[0].says)
    at = 1 if kind == "weights" else 2
    before, after = (attention(layer)[at] for layer in (one.layers[0], replace(one.layers[0], kept=spoiled)))
    assert float(said) == pytest.approx(100 * np.linalg.norm(after - before) / np.linalg.norm(before), rel=0.02)


@pytest.mark.parametrize(
    ("factor", "more", "words"),
    [
        (1.0, 0.02, "{reference} +0.02:"),
        (1.0, -3.0, "{reference} −3:"),
        (1.03, 0.0, "× 1.03 of"),
        (0.7, 0.0, "× 0.7 of"),
    ],
)
def test_log_sum_exps_that_are_off_by_a_constant_or_a_factor_say_it(
    factor: float, more: float, words: str, tmp_path: Path
) -> None:
    one = replace(one_head(), evidence=("lse", "o"))
    found = compared(one, replace(one, lse_factor=factor, lse_more=more), tmp_path)
    says = stages(found, "lse", 0)[0].says
    assert words.format(reference="those of the reference") in says
    both = compared(one, replace(one, lse_factor=1.03, lse_more=1.0), tmp_path)  # neither
    assert "% of their size off" in stages(both, "lse", 0)[0].says


@pytest.mark.parametrize("format", ["float16", "bfloat16"])
def test_a_factor_is_told_where_rounding_of_the_scores_would_explain_more(format: str, tmp_path: Path) -> None:
    """Both files round scores of thousands: what that does to outputs is larger than what a factor of 0.9 does."""
    one = coarse(one_head(format), "bfloat16")
    found = compared(one, returning(one, whole=0.9), tmp_path)
    assert first(found) == ("o", 0)
    assert float(stages(found, "o", 0)[0].says.split()[3]) == pytest.approx(0.9, rel=2e-3)


def coarse(one: Recipe, scores: str, said: bool = True) -> Recipe:
    """A copy whose queries and keys share a large part, and whose scores are rounded to a format."""
    layers = [
        replace(
            each,
            q=rounded(each.q + BIAS, one.format),
            k=rounded(each.k + BIAS, one.format),
            scores=scores,
            said_scores=scores if said else None,
        )
        for each in one.layers
    ]
    return replace(one, layers=layers, evidence=("lse", "o"))


@pytest.mark.parametrize("said", [True, False])
def test_scores_that_one_file_rounds_coarsely_are_the_first_difference(said: bool, tmp_path: Path) -> None:
    one, other = (coarse(one_head("bfloat16"), scores, said) for scores in ("float32", "bfloat16"))
    found = compared(one, other, tmp_path)
    assert first(found) == ("qk", 0)
    says = stages(found, "qk", 0)[0].says
    assert says.startswith("scores are rounded to bfloat16, in steps of up to")
    back = compared(other, one, tmp_path)
    assert first(back) == ("qk", 0)
    assert "in the reference they are rounded to bfloat16" in stages(back, "qk", 0)[0].says
    assert not compared(other, other, tmp_path).differs
    silent = replace(with_layers(other, said_scores=None), evidence=())  # of which nothing tells the format
    for pair in ((silent, other), (other, silent)):
        assert not compared(*pair, tmp_path).differs


def test_rounding_to_another_format_that_changes_nothing_is_no_difference(tmp_path: Path) -> None:
    one = with_layers(one_head("bfloat16"), scores="bfloat16", said_scores="bfloat16")
    other = with_layers(one_head("bfloat16"), said_scores="float32")
    assert not compared(one, other, tmp_path).differs


@pytest.mark.parametrize("format", FORMATS)
def test_one_fault_in_both_is_no_difference_in_what_attention_returned(format: str, tmp_path: Path) -> None:
    one = with_layers(one_head(format), said_scale=D_K**-0.5, scale=1 / D_K)
    assert not compared(one, rotated(one, np.random.default_rng(5)), tmp_path).differs


def test_dropout_in_both_is_not_compared(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    files = [
        replace(
            with_layers(one_head(), kept=rng.random((1, 1, TOKENS, TOKENS)) > 0.2, whole=1.25),
            evidence=("weights",),
        )
        for _ in range(2)
    ]
    found = compared(files[0], files[1], tmp_path)
    assert not found.differs
    assert {stage.state for stage in stages(found, "weights", 0)} == {"not-compared"}


def test_weights_that_were_changed_leave_outputs_not_compared_and_this_is_said_first(tmp_path: Path) -> None:
    one = recipe()

    def other_scores(layer: Layer) -> None:
        layer.q = 2 * layer.q

    files = [
        written(each, tmp_path / f"{name}.safetensors")
        for name, each in (("a", one), ("b", changed(one, other_scores)))
    ]
    reference, test = (
        replace(file, layers=(replace(file.layers[0], changed=("relu",), followed=True), *file.layers[1:]))
        for file in files
    )
    found = compare(reference, test)
    assert {stage.state for stage in stages(found, "o", 0)} == {"not-compared"}
    said = verdict(found)
    assert said[0] == "output of layer 0 not compared: weights were changed (relu)"
    assert all(words in said[1] for words in ("multiplier", "layer 1, all 4 heads", "is × 0.5, × 0.25 "))


@pytest.mark.parametrize("format", FORMATS)
def test_noise_of_q_and_k_explains_what_it_makes_of_the_outputs_and_no_more(format: str, tmp_path: Path) -> None:
    one = one_head(format)
    turned = rotated(one, np.random.default_rng(5))
    found = compared(one, turned, tmp_path)
    assert not found.differs
    assert max(stage.change or 0 for name in ("lse", "weights", "o") for stage in stages(found, name, 0)) < 2
    spoiled: Array = 1 + 0.05 * np.random.default_rng(1).normal(size=(1, 1, TOKENS, TOKENS))
    assert first(compared(one, returning(turned, kept=spoiled), tmp_path)) == ("weights", 0)
