"""Comparing two captures: the first stage that differs is named, and nothing where only the basis does."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.comparing.compare import compare
from attn_tui.core.diagnosis.comparing.pairing import common_tokens, plan
from attn_tui.core.diagnosis.comparing.results import (
    Comparison,
    HeadComparison,
    PairFigures,
    Plan,
    Stage,
    difference_in_words,
)
from attn_tui.core.diagnosis.results import ORDER, Product, StageName
from capture_files import named, opened, save
from cases import for_each, present
from pairs import D_K, HEADS, TOKENS, Array, Layer, Recipe, causal, changed, recipe, rotated, rounded, written
from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]

special = import_module("scipy.special")  # without type stubs
EVIDENCE = [("lse",), ("weights",), ("o",), ("lse", "weights", "o")]


ALL = [0, 1, 2, 3]
Value: TypeAlias = Array | float | str | Callable[[Array], Array] | None


def of_sides(change: Callable[[Array], Array]) -> dict[str, Value]:
    return {"q": change, "k": change, "v": change}


def edited(original: Recipe, layer: int = 1, /, **edits: Value) -> Recipe:
    """A copy of which one layer has other values: those given, or what a function makes of them."""

    def edit(of: Layer) -> None:
        for name, value in edits.items():
            setattr(of, name, value(getattr(of, name)) if callable(value) else value)

    return changed(original, edit, layer)


def rescaled(original: Recipe, factor: float) -> Recipe:
    """A copy whose layer 1 says its old scale and used another one."""
    return edited(original, said_scale=D_K**-0.5, scale=factor * D_K**-0.5)


def with_parts(**values: Value) -> Recipe:
    """A healthy capture all of whose layers have these values."""
    one = recipe()
    for layer in one.layers:
        for name, value in values.items():
            setattr(layer, name, value(getattr(layer, name)) if callable(value) else value)
    return one


def compared(one: Recipe, other: Recipe, folder: Path) -> Comparison:
    return compare(written(one, folder / "one.safetensors"), written(other, folder / "other.safetensors"))


def first(found: Comparison) -> tuple[StageName, str, list[int]] | None:
    """The first stage that differs, the layer, and the heads."""
    if found.first is None:
        return None
    stage, heads = found.first
    return stage.name, str(heads[0].layer.index), [each.head for each in heads]


def says(found: Comparison, stage: StageName) -> str:
    """What is said of a stage of the last head."""
    return found.heads[-1].stages[ORDER.index(stage)].says


def products(found: Comparison, layer: int) -> list[tuple[float, float]]:
    """What q·k of the reference was multiplied by in both captures, in each head of a layer."""
    return [
        (each.reference.multiplier, each.test.multiplier)
        for each in found.heads
        if each.layer.index == layer and each.reference and each.test
    ]


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
    for each in (*same.heads, *turned.heads):
        for stage in each.stages:
            if stage.change is not None and stage.name in ("qk", "lse", "weights", "o"):
                assert ("the same numbers" in stage.says, "× rounding" in stage.says) == (
                    not stage.change,
                    bool(stage.change),
                )


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_keys_in_a_cache_of_another_format_are_the_same_and_a_scale_is_still_found(
    evidence: tuple[str, ...], tmp_path: Path
) -> None:
    """llama.cpp holds q in float32 and its cache in float16, and rounds q to float16 where it meets the cache."""
    one = replace(recipe("float32"), evidence=evidence)

    def short(side: Array) -> Array:
        return rounded(side, "float16")

    cached = edited(edited(one, 0, k=short, v=short), 1, k=short, v=short)
    unlike = recipe("float32", seed=1)
    used = [replace(each, q=short(each.q)) for each in cached.layers]
    other = replace(cached, k_format="float16", returned=used)
    for pair in ((one, other), (other, one), (other, other)):
        found = compared(*pair, tmp_path)
        assert not found.differs, found.first
    stages = compared(one, other, tmp_path).heads[0].stages
    assert "×" not in stages[ORDER.index("qk")].says.replace("× rounding", "")  # no factor is made of rounding
    wrong = rescaled(other, 1.06)
    wrong.returned = [replace(each, scale=layer.scale) for each, layer in zip(used, wrong.layers, strict=True)]
    assert first(compared(one, wrong, tmp_path)) == ("multiplier", "1", ALL)
    assert first(compared(one, unlike, tmp_path)) == ("qk", "0", ALL)


def test_permuted_and_padded_components_are_the_same_unless_in_keys_alone(tmp_path: Path) -> None:
    one, order = recipe(), np.random.default_rng(1).permutation(D_K)

    def permuted(side: Array) -> Array:
        return side[..., order]

    def padded(side: Array) -> Array:
        return np.pad(side, ((0, 0),) * 3 + ((0, 8),))

    for change in (permuted, padded):
        assert not compared(one, edited(one, q=change, k=change), tmp_path).differs
    assert first(compared(one, edited(one, k=permuted), tmp_path)) == ("qk", "1", ALL)


@pytest.mark.parametrize(
    ("evidence", "format", "factor"),
    [
        *zip(EVIDENCE, ("bfloat16", "float16", "bfloat16", "float32"), (1.06,) * 4, strict=True),
        (("o",), "bfloat16", 1.02), (("weights",), "float16", 1.002),  # as healthy as the other file
    ],
)  # fmt: skip
def test_a_scale_that_is_slightly_too_large_is_found_in_every_format(
    evidence: tuple[str, ...], format: str, factor: float, tmp_path: Path
) -> None:
    one = replace(recipe(format), evidence=evidence)
    found = compared(one, rescaled(one, factor), tmp_path)
    assert first(found) == ("multiplier", "1", ALL)
    ratios = [after / before for layer in (0, 1) for before, after in products(found, layer)]
    assert ratios == pytest.approx([1.0] * 4 + [factor] * 4, rel=0.1 * (factor - 1))


def test_a_scale_moved_into_the_queries_is_the_same_and_one_applied_twice_is_not(tmp_path: Path) -> None:
    one = recipe()

    def inside(q: Array) -> Array:
        return q * D_K**-0.5

    found = compared(one, edited(one, q=inside, scale=1.0), tmp_path)
    assert not found.differs
    assert says(found, "multiplier").startswith("× 0.25, ")
    assert products(found, 1) == [(pytest.approx(0.25, rel=1e-3),) * 2] * HEADS
    found = compared(one, edited(one, q=inside), tmp_path)
    assert first(found) == ("multiplier", "1", ALL)
    assert "is × 0.0625, × 0.25 in the reference" in says(found, "multiplier")
    assert products(found, 1) == [(pytest.approx(0.25, rel=1e-3), pytest.approx(1 / 16, rel=1e-3))] * HEADS


LOST: list[tuple[dict[str, Value], str, str]] = [
    ({"said_softcap": 4.0, "softcap": None}, "softcap", "lse"),
    ({"said_softcap": None, "softcap": None}, "softcap", "weights"),
    ({"said_sink": 1.0, "sink": None}, "sink", "o"),
    ({"said_sink": None, "sink": None}, "sink", "lse"),
    ({"bias": None}, "bias", "weights"),
    ({"bias": lambda bias: bias * 0.25}, "bias", "lse"),
    ({"said_scale": 0.1, "bias": None}, "bias", "weights"),  # of the scale, only the file says another one
    ({"said_scale": D_K**-0.5, "scale": 1 / D_K}, "multiplier", "o"),
]


@pytest.mark.parametrize(("edits", "stage", "evidence"), LOST)
def test_what_was_lost_on_the_way_is_the_first_difference(
    edits: dict[str, Value], stage: str, evidence: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(2)
    one = replace(with_parts(softcap=4.0, said_softcap=4.0, sink=1.0, said_sink=1.0), evidence=(evidence,))
    for layer in one.layers:
        layer.bias = layer.said_bias = rng.normal(size=(1, HEADS, TOKENS, TOKENS)).astype(np.float32)
    found = compared(one, edited(one, **edits), tmp_path)
    assert first(found) == (stage, "1", ALL)
    assert not found.heads[0].first
    later = found.heads[-1].stages[ORDER.index("o")]
    assert later.state == ("follows" if evidence == "o" else "not-compared")


def test_a_mask_of_the_other_corner_is_named(tmp_path: Path) -> None:
    one = with_parts(q=lambda q: q[:, :, :30], seen=causal(30, TOKENS, TOKENS - 30), causal="bottom-right")
    for edits, says in (
        ({"causal": "top-left"}, "causal, top-left, causal, bottom-right in the reference"),
        ({}, "causal-shifted in the other capture"),
    ):
        found = compared(one, edited(one, seen=causal(30, TOKENS), **edits), tmp_path)
        assert first(found) == ("mask", "1", ALL)
        assert says in found.heads[-1].stages[4].says


def test_any_other_mask_is_found_and_counted(tmp_path: Path) -> None:
    whole = np.ones((1, 1, TOKENS, TOKENS), np.bool_)
    seen = whole & ~np.isin(np.arange(TOKENS), range(3, 7))
    one = with_parts(seen=whole, said_mask=whole)
    found = compared(one, edited(one, seen=seen, said_mask=seen), tmp_path)
    assert first(found) == ("mask", "1", ALL)
    assert "10 % of pairs are hidden" in found.heads[-1].stages[4].says


def test_files_that_say_different_things_of_the_same_attention_are_the_same(tmp_path: Path) -> None:
    one = recipe()
    found = compared(one, edited(one, said_scale=0.1), tmp_path)
    assert not found.differs
    assert "fits both" in says(found, "multiplier")


STATED: list[tuple[dict[str, Value], str]] = [
    ({"said_scale": 0.2}, "multiplier"), ({"said_scale": D_K**-0.5 * (1 + 1e-4)}, "multiplier"),
    ({"said_scale": D_K**-0.5 * (1 + 1e-6)}, ""), ({"said_softcap": None}, "softcap"),
    ({"said_softcap": 4.02}, "softcap"),
    ({"said_sink": None}, "sink"), ({"said_sink": 1.01}, "sink"), ({"said_bias": None}, "bias"),
    ({"said_bias": lambda bias: bias * 1.01}, "bias"), ({"said_softcap": 4 * (1 + 2**-11)}, ""),
    ({"said_sink": 1 + 2**-11}, ""), ({"said_bias": lambda bias: bias * (1 + 2**-11)}, ""),
]  # fmt: skip


@for_each(("edits", "stage"), STATED)
def test_without_evidence_what_the_files_say_is_compared_to_their_rounding(
    tmp_path: Path, edits: dict[str, Value], stage: str
) -> None:
    one = replace(recipe("float16"), evidence=())  # half a unit of float16 is 2⁻¹¹
    for layer in one.layers:
        layer.said_softcap, layer.said_sink = 4.0, 1.0
        layer.said_bias = np.random.default_rng(2).normal(size=(1, HEADS, TOKENS, TOKENS)).astype(np.float32)
    found = compared(one, edited(one, **edits), tmp_path)
    assert first(found) == ((stage, "1", ALL) if stage else None)
    assert {each.state for each in found.heads[-1].stages[6:]} == {"not-compared"}
    assert stage or says(found, "bias").startswith("the same numbers")
    both = compared(one, edited(edited(one, **edits), 0, **edits), tmp_path)
    assert first(both) == ((stage, "0", ALL) if stage else None)  # without the heads of layer 1


def test_heads_in_another_order_are_matched(tmp_path: Path) -> None:
    one, order = recipe(), [2, 0, 3, 1]
    other = edited(one, **of_sides(lambda side: side[:, order]))
    found = compared(one, other, tmp_path)
    assert not found.differs
    assert [each.test_head for each in found.heads[4:]] == [order.index(h) for h in range(4)]
    assert any("matched by their scores" in note for note in found.notes)
    assert first(compared(one, rescaled(other, 2), tmp_path)) == ("multiplier", "1", ALL)


def test_one_head_that_changed_is_named_and_comes_first_in_the_list(tmp_path: Path) -> None:
    one = recipe()
    found = compared(one, edited(one, q=lambda q: q * np.reshape([1, 1, 2, 1], (4, 1, 1))), tmp_path)
    assert first(found) == ("multiplier", "1", [2])
    most, second, *_ = found.ranked
    assert (most.layer.index, most.head) == (1, 2)
    assert most.change > 0.05 > second.change


def test_keys_that_moved_by_a_vector_make_a_difference_to_a_softcap_or_sink_alone(tmp_path: Path) -> None:
    for name, where in (("softcap", ("qk", "1", ALL)), ("sink", ("qk", "1", ALL)), ("scale", None)):
        one = replace(with_parts(**{name: 1.5, f"said_{name}": 1.5}), evidence=("weights",))
        assert first(compared(one, edited(one, k=lambda k: k + np.arange(D_K) / 4), tmp_path)) == where


def test_noise_of_earlier_layers_is_allowed_for_from_the_second_layer_on(tmp_path: Path) -> None:
    one, noise = replace(recipe(), evidence=()), np.random.default_rng(4).normal(0, 3e-5, (1, HEADS, TOKENS, D_K))
    found = compared(one, edited(edited(one, 0, q=lambda q: q + noise), q=lambda q: q + noise), tmp_path)
    assert first(found) == ("qk", "0", ALL)
    assert not any(each.first for each in found.heads[HEADS:])


def test_figures_are_those_of_the_stored_weights(tmp_path: Path) -> None:
    one = with_parts(seen=causal(), causal="top-left", sink=1.0, said_sink=1.0)
    twins = np.repeat(one.layers[1].k[:, :, ::2], 2, axis=2)  # so that the largest weight is nearly on two keys
    one = edited(one, k=twins * np.resize([1.0, 1.001], (TOKENS, 1)))
    other = edited(one, k=twins * np.resize([1.0, 0.999], (TOKENS, 1)), sink=3.0, said_sink=3.0)
    found = compared(one, other, tmp_path).heads[HEADS]
    p, r = (load_file(tmp_path / f"{name}.safetensors")["layers.1.attn.weights"][0, 0] for name in ("one", "other"))
    kept = np.take_along_axis(p, r.argmax(-1)[:, np.newaxis], -1)[:, 0]
    assert found.divergence == pytest.approx(special.kl_div(p, r).sum(-1).mean())
    assert found.changed_rows == np.mean(kept < 0.99 * p.max(-1)) != np.mean(kept < p.max(-1))
    for figures, weights in ((found.reference, p), (found.test, r)):
        assert figures is not None
        entropy, several = special.entr(weights).sum(-1), np.arange(2, TOKENS + 1)
        assert figures.entropy == pytest.approx(entropy.mean())
        assert figures.entropy_fraction == pytest.approx((entropy[1:] / np.log(several)).mean())
        assert (figures.max_weight, figures.first_key_weight) == pytest.approx(
            (weights.max(-1).mean(), weights[:, 0].mean())
        )
        assert figures.one_hot_rows == np.mean(weights[1:].max(-1) > 0.95)


def test_values_and_outputs_are_compared_too(tmp_path: Path) -> None:
    one = recipe()
    assert first(compared(one, edited(one, v=lambda v: 1.5 * v), tmp_path)) == ("v", "1", ALL)


def test_numbers_that_are_not_finite_are_a_difference_also_in_both(tmp_path: Path) -> None:
    one, hole = recipe(), np.zeros((1, HEADS, TOKENS, D_K))
    hole[0, 1, 3, 3] = np.nan
    spoiled = edited(one, q=lambda q: q + hole)
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
    one = replace(with_parts(k=lambda k: k[:, :2]), evidence=evidence)
    for layer in one.layers:
        layer.used_k = np.repeat(layer.k, 2, axis=1)
    found = compared(one, edited(one, used_k=np.tile(one.layers[1].k, (1, 2, 1, 1))), tmp_path)
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
    assert first(compared(one, rescaled(other, 1.06), tmp_path)) == ("multiplier", "1", ALL)
    assert first(compared(one, edited(other, said_softcap=4.0), tmp_path)) == ("softcap", "1", ALL)


def test_texts_with_the_same_start_are_compared_there_if_attention_is_causal(tmp_path: Path) -> None:
    one = with_parts(seen=causal(), causal="top-left")
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
    moved = (np.arange(TOKENS) == 5)[:, np.newaxis]
    assert first(compared(one, edited(other, k=lambda k: k + moved), tmp_path)) == ("qk", "1", ALL)


def test_layers_and_heads_of_one_file_only_are_named(tmp_path: Path) -> None:
    one = recipe(layers=3)
    other = replace(one, layers=[replace(each) for each in one.layers[:2]])
    other = edited(other, **of_sides(lambda side: side[:, :2]))
    found = compared(one, other, tmp_path)
    assert found.missing == (
        "only the reference has layer 2 (layers.2.attn)",
        "layer 1: only the reference has heads 2 and 3",
    )
    assert found.differs
    assert found.first is None


def test_of_scores_that_differ_no_factor_is_taken_for_a_multiplier(tmp_path: Path) -> None:
    one, noise = recipe(), np.random.default_rng(8).standard_normal((1, HEADS, TOKENS, D_K))
    found = compared(one, edited(one, q=lambda q: 0.99 * q + 0.1 * noise), tmp_path)
    assert first(found) == ("qk", "1", ALL)
    assert {each.stages[1].state for each in found.heads} == {"same"}


def test_scales_of_rows_are_compared(tmp_path: Path) -> None:
    q, k = np.random.default_rng(0).normal(size=(2, 1, 2, 12, 8))
    rows = np.linspace(0.2, 0.6, 24).reshape(1, 2, 12, 1)
    one, same, other, one_scale = (
        opened(folder_in(tmp_path, str(at)), named({"q": q, "k": k, "scale": scale}), causal="false")
        for at, scale in enumerate((rows, rows, rows[:, ::-1], rows.mean(axis=2, keepdims=True)))
    )
    assert not compare(one, same).differs
    assert first(compare(one, other)) == ("multiplier", "0", [0, 1])
    assert first(compare(one, one_scale)) == ("multiplier", "0", [0, 1])


def folder_in(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


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
    rolled = edited(one, 0, **of_sides(lambda side: np.roll(side, 1, axis=1)))
    [note] = planned(one, rolled, tmp_path).notes
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


A, B, LONG = tuple("abcdefghij"), tuple("abcdefghix"), tuple("abcdefghijkl")


@for_each(
    ("tokens", "texts", "keys", "batches", "expected"),
    [
        ((None, None), (None, None), (10, 10), (1, 1), ("same", 1, 10, True)),
        ((None, None), (("a",), None), (10, 10), (1, 1), ("same", 1, 10, True)),
        ((None, None), (("a",), ("a",)), (10, 10), (1, 1), ("same", 1, 10, False)),
        ((None, None), (("a",), ("b",)), (10, 10), (1, 1), ("different", 0, 0, True)),
        ((None, None), (("a", "b"), ("a", "c")), (10, 10), (2, 1), ("same", 1, 10, False)),
        ((None, None), (("a",), ("a",)), (10, 9), (1, 1), ("different", 0, 0, True)),
        (((A,), None), (("a",), ("a",)), (10, 10), (1, 1), ("same", 1, 10, False)),
        ((None, (A,)), (("a",), None), (10, 10), (1, 1), ("same", 1, 10, True)),
        (((A,), (A,)), (("a",), ("b",)), (10, 10), (1, 1), ("same", 1, 10, False)),
        (((A, A), (A,)), (None, None), (10, 10), (2, 1), ("same", 1, 10, True)),
        (((A, A), (A, B)), (None, None), (10, 10), (2, 2), ("prefix", 2, 9, True)),
        (((A,), (A,)), (None, None), (10, 12), (1, 1), ("prefix", 1, 10, True)),
        (((A,), (LONG,)), (None, None), (10, 12), (1, 1), ("prefix", 1, 10, True)),
    ],
)
def test_tokens_are_those_that_both_files_say(
    tokens: tuple[Any, Any], texts: tuple[Any, Any], keys: tuple[int, int], batches: tuple[int, int],
    expected: tuple[str, int, int, bool], tmp_path: Path,
) -> None:  # fmt: skip
    """Tokens come before texts; without either, the same sizes are taken for the same text, with a note."""
    capture = written(recipe(layers=1), tmp_path / "a.safetensors")
    files = [replace(capture, tokens=of, text=text) for of, text in zip(tokens, texts, strict=True)]
    layers = [
        replace(capture.layers[0], keys=n, batch=m, causal="top_left") for n, m in zip(keys, batches, strict=True)
    ]
    found = common_tokens(files[0], files[1], layers[0], layers[1])
    assert (found.sameness, found.texts, found.tokens, found.note is not None) == expected
    for at in (0, 1):  # attention to another text has no start in common
        layers[at] = replace(layers[at], cross=at == 0, causal="top_left" if at == 0 else None)
        expects = "different" if expected[0] == "prefix" else expected[0]
        assert common_tokens(files[0], files[1], layers[0], layers[1]).sameness == expects


def test_layers_are_paired_by_number_and_name_then_by_number_and_kind(tmp_path: Path) -> None:
    capture = written(recipe(layers=2), tmp_path / "a.safetensors")
    first, second = capture.layers
    cross = replace(first, name="cross", cross=True)
    renamed = replace(first, name="other")
    one = replace(capture, layers=(first, cross, second))
    for layers, expected in (
        ((cross, first, second), [(0, "layers.0.attn"), (0, "cross"), (1, "layers.1.attn")]),
        ((replace(cross, name="x"), renamed, second), [(0, "other"), (0, "x"), (1, "layers.1.attn")]),
    ):
        pairs = plan(one, replace(capture, layers=layers)).pairs
        found = dict.fromkeys((each.test_layer.index, each.test_layer.name) for each in pairs)
        assert [*found] == expected


def test_texts_share_their_start_only_if_both_files_are_causal(tmp_path: Path) -> None:
    plain = recipe(layers=1)
    hidden = replace(
        edited(plain, 0, seen=causal(), causal="top-left"), tokens=[*plain.tokens[:8], *"x" * (TOKENS - 8)]
    )
    one, other = (written(each, tmp_path / f"{at}.safetensors") for at, each in enumerate((plain, hidden)))
    for a, b in ((one, other), (other, one)):
        assert common_tokens(a, b, a.layers[0], b.layers[0]).sameness == "different"


def test_what_follows_from_other_scores_is_not_called_the_same(tmp_path: Path) -> None:
    found = compared(recipe(), recipe(seed=1), tmp_path)
    stages = [stage for each in found.heads for stage in each.stages if stage.name in ("lse", "weights", "o")]
    assert [stage.state for stage in stages] == ["follows"] * 3 * HEADS + ["downstream"] * 3 * HEADS
    assert all("text" in each.stages[0].says for each in found.heads)


ROWS_OF_BOTH = [
    (None, [1, 4, 9], "same"), ([1, 4, 9], None, "same"), ([1, 4, 9], [4, 9, 11], "same"),
    ([9, 4, 1], [1, 4, 9], "same"), ([1, 4], [2, 3], "not-compared"),
]  # fmt: skip


@for_each(("of_one", "of_other", "state"), ROWS_OF_BOTH)
def test_of_sampled_queries_those_in_both_files_are_compared(
    of_one: list[int] | None, of_other: list[int] | None, state: str, tmp_path: Path
) -> None:
    q, k = np.random.default_rng(0).normal(size=(2, 1, 2, 12, 8))
    one, other = (
        open_capture(
            save(
                tmp_path / f"{at}.safetensors",
                named({"q": q if rows is None else q[:, :, rows], "k": k}),
                causal="true",
                scale=0.3,
                **({} if rows is None else {"rows": rows}),
            )
        )
        for at, rows in enumerate((of_one, of_other))
    )
    assert {each.stages[0].state for each in compare(one, other).heads} == {state}


def heads_of(*stages: tuple[str, float, float | None], name: StageName = "multiplier") -> list[HeadComparison]:
    """Heads of one layer with this stage: what is said of it, the multiplier and the divergence."""
    layer = open_capture(sample_path()).layers[0]
    return [
        HeadComparison(
            layer, at, layer, at, (Stage(name, "differs" if text else "same", text),), None,
            PairFigures(Product(number), 1.0, 1.0, 0.5, 0.5, 0.5, 0.5), divergence, None,
        )
        for at, (text, number, divergence) in enumerate(stages)
    ]  # fmt: skip


@for_each(
    ("heads", "words"),
    [
        (heads_of(("× 2", 0.25, 0.5)), "× 2"),
        (heads_of(("× 2", 0.25, 0.5), ("× 2", 0.5, 0.7)), "× 2"),
        (heads_of(("× 2", 0.25, 0.5), ("× 2.001", 0.2501, 0.7)), "× 2.001"),
        (heads_of(("× 2", 0.25, 0.7), ("× 3", 0.375, 0.5)), "head 0: × 2"),
        (heads_of(("a", 0.25, 0.5), ("b", 0.25, 0.7), name="mask"), "head 1: b"),
        (heads_of(("", 0.25, 0.5), ("b", 0.25, 0.7)), "b"),
        (heads_of(("", 0.25, 0.5)), ""),
    ],
)
def test_heads_that_differ_in_other_words_are_told_by_the_most_changed(
    heads: list[HeadComparison], words: str
) -> None:
    assert difference_in_words(heads) == words
    assert heads[0].change == heads[0].divergence
    unknown = replace(heads[0], divergence=None)
    assert unknown.change == 0
    both = replace(unknown, reference=replace(present(heads[0].test), entropy_fraction=0.9))
    assert both.change == pytest.approx(0.4)
    assert (
        replace(both, test=None).change
        == replace(both, test=replace(present(both.test), entropy_fraction=None)).change
        == 0
    )
