"""Comparing two captures: the first stage that differs is named, and nothing where only the basis does."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from attn_tui.core.diagnosis.comparing.compare import compare
from attn_tui.core.diagnosis.comparing.pairing import common_tokens, plan
from attn_tui.core.diagnosis.comparing.results import ORDER, Comparison, Plan, StageName
from pairs import D_K, HEADS, TOKENS, Layer, Recipe, causal, changed, recipe, rotated, written

EVIDENCE = [("lse",), ("weights",), ("o",), ("lse", "weights", "o")]


def compared(one: Recipe, other: Recipe, folder: Path) -> Comparison:
    return compare(written(one, folder / "one.safetensors"), written(other, folder / "other.safetensors"))


def first(found: Comparison) -> tuple[StageName, str, list[int]] | None:
    """The first stage that differs, the layer, and the heads."""
    if found.first is None:
        return None
    stage, heads = found.first
    return stage.name, str(heads[0].layer.index), [each.head for each in heads]


@pytest.mark.parametrize("format", ["float32", "float16", "bfloat16"])
def test_a_capture_is_the_same_as_itself_and_as_itself_in_another_basis(format: str, tmp_path: Path) -> None:
    one = recipe(format)
    same = compared(one, one, tmp_path)
    assert not same.differs
    assert {stage.change for each in same.heads for stage in each.stages if stage.name in ("qk", "weights")} == {0}
    turned = compared(one, rotated(one, np.random.default_rng(5)), tmp_path)
    assert not turned.differs
    change = turned.heads[0].stages[0].change
    assert change is not None
    assert 0 < change < 3  # rounding of the rotated numbers


def test_permuted_components_are_the_same(tmp_path: Path) -> None:
    one, order = recipe(), np.random.default_rng(1).permutation(D_K)

    def permute(layer: Layer) -> None:
        layer.q, layer.k = layer.q[..., order], layer.k[..., order]

    assert not compared(one, changed(one, permute), tmp_path).differs


def test_components_permuted_in_keys_alone_differ_in_scores(tmp_path: Path) -> None:
    one, order = recipe(), np.random.default_rng(1).permutation(D_K)

    def permute(layer: Layer) -> None:
        layer.k = layer.k[..., order]

    found = compared(one, changed(one, permute), tmp_path)
    assert first(found) == ("qk", "1", [0, 1, 2, 3])


def test_padded_widths_are_the_same(tmp_path: Path) -> None:
    one = recipe()

    def pad(layer: Layer) -> None:
        layer.q, layer.k = (np.pad(each, ((0, 0),) * 3 + ((0, 8),)) for each in (layer.q, layer.k))

    assert not compared(one, changed(one, pad), tmp_path).differs


@pytest.mark.parametrize(
    ("evidence", "format"), [*zip(EVIDENCE, ("bfloat16", "float16", "bfloat16", "float32"), strict=True)]
)
def test_a_scale_that_is_six_per_cent_too_large_is_found_in_every_format(
    evidence: tuple[str, ...], format: str, tmp_path: Path
) -> None:
    def scale(layer: Layer) -> None:
        layer.said_scale, layer.scale = layer.scale, layer.scale * 1.06

    one = replace(recipe(format), evidence=evidence)
    found = compared(one, changed(one, scale), tmp_path)
    assert first(found) == ("multiplier", "1", [0, 1, 2, 3])
    ratios = [
        each.test.multiplier / each.reference.multiplier for each in found.heads if each.test and each.reference
    ]
    assert ratios == pytest.approx([1.0] * 4 + [1.06] * 4, rel=5e-3)


def test_a_scale_moved_into_the_queries_is_the_same_and_one_applied_twice_is_not(tmp_path: Path) -> None:
    def moved(layer: Layer) -> None:
        layer.q, layer.scale = layer.q * D_K**-0.5, 1.0

    def twice(layer: Layer) -> None:
        layer.q = layer.q * D_K**-0.5

    one = recipe()
    found = compared(one, changed(one, moved), tmp_path)
    assert not found.differs
    assert "the same product" in found.heads[-1].stages[ORDER.index("multiplier")].says
    found = compared(one, changed(one, twice), tmp_path)
    assert first(found) == ("multiplier", "1", [0, 1, 2, 3])
    assert "0.25 times as much" in found.heads[-1].stages[ORDER.index("multiplier")].says


def _softcap(layer: Layer) -> None:
    layer.said_softcap, layer.softcap = 4.0, None


def _softcap_unsaid(layer: Layer) -> None:
    layer.said_softcap = layer.softcap = None


def _sink(layer: Layer) -> None:
    layer.said_sink, layer.sink = 1.0, None


def _sink_unsaid(layer: Layer) -> None:
    layer.said_sink = layer.sink = None


def _bias(layer: Layer) -> None:
    layer.bias = None


def _bias_scaled(layer: Layer) -> None:
    assert layer.bias is not None
    layer.bias = layer.bias * 0.25


def _scaled(layer: Layer) -> None:
    layer.said_scale, layer.scale = layer.scale, layer.scale**2


@pytest.mark.parametrize(
    ("change", "stage", "evidence"),
    [
        (_softcap, "softcap", "lse"),
        (_softcap_unsaid, "softcap", "weights"),
        (_sink, "sink", "o"),
        (_sink_unsaid, "sink", "lse"),
        (_bias, "bias", "weights"),
        (_bias_scaled, "bias", "lse"),
        (_scaled, "multiplier", "o"),
    ],
)
def test_what_was_lost_on_the_way_is_the_first_difference(
    change: Callable[[Layer], None], stage: str, evidence: str, tmp_path: Path
) -> None:
    one = replace(recipe(), evidence=(evidence,))
    rng = np.random.default_rng(2)
    for layer in one.layers:
        layer.softcap = layer.said_softcap = 4.0
        layer.sink = layer.said_sink = 1.0
        layer.bias = layer.said_bias = rng.normal(size=(1, HEADS, TOKENS, TOKENS)).astype(np.float32)
    found = compared(one, changed(one, change), tmp_path)
    assert first(found) == (stage, "1", [0, 1, 2, 3])
    assert not found.heads[0].first
    later = found.heads[-1].stages[ORDER.index("o")]
    assert later.state == ("follows" if evidence == "o" else "not-compared")


def test_a_mask_of_the_other_corner_is_named(tmp_path: Path) -> None:
    one = recipe()
    for layer in one.layers:
        layer.q = layer.q[:, :, :30]
        layer.seen, layer.causal = causal(30, TOKENS, TOKENS - 30), "bottom-right"

    def corner(layer: Layer) -> None:
        layer.seen, layer.causal = causal(30, TOKENS), "top-left"

    found = compared(one, changed(one, corner), tmp_path)
    assert first(found) == ("mask", "1", [0, 1, 2, 3])
    assert "causal, top-left, causal, bottom-right in the reference" in found.heads[-1].stages[4].says

    def unsaid(layer: Layer) -> None:
        layer.seen = causal(30, TOKENS)

    found = compared(one, changed(one, unsaid), tmp_path)
    assert first(found) == ("mask", "1", [0, 1, 2, 3])
    assert "causal-shifted in the other capture" in found.heads[-1].stages[4].says


def test_any_other_mask_is_found_and_counted(tmp_path: Path) -> None:
    one = recipe()
    for layer in one.layers:
        layer.seen = layer.said_mask = np.ones((1, 1, TOKENS, TOKENS), np.bool_)

    def hide(layer: Layer) -> None:
        seen = np.ones((1, 1, TOKENS, TOKENS), np.bool_)
        seen[..., 3:7] = False
        layer.seen = layer.said_mask = seen

    found = compared(one, changed(one, hide), tmp_path)
    assert first(found) == ("mask", "1", [0, 1, 2, 3])
    assert "10 % of pairs are hidden" in found.heads[-1].stages[4].says


def test_files_that_say_different_things_of_the_same_attention_are_the_same(tmp_path: Path) -> None:
    one = recipe()

    def say(layer: Layer) -> None:
        layer.said_scale = 0.1

    found = compared(one, changed(one, say), tmp_path)
    assert not found.differs
    assert "the same product" in found.heads[-1].stages[1].says or "fits both" in found.heads[-1].stages[1].says


def test_without_evidence_what_the_files_say_is_compared(tmp_path: Path) -> None:
    one = replace(recipe(), evidence=())

    def say(layer: Layer) -> None:
        layer.said_scale = 0.2

    found = compared(one, changed(one, say), tmp_path)
    assert first(found) == ("multiplier", "1", [0, 1, 2, 3])
    assert {stage.state for stage in found.heads[-1].stages[6:]} == {"not-compared"}


def test_heads_in_another_order_are_matched(tmp_path: Path) -> None:
    one, order = recipe(), [2, 0, 3, 1]

    def permute(layer: Layer) -> None:
        layer.q, layer.k, layer.v = (each[:, order] for each in (layer.q, layer.k, layer.v))

    found = compared(one, changed(one, permute), tmp_path)
    assert not found.differs
    assert [each.test_head for each in found.heads[4:]] == [order.index(h) for h in range(4)]
    assert any("matched by their scores" in note for note in found.notes)

    def with_fault(layer: Layer) -> None:
        permute(layer)
        layer.said_scale, layer.scale = layer.scale, layer.scale * 2

    assert first(compared(one, changed(one, with_fault), tmp_path)) == ("multiplier", "1", [0, 1, 2, 3])


def test_one_head_that_changed_is_named_and_comes_first_in_the_list(tmp_path: Path) -> None:
    one = recipe()

    def double(layer: Layer) -> None:
        layer.q = layer.q.copy()
        layer.q[:, 2] *= 2

    found = compared(one, changed(one, double), tmp_path)
    assert first(found) == ("multiplier", "1", [2])
    most, second, *_ = found.ranked
    assert (most.layer.index, most.head) == (1, 2)
    assert most.change > 0.05 > second.change


def test_keys_that_moved_by_a_vector_make_no_difference_to_softmax(tmp_path: Path) -> None:
    one = replace(recipe(), evidence=("weights", "o"))

    def move(layer: Layer) -> None:
        layer.k = layer.k + np.arange(D_K) / 4

    found = compared(one, changed(one, move), tmp_path)
    assert not found.differs
    assert "which softmax ignores" in found.heads[-1].stages[0].says


def test_values_and_outputs_are_compared_too(tmp_path: Path) -> None:
    one = recipe()

    def values(layer: Layer) -> None:
        layer.v = 1.5 * layer.v

    assert first(compared(one, changed(one, values), tmp_path)) == ("v", "1", [0, 1, 2, 3])


def test_numbers_that_are_not_finite_are_a_difference_also_in_both(tmp_path: Path) -> None:
    one = recipe()

    def spoil(layer: Layer) -> None:
        layer.q = layer.q.copy()
        layer.q[0, 1, 3, 3] = np.nan

    spoiled = changed(one, spoil)
    for reference, test in ((one, spoiled), (spoiled, one), (spoiled, spoiled)):
        assert first(compared(reference, test, tmp_path)) == ("qk", "1", [1])
    stage = compared(spoiled, spoiled, tmp_path).first
    assert stage is not None
    assert stage[0].says.startswith("nothing can be compared, not finite in both: ")


@pytest.mark.parametrize("kind", ["lse", "weights", "o"])
def test_evidence_that_is_not_finite_is_a_difference_also_in_both(kind: str, tmp_path: Path) -> None:
    one = replace(recipe(), evidence=(kind,))
    spoiled = replace(one, spoiled=(1, kind))
    for reference, test, where in (
        (one, spoiled, "in the other capture"),
        (spoiled, one, "in the reference"),
        (spoiled, spoiled, "nothing can be compared, not-finite in both"),
    ):
        found = compared(reference, test, tmp_path)
        assert first(found) == (kind, "1", [1])
        assert found.first is not None
        assert where in found.first[0].says
        assert "NaN or infinite" in found.first[0].says


@pytest.mark.parametrize("kind", ["lse", "weights", "o"])
def test_evidence_of_one_file_alone_that_is_not_finite_is_a_difference(kind: str, tmp_path: Path) -> None:
    one = replace(recipe(), evidence=tuple({"lse", "weights", "o"} - {kind}))
    spoiled = replace(one, evidence=("lse", "weights", "o"), spoiled=(1, kind))
    assert first(compared(one, spoiled, tmp_path)) == (kind, "1", [1])


@pytest.mark.parametrize("evidence", [("lse",), ("weights",)])
def test_grouped_heads_that_used_the_keys_of_others_differ_in_scores(
    evidence: tuple[str, ...], tmp_path: Path
) -> None:
    one = replace(recipe(), evidence=evidence)
    for layer in one.layers:
        layer.k = layer.k[:, :2]
        layer.used_k = np.repeat(layer.k, 2, axis=1)

    def tile(layer: Layer) -> None:
        layer.used_k = np.tile(layer.k, (1, 2, 1, 1))

    found = compared(one, changed(one, tile), tmp_path)
    assert first(found) == ("qk", "1", [1, 2])  # 0 and 3 use the same keys either way
    assert found.first is not None
    assert "gqa-tiled in the other capture" in found.first[0].says


def test_of_another_text_only_what_does_not_depend_on_it_is_compared(tmp_path: Path) -> None:
    one, other = recipe(), recipe(seed=9)
    other.tokens = [f"other {i}" for i in range(TOKENS)]
    found = compared(one, other, tmp_path)
    assert not found.differs
    assert any("the tokens are different" in note for note in found.notes)
    states = {stage.name: stage.state for stage in found.heads[0].stages}
    assert [name for name, state in states.items() if state == "same"] == ["multiplier", "softcap", "mask", "sink"]

    def scale(layer: Layer) -> None:
        layer.said_scale, layer.scale = layer.scale, layer.scale * 1.06

    assert first(compared(one, changed(other, scale), tmp_path)) == ("multiplier", "1", [0, 1, 2, 3])
    assert first(compared(one, changed(other, _softcap), tmp_path)) == ("softcap", "1", [0, 1, 2, 3])


def test_texts_with_the_same_start_are_compared_there_if_attention_is_causal(tmp_path: Path) -> None:
    one = recipe()
    for layer in one.layers:
        layer.seen, layer.causal = causal(), "top-left"
    other = replace(one, tokens=[*one.tokens[:24], *("x" * 16)], layers=[replace(each) for each in one.layers])
    rng = np.random.default_rng(3)
    for layer in other.layers:
        layer.q, layer.k, layer.v = (each.copy() for each in (layer.q, layer.k, layer.v))
        for each in (layer.q, layer.k, layer.v):
            each[:, :, 24:] = rng.normal(size=(1, HEADS, 16, D_K))
    found = compared(one, other, tmp_path)
    assert not found.differs
    assert any("first 24 tokens" in note for note in found.notes)
    assert found.heads[0].stages[0].change == 0

    def spoil(layer: Layer) -> None:
        layer.k = layer.k.copy()
        layer.k[:, :, 5] += 1

    assert first(compared(one, changed(other, spoil), tmp_path)) == ("qk", "1", [0, 1, 2, 3])


def test_layers_and_heads_of_one_file_only_are_named(tmp_path: Path) -> None:
    one = recipe(layers=3)
    other = replace(one, layers=[replace(each) for each in one.layers[:2]])
    other.layers[1] = replace(
        other.layers[1], q=other.layers[1].q[:, :2], k=other.layers[1].k[:, :2], v=other.layers[1].v[:, :2]
    )
    found = compared(one, other, tmp_path)
    assert found.missing == (
        "only the reference has layer 2 (layers.2.attn)",
        "layer 1: only the reference has heads 2, 3",
    )
    assert found.differs
    assert found.first is None


def test_of_scores_that_differ_no_factor_is_taken_for_a_multiplier(tmp_path: Path) -> None:
    one = recipe()

    def disturb(layer: Layer) -> None:
        layer.q = 0.99 * layer.q + 0.1 * np.random.default_rng(8).standard_normal(layer.q.shape).astype(layer.q.dtype)

    found = compared(one, changed(one, disturb), tmp_path)
    assert first(found) == ("qk", "1", [0, 1, 2, 3])
    assert {each.stages[1].state for each in found.heads} == {"same"}


def planned(one: Recipe, other: Recipe, folder: Path) -> Plan:
    return plan(written(one, folder / "one.safetensors"), written(other, folder / "other.safetensors"))


@pytest.mark.parametrize(("alone", "named"), [(1, 1), (7, 7), (8, 6)])
def test_of_layers_in_one_capture_only_all_are_named_or_six_and_how_many_more(
    alone: int, named: int, tmp_path: Path
) -> None:
    [text] = planned(recipe(layers=1 + alone), recipe(layers=1), tmp_path).missing
    assert text.count(".attn") == named
    assert ("and 2 more" in text) == (named < alone)


@pytest.mark.parametrize(("heads", "more"), [(8, False), (9, True)])
def test_of_heads_in_another_order_eight_are_named(heads: int, more: bool, tmp_path: Path) -> None:
    one = recipe(layers=1)
    q, k = np.random.default_rng(1).normal(size=(2, 1, heads, TOKENS, D_K)).astype(np.float32)
    one.layers[0] = replace(one.layers[0], q=q, k=k, v=q)

    def roll(layer: Layer) -> None:
        layer.q, layer.k, layer.v = (np.roll(each, 1, axis=1) for each in (q, k, q))

    [note] = planned(one, changed(one, roll, 0), tmp_path).notes
    assert note.count(" is ") == 8
    assert (", …" in note) == more


def test_heads_that_are_not_alike_are_compared_in_their_order(tmp_path: Path) -> None:
    assert all(pair.head == pair.test_head for pair in planned(recipe(), recipe(seed=1), tmp_path).pairs)


@pytest.mark.parametrize(
    ("shared", "rows", "sameness"), [(8, None, "prefix"), (7, None, "different"), (8, "rows", "different")]
)
def test_texts_share_their_start_from_eight_tokens_if_all_rows_are_stored(
    shared: int, rows: str | None, sameness: str, tmp_path: Path
) -> None:
    plain = recipe(layers=1)
    plain.layers[0] = replace(plain.layers[0], seen=causal(), causal="top-left")
    tokens = [*plain.tokens[:shared], *("x" * (TOKENS - shared))]
    recipes = {"a": plain, "b": replace(plain, tokens=tokens)}
    files = [written(each, tmp_path / f"{name}.safetensors") for name, each in recipes.items()]
    first, second = (file.layers[0] for file in files)
    for one, other in ((first, replace(second, rows=rows)), (replace(first, rows=rows), second)):
        assert common_tokens(files[0], files[1], one, other).sameness == sameness


def test_what_follows_from_other_scores_is_not_called_the_same(tmp_path: Path) -> None:
    found = compared(recipe(), recipe(seed=1), tmp_path)
    stages = [stage for each in found.heads for stage in each.stages if stage.name in ("lse", "weights", "o")]
    assert {stage.state for stage in stages} == {"follows"}
