"""Parts of the recorder alone: which keys are visible, which view is which, and what continues a cache."""

import importlib
from dataclasses import replace
from math import prod
from typing import Any

from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from pytorch import torch


def part_of(name: str) -> Any:
    return importlib.import_module(f"attn_tui.core.recorder.{name}")


cache, geometry, layer, notes, visibility = map(
    part_of, ("layers.cache", "layers.geometry", "layers.layer", "trace.notes", "layers.visibility")
)
N = 6
ROWS = torch.arange(N)
CAUSAL = torch.ones(N, N, dtype=torch.bool).tril()
WINDOW = CAUSAL & ~torch.ones(N, N, dtype=torch.bool).tril(-3)
PADDED = torch.tensor([1, 1, 0, 1, 1, 1], dtype=torch.bool)
HOLED = CAUSAL.clone()
HOLED[4, 1] = False


@for_each(
    ("pairs", "offset", "window", "mask"),
    [
        (torch.ones(N, N), None, None, None), (CAUSAL, 0, None, None), (WINDOW, 0, 3, None),
        (torch.ones(N, N) * PADDED, None, None, (1, N)), (CAUSAL & PADDED, 0, None, (1, N)),
        (WINDOW & PADDED, 0, 3, (1, N)), (HOLED, 0, None, (N, N)), (CAUSAL.mT, None, None, (N, N)),
    ],
)  # fmt: skip
def test_visible_keys_are_described_as_shortly_as_possible(
    pairs: Any, offset: int | None, window: int | None, mask: tuple[int, int] | None
) -> None:
    several = pairs.bool().expand(2, 3, N, N)
    found = visibility.visible_of(several, ROWS, N)
    assert (found.offset, found.window) == (offset, window)
    assert (None if found.mask is None else tuple(found.mask.shape)) == (mask and (1, 1, *mask))
    assert torch.equal(found.pairs(ROWS, N).expand_as(several), several)
    few = torch.tensor([0, 3, 5])
    assert torch.equal(
        visibility.visible_of(several[:, :, few], few, N).pairs(few, N).expand(2, 3, 3, N), several[:, :, few]
    )


@given(
    st.integers(1, 4), st.integers(0, 3), st.lists(st.booleans(), min_size=56, max_size=56),
    st.sampled_from([None, 0, 1, 2]), st.booleans(),
)  # fmt: skip
def test_a_description_of_visible_keys_is_of_the_same_pairs(
    queries: int, more: int, seen: list[bool], window: int | None, causal: bool
) -> None:
    keys = queries + more
    pairs = torch.tensor(seen[: 2 * queries * keys]).reshape(2, 1, queries, keys)
    rows = torch.arange(queries)
    if causal:
        pairs = pairs & visibility.Visible(more, window).pairs(rows, keys)
    assert torch.equal(visibility.visible_of(pairs, rows, queries).pairs(rows, keys).expand_as(pairs), pairs)


@given(st.lists(st.integers(1, 3), min_size=2, max_size=4), st.randoms(), st.booleans())
def test_the_order_of_a_view_gives_back_all_elements_in_order(sizes: list[int], chance: Any, split: bool) -> None:
    whole = torch.arange(prod(sizes)).reshape(sizes)
    of = geometry.geometry_of(whole)
    view = whole.unflatten(0, (1, sizes[0])).flatten(1, 2) if split and len(sizes) > 2 else whole
    order = list(range(view.dim()))
    chance.shuffle(order)
    view = view.permute(order)
    found = geometry.canonical_order(view, of)
    assert found is not None
    assert torch.equal(view.permute(found).flatten(), whole.flatten())
    if view.shape[0] > 1:
        assert geometry.canonical_order(view[:-1], of) is None or view[:-1].shape[found[-1]] == of.keys - 1
        assert geometry.canonical_order(view[1:], of) is None


def test_keys_may_be_two_dimensions_and_the_last_ones_missing() -> None:
    whole = torch.arange(2 * 3 * 8).reshape(2, 3, 8)
    of = geometry.geometry_of(whole)
    assert geometry.split_order(whole.unflatten(2, (2, 4)).permute(3, 0, 1, 2), of) == ((1, 2, 3, 0), 2)
    assert geometry.split_order(whole.permute(2, 0, 1), of) == ((1, 2, 0), 1)
    assert geometry.split_order(whole[:, :, ::2], of) is None
    assert geometry.canonical_order(whole[:, :, :7], of, cut=1) == (0, 1, 2)
    assert geometry.canonical_order(whole[:, :, :7], of) is None
    assert geometry.geometry_of(whole.unflatten(2, (2, 4)), keys=2) == of
    turned = whole.permute(1, 2, 0)
    assert [of.is_across(view) for view in (whole, whole.mT, turned, turned[..., :1])] == [
        False, False, True, False,
    ]  # fmt: skip


# Caches of keys

K = torch.arange(8.0).reshape(1, 1, 8, 1).expand(1, 2, 8, 4).contiguous()


def call(first: int, queries: int, k: Any = K, v: Any = None, **more: Any) -> Any:
    """A call whose queries are the last of the keys of `k` from `first` on, and see those before."""
    keys = k[:, :, first:]
    count = keys.shape[2]
    q = torch.ones(1, 2, queries, 4)
    visible = visibility.Visible(count - queries, more.pop("window", None))
    part = layer.LayerCall(q, None, torch.arange(queries), queries, count, visible, None)
    usual = {"head_scales": None, "prescaled": (1.0, 1.0), "softcap": None, "sinks": None, "scores": "float32"}
    return layer.RecordedLayer(layer.Site("a"), [part], keys, v, **{"scale": 0.5, **usual, **more})


def upto(count: int, changed: int | None = None) -> Any:
    k = K[:, :, :count].clone()
    if changed is not None:
        k[:, :, changed] += 100
    return k


@for_each(
    ("old", "new", "most", "added", "refused", "keys"),
    [
        (call(0, 4, upto(4)), call(0, 1, upto(5)), 99, True, "", 5),
        (call(0, 4, upto(4)), call(0, 3, upto(7)), 7, True, "", 7),
        (call(0, 4, upto(4)), call(0, 3, upto(7)), 6, True, "a layer has at most 6 rows (twice --rows)", 4),
        (call(0, 4, upto(4)), call(1, 1, upto(5)), 99, True, "", 5),  # a window has the last keys
        (call(0, 4, upto(4)), call(0, 2, upto(5, 3)), 99, True, "", 5),  # one token was taken back
        (call(0, 4, upto(4)), call(0, 1, upto(5, 1)), 99, True, cache.BEAMS, 4),
        (call(0, 4, upto(4)), call(0, 1, upto(4)), 99, False, "", 4),  # cross-attention
        (call(0, 4, upto(4)), call(0, 4, K[:, :, 4:]), 99, False, cache.CHANGED, 4),  # another text
        (call(0, 4, upto(4)), call(0, 1, K[:, :, 3:]), 99, True, cache.CHANGED, 4),
        (call(0, 4, upto(4)), call(0, 1, upto(5), scale=0.25), 99, True, cache.CHANGED, 4),
        (call(0, 4, upto(4)), call(0, 1, upto(5), softcap=9.0), 99, True, cache.CHANGED, 4),
        (call(0, 4, upto(4)), call(0, 1, upto(5), sinks=torch.ones(2)), 99, True, cache.CHANGED, 4),
        (call(0, 4, upto(4)), call(0, 1, upto(5), v=upto(5)), 99, True, cache.CHANGED, 4),
        (call(0, 4, upto(4), v=upto(4)), call(0, 1, upto(5), v=upto(5)), 99, True, "", 5),
        (call(0, 4, upto(4), v=upto(4)), call(0, 1, upto(5), v=upto(5, 2)), 99, True, cache.BEAMS, 4),
        (call(0, 4, upto(4), refused="so"), call(0, 1, upto(5)), 99, True, "so", 4),
        (call(0, 4, upto(4), refused="so"), call(0, 4, upto(4)), 99, False, "so", 4),
    ],
)  # fmt: skip
def test_a_call_continues_a_cache_if_all_earlier_keys_are_there(
    old: Any, new: Any, most: int, added: bool, refused: str, keys: int
) -> None:
    found, whole = cache.continued(old, new, most)
    assert (found, whole.refused, whole.k.shape[2]) == (added, refused, keys)
    assert len(whole.parts) == (1 if refused else 2)
    assert (whole.v is None) == (old.v is None)
    if not refused:
        joined = cache.joined(whole)
        assert torch.equal(whole.k, K[:, :, :keys]) or torch.equal(whole.k, upto(keys, 3))
        assert (joined.queries, len(joined.rows), joined.keys) == (sum(part.queries for part in whole.parts),) * 2 + (
            keys,
        )


@for_each(
    ("one", "other", "together"),
    [
        ({"dropout": 0.1}, {"dropout": 0.2}, {"dropout": 0.2}), ({"dropout": 0.2}, {}, {"dropout": 0.2}),
        ({"followed": False}, {}, {"followed": False}), ({}, {"followed": False}, {"followed": False}),
        ({"not_finite": ((1, 9), (0, 9))}, {"not_finite": ((2, 5), (1, 5))}, {"not_finite": ((3, 14), (1, 14))}),
        ({"checked": "lse"}, {"checked": "bias"}, {"checked": "bias"}),
        ({"checked": "bias"}, {"checked": "lse"}, {"checked": "bias"}),
        ({"checked": "lse"}, {"checked": "logits"}, {"checked": "lse"}),
        ({"residual": 1.0}, {"residual": 3.0}, {"residual": 3.0}), ({"tolerance": 2.0}, {}, {"tolerance": 2.0}),
        ({"notes": ["a", "b"]}, {"notes": ["b", "c"]}, {"notes": ["a", "b", "c"]}),
        ({"changed": ("x",)}, {"changed": ("y", "x")}, {"changed": ("x", "y")}),
        ({"prescaled": (2.0, 3.0)}, {"prescaled": (2.0, 3.0)}, {"prescaled": (2.0, 3.0)}),
        ({"prescaled": (2.0, 3.0)}, {"prescaled": (4.0, 3.0)}, {"prescaled": (2.0, 3.0)}),
        ({"prescaled": (2.0, 3.0)}, {"prescaled": (2.0, 4.0)}, {"prescaled": (2.0, None)}),
        ({"prescaled": (None, 3.0)}, {"prescaled": (2.0, 3.0)}, {"prescaled": (None, 3.0)}),
        ({"prescaled": (2.0, 3.0)}, {"prescaled": (None, 3.0)}, {"prescaled": (None, 3.0)}),
    ],
)  # fmt: skip
def test_what_is_known_of_two_calls_is_true_of_both(
    one: dict[str, Any], other: dict[str, Any], together: dict[str, Any]
) -> None:
    _, whole = cache.continued(call(0, 4, upto(4), **one), call(0, 1, upto(5), **other), 99)
    assert {name: getattr(whole, name) for name in together} == together
    factors = cache.joined(whole).row_factors
    if "prescaled" in one and (one["prescaled"][0], other["prescaled"]) == (2.0, (4.0, 3.0)):
        assert factors.flatten().tolist() == [1, 1, 1, 1, 2]
    else:
        assert factors is None


@for_each("name", ["raw", "logarithm", "mixed"])
@for_each("both", [(False, False), (True, False), (False, True)])
def test_weights_have_everything_that_was_done_to_others_of_their_layer(name: str, both: tuple[bool, bool]) -> None:
    plain = notes.WeightNote(None, geometry.geometry_of(torch.ones(2, 3)))
    one, other = (replace(plain, **{name: each}) for each in both)
    assert one.with_all_of(other) == replace(plain, **{name: any(both)})
    changed = replace(plain, changed=("a", "b"), dropout=0.1).with_all_of(
        replace(plain, changed=("b", "c"), dropout=0.2)
    )
    assert (changed.changed, changed.dropout) == (("a", "b", "c"), 0.2)
