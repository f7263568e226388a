"""Captured heads in number formats: step by step in the format, and against the Lab; and their settings as texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.head import CaptureFile
from attn_tui.core.captures.heads import measure_head, stream_head
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.captures.rules import rule_of
from attn_tui.core.captures.settings import AS_IN_FILE, HeadSetting, against_with, setting_of_a
from attn_tui.core.errors import InputError, ParameterError
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.sampling import Draws
from attn_tui.core.lab.scoring import kept_draws, sides, vectors_of
from attn_tui.core.parameters import ArithmeticName, FormatName, Parameters
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.core.statistics.measurement import Column
from capture_files import Array, save
from cases import for_each
from number_formats import dtype_of

FORMATS = get_args(FormatName)
LOW = [
    (name, kind) for name in FORMATS[2:] for kind in get_args(ArithmeticName) if "8" not in name or kind == "fused"
]


def head_file(folder: Path, q: Array, k: Array, tensors: dict[str, Array] | None = None, **layer: Any) -> CaptureFile:
    """A file of one layer: q and k [batch, heads, tokens, d_k], other tensors, and its metadata."""
    about = [{"name": "0", "index": 0, "causal": False, "scale": 0.3} | layer]
    arrays = {f"layers.0.attn.{name}": each for name, each in {"q": q, "k": k, **(tensors or {})}.items()}
    folder.mkdir(exist_ok=True)
    return open_capture(save(folder / "heads.safetensors", arrays, schema="attn-tui/qk-2", layers=about))


def normals(*shape: int, seed: int = 0, std: float = 1.0) -> Array:
    return (std * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)


def measured(capture: CaptureFile, head: int = 0, **setting: Any) -> Column:
    layer = capture.layers[0]
    return measure_head(capture, layer, head, [rule_of(HeadSetting(**setting), layer)]).columns[0]


def value(column: Column, name: str) -> float:
    found = column.measured[name].value
    assert found is not None, name
    return found


def in_steps(
    q: Array, k: Array, name: str, arithmetic: str, c: Any, cap: float | None = None, bias: Any = 0.0,
    alibi: Any = 0.0, hidden: Any = False, sink: float | None = None,
) -> Array:  # fmt: skip
    """The weights (texts, queries, keys) that meet v, one operation after another on numbers of the format."""

    def rounded(x: Any) -> Array:
        return np.asarray(x, np.float32).astype(dtype_of(name)).astype(np.float32)

    eager = arithmetic == "eager"

    def step(x: Any) -> Array:
        return rounded(x) if eager else np.asarray(x, np.float32)

    with np.errstate(all="ignore"):
        s = step(rounded(q) @ rounded(k).mT)
        z = step(s * np.asarray(c, np.float32))
        if cap is not None:
            z = step(step(np.tanh(step(z / np.float32(cap)))) * np.float32(cap))
        z = step(z + rounded(bias))
        z = step(z + (rounded(alibi) if eager else np.asarray(alibi, np.float32)))
        z = np.where(hidden, -np.inf, z)
        ends = np.full((*z.shape[:-1], 1), -np.inf if sink is None else rounded(sink), np.float32)
        top = z.max(-1, keepdims=True) if not eager else np.concatenate([z, ends], -1).max(-1, keepdims=True)
        e = np.exp(z - top)
        total = e.sum(-1, keepdims=True) + np.exp(ends - top)
        return rounded(e / total) if eager else rounded(e) / total


def assert_weights(column: Column, p: Array, seen: Array | None = None) -> None:
    """Compare the statistics of weights with those of p; `seen` marks the rows that count."""
    p = p.astype(np.float64)
    rows = p[np.ones(p.shape[:-1], bool) if seen is None else seen]
    failed = np.isnan(rows).any(-1)
    assert value(column, "nan_rows") == pytest.approx(failed.mean())
    rows = rows[~failed]
    logs = np.log(rows, out=np.zeros_like(rows), where=rows > 0)
    expected = {
        "entropy": -(rows * logs).sum(-1),
        "max_weight": rows.max(-1),
        "sum_squared_weights": (rows**2).sum(-1),
    }
    for name, each in expected.items():
        assert value(column, name) == pytest.approx(each.mean(), rel=2e-6, abs=1e-7), name


@for_each(("name", "arithmetic"), [each for each in LOW if "8" not in each[0]])
@for_each(
    "parts", [(), ("cap",), ("bias",), ("slope",), ("sink",), ("causal",), ("cap", "bias", "slope", "sink", "causal")]
)
def test_a_head_is_computed_step_by_step_in_the_format(
    name: Any, arithmetic: Any, parts: tuple[str, ...], tmp_path: Path
) -> None:
    q, k = normals(2, 4, 7, 16, std=2), normals(2, 2, 7, 16, seed=1, std=2)
    layer: dict[str, Any] = {"causal": True} if "causal" in parts else {}
    more: dict[str, Any] = {}
    tensors: dict[str, Array] = {}
    if "cap" in parts:
        layer["softcap"] = more["cap"] = 3.0
    if "bias" in parts:
        tensors["bias"] = normals(1, 4, 7, 7, seed=2, std=3)
        more["bias"] = tensors["bias"][:, 3]
    if "slope" in parts:
        tensors["alibi_slopes"] = np.array([0.1, 0.2, 0.3, 0.37], np.float32)
        more["alibi"] = -np.float64(np.float32(0.37)) * np.abs(np.arange(7)[:, np.newaxis] - np.arange(7))
    if "sink" in parts:
        tensors["sinks"] = np.array([0.1, 0.2, 0.3, 1.7], np.float32)
        more["sink"] = np.float32(1.7)
    if "causal" in parts:
        more["hidden"] = np.triu(np.ones((7, 7), bool), 1)
    capture = head_file(tmp_path, q, k, tensors, **layer)
    column = measured(capture, 3, precision=name, arithmetic=arithmetic)
    assert column.apart == {"precision": name, "arithmetic": arithmetic}
    assert_weights(column, in_steps(q[:, 3], k[:, 1], name, arithmetic, 0.3, **more))


def test_factors_in_the_file_and_scales_of_rows_are_float32_numbers(tmp_path: Path) -> None:
    q, k = normals(2, 2, 7, 16, std=2), normals(2, 2, 7, 16, seed=1, std=2)
    scaled = head_file(tmp_path / "scaled", q, k, prescaled=[0.5, 2.5])
    own = np.random.default_rng(3).uniform(0.1, 0.4, (2, 2, 7)).astype(np.float32)
    rows = head_file(tmp_path / "rows", q, k, {"scale": own}, scale=None)
    for name in ("float16", "bfloat16"):
        low: dict[str, Any] = {"precision": name, "arithmetic": "eager"}
        steps = q[:, 1], k[:, 1], name, "eager"
        assert_weights(measured(scaled, 1, **low), in_steps(*steps, 0.3))
        assert_weights(measured(scaled, 1, scale="d_k", **low), in_steps(*steps, 1 / 16 / 1.25))
        assert_weights(measured(rows, 1, **low), in_steps(*steps, own[:, 1, :, np.newaxis]))


@for_each(("name", "arithmetic"), [*LOW, ("float32", "fused")])
@for_each("rule", ["none", "sqrt_d_k", "quarter", "rms_sqrt_d_k", "ssmax"])
@for_each("more", [{}, {"mask": "causal", "softcap": 2.0}, {"std_q": 60.0, "d_k": 1}])
def test_the_lab_s_queries_and_keys_give_the_lab_s_statistics(
    name: Any, arithmetic: Any, rule: str, more: dict[str, Any], tmp_path: Path
) -> None:
    more = {"d_k": 16, "n_queries": 8, "n_keys": 8, "batch": 4, "against": "d_k"} | more
    p = Parameters(**more, precision=name, arithmetic=arithmetic, scale=rule)
    draws = Draws()
    lab = run(p, draws).columns[1].measured
    q, k = vectors_of(p, kept_draws(p, sides(p), draws, slice(0, 4)))
    layer: dict[str, Any] = {"causal": p.mask == "causal", "softcap": p.softcap or None}
    head = measured(
        head_file(tmp_path, q[:, np.newaxis], k[:, np.newaxis], **layer),
        scale=rule, precision=name, arithmetic=arithmetic,
    ).measured  # fmt: skip
    same = [each.name for each in STATISTICS if each.group in ("attention", "Jacobian", "numerics")]
    assert "weight_error" in same
    for each in [*same, "logit_mean", "logit_min", "logit_max"]:
        left, right = head[each].value, lab[each].value
        if name == "float32" and each == "nan_rows":
            left = left or 0.0
        assert left == (None if right is None else pytest.approx(right, rel=1e-4, abs=2e-5)), each


@pytest.mark.parametrize("arithmetic", get_args(ArithmeticName))
def test_the_numbers_of_a_float16_file_are_multiplied_as_they_are(arithmetic: Any, tmp_path: Path) -> None:
    q, k = normals(1, 1, 5, 8).astype(np.float16), normals(1, 1, 5, 8, seed=1).astype(np.float16)
    for kind in (np.float16, np.float32, np.float64):
        capture = head_file(tmp_path, q.astype(kind), k.astype(kind))
        assert_weights(
            measured(capture, precision="float16", arithmetic=arithmetic),
            in_steps(q[:, 0], k[:, 0], "float16", arithmetic, 0.3),
        )


def test_large_scores_overflow_float16_and_rows_become_nan(tmp_path: Path) -> None:
    q, k = normals(1, 1, 64, 64, std=60), normals(1, 1, 64, 64, seed=1, std=60)
    capture = head_file(tmp_path, q, k, scale=0.125)
    eager, fused, wide = (
        measured(capture, precision=name, arithmetic=kind)
        for name, kind in (("float16", "eager"), ("float16", "fused"), ("bfloat16", "eager"))
    )
    scores = q[0, 0] @ k[0, 0].T
    assert value(eager, "score_overflow") == pytest.approx((np.abs(scores) > 65519).mean(), abs=0.001)
    assert value(eager, "nan_rows") == pytest.approx((scores.max(-1) > 65519).mean(), abs=0.02)
    assert 0.3 < value(eager, "nan_rows") < 0.7
    assert value(fused, "nan_rows") == value(fused, "score_overflow") == value(wide, "nan_rows") == 0
    assert value(fused, "naive_exp_overflow") > 0.4


def test_padding_and_rows_that_see_nothing_do_not_count(tmp_path: Path) -> None:
    q, k = normals(2, 1, 6, 8, std=3), normals(2, 1, 6, 8, seed=1, std=3)
    mask = np.ones((2, 6), bool)
    mask[1, 4:] = False
    q[1, 0, 4:] = 1e30  # infinite in the format
    column = measured(head_file(tmp_path, q, k, {"mask": mask}), precision="float16", arithmetic="eager")
    p = in_steps(q[:, 0], k[:, 0], "float16", "eager", 0.3, hidden=~mask[:, np.newaxis])
    assert value(column, "score_overflow") == 0
    assert_weights(column, p, seen=mask)


def test_the_scale_of_float8_is_of_all_queries_of_a_text(tmp_path: Path) -> None:
    q, k = normals(2, 1, 6, 8), normals(2, 1, 6, 8, seed=1)
    q[1, 0, 5] *= 1e6
    column = measured(head_file(tmp_path, q, k), precision="float8_e4m3fn")
    alone = measured(head_file(tmp_path / "alone", q[:, :, :5], k), precision="float8_e4m3fn")
    assert value(column, "weight_error") > 3 * value(alone, "weight_error")


def test_blocks_of_a_long_text_give_what_one_block_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k = normals(1, 1, 300, 8), normals(1, 1, 300, 8, seed=1)
    capture = head_file(tmp_path, q, k, causal=True, window=[40, 0])
    whole = measured(capture, precision="bfloat16", arithmetic="eager")
    monkeypatch.setattr("attn_tui.core.statistics.tally.BLOCK", 3000)
    monkeypatch.setattr("attn_tui.core.captures.blocks._KEPT", 0)
    parts = measured(capture, precision="bfloat16", arithmetic="eager")
    for name, each in whole.measured.items():
        assert parts.measured[name].value == (None if each.value is None else pytest.approx(each.value, rel=1e-9))


def test_a_soft_cap_is_taken_away_or_set(tmp_path: Path) -> None:
    q, k = normals(1, 1, 6, 8, std=3), normals(1, 1, 6, 8, seed=1, std=3)
    without, capped = head_file(tmp_path / "a", q, k), head_file(tmp_path / "b", q, k, softcap=2.0)
    for one, other in (
        (measured(capped, softcap=0), measured(without)),
        (measured(without, softcap=2.0), measured(capped)),
        (measured(capped, softcap=0, precision="float16"), measured(without, precision="float16")),
    ):
        for name, each in other.measured.items():
            assert one.measured[name].value == (None if each.value is None else pytest.approx(each.value, rel=1e-9))
        assert "softcap" in one.apart
        assert "softcap" not in other.apart


def test_exact_columns_do_not_depend_on_a_rounded_one() -> None:
    capture = open_capture(sample_path())
    layer = capture.layers[2]
    rules = [
        rule_of(each, layer) for each in (AS_IN_FILE, HeadSetting(precision="float16"), HeadSetting(scale="none"))
    ]
    every = measure_head(capture, layer, 3, rules)
    for place in (0, 2):
        assert every.columns[place].measured == measure_head(capture, layer, 3, [rules[place]]).columns[0].measured
    assert [column.rule for column in every.columns] == ["file", "file", "none"]
    assert not every.columns[0].apart


def test_progress_of_a_rounded_head_rises_to_1() -> None:
    capture = open_capture(sample_path())
    layer = capture.layers[0]
    rules = [rule_of(HeadSetting(precision=name), layer) for name in ("float64", "bfloat16")]
    fractions = [fraction for fraction, _ in stream_head(capture, layer, 0, rules)]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1


@for_each(
    ("text", "expected"),
    [
        ("d_k", {"scale": "d_k"}),
        ("unscaled", {"scale": "none"}),
        ("file", {"scale": "file"}),
        ("0.05", {"scale": "custom", "multiplier": 0.05}),
        ("log(n)/sqrt(d)", {"scale": "log(n)/sqrt(d)"}),
        ("precision=float16", {"precision": "float16"}),
        ("format=float8_e4m3fn,scale=d_k", {"precision": "float8_e4m3fn", "scale": "d_k"}),
        ("none,softcap=0", {"scale": "none", "softcap": 0.0}),
        ("soft-cap=file", {"softcap": "file"}),
        ("precision=bfloat16,arithmetic=eager", {"precision": "bfloat16", "arithmetic": "eager"}),
    ],
)
def test_a_text_says_in_what_a_differs(text: str, expected: dict[str, Any]) -> None:
    b = HeadSetting(scale="8/d", precision="float32", softcap=30.0)
    assert setting_of_a(b, text) == b.with_values(expected)


@for_each("name", ["mask", "law", "seed", "n_keys", "d_k", "sink", "model", "mean_q", "position"])
def test_what_the_file_says_is_refused_with_what_a_may_set(name: str) -> None:
    with pytest.raises(ParameterError) as caught:
        setting_of_a(AS_IN_FILE, f"{name}=1")
    assert str(caught.value).endswith("A may set scale, multiplier, precision, arithmetic, softcap")
    assert name in str(caught.value)


@for_each(
    ("text", "words"),
    [
        ("precision=half", "must be one of float64, float32, float16"),
        ("softcap=-1", "a number from 0 to 10000 .*, or file"),
        ("arithmetic=eager,precision=float8_e5m2", "must be fused with format float8 e5m2"),
        ("precison=float16", "did you mean precision"),
        ("sqrt_dk", "must be unscaled, file, a scale rule or formula, .*did you mean sqrt_d_k"),
        ("half", "did you mean precision=float16"),
        ("causal", "not 'causal'; for example precision=bfloat16"),
        ("d_k,none", "scale is given twice"),
    ],
)
def test_a_wrong_text_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        setting_of_a(AS_IN_FILE, text)


def test_choosing_a_value_for_a_keeps_the_others_and_the_value_of_b_ends_a_difference() -> None:
    b = HeadSetting(precision="bfloat16")
    assert against_with(b, "none", "precision=float16") == "none,precision=float16"
    assert against_with(b, "none,precision=float16", "d_k") == "d_k,precision=float16"
    assert against_with(b, "none,precision=float16", "precision=bfloat16") == "none"
    assert against_with(b, "precision=float16", "precision=bfloat16") == "file"
    assert json.dumps(setting_of_a(b, "softcap=0").apart) == json.dumps(
        {"precision": "bfloat16", "arithmetic": "fused", "softcap": 0.0}
    )
