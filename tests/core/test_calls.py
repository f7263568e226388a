"""A call says all that a layer of a file may say, checked by the reader; texts of engines are unpacked."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import attn_tui
import numpy as np
import pytest
from attn_tui.core.captures.calls.call import call
from attn_tui.core.captures.features import OF_ENTRIES
from attn_tui.core.captures.head import read_evidence, read_head
from attn_tui.core.captures.reader import open_capture
from cases import for_each

rng = np.random.default_rng(0)
HEADS, KV_HEADS, WIDTH = 4, 2, 16
PAGE = 4


def normal(*shape: int) -> Any:
    return rng.normal(size=shape).astype(np.float32)


def attention(
    q: Any, k: Any, v: Any, scale: float, window: int | None = None, softcap: float | None = None, sinks: Any = None
) -> tuple[Any, Any, Any]:
    """Return outputs, log-sum-exps and weights of one text, [head, token, d], whose last query sees all keys."""
    group, queries, keys = q.shape[0] // k.shape[0], q.shape[1], k.shape[1]
    z = scale * (q @ np.repeat(k, group, 0).mT).astype(np.float64)
    z = z if softcap is None else softcap * np.tanh(z / softcap)
    places = np.arange(keys, dtype=np.int64)
    distance = places[keys - queries :, np.newaxis] - places
    seen = (distance >= 0) & (distance < (window or keys))
    z = np.where(seen, z, -np.inf)
    none = np.full((len(q), 1), -np.inf) if sinks is None else np.reshape(sinks, (-1, 1))
    lse = np.logaddexp(np.log(np.exp(z).sum(-1)), none)
    p = np.exp(z - lse[..., np.newaxis])
    return (p @ np.repeat(v, group, 0)).astype(np.float32), lse.astype(np.float32), p.astype(np.float32)


def healthy(path: Path) -> set[str]:
    return {each.verdict.word for each in attn_tui.diagnose(path).heads}


def test_a_right_gemma_2_is_healthy(tmp_path: Path) -> None:
    """Soft-cap, a window in every other layer, another scale than 1/√d_k: with all of it said, nothing is accused."""
    calls: list[Any] = []
    for layer in range(4):
        q, k, v = 3 * normal(HEADS, 12, WIDTH), normal(KV_HEADS, 12, WIDTH), normal(KV_HEADS, 12, WIDTH)
        window = 4 if layer % 2 == 0 else None
        o, lse, _ = attention(q, k, v, 24**-0.5, window, softcap=5.0)
        calls.append(
            call(
                q, k, v, o, axes="head,token,d_k", scale=24**-0.5, causal=True, softcap=5.0, window=window,
                lse=lse[np.newaxis], name=f"layers.{layer}",
            )
        )  # fmt: skip
    config = {"model_type": "gemma2", "query_pre_attn_scalar": 24, "head_dim": WIDTH, "attn_logit_softcapping": 5.0,
              "sliding_window": 4, "num_attention_heads": HEADS, "hidden_size": 64}  # fmt: skip
    attn_tui.save(tmp_path / "a.safetensors", calls, config=config)
    assert healthy(tmp_path / "a.safetensors") == {"healthy"}
    unsaid = [call(*(each.tensors[role] for role in "qkvo"), scale=24**-0.5, causal=True) for each in calls]
    attn_tui.save(tmp_path / "b.safetensors", unsaid, config=config)
    assert "cause" in healthy(tmp_path / "b.safetensors")  # so the test can tell


def test_a_sink_prescaled_queries_and_weights_are_said(tmp_path: Path) -> None:
    sinks = rng.normal(size=HEADS)
    q, k, v = normal(HEADS, 12, WIDTH), normal(KV_HEADS, 12, WIDTH), normal(KV_HEADS, 12, WIDTH)
    o, _, p = attention(q / 4, k, v, 1.0, sinks=sinks)
    said: dict[str, Any] = {"sinks": sinks, "weights": p[np.newaxis], "prescaled": (0.25, 1), "scores": "float32"}
    found = call(q / np.float32(4), k, v, o, axes="head,token,d_k", scale=1.0, causal=True, **said)
    attn_tui.save(tmp_path / "a.safetensors", [found])
    assert healthy(tmp_path / "a.safetensors") == {"healthy"}
    assert open_capture(tmp_path / "a.safetensors").layers[0].evidence == ("v", "o", "weights")


ACCEPTED: dict[str, Any] = {  # a value of each key that the entry of a layer may have
    "index": 3, "name": "first", "heads": HEADS, "kv_heads": KV_HEADS, "d_k": WIDTH, "scale": 0.5,
    "head_scales": (1, 2, 3, 4), "prescaled": [0.5, None], "causal": "top-left", "alignment": "top-left",
    "window": np.array([3, 0]), "chunk": 4, "softcap": 30, "alibi_slopes": np.ones(HEADS, np.float32),
    "sinks": [0.5] * HEADS, "rows": [*range(6)], "attention": "self", "mask_true": "visible",
    "softmax_axis": "queries",
    "output_factor": 2.0, "weights_dropout": 0.1, "weights_changed": ["mul"], "weights_followed": False,
    "not_finite": [[0, 9]] * HEADS, "scores": "bfloat16", "observed": True, "mask": np.tri(6, dtype=np.bool_),
    "layer_type": "full_attention", "backend": "fused", "notes": "from an engine",
}  # fmt: skip


@for_each("key", OF_ENTRIES)
def test_every_key_of_an_entry_is_a_keyword_that_the_reader_checks(key: str) -> None:
    q, k = normal(1, HEADS, 6, WIDTH), normal(1, KV_HEADS, 6, WIDTH)
    given: dict[str, Any] = {"scale": None if key == "head_scales" else 1.0, "causal": True}
    found = call(q, k, **{**given, key: ACCEPTED[key]})
    assert key in found.entry or key in found.tensors
    if key not in ("name", "backend", "notes", "scores", "layer_type", "mask"):
        given[key] = "wrong"
        with pytest.raises(attn_tui.InputError, match=f"arrays: .*{key}"):
            call(q, k, **given)


def test_an_unknown_keyword_is_named_with_the_nearest_one() -> None:
    q, k = normal(1, HEADS, 6, WIDTH), normal(1, KV_HEADS, 6, WIDTH)
    with pytest.raises(attn_tui.InputError, match=r"sofcap: unknown name \(did you mean softcap\?\)"):
        call(q, k, scale=1.0, sofcap=3.0)


def packed(texts: list[tuple[Any, ...]]) -> tuple[list[Any], list[int], list[int]]:
    """Return q, k, v, o as [token, head, d], lse as [head, token], and where texts begin."""
    columns = list(zip(*texts, strict=True))
    arrays: list[Any] = [np.concatenate(each, axis=1) for each in columns]
    starts = [[0, *itertools.accumulate(text.shape[1] for text in columns[role])] for role in (0, 1)]
    return [*(each.swapaxes(0, 1) for each in arrays[:4]), arrays[4]], starts[0], starts[1]


def in_pages(texts: list[Any]) -> tuple[Any, Any]:
    """Return texts, [head, token, d], as pages [page, token, head, d] in any order, and the table of the pages."""
    tables = np.full((len(texts), 5), -1)
    free = iter(rng.permutation(20))
    pages = np.full((20, PAGE, *texts[0].shape[::2]), np.nan, np.float32)
    for at, text in enumerate(texts):
        for place in range(0, text.shape[1], PAGE):
            tables[at, place // PAGE] = page = next(free)
            part = text[:, place : place + PAGE].swapaxes(0, 1)
            pages[page, : len(part)] = part
    return pages, tables


@pytest.mark.parametrize(
    ("queries", "keys"), [((5, 12, 1), (5, 12, 1)), ((1, 3, 1), (7, 12, 9))], ids=["prompts", "decoding"]
)
@pytest.mark.parametrize("paged", [False, True])
def test_packed_texts_and_pages_are_those_of_a_padded_batch(
    queries: tuple[int, ...], keys: tuple[int, ...], paged: bool, tmp_path: Path
) -> None:
    texts: list[tuple[Any, ...]] = []
    for n, m in zip(queries, keys, strict=True):
        q, k, v = normal(HEADS, n, WIDTH), normal(KV_HEADS, m, WIDTH), normal(KV_HEADS, m, WIDTH)
        texts.append((q, k, v, *attention(q, k, v, 0.25, window=6)[:2]))
    (q, k, v, o, lse), starts, key_starts = packed(texts)
    said: dict[str, Any] = {"cu_seqlens_k": key_starts}
    if paged:
        cache, table = in_pages([np.concatenate(text[1:3], axis=-1) for text in texts])
        k, v = cache[..., :WIDTH], cache[..., WIDTH:]
        said = {"block_table": table, "lengths": keys}
    found = call(
        q, k, v, o, axes="token,head,d_k", scale=0.25, causal="bottom-right", window=6, lse=lse, cu_seqlens=starts,
        **said,
    )  # fmt: skip
    attn_tui.save(tmp_path / "a.safetensors", [found])
    assert healthy(tmp_path / "a.safetensors") == {"healthy"}
    capture = open_capture(tmp_path / "a.safetensors")
    assert not [note for note in capture.notes if "hidden" in note]
    layer = capture.layers[0]
    assert (layer.batch, layer.queries, layer.keys) == (3, max(queries), max(keys))
    for head in range(HEADS):
        data, returned = read_head(capture, layer, head), read_evidence(capture, layer, head, "lse")
        assert returned is not None
        for at, (own, mine, *_) in enumerate(texts):
            np.testing.assert_array_equal(data.q[at, -own.shape[1] :], own[head])
            np.testing.assert_array_equal(data.k[at, -mine.shape[1] :], mine[head // 2])
            np.testing.assert_array_equal(returned[at, -own.shape[1] :], texts[at][4][head])


def test_a_cache_that_is_not_filled_is_cut_at_its_lengths(tmp_path: Path) -> None:
    """flash_attn_with_kvcache: one query of each text, keys in a cache that is as long as the longest text may be."""
    cache = normal(2, KV_HEADS, 10, WIDTH), normal(2, KV_HEADS, 10, WIDTH)
    q, lengths = normal(2, HEADS, 1, WIDTH), (4, 9)
    k, v = cache
    o = np.stack([attention(q[at], k[at, :, :n], v[at, :, :n], 0.25)[0] for at, n in enumerate(lengths)])
    found = call(q, *cache, o, scale=0.25, causal="bottom-right", lengths=lengths)
    attn_tui.save(tmp_path / "a.safetensors", [found])
    assert healthy(tmp_path / "a.safetensors") == {"healthy"}
    assert found.tensors["key_mask"].sum(axis=1).tolist() == [4, 9]


def test_lengths_of_a_padded_batch_hide_its_padding() -> None:
    q, k = normal(2, HEADS, 8, WIDTH), normal(2, KV_HEADS, 8, WIDTH)
    found = call(q, k, scale=0.25, causal=True, lengths=[8, 3], bias=normal(1, HEADS, 8, 8))
    assert found.tensors["key_mask"].sum(axis=1).tolist() == [8, 3]
    assert found.tensors["query_mask"].sum(axis=1).tolist() == [8, 3]


PAGES = normal(3, PAGE, KV_HEADS, WIDTH)


@for_each(
    ("words", "given"),
    [
        ("ends at 12; must have one text", {"cu_seqlens": [0, 4, 12]}),
        ("cu_seqlens must ascend from 0", {"cu_seqlens": [0, 4, 2, 9]}),
        ("cu_seqlens must be whole numbers with 1 axis", {"cu_seqlens": [0.0, 9.0]}),
        ("different numbers of texts: 2 of q, 3 of k", {"cu_seqlens": [0, 4, 9], "cu_seqlens_k": [0, 2, 5, 9]}),
        ("block_table needs lengths", {"cu_seqlens": [0, 9], "block_table": [[0]], "k": PAGES}),
        ("names pages \\[0, 3\\]", {"cu_seqlens": [0, 9], "block_table": [[0, 3]], "lengths": [6], "k": PAGES}),
        ("lengths \\[10\\] do not fit", {"lengths": [10]}),
        ("bias cannot be given for texts that are packed", {"cu_seqlens": [0, 4, 9], "bias": normal(9, 9)}),
        ("no text has both", {"cu_seqlens": [0, 0]}),
        ("no text has both", {"cu_seqlens": [0, 9, 9], "cu_seqlens_k": [0, 0, 9]}),
        ("cu_seqlens must ascend from 0", {"cu_seqlens": [1, 9]}),
        ("cu_seqlens must be whole numbers with 1 axis", {"cu_seqlens": [[0, 9]]}),
        ("cu_seqlens must be whole numbers with 1 axis", {"cu_seqlens": np.zeros(0, int)}),
        ("lengths must be from 0 up", {"lengths": [-1]}),
        ("lengths \\[3, 3\\] do not fit", {"lengths": [3, 3]}),
        (
            "must have one text",
            {
                "q": normal(2, 9, HEADS, WIDTH),
                "axes": "batch,token,head,d_k",
                "cu_seqlens": [0, 9],
                "k": normal(2, 9, KV_HEADS, WIDTH),
            },
        ),
        ("names pages \\[0\\]", {"cu_seqlens": [0, 9], "block_table": [[0]], "lengths": [6], "k": PAGES}),
        ("causal must be 'top-left' or", {"k": normal(5, KV_HEADS, WIDTH), "causal": True}),
        *(
            ("once", {"axes": axes})
            for axes in ("token,head", "token,head,x", "token,head,head", "batch,token,head,d_k")
        ),
    ],
)
def test_layouts_that_do_not_fit_are_refused(words: str, given: dict[str, Any]) -> None:
    q, k = normal(9, HEADS, WIDTH), normal(9, KV_HEADS, WIDTH)
    whole: dict[str, Any] = {"q": q, "k": k, "axes": "token,head,d_k", "scale": 1.0, **given}
    with pytest.raises(attn_tui.InputError, match=words):
        call(**whole)


def test_a_causal_call_with_fewer_queries_may_name_their_rows_or_their_end() -> None:
    q, k = normal(1, HEADS, 2, WIDTH), normal(1, KV_HEADS, 6, WIDTH)
    for said in ({"rows": [1, 4]}, {"alignment": "bottom-right"}):
        assert call(q, k, scale=1.0, causal=True, **said).entry["causal"] is True  # pyright: ignore[reportArgumentType]


def test_pages_may_have_an_axis_of_their_own() -> None:
    """[page, head, token, d] or as many axes as q, with the pages first."""
    q, pages = normal(1, HEADS, 6, WIDTH), normal(3, KV_HEADS, PAGE, WIDTH)
    said: dict[str, Any] = {
        "scale": 1.0,
        "causal": True,
        "cu_seqlens": [0, 6],
        "block_table": [[2, 0]],
        "lengths": [6],
    }
    of_batch, of_token = call(q, pages, **said), call(q[0], pages, axes="head,token,d_k", **said)
    expected = np.concatenate([pages[2], pages[0]], axis=1)[np.newaxis, :, :6]
    for found in (of_batch, of_token):
        np.testing.assert_array_equal(found.tensors["k"], expected)


def test_texts_without_queries_or_keys_are_left_out() -> None:
    q, k = normal(9, HEADS, WIDTH), normal(6, KV_HEADS, WIDTH)
    starts: dict[str, Any] = {"cu_seqlens": [0, 4, 4, 9, 9], "cu_seqlens_k": [0, 2, 4, 4, 6]}
    found = call(q, k, axes="token,head,d_k", scale=1.0, causal="bottom-right", **starts)
    np.testing.assert_array_equal(found.tensors["q"], q[np.newaxis, :4].swapaxes(1, 2))
    np.testing.assert_array_equal(found.tensors["k"], k[np.newaxis, :2].swapaxes(1, 2))


def test_arrays_keep_their_number_format(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    for dtype in (torch.bfloat16, torch.float16, torch.float8_e4m3fn):
        q, k = (torch.randn(1, HEADS, 6, WIDTH, requires_grad=True).to(dtype) for _ in range(2))
        attn_tui.save(tmp_path / "a.safetensors", [call(q, k, scale=torch.tensor(0.25), causal=True)])
        capture = open_capture(tmp_path / "a.safetensors")
        assert f"torch.{capture.layers[0].dtype}" == str(dtype)
        assert capture.layers[0].scale == 0.25
        np.testing.assert_array_equal(read_head(capture, capture.layers[0], 1).q, q.float().detach().numpy()[:, 1])
