"""Where softmax freezes under each rule."""

import math
from dataclasses import replace

import pytest
from attn_tui.core.errors import ParameterError
from attn_tui.core.parameters import Parameters, ScaleName
from attn_tui.core.scales import SCALE_RULES, multiplier
from attn_tui.core.theory.freezing import freezing
from attn_tui.core.theory.predict import predict


def test_unscaled_logits_freeze_and_scaled_ones_do_not() -> None:
    p = Parameters(d_k=64, n_keys=1024)
    unscaled = freezing(p, "none")
    assert unscaled.threshold == pytest.approx(math.sqrt(2 * math.log(1024)))
    assert unscaled.logit_std == 8
    assert unscaled.d_k == 14  # the first above 2 ln n = 13.86
    assert predict(p).columns[1].freezing == freezing(p, "sqrt_d_k")
    assert freezing(p, "sqrt_d_k").d_k is None
    assert freezing(p, "d_k").d_k is None
    # The scale does not depend on the components' size, so they may be large enough to freeze everywhere.
    assert freezing(replace(p, std_q=10.0), "sqrt_d_k").d_k == 1
    assert freezing(replace(p, n_keys=1), "none").d_k is None
    assert freezing(replace(p, correlation=1.0), "none").d_k is None


def logit_std(p: Parameters, rule: ScaleName, d_k: int) -> float | None:
    """The logits' standard deviation within a row; None if the rule has no multiplier."""
    try:
        return multiplier(rule, replace(p.setting, d_k=d_k)) * p.std_k * math.sqrt(d_k)
    except ParameterError:
        return None


@pytest.mark.parametrize("rule", [rule.name for rule in SCALE_RULES.values() if rule.normalise == "none"])
def test_a_rule_freezes_from_the_first_width_above_which_all_are_frozen(rule: ScaleName) -> None:
    """Found by looking at widths one by one."""
    for n_keys, factor in ((2, 0.4), (3, 0.01), (5, 0.4), (8, 0.01), (128, 0.4), (8192, 0.01)):
        p = Parameters(n_keys=n_keys, scale="custom", multiplier=factor, std_k=1.3)
        if logit_std(p, rule, p.d_k) is None:
            continue
        found = freezing(p, rule)
        near = {d for edge in (1, found.d_k or 1, 16_384) for d in range(edge - 150, edge + 150)}
        looked_at = [d for d in range(1, 16_385) if d in near or d % 37 == 0]
        spreads = {d: std for d in looked_at if (std := logit_std(p, rule, d)) is not None}
        thawed = max((d for d, std in spreads.items() if std < found.threshold), default=0)
        assert found.d_k == min((d for d in spreads if d > thawed), default=None), (n_keys, factor)


def test_freezing_is_not_known_for_normalised_scores() -> None:
    with pytest.raises(ValueError, match="cosine_10"):
        freezing(Parameters(), "cosine_10")
