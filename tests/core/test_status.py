"""The status of a head: the first word that applies, never one that the statistics beside it contradict."""

import math
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.heads import file_rule, measure_head
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics import reading, tally
from attn_tui.core.statistics.histogram import BinAxis
from attn_tui.core.statistics.measurement import Estimate
from attn_tui.core.statistics.status import MEANINGS, Status, status
from attn_tui.core.theory.predict import predict
from attn_tui.core.theory.prediction import status_given
from cases import for_each

HEALTHY = {
    "saturation": 0.35, "entropy_fraction": 0.9, "max_weight": 0.3, "one_hot_rows": 0.0, "first_key_weight": 0.01,
    "first_key_over_uniform": 1.0, "sink_weight": None, "nan_rows": 0.0,
}  # fmt: skip


def said(exact_ratio: float | None = None, **changes: float | None) -> Status | None:
    values = HEALTHY | changes
    return status({name: Estimate(value, None) for name, value in values.items()}, exact_ratio)


@for_each(
    ("changes", "word"),
    [
        ({}, "healthy"),
        ({"saturation": 0.7, "entropy_fraction": 0.6}, "healthy"),
        ({"saturation": 0.71, "entropy_fraction": 0.6}, "saturating"),
        ({"saturation": 0.999, "entropy_fraction": 0.45}, "saturating"),
        ({"saturation": 1.0, "entropy_fraction": 0.45}, "saturated"),
        ({"saturation": 4.0, "entropy_fraction": 0.1, "one_hot_rows": 0.5}, "saturated"),
        ({"saturation": 4.0, "entropy_fraction": 0.1, "one_hot_rows": 0.51}, "one-hot"),
        ({"saturation": 0.3, "entropy_fraction": 0.2, "one_hot_rows": 0.6}, "one-hot"),  # a key stands out
        ({"saturation": 0.3, "entropy_fraction": 0.333}, "saturating"),
        ({"saturation": 0.3, "entropy_fraction": 0.334}, "healthy"),
        ({"saturation": 8.0, "entropy_fraction": 0.8, "max_weight": 0.2}, "healthy"),  # half of the keys share it
        ({"saturation": 8.0, "entropy_fraction": 0.6, "max_weight": 0.21}, "saturated"),
        ({"entropy_fraction": 0.981, "saturation": 1.2}, "uniform"),
        ({"entropy_fraction": 0.98, "saturation": 1.2}, "saturated"),
        ({"entropy_fraction": 0.99, "first_key_weight": 0.5, "first_key_over_uniform": 1.0}, "uniform"),
        ({"first_key_weight": 0.31, "first_key_over_uniform": 20.0, "saturation": 3.0}, "sink"),
        ({"first_key_weight": 0.9, "first_key_over_uniform": 20.0, "one_hot_rows": 0.9}, "sink"),
        ({"first_key_weight": 0.3, "first_key_over_uniform": 20.0}, "healthy"),
        ({"first_key_weight": 0.301, "first_key_over_uniform": 2.01}, "sink"),
        ({"first_key_weight": 0.5, "first_key_over_uniform": 2.0}, "healthy"),  # by chance
        ({"sink_weight": 0.301, "entropy_fraction": 0.2}, "sink"),
        ({"sink_weight": 0.3}, "healthy"),
        ({"nan_rows": 0.01, "entropy_fraction": 0.99}, "NaN"),
        ({"nan_rows": 1.0, "entropy_fraction": None, "one_hot_rows": None, "saturation": None}, "NaN"),
        ({"nan_rows": None}, "healthy"),
        *(
            ({name: lost}, None)
            for name in ("entropy_fraction", "one_hot_rows", "max_weight", "saturation")
            for lost in (None, math.nan, math.inf)
        ),
    ],
)
def test_the_first_word_that_applies_is_given(changes: dict[str, float | None], word: Status | None) -> None:
    assert said(**changes) == word


def test_every_word_has_a_meaning() -> None:
    assert set(MEANINGS) == set(get_args(Status))


def test_an_exact_ratio_replaces_the_measured_one() -> None:
    assert said(1.01, saturation=0.99, entropy_fraction=0.45) == "saturated"
    assert said(0.99, saturation=1.01, entropy_fraction=0.45) == "saturating"


@pytest.mark.parametrize("n_keys", [2, 3, 8, 128])
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_normal_logits_are_saturated_at_exactly_the_widths_of_theory(n_keys: int, mask: Any) -> None:
    """Unless most rows are one-hot, which is worse."""
    words: set[Status | None] = set()
    for d_k in (1, 2, 3, 4, 5, 9, 10, 14, 64):
        p = Parameters(d_k=d_k, n_keys=n_keys, mask=mask, batch=512 // n_keys)
        found, exact = run(p, full=False).columns[0], predict(p).columns[0].saturation
        assert exact is not None
        word = status_given(exact, found.measured)
        saturated = any(first <= d_k <= last for first, last in exact.saturated_at)
        assert (word in ("saturated", "one-hot")) == saturated, (d_k, word)
        words.add(word)
    assert "saturated" in words


@pytest.mark.parametrize("n_keys", [2, 3, 4, 128])
@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize("scale", ["none", "sqrt_d_k", "custom"])
def test_random_keys_are_never_sinks(n_keys: int, mask: Any, scale: str) -> None:
    """Under a causal mask of two keys, the first one gets three quarters of the weight."""
    p = Parameters(n_keys=n_keys, n_queries=n_keys, mask=mask, scale=scale, multiplier=0.01, batch=1024 // n_keys)
    assert status(run(p, full=False).columns[1].measured) not in ("sink", None)


@for_each(
    ("change", "word"),
    [
        ({"softcap": 1e-6}, "uniform"),
        ({"softcap": 2.0}, "healthy"),
        ({"softcap": 50.0}, "saturated"),
        ({"mechanism": "cosine"}, "uniform"),
        ({"precision": "float16"}, "saturated"),
        ({"precision": "float16", "arithmetic": "eager", "std_q": 100.0, "std_k": 100.0}, "NaN"),
        ({"mechanism": "bilinear", "d_k": 2, "gain": 1.7}, "saturating"),
        ({"sink": "logit", "sink_logit": 30.0}, "sink"),
        ({"n_keys": 1}, None),
    ],
)
def test_there_is_a_status_for_every_mechanism_softcap_format_and_sink(
    change: dict[str, Any], word: Status | None
) -> None:
    p = replace(Parameters(n_keys=32, n_queries=16, batch=4), **change)
    column = run(p, full=False).columns[0]
    assert status_given(predict(p).columns[0].saturation, column.measured) == word


def head(scores: Any) -> Status | None:
    """The status of rows with these scores (rows, keys)."""
    kept = tally.Tally(tally.Shape(1, *scores.shape), [("file", 1.0)], 0.0, math.nan, BinAxis(-99.0, 99.0, 64))
    tally.add(kept, slice(0, 1), slice(0, len(scores)), scores[np.newaxis].astype(float))
    return status(reading.columns(kept, 1, unbiased=False)[0].measured)


def test_made_heads_are_named_for_what_they_do() -> None:
    rng = np.random.default_rng(0)
    look_up = 12 * np.eye(64)
    assert head(look_up) == "one-hot"
    assert head(0.5 * look_up[:, ::-1]) == "saturating"  # 86 % on one key
    assert head(0.4 * look_up[:, ::-1]) == "healthy"  # 66 %
    assert head(np.where(np.arange(64) == 0, 6.0, rng.normal(size=(64, 64)))) == "sink"
    assert head(np.where(np.arange(64) % 2, -50.0, rng.normal(size=(64, 64)))) == "healthy"  # 32 share
    assert head(rng.normal(0, 4, (64, 64))) == "saturated"
    assert head(rng.normal(0, 2.4, (64, 64))) == "saturating"
    assert head(rng.normal(0, 0.1, (64, 64))) == "uniform"


def test_real_heads_have_the_status_that_their_rows_say() -> None:
    capture = open_capture(sample_path())
    words: dict[tuple[int, int], Status | None] = {}
    for layer in capture.layers:
        for number in range(layer.heads):
            column = measure_head(capture, layer, number, [file_rule(layer)]).columns[0]
            words[layer.index, number] = status(column.measured)
            ratio, entropy = (column.measured[name].value for name in ("saturation", "entropy_fraction"))
            assert ratio is not None
            assert entropy is not None
            match words[layer.index, number]:
                case "saturated":
                    assert ratio >= 1
                    assert entropy < 0.5
                case "saturating":
                    assert 0.5 < ratio < 1
                case "healthy":
                    assert ratio < 0.72
                    assert entropy > 0.5
                case word:
                    assert word in ("sink", "one-hot")
    assert words[0, 2] == "one-hot"
    assert words[1, 0] == "sink"
    assert words[1, 8] == "saturated"
    assert words[0, 5] == "saturating"
    assert words[0, 0] == "healthy"
