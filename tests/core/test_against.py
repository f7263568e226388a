"""Settings A and B: each column is what its own parameters give, and A's text says in what it differs from B."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from attn_tui.core.against import apart, fault_of_settings, idle_changes, settings, share_scores
from attn_tui.core.errors import ParameterError
from attn_tui.core.lab.experiment import run, stream
from attn_tui.core.lab.sampling import Draws
from attn_tui.core.parameters import FIELD, UNSCALED, Parameters
from attn_tui.core.scales import SCALE_RULES
from attn_tui.core.statistics.catalogue import EVERY, OF_GRADIENTS
from attn_tui.core.statistics.measurement import column_names, setting_names
from attn_tui.core.theory.predict import predict, theory_of
from cases import for_each
from measurements import assert_close, numbers
from sweeps import points

SMALL = Parameters(d_k=16, n_keys=12, n_queries=8, batch=4, d_v=4)
# What A is, the parameters of B, and A's own parameters.
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "another rule": ("d_k", {}, {"scale": "d_k"}),
    "the same rule": ("sqrt_d_k", {}, {}),
    "a number": ("0.05", {"scale": "custom", "multiplier": 0.5}, {"scale": "custom", "multiplier": 0.05}),
    "a rule by its option": ("rule=none", {}, {"scale": "none"}),
    "the rule's own parameters": ("yarn,context-factor=2", {"scale": "yarn"}, {"context_factor": 2.0}),
    "no QK-norm": ("sqrt_d_k", {"scale": "rms_sqrt_d_k"}, {"scale": "sqrt_d_k"}),
    "QK-norm": ("rms_sqrt_d_k", {}, {"scale": "rms_sqrt_d_k"}),
    "a law": ("law=laplace", {}, {"components": "laplace"}),
    "another rule and law": ("none,components=rademacher", {}, {"scale": "none", "components": "rademacher"}),
    "means": ("mean-q=0.5,std k=2", {}, {"mean_q": 0.5, "std_k": 2.0}),
    "a correlation": ("correlation=0.5", {}, {"correlation": 0.5}),
    "without the correlation": ("correlation=0", {"correlation": 0.5}, {"correlation": 0.0}),
    "a format": ("format=bfloat16", {}, {"precision": "bfloat16"}),
    "a mask": ("mask=causal", {"scale": "ssmax"}, {"mask": "causal"}),
    "a soft-cap": ("soft-cap=2", {}, {"softcap": 2.0}),
    "a sink": ("sink=logit,sink-logit=1", {}, {"sink": "logit", "sink_logit": 1.0}),
    "a mechanism": ("mechanism=bilinear,gain=2", {}, {"mechanism": "bilinear", "gain": 2.0}),
    "more keys": ("n-keys=24", {}, {"n_keys": 24}),
}


def case(name: str) -> tuple[Parameters, Parameters]:
    """The parameters of B with `against`, and those of A."""
    against, of_b, of_a = CASES[name]
    against = against.replace("std k", "std of k")
    b = replace(SMALL, **of_b)
    return b.with_value("against", FIELD["against"].parse(against)), replace(b, **of_a)


@for_each("name", CASES)
def test_each_column_is_what_its_own_parameters_give(name: str) -> None:
    p, a = case(name)
    found = run(p)
    assert found.subject == p
    for column, own in zip(found.columns, (a, replace(p, against=UNSCALED)), strict=True):
        alone = run(own).columns[1]
        assert (column.rule, column.multiplier) == (own.scale, alone.multiplier)
        if share_scores(p):
            assert_close(column, alone, own, 1e-5)
        else:
            assert numbers([column]) == numbers([alone])


@for_each("name", CASES)
def test_theory_is_that_of_each_columns_parameters(name: str) -> None:
    p, a = case(name)
    exact = predict(p).columns
    for column, own in zip(exact, settings(p), strict=True):
        assert column == predict(own).columns[1]
    assert exact[0] == predict(a).columns[1]


@for_each("name", CASES)
def test_columns_agree_with_their_theory(name: str) -> None:
    p, _ = case(name)
    theory = theory_of(run(replace(p, batch=32, n_queries=32), full=False))
    compared = [d for deviations in theory.deviations for d in deviations.values() if d is not None]
    assert max(map(abs, compared), default=0) < 5


def test_the_same_q_and_k_are_used_where_the_laws_are_the_same() -> None:
    p = replace(SMALL, against="precision=float64")
    double, single = run(p).columns
    assert_close(double, single, p, 1e-4)
    p = replace(SMALL, against="softcap=1000")
    capped, plain = run(p).columns
    assert capped.measured["logit_std"].value == pytest.approx(plain.measured["logit_std"].value, rel=1e-3)


def test_other_components_are_drawn_once_and_kept() -> None:
    p, draws = replace(SMALL, against="components=laplace"), Draws()
    first = numbers(run(p, draws).columns)
    kept = draws.other.of("key", slice(0, 4), 16)
    assert numbers(run(replace(p, scale="d_k"), draws).columns[:1]) != first[:1]  # A follows B's rule
    assert np.shares_memory(kept, draws.other.of("key", slice(0, 4), 16))
    assert numbers(run(p, draws).columns) == first


def test_results_during_a_run_have_both_columns() -> None:
    p = replace(SMALL, n_keys=2048, n_queries=512, against="softcap=50")
    partial = [found for step in stream(p, statistics=EVERY - OF_GRADIENTS) if (found := step.measurement())]
    assert len(partial) > 1
    assert not partial[0].complete
    assert all(len(found.columns) == 2 for found in partial)
    assert numbers(partial[-1].columns) == numbers(run(p, full=False).columns)


@for_each("rule", SCALE_RULES)
def test_unscaled_means_the_same_q_and_k_without_the_multiplier(rule: str) -> None:
    p = replace(SMALL, scale=rule, multiplier=0.3)
    unscaled, scaled = run(p).columns
    assert unscaled.multiplier == 1
    assert SCALE_RULES[unscaled.rule].normalise == SCALE_RULES[rule].normalise
    assert not unscaled.apart
    for name, power in (("logit_std", 1), ("logit_variance", 2)):
        wide, narrow = unscaled.measured[name].value, scaled.measured[name].value
        assert wide is not None
        assert narrow == pytest.approx(wide * scaled.multiplier**power, rel=1e-4)


def test_an_unscaled_column_of_q_and_k_as_drawn_beside_a_rule_that_normalises_says_so() -> None:
    p = replace(SMALL, scale="rms_sqrt_d_k", against="none")
    assert apart(p) == ({"normalise": "none"}, {"normalise": "rms"})
    assert [column.apart for column in run(p).columns] == [*apart(p)]
    assert column_names(run(p).columns) == ["unscaled, q and k as drawn", "rms 1/√d_k"]


@for_each(
    ("change", "names"),
    [
        ({}, ["unscaled", "scaled"]),
        ({"scale": "rms_sqrt_d_k"}, ["unscaled", "scaled"]),
        ({"scale": "none"}, ["unscaled", "unscaled"]),
        ({"against": "d_k"}, ["1/d_k", "1/√d_k"]),
        ({"against": "sqrt_d_k", "scale": "cosine_1"}, ["1/√d_k", "cos(q, k)"]),
        ({"against": "0.05", "scale": "custom", "multiplier": 0.5}, ["× 0.05", "× 0.5"]),
        ({"against": "precision=bfloat16"}, ["bfloat16", "float32"]),
        ({"against": "precision=bfloat16,arithmetic=eager"}, ["bfloat16, eager", "float32"]),
        ({"against": "arithmetic=eager", "precision": "bfloat16"}, ["arithmetic eager", "arithmetic fused"]),
        ({"against": "d_k,precision=bfloat16"}, ["1/d_k, bfloat16", "1/√d_k, float32"]),
        ({"against": "unscaled,components=laplace"}, ["unscaled, Laplace", "1/√d_k, normal"]),
        ({"against": "mask=causal,mean_q=0.5"}, ["mask causal, mean of q 0.5", "mask none, mean of q 0"]),
        ({"against": "precision=float32"}, ["1/√d_k", "1/√d_k"]),
    ],
)
def test_names_say_what_tells_the_columns_apart(change: dict[str, Any], names: list[str]) -> None:
    p = replace(SMALL, **change)
    assert column_names(run(p, full=False).columns) == names
    assert setting_names(p) == names


def test_a_sweep_measures_both_at_every_point() -> None:
    p = replace(SMALL, against="components=laplace,softcap=0")
    for nested, swept in ((True, replace(SMALL, against="d_k")), (False, p)):
        for point in points(swept, (4, 16)):
            alone = run(point.parameters, full=False)
            for one, other, own in zip(
                point.measurement.columns, alone.columns, settings(point.parameters), strict=True
            ):
                assert_close(one, other, own) if nested else None
                assert nested or numbers([one]) == numbers([other])
    with pytest.raises(ParameterError, match="ln d_k has no value"):
        points(replace(SMALL, against="log_d_k"), (1, 2))


@for_each(
    ("text", "message"),
    [
        ("rull=none", r"no parameter 'rull' \(did you mean rule\?\)"),
        ("foo", "must be unscaled, a scale rule or formula, a number or name=value, not 'foo'"),
        ("sqrt_dk", r"\(did you mean sqrt_d_k\?\)"),
        ("foo", "not 'foo'; for example precision=bfloat16$"),
        ("bf16", r"not 'bf16' \(did you mean precision=bfloat16\?\)"),
        ("precision=fp16", r"\(did you mean float16\?\)"),
        ("Causal", r"\(did you mean mask=causal\?\)"),
        ("d_k=4", "d_k must be the same for A and B"),
        ("seed=4", "seed must be the same for A and B"),
        ("against=none", "against must be the same"),
        ("none,scale=d_k", "scale is given twice"),
        ("0.1,multiplier=0.2", "multiplier is given twice"),
        ("precision=float33", "format: must be one of .* not 'float33'"),
        ("n-keys=0", "keys: must be a whole number"),
        ("1e9", "multiplier: must be a number from"),
        ("", "must be unscaled"),
        (3, "must be unscaled, .*, not 3"),
        ("precision=float8_e5m2,arithmetic=eager", "arithmetic: must be fused"),
    ],
)
def test_a_text_that_is_not_understood_is_refused_with_what_is_accepted(text: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=rf"^against: .*{message}"):
        Parameters(against=text)


def test_a_and_b_must_not_contradict_each_other_whichever_is_set_last() -> None:
    p = Parameters(against="precision=float8_e5m2")
    with pytest.raises(ParameterError, match=r"^against: arithmetic: must be fused"):
        p.with_value("arithmetic", "eager")


def test_steps_turn_as_rule_and_keep_what_else_is_set() -> None:
    field = FIELD["against"]
    assert field.stepped("precision=bfloat16", 1) == "unscaled,precision=bfloat16"
    assert field.stepped("none,precision=bfloat16", 1) == "sqrt_d_k,precision=bfloat16"
    assert field.stepped("0.05", 1) == "unscaled"
    value, seen = UNSCALED, list[str]()
    for _ in range(len(SCALE_RULES) + 1):
        before, value = value, str(field.stepped(value, 1))
        assert field.stepped(value, -1) == before
        seen.append(value)
    assert seen == [*SCALE_RULES, UNSCALED]


def test_steps_go_past_the_rule_none_where_it_is_what_unscaled_is() -> None:
    p = Parameters()
    assert p.stepped("against", 1) == "sqrt_d_k"
    assert p.stepped("against", -1) == "custom"
    back = p.with_value("against", "sqrt_d_k,precision=bfloat16")
    assert back.stepped("against", -1) == "unscaled,precision=bfloat16"
    assert p.with_value("scale", "rms_sqrt_d_k").stepped("against", 1) == "none", "q and k as drawn"
    assert p.stepped("n_keys", 1) == 256


def test_a_rule_of_a_or_of_b_may_have_no_multiplier() -> None:
    assert fault_of_settings(Parameters(d_k=1)) == ""
    for p in (Parameters(d_k=1, scale="log_d_k"), Parameters(d_k=1, against="log_d_k")):
        assert "ln d_k has no value" in fault_of_settings(p)


def test_parameters_that_only_as_rule_needs_have_an_effect() -> None:
    assert FIELD["context_factor"].applies(Parameters(against="yarn"))
    assert not FIELD["context_factor"].applies(Parameters(against="yarn,context-factor=2"))
    assert not FIELD["context_factor"].applies(Parameters(against="d_k"))
    assert idle_changes(Parameters(against="d_k,context-factor=2,precision=float16")) == ["context_factor"]
