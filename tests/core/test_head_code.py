"""The code of captured heads and of their diagnosis: it prints the numbers that its comments say."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.heads import measure_head, named_rule
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.captures.rules import rule_of
from attn_tui.core.captures.settings import HeadSetting
from attn_tui.core.learning.bug_evidence import write_capture
from attn_tui.core.learning.bugs import BUGS, Bug
from attn_tui.core.program import reading
from attn_tui.core.program.captured import head_code
from attn_tui.core.program.diagnosis import diagnosis_code
from attn_tui.core.program.text import Dialect, NoCodeError
from capture_files import Array, numbers, save
from cases import for_each
from evidence_files import TOKENS, WIDTH, attended
from printed_code import INSTALLED, compared, expected_in, lines_of, printed_by

FILES = Path(__file__).parents[1] / "data"
SHOWN = np.arange(6) < np.array([6, 3])[:, np.newaxis]  # (texts, keys)
LOW = np.float32(np.finfo(np.float32).min)
BY_ROW = ("ssmax", "llama4_position", "log512_n", "log(n)/sqrt(d)*(1+pos/9)", "1/sqrt(d)/log(n)")


def program(path: Path, dialect: Dialect, head: int = 1, rules: Sequence[Any] = ("none", "file")) -> str:
    """The program of a head under rules, each a name or a HeadSetting's values."""
    capture = open_capture(path)
    layer = capture.layers[0]
    chosen = [
        named_rule(each, layer) if isinstance(each, str) else rule_of(HeadSetting(**each), layer) for each in rules
    ]
    return head_code(measure_head(capture, layer, head, chosen), dialect, "attn-tui inspect")


def saved(
    folder: Path, beside: dict[str, Array], queries: int = 6, suffix: str = "safetensors", **about: Any
) -> Path:
    """Save one layer of two texts, four heads and six keys, with tensors and metadata beside."""
    tensors = {"q": numbers(2, 4, queries, 8), "k": numbers(2, 4, 6, 8, seed=1)} | beside
    if suffix == "npz":
        np.savez(folder / "x.npz", allow_pickle=False, **tensors)
        return folder / "x.npz"
    scale = {} if "scales" in beside or "head_scales" in str(about) else {"scale": 0.3}
    return save(folder / "x.safetensors", tensors, **scale, **about)


def some(*shape: int) -> Array:
    return np.random.default_rng(2).random(shape) < 0.7


MASKS: dict[str, dict[str, Array]] = {
    "of keys": {"mask": SHOWN},
    "numbers that hide": {"mask": np.where(SHOWN, 0, LOW)[:, None, None]},
    "bfloat16": {"mask": np.where(SHOWN, 0, -1e4).astype(ml_dtypes.bfloat16)[:, None, None]},
    "True hides": {"key_padding_mask": ~SHOWN},
    "of 0 and 1": {"attention_mask": SHOWN.astype(np.int64)},
    "of queries and keys": {"mask": np.tri(6, dtype=bool)},
    "of heads": {"mask": some(2, 4, 6, 6)},
    "that is added": {"mask": np.where(SHOWN[:, None, None], numbers(2, 1, 6, 6, seed=3), -np.inf)},
    "two": {"mask": np.tri(6, dtype=bool), "padding_mask": ~SHOWN},
    "of queries": {"query_mask": SHOWN},
    "of queries and of keys": {"query_mask": SHOWN, "key_mask": np.ones((2, 6), bool)},
    "bias": {"bias": numbers(1, 4, 6, 6, seed=3)},
    "bias that hides": {"bias": np.where(some(2, 4, 6, 6), numbers(2, 4, 6, 6), -1e9).astype(np.float32)},
    "bias and mask": {"bias": numbers(4, 6, 6, seed=3), "mask": SHOWN},
    "ALiBi": {"alibi_slopes": np.array([0.5, 0.25, 0.125, 0.0625], np.float32)},
    "ALiBi and bias": {"alibi_slopes": np.ones(4, np.float32), "bias": numbers(1, 1, 6, 6), "mask": SHOWN},
    "sinks": {"sinks": np.array([0.5, -1, 0, 2], np.float32), "mask": SHOWN},
    "nothing": {},
    "scales of heads": {"scales": np.array([0.1, 0.2, 0.4, 0.8], np.float32)},
    "scales of queries": {"scales": np.linspace(0.1, 1, 24).reshape(4, 6).astype(np.float32), "mask": SHOWN},
    "scales of texts": {"scales": np.linspace(0.1, 1, 8).reshape(2, 4, 1, 1).astype(np.float32)},
}  # fmt: skip


@pytest.mark.parametrize("dialect", INSTALLED)
@for_each("causal", [False, True])
@for_each("name", [*MASKS])
def test_the_code_of_a_head_with_a_tensor_beside_it_prints_its_numbers(
    name: str, causal: bool, dialect: Dialect, tmp_path: Path
) -> None:
    every: tuple[dict[str, Any], ...] = {}, {"softcap": 1.5}
    for more in every:
        path = saved(tmp_path, MASKS[name], causal=causal, **more)
        assert compared(program(path, dialect)) == ""
        assert compared(program(path, dialect, head=3, rules=("1/d", "rms_sqrt_d_k"))) == ""


EAGER = {"precision": "float16", "arithmetic": "eager"}
SETTINGS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"precision": "float16"}, {}),
    ({}, EAGER),
    (EAGER | {"scale": "quarter"}, EAGER),
    ({"precision": "bfloat16", "arithmetic": "eager", "scale": "rms_sqrt_d_k"}, {"precision": "bfloat16"}),
    ({"precision": "float8_e4m3fn"}, {"precision": "float8_e5m2", "scale": "ssmax"}),
    ({"precision": "float32"}, {"softcap": 0.4}),
    (EAGER | {"softcap": 0.0}, EAGER | {"scale": "ssmax"}),
]


@pytest.mark.parametrize("dialect", INSTALLED)
@for_each("name", [None, "sinks", "bias", "ALiBi"])
@for_each("settings", SETTINGS)
def test_the_code_of_a_head_in_number_formats_prints_its_numbers(
    settings: Sequence[dict[str, Any]], name: str | None, dialect: Dialect, tmp_path: Path
) -> None:
    more: dict[str, Any] = {"causal": True, "softcap": 2.0} if name == "sinks" else {"causal": False}
    assert compared(program(saved(tmp_path, MASKS[name] if name else {}, **more), dialect, rules=settings)) == ""


@pytest.mark.parametrize("dialect", INSTALLED)
def test_the_code_of_a_head_with_nan_rows_prints_its_numbers(dialect: Dialect, tmp_path: Path) -> None:
    sides = {"q": 3000 * numbers(1, 2, 32, 64), "k": numbers(1, 2, 32, 64, seed=1)}
    text = program(saved(tmp_path, sides), dialect, rules=[EAGER | {"scale": "none"}, EAGER])
    assert "NaN rows" in text
    assert compared(text) == ""


def test_a_sink_far_above_the_logits_overflows_nothing(tmp_path: Path) -> None:
    with np.errstate(over="raise"):
        assert compared(program(saved(tmp_path, {"sinks": np.full(4, 1000, np.float32)}), "python")) == ""


def test_a_feature_without_its_text_in_programs_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PRINTED", reading.PRINTED - {"chunk", "bias"})
    path = saved(tmp_path, {"bias": numbers(1, 4, 6, 6)}, chunk="3")
    with pytest.raises(NoCodeError, match="chunk, bias"):
        program(path, "python")


@pytest.mark.parametrize(
    ("beside", "about", "setting", "reason"),
    [
        (MASKS["ALiBi and bias"], {}, EAGER, "it adds two biases in float16"),
        ({}, {"prescaled": [0.5, 2.5]}, EAGER | {"scale": "quarter"}, "q and k as stored have a factor"),
        ({"q": 3e4 * numbers(2, 4, 6, 8)}, {}, EAGER, "its scores overflow float16"),
    ],
)
def test_formats_that_no_short_program_computes_are_refused_in_one_line(
    beside: dict[str, Array], about: dict[str, Any], setting: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    path = saved(tmp_path, beside, causal=True, **about)
    with pytest.raises(NoCodeError, match=reason):
        program(path, "python", rules=[setting, {}])
    assert program(path, "python", rules=[{}, {"scale": "none"}])


@pytest.mark.parametrize("dialect", INSTALLED)
@for_each("rule", BY_ROW)
@for_each("name", ["of keys", "of heads", "of queries", "ALiBi", "sinks"])
def test_rules_of_rows_have_a_multiplier_for_each(name: str, rule: str, dialect: Dialect, tmp_path: Path) -> None:
    path = saved(tmp_path, MASKS[name], causal=True, prescaled=[0.5, 2.0] if name == "sinks" else [0.5, 1.0])
    assert compared(program(path, dialect, rules=("none", rule))) == ""


ABOUT: dict[str, dict[str, Any]] = {
    "window": {"window": [2, 0], "causal": True},
    "factors": {"prescaled": [0.5, 2.0]},
    "a factor": {"prescaled": [0.5, 1.0], "causal": True},
    "window of both sides": {"window": [1, 2], "causal": False},
    "chunks": {"chunk": 3, "causal": True},
    "window and chunks": {"window": [1, 0], "chunk": 4, "causal": True},
    "lengths": {"lengths": [6, 4], "causal": True},
    "head scales": {"layers": [{"head_scales": [0.1, 0.2, 0.3, 0.4]}]},
    "metadata sinks": {"layers": [{"sinks": [0.1, -0.2, 0.3, 0.4]}]},
    "metadata slopes": {"layers": [{"alibi_slopes": [0.1, 0.2, 0.3, 0.4]}], "causal": True},
    "bottom right": {"causal": "bottom_right", "queries": 4},
    "bottom right window": {"causal": "bottom_right", "queries": 4, "window": [2, 0]},
    "top left": {"causal": "top_left", "queries": 4},
    "more queries than keys": {"causal": "top_left", "queries": 9, "window": [2, 0]},
    "sampled queries": {"layers": [{"rows": [0, 2, 3]}], "queries": 3, "causal": True},
    "evenly sampled queries": {"layers": [{"rows": [1, 3, 5]}], "queries": 3, "causal": True, "window": [1, 0]},
}


@pytest.mark.parametrize("dialect", INSTALLED)
@for_each("name", [*ABOUT])
def test_the_code_of_a_head_with_such_metadata_prints_its_numbers(
    name: str, dialect: Dialect, tmp_path: Path
) -> None:
    about = dict(ABOUT[name])
    path = saved(tmp_path, {}, about.pop("queries", 6), **about)
    assert compared(program(path, dialect)) == ""
    for rule in (*BY_ROW[:2], "rms_sqrt_d_k"):
        assert compared(program(path, dialect, rules=("none", rule))) == ""


@pytest.mark.parametrize("dialect", INSTALLED)
def test_sampled_queries_take_their_rows_of_masks_and_biases_of_all_tokens(dialect: Dialect, tmp_path: Path) -> None:
    beside = {"rows": np.array([0, 2, 5]), "bias": numbers(1, 4, 6, 6), "query_mask": SHOWN, "mask": SHOWN}
    path = saved(tmp_path, beside, 3, causal=True)
    assert "[:, at]" in program(path, dialect)
    assert compared(program(path, dialect)) == ""


@pytest.mark.parametrize("dialect", INSTALLED)
def test_halves_of_latent_attention_are_joined(dialect: Dialect, tmp_path: Path) -> None:
    prefix = "model.layers.0.self_attn."
    tensors = {
        f"{prefix}{name}": numbers(2, heads, 6, width, seed=seed)
        for seed, (name, heads, width) in enumerate(
            [("q_nope", 4, 8), ("q_pe", 4, 4), ("k_nope", 4, 8), ("k_pe", 1, 4)]
        )
    }
    path = save(tmp_path / "x.safetensors", tensors, causal=True)
    assert compared(program(path, dialect, head=3)) == ""


@pytest.mark.parametrize("dialect", INSTALLED)
@for_each("name", ["of keys", "of heads", "of queries", "bias that hides"])
def test_archives_of_numpy_are_read(name: str, dialect: Dialect, tmp_path: Path) -> None:
    assert compared(program(saved(tmp_path, MASKS[name], suffix="npz"), dialect)) == ""


@pytest.mark.parametrize("dialect", INSTALLED)
def test_grouped_queries_names_axes_and_number_formats_are_read(dialect: Dialect, tmp_path: Path) -> None:
    q, k = numbers(2, 4, 6, 8), numbers(2, 4, 6, 8, seed=1)
    assert compared(program(saved(tmp_path, {"k": k[:, :2]}), dialect, head=3)) == ""
    for dtype in (ml_dtypes.bfloat16, np.float64):
        assert compared(program(saved(tmp_path, {"q": q.astype(dtype), "k": k.astype(dtype)}), dialect)) == ""
    for names, shape in (
        (("blocks.0.attn.hook_rot_q", "blocks.0.attn.hook_rot_k"), (2, 6, 4, 8)),
        (("model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.k_proj"), (2, 6, 32)),
    ):
        arrays: dict[str, Any] = dict(zip(names, (numbers(*shape), numbers(*shape, seed=1)), strict=True))
        np.savez(tmp_path / "y.npz", heads=np.array(4), **arrays)
        assert compared(program(tmp_path / "y.npz", dialect)) == ""


@pytest.mark.parametrize("dialect", INSTALLED)
def test_a_pair_of_npy_files_is_read(dialect: Dialect, tmp_path: Path) -> None:
    np.save(tmp_path / "q.npy", numbers(4, 6, 8))
    np.save(tmp_path / "k.npy", numbers(4, 6, 8, seed=1))
    assert compared(program(tmp_path / "q.npy", dialect)) == ""


@pytest.mark.parametrize("dialect", INSTALLED)
def test_the_code_of_real_heads_leaves_padding_out(dialect: Dialect) -> None:
    assert compared(program(FILES / "minilm-sample-padded.safetensors", dialect)) == ""
    for head in (0, 7):
        assert compared(program(sample_path(), dialect, head)) == ""


def test_a_head_with_too_many_scores_for_a_short_program_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path / "x.safetensors", {"q": numbers(1, 1, 6, 2), "k": numbers(1, 1, 6, 2)})
    monkeypatch.setattr("attn_tui.core.program.reading._LARGEST", 36)
    assert program(path, "python", head=0)
    monkeypatch.setattr("attn_tui.core.program.reading._LARGEST", 35)
    with pytest.raises(NoCodeError, match="memory"):
        program(path, "python", head=0)


KINDS = "weights", "lse", "o"


def program_of_diagnosis(path: Path, dialect: Dialect, head: int = 1) -> str:
    capture = open_capture(path)
    return diagnosis_code(capture, capture.layers[0], head, None, dialect, "attn-tui diagnose")


def assert_found(text: str, wanted: float | None = None) -> None:
    """Run a program of a diagnosis; its multiplier is the diagnosis's, within its error and four digits."""
    for line, (name, [(value, stderr)]) in zip(printed_by(text), expected_in(text).items(), strict=True):
        assert float(line.removeprefix(name)) == pytest.approx(value, rel=1e-3, abs=3 * stderr)
        if wanted is not None and name.startswith("multiplier"):
            assert value == pytest.approx(wanted, rel=2e-3, abs=3 * stderr)
    assert lines_of(text) <= 27


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], float]] = {
    "healthy": ({}, {}, WIDTH**-0.5),
    "missing": ({"scale": 1.0}, {}, 1.0),
    "twice": ({"scale": 1 / WIDTH}, {}, 1 / WIDTH),
    "fixed": ({"scale": 1 / 16}, {}, 1 / 16),
    "causal": ({"ahead": 0, "scale": 0.9}, {}, 0.9),
    "window": ({"ahead": 0, "before": 3}, {"window": 4}, WIDTH**-0.5),
    "window of both sides": ({"ahead": 2, "before": 3}, {"window": [3, 2], "causal": False}, WIDTH**-0.5),
    "causal lost": ({}, {"causal": True}, WIDTH**-0.5),
    "causal extra": ({"ahead": 0}, {"causal": False}, WIDTH**-0.5),
    "future key": ({"ahead": 1}, {"causal": True}, WIDTH**-0.5),
    "soft-cap": ({"softcap": 1.5}, {"softcap": 1.5}, WIDTH**-0.5),
    "soft-cap missing": ({}, {"softcap": 1.0}, WIDTH**-0.5),
    "soft-cap and scale": ({"softcap": 2.0, "scale": 0.25}, {"softcap": 2.0, "causal": False}, 0.25),
    "sink": ({"sink": 1.0}, {"sinks": [1.0] * 4}, WIDTH**-0.5),
    "soft-cap extra": ({"softcap": 0.8}, {}, WIDTH**-0.5),
    "soft-cap other": ({"softcap": 0.8}, {"softcap": 2.0}, WIDTH**-0.5),
    "sink extra": ({"sink": 2.0}, {}, WIDTH**-0.5),
    "sink extra and causal": ({"sink": 1.0, "ahead": 0}, {}, WIDTH**-0.5),
    "swapped": ({"swapped": True}, {}, WIDTH**-0.5),
    "over queries": ({"over_queries": True}, {}, WIDTH**-0.5),
}


@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind) if (i + j) % 3 == 0 else pytest.param(name, kind, marks=pytest.mark.slow)
        for i, name in enumerate(CASES)
        for j, kind in enumerate(KINDS)
        if (name, kind) != ("over queries", "lse")  # the file has a log-sum-exp for each row
    ],
)
def test_the_code_of_a_diagnosis_finds_the_multiplier(name: str, kind: str, dialect: Dialect, tmp_path: Path) -> None:
    done, said, multiplier = CASES[name]
    assert_found(program_of_diagnosis(attended(tmp_path, kind, done, said), dialect), multiplier)


@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize("kind", KINDS)
def test_padding_key_groups_and_formats_are_read(kind: str, dialect: Dialect, tmp_path: Path) -> None:
    lengths = {"key_padding_mask": np.arange(TOKENS) >= np.array([[9], [9]])}
    padded = attended(tmp_path, kind, {"length": 9, "scale": 0.5}, beside=lengths)
    assert_found(program_of_diagnosis(padded, dialect), 0.5)
    assert_found(program_of_diagnosis(attended(tmp_path, kind, {"scale": 0.5}, kv_heads=2), dialect, head=3), 0.5)
    assert_found(program_of_diagnosis(attended(tmp_path, kind, {"tiled": True}, kv_heads=2), dialect), WIDTH**-0.5)
    for dtype in (np.float16, ml_dtypes.bfloat16):
        assert_found(program_of_diagnosis(attended(tmp_path, kind, {"scale": 0.5}, dtype=dtype), dialect), 0.5)


@pytest.mark.parametrize("dialect", INSTALLED)
def test_a_log_sum_exp_in_base_2_is_read_as_such(dialect: Dialect, tmp_path: Path) -> None:
    text = program_of_diagnosis(attended(tmp_path, "lse", {"lse": np.log2(np.e)}), dialect)
    assert_found(text, WIDTH**-0.5)
    assert "base 2" in text


@pytest.mark.parametrize("dialect", INSTALLED)
@for_each("kind", KINDS)
def test_multipliers_of_rows_are_relative_to_their_median(kind: str, dialect: Dialect, tmp_path: Path) -> None:
    own = np.linspace(0.2, 0.6, TOKENS)
    beside = {"scales": np.tile(own, (4, 1)).astype(np.float32)}
    path = attended(tmp_path, kind, {"scale": 1.0, "rows": own[:, None]}, {"scale": None}, beside=beside)
    assert_found(program_of_diagnosis(path, dialect), float(np.median(own)))


@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize("bug", BUGS, ids=[bug.id for bug in BUGS])
def test_the_bugs_to_find_have_code(bug: Bug, dialect: Dialect, tmp_path: Path) -> None:
    write_capture(bug, tmp_path / "bug.safetensors")
    assert_found(program_of_diagnosis(tmp_path / "bug.safetensors", dialect, bug.head))


def test_a_program_of_another_scale_is_another_one(tmp_path: Path) -> None:
    text = program_of_diagnosis(attended(tmp_path, "weights", {"scale": 0.5}), "python")
    [line] = printed_by(text.replace("scale * (q @ k.mT)", "scale * 2 * (q @ k.mT)"))
    assert float(line.split()[-1]) == pytest.approx(0.25)


def test_what_no_short_program_finds_is_said(tmp_path: Path) -> None:
    with pytest.raises(NoCodeError, match="q and k alone"):
        program_of_diagnosis(sample_path(), "python")
    with pytest.raises(NoCodeError, match="bias-extra"):
        program_of_diagnosis(attended(tmp_path, "weights", {"slope": 0.3}), "python")
