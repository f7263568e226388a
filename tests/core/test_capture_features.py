"""What changes a captured head's logits beside its scale: each against attention written out in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attention_in_full import Expected, assert_measured
from attn_tui.core.captures.capture import HeadContext
from attn_tui.core.captures.files import CaptureError
from attn_tui.core.captures.heads import file_rule, measure_head, named_rule
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.errors import InputError
from attn_tui.core.scales import Setting, multiplier
from capture_files import Array, has_note, opened, refusal, save
from cases import for_each

BATCH, HEADS, TOKENS, D_K = 2, 3, 11, 6
SCALE = 0.4
NO = -np.inf
rng = np.random.default_rng(5)
Q, K = (rng.normal(0.1, 1.3, (BATCH, HEADS, TOKENS, D_K)) for _ in range(2))
SCORES = Q @ K.mT
ROW, KEY = np.arange(TOKENS)[:, np.newaxis], np.arange(TOKENS)
CAUSAL = KEY <= ROW


def tensors(**beside: Array) -> dict[str, Array]:
    return {f"layers.0.attn.{name}": array for name, array in {"q": Q, "k": K, **beside}.items()}


def captured(folder: Path, beside: dict[str, Array] | None = None, **metadata: Any) -> Any:
    metadata = {"schema": "attn-tui/qk-2", "causal": "false", "scale": SCALE, **metadata}
    metadata = {key: value for key, value in metadata.items() if value is not None}
    return opened(folder, tensors(**(beside or {})), **metadata)


@for_each("name", ["bias", "attn_bias", "position_bias", "relative_position_bias", "alibi"])
@for_each("shape", [(2, 3, 11, 11), (1, 3, 11, 11), (3, 11, 11), (11, 11), (3, 1, 11), (1, 1, 11, 11)])
def test_a_bias_is_added_to_the_logits(tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
    bias = rng.normal(0, 2, shape)
    capture = captured(tmp_path, {name: bias})
    assert capture.notes == ()
    for head in (0, 2):
        whole = np.broadcast_to(bias, (2, 3, 11, 11))[:, head]
        assert_measured(capture, head, Expected(SCALE * SCORES[:, head] + whole))


def test_a_bias_of_all_layers_is_used_and_noted(tmp_path: Path) -> None:
    bias = rng.normal(0, 2, (3, 11, 11))
    capture = opened(
        tmp_path, tensors() | {"position_bias": bias}, schema="attn-tui/qk-2", causal="false", scale=SCALE
    )
    assert has_note(capture, "'position_bias' is used for every layer without its own")
    assert_measured(capture, 1, Expected(SCALE * SCORES[:, 1] + bias[1]))


def test_a_bias_may_hide_keys(tmp_path: Path) -> None:
    bias = np.where(CAUSAL, rng.normal(0, 2, (3, 11, 11)), np.finfo(np.float32).min)
    capture = captured(tmp_path, {"bias": bias})
    assert_measured(capture, 1, Expected(np.where(CAUSAL, SCALE * SCORES[:, 1] + bias[1], NO)))


def test_a_mask_that_is_added_and_not_only_zero_is_a_bias(tmp_path: Path) -> None:
    mask = np.where(CAUSAL, rng.normal(0, 2, (11, 11)), NO)
    capture = captured(tmp_path, {"attn_mask": mask})
    assert_measured(capture, 0, Expected(np.where(CAUSAL, SCALE * SCORES[:, 0] + mask, NO)))


@pytest.mark.parametrize("causal", ["true", "false"])
def test_slopes_are_multiplied_by_distances(tmp_path: Path, causal: str) -> None:
    slopes = np.array([0.5, 0.25, 0.125], np.float32)
    capture = captured(tmp_path, {"alibi_slopes": slopes}, causal=causal)
    for head in range(3):
        logits = SCALE * SCORES[:, head] - slopes[head] * np.abs(ROW - KEY)
        assert_measured(capture, head, Expected(np.where(CAUSAL | (causal == "false"), logits, NO)))


@pytest.mark.parametrize("causal", ["true", "false"])
@pytest.mark.parametrize("softcap", ["0", "1.5"])
def test_sinks_take_weight_and_no_bias_or_soft_cap_reaches_them(tmp_path: Path, causal: str, softcap: str) -> None:
    sinks = np.array([0.5, -1.25, 3.0], np.float32)
    capture = captured(tmp_path, {"sinks": sinks}, causal=causal, softcap=softcap)
    for head in range(3):
        logits = SCALE * SCORES[:, head]
        logits = logits if softcap == "0" else 1.5 * np.tanh(logits / 1.5)
        shown = np.where(CAUSAL, logits, NO) if causal == "true" else logits
        assert_measured(capture, head, Expected(shown, sink=float(sinks[head])))


def test_a_bias_is_added_after_the_soft_cap(tmp_path: Path) -> None:
    bias = rng.normal(0, 2, (3, 11, 11))
    capture = captured(tmp_path, {"bias": bias}, softcap=1.5)
    assert_measured(capture, 2, Expected(1.5 * np.tanh(SCALE * SCORES[:, 2] / 1.5) + bias[2]))


WINDOWS: list[tuple[dict[str, Any], Array]] = [
    ({"window": 4, "causal": "true"}, CAUSAL & (ROW - KEY < 4)),
    ({"sliding_window": "4", "causal": "true"}, CAUSAL & (ROW - KEY < 4)),
    ({"window": "[3, 2]"}, (ROW - KEY <= 3) & (KEY - ROW <= 2)),
    ({"window": [-1, 2]}, KEY - ROW <= 2),
    ({"window": [3, -1]}, ROW - KEY <= 3),
    ({"chunk": 4, "causal": "true"}, CAUSAL & (ROW // 4 == KEY // 4)),
    ({"attention_chunk_size": 5}, ROW // 5 == KEY // 5),
    ({"window": "none", "causal": "true"}, CAUSAL & (ROW >= 0)),
]


@for_each(("metadata", "visible"), WINDOWS)
def test_windows_and_chunks_hide_keys(tmp_path: Path, metadata: dict[str, Any], visible: Array) -> None:
    layers = [{key: value for key, value in metadata.items() if key != "causal"}]
    several: list[dict[str, Any]] = [metadata, {"causal": metadata.get("causal", "false"), "layers": layers}]
    for told in several:
        capture = captured(tmp_path, None, **told)
        assert_measured(capture, 1, Expected(np.where(visible, SCALE * SCORES[:, 1], NO)))


def test_a_window_without_causal_attention_needs_both_sides(tmp_path: Path) -> None:
    path = save(tmp_path / "x.safetensors", tensors(), causal="false", window=4)
    assert "[keys before, keys after] where attention is not causal" in refusal(path)


SCALES = np.array([0.2, 0.4, 0.8])
OF_ROWS = np.linspace(0.1, 0.9, TOKENS)


@pytest.mark.parametrize(
    ("beside", "metadata"),
    [
        ({}, {"head_scales": [0.2, 0.4, 0.8]}),
        ({}, {"layers": [{"head_scales": [0.2, 0.4, 0.8]}]}),
        ({"scale": SCALES}, {}),
        ({"head_scales": SCALES.reshape(1, 3, 1, 1)}, {}),
    ],
)
def test_each_head_may_have_its_own_scale(tmp_path: Path, beside: dict[str, Array], metadata: dict[str, Any]) -> None:
    capture = captured(tmp_path, beside, scale=None, **metadata)
    assert not has_note(capture, "does not specify the scale")
    for head in range(3):
        assert_measured(capture, head, Expected(SCALES[head] * SCORES[:, head]))
        [column] = measure_head(capture, capture.layers[0], head, [file_rule(capture.layers[0])]).columns
        assert column.multiplier == SCALES[head]


@pytest.mark.parametrize("scales", [OF_ROWS, OF_ROWS.reshape(1, 1, 11, 1), np.outer(SCALES, OF_ROWS)])
def test_each_query_may_have_its_own_scale(tmp_path: Path, scales: Array) -> None:
    capture = captured(tmp_path, {"scale": scales}, scale=None, causal="true")
    for head in range(3):
        own = scales[head] if scales.shape == (3, 11) else scales.reshape(11)
        assert_measured(capture, head, Expected(np.where(CAUSAL, own[:, np.newaxis] * SCORES[:, head], NO)))


def test_a_factor_inside_the_stored_queries_counts_as_scale(tmp_path: Path) -> None:
    capture = captured(tmp_path, scale=1.0, prescaled=[0.25, 0.5])
    layer = capture.layers[0]
    rules = [file_rule(layer), named_rule("none", layer)]
    columns = measure_head(capture, layer, 0, rules).columns
    assert [column.multiplier for column in columns] == [rule.multiplier for rule in rules] == [0.125, 1]
    assert_measured(capture, 0, Expected(SCORES[:, 0]))
    assert_measured(capture, 0, Expected(SCORES[:, 0] / 0.125), named_rule("none", layer))
    assert_measured(capture, 0, Expected(SCORES[:, 0] / 0.125 / np.sqrt(D_K)), named_rule("sqrt_d_k", layer))
    lengths = np.linalg.norm(Q[:, 0], axis=-1)[..., np.newaxis] * np.linalg.norm(K[:, 0], axis=-1)[:, np.newaxis]
    assert_measured(capture, 0, Expected(10 * SCORES[:, 0] / lengths), named_rule("cosine_10", layer))


def test_a_factor_that_is_unknown_is_said(tmp_path: Path) -> None:
    layer = captured(tmp_path, scale=1.0, prescaled=[None, 0.5]).layers[0]
    assert (layer.unknown_factor, layer.own_factor) == (True, 0.5)
    assert not captured(tmp_path, scale=1.0, prescaled=[0.25, 0.5]).layers[0].unknown_factor


def test_the_halves_of_latent_attention_are_joined(tmp_path: Path) -> None:
    rotary_q, rotary_k = rng.normal(size=(BATCH, HEADS, TOKENS, 4)), rng.normal(size=(BATCH, 1, TOKENS, 4))
    halves = {"q_nope": Q, "k_nope": K, "q_pe": rotary_q, "k_pe": rotary_k}
    named = {f"layers.0.attn.{name}": array for name, array in halves.items()}
    for one in (named, named | {"layers.0.attn.k_pe": rotary_k[:, 0]}):
        capture = opened(tmp_path, one, schema="attn-tui/qk-2", causal="true", scale=SCALE)
        assert (capture.layers[0].d_k, capture.notes) == (10, ())
        scores = SCORES[:, 2] + rotary_q[:, 2] @ rotary_k[:, 0].mT
        assert_measured(capture, 2, Expected(np.where(CAUSAL, SCALE * scores, NO)))


def test_a_half_of_latent_attention_alone_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    halves = {"layers.0.attn.q_nope": Q, "layers.0.attn.k_nope": K, "layers.0.attn.q_pe": Q}
    assert "no queries and keys" in refusal(save(tmp_path / "x.safetensors", halves))
    narrow = halves | {"layers.0.attn.k_pe": np.ascontiguousarray(Q[..., :3])}
    assert "numbers per vector (d_k); check the axes" in refusal(save(tmp_path / "x.safetensors", narrow))


def test_sampled_queries_keep_their_positions(tmp_path: Path) -> None:
    rows = np.array([1, 4, 10])
    sampled = tensors(rows=rows) | {"layers.0.attn.q": Q[:, :, rows]}
    bias = rng.normal(size=(3, TOKENS, TOKENS))
    told: dict[str, Any] = {"schema": "attn-tui/qk-2", "causal": "true", "scale": SCALE, "window": 6}
    visible = (CAUSAL & (ROW - KEY < 6))[rows]
    capture = opened(tmp_path, sampled, **told)
    assert_measured(capture, 1, Expected(np.where(visible, SCALE * SCORES[:, 1, rows], NO)))
    for added in (bias, bias[:, rows]):
        capture = opened(tmp_path, sampled | {"layers.0.attn.bias": added}, **told)
        logits = SCALE * SCORES[:, 1, rows] + bias[1, rows]
        assert_measured(capture, 1, Expected(np.where(visible, logits, NO)))
    hiding = np.where(rng.random(bias.shape) < 0.3, NO, bias)
    hiding[:, 10] = bias[:, 10]  # so that only the window hides the first tokens from all of these queries
    capture = opened(tmp_path, sampled | {"layers.0.attn.bias": hiding}, **told)
    assert_measured(capture, 1, Expected(np.where(visible, SCALE * SCORES[:, 1, rows] + hiding[1, rows], NO)))
    assert "positions from 0 to 10" in refusal(
        save(tmp_path / "x.safetensors", sampled | {"layers.0.attn.rows": rows + 1}, causal="top-left")
    )


def test_rules_of_n_and_position_use_those_of_each_row(tmp_path: Path) -> None:
    capture = captured(tmp_path, causal="true")
    layer = capture.layers[0]
    for name, needs in (("ssmax", "n"), ("log512_n", "n"), ("llama4_position", "position")):
        for told in (HeadContext(), HeadContext(position=20_000)):
            first = 0 if told.position is None else told.position - TOKENS + 1
            own = [
                multiplier(name, Setting(D_K, i + 1, position=first + i)) if i or needs == "position" else 0
                for i in range(TOKENS)
            ]
            logits = np.array(own)[:, np.newaxis] * SCORES[:, 1]
            assert_measured(capture, 1, Expected(np.where(CAUSAL, logits, NO)), named_rule(name, layer, told=told))


def test_a_told_position_is_that_of_the_last_sampled_query(tmp_path: Path) -> None:
    rows = np.array([1, 4, 10])
    sampled = tensors(rows=rows) | {"layers.0.attn.q": Q[:, :, rows]}
    capture = opened(tmp_path, sampled, schema="attn-tui/qk-2", causal="true", scale=SCALE)
    own = [multiplier("llama4_position", Setting(D_K, row + 1, position=8188 + row)) for row in rows.tolist()]
    assert own[0] < own[1]
    logits = np.where(CAUSAL[rows], np.array(own)[:, np.newaxis] * SCORES[:, 1, rows], NO)
    assert_measured(
        capture,
        1,
        Expected(logits),
        named_rule("llama4_position", capture.layers[0], told=HeadContext(position=8198)),
    )


def test_rules_that_need_what_the_file_does_not_say_are_refused_or_told(tmp_path: Path) -> None:
    layer = captured(tmp_path).layers[0]
    with pytest.raises(InputError, match=r"scale yarn: the file does not say how far.*--context-factor"):
        named_rule("yarn", layer)
    expected = multiplier("yarn", Setting(D_K, context_factor=4))
    assert named_rule("yarn", layer, told=HeadContext(context_factor=4)).multiplier == expected
    config = {"rope_scaling": {"factor": 4.0, "type": "yarn"}}
    known = captured(tmp_path, config=config).layers[0]
    assert named_rule("yarn", known).multiplier == expected
    other = multiplier("yarn", Setting(D_K, context_factor=2))
    assert named_rule("yarn", known, told=HeadContext(context_factor=2)).multiplier == other
    np.savez(tmp_path / "bare.npz", q=Q, k=K)
    bare = open_capture(tmp_path / "bare.npz").layers[0]
    with pytest.raises(InputError, match="--layer-index"):
        named_rule("inverse_layer", bare)
    assert named_rule("inverse_layer", bare, told=HeadContext(layer=3)).multiplier == 1 / (4 * D_K**0.5)


def test_padding_queries_are_left_out_of_self_attention_only(tmp_path: Path) -> None:
    mask = np.array([11, 7])[:, np.newaxis] > KEY
    padded = np.where(mask[:, np.newaxis], SCALE * SCORES[:, 0], NO)
    assert_measured(captured(tmp_path, {"mask": mask}), 0, Expected(padded, left_out=~mask))
    cross = {name.replace("attn", "cross_attn"): array for name, array in tensors(mask=mask).items()}
    for named, told in ((tensors(mask=mask), {"attention": "cross"}), (cross, {})):
        capture = opened(tmp_path, named, schema="attn-tui/qk-2", causal="false", scale=SCALE, **told)
        assert capture.layers[0].cross
        assert_measured(capture, 0, Expected(padded))


def test_measuring_a_sinking_biased_windowed_head_twice_gives_the_same(tmp_path: Path) -> None:
    beside = {"bias": rng.normal(size=(3, 11, 11)), "sinks": np.array([0.5, 1, 2], np.float32)}
    capture = captured(tmp_path, beside, causal="true", window=5, softcap=2.0, prescaled=[0.5, 1])
    logits = 2 * np.tanh(SCALE * SCORES[:, 2] / 2) + beside["bias"][2]
    for _ in range(2):
        assert_measured(capture, 2, Expected(np.where(CAUSAL & (ROW - KEY < 5), logits, NO), sink=2.0))
    layer = capture.layers[0]
    assert (layer.bias, layer.sinks, layer.window) == ("layers.0.attn.bias", "layers.0.attn.sinks", (4, 0))
    with pytest.raises(CaptureError, match="heads 0 to 2"):
        measure_head(capture, layer, 3, [file_rule(layer)])


@pytest.mark.parametrize(
    ("name", "first"), [("llama4_position", 8_191), ("ministral3_position", 16_384)], ids=lambda value: str(value)
)
def test_a_replayed_rule_starts_a_new_block_at_the_right_query(tmp_path: Path, name: str, first: int) -> None:
    """Queries at positions below `first` have 1/√d_k, and those from there on 1 + 0.1·ln 2 times as much."""
    capture = captured(tmp_path, causal="true")
    for before in (1, 4, TOKENS - 1):
        rule = named_rule(name, capture.layers[0], told=HeadContext(position=first - before + TOKENS - 1))
        own = np.where(np.arange(TOKENS) < before, 1.0, 1.0693147180559945) / D_K**0.5
        logits = own[:, np.newaxis] * SCORES[:, 1]
        assert_measured(capture, 1, Expected(np.where(CAUSAL, logits, NO)), rule)


@pytest.mark.parametrize(("name", "first"), [("llama4_position", 8_191), ("ministral3_position", 16_384)])
def test_the_multiplier_shown_is_that_of_the_last_query(tmp_path: Path, name: str, first: int) -> None:
    for tokens, factor in ((first, 1.0), (first + 1, 1.0693147180559945)):
        side = np.ones((1, 1, tokens, 1), np.float32)
        capture = opened(tmp_path, {"q": side, "k": side}, schema="attn-tui/qk-2", causal="true")
        assert named_rule(name, capture.layers[0]).multiplier == pytest.approx(factor, rel=1e-12)
        less = opened(tmp_path, {"q": side[:, :, :5], "k": side}, schema="attn-tui/qk-2", causal="bottom-right")
        assert named_rule(name, less.layers[0]).multiplier == pytest.approx(factor, rel=1e-12)
        assert named_rule(name, less.layers[0], told=HeadContext(position=3)).multiplier == 1


@for_each(
    ("told", "queries", "seen"),
    [
        ({"causal": "true", "rows": [0, 2, 5]}, 3, 6), ({"causal": "top-left"}, 3, 3),
        ({"causal": "bottom-right"}, 3, 11),
        ({"causal": "false", "window": [3, 0], "alignment": "bottom-right"}, 3, 4), ({"causal": "false"}, 3, 11),
        ({"causal": "true", "rows": [4, 0]}, 2, 11),
    ],
)  # fmt: skip
def test_a_column_states_the_multiplier_of_the_last_query(
    tmp_path: Path, told: dict[str, Any], queries: int, seen: int
) -> None:
    """The last one sees one key alone in the last case, so that its weights do not depend on it."""
    pair = {"q": Q[:, :, :queries], "k": K}
    capture = opened(
        tmp_path,
        {f"layers.0.attn.{name}": array for name, array in pair.items()},
        schema="attn-tui/qk-2",
        scale=1,
        prescaled=[0.5, 4],
        **told,
    )
    layer = capture.layers[0]
    [column] = measure_head(capture, layer, 1, [named_rule("ssmax", layer)]).columns
    assert column.multiplier == pytest.approx(0.43 * np.log(seen) / D_K**0.5, rel=1e-12)


@pytest.mark.parametrize(("name", "first"), [("llama4_position", 8_191), ("ministral3_position", 16_384)])
@pytest.mark.parametrize("before", [1, 0])
def test_a_replayed_rule_takes_positions_from_the_file(tmp_path: Path, name: str, first: int, before: int) -> None:
    rows = np.array([first - before])
    q, k = Q[:1, :1, :1], np.resize(K[:1, :1], (1, 1, first + 1, D_K))
    sampled = {f"layers.0.attn.{role}": array for role, array in {"q": q, "k": k, "rows": rows}.items()}
    capture = opened(tmp_path, sampled, schema="attn-tui/qk-2", causal="true", window=9)
    layer = capture.layers[0]
    measured = measure_head(capture, layer, 0, [named_rule(name, layer)]).columns[0].measured
    logits = (q @ k.mT)[0, 0, 0, first - before - 8 : first - before + 1] / D_K**0.5
    logits *= 1.0 if before else 1.0693147180559945
    assert (measured["logit_min"].value, measured["logit_max"].value) == pytest.approx((logits.min(), logits.max()))
