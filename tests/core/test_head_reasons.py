"""Why a head is saturated, uniform or a sink: what spreads its logits, words for it, and those of a whole file."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.head import CaptureFile
from attn_tui.core.captures.heads import file_rule, measure_head
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.heads.ranking import HeadFacts, rank, traits, variety
from attn_tui.core.diagnosis.heads.reasons import Traits, has_evidence, head_word, reasons, severity
from attn_tui.core.diagnosis.heads.summary import file_summary
from attn_tui.core.diagnosis.reading import read_subject
from attn_tui.core.diagnosis.results import Expected, Finding, Product, Verdict
from attn_tui.core.diagnosis.verdict import diagnose
from attn_tui.core.statistics.measurement import Estimate
from attn_tui.core.statistics.status import status
from capture_files import opened
from cases import for_each, present

Array = npt.NDArray[Any]
QK2 = {"schema": "attn-tui/qk-2"}


CAPTURE = open_capture(sample_path())
LAYERS = CAPTURE.layers[:2]
SCALE = LAYERS[0].scale or 0.0
EXPECTED = Expected(SCALE, "the file")
HEALTHY = Verdict("healthy", "as expected", EXPECTED, evidence="lse", multiplier=Product(SCALE), misfit=0.8)
TWICE = Finding("scale-twice", "the scale was twice", ("scale-1-over-d",))
WRONG = Verdict("cause", TWICE.says, EXPECTED, (TWICE,), (), "lse", Product(SCALE**2), misfit=0.5)


def normal(heads: int = 4, tokens: int = 40, d_k: int = 16, seed: int = 0, batch: int = 1) -> tuple[Array, Array]:
    """Independent standard normal q and k, [batch, heads, tokens, d_k]."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(batch, heads, tokens, d_k)), rng.normal(size=(batch, heads, tokens, d_k))


def capture_of(folder: Path, q: Array, k: Array, scale: float | None = None, **more: object) -> CaptureFile:
    layer: dict[str, object] = {"name": "0", "index": 0, "heads": q.shape[1], "kv_heads": k.shape[1], **more}
    layer |= {"d_k": q.shape[-1]} | ({} if scale is None else {"scale": scale})
    return opened(folder, {"layers.0.attn.q": q, "layers.0.attn.k": k}, **QK2, layers=[layer])


def found(capture: CaptureFile, head: int = 0, rows: int = 10_000) -> Traits:
    one = traits(capture, capture.layers[0], head, rows)
    assert one is not None
    return one


def measured(capture: CaptureFile, head: int = 0) -> dict[str, Estimate]:
    layer = capture.layers[0]
    return dict(measure_head(capture, layer, head, [file_rule(layer)]).columns[0].measured)


def why(capture: CaptureFile, head: int = 0, verdict: Verdict | None = None) -> tuple[str, ...]:
    layer = [found(capture, each) for each in range(capture.layers[0].heads)]
    return reasons(measured(capture, head), layer[head], layer, verdict)


@pytest.mark.parametrize("causal", [None, "bottom-right"])
@pytest.mark.parametrize("prescaled", [[1.0, 1.0], [0.5, 2.0]])
def test_the_factors_multiply_to_the_variance_of_logits_within_rows(
    causal: str | None, prescaled: list[float], tmp_path: Path
) -> None:
    q, k = normal(heads=4, batch=2)
    f_q, f_k = prescaled
    more: dict[str, object] = {"prescaled": prescaled, "causal": causal is not None}
    if causal is not None:
        more["alignment"] = causal
    capture = capture_of(tmp_path, 3 * f_q * q + 0.5, f_k * k[:, :2], scale=0.7, **more)
    for head in range(4):
        one = found(capture, head)
        variance = measured(capture, head)["logit_variance_within_row"].value
        assert one.spread**2 == pytest.approx(variance, rel=1e-9)
        assert one.scale == pytest.approx(0.7 * f_q * f_k * math.sqrt(16), rel=1e-9)


def test_they_are_near_one_for_independent_normal_components_under_the_usual_scale(tmp_path: Path) -> None:
    q, k = normal(heads=1, tokens=2000, d_k=64)
    one = found(capture_of(tmp_path, q, k, 0.125))
    for value in (one.scale, one.query_size, one.key_spread, one.alignment):
        assert value == pytest.approx(1, abs=0.03)  # of 128,000 components
    assert one.other_cosine == pytest.approx(0, abs=4 / math.sqrt(64 * 2000))
    assert one.query_variety == pytest.approx(1, abs=0.01)


def test_dimensions_and_cosines_are_those_of_all_pairs(tmp_path: Path) -> None:
    q, k = normal(heads=3, tokens=30)
    k[:, :, 0] *= 5
    tiny = [found(capture_of(tmp_path, q * 1e-4, k * 1e-4, 0.25), head) for head in range(3)]
    capture = capture_of(tmp_path, q, k, 0.25)
    for head in range(3):
        one = found(capture, head)
        assert tiny[head].dimensions == one.dimensions
        scores = q[0, head] @ k[0, head].T
        shares = np.linalg.svd(scores - scores.mean(axis=1, keepdims=True), compute_uv=False) ** 2
        held = np.cumsum(shares) / shares.sum()
        assert held[one.dimensions - 1] >= 0.9
        assert one.dimensions == 1 or held[one.dimensions - 2] < 0.9
        lengths = np.linalg.norm(k[0, head], axis=1)
        cosines = scores / np.linalg.norm(q[0, head], axis=1)[:, np.newaxis] / lengths
        assert one.cosine == pytest.approx(cosines[np.arange(30), scores.argmax(axis=1)].mean())
        assert one.first_key_cosine == pytest.approx(cosines[:, 0].mean())
        assert one.other_cosine == pytest.approx(cosines.mean())
        assert one.first_key_size == pytest.approx(lengths[0] / np.median(lengths))
        assert (one.longest_key, one.longest_key_size) == (0, pytest.approx(lengths[0] / np.median(lengths)))


@for_each(
    ("tokens", "found"),
    [([[0, 0]], 0), ([[0, 0], [0, 0]], 0), ([[3, 4]], 1), ([[3, 4], [3, 4]], 0), ([[3, 0], [0, 3]], 0.5**0.5),
     ([[3, 4], [-3, -4]], 1)],
)  # fmt: skip
def test_the_variety_of_tokens_is_the_share_that_differs(tokens: list[list[float]], found: float) -> None:
    assert variety(np.array([tokens], np.float32)) == pytest.approx(found)


def test_cosines_are_of_visible_pairs_alone(tmp_path: Path) -> None:
    q, k = normal(heads=1, tokens=12)
    one = found(capture_of(tmp_path, q, k, 0.25, causal=True))
    pairs = q[0, 0] @ k[0, 0].T / np.linalg.norm(q[0, 0], axis=1)[:, np.newaxis] / np.linalg.norm(k[0, 0], axis=1)
    assert one.other_cosine == pytest.approx(np.mean([pairs[row, : row + 1].mean() for row in range(1, 12)]))


def test_a_long_first_key_is_the_reason_of_a_sink(tmp_path: Path) -> None:
    q, k = normal(tokens=60)
    k[0, 0, 0] *= 7 * np.median(np.linalg.norm(k[0, 0], axis=1)) / np.linalg.norm(k[0, 0, 0])
    q[0, 0] += 0.2 * k[0, 0, 0]
    capture = capture_of(tmp_path, q, k, 0.25)
    assert status(measured(capture)) == "sink"
    assert why(capture)[0] == "|k₀| is 7 × the median key"


def test_a_first_key_that_queries_point_to_is_the_reason_of_a_sink(tmp_path: Path) -> None:
    q, k = normal(tokens=60)
    q[0, 0] += 3 * k[0, 0, 0]
    for scale, more in ((0.1, ()), (0.25, ("|q| is 3.6 × the layer's median",))):  # the second one saturates, too
        capture = capture_of(tmp_path, q, k, scale)
        assert status(measured(capture)) == "sink"
        one = found(capture)
        assert why(capture) == (f"cos(q, k₀) {one.first_key_cosine:.2f}; {one.other_cosine:.2f} on average", *more)


def test_long_queries_are_compared_with_the_heads_of_their_layer(tmp_path: Path) -> None:
    q, k = normal(heads=5, tokens=60)
    sizes = np.sqrt(np.mean(np.square(q[0]), axis=(1, 2)))
    q[0, 2] *= 3 * np.median(sizes[[0, 1, 3, 4]]) / sizes[2]
    assert why(capture_of(tmp_path, q, k, 0.25), 2)[0] == "|q| is 3 × the layer's median"


def test_few_dimensions_are_the_reason_where_directions_agree(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    plane: Array = np.linalg.qr(rng.normal(size=(64, 2))).Q.T
    k = rng.normal(size=(1, 1, 80, 2)) @ plane * math.sqrt(32)
    capture = capture_of(tmp_path, k[:, :, ::-1].copy(), k, 0.125)
    one = found(capture)
    assert (one.dimensions, one.alignment) == (2, pytest.approx(32, rel=0.1))
    assert why(capture)[0] == f"cos(q, k) {one.cosine:.2f} at the largest score; 2 dimensions hold 90 %"


def test_a_missing_scale_a_long_key_and_a_bias_are_named(tmp_path: Path) -> None:
    q, k = normal(heads=1, tokens=60, d_k=64)
    assert why(capture_of(tmp_path, q, k, 1.0))[0] == "the scale is 8 × 1/√d_k"
    longer = k.copy()
    longer[0, 0, 17] *= 90
    assert "key 17 is 9" in why(capture_of(tmp_path, q, longer, 0.125))[0]
    bias = np.random.default_rng(5).normal(size=(1, 1, 60, 60)) * 5
    layers = [{"name": "0", "index": 0, "heads": 1, "kv_heads": 1, "d_k": 64, "scale": 0.125}]
    tensors = {"layers.0.attn.q": q, "layers.0.attn.k": k, "layers.0.attn.bias": bias}
    with_bias = opened(tmp_path, tensors, **QK2, layers=layers)
    one = found(with_bias)
    assert one.bias_spread == pytest.approx(np.sqrt(bias.var(axis=-1).mean()))
    assert why(with_bias)[0].startswith(f"the bias spreads logits by σ {one.bias_spread:.2g}, scores by ")


def test_a_small_scale_and_equal_tokens_are_the_reasons_of_uniform_rows(tmp_path: Path) -> None:
    q, k = normal(heads=1, tokens=60, d_k=64)
    assert why(capture_of(tmp_path, q, k, 1 / 64))[0] == "the scale is 0.12 × 1/√d_k"
    alike = np.broadcast_to(k[:, :, :1], k.shape) + 0.001 * k
    capture = capture_of(tmp_path, q, alike, 0.125)
    assert found(capture).key_variety == pytest.approx(0.001, rel=0.2)
    assert why(capture) == (
        f"all keys are alike: they differ by {100 * found(capture).key_variety:.2g} % of their length",
    )


def test_keys_that_are_equal_where_they_are_seen_do_not_spread(tmp_path: Path) -> None:
    q, k = normal(heads=20, tokens=4)
    k[:, :, 1:] = k[:, :, 1:2]
    tensors = {"layers.0.attn.q": q, "layers.0.attn.k": k, "layers.0.attn.mask": np.arange(4) + np.zeros((4, 1)) > 0}
    capture = opened(tmp_path, tensors, **QK2, layers=[{"name": "0", "index": 0, "heads": 20, "scale": 0.25}])
    for head in range(20):
        assert found(capture, head).key_spread == pytest.approx(0, abs=1e-6)


def test_a_multiplier_that_evidence_contradicts_comes_first(tmp_path: Path) -> None:
    q, k = normal(heads=1, tokens=40, d_k=64)
    z = q @ k.transpose(0, 1, 3, 2) * 0.125 * 2.83
    p = np.exp(z - z.max(axis=-1, keepdims=True))
    tensors = {"layers.0.attn.q": q, "layers.0.attn.k": k, "layers.0.attn.weights": p / p.sum(-1, keepdims=True)}
    layers = [{"name": "0", "index": 0, "heads": 1, "kv_heads": 1, "d_k": 64, "scale": 0.125}]
    capture = opened(tmp_path, tensors, **QK2, layers=layers)
    verdict = diagnose(read_subject(capture, capture.layers[0], 0, None, None))
    assert verdict.ratio == pytest.approx(2.83, rel=1e-6)
    [told] = why(capture, verdict=verdict)
    assert all(words in told for words in (f"{verdict.cause}: ", "× 0.3538", "× 0.125 = 1/√64"))
    assert severity(measured(capture), verdict) < severity(measured(capture))


@for_each(
    ("given", "told"),
    [
        ({}, ("scale-twice", "× 0.03125", "× 0.1768", TWICE.says)),
        ({"multiplier": None}, ("scale-twice", TWICE.says)),
        ({"findings": (replace(TWICE, cause="future-key", stage="mask"),)}, ("future-key", TWICE.says)),
        ({"findings": (), "word": "unexplained"}, (TWICE.says,)),
        ({"findings": (), "word": "undecided", "suspect": TWICE}, ("scale-twice", "× 0.03125", "× 0.1768")),
        ({"word": "undecided", "findings": (), "conflict": True}, (TWICE.says,)),
        ({"word": "undecided", "findings": ()}, None),
        ({"word": "healthy", "findings": ()}, None),
    ],
)
def test_a_verdict_that_needs_a_look_is_a_reason(given: dict[str, Any], told: tuple[str, ...] | None) -> None:
    """One of a wrong multiplier says it, and what it should be; others say their cause and words."""
    found = reasons({}, None, [], replace(WRONG, **given))
    assert len(found) == (told is not None)
    assert all(words in found[0] for words in told or ())
    assert ("× 0.03125" in "".join(found)) == ("× 0.03125" in (told or ()))


USUAL = Traits(1.0, 1.0, 1.0, 1.0, 8, 0.2, 1.0, 0.0, 0.0, 3, 1.2, 1.0, 1.0, None)
# Statistics of a status, with the saturation of a head that is not saturated.
STATUS: dict[str, dict[str, float]] = {
    "uniform": {"entropy_fraction": 0.99}, "one-hot": {"one_hot_rows": 0.6}, "healthy": {}, "NaN": {"nan_rows": 0.1},
    "saturated": {"saturation": 1.1}, "saturating": {"saturation": 0.8},
    "sink": {"first_key_weight": 0.9, "first_key_over_uniform": 30.0},
    "sink logit": {"sink_weight": 0.8},
    "saturated sink": {"first_key_weight": 0.9, "first_key_over_uniform": 30.0, "saturation": 0.9},
}  # fmt: skip


def with_status(word: str, **more: float | None) -> dict[str, Estimate]:
    values = {"entropy_fraction": 0.6, "one_hot_rows": 0.0, "max_weight": 0.4, "saturation": 0.5, "nan_rows": 0.0}
    values |= {"first_key_weight": 0.1, "first_key_over_uniform": 1.0}
    return {name: Estimate(value, None) for name, value in (values | STATUS[word] | more).items()}


@for_each(
    ("word", "edits", "told"),
    [
        ("healthy", {"scale": 8.0}, []), ("NaN", {"scale": 8.0}, ["some rows are NaN"]),
        ("saturated", {"scale": 8.0}, ["the scale is 8 ×"]),
        ("saturated", {"scale": 8.0, "query_size": 4.0, "key_spread": 2.0},
         ["the scale is 8 ×", "|q| is 4 × the layer's"]),
        ("saturating", {"query_size": 1.4}, ["|q| is 1.4 × √d_k"]),
        ("one-hot", {"key_spread": 3.0, "longest_key_size": 3.0}, ["key 3 is 3 × as long as"]),
        ("one-hot", {"key_spread": 3.0, "longest_key_size": 2.9}, ["keys spread 3 × the layer's"]),
        ("saturated", {"alignment": 9.0, "dimensions": 2}, ["cos(q, k) 0.20"]),
        ("saturated", {"bias_spread": 4.0}, ["the bias spreads logits by σ 4"]),
        ("saturated", {"bias_spread": 4.0, "scale": 9.0}, ["the scale is 9 ×"]),
        ("saturated", {"bias_spread": 4.0, "query_size": 0.0}, ["the scale is 1 ×"]),
        ("uniform", {"scale": 0.2}, ["the scale is 0.2 ×"]),
        ("uniform", {"key_variety": 0.04}, ["all keys are alike"]),
        ("uniform", {"query_variety": 0.04}, ["all queries are alike"]),
        ("uniform", {"key_variety": 0.06, "query_size": 0.5}, ["|q| is 0.5 × the layer's"]),
        ("uniform", {"longest_key_size": 9.0, "key_spread": 0.3}, ["keys spread 0.3 × the layer's"]),
        ("saturated", {"key_variety": 0.01, "scale": 3.0}, ["the scale is 3 ×"]),
        ("sink logit", {"first_key_size": 9.0, "first_key_cosine": 0.5}, ["the sink logit takes 80 %"]),
        ("sink", {"first_key_size": 1.5, "first_key_cosine": 0.1}, ["|k₀| is 1.5 ×"]),
        ("sink", {"first_key_size": 1.4, "first_key_cosine": 0.2}, ["cos(q, k₀) 0.20"]),
        ("sink", {"first_key_size": 9.0, "first_key_cosine": 0.0, "other_cosine": -0.2}, ["cos(q, k₀) 0.00"]),
        ("sink", {"first_key_size": None, "first_key_cosine": 0.2}, ["cos(q, k₀) 0.20"]),
        ("sink", {"first_key_cosine": 0.09, "scale": 3.0}, ["the scale is 3 ×"]),
        ("sink", {"first_key_size": 9.0, "first_key_cosine": None, "scale": 3.0}, ["the scale is 3 ×"]),
        ("sink", {"first_key_cosine": 0.2, "other_cosine": None, "scale": 3.0}, ["the scale is 3 ×"]),
        ("sink", {"first_key_cosine": 0.2, "scale": 3.0}, ["cos(q, k₀) 0.20"]),
        ("saturated sink", {"first_key_cosine": 0.2, "scale": 3.0}, ["cos(q, k₀) 0.20", "the scale is 3 ×"]),
    ],
)  # fmt: skip
def test_the_reasons_are_what_is_unusual_the_strongest_first(
    word: str, edits: dict[str, Any], told: list[str]
) -> None:
    """In a layer whose other heads are usual; a word says which traits count."""
    own = replace(USUAL, **edits)
    found = reasons(with_status(word), own, [own, USUAL, USUAL])
    assert len(found) == len(told)
    assert all(reason.startswith(words) for reason, words in zip(found, told, strict=True)), found
    assert reasons(with_status(word), None, []) == ()
    assert len(reasons(with_status(word), own, [own], WRONG)) <= 3


UNUSUAL = replace(HEALTHY, word="undecided", maybe=("scale-twice",), multiplier=Product(SCALE**2), suspect=TWICE)
CONFLICT = replace(HEALTHY, word="undecided", says="both disagree", conflict=True, maybe=("scale-twice",))
UNKNOWN = replace(HEALTHY, word="undecided", expected=replace(EXPECTED, unknown="it learns it"))


@for_each(
    ("status", "verdict", "rank", "word"),
    [
        ("healthy", None, 3, "healthy"), ("saturated", None, 2, "saturated"), (None, None, 0, None),
        ("NaN", None, 0, "NaN"), ("healthy", HEALTHY, 3, "healthy"), ("healthy", WRONG, 1, "wrong"),
        ("healthy", UNUSUAL, 1, "unusual"), ("saturated", UNUSUAL, 1, "unusual"),
        ("healthy", CONFLICT, 1, "healthy"),
        ("healthy", replace(WRONG, findings=(Finding("not-finite", ""),)), 0, "wrong"),
    ],
)  # fmt: skip
def test_heads_are_sorted_by_what_is_wrong_with_them_and_named_by_it(
    status: str | None, verdict: Verdict | None, rank: int, word: str | None
) -> None:
    values = None if status is None else with_status(status)
    assert (severity(values, verdict)[0], head_word(values, verdict)) == (rank, word)


def test_of_wrong_heads_the_multiplier_furthest_away_comes_first_and_other_faults_in_between() -> None:
    times = {"a little": 1.06, "missing": 1 / SCALE, "of the other sign": -1.0}
    wrong = {name: replace(WRONG, multiplier=Product(factor * SCALE)) for name, factor in times.items()}
    wrong["mask"] = replace(wrong["a little"], findings=(replace(TWICE, cause="mask-lost", stage="mask"),))
    found = {name: severity(with_status("healthy"), verdict)[1] for name, verdict in wrong.items()}
    expected = (-math.log(1.06), math.log(SCALE), -math.log(2), -math.log(2))
    assert found == pytest.approx(dict(zip(found, expected, strict=True)), abs=0.005)


def test_heads_without_a_finite_saturation_come_after_those_with_one() -> None:
    ratios = (1.5, 0.2, None, math.inf)
    assert [severity(with_status("healthy", saturation=ratio))[1] for ratio in ratios] == [-1.5, -0.2, 1, 1]


@for_each(
    ("evidence", "tells"),
    [((), False), (("lse",), True), (("weights",), True), (("o",), False), (("v",), False), (("o", "v"), True)],
)
def test_outputs_are_evidence_with_their_values(evidence: tuple[str, ...], tells: bool) -> None:
    assert has_evidence(replace(LAYERS[0], evidence=evidence)) == tells


def test_healthy_heads_have_no_reasons_and_come_last_the_others_by_their_spread() -> None:
    capture = open_capture(sample_path())
    layers = {
        (layer.path, layer.position): {
            head: HeadFacts(found(replace(capture, layers=(layer,)), head), None) for head in range(layer.heads)
        }
        for layer in capture.layers
    }
    places = [(layer, head) for layer in capture.layers for head in range(layer.heads)]
    ranked = rank([measure_head(capture, layer, head, [file_rule(layer)]) for layer, head in places], layers)
    values = [head.columns[0].measured for head, _ in ranked]
    words = [*map(status, values)]
    first = words.index("healthy")
    assert set(words[first:]) == {"healthy"}
    ratios = [present(each["saturation"].value) for each in values]
    for part in (ratios[:first], ratios[first:]):
        assert part == sorted(part, reverse=True)
    assert [bool(told.because) for _, told in ranked] == [word != "healthy" for word in words]
    assert severity(None) < severity(values[0]), "an unreadable head comes first"


def test_few_rows_are_near_all_rows() -> None:
    capture = open_capture(sample_path())
    for head in range(12):
        some, every = found(capture, head, rows=24), found(capture, head)
        assert some.spread == pytest.approx(every.spread, rel=0.25)
        assert some.longest_key == every.longest_key


def statistics_of(layers: int = 2) -> dict[tuple[int, int], Mapping[str, Estimate] | None]:
    return {
        (layer.position, head): measure_head(CAPTURE, layer, head, [file_rule(layer)]).columns[0].measured
        for layer in LAYERS[:layers]
        for head in range(layer.heads)
    }


def test_without_evidence_it_says_that_q_and_k_cannot_tell() -> None:
    long, short, *fewer = file_summary(LAYERS, statistics_of(), {})
    assert long == (
        "scale × 0.1768 by the file: q and k alone cannot tell which was used · 1 saturated · 1 one-hot · 3 "
        "saturating · 6 sinks"
    )
    assert short == "file says × 0.1768, no evidence · 1 saturated · 1 one-hot · 3 saturating · 6 sinks"
    assert (fewer[0], fewer[-1]) == (short.replace("6 sinks", "…"), "file says × 0.1768, no evidence · …")
    halved = [replace(layer, prescaled=(0.5, 1.0)) for layer in LAYERS]
    assert file_summary(halved, {}, {})[1] == "file says × 0.08839, no evidence", "with the factor inside q"
    bare = [replace(layer, scale=None) for layer in LAYERS]
    assert file_summary(bare, {}, {})[1] == "no evidence of the scale"
    assert file_summary(bare, {}, {})[0] == "no scale in the file: q and k alone cannot tell which was used"


def test_evidence_that_agrees_names_the_scale_and_its_source() -> None:
    every = {(position, head): HEALTHY for position in range(2) for head in range(12)}
    layers = [replace(layer, evidence=("lse",)) for layer in LAYERS]
    told, *shorter = file_summary(layers, {}, every)
    assert all(words in told for words in ("layers 0 and 1", "all 24 heads", "× 0.1768", "as the file says"))
    assert all("× 0.1768" in each for each in shorter)
    configured = {(0, 0): replace(HEALTHY, expected=replace(EXPECTED, words="the configuration, 1/√32"))}
    assert "as configured" in file_summary(layers, {}, configured)[0]
    assumed = {(0, 0): replace(HEALTHY, expected=replace(EXPECTED, assumed=True))}
    assert "as assumed" in file_summary(layers, {}, assumed)[0]
    undecided = {(0, 0): replace(HEALTHY, word="undecided")}
    assert "does not determine the scale" in file_summary(layers, {}, undecided)[0]
    assert file_summary(layers, {}, {})[0] == "judging the evidence"


def test_a_contradiction_comes_first_with_its_product_and_what_it_should_be() -> None:
    verdicts = {(0, head): WRONG if head < 3 else HEALTHY for head in range(12)}
    told, *shorter = file_summary(LAYERS, {}, verdicts)
    for words in ("layer 0, heads 0–2", "× 0.03125", "× 0.1768", TWICE.says):
        assert words in told
    assert all("× 0.03125" in each for each in shorter)
    assert all("× 0.1768" in each for each in shorter[:-1])
    assert [len(each) for each in (told, *shorter)] == sorted(map(len, (told, *shorter)), reverse=True)
    several = {**verdicts, (0, 0): replace(WRONG, multiplier=Product(SCALE / 2))}
    assert "× 0.03125 to 0.08839" in file_summary(LAYERS, {}, several)[0]
    every = {(0, head): WRONG for head in range(12)}
    assert "layer 0, all 12 heads" in file_summary(LAYERS, {}, every)[0]
    masked = replace(WRONG, findings=(Finding("future-key", "a key too many", stage="mask"),), multiplier=None)
    told = file_summary(LAYERS, {}, {**verdicts, (1, 5): masked})[0]
    assert "× 0.03125" in told
    assert told.endswith("1 more fault")
    told = file_summary(LAYERS, {}, {(0, 0): HEALTHY, (1, 5): masked})[0]
    assert "layer 1, head 5" in told
    assert "a key too many" in told


@for_each(
    ("verdicts", "told"),
    [
        ([UNUSUAL], ("layer 0, head 0", "× 0.03125", "× 0.1768")),
        ([UNUSUAL] * 2, ("layer 0, heads 0 and 1", "× 0.03125", "× 0.1768")),
        ([CONFLICT], ("layer 0, head 0", "both disagree")),
        ([replace(WRONG, findings=(), word="unexplained", multiplier=None)], ("layer 0, head 0", TWICE.says)),
        ([UNUSUAL, WRONG], ("layer 0, head 1", "× 0.03125", "1 more fault")),
        ([UNKNOWN] * 2, ("the expected scale is not known: it learns it",)),
        ([UNKNOWN], ("layer 0, head 1", "× 0.1768", "as the file says", "1 undecided")),
        ([replace(HEALTHY, expected=Expected(0.25, "x"))], ("scales as expected",)),
    ],
)
def test_what_is_said_of_a_file_is_the_worst_of_its_heads(verdicts: list[Verdict], told: tuple[str, ...]) -> None:
    """The heads are of layer 0, and as many as there are healthy, if one is given."""
    of_heads = {(0, head): verdict for head, verdict in enumerate([*verdicts, HEALTHY][:2])}
    found = file_summary(LAYERS, {}, of_heads)[0]
    assert all(words in found for words in told), found


def test_healthy_and_unreadable_heads_are_counted() -> None:
    found = statistics_of(1)
    healthy = found[0, 0]
    assert file_summary(LAYERS, {(0, 0): healthy}, {})[0].endswith("· healthy so far")
    every = {(position, head): healthy for position in range(2) for head in range(12)}
    assert file_summary(LAYERS, every, {})[0].endswith("· all heads healthy")
    assert file_summary(LAYERS, {(0, 0): None}, {})[0].endswith("· 1 unreadable")
