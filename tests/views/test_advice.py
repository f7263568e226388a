"""Advice in one line: it never says what the numbers beside it contradict, and what it suggests works."""

import re
from dataclasses import replace
from typing import Any

import pytest
from attn_tui.core.against import settings
from attn_tui.core.errors import ParameterError
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import FIELD, Parameters
from attn_tui.core.scales import SCALE_RULES
from attn_tui.core.statistics.catalogue import MUCH_LOST
from attn_tui.core.statistics.measurement import Column, Estimate
from attn_tui.core.statistics.status import SATURATING
from attn_tui.core.theory.predict import predict
from attn_tui.core.theory.prediction import Saturation, ratio_given, status_given
from attn_tui.tui.views.glyphs import ASCII, UNICODE
from attn_tui.tui.views.numbers import percent
from attn_tui.tui.views.results.advice import advice, ratio_words
from hypothesis import HealthCheck, example, given
from hypothesis import settings as examples
from hypothesis import strategies as st

SMALL: dict[str, Any] = {"n_queries": 8, "batch": 4, "d_v": 4}
LABELS = {rule.label: name for name, rule in SCALE_RULES.items()}

parameters = st.builds(
    Parameters,
    d_k=st.sampled_from([1, 2, 4, 8, 16, 64, 256]),
    n_keys=st.sampled_from([1, 2, 3, 16, 128, 512]),
    n_queries=st.just(8),
    batch=st.just(4),
    d_v=st.just(4),
    scale=st.sampled_from(FIELD["scale"].choices),
    multiplier=st.sampled_from([1e-6, 0.05, 1.0, 1000.0]),
    against=st.sampled_from(["unscaled", "none", "d_k", "components=laplace", "precision=float8_e4m3fn,mask=causal"]),
    components=st.sampled_from(FIELD["components"].choices),
    mean_q=st.sampled_from([0.0, 0.0, 3.0]),
    std_k=st.sampled_from([0.0, 0.1, 1.0, 1.0, 30.0]),
    correlation=st.sampled_from([0.0, 0.0, 0.5, 1.0]),
    mask=st.sampled_from(FIELD["mask"].choices),
    mechanism=st.sampled_from(FIELD["mechanism"].choices),
    softcap=st.sampled_from([0.0, 0.0, 5.0]),
    sink=st.sampled_from(["none", "none", "logit"]),
    sink_logit=st.sampled_from([0.0, 5.0]),
    precision=st.sampled_from(["float32", "float32", "float16", "bfloat16", "float8_e5m2"]),
)  # fmt: skip


def columns(p: Parameters) -> list[tuple[Parameters, Column, Saturation | None]]:
    """The parameters, measurement and saturation of A and B."""
    exact = predict(p).columns
    return [
        (own, column, known.saturation) for own, column, known in zip(settings(p), run(p).columns, exact, strict=True)
    ]


def value(column: Column, name: str) -> float:
    return column.measured[name].value or 0.0


def numbers_after(words: str, said: str) -> list[float]:
    return [float(number.replace("−", "-")) for number in re.findall(rf"{words} ([\d.e−-]+)", said)]


@pytest.mark.slow
@examples(max_examples=4 * examples().max_examples, suppress_health_check=[HealthCheck.too_slow])
@given(parameters)
@example(Parameters(d_k=10, n_keys=128, **SMALL))
@example(Parameters(scale="d_k", **SMALL))
@example(Parameters(precision="float16", arithmetic="eager", std_q=100, std_k=100, scale="none", **SMALL))
@example(Parameters(components="rademacher", d_k=1, n_keys=512, scale="custom", multiplier=4, **SMALL))
def test_no_verdict_contradicts_the_numbers_beside_it(p: Parameters) -> None:
    try:
        both = columns(p)
    except ParameterError:  # a rule without a multiplier
        return
    for own, column, saturation in both:
        said = advice(own, column, saturation, UNICODE)
        word, ratio = status_given(saturation, column.measured), ratio_given(saturation, column.measured)
        if word is None:
            assert not said
            continue
        assert said.removeprefix("a ").startswith(word)
        assert said.endswith(".")
        assert len(re.findall(r"\b(uniform|healthy|saturation:|NaN|one-hot)", said)) <= 1, said
        if "σ is" in said:
            assert ratio is not None
            assert f"σ is {ratio_words(ratio, UNICODE)}" in said
            assert ("times saturation" in said) == (ratio >= 1)
        saturated = saturation is not None and any(a <= own.d_k <= b for a, b in saturation.saturated_at)
        if re.search(r"saturated (from|at)", said):
            assert saturation is not None
            assert saturation.words()[0] in said
            assert (word == "saturated") == saturated
        if "stays below" in said:
            assert saturation is not None
            assert not saturation.saturated_at
            assert ratio is not None
            assert ratio < SATURATING
        lost = value(column, "weight_lost")
        assert ("of the weight at n" in said) == (abs(lost) > MUCH_LOST and word != "NaN")
        if "loses" in said:
            assert f"loses {percent(lost)} of the weight at n {own.n_keys}" in said
        if "largest weight is only" in said:
            assert f"only {percent(value(column, 'max_weight'))}" in said


@pytest.mark.parametrize(
    "change",
    [
        {"scale": "none"},
        {"scale": "none", "d_k": 9},
        {"scale": "d_k"},
        {"scale": "d_k", "d_k": 256},
        {"scale": "8/d", "d_k": 4},
        {"scale": "cosine_1"},
        {"scale": "rms_none"},
        {"scale": "layer_norm_none", "d_k": 32},
        {"std_q": 20.0},
        {"std_k": 0.01},
        {"scale": "custom", "multiplier": 10.0, "n_keys": 16},
        {"scale": "none", "mechanism": "bilinear"},
        {"scale": "none", "components": "laplace"},
        {"scale": "none", "mask": "causal"},
        {"scale": "none", "precision": "bfloat16"},
    ],
)
def test_what_it_suggests_makes_the_ratio_what_it_says(change: dict[str, Any]) -> None:
    p = replace(Parameters(d_k=64, n_keys=128, n_queries=16, batch=4, d_v=4), **change)
    own, column, saturation = columns(p)[1]
    said = advice(own, column, saturation, UNICODE)
    suggested = re.search(r"; (× )?([^;]+) would make it (a third|[\d.]+)\.$", said)
    assert suggested is not None, said
    times, text, claimed = suggested.groups()
    changed = {"scale": "custom", "multiplier": float(text)} if times else {"scale": LABELS[text]}
    _, better, known = columns(replace(p, **changed))[1]
    ratio = ratio_given(known, better.measured)
    assert ratio == pytest.approx(1 / 3 if claimed == "a third" else float(claimed), rel=0.03)
    assert status_given(known, better.measured) == "healthy"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "healthy: σ is 0.321 of saturation, and stays below it at every d_k."),
        ({"scale": "d_k"}, "uniform: σ is 0.0401 of saturation; 1/√d_k would make it 0.321."),
        ({"scale": "none"}, "saturated from d_k 10 up: σ is 2.57 times saturation; 1/√d_k would make it 0.321."),
        ({"scale": "none", "d_k": 4}, "healthy: σ is 0.642 of saturation; saturated from d_k 10 up."),
        ({"std_k": 0.0}, "uniform: all logits of a row are equal."),
        ({"n_keys": 1}, ""),
    ],
)
def test_the_words(change: dict[str, Any], words: str) -> None:
    own, column, saturation = columns(replace(Parameters(**SMALL), **change))[1]
    assert advice(own, column, saturation, UNICODE) == words
    assert advice(own, column, saturation, ASCII).isascii()


def test_overflow_lost_weight_and_sinks_are_named() -> None:
    eager = Parameters(precision="float16", arithmetic="eager", std_q=100, std_k=100, scale="none", **SMALL)
    assert re.search(r"^NaN: logits overflow float16 in \d+(\.\d)? % of rows\.$", advice(*columns(eager)[1], UNICODE))
    sink = Parameters(sink="logit", sink_logit=8.0, **SMALL)
    assert re.search(r"^a sink: the sink gets 9\d %\.$", advice(*columns(sink)[1], UNICODE))
    (a, column, _), _ = columns(replace(sink, precision="float8_e4m3fn", n_keys=512))
    lossy = replace(column, measured={**column.measured, "weight_lost": Estimate(0.92, 0.0)})
    assert "; float8 e4m3 loses 92 % of the weight at n 512" in advice(a, lossy, None, UNICODE)
