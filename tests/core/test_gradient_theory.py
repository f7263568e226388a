"""The exact RMS of ‖∂L/∂q‖ against a simulation that shares nothing with the lab but definitions."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import textbook
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.theory.predict import predict
from simulation import draw_vectors

QUESTION = Parameters(d_k=9, n_keys=13, n_queries=11, batch=4, d_v=5)
EXACT: dict[str, dict[str, Any]] = {
    "default": {},
    "one component": {"d_k": 1},
    "wide": {"d_k": 40, "scale": "ssmax"},
    "causal": {"mask": "causal"},
    "causal beyond the keys": {"mask": "causal", "n_queries": 30, "d_k": 4},
    "means": {"mean_q": 1.5, "mean_k": -4.0},
    "sizes": {"std_q": 3.0, "std_k": 0.5},
    "aligned": {"correlation": 0.6},
    "opposed, with means": {"correlation": -0.5, "mean_q": 0.7, "mean_k": 1.0, "mask": "causal"},
    "one query for all": {"std_q": 0.0, "mean_q": 1.0},
    "narrow values": {"d_v": 1},
    "no queries": {"std_q": 0.0, "components": "laplace"},
    "no queries and a mask": {"std_q": 0.0, "components": "uniform", "mask": "causal", "correlation": 0.5},
}


@pytest.mark.parametrize("change", EXACT.values(), ids=EXACT)
def test_the_exact_gradient_agrees_with_a_simulation(change: dict[str, Any]) -> None:
    p, draws = replace(QUESTION, **change), 8_000
    rng = np.random.default_rng(0)
    q, k = draw_vectors(p, rng, draws, 1, p.n_keys)
    g, v = rng.standard_normal((draws, p.d_v)), rng.standard_normal((draws, p.n_keys, p.d_v))
    received = np.einsum("dv,dnv->dn", g, v)
    row = np.arange(draws) % p.n_queries if p.mask == "causal" else np.full(draws, p.n_keys)
    seen = np.arange(p.n_keys) <= row[:, None]
    for rule, column in zip(("none", p.scale), predict(p).columns, strict=True):
        c = textbook.RULES[rule][1](p.d_k, p.n_keys)
        weights = textbook.softmax(c * (q @ k.mT)[:, 0], seen, None)[0]
        d_z = weights * (received - np.sum(weights * received, axis=1, keepdims=True))
        squares = np.sum(np.einsum("dn,dnk->dk", d_z, c * k) ** 2, axis=1)
        exact = column.values["grad_q_rms"]
        assert exact is not None
        stderr = squares.std() / math.sqrt(draws)
        assert stderr < 0.05 * exact**2
        assert abs(squares.mean() - exact**2) < 3.5 * stderr


@pytest.mark.parametrize(
    "change",
    [{"components": "uniform"}, {"sink": "logit"}, {"softcap": 9.0}, {"mechanism": "cosine"}, {"scale": "rms_none"}],
    ids=str,
)
def test_some_gradients_have_no_exact_value(change: dict[str, Any]) -> None:
    assert predict(replace(QUESTION, **change)).columns[1].values["grad_q_rms"] is None


@pytest.mark.parametrize("change", [{"n_keys": 1}, {"std_k": 0.0, "mean_k": 3.0}, {"correlation": -1.0}], ids=str)
def test_with_equal_keys_the_exact_and_the_measured_gradient_are_zero(change: dict[str, Any]) -> None:
    p = replace(QUESTION, **change)
    for measured, exact in zip(run(p).columns, predict(p).columns, strict=True):
        assert exact.values["grad_q_rms"] == 0
        assert measured.measured["grad_q_rms"].value == pytest.approx(0, abs=1e-5)
