"""Rules of n under a causal mask: each row is multiplied for the number of keys that it sees."""

from dataclasses import replace

import numpy as np
import pytest
from attn_tui.core.errors import ParameterError
from attn_tui.core.lab import rule_curves
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters, rows_differ
from attn_tui.core.scales import Setting, multiplier, row_multiplier
from attn_tui.core.theory.predict import predict
from attn_tui.core.work.engines import run as run_parts
from attn_tui.core.work.part import results_of
from attn_tui.core.work.rules import row_parts

P = Parameters(d_k=9, n_keys=14, n_queries=11, batch=5, mask="causal", scale="ssmax", precision="float64")
SEEN = np.minimum(np.arange(P.n_queries) + 1, P.n_keys)


@pytest.mark.parametrize("name", ["ssmax", "log512_n"])
def test_each_row_has_its_own_multiplier(name: str) -> None:
    p = replace(P, scale=name)
    measured = run(p).columns[1]
    assert measured.multiplier == multiplier(name, p.setting)
    assert measured.multipliers == tuple(multiplier(name, Setting(p.d_k, n)) for n in (2, p.n_queries))
    assert run(p).columns[0].multipliers is None
    assert run(replace(p, mask="none")).columns[1].multipliers is None
    [row] = [row for done in run_parts(row_parts(p)) for row in results_of(done) if row.rule == name]
    assert row.estimate("entropy_fraction") == measured.measured["entropy_fraction"]
    theory = predict(p).columns[1]
    assert theory.saturation is not None
    assert theory.saturation.saturated_at == ()
    assert theory.values["logit_variance"] is None
    assert theory.values["first_key_weight"] == pytest.approx((1 / SEEN).mean())


@pytest.mark.parametrize("name", ["ssmax", "log512_n"])
def test_the_exact_saturation_ratio_is_that_of_long_rows(name: str) -> None:
    p = replace(P, scale=name, d_k=64, n_keys=512, n_queries=512)
    exact, measured = predict(p).columns[1].saturation, run(p).columns[1].measured["saturation"]
    assert exact is not None
    assert measured.value == pytest.approx(exact.std / exact.threshold, rel=0.03)  # short rows spread less


@pytest.mark.usefixtures("short_rule_grids")
@pytest.mark.parametrize(("precision", "softcap"), [("float32", 0.0), ("bfloat16", 0.0), ("float32", 2.0)])
def test_the_curves_of_rules_use_the_rows_multipliers(precision: str, softcap: float) -> None:
    p = replace(P, precision=precision, softcap=softcap, batch=4, n_queries=14)
    *_, last = rule_curves.stream(p)
    assert last.found is not None
    at = last.found.d_ks.index(16)
    found = run(replace(p, d_k=16, batch=last.found.draws)).columns[1].measured["entropy_fraction"].value
    assert last.found.values["ssmax"][at] == pytest.approx(found, rel=2e-2 if precision == "bfloat16" else 1e-4)


def test_rows_differ_only_under_a_causal_mask_and_rules_of_n() -> None:
    assert rows_differ(P, "ssmax")
    assert not rows_differ(P, "sqrt_d_k")
    assert not rows_differ(replace(P, mask="none"), "ssmax")
    assert not rows_differ(P, "cosine_log2_n")  # its n is a length of training texts, the same for all rows
    assert row_multiplier("ssmax", Setting(n_keys=1)) == 0
    with pytest.raises(ParameterError):
        row_multiplier("log_d_k", Setting(d_k=1))
