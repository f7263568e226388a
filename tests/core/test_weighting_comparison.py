"""The comparison of weightings on the Lab's queries and keys."""

import math
from dataclasses import replace

import numpy as np
import pytest
from attn_tui.core.attention.weightings import softmax_weighting
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.sampling import Draws
from attn_tui.core.lab.scoring import kept_draws, sides, vectors_of
from attn_tui.core.lab.weighting import comparison as weightings
from attn_tui.core.lab.weighting.results import MEASURES, NOT_OF_WEIGHTINGS, WEIGHTINGS, WeightingRow
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.measurement import Estimate
from cases import for_each

SMALL = Parameters(d_k=16, n_keys=24, n_queries=24, batch=6, mask="causal")


def compared(p: Parameters) -> dict[str, WeightingRow]:
    *_, last = weightings.stream(p)
    assert last.fraction == 1
    assert last.found
    return {row.name: row for row in last.found}


def value(row: WeightingRow, name: str) -> float:
    found = row.measured[name].value
    assert found is not None
    return found


@for_each("scale", ["none", "sqrt_d_k", "cosine_10", "d_k", "ssmax"])
@for_each(("name", "sink"), [("softmax", "none"), ("softmax_sink", "logit")])
def test_softmax_is_as_the_report_measures_it(name: str, sink: str, scale: str) -> None:
    p = replace(SMALL, scale=scale)
    row, column = compared(p)[name], run(p.with_value("sink", sink)).columns[-1]
    for measure in ("max_weight", "one_hot_rows", "jacobian_norm"):
        expected = column.measured[measure]
        assert row.measured[measure].value == pytest.approx(expected.value, rel=2e-4, abs=1e-6)
        assert row.measured[measure].stderr == pytest.approx(expected.stderr, rel=2e-3, abs=1e-6)
    if sink == "none":
        assert value(row, "entropy") == pytest.approx(column.measured["entropy"].value, rel=2e-4)
        assert value(row, "weight_sum") == pytest.approx(1)
    else:
        assert value(row, "weight_sum") < 1


def test_what_does_not_apply_has_no_value() -> None:
    for name, row in compared(SMALL).items():
        assert list(row.measured) == [*MEASURES]
        without = {measure for measure, estimate in row.measured.items() if estimate == Estimate(None, None)}
        assert without == set(MEASURES) - set(WEIGHTINGS[name].measures)


def test_the_constants_are_those_of_the_sources() -> None:
    found = compared(replace(SMALL, layer=2))
    assert found["sigmoid"].setting == -math.log(24)
    assert found["differential"].setting == pytest.approx(0.8 - 0.6 * math.exp(-0.6))
    assert value(found["differential"], "weight_sum") == pytest.approx(0.6 * math.exp(-0.6) + 0.2)
    assert found["forgetting"].setting == pytest.approx(0.880797)
    assert found["qk_clip"].setting == 1
    assert found["qk_clip"].measured == found["softmax"].measured


def test_qk_clip_softens_logits_above_its_limit() -> None:
    found = compared(replace(SMALL, d_k=4096, scale="none"))
    factor = found["qk_clip"].setting
    assert factor is not None
    assert 0.2 < factor < 0.7  # the largest of 300 logits of deviation 64 is about 180
    assert value(found["qk_clip"], "entropy") > value(found["softmax"], "entropy")


def test_qk_clip_multiplies_logits_so_that_the_largest_visible_one_is_at_its_limit() -> None:
    p = replace(SMALL, d_k=4096, scale="none")
    draws = Draws()
    list(draws.grow(p, sides(p)))
    q, k = vectors_of(p, kept_draws(p, sides(p), draws, slice(0, p.batch)))
    hidden = ~np.tri(p.n_queries, p.n_keys, dtype=bool)
    logits = (q @ k.mT).astype(np.float64)
    factors = [100 / z[~hidden].max() for z in logits]
    each = [softmax_weighting(c * z, hidden) for c, z in zip(factors, logits, strict=True)]
    found = compared(p)["qk_clip"]
    assert any(z.max() > z[~hidden].max() for z in logits)
    assert found.setting == pytest.approx(np.mean(factors), rel=1e-5)
    assert value(found, "max_weight") == pytest.approx(
        np.mean([w.weights.max(axis=-1).mean() for w in each]), rel=1e-3
    )
    norms = [c * w.jacobian_norm.mean() for c, w in zip(factors, each, strict=True)]
    assert value(found, "jacobian_norm") == pytest.approx(np.mean(norms), rel=1e-3)


def test_sparser_weightings_have_more_zeros_and_less_entropy() -> None:
    found = compared(replace(SMALL, mask="none"))
    entropies = [value(found[name], "entropy") for name in ("softmax", "entmax_15", "sparsemax")]
    assert entropies == sorted(entropies, reverse=True)
    assert 0 < value(found["entmax_15"], "zero_weights") < value(found["sparsemax"], "zero_weights") < 1


def test_equal_logits_have_closed_forms() -> None:
    n = 24
    found = compared(replace(SMALL, std_q=0.0, mask="none"))
    sums = {"softmax": 1, "softmax_sink": n / (n + 1), "sigmoid": n / (n + 1), "entmax_15": 1, "sparsemax": 1}
    for name, total in sums.items():
        assert value(found[name], "weight_sum") == pytest.approx(total)
        assert value(found[name], "entropy") == pytest.approx(math.log(n))
    # J is the projection onto Σ = 0, times s: 1/n for softmax, 1 for sparsemax, √(1/n) for entmax-1.5.
    assert value(found["softmax"], "jacobian_norm") == pytest.approx(math.sqrt(n - 1) / n)
    assert value(found["sparsemax"], "jacobian_norm") == pytest.approx(math.sqrt(n - 1))
    assert value(found["entmax_15"], "jacobian_norm") == pytest.approx(math.sqrt((n - 1) / n))
    zero = value(found["sparsemax"], "zero_weights"), value(found["entmax_15"], "one_hot_rows")
    assert zero == (0, 0)


@pytest.mark.parametrize(
    ("parameters", "name", "says"),
    [
        (replace(SMALL, mask="none"), "forgetting", "needs a causal mask"),
        (replace(SMALL, d_k=7), "differential", "even d_k"),
        (replace(SMALL, d_k=2, scale="log_d_k"), "differential", "halves d_k"),
    ],
)
def test_a_weighting_that_does_not_exist_says_why(parameters: Parameters, name: str, says: str) -> None:
    found = compared(parameters)
    assert says in found[name].fault
    assert not found[name].measured
    assert [row.name for row in found.values() if row.fault] == [name]


def test_differential_attention_scales_each_half_for_its_own_width() -> None:
    # Halves of 8 components have variance 8, so 1/√8 gives softmax weights like those of the whole vector.
    p = replace(SMALL, d_k=64, mask="none", batch=64, layer=0)
    found = compared(p)
    halves = [value(found["softmax"], "jacobian_norm") ** 2 * (1 + 0.2**2)]
    assert value(found["differential"], "jacobian_norm") ** 2 == pytest.approx(halves[0], rel=0.03)


def test_parameters_without_effect_change_nothing() -> None:
    changed = replace(SMALL, mechanism="additive", gain=3.0, softcap=2.0, sink="logit", precision="float16", d_v=5)
    assert {name for name in NOT_OF_WEIGHTINGS if getattr(changed, name) != getattr(SMALL, name)} >= {
        "mechanism", "gain", "softcap", "sink", "precision", "d_v",
    }  # fmt: skip
    for a, b in zip(compared(SMALL).values(), compared(changed).values(), strict=True):
        assert a.measured == b.measured


def test_a_sample_of_the_rows_is_measured_if_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = compared(SMALL)["softmax"]
    monkeypatch.setattr(weightings, "ENTRIES", 6 * 24 * 10)
    part = compared(SMALL)["softmax"]
    assert (whole.rows, part.rows, part.draws) == (24, 10, 6)
    spread = part.measured["max_weight"].stderr
    assert spread is not None
    assert abs(value(part, "max_weight") - value(whole, "max_weight")) < max(6 * spread, 0.1)


def test_the_mean_over_draws_has_its_standard_error() -> None:
    stderr = {n: compared(replace(SMALL, batch=n))["sparsemax"].measured["entropy"].stderr for n in (16, 256)}
    assert 2.5 < (stderr[16] or 0) / (stderr[256] or 1) < 6  # about √(256/16)
