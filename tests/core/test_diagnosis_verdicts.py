"""What a verdict says: ties, refusals, designs that are no faults, little evidence, and consequences."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import attn_tui
import numpy as np
import pytest
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.configuration import parse_configuration
from attn_tui.core.diagnosis.reading import read_subject
from attn_tui.core.diagnosis.results import Verdict
from attn_tui.core.diagnosis.subject import Evidence, Kind, StatedFacts, Subject
from attn_tui.core.diagnosis.verdict import diagnose
from capture_files import save
from cases import for_each
from faults import injected
from injection import (
    FORMATS,
    KINDS,
    Array,
    Case,
    case_of,
    normed,
    random_head,
    real_head,
    rounded,
    subject_of,
    turned,
)

HEAD = random_head(64, 96, True)


def verdict_of(case: Case, number_format: str = "float32", kind: Kind = "lse") -> Verdict:
    return diagnose(subject_of(case, number_format, kind))


def scaled(multiplier: float, **facts: object) -> Case:
    """The head with this multiplier, and facts that the file says."""
    case = case_of(HEAD, "float32")
    case.multiplier = multiplier
    case.say(**facts)
    return case


def test_two_scalings_and_one_over_d_are_one_number_and_both_are_named() -> None:
    found = verdict_of(scaled(1 / 64))
    assert found.cause == "scale-twice"
    assert "scale-1-over-d" in found.also
    assert found.multiplier == pytest.approx(1 / 64, rel=1e-6)
    assert found.expected.multiplier == 1 / 8


def test_at_d_256_a_padded_width_and_a_fixed_scalar_are_one_number() -> None:
    case = case_of(random_head(128, 40, True), "float32")
    case.multiplier = 256**-0.5
    found = verdict_of(case)
    assert {"scale-padded", "scale-fixed"} <= {found.cause, *found.also}


def test_an_unusual_number_of_another_format_is_no_rule_s_for_certain() -> None:
    case = case_of(HEAD, "bfloat16")
    case.multiplier = 1 / math.sqrt(144)
    found = verdict_of(case, "bfloat16", "weights")
    assert found.cause == "scale-fixed"
    assert "scale-other" in found.also


@for_each(("spread", "apart"), [(0.03, False), (0.1, True)])
def test_names_that_nearly_uniform_rows_do_not_tell_apart_are_all_named(spread: float, apart: bool) -> None:
    """1/√128 is 2 % larger than ln 2/√64."""
    case = case_of(random_head(64, 60, False, spread), "bfloat16")
    case.multiplier = math.log(2) / 8
    found = verdict_of(case, "bfloat16", "o")
    assert found.cause == "scale-base2"
    assert ("scale-padded" not in found.also) == apart


def test_a_multiplier_with_a_standard_error_above_a_tenth_is_undecided() -> None:
    case = case_of(random_head(16, 8, False, 0.0025), "bfloat16")
    case.eager = False
    found = verdict_of(case, "bfloat16", "o")
    assert found.word == "undecided"
    assert found.multiplier == pytest.approx(0.25, rel=0.5)


@pytest.mark.parametrize(
    ("config", "multiplier"),
    [
        ('{"model_type": "granite", "attention_multiplier": 0.015625}', 1 / 64),
        ('{"model_type": "t5", "d_kv": 64}', 1.0),
        ('{"model_type": "gemma2", "query_pre_attn_scalar": 224, "head_dim": 64}', 224**-0.5),
        ('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "scale_attn_by_inverse_layer_idx": true}', 1 / 32),
        ('{"model_type": "llama", "hidden_size": 768, "num_attention_heads": 12}', 1 / 8),
    ],
)
def test_the_configuration_says_which_scale_is_expected(config: str, multiplier: float) -> None:
    given = parse_configuration(config, "config.json")
    subject = subject_of(scaled(multiplier), "float32", "lse")
    assert diagnose(subject, given).word == "healthy"
    other = subject_of(scaled(multiplier * 1.06), "float32", "lse")
    assert diagnose(other, given).word == "cause"
    within = replace(subject, facts=replace(subject.facts, scale=None, config=given))
    assert diagnose(within).expected.multiplier == pytest.approx(multiplier)


def test_without_a_scale_the_usual_one_is_assumed_and_this_is_said() -> None:
    found = verdict_of(scaled(1 / 8, scale=None))
    assert found.word == "healthy"
    assert found.expected.assumed
    assert "assumed" in found.expected.words


def test_q_and_k_alone_are_no_evidence() -> None:
    subject = replace(subject_of(case_of(HEAD, "float32"), "float32", "lse"), evidence=())
    found = diagnose(subject)
    assert found.word == "no-evidence"
    assert found.multiplier is None
    assert found.says == "q and k alone cannot tell which scale was used"


@pytest.mark.parametrize("kind", KINDS)
def test_uniform_rows_are_undecided(kind: Kind) -> None:
    case = case_of(HEAD, "float32")
    case.q = case.used_q = np.zeros_like(case.q)
    assert verdict_of(case, kind=kind).word == "undecided"


@pytest.mark.parametrize("kind", ["weights", "o"])
def test_one_hot_rows_are_undecided(kind: Kind) -> None:
    case = case_of(real_head(0, 2), "float16")  # all weight of every row is on one token
    case.q = case.q * 8
    case.used_q, case.used_k = case.q, case.k
    found = verdict_of(case, "float16", kind)
    assert found.word == "undecided"


@for_each("number_format", FORMATS)
def test_weights_of_equal_keys_which_are_rounded_alike_are_healthy(number_format: str) -> None:
    case = case_of(HEAD, number_format)
    case.k = case.used_k = np.repeat(case.k[:2], 48, axis=0)
    case.seen = case.used_seen = np.ones((96, 96), np.bool_)
    assert verdict_of(case, number_format, "weights").word == "healthy"


def test_a_temperature_of_the_number_of_visible_keys_is_found_in_a_window() -> None:
    case = case_of(HEAD, "float32")
    case.seen = case.used_seen = case.seen & (np.tri(96, k=-40) == 0)
    case.say(window=40)
    case.row_factors = np.log(case.seen.sum(axis=1) + 1) / math.log(41)
    assert verdict_of(case).cause == "scale-by-position"


def test_a_rotation_with_another_base_is_named_with_it() -> None:
    case = case_of(HEAD, "float32")
    case.used_q, case.used_k = (turned(side, theta=150_000) for side in (case.q, case.k))
    found = verdict_of(case)
    assert found.cause == "rope-twice"
    assert "θ 150000" in found.says


@for_each("kind", KINDS)
@for_each("number_format", FORMATS)
def test_a_nearly_one_hot_head_is_not_accused(number_format: str, kind: Kind) -> None:
    """Rounding of its large logits in bfloat16 blurs the multiplier by a fifth."""
    for eager in (True, False):
        case = case_of(real_head(0, 2), number_format)
        case.eager = eager
        assert verdict_of(case, number_format, kind).word in ("healthy", "undecided")


@pytest.mark.parametrize("kind", ["weights", "o"])  # lse is the one logit itself
def test_the_first_row_of_a_causal_mask_says_nothing(kind: Kind) -> None:
    case = case_of(HEAD, "float32")
    for name in ("q", "used_q", "positions", "seen", "used_seen"):
        setattr(case, name, getattr(case, name)[:1])
    assert verdict_of(case, kind=kind).word == "undecided"


def test_a_soft_cap_far_above_the_logits_cannot_be_seen() -> None:
    case = case_of(HEAD, "bfloat16")
    case.say(softcap=1000 * case.largest)
    assert verdict_of(case, "bfloat16", "weights").word == "healthy"


@pytest.mark.parametrize("kind", ["lse", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("weights", "o"))])
def test_nothing_known_explains_other_evidence(kind: Kind) -> None:
    case = case_of(HEAD, "float32")
    case.used_q = np.random.default_rng(9).normal(size=case.q.shape)
    assert verdict_of(case, kind=kind).word == "unexplained"


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_that_are_not_finite_are_named(kind: Kind) -> None:
    subject = subject_of(case_of(HEAD, "float32"), "float32", kind)
    values = subject.evidence[0].values.copy()
    values[0, 7] = np.nan
    found = diagnose(replace(subject, evidence=(replace(subject.evidence[0], values=values),)))
    assert (found.word, found.cause, found.evidence) == ("cause", "not-finite", kind)
    assert kind in found.says
    q = subject.q.copy()
    q[0, 3, 2] = np.inf
    assert diagnose(replace(subject, q=q)).cause == "not-finite"
    q[0, 3:] = subject.q[0, 3:]
    q[0, 7] *= 1e30
    broken = (replace(subject.evidence[0], values=values),)
    overflowed = diagnose(replace(subject, q=q, evidence=broken, facts=replace(subject.facts, scores="float16")))
    assert overflowed.findings[0].stage == "qk"


@pytest.mark.parametrize(("number_format", "kind"), [*zip(("float32", "float16", "bfloat16"), KINDS, strict=True)])
def test_a_row_without_keys_is_explained_by_a_mask_that_hides_the_own_key(kind: Kind, number_format: str) -> None:
    subject = subject_of(injected(HEAD, number_format, "own key hidden"), number_format, kind)
    [evidence] = subject.evidence
    for empty in (np.nan, -np.inf):
        values = evidence.values.copy()
        values[0, 0] = empty
        found = diagnose(replace(subject, evidence=(replace(evidence, values=values),)))
        assert (found.cause, found.also) == ("own-key-hidden", ("not-finite",))


@pytest.mark.parametrize("number_format", ["float16", "bfloat16"])
def test_a_scale_rounded_to_the_format_of_queries_is_healthy(number_format: str) -> None:
    case = case_of(random_head(48, 60, True), number_format)
    case.multiplier = rounded(np.array(case.multiplier), number_format).item()
    found = verdict_of(case, number_format, "lse")
    assert found.word == "healthy"
    assert found.says.endswith(f"as expected, rounded to {number_format}")
    case.multiplier *= 1.003
    assert verdict_of(case, number_format, "lse").cause == "scale-other"


AWAY = np.arange(96) - np.arange(96)[:, np.newaxis]
# What a model stores of HEAD's q and k, what its file says, and what it adds.
DESIGNS: dict[str, tuple[Array, Array, dict[str, Any], Any]] = {
    "T5": (HEAD.q / 8, HEAD.k, {"scale": 1.0}, np.sin(AWAY / 7) * 2),
    "Gemma 4": (normed(HEAD.q) * 0.4, normed(HEAD.k) * 0.3, {"scale": 1.0}, None),
    "gpt-oss": (HEAD.q, HEAD.k, {"sink": 1.0}, None),
    "prescaled": (HEAD.q / 8, HEAD.k, {"scale": 1.0, "prescaled": 1 / 8}, None),
    "muP": (HEAD.q, HEAD.k, {"scale": 8 / 64}, None),
    "Granite": (HEAD.q, HEAD.k, {"scale": 1 / 64}, None),
    "both sides": (HEAD.q * 64**-0.25, HEAD.k * 64**-0.25, {"scale": 1.0, "prescaled": 1 / 8}, None),
    "Gemma 2": (HEAD.q, HEAD.k, {"softcap": 50.0, "scale": 256**-0.5}, None),
}


def designed(name: str) -> Case:
    """A case of a design, whose stored numbers float16 holds."""
    case = case_of(HEAD, "float32")
    q, k, said, bias = DESIGNS[name]
    case.q = case.used_q = rounded(q, "float16")
    case.k = case.used_k = rounded(k, "float16")
    case.say(**said)
    case.multiplier, case.softcap, case.sink = case.facts.scale or 0.0, said.get("softcap"), said.get("sink")
    case.bias = case.used_bias = bias
    return case


@for_each("kind", KINDS)
@for_each("number_format", FORMATS)
@for_each("design", DESIGNS)
def test_legitimate_designs_are_healthy(design: str, number_format: str, kind: Kind) -> None:
    assert verdict_of(designed(design), number_format, kind).word == "healthy"


@pytest.mark.parametrize("multiplier", [1.0, 1 / 8])
def test_a_factor_that_is_unknown_leaves_the_scale_undecided(multiplier: float) -> None:
    case = case_of(HEAD, "float32")
    case.say(unknown_factor=True, scale=multiplier, observed=True)
    case.multiplier = multiplier
    found = verdict_of(case)
    assert (found.word, found.cause) == ("undecided", None)
    assert found.multiplier == pytest.approx(multiplier)


def test_prescaled_queries_that_are_scaled_again_are_scaled_twice() -> None:
    case = designed("prescaled")
    case.multiplier = 1 / 8
    assert verdict_of(case).cause == "scale-twice"


def test_rounding_of_logits_to_sixteen_bits_is_no_fault_where_the_file_does_not_say() -> None:
    subject = subject_of(case_of(real_head(2, 3), "bfloat16"), "bfloat16", "weights")
    silent = replace(subject, facts=replace(subject.facts, scores=None))
    assert diagnose(silent).word == "healthy"


def test_evidence_with_a_fault_decides_over_evidence_without_one() -> None:
    good = subject_of(case_of(HEAD, "float32"), "float32", "lse")
    bad = subject_of(injected(HEAD, "float32", "dropout"), "float32", "weights")
    found = diagnose(replace(good, evidence=(*good.evidence, *bad.evidence)))
    assert (found.cause, found.evidence) == ("dropout-on", "weights")


def test_multi_head_latent_attention_has_the_width_of_a_head() -> None:
    """q and k of 576 as absorbed, the expected scale that of 192."""
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(1, 40, 576)), rng.normal(size=(1, 40, 576))
    for width in (192, 576):
        z = q @ k.mT * width**-0.5
        lse = np.log(np.exp(z).sum(axis=-1))
        facts = StatedFacts(576, scale=192**-0.5)
        subject = Subject(q, k, "float32", facts, (Evidence("lse", lse, "float32"),), np.arange(40, dtype=np.intp))
        found = diagnose(subject)
        names = {found.cause, *found.also}
        assert (found.word == "healthy") == (width == 192)
        assert ({"scale-d-model", "scale-fixed", "scale-padded"} <= names) == (width == 576)


@pytest.mark.parametrize("error", [-4e-5, 4e-5])
def test_an_approximate_exponential_of_a_kernel_is_no_fault(error: float) -> None:
    """PyTorch's flash attention on CPUs leaves log-sum-exps of nearly one-hot rows off by 4e-5."""
    for head in (random_head(64, 96, True), real_head(3, 1)):
        subject = subject_of(case_of(head, "float16"), "float16", "lse")
        [evidence] = subject.evidence
        verdict = diagnose(replace(subject, evidence=(replace(evidence, values=evidence.values + error),)))
        assert verdict.word == "healthy"
        assert verdict.misfit is not None
        assert verdict.misfit < 1.5


def weights(case: Case, multiplier: float, sink: float | None) -> Array:
    """The weights of all rows, and that of the sink as those of one more key."""
    logits = np.where(case.seen, multiplier * case.q @ case.k.T, -np.inf)
    beside = np.full((len(logits), 1), -np.inf if sink is None else sink)
    whole = np.concatenate([logits, beside], axis=1)
    powers = np.exp(whole - whole.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def entropy(p: Array) -> float:
    return float(-(p * np.log(np.where(p > 0, p, 1))).sum(axis=1).mean())


@pytest.mark.parametrize("sinks", [(None, None), (1.5, 1.5), (None, 1.5), (1.5, None)])
@pytest.mark.parametrize("multiplier", [1.0, 1 / 64])
def test_a_consequence_is_that_of_the_weights(multiplier: float, sinks: tuple[float | None, float | None]) -> None:
    case = case_of(HEAD, "float32")
    case.multiplier, case.sink = multiplier, sinks[0]
    case.say(sink=sinks[1])
    verdict = diagnose(subject_of(case, "float32", "weights"))
    found = verdict.consequence
    if sinks[0] != sinks[1] and found is None:
        return  # a fault of two causes need not be understood
    assert found is not None
    whole, expected = weights(case, multiplier, sinks[0]), weights(case, 1 / 8, sinks[1])
    p, r = whole[:, :-1], expected[:, :-1]
    assert found.entropy == pytest.approx(entropy(p), rel=1e-5)
    assert found.expected_entropy == pytest.approx(entropy(r), rel=1e-5)
    assert found.max_weight == pytest.approx(p.max(axis=1).mean(), rel=1e-5)
    assert found.expected_max_weight == pytest.approx(r.max(axis=1).mean(), rel=1e-5)
    assert found.changed_rows == np.mean(p.argmax(axis=1) != r.argmax(axis=1))
    for drawn, rows in ((found.row, p), (found.expected_row, r)):
        assert drawn == pytest.approx(-np.sort(-rows, axis=1).mean(axis=0)[:64], rel=1e-5)
    if sinks[0] is None or sinks[1] is None:
        whole, expected = (each / each.sum(axis=1, keepdims=True) for each in (p, r))
    ratio = np.log(np.where(whole > 0, whole, 1)) - np.log(np.where(whole > 0, expected, 1))
    assert found.divergence == pytest.approx((whole * ratio).sum(axis=1).mean(), rel=1e-4)


def test_a_fault_that_moves_the_largest_weight_changes_rows() -> None:
    case = case_of(HEAD, "float32")
    case.used_seen = np.ones((96, 96), np.bool_)
    verdict = diagnose(subject_of(case, "float32", "weights"))
    assert verdict.cause == "causal-lost"
    assert verdict.consequence is not None
    logits = case.q @ case.k.T / 8
    first, now = (np.where(seen, logits, -math.inf).argmax(axis=1) for seen in (case.seen, case.used_seen))
    assert 0 < verdict.consequence.changed_rows == np.mean(first != now)


TOKENS = 16


def verdicts(folder: Path, tensors: dict[str, Array], **metadata: Any) -> list[Verdict]:
    """The verdict on each head of a layer."""
    named = {f"layers.0.attn.{name}": array for name, array in tensors.items()}
    capture = open_capture(save(folder / "x.safetensors", named, schema="attn-tui/qk-2", **metadata))
    layer = capture.layers[0]
    return [diagnose(read_subject(capture, layer, head, None, None)) for head in range(layer.heads)]


@for_each("softcap", [0, 0.7, 30.0])
@for_each("kind", ["weights", "o"])
def test_rows_of_one_key_do_not_tell_the_scale(tmp_path: Path, kind: str, softcap: float) -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(2, 8, TOKENS, 8)).astype(np.float32) for _ in "qkv")
    weights = np.broadcast_to(np.eye(TOKENS, dtype=np.float32), (2, 8, TOKENS, TOKENS))
    evidence = {"weights": weights} if kind == "weights" else {"v": v, "o": v}
    told = {"causal": "false", "window": [0, 0], "scale": list(np.linspace(0.1, 2, 8)), "softcap": softcap}
    found = verdicts(tmp_path, {"q": q, "k": k, **evidence}, **told)
    assert {each.word for each in found} == {"undecided"}


@for_each(("lost", "verdict"), [(0, "healthy"), (1, "undecided"), (4, "undecided")])
def test_one_row_is_as_expected_or_undecided(tmp_path: Path, lost: int, verdict: str) -> None:
    """The log-sum-exp of one row fits some multiplier, whichever keys it lacks: that is no evidence for that one."""
    rng = np.random.default_rng(3)
    q = rng.normal(size=(1, 64, 1, 16)).astype(np.float32)
    k = rng.normal(size=(1, 64, 60, 16)).astype(np.float32)
    z = (q.astype(np.float64) @ k.astype(np.float64).mT) / 4
    lse = np.log(np.exp(z[..., : 60 - lost]).sum(axis=-1)).astype(np.float32)
    found = verdicts(tmp_path, {"q": q, "k": k, "lse": lse}, scale="0.25", causal="false")
    assert [each.word for each in found].count(verdict) >= 60
    assert all(each.word in (verdict, "undecided") for each in found)


def test_nan_begins_where_queries_see_no_key(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    sides = {f"layers.{layer}.attn.{role}": rng.normal(size=(2, 2, TOKENS, 8)) for layer in range(3) for role in "qk"}
    mask = np.broadcast_to(np.tri(TOKENS, dtype=np.bool_), (2, 1, TOKENS, TOKENS)).copy()
    mask[1, :, :, :5] = False
    sides |= {f"layers.{layer}.attn.mask": mask for layer in range(3)}
    for layer in (1, 2):
        sides[f"layers.{layer}.attn.q"][1, :, :5] = np.nan
    found = attn_tui.diagnose(save(tmp_path / "x.safetensors", sides, schema="attn-tui/qk-2"))
    assert [each.verdict.cause for each in found.heads] == ["not-finite"] * 2 + [None] * 4
    assert "5 of 32 queries see no key" in found.heads[0].verdict.says
    assert all("layer 0" in each.verdict.says for each in found.heads[2:])
    sides["layers.1.attn.q"][0, :, 7] = np.nan  # which sees keys, so that it is from elsewhere
    sides["layers.1.attn.q"][1, :, :5] = 0
    found = attn_tui.diagnose(save(tmp_path / "x.safetensors", sides, schema="attn-tui/qk-2"))
    assert [each.verdict.cause for each in found.heads] == [None, None, "not-finite", "not-finite", None, None]


@pytest.mark.parametrize("kind", ["weights", "o", "lse"])
def test_a_head_without_visible_keys_is_undecided(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(1)
    side = rng.normal(size=(1, 2, TOKENS, 8))
    of = {"weights": (1, 2, TOKENS, TOKENS), "o": side.shape, "lse": side.shape[:3]}
    tensors = {"q": side, "k": side, "v": side, kind: np.zeros(of[kind])}
    bias = np.full((1, 2, TOKENS, TOKENS), -np.inf)
    found = verdicts(tmp_path, {**tensors, "bias": bias}, causal="false", scale=0.5, attention="cross")
    assert [(each.word, each.says) for each in found] == [("undecided", "no query sees a key")] * 2


def _shifted(case: Case, window: int) -> None:
    """Align a causal window at the top left, where the file says bottom right."""
    tokens = len(case.k)
    rows = tokens // 2
    case.shift = tokens - rows
    case.q = case.used_q = case.q[:rows]
    case.positions = np.arange(rows) + case.shift
    away = np.arange(tokens) - case.positions[:, np.newaxis]
    case.seen = (away <= 0) & (away > -window)
    moved = away + case.shift
    case.used_seen = (moved <= 0) & (moved > -window)
    case.say(window=window)


@pytest.mark.parametrize("kind", KINDS)
def test_a_window_moves_with_the_corner_of_a_causal_mask(kind: Any) -> None:
    case = case_of(random_head(64, 96, True), "float32")
    _shifted(case, 12)
    found = diagnose(subject_of(case, "float32", kind))
    assert (found.word, found.cause) == ("cause", "causal-shifted")
    assert found.multiplier == pytest.approx(1 / 8, rel=1e-4)


@pytest.mark.parametrize(("said", "kind"), [(None, "weights"), (20, "lse"), (11, "o"), (13, "lse")])
def test_the_length_of_a_window_is_found(kind: Any, said: int | None) -> None:
    case = case_of(random_head(64, 96, True), "float32")
    before = np.arange(96)[:, np.newaxis] - np.arange(96)
    case.used_seen = case.seen & (before < 12)
    if said is not None:
        case.seen = case.seen & (before < said)
        case.say(window=said)
    found = diagnose(subject_of(case, "float32", kind))
    words = "a window of 12 keys" if said is None else f"the window has 12 keys, not {said}"
    assert words in found.says
