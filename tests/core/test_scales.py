import math
from typing import get_args

import pytest
from attn_tui.core.attention.scales import SCALE_RULES, multiplier
from attn_tui.core.parameters import ParameterError, ScaleName


@pytest.mark.parametrize("d_k", [1, 2, 3, 64, 16_384])
def test_rules_have_the_multipliers_that_their_formulas_say(d_k: int) -> None:
    assert multiplier("none", d_k) == 1
    assert multiplier("sqrt_d_k", d_k) == pytest.approx(d_k**-0.5, rel=1e-15)
    assert multiplier("d_k", d_k) == 1 / d_k
    assert multiplier("two_sqrt_d_k", d_k) == multiplier("sqrt_d_k", d_k) / 2
    assert multiplier("custom", d_k, 0.3) == 0.3
    if d_k > 1:
        assert multiplier("log_d_k", d_k) == 1 / math.log(d_k)


def test_a_rule_without_a_value_is_one_clear_line() -> None:
    with pytest.raises(ParameterError, match="1/ln d_k has no value at d_k = 1; choose another"):
        multiplier("log_d_k", 1)


def test_every_name_has_a_rule_with_its_user_and_source() -> None:
    assert tuple(SCALE_RULES) == get_args(ScaleName)
    for name, rule in SCALE_RULES.items():
        assert rule.name == name
        assert rule.formula
        assert rule.used_by
        assert rule.source
