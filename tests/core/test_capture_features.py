"""What changes a captured head's logits beside its scale: each against attention written out in float64."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attention_in_full import Expected, assert_measured
from attn_tui.core.captures.capture import HeadContext
from attn_tui.core.captures.files import CaptureError
from attn_tui.core.captures.head import CaptureFile
from attn_tui.core.captures.heads import file_rule, measure_head, named_rule
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.errors import InputError
from attn_tui.core.scales import RuleSetting, multiplier
from capture_files import Array, has_note, named, numbers, opened, refusal, save
from cases import for_each
from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]

PADDED = Path(__file__).parents[1] / "data" / "minilm-sample-padded.safetensors"

BATCH, HEADS, TOKENS, D_K = 2, 3, 11, 6
SCALE, NO = 0.4, -np.inf
rng = np.random.default_rng(5)
Q, K = (rng.normal(0.1, 1.3, (BATCH, HEADS, TOKENS, D_K)) for _ in range(2))
SCORES = Q @ K.mT
Z = SCALE * SCORES
ROW, KEY = np.arange(TOKENS)[:, np.newaxis], np.arange(TOKENS)
AWAY = np.abs(ROW - KEY)
CAUSAL, WINDOW = KEY <= ROW, (ROW - KEY <= 3) & (KEY - ROW <= 2)
REAL = np.array([[11], [7]]) > KEY  # [batch, tokens]
KEYS = REAL[:, np.newaxis]
BOTH = KEYS & REAL[..., np.newaxis]  # padded queries see nothing
B = rng.normal(0, 2, (BATCH, HEADS, TOKENS, TOKENS))
HIDING = np.where(rng.random(B.shape[1:]) < 0.3, NO, B[0])
HIDING[:, 10] = B[0, :, 10]  # so that only the window hides the first tokens from all sampled queries
TRAINED = B[0].astype(np.float32)
TRAINED[:, 5, 0] = -4_000
T = rng.uniform(0.1, 1, (BATCH, HEADS, TOKENS))
SLOPES, SINKS, OWN = [0.5, 0.25, 0.0], [0.5, -1.25, 3.0], [0.2, 0.4, 0.8]
ALIBI = np.reshape(SLOPES, (3, 1, 1)) * AWAY
CAPPED = 1.5 * np.tanh(Z / 1.5)
RANDOM = (rng.random((BATCH, HEADS, TOKENS, TOKENS)) < 0.6) | np.eye(TOKENS, dtype=np.bool_)
MIXED = (AWAY < 2) | (rng.random((TOKENS, TOKENS)) < 0.3)
ROWS = [1, 4, 10]
TOLD: dict[str, Any] = {"schema": "attn-tui/qk-2", "causal": "false", "scale": SCALE}
SELF = {"attention": "self"}


def captured(folder: Path, beside: dict[str, Array] | None = None, **told: Any) -> CaptureFile:
    """A capture of Q and K with further tensors, and metadata beside TOLD; None leaves a key out."""
    said = {key: value for key, value in (TOLD | told).items() if value is not None}
    return opened(folder, named({"q": Q, "k": K} | (beside or {})), **said)


def shown(visible: Array, logits: Array = Z) -> Array:
    return np.where(visible, logits, NO)


def case(
    logits: Array, beside: Any = None, note: Any = "", sink: Any = (None,) * HEADS, left_out: Any = None, **told: Any
) -> tuple[Any, ...]:
    """Logits [batch, heads, queries, keys] and what says them; words of a note, "" if there is none, None for any."""
    return logits, {key: np.asarray(beside[key]) for key in beside or ()}, note, sink, left_out, told


WINDOWS: list[tuple[dict[str, Any], Array]] = [
    ({"window": 4, "causal": "true"}, CAUSAL & (ROW - KEY < 4)),
    ({"sliding_window": "4", "causal": "true"}, CAUSAL & (ROW - KEY < 4)),
    *(({key: text}, WINDOW) for key, text in (("window", "[3, 2]"), ("window_size", "(3, 2)"))),
    ({"window": [-1, 2]}, KEY - ROW <= 2),
    *(({key: value}, ROW - KEY <= 3) for key, value in (("window", [3, -1]), ("window_size", "(3, -1)"))),
    ({"window_size": [3, 0]}, (ROW - KEY <= 3) & CAUSAL),
    ({"chunk": 4, "causal": "true"}, CAUSAL & (ROW // 4 == KEY // 4)),
    ({"attention_chunk_size": 5}, ROW // 5 == KEY // 5),
    ({"window": 3, "chunk": 4, "causal": "true"}, CAUSAL & (ROW - KEY < 3) & (ROW // 4 == KEY // 4)),
    ({"window": "none", "causal": "true"}, CAUSAL),
    ({"window_size": "(-1, -1)"}, ROW >= 0),
]
TYPES = {
    "full_attention": ROW >= 0, "global": ROW >= 0, "sliding_attention": ROW - KEY < 3,
    "chunked_attention": ROW // 4 == KEY // 4, "other": (ROW - KEY < 3) & (ROW // 4 == KEY // 4),
}  # fmt: skip
BIASES = {
    "bias": (2, 3, 11, 11), "attn_bias": (1, 3, 11, 11), "position_bias": (3, 11, 11), "alibi": (3, 1, 11),
    "relative_position_bias": (11, 11), "biases": (1, 1, 11, 11),
}  # fmt: skip
LONG, WIDE = np.arange(8)[:, np.newaxis], np.arange(2)
LONE = {"q": Q[:, :, :8], "k": K[:, :, :2]}
SOME, SAMPLED = {"q": Q[:, :, ROWS]}, {"q": Q[:, :, ROWS], "rows": ROWS}
LAST, FIRST = {"q": Q[:, :, -4:]}, {"q": Q[:, :, :3]}
NEAR = CAUSAL & (ROW - KEY < 6)

CASES = [
    *(case(Z + (b := rng.normal(0, 2, shape)), {name.removesuffix("es"): b}) for name, shape in BIASES.items()),
    case(Z + B, {"bias": B.reshape(6, 11, 11)}),  # texts and heads in one axis
    case(Z + B[0], {"*.position_bias": B[0]}, "'position_bias' is used for every layer without its own"),
    case(shown(CAUSAL, Z + B[0]), {"bias": np.where(CAUSAL, B[0], np.finfo(np.float32).min)}),
    case(shown(CAUSAL, Z + B[0, 0]), {"attn_mask": shown(CAUSAL, B[0, 0])}, **SELF),
    case(shown(CAUSAL, Z + B[0, 0]), {"attn_mask": B[0, 0] - 1e4 * ~CAUSAL}, **SELF),
    *(
        case(shown(CAUSAL, Z + TRAINED), {"position_bias": TRAINED + np.where(CAUSAL, 0, low).astype(np.float32)})
        for low in (-1e4, -1e9, NO)
    ),
    *(
        case(Z - np.resize(values, 11), {"alibi": -np.broadcast_to(np.resize(values, 11), (1, 11, 11))})
        for values in (np.linspace(0, 30_000, 11), np.array([0, 4e3, 5e3, 1e4, 15e3, 2e4]))
    ),
    case(CAPPED + B[0], {"bias": B[0]}, softcap=1.5),
    case(shown(CAUSAL, Z - ALIBI), {"alibi_slopes": SLOPES}, causal="true"),
    *(case(Z - ALIBI, {"alibi": np.reshape(SLOPES, shape)}) for shape in ((1, 3), (3, 1, 1), (1, 3, 1, 1))),
    *(
        case(Z - ALIBI, **told)
        for key in ("alibi_slopes", "alibi", "slopes")
        for told in ({key: SLOPES}, {"layers": [{"index": 0, key: SLOPES}]})
    ),
    *(
        case(Z[:, :, :3] - np.reshape(SLOPES, (3, 1, 1)) * np.abs(ROW[:3] + first - KEY),
             FIRST | {"alibi_slopes": SLOPES}, alignment=corner)
        for corner, first in (("top-left", 0), ("bottom-right", 8))
    ),
    *(
        case(shown(CAUSAL | (causal == "false"), Z if cap == "0" else CAPPED), {"sinks": SINKS}, sink=SINKS,
             causal=causal, softcap=cap)
        for causal in ("true", "false")
        for cap in ("0", "1.5")
    ),
    *(case(Z, sink=SINKS, **told) for told in ({"sinks": SINKS}, {"layers": [{"sinks": SINKS}]})),
    case(Z - ALIBI, {"*.alibi": np.reshape(SLOPES, (1, 3))}, "'alibi' is used for every layer without its own"),
    case(Z, {"*.sinks": SINKS}, "'sinks' is used for every layer without its own", SINKS),
    *(
        case(shown(visible), **told)
        for said, visible in WINDOWS
        for told in (said, {"layers": [{key: each for key, each in said.items() if key != "causal"}],
                            "causal": said.get("causal", "false")})
    ),
    *(
        case(shown(CAUSAL & visible), causal="true", window=3, chunk=4, layers=[{"layer_type": kind}])
        for kind, visible in TYPES.items()
    ),
    case(shown(CAUSAL & (ROW - KEY < 3)), causal="true", chunk=4,
         layers=[{"layer_type": "full_attention", "window": 3}]),
    *(
        case(shown(visible, Z[:, :, :8, :2]), LONE, window=window, alignment=corner, attention="cross")
        for window, corner, visible in (
            ([3, -1], "top-left", WIDE >= LONG - 3),
            ([3, 2], "bottom-right", (WIDE >= LONG - 9) & (WIDE <= LONG - 4)),
            ([99_999_999_999, 0], "top-left", WIDE <= LONG),
        )
    ),
    case(shown(WINDOW)[:, :, -4:], LAST, "window_size is taken as flash-attention's", window_size="(3, 2)"),
    case(shown(WINDOW)[:, :, -4:], LAST, window=[3, 2], alignment="bottom-right"),
    case(shown(WINDOW[:4], Z[:, :, -4:]), LAST, window=[3, 2], alignment="top-left"),
    *(
        case(np.reshape(OWN, (3, 1, 1)) * SCORES, beside, scale=None, **told)
        for beside, told in (
            ({}, {"head_scales": OWN}), ({}, {"layers": [{"head_scales": OWN}]}), ({}, {"layers": [{"scale": OWN}]}),
            ({"scale": OWN}, {}), ({"head_scales": np.reshape(OWN, (1, 3, 1, 1))}, {}),
        )
    ),
    *(
        case(shown(CAUSAL, whole[..., np.newaxis] * SCORES), {"scale": stored}, scale=None, causal="true")
        for stored, whole in (
            (T[:, 0, 0], T[:, :1, :1]), (T[:, :1, :1, np.newaxis], T[:, :1, :1]), (T[:, :, 0], T[:, :, :1]),
            (T[:, :, :1, np.newaxis], T[:, :, :1]), (T, T), (T[:, :1, :, np.newaxis], T[:, :1]), (T[:, 0], T[:, :1]),
            (T[0, :, :, np.newaxis], T[0]), (T[0], T[0]), (T[0, 0], T[0, 0]), (T[:1, :1, :, np.newaxis], T[0, 0]),
        )
    ),
    case(SCORES, scale=1.0, prescaled=[0.25, 0.5]),
    *(
        case(shown(CAUSAL)[:, :, ROWS], SOME, causal="true", **told)
        for told in ({"rows": ROWS}, {"layers": [{"rows": ROWS}]})
    ),
    case(shown(CAUSAL)[:, :, ROWS], SOME | {"*.rows": ROWS}, "rows", causal="true"),
    case(shown(NEAR)[:, :, ROWS], SAMPLED, causal="true", window=6),
    *(
        case(shown(NEAR, Z + added)[:, :, ROWS], SAMPLED | {"bias": stored}, causal="true", window=6)
        for added, stored in (
            (B[0], B[0]), (B[0], B[0][:, ROWS]), (HIDING, HIDING), (B[0, 0, 0], B[0, 0, 0]), (B[0, 0], B[0, 0]),
        )
    ),
    case(Z + B[0], {"rows": KEY, "bias": B[0]}),
    case(shown(CAUSAL)[:, :, ROWS], SAMPLED | {"query_mask": REAL}, None, left_out=~REAL[:, ROWS], causal="true"),
    *(case(shown(KEYS[:, np.newaxis]), {"mask": REAL}, left_out=out, attention=kind)
      for kind, out in (("self", ~REAL), ("cross", None))),
    *(
        case(shown(CAUSAL & KEYS[:, np.newaxis]), {"causal_mask": mask} | beside, note, left_out=~REAL, **told)
        for mask in (CAUSAL, ~CAUSAL, np.where(CAUSAL, 0, -1e9).astype(np.float32))
        for beside, note, told in (({"mask": REAL}, None, SELF), ({}, "no mask of padding", {"lengths": [11, 7]}))
    ),
    *(
        case(shown(KEYS[:, np.newaxis]), {of + name: ~REAL}, "True is taken as hidden", left_out=~REAL)
        for of in ("", "*.")
        for name in ("src_key_padding_mask", "tgt_key_padding_mask", "key_padding_mask")
    ),
    case(shown(KEYS[:, np.newaxis]), {"key_padding_mask": REAL}, "True is taken as visible", left_out=~REAL,
         mask_true="visible", **SELF),
    *(
        case(Z, {name: REAL.reshape(shape)}, None, left_out=~REAL, attention="cross")
        for name, shape in (("query_mask", (2, 11)), ("q_mask", (2, 1, 11)), ("q_mask", (2, 1, 11, 1)))
    ),
    case(shown((np.array([[9], [11]]) > KEY)[:, np.newaxis, np.newaxis]),
         {"query_mask": REAL, "key_mask": np.array([[9], [11]]) > KEY}, None, left_out=~REAL, attention="cross"),
    case(shown((AWAY < 3) & KEYS[:, np.newaxis]), {"key_padding_mask": ~REAL, "local": AWAY < 3}, None,
         left_out=~REAL, mask="layers.0.attn.local"),
    *(
        case(shown(CAUSAL & KEYS[:, np.newaxis])[:, :, -6:], {"q": Q[:, :, -6:], "mask": REAL}, None,
             left_out=~REAL[:, -6:], **told)
        for told in ({"causal": "bottom-right"}, {"causal": "true", "alignment": "bottom-right"})
    ),
    *(
        case(shown(KEYS[:, np.newaxis], Z[:, :, :6]), {"q": Q[:, :, :6], "mask": REAL}, note, **told)
        for note, told in (
            ("taken as cross-attention, with 6 queries and 11 keys: every query counts", {}),
            ("6 queries of 11 tokens: every query counts", SELF), ("", {"rows": [*range(6)]}),
        )
    ),
    *(case(shown(RANDOM), {"attn_mask": mask.reshape(6, 11, 11)}, None, mask_true="hidden")
      for mask in (~RANDOM, np.where(RANDOM, 0, NO).astype(np.float32))),
    *(
        case(shown(visible[:, np.newaxis]), {"attn_mask": (visible ^ hidden)[:, np.newaxis]}, None,
             left_out=~visible.any(axis=1), **SELF)
        for hidden in (False, True)
        for visible in (
            CAUSAL & BOTH, CAUSAL & KEYS, CAUSAL & BOTH[:, :, ::-1] & REAL[:, ::-1, np.newaxis],  # padded on the left
            (AWAY < 2) & BOTH, (AWAY < 3) & CAUSAL & BOTH, (ROW // 3 == KEY // 3) & BOTH,
        )
    ),
    *(
        case(shown(visible[:, np.newaxis], Z[:, :, :3]), FIRST | {"attn_mask": (visible ^ hidden)[:, np.newaxis]},
             None, attention="cross")
        for hidden in (False, True)
        for visible in (BOTH[:, :3] & (ROW[:3] < 2), CAUSAL[np.newaxis, 8:], CAUSAL[np.newaxis, [0, 2, 10]])
    ),
    *(
        case(shown(MIXED[-3:], Z[:, :, -3:]), {"q": Q[:, :, -3:], "attn_mask": MIXED[-3:] ^ hidden}, None,
             left_out=np.tile(~MIXED[-3:, -3:].any(axis=0), (2, 1)), **SELF, **told)
        for hidden in (False, True)
        for told in ({"alignment": "bottom-right"}, {"rows": [8, 9, 10]})
    ),
    *(
        case(shown(visible), {"mask": stored}, None, left_out=out, lengths=[11, 7], **SELF)
        for visible, stored, out in (
            (CAUSAL & KEYS[:, np.newaxis], np.tile(CAUSAL, (2, 1, 1, 1)), ~REAL),
            (CAUSAL & KEYS[:, np.newaxis], CAUSAL & KEYS[:, np.newaxis], ~REAL),
            (CAUSAL & KEYS[:, np.newaxis, :, ::-1], CAUSAL & KEYS[:, np.newaxis, :, ::-1], ~REAL[:, ::-1]),
        )
    ),
    case(shown(CAUSAL & (ROW - KEY < 5), CAPPED + B[0]), {"bias": B[0], "sinks": SINKS}, sink=SINKS, causal="true",
         window=5, softcap=1.5, prescaled=[0.5, 1]),
]  # fmt: skip


@for_each(("logits", "beside", "note", "sink", "left_out", "told"), CASES)
def test_what_a_file_says_changes_logits_as_attention_written_out(
    tmp_path: Path,
    logits: Array,
    beside: dict[str, Array],
    note: str | None,
    sink: Sequence[float | None],
    left_out: Array | None,
    told: dict[str, Any],
) -> None:
    capture = captured(tmp_path, beside, **told)
    assert capture.unused == ()
    assert note is None or (has_note(capture, note) if note else capture.notes == ())
    whole = np.broadcast_to(logits, (BATCH, HEADS, *logits.shape[-2:]))
    for head in range(HEADS):
        assert_measured(capture, head, Expected(whole[:, head], sink[head], left_out))


@for_each("seed", range(120))
def test_what_changes_logits_is_understood_together(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)

    def chosen(share: float = 0.5) -> bool:
        return bool(rng.random() < share)

    queries, keys = (int(count) for count in rng.integers(1, 10, 2))
    queries = keys if chosen(0.7) else queries
    q, k = (rng.normal(0.2, 1.5, (BATCH, heads, n, D_K)) for heads, n in ((4, queries), (2, keys)))
    tensors: dict[str, Array] = {"q": q, "k": k}
    causal = str(rng.choice(["false", "top-left", "bottom-right"]))
    metadata: dict[str, Any] = {"causal": causal, "attention": "cross"}
    positions = np.arange(queries) + (keys - queries if causal == "bottom-right" else 0)
    if queries < keys and chosen():
        positions = np.sort(rng.permutation(keys)[:queries])
        tensors["rows"] = positions
    row, key = positions[:, np.newaxis], np.arange(keys)
    visible = np.broadcast_to((key <= row) | (causal == "false"), (BATCH, 4, queries, keys))
    if chosen(0.4):
        before, after = (int(side) for side in rng.integers(0, 4, 2))
        metadata["window"] = [before, after]
        metadata |= {} if causal != "false" else {"alignment": "top-left"}
        visible = visible & (row - key <= before) & (key - row <= after)
    if chosen(0.3):
        shown = rng.random((BATCH, 1, queries, keys)) < 0.8
        tensors["mask"], metadata["mask_true"] = ~shown, "hidden"
        visible = visible & shown
    logits = q @ np.repeat(k, 2, axis=1).mT
    if chosen():
        scales = rng.uniform(0.1, 1, (BATCH, 4, queries, 1))
        tensors["scale"] = scales
        logits = logits * scales
    else:
        metadata |= {"scale": list(rng.uniform(0.1, 1, 4)), "prescaled": [0.5, 4]}
        logits = logits * np.reshape(metadata["scale"], (4, 1, 1))
    if chosen(0.4):
        metadata["softcap"] = 1.5
        logits = 1.5 * np.tanh(logits / 1.5)
    if chosen(0.4):
        bias = rng.normal(0, 2, (1, 4, queries, keys))
        bias = np.where(rng.random(bias.shape) < 0.1, NO, bias)
        tensors["bias"] = bias
        logits, visible = logits + np.where(bias > NO, bias, 0), visible & (bias > NO)
    if chosen(0.3):
        slopes = rng.uniform(0, 1, 4)
        metadata["alibi_slopes"] = list(slopes)
        metadata |= {} if causal != "false" else {"alignment": "top-left"}
        logits = logits - slopes[:, np.newaxis, np.newaxis] * np.abs(row - key)
    sinks = rng.normal(0, 2, 4) if chosen(0.4) else None
    metadata |= {} if sinks is None else {"sinks": list(sinks)}
    capture = opened(tmp_path, named(tensors), schema="attn-tui/qk-2", **metadata)
    for head in range(seed % 2, 4, 2):
        if visible[:, head].any() and np.count_nonzero(visible[:, head], axis=-1).max() > 1:
            expected = np.where(visible[:, head], logits[:, head], NO)
            assert_measured(capture, head, Expected(expected, None if sinks is None else float(sinks[head])))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_head_without_visible_keys_has_no_statistics(tmp_path: Path, dtype: Any) -> None:
    seen = np.broadcast_to(np.array([True, False, True])[:, np.newaxis, np.newaxis], (1, 3, 11, 11))
    capture = captured(tmp_path, {"q": Q.astype(dtype), "k": K.astype(dtype), "mask": seen}, mask_true="visible")
    assert measured(capture, 0)["entropy"] is not None
    assert {*measured(capture, 1).values()} == {None}


def measured(capture: CaptureFile, head: int = 0) -> dict[str, float | None]:
    [column] = measure_head(capture, capture.layers[0], head, [file_rule(capture.layers[0])]).columns
    return {name: each.value for name, each in column.measured.items()}


def test_rows_of_padding_of_a_real_batch_are_not_counted() -> None:
    """The second text has 21 of 70 tokens; numbers are stored in float16 and multiplied in float32."""
    capture, tensors = open_capture(PADDED), load_file(PADDED)
    q, k = (tensors[f"layers.0.attn.{side}"].astype(float) for side in "qk")
    real = np.arange(70) < np.array([[70], [21]])
    for head in range(0, 12, 2):
        logits = shown(real[:, np.newaxis], (capture.layers[0].scale or 0) * q[:, head] @ k[:, head].mT)
        assert_measured(capture, head, Expected(logits, left_out=~real), rel=1e-6)


@pytest.mark.parametrize("common", [0, 5])
def test_padding_far_from_the_other_keys_costs_no_digits(tmp_path: Path, common: float) -> None:
    """Of 16 bits, scores are multiplied in float32."""
    rng = np.random.default_rng(2)
    q, k = rng.normal(0, 1, (2, 1, 64, 32)), rng.normal(common, 0.1, (2, 1, 64, 32))
    k[:, :, 8:] += 4 * np.sign(rng.normal(size=32))
    q, k, mask = q.astype(np.float16), k.astype(np.float16), np.broadcast_to(np.arange(64) < 8, (2, 64))
    short, exact = (
        measured(captured(tmp_path, {"q": q.astype(dtype), "k": k.astype(dtype), "mask": mask}, scale=0.1))
        for dtype in (np.float16, np.float64)
    )
    for name in ("logit_std", "logit_excess_kurtosis", "row_mean_share", "saturation"):
        assert short[name] == pytest.approx(exact[name], rel=2e-6), name


def test_a_row_of_one_key_adds_nothing_to_the_kurtosis_in_rows(tmp_path: Path) -> None:
    q, k = (rng.normal(5, 1, (1, 1, 2, 4)).astype(np.float16) for _ in range(2))
    one = captured(tmp_path, {"q": q, "k": k}, causal="true", window=1)
    assert measured(one)["logit_excess_kurtosis"] == pytest.approx(-2, abs=1e-6)  # two numbers


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_a_row_of_two_keys_with_nearly_equal_logits_keeps_its_digits(tmp_path: Path, dtype: Any) -> None:
    rng = np.random.default_rng(6)
    q, k = (rng.normal(3, 1, (1, 1, 6, 8)).astype(dtype) for _ in range(2))
    k[:, :, 1] = k[:, :, 0]
    k[:, :, 1, 0] += dtype(0.03)
    logits = SCALE * q[0, 0].astype(float) @ k[0, 0].astype(float).T
    ratios = [logits[i, : i + 1].std() / np.sqrt(2 * np.log(i + 1)) for i in range(1, 6)]
    assert 0 < ratios[0] < 0.03
    found = measured(captured(tmp_path, {"q": q, "k": k}, causal="true"))
    assert found["saturation"] == pytest.approx(np.mean(ratios), rel=1e-9)


@for_each("words", [("nope", "pe"), ("pass", "rot"), ("nope", "rope")])
def test_the_halves_of_latent_attention_are_joined(tmp_path: Path, words: tuple[str, str]) -> None:
    one, two = words
    rotary_q, rotary_k = rng.normal(size=(BATCH, HEADS, TOKENS, 4)), rng.normal(size=(BATCH, 1, TOKENS, 4))
    halves = named({f"q_{one}": Q, f"k_{one}": K, f"q_{two}": rotary_q, f"k_{two}": rotary_k})
    for tensors in (halves, halves | named({f"k_{two}": rotary_k[:, 0]})):
        capture = opened(tmp_path, tensors, **TOLD)
        assert (capture.layers[0].d_k, capture.notes) == (10, ())
        assert_measured(capture, 2, Expected(SCALE * (SCORES[:, 2] + rotary_q[:, 2] @ rotary_k[:, 0].mT)))
    lone = {name: array for name, array in halves.items() if name != f"layers.0.attn.k_{two}"}
    assert f"there is no 'layers.0.attn.k_{two}'" in refusal(save(tmp_path / "x.safetensors", lone))
    for name, part, reason in (
        (f"k_{two}", rotary_k[..., :3], "(d_k)"),
        (f"k_{two}", rotary_k[:, :, :5], "must have the same batch and tokens"),
        (f"k_{two}", rotary_k[:1], "must have the same batch and tokens"),
        (f"q_{two}", rotary_q[:, :2], "3 heads cannot share 2"),
        (f"k_{two}", rotary_k[0, 0], "must have the axes of 'layers.0.attn.k_" + one),
    ):
        assert reason in refusal(save(tmp_path / "x.safetensors", halves | named({name: part})))


def test_sinks_and_scales_of_heads_may_be_in_an_npz_file(tmp_path: Path) -> None:
    arrays: dict[str, Any] = named({"q": Q, "k": K}) | TOLD | {"scale": OWN, "sinks": SINKS, "window_size": [3, 0]}
    np.savez(tmp_path / "x.npz", **arrays)
    capture = open_capture(tmp_path / "x.npz")
    assert capture.unused == ()
    assert_measured(capture, 1, Expected(shown(CAUSAL & (ROW - KEY <= 3), OWN[1] * SCORES)[:, 1], sink=SINKS[1]))


def test_a_column_states_the_multiplier_of_its_head(tmp_path: Path) -> None:
    capture = captured(tmp_path, scale=OWN)
    for head, own in enumerate(OWN):
        [column] = measure_head(capture, capture.layers[0], head, [file_rule(capture.layers[0])]).columns
        assert column.multiplier == own
    with pytest.raises(CaptureError, match="heads 0 to 2"):
        measure_head(capture, capture.layers[0], 3, [file_rule(capture.layers[0])])


def test_a_mask_or_bias_that_fits_several_axes_is_noted_or_asked_about(tmp_path: Path) -> None:
    q, k = Q[:, :2], K[:, :2]
    few: dict[str, Array] = {"q": q, "k": k}
    for shape, noted in (
        ((2, 11, 11), True), ((1, 2, 11, 11), False), ((2, 2, 11, 11), False), ((4, 11, 11), False),
        ((11, 11), False),
    ):  # fmt: skip
        bias = rng.normal(size=shape)
        capture = captured(tmp_path, few | {"bias": bias})
        assert has_note(capture, "bias", "axes assumed to be [head, queries, keys]") == noted
        own = np.broadcast_to(bias.reshape(2, 2, 11, 11) if shape[0] == 4 else bias, (2, 2, 11, 11))[:, 1]
        assert_measured(capture, 1, Expected(SCALE * q[:, 1] @ k[:, 1].mT + own))
    texts = {"q": numbers(5, 1, 5, 8), "k": numbers(5, 1, 5, 8, seed=1), "bias": numbers(5, 5, seed=2)}  # of keys
    logits = SCALE * texts["q"][:, 0].astype(float) @ texts["k"][:, 0].astype(float).mT + texts["bias"]
    assert_measured(captured(tmp_path, texts), 0, Expected(logits))
    scales = np.array([[0.2, 0.7], [0.3, 0.9]])  # [batch, heads] if it were not for queries
    for count, own in ((11, scales[:, 1, np.newaxis]), (2, scales[1])):
        capture = captured(tmp_path, {"q": q[:, :, :count], "k": k[:, :, :count], "scale": scales}, scale=None)
        assert has_note(capture, "scale': axes assumed to be [heads, queries]") is (count == 2)
        assert_measured(capture, 1, Expected(own[..., np.newaxis] * (q[:, 1, :count] @ k[:, 1, :count].mT)))


@for_each("added", [False, True])
def test_a_mask_of_heads_or_of_the_windows_of_an_image_is_asked_about(tmp_path: Path, added: bool) -> None:
    q, k = (np.concatenate([side, side + 0.1])[:, :2] for side in (Q, K))
    seen = np.tril(RANDOM[0, :2])
    mask = np.where(seen, 0, -100).astype(np.float32) if added else seen
    tensors: dict[str, Array] = {"q": q, "k": k}
    said = refusal(save(tmp_path / "x.safetensors", named(tensors | {"mask": mask}), **TOLD))
    assert "has shape [2, 11, 11]; its first axis may be that of heads or, as in Swin" in said
    logits, windows = SCALE * q[:, 1] @ k[:, 1].mT, np.tile(mask, (2, 1, 1))  # of the first image, then of the second
    for stored, own in ((mask[np.newaxis], mask[1]), (windows[:, np.newaxis], windows)):
        capture = captured(tmp_path, tensors | {"mask": stored})
        assert_measured(capture, 1, Expected(logits + own if added else shown(own, logits)))


@for_each("name", ["bias", "attn_bias"])
def test_a_bias_of_0_and_1_may_be_a_mask(tmp_path: Path, name: str) -> None:
    """nanoGPT's buffer `attn.bias` is a causal mask of ones and zeros, and no bias."""
    buffer = CAUSAL.astype(np.float32)[np.newaxis, np.newaxis]
    foreign = {"axes": "batch,head,token,d_k", "causal": "false", "scale": SCALE}
    path = save(tmp_path / "x.safetensors", named({"q": Q, "k": K, name: buffer}), **foreign)
    assert "holds only 0 and 1, like a mask" in refusal(path)
    assert_measured(captured(tmp_path, {name: buffer}), 0, Expected(Z[:, 0] + buffer[0]))
    for bias in (np.zeros_like(buffer), np.ones_like(buffer), buffer + np.eye(TOKENS, dtype=np.float32)):
        capture = opened(tmp_path, named({"q": Q, "k": K, name: bias}), **foreign)
        assert_measured(capture, 0, Expected(Z[:, 0] + bias[0]))


@pytest.mark.parametrize("rows", [[2, 0, 1], [0, 1, 1]])
def test_a_bias_of_reordered_queries_has_rows_of_two_possible_meanings(tmp_path: Path, rows: list[int]) -> None:
    tensors = named({"q": Q[:, :, :3], "k": K[:, :, :3], "bias": B[0, :, :3, :3]})
    path = save(tmp_path / "x.safetensors", tensors, **TOLD, rows=rows)
    assert "may have its rows in the order of the queries or of the keys" in refusal(path)


@for_each(
    ("beside", "told", "words"),
    [
        ({}, {"window": 4}, "[keys before, keys after] where attention is not causal"),
        ({}, {"rows": [*range(10), 11], "causal": "true"}, "metadata 'rows' must hold positions from 0 to 10"),
        ({"rows": np.arange(1, 12)}, {"causal": "top-left"}, "positions from 0 to 10"),
        *(
            ({"rows": np.arange(1, 12)}, said, "positions from 0 to 10")
            for said in ({"window": [3, -1]}, {"chunk": 4}, {"alibi_slopes": SLOPES})
        ),
        ({"rows": np.arange(-1, 10)}, {}, "positions from 0 to 10"),
        *(
            ({"rows": rows}, {}, "must be 11 whole numbers, the position of each query")
            for rows in (KEY.astype(np.float32), KEY[:, np.newaxis])
        ),
        (SAMPLED | {"mask": CAUSAL}, {}, "here [2, 3, 3, 11]"),
        ({"q": Q[:, :, :3], "scale": np.ones(3)}, {"scale": None}, "must be [heads], [queries], [heads, queries]"),
        ({"scale": T}, {"scale": None, "head_scales": OWN}, "the metadata both give the scale"),
        ({}, {"not_finite": [[0, 9]] * 2}, "metadata not_finite has 2 pairs for 3 heads"),
        ({}, {"scale": None, "head_scales": OWN[:2]}, "metadata head_scales has 2 numbers for 3 heads"),
        *(
            ({}, {key: [each, 1, 1]}, "must be a JSON list of")
            for key in ("sinks", "head_scales")
            for each in (True, "1")
        ),
        (
            LAST,
            {"window": [3, 2]},
            "'alignment' is missing for a window, chunks or slopes, with 4 queries and 11 keys",
        ),
        (LAST | {"alibi_slopes": np.array(SLOPES)}, {}, "'alignment' is missing for a window, chunks or slopes"),
        ({}, {"window_size": "[3, 2]", "sliding_window": "4"}, "keep one of them"),
        ({}, {"layers": [{"window": 3, "sliding_window": 4}]}, "keep one of them"),
        ({}, {"scale": [0.5] * 3, "head_scales": [0.5] * 3}, "keep one of them"),
        ({}, {"alibi": SLOPES, "slopes": SLOPES}, "has both"),
        ({"alibi": -np.ones(3, np.float32)}, {}, "alibi': head 0 has -1; must be a number from 0 to 1e+50"),
        ({}, {"alibi_slopes": [1e308, 1, 1]}, "head 0 has 1e+308; must be a number from 0 to 1e+50"),
        ({"sinks": np.full(3, -1e308)}, {}, "head 0 has -1e+308; must be a number from -1e+50 to 1e+50"),
        *(({}, {"prescaled": [1, size]}, "must be two positive numbers from 1e-50") for size in (1e308, 1e-308)),
        ({"query_mask": np.full((2, 11), 0.5, np.float32)}, {}, "must be bool or 0 and 1"),
        ({"query_mask": np.ones((2, 10), np.bool_)}, {}, "must be [queries] or [batch, queries], here [2, 11]"),
    ],
)
def test_what_contradicts_itself_or_lacks_a_part_is_refused(
    tmp_path: Path, beside: dict[str, Array], told: dict[str, Any], words: str
) -> None:
    said = {key: value for key, value in (TOLD | told).items() if value is not None}
    assert words in refusal(save(tmp_path / "x.safetensors", named({"q": Q, "k": K} | beside), **said))


def test_padding_masks_of_a_transformer_belong_to_its_encoder_decoder_or_memory(tmp_path: Path) -> None:
    modules = (
        "encoder.layers.0.self_attn", "decoder.layers.0.self_attn", "decoder.layers.0.multihead_attn",
        "layers.0.cross_attn",
    )  # fmt: skip
    q_and_k = {f"{module}.{side}": array for module in modules for side, array in (("q", Q), ("k", K))}
    short = np.array([[5], [11]]) <= KEY
    src, tgt, memory = (f"{of}_key_padding_mask" for of in ("src", "tgt", "memory"))
    for masks, used in (
        ({src: ~REAL, memory: short}, (src, None, memory, memory)),
        ({src: ~REAL, tgt: short}, (src, tgt, None, None)),
    ):  # fmt: skip
        capture = opened(tmp_path, q_and_k | masks, **TOLD)
        assert {layer.name: layer.mask for layer in capture.layers} == dict(zip(modules, used, strict=True))


def test_the_meaning_of_a_numbered_mask_is_taken_from_its_values(tmp_path: Path) -> None:
    capture = opened(tmp_path, {"q.3": Q, "k.3": K, "attn_mask.3": ~CAUSAL}, **TOLD)
    assert_measured(capture, 0, Expected(shown(CAUSAL)[:, 0]))


def test_rules_replace_the_scale_and_undo_a_factor_inside_the_stored_queries(tmp_path: Path) -> None:
    capture = captured(tmp_path, scale=1.0, prescaled=[0.25, 0.5])
    layer, scores = capture.layers[0], SCORES[:, 0]
    rules = [file_rule(layer), named_rule("none", layer)]
    columns = measure_head(capture, layer, 0, rules).columns
    assert [column.multiplier for column in columns] == [rule.multiplier for rule in rules] == [0.125, 1]
    lengths = np.linalg.norm(Q[:, 0], axis=-1)[..., np.newaxis] * np.linalg.norm(K[:, 0], axis=-1)[:, np.newaxis]
    for name, logits in (
        ("none", scores / 0.125), ("sqrt_d_k", scores / 0.125 / np.sqrt(D_K)), ("cosine_10", 10 * scores / lengths),
        ("cosine_log2_n", np.log2(11**2 - 11) * scores / lengths),  # n is the length of training texts
    ):  # fmt: skip
        assert_measured(capture, 0, Expected(logits), named_rule(name, layer))
    unknown = captured(tmp_path, scale=1.0, prescaled=[None, 0.5]).layers[0]
    assert (layer.unknown_factor, unknown.unknown_factor, unknown.own_factor) == (False, True, 0.5)
    assert captured(tmp_path, prescaled=[0.25, None]).layers[0].own_factor == 0.25
    of_rows = captured(tmp_path, {"row_factors": T[0, 0]}).layers[0]
    assert (layer.applied, unknown.applied, of_rows.applied) == (0.125, None, None)


@for_each(("name", "needs"), [("ssmax", "n"), ("log512_n", "n"), ("llama4_position", "position")])
@for_each("position", [None, 20_000])
@for_each("rows", [[*range(TOKENS)], ROWS])
def test_rules_of_n_and_position_use_those_of_each_row(
    tmp_path: Path, name: str, needs: str, position: int | None, rows: list[int]
) -> None:
    capture = captured(tmp_path, {"q": Q[:, :, rows], "rows": np.array(rows)}, causal="true")
    first = 0 if position is None else position - TOKENS + 1
    own = [
        multiplier(name, RuleSetting(D_K, i + 1, position=first + i)) if i or needs == "position" else 0 for i in rows
    ]
    logits = np.array(own)[:, np.newaxis] * SCORES[:, 1, rows]
    rule = named_rule(name, capture.layers[0], context=HeadContext(position=position))
    assert_measured(capture, 1, Expected(shown(CAUSAL[rows], logits)), rule)


def test_rules_that_need_what_the_file_does_not_say_are_refused_or_told(tmp_path: Path) -> None:
    layer = captured(tmp_path).layers[0]
    expected, other = (multiplier("yarn", RuleSetting(D_K, context_factor=factor)) for factor in (4, 2))
    assert named_rule("yarn", layer, context=HeadContext(context_factor=4)).multiplier == expected
    known = captured(tmp_path, config={"rope_scaling": {"factor": 4.0, "type": "yarn"}}).layers[0]
    assert named_rule("yarn", known).multiplier == expected
    assert named_rule("yarn", known, context=HeadContext(context_factor=2)).multiplier == other
    np.savez(tmp_path / "bare.npz", q=Q, k=K)
    bare, few = open_capture(tmp_path / "bare.npz").layers[0], captured(tmp_path, FIRST).layers[0]
    for rule, of, option in (("yarn", layer, "--context-factor"), ("inverse_layer", bare, "--layer-index"),
                             ("llama4_position", few, "--position")):  # fmt: skip
        with pytest.raises(InputError, match=option):
            named_rule(rule, of)
    assert named_rule("inverse_layer", bare, context=HeadContext(layer=3)).multiplier == 1 / (4 * D_K**0.5)


POSITIONS = pytest.mark.parametrize(("name", "first"), [("llama4_position", 8_191), ("ministral3_position", 16_384)])


@POSITIONS
def test_a_replayed_rule_starts_a_new_block_at_the_right_query(tmp_path: Path, name: str, first: int) -> None:
    """Queries at positions below `first` have 1/√d_k, and those from there on 1 + 0.1·ln 2 times as much."""
    capture = captured(tmp_path, causal="true")
    for before in (1, 4, TOKENS - 1):
        rule = named_rule(name, capture.layers[0], context=HeadContext(position=first - before + TOKENS - 1))
        own = np.where(np.arange(TOKENS) < before, 1.0, 1.0693147180559945) / D_K**0.5
        assert_measured(capture, 1, Expected(shown(CAUSAL, own[:, np.newaxis] * SCORES)[:, 1]), rule)
    for before in (1, 0):  # and takes positions from the file
        sampled = {"q": Q[:1, :1, :1], "k": np.resize(K[:1, :1], (1, 1, first + 1, D_K))}
        capture = captured(tmp_path, sampled | {"rows": np.array([first - before])}, causal="true", window=9)
        found = measure_head(capture, capture.layers[0], 0, [named_rule(name, capture.layers[0])]).columns[0].measured
        logits = (sampled["q"] @ sampled["k"].mT)[0, 0, 0, first - before - 8 : first - before + 1] / D_K**0.5
        logits *= 1.0 if before else 1.0693147180559945
        assert (found["logit_min"].value, found["logit_max"].value) == pytest.approx((logits.min(), logits.max()))


@POSITIONS
def test_the_multiplier_shown_is_that_of_the_last_query(tmp_path: Path, name: str, first: int) -> None:
    for tokens, factor in ((first, 1.0), (first + 1, 1.0693147180559945)):
        side = np.ones((1, 1, tokens, 1), np.float32)
        layer = captured(tmp_path, {"q": side, "k": side}, causal="true").layers[0]
        assert named_rule(name, layer).multiplier == pytest.approx(factor, rel=1e-12)
        less = captured(tmp_path, {"q": side[:, :, :5], "k": side}, causal="bottom-right").layers[0]
        assert named_rule(name, less).multiplier == pytest.approx(factor, rel=1e-12)
        assert named_rule(name, less, context=HeadContext(position=3)).multiplier == 1


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
    capture = captured(tmp_path, {"q": Q[:, :, :queries]}, **{"scale": 1, "prescaled": [0.5, 4]} | told)
    [column] = measure_head(capture, capture.layers[0], 1, [named_rule("ssmax", capture.layers[0])]).columns
    assert column.multiplier == pytest.approx(0.43 * np.log(seen) / D_K**0.5, rel=1e-12)


@for_each(("told", "last"), [({"rows": [0, 2, 5]}, 5), ({"causal": "top-left"}, 2), ({"causal": "bottom-right"}, 10)])
def test_a_column_states_a_formula_at_the_position_of_the_last_query(
    tmp_path: Path, told: dict[str, Any], last: int
) -> None:
    capture = captured(tmp_path, {"q": Q[:, :, :3]}, **{"causal": "true", "prescaled": [0.5, 4]} | told)
    layer = capture.layers[0]
    for given, position in ((None, last), (20, 20)):
        rule = named_rule("(1+pos/9)/sqrt(d)", layer, context=HeadContext(position=given))
        [column] = measure_head(capture, layer, 1, [rule]).columns
        assert column.multiplier == pytest.approx((1 + position / 9) / D_K**0.5, rel=1e-12)


def test_the_range_of_the_multipliers_of_rows_is_told(tmp_path: Path) -> None:
    """SSMax multiplies by 0.43·ln n/√d_k, where n keys are seen; rows of a single key do not count."""
    capture = captured(tmp_path, causal="true", prescaled=[0.5, 1])
    layer = capture.layers[0]
    of_file, of_rows = measure_head(capture, layer, 0, [file_rule(layer), named_rule("ssmax", layer)]).columns
    assert of_file.multipliers is None
    assert of_rows.multipliers == pytest.approx(0.43 / D_K**0.5 * np.log([2, 11]), rel=1e-12)
    own = captured(tmp_path, {"scale": T[:, :1, :, np.newaxis]}, scale=None, causal="true")
    [column] = measure_head(own, own.layers[0], 1, [file_rule(own.layers[0])]).columns
    assert column.multipliers == pytest.approx((T[:, :1, 1:].min(), T[:, :1, 1:].max()), rel=1e-12)
