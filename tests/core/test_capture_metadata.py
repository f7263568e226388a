"""What the metadata of a capture says: scales, names, tokens, texts; and what is wrong with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from attn_tui.core.captures.metadata import context_factor, heads_of
from capture_files import has_note, layered, named, numbers, opened, pair, refusal, save
from cases import for_each


def test_the_entry_of_a_layer_overrides_the_file(tmp_path: Path) -> None:
    layers = [{"name": "local", "scale": 0.5, "softcap": 50}, {"causal": True, "softcap": 0}, {"scale": "0.125"}]
    capture = opened(tmp_path, layered(3), scale="0.25", causal="bottom-right", layers=layers)
    assert [(layer.name, layer.scale, layer.softcap, layer.causal) for layer in capture.layers] == [
        ("local", 0.5, 50, "bottom_right"),
        ("layers.1.attn", 0.25, None, "top_left"),
        ("layers.2.attn", 0.125, None, "bottom_right"),
    ]


def test_entries_are_matched_by_their_own_index(tmp_path: Path) -> None:
    capture = opened(tmp_path, layered(3), layers=[{"index": 2, "scale": 2}, {"index": 0, "scale": 1}])
    assert [layer.scale for layer in capture.layers] == [1, None, 2]
    assert has_note(capture, "the scale of layer 1 is not given; assuming 1/√d_k")


def test_a_file_with_some_layers_of_a_model_finds_their_entries_by_number(tmp_path: Path) -> None:
    tensors = {name: array for name, array in layered(3).items() if ".1." not in name}
    capture = opened(tmp_path, tensors, layers=[{"scale": 1 + i} for i in range(3)])
    assert [layer.scale for layer in capture.layers] == [1, 3]


def test_entries_that_match_no_layer_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "x.safetensors", layered(3), layers=[{"scale": 1}, {"scale": 2}])
    assert "'layers' has 2 entries for 3 layers" in refusal(path)


def test_missing_metadata_is_noted(tmp_path: Path) -> None:
    capture = opened(tmp_path, layered(1))
    layer = capture.layers[0]
    assert (layer.scale, layer.causal, layer.softcap, layer.mask) == (None, None, None, None)
    assert (capture.model, capture.text, capture.tokens, capture.lengths) == (None, None, None, None)
    assert "the scale is not given; assuming 1/√d_k if one is needed" in capture.notes
    assert has_note(capture, "whether attention is causal")


def test_tokens_and_texts_of_a_batch(tmp_path: Path) -> None:
    tokens = [list("abcdef"), list("uvwxyz")]
    capture = opened(tmp_path, layered(1), tokens=tokens, text=["one", "two"])
    assert capture.tokens == (tuple("abcdef"), tuple("uvwxyz"))
    assert capture.text == ("one", "two")


def test_a_text_may_begin_with_a_bracket(tmp_path: Path) -> None:
    assert opened(tmp_path, layered(1), text="[CLS] why").text == ("[CLS] why",)


def test_a_layer_has_the_tokens_of_its_own_queries_and_keys(tmp_path: Path) -> None:
    told = {"tokens": ["ab", "cd", "ef", "gh", "ij", "kl"], "query_tokens": ["one", "two"]}
    q, k = pair(batch=1, queries=2)
    capture = opened(tmp_path, {"q": q, "k": k}, **told, attention="cross")
    layer = capture.layers[0]
    of_keys, of_queries = (tuple(told[name]) for name in ("tokens", "query_tokens"))
    assert capture.tokens_of(layer, 0) == (of_queries, of_keys)
    assert capture.tokens_of(replace(layer, cross=False), 0) == (of_keys, of_keys)
    assert capture.tokens_of(replace(layer, keys=2), 0) == (of_queries, of_queries)
    assert capture.tokens_of(replace(layer, keys=7), 0) == (of_queries, None)
    assert capture.tokens_of(layer, 1) == (None, None)
    bare = replace(capture, tokens=None, query_tokens=None)
    assert bare.tokens_of(layer, 0) == (None, None)


def test_tokens_that_do_not_fit_are_left_out_with_a_note(tmp_path: Path) -> None:
    capture = opened(tmp_path, layered(1), tokens=["a", "b"])
    assert capture.tokens is None
    assert has_note(capture, "tokens are ignored")


@pytest.mark.parametrize("lengths", [[7, 7], [3], [3, 6, 1]])
def test_lengths_that_fit_no_text_are_refused_unless_a_mask_hides_the_padding(
    tmp_path: Path, lengths: list[int]
) -> None:
    capture = opened(tmp_path, layered(1), lengths=lengths)
    assert capture.lengths is None
    assert capture.layers[0].refusal == "the metadata's lengths do not match 2 texts of 6 tokens"
    mask = {"layers.0.attn.mask": np.arange(6) < np.array([[3], [6]])}
    for tensors, more in ((layered(1) | mask, {}), (layered(1), {"attention": "cross"})):
        capture = opened(tmp_path, tensors, lengths=lengths, **more)
        assert (capture.layers[0].refusal, has_note(capture, "lengths are ignored")) == ("", True)


def test_lengths_that_fit_another_layer_alone_are_refused(tmp_path: Path) -> None:
    other = {f"layers.1.attn.{side}": numbers(2, 4, 4, 8) for side in "qk"}
    capture = opened(tmp_path, layered(1) | other, lengths=[3, 6])
    assert [bool(layer.refusal) for layer in capture.layers] == [False, True]


@pytest.mark.parametrize(
    ("header", "twice"),
    [
        ('{"__metadata__": {"scale": "1", "scale": "2"}}', "'scale'"),
        ('{"__metadata__": {"scale": "1"}, "__metadata__": {"scale": "2"}}', "'__metadata__'"),
        ('{"q": {}, "k": {}, "q": {}}', "'q'"),
    ],
)
def test_a_header_with_a_key_twice_is_refused(tmp_path: Path, header: str, twice: str) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode())
    assert f"its header has {twice} twice" in refusal(path)


def test_an_entry_with_a_key_twice_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "x.safetensors", layered(1), layers='[{"scale": 0.5, "scale": 0.25}]')
    assert "'layers' has 'scale' twice" in refusal(path)


def test_no_text_of_a_file_reaches_the_terminal_as_an_escape_sequence(tmp_path: Path) -> None:
    evil = "\x1b]0;gone\x07\n"
    texts = {"model": evil, "text": evil, "tokens": [[evil] * 6] * 2, "layers": [{"name": evil}]}
    capture = opened(tmp_path, layered(1), **texts)
    assert capture.tokens is not None
    shown = [capture.model, *(capture.text or ()), capture.layers[0].name, *capture.tokens[0]]
    assert all(text == r"\x1b]0;gone\x07\n" for text in shown)
    q, k = pair()
    assert r"\x1b]0;gone" in refusal(save(tmp_path / "y.safetensors", {evil + ".q": q[..., :7], evil + ".k": k}))


POSITIVE, WHOLE, LENGTHS = "a positive number", "a positive whole number", "positive whole numbers"


@for_each(
    ("key", "value", "accepted"),
    [
        *(("scale", value, POSITIVE) for value in ("1/sqrt(d_k)", "0", "-0.1", "nan", "inf", "")),
        ("softcap", "-1", POSITIVE), ("softcap", "x", POSITIVE),
        ("causal", "maybe", "true, false, top-left or bottom-right"),
        ("heads", "0", WHOLE), ("heads", "4.5", WHOLE), ("kv_heads", "two", WHOLE), ("d_k", "-8", WHOLE),
        ("layers", "[", "not JSON"), ("layers", "[" * 100_000, "100 levels"),
        ("layers", "{}", "a JSON list of objects"), ("layers", "[1]", "list of objects"),
        *(("layers", f'[{{"scale": {value}}}]', POSITIVE) for value in ("true", "1e999")),
        ("layers", '[{"scale": [0]}]', "list of positive numbers"), ("sinks", "0.5", "a JSON list of numbers"),
        ("sinks", "[NaN]", "a JSON list of numbers"), ("alibi_slopes", "[-1]", "numbers from 0 up"),
        ("rows", "[-1]", "whole numbers from 0 up"), ("rows", "[0.5]", "whole numbers from 0 up"),
        *(
            (key, "[1" + "0" * zeros + "]", "more than 308 digits")
            for key in ("head_scales", "layers", "window", "rows")
            for zeros in (400, 5000)
        ),
        ("window", "[1" + "0" * 30 + ", 5]", "[keys before, keys after]"),
        *(
            ("layers", entries, 'a different "index" in each entry')
            for entries in ('[{"index": 1}, {"index": 1}]', '[{"index": 1}, {}]')
        ),
        *(("layers", f'[{{"index": {value}}}]', "whole number from 0") for value in ('"a"', "-1", "1.5", "true")),
        *(("window", value, "[keys before, keys after]") for value in ("x", "-3", "[1]", "[1, 2, 3]", "[1, true]")),
        ("chunk", "x", WHOLE), ("head_scales", "0.5", "list of positive numbers"), ("head_scales", "[0]", "positive"),
        *(("prescaled", value, "two positive numbers") for value in ("[1]", "[0, 1]")),
        ("attention", "both", "self or cross"),
        ("mask_true", "yes", "visible or hidden"), ("alignment", "left", "top-left or bottom-right"),
        ("config", "[]", "a JSON object"), ("schema", "attn-tui/qk-9", "one of attn-tui/qk-2, attn-tui/qk-1"),
        ("layers", '[{"mask": 3}]', "the name of a tensor"), ("layers", '[{"heads": {}}]', WHOLE),
        ("tokens", "a b c", "not JSON"),
        *(("tokens", value, "list of strings") for value in ("[1, 2]", "{}", '[["a"], 1]')),
        *(("lengths", value, LENGTHS) for value in ("[0]", "6", "[true, 2]", "[1.5, 2]")),
        ("lengths", "x", "not JSON"),
        *(("heads", value, WHOLE) for value in ("٤", "1000000000")),
        ("head_scales", "[Infinity]", "positive numbers"), ("rows", "[]", "whole numbers from 0 up"),
        *(("window", value, "[keys before, keys after]") for value in ("(3, 2", "3, 2)", "٣", "1" + "0" * 9)),
        *((key, "[]", "JSON list of") for key in ("head_scales", "not_finite")),
        *(("not_finite", f"[{each}]", "[count, of]") for each in ("[1]", "[0.5, 2]", "[3, 2]", "[-1, 2]", "1")),
    ],
)  # fmt: skip
def test_the_refusal_of_malformed_metadata_names_its_key(tmp_path: Path, key: str, value: str, accepted: str) -> None:
    message = refusal(save(tmp_path / "x.safetensors", layered(1), **{key: value}))
    assert accepted in message
    assert "metadata '" in message
    assert f"'{key}'" in message or key == "layers"


def test_metadata_that_contradicts_the_shape_is_refused(tmp_path: Path) -> None:
    assert "has 4 heads, but the metadata says 5" in refusal(save(tmp_path / "x.safetensors", layered(1), heads=5))
    assert "has d_k 8, but the metadata says 16" in refusal(save(tmp_path / "y.safetensors", layered(1), d_k=16))


def test_words_for_none_leave_a_cap_a_chunk_and_a_window_out(tmp_path: Path) -> None:
    for none in ("0", "none", "null"):
        layer = opened(tmp_path, layered(1), causal="true", softcap=none, chunk=none, window=none).layers[0]
        assert (layer.softcap, layer.chunk, layer.window) == (None, None, None)


@for_each(
    ("told", "alignment"),
    [
        ({"window_size": "[3, 2]"}, "bottom_right"), ({"window_size": "3", "causal": "true"}, "top_left"),
        ({"window_size": "[3, 2]", "alignment": "top-left"}, "top_left"), ({"window": "[3, 2]"}, "top_left"),
    ],
)  # fmt: skip
def test_a_window_of_flash_attention_is_aligned_at_the_end(
    tmp_path: Path, told: dict[str, str], alignment: str | None
) -> None:
    q, k = pair(queries=6)
    layer = opened(tmp_path, named({"q": q, "k": k}), **told).layers[0]
    assert layer.alignment == alignment


def test_a_schema_of_others_is_not_used(tmp_path: Path) -> None:
    assert "schema" in opened(tmp_path, layered(1), schema="theirs/1").unused


def test_a_list_of_another_number_of_texts_is_a_text(tmp_path: Path) -> None:
    assert opened(tmp_path, layered(1), text='["one"]').text == ('["one"]',)


@for_each(
    ("types", "numbered", "window"),
    [
        (["sliding_attention", "full_attention"], True, (2, 0)), (["sliding_attention"], False, (2, 0)),
        (["sliding_attention"] * 2, False, (2, 0)), (["full_attention"] * 2, False, None),
    ],
)  # fmt: skip
def test_the_type_of_a_layer_is_that_of_its_number_or_of_all(
    tmp_path: Path, types: list[str], numbered: bool, window: tuple[int, int] | None
) -> None:
    q, k = pair()
    tensors = named({"q": q, "k": k}) if numbered else {"q": q, "k": k}
    assert opened(tmp_path, tensors, causal="top-left", window=3, layer_types=types).layers[0].window == window


def test_different_types_of_layers_need_their_numbers(tmp_path: Path) -> None:
    types = ["sliding_attention", "full_attention"]
    q, k = pair()
    for tensors in ({"q": q, "k": k}, {"layers.2.attn.q": q, "layers.2.attn.k": k}):
        assert "type of each layer" in refusal(save(tmp_path / "x.safetensors", tensors, layer_types=types))


@for_each(
    ("config", "shape", "by_width", "heads"),
    [
        ({"n_head": 4}, (2, 6, 32), False, 4), ({"n_head": 4}, (32,), False, None),
        ({"n_head": 4}, (1, 2, 6, 32), False, None), ({"n_head": 5}, (6, 32), False, None),
        ({"n_head": 0, "num_heads": 2}, (6, 32), False, 2), ({"n_head": 4, "hidden_size": 32}, (6, 32), True, 4),
        ({"n_head": 4, "hidden_size": 64}, (6, 32), True, None),
        ({"n_head": 1, "hidden_size": 32}, (6, 32), True, None),
        ({"n_head": 4, "head_dim": 8, "hidden_size": 64}, (6, 32), True, 4),
        ({"n_head": 5, "text_config": {"n_head": 4}}, (6, 32), False, 4),
    ],
)  # fmt: skip
def test_heads_side_by_side_are_those_of_the_configuration(
    config: dict[str, object], shape: tuple[int, ...], by_width: bool, heads: int | None
) -> None:
    expected = {} if heads is None else {"heads": heads, "d_k": 32 // heads}
    assert heads_of(config, shape, by_width) == expected


@for_each(("factor", "expected"), [(4, 4.0), (1.0, 1.0), (0.5, None), (True, None), ("4", None), (None, None)])
def test_the_factor_of_a_longer_context_is_a_number_from_1_up(factor: object, expected: float | None) -> None:
    for key in ("rope_scaling", "rope_parameters"):
        assert context_factor({key: {"factor": factor}}) == expected
