"""Heads of files are diagnosed with everything that the files and a config.json say."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.configuration import configured_scale, expecting, parse_configuration
from attn_tui.core.diagnosis.judgement.scale import other_scale
from attn_tui.core.diagnosis.multipliers import Name, expected_multiplier, names
from attn_tui.core.diagnosis.reading import file_configuration, read_subject
from attn_tui.core.diagnosis.results import Verdict
from attn_tui.core.diagnosis.subject import StatedFacts
from attn_tui.core.diagnosis.verdict import diagnose
from attn_tui.core.errors import InputError
from capture_files import layered, named, opened
from cases import for_each
from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]

Array: TypeAlias = npt.NDArray[Any]

# What each kind of evidence shows is tested of single heads; the reader is the same for all.
each_kind = pytest.mark.parametrize(
    "kind", ["lse", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("weights", "o"))]
)
TEXTS, HEADS, KV_HEADS, TOKENS, D = 2, 4, 2, 40, 32
PLACES = np.arange(TOKENS)
AWAY = PLACES - PLACES[:, np.newaxis]
CAUSAL = AWAY <= 0


def tensors(dtype: str = "float32") -> dict[str, Array]:
    """q, k and v, rounded to the format, in float64."""
    rng = np.random.default_rng(0)
    number = getattr(ml_dtypes, dtype, None) or np.dtype(dtype)
    shapes = {"q": (HEADS, D), "k": (KV_HEADS, D), "v": (KV_HEADS, 24)}
    drawn = {side: 1.6 * rng.normal(size=(TEXTS, heads, TOKENS, d)) for side, (heads, d) in shapes.items()}
    return {side: array.astype(number).astype(np.float64) for side, array in drawn.items()}


def attended(
    found: dict[str, Array],
    scale: float,
    seen: Array,
    tiled: bool = False,
    bias: Array | float = 0,
    sink: float | None = None,
) -> dict[str, Array]:
    """The weights, log-sum-exp and output of grouped heads."""
    index = np.arange(HEADS) % KV_HEADS if tiled else np.arange(HEADS) // (HEADS // KV_HEADS)
    k, v = found["k"][:, index], found["v"][:, index]
    z = np.where(seen, scale * found["q"] @ k.swapaxes(-1, -2) + bias, -np.inf)
    e = np.exp(z)
    total = e.sum(axis=-1, keepdims=True) + (0 if sink is None else np.exp(sink))
    return {"weights": e / total, "lse": np.log(total[..., 0]), "o": (e / total) @ v}


def verdicts(
    folder: Path, arrays: dict[str, Array], dtype: str = "float32", given: str | None = None, **said: Any
) -> list[Verdict]:
    """The verdicts on all heads of a file with these tensors and metadata."""
    number = getattr(ml_dtypes, dtype, None) or np.dtype(dtype)
    stored = {
        f"layers.2.attn.{name}": np.ascontiguousarray(
            array if array.dtype.kind in "bi" else array.astype(np.float32 if name == "lse" else number)
        )
        for name, array in arrays.items()
    }
    told: dict[str, Any] = {"schema": "attn-tui/qk-2", "scale": str(D**-0.5)} | said
    metadata = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in told.items()
        if value is not None
    }
    save_file(stored, folder / "capture.safetensors", metadata)
    capture = open_capture(folder / "capture.safetensors")
    [layer] = capture.layers
    own = file_configuration(capture)
    configuration = None if given is None else parse_configuration(given, "config.json")
    subjects = [read_subject(capture, layer, head, own, configuration) for head in range(layer.heads)]
    return [diagnose(subject, configuration) for subject in subjects]


def causes(found: list[Verdict]) -> list[str | None]:
    return [each.cause if each.word == "cause" else each.word for each in found]


@each_kind
def test_grouped_causal_heads_of_two_texts(kind: str, tmp_path: Path) -> None:
    dtype = "bfloat16"
    found = tensors(dtype)
    made = attended(found, D**-0.5, CAUSAL)
    stored = {"q": found["q"], "k": found["k"], "v": found["v"], kind: made[kind]}
    assert causes(verdicts(tmp_path, stored, dtype, causal="true")) == ["healthy"] * HEADS
    made = attended(found, 1 / D, CAUSAL)
    assert causes(verdicts(tmp_path, {**stored, kind: made[kind]}, dtype, causal="true")) == ["scale-twice"] * HEADS
    made = attended(found, D**-0.5, np.ones_like(CAUSAL))
    assert causes(verdicts(tmp_path, {**stored, kind: made[kind]}, dtype, causal="true")) == ["causal-lost"] * HEADS


@pytest.mark.parametrize("kind", ["weights", "lse", "o"])
def test_tiled_key_heads_are_told_where_they_differ(kind: str, tmp_path: Path) -> None:
    found = tensors()
    made = attended(found, D**-0.5, CAUSAL, tiled=True)
    stored = {"q": found["q"], "k": found["k"], "v": found["v"], kind: made[kind]}
    assert causes(verdicts(tmp_path, stored, causal="true")) == ["healthy", "gqa-tiled", "gqa-tiled", "healthy"]


@each_kind
def test_bias_sinks_windows_and_sampled_rows(kind: str, tmp_path: Path) -> None:
    found = tensors()
    bias = np.random.default_rng(4).normal(size=(1, 1, TOKENS, TOKENS))
    seen = CAUSAL & (AWAY > -10)
    rows = np.array([3, 11, 12, 20, 31, 39])
    made = attended(found, D**-0.5, seen, bias=bias, sink=0.7)
    stored = {"q": found["q"][:, :, rows], "k": found["k"], "v": found["v"], kind: made[kind][:, :, rows]}
    stored |= {"bias": bias, "sinks": np.full(HEADS, 0.7), "rows": rows}
    said: dict[str, Any] = {"causal": "true", "window": 10}
    assert causes(verdicts(tmp_path, stored, **said)) == ["healthy"] * HEADS
    for cause, other in (
        ("sink-missing", attended(found, D**-0.5, seen, bias=bias)),
        ("bias-missing", attended(found, D**-0.5, seen, sink=0.7)),
        ("window-ignored", attended(found, D**-0.5, CAUSAL, bias=bias, sink=0.7)),
    ):
        assert causes(verdicts(tmp_path, {**stored, kind: other[kind][:, :, rows]}, **said)) == [cause] * HEADS


@each_kind
def test_padding_that_is_attended_to(kind: str, tmp_path: Path) -> None:
    found = tensors()
    mask = np.arange(TOKENS) < np.array([TOKENS, 28])[:, np.newaxis]
    right = attended(found, D**-0.5, np.broadcast_to(mask[:, np.newaxis, np.newaxis], (TEXTS, 1, TOKENS, TOKENS)))
    wrong = attended(found, D**-0.5, np.ones((1, 1, 1, 1), np.bool_))
    stored = {"q": found["q"], "k": found["k"], "v": found["v"], "mask": mask}
    assert causes(verdicts(tmp_path, {**stored, kind: right[kind]}, causal="false")) == ["healthy"] * HEADS
    assert causes(verdicts(tmp_path, {**stored, kind: wrong[kind]}, causal="false")) == ["padding-attended"] * HEADS


def test_each_head_has_its_own_scale(tmp_path: Path) -> None:
    found = tensors()
    own = np.array([0.1, 0.2, 0.3, 0.4])
    made = attended({**found, "q": found["q"] * own[:, np.newaxis, np.newaxis]}, 1.0, CAUSAL)
    stored = {"q": found["q"], "k": found["k"], "lse": made["lse"]}
    read = verdicts(tmp_path, stored, scale=None, head_scales=own.tolist(), causal="true")
    assert causes(read) == ["healthy"] * HEADS
    assert [each.multiplier for each in read] == pytest.approx(own, rel=1e-5)


def test_the_configuration_of_the_file_and_of_the_user(tmp_path: Path) -> None:
    found = tensors()
    made = attended(found, 1 / D, CAUSAL)
    stored = {"q": found["q"], "k": found["k"], "lse": made["lse"]}
    granite = json.dumps({"model_type": "granite", "attention_multiplier": 1 / D})
    assert causes(verdicts(tmp_path, stored, causal="true", config=granite)) == ["scale-twice"] * HEADS  # the file's
    assert causes(verdicts(tmp_path, stored, given=granite, causal="true")) == ["healthy"] * HEADS
    capped = json.dumps({"head_dim": D, "attn_logit_softcapping": 3})
    made = attended(found, D**-0.5, CAUSAL)
    lost = verdicts(tmp_path, {**stored, "lse": made["lse"]}, given=capped, causal="true")
    assert causes(lost) == ["softcap-missing"] * HEADS


@for_each(
    ("said", "configured", "window", "softcap"),
    [
        ({}, {}, None, None), ({}, {"sliding_window": 10}, 10, None),
        ({"window": 6}, {"sliding_window": 10}, 6, None),
        ({"window": "[6, 0]"}, {}, 7, None), ({"window": "[-1, 0]"}, {"sliding_window": 10}, 10, None),
        ({"causal": "false"}, {"sliding_window": 10}, None, None), ({}, {"sliding_window": TOKENS}, None, None),
        ({}, {"sliding_window": TOKENS - 1}, TOKENS - 1, None), ({}, {"attn_logit_softcapping": 3}, None, 3),
        ({"softcap": 5}, {"attn_logit_softcapping": 3}, None, 5), ({"softcap": 5}, {}, None, 5),
        ({"softcap": 5, "observed": True}, {"attn_logit_softcapping": 3}, None, 3),
    ],
)  # fmt: skip
def test_a_configuration_completes_what_the_file_does_not_say(
    said: dict[str, Any], configured: dict[str, Any], window: int | None, softcap: float | None, tmp_path: Path
) -> None:
    q, k = (np.ones((1, 1, TOKENS, D), np.float32) for _ in range(2))
    told = {"schema": "attn-tui/qk-2", "scale": 0.1, "causal": "true"} | said
    capture = opened(tmp_path, named({"q": q, "k": k}), **told)
    config = parse_configuration(json.dumps({"model_type": "mistral"} | configured), "c")
    subject = read_subject(capture, capture.layers[0], 0, None, config)
    assert (subject.facts.window, subject.facts.softcap) == (window, softcap)
    seen = PLACES[:, np.newaxis] - PLACES < (window or TOKENS)
    seen = seen & (CAUSAL | (told["causal"] == "false"))
    assert np.array_equal(
        np.broadcast_to(True if subject.seen is None else subject.seen, (1, TOKENS, TOKENS))[0], seen
    )


def test_other_layers_of_its_kind_say_what_is_usual_for_a_recorded_one(tmp_path: Path) -> None:
    layers: list[dict[str, Any]] = [
        {"scale": 0.1}, {"scale": 0.2, "name": "other"}, {"prescaled": [None, 1], "scale": 0.3}, {"scale": 0.4},
    ]  # fmt: skip
    told = {"schema": "attn-tui/qk-2", "causal": "false", "layers": [{"observed": True} | each for each in layers]}
    capture = opened(tmp_path, layered(4), **told)
    own = [read_subject(capture, layer, 0, None, None).facts.others for layer in capture.layers]
    assert own == [((3, 0.4),), (), ((0, 0.1), (3, 0.4)), ((0, 0.1),)]
    unseen = replace(capture.layers[0], observed=False)
    assert read_subject(capture, unseen, 0, None, None).facts.others == ()


YARN = 0.1 * math.log(40) + 1
LATENT = '{"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "kv_lora_rank": 512, "rope_scaling": %s}'


@for_each(
    ("text", "layer", "scale"),
    [
        ('{"head_dim": 128}', 0, 128**-0.5),
        ('{"hidden_size": 4096, "num_attention_heads": 32}', 0, 128**-0.5),
        ("{}", 0, 96**-0.5),  # the width of the head in the file
        ('{"head_dim": 128, "query_pre_attn_scalar": 144}', 0, 1 / 12),
        ('{"hidden_size": 768, "num_heads": [3, 6, 12, 24]}', 0, 96**-0.5),  # Swin: one number a stage
        ('{"attention_multiplier": 0.0078125, "hidden_size": 4096, "num_attention_heads": 32}', 0, 1 / 128),
        ('{"hidden_size": 768, "num_attention_heads": 12, "pos_att_type": ["p2c", "c2p"]}', 0, 192**-0.5),  # DeBERTa
        ('{"model_type": "gpt_neo", "hidden_size": 768, "num_heads": 12}', 0, 1.0),
        ('{"model_type": "gemma3n_text", "query_pre_attn_scalar": 256}', 0, 1.0),
        ('{"model_type": "gemma4", "text_config": {"model_type": "gemma4_text", "head_dim": 256}}', 0, 1.0),
        ('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "scale_attn_weights": false}', 0, 1.0),
        ('{"n_embd": 768, "n_head": 12, "scale_attn_by_inverse_layer_idx": true}', 3, 1 / 32),
        ('{"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "kv_lora_rank": 512}', 0, 192**-0.5),
        (
            '{"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "kv_lora_rank": 512, "rope_scaling": '
            '{"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0}}',
            0,
            192**-0.5 * YARN**2,
        ),
        ('{"attn_config": {"softmax_scale": 0.05}, "head_dim": 64}', 0, 0.05),
        ('{"model_type": "inkling", "head_dim": 64}', 0, 1 / 64),
        ('{"hidden_size": 768, "num_attention_heads": 12, "pos_att_type": "c2p"}', 0, 128**-0.5),
        (LATENT % '{"type": "yarn", "factor": 1, "mscale_all_dim": 1.0}', 0, 192**-0.5),
        ('{"head_dim": 64, "rope_scaling": {"type": "yarn", "factor": 40, "mscale_all_dim": 1}}', 0, 1 / 8),
        # One key of two says nothing.
        (LATENT % '{"factor": 40}', 0, 192**-0.5),
        (LATENT % '{"mscale_all_dim": 1.0}', 0, 192**-0.5),
        ('{"qk_rope_head_dim": 64, "head_dim": 128}', 0, 128**-0.5),
        ('{"qk_nope_head_dim": 64, "head_dim": 128}', 0, 128**-0.5),
        ('{"hidden_size": 4096}', 0, 96**-0.5),
    ],
)
def test_the_expected_scale(text: str, layer: int, scale: float) -> None:
    assert configured_scale(parse_configuration(text, "config.json"), layer, 96).multiplier == pytest.approx(scale)


@pytest.mark.parametrize(
    ("text", "prescaled", "expected"),
    [
        (None, 0.25, 1 / 8),
        ('{"head_dim": 64}', 0.25, 1 / 8),
        ('{"rope_scaling": {"rope_type": "yarn", "factor": 40}}', YARN**2, YARN**2 / 8),  # its amplitude is inside
        ('{"rope_scaling": {"rope_type": "yarn", "factor": 40}}', 0.25, 1 / 8),
    ],
)
def test_factors_inside_q_and_k_are_not_expected_again(text: str | None, prescaled: float, expected: float) -> None:
    given = None if text is None else parse_configuration(text, "config.json")
    found = expected_multiplier(StatedFacts(64, prescaled=prescaled), given)
    assert (found.multiplier, found.start, found.inside) == pytest.approx((expected, expected / prescaled, prescaled))
    assert expected_multiplier(StatedFacts(64, scale=0.5, prescaled=prescaled), None).multiplier == 0.5 * prescaled


def test_with_a_configuration_positions_that_are_not_known_leave_the_scale_unknown() -> None:
    given = parse_configuration('{"head_dim": 64}', "config.json")
    assert expected_multiplier(StatedFacts(64, unknown_positions="padding"), given).unknown == "padding"


@for_each(
    ("facts", "formula"),
    [
        (StatedFacts(64), "1/√64"),
        (StatedFacts(64, prescaled=0.25), "1/√64"),
        (StatedFacts(64, scale=1 / 64), "1/64"),
        (StatedFacts(64, scale=1 / 8, prescaled=1 / 8), "1/64"),
        (StatedFacts(64, scale=1 / 4, prescaled=1 / 2), "1/√64"),
        (StatedFacts(64, scale=0.126), ""),
        (StatedFacts(1, scale=1.0), ""),  # 1/√1 = 1/1 says nothing
    ],
)
def test_an_expectation_that_is_a_power_of_d_k_says_so(facts: StatedFacts, formula: str) -> None:
    found = expected_multiplier(facts, None)
    assert found.formula == formula
    assert found.says.endswith(f"× {found.multiplier:.4g} = {formula}" if formula else f"× {found.multiplier:.4g}")


@pytest.mark.parametrize("expect", [10**400, math.inf, math.nan])
def test_an_expected_number_that_is_none_is_refused(expect: float) -> None:
    with pytest.raises(InputError):
        expecting(expect)


@for_each(
    ("text", "windows"),
    [
        ('{"sliding_window": 512, "layer_types": ["sliding_attention", "full_attention"]}', [512, None, None]),
        ('{"sliding_window": 512, "layer_types": ["full_attention"], "model_type": "phi3"}', [None, 512, 512]),
        ('{"sliding_window": 512, "model_type": "mistral"}', [512] * 3), ('{"sliding_window": 512}', [None] * 3),
        ('{"sliding_window": 0, "model_type": "mistral"}', [None] * 3),
    ],
)  # fmt: skip
def test_windows_of_layers_are_read(text: str, windows: list[int | None]) -> None:
    assert [parse_configuration(text, "c").window_of(layer) for layer in range(3)] == windows


LONGROPE = '{"rope_scaling": {"rope_type": "longrope", "factor": %s}, "original_max_position_embeddings": %s}'
SCALED = '{"rope_type": "yarn", "factor": 40}'


@for_each(
    ("text", "name", "value"),
    [
        *((f'{{"{key}": 50}}', "softcap", 50)
          for key in ("attn_logit_softcapping", "attention_logit_cap", "conf_attention_logit_cap")),
        ('{"rope_theta": 1e4}', "rope_theta", 1e4),
        ('{"rope_theta": 1e4, "rope_parameters": {"rope_theta": 1e6}}', "rope_theta", 1e6),
        ('{"rope_parameters": {"full_attention": {"rope_theta": 1e6}, "rope_theta": 1e4}}', "rope_theta", 1e6),
        ('{"rotary_pct": 0.25}', "rotary_share", 0.25),
        ('{"rotary_pct": 0.25, "rope_parameters": {"partial_rotary_factor": 0.5}}', "rotary_share", 0.5),
        ('{"key_multiplier": 0.5, "qk_scale_factor": 3}', "inside", 1.5), ('{"qk_scale_factor": 3}', "inside", 3),
        ('{"rope_scaling": {"type": "yarn", "mscale": 0}}', "mscale", 0),
        ('{"rope_scaling": {"type": "yarn", "original_max_position_embeddings": 8}, "max_position_embeddings": 32}',
         "rope_factor", 4),
        ('{"rope_scaling": {"type": "yarn", "factor": 3, "original_max_position_embeddings": 8}, '
         '"max_position_embeddings": 32}', "rope_factor", 3),
        ('{"rope_scaling": {"type": "yarn"}, "max_position_embeddings": 32}', "rope_factor", None),
        ('{"rope_scaling": {"type": "yarn"}, "original_max_position_embeddings": 32}', "rope_factor", None),
        ('{"hidden_size": 768, "n_head": 12}', "width", 64), ('{"n_head": 12}', "width", None),
        ('{"d_kv": 96, "hidden_size": 768, "n_head": 12}', "width", 96),
        ('{"kv_lora_rank": 512, "qk_rope_head_dim": 64}', "latent_width", 576),
        *((text, "latent_width", None) for text in ('{"kv_lora_rank": 512}', '{"qk_rope_head_dim": 64}')),
        *((LONGROPE % (factor, original), "amplitude", amplitude) for factor, original, amplitude in (
            (4, 4096, math.sqrt(1 + math.log(4) / math.log(4096))), (0.5, 4096, 1), (4, 1, None), (4, "null", None),
            ("null", 4096, None))),
        *((f'{{"rope_scaling": {rope}}}', "amplitude", amplitude) for rope, amplitude in (
            ("null", None), ('{"rope_type": "linear", "factor": 40}', None), ('{"rope_type": "yarn"}', None),
            (SCALED, YARN), (f'{SCALED[:-1]}, "attention_factor": 1.25}}', 1.25),
            (f'{SCALED[:-1]}, "mscale": 1, "mscale_all_dim": 1}}', 1), (f'{SCALED[:-1]}, "mscale": 0.5}}', YARN))),
    ],
)  # fmt: skip
def test_keys_of_a_configuration_are_read(text: str, name: str, value: float | None) -> None:
    assert getattr(parse_configuration(text, "c"), name) == pytest.approx(value)


@for_each(
    "text",
    [
        "[]", "3", *(f'{{"head_dim": {value}}}' for value in ("0", "-1", "64.5", "1e16", '"x"', "true", '[64, "x"]')),
        '{"attention_multiplier": 0}', '{"attention_multiplier": 1e60}', '{"rope_scaling": {"mscale": -1}}',
    ],
)  # fmt: skip
def test_a_configuration_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^c: "):
        parse_configuration(text, "c")


@for_each(
    ("text", "states"),
    [
        ("{}", False), ('{"head_dim": 64}', False), ('{"model_type": "llama"}', True),
        ('{"attention_multiplier": 0.1}', True), ('{"query_pre_attn_scalar": 64}', True),
        ('{"scale_attn_weights": false}', True), ('{"scale_attn_weights": true}', False),
        ('{"attn_config": {"softmax_scale": 0.05}}', True), ('{"key_multiplier": 0.5}', True),
        ('{"log_scaling_n_floor": 8192}', True), ('{"model_type": "unheard_of"}', False),
        ('{"scale_attn_by_inverse_layer_idx": true}', True), ('{"model_type": "gpt_neo"}', True),
    ],
)  # fmt: skip
def test_a_configuration_states_the_scale_by_a_key_or_by_its_type_of_model(text: str, states: bool) -> None:
    assert parse_configuration(text, "c").states_scale == states


@for_each("expect", ["ssmax", "yarn", "llama4_position", "log(n)/sqrt(d)"])
def test_a_rule_of_more_than_the_width_and_the_layer_is_not_expected(expect: str) -> None:
    with pytest.raises(InputError, match="depends on more than d_k and the layer"):
        expecting(expect)


def test_what_is_expected_replaces_the_scale_of_a_configuration_alone() -> None:
    given, own = (parse_configuration(text, "c") for text in ('{"head_dim": 96}', '{"head_dim": 32}'))
    assert (expecting(None, given, own), expecting(None, None, own)) == (given, None)
    for configuration, width in (((given, own), 96), ((None, own), 32), ((None, None), 64)):
        found = expecting("1/d", *configuration)
        assert found is not None
        assert configured_scale(found, 0, 64).multiplier == pytest.approx(1 / width)
    layered = expecting("inverse_layer")
    assert layered is not None
    assert configured_scale(layered, 3, 64).multiplier == pytest.approx(1 / 32)


def test_the_configuration_of_the_file_decides_by_the_width_of_recorded_heads_alone() -> None:
    config = parse_configuration('{"head_dim": 32, "attention_multiplier": 0.5}', "c")
    for observed, expected in ((False, 0.5), (True, 1 / 8)):
        assert expected_multiplier(StatedFacts(64, config=config, observed=observed), None).multiplier == expected


def test_a_factor_of_the_configuration_that_is_not_inside_q_and_k_is_not_expected() -> None:
    given = parse_configuration('{"head_dim": 64, "key_multiplier": 0.5}', "c")
    for facts, expected in (
        (StatedFacts(64), 1 / 8),
        (StatedFacts(64, observed=True), 1 / 16),
        (StatedFacts(64, prescaled=0.5), 1 / 16),  # 1/√64 of what the keys arrive as
    ):
        assert expected_multiplier(facts, given).multiplier == pytest.approx(expected)


@for_each(
    ("text", "pieces"),
    [
        ("{", ("is not JSON",)),
        ("[1]", ("must be a JSON object",)),
        ('{"head_dim": "wide"}', ("'head_dim'", "a positive number", "'wide'")),
        ('{"head_dim": 12.5}', ("'head_dim'", "a whole number")),
        ('{"query_pre_attn_scalar": -1}', ("'query_pre_attn_scalar'", "-1")),
        ('{"attention_multiplier": 1e308}', ("'attention_multiplier'", "from 1e-50 to 1e+50", "1e+308")),
        ('{"rope_scaling": {"mscale": 1e308}}', ("rope_scaling.mscale", "from 1e-50 to 1e+50", "1e+308")),
        ('{"head_dim": 1' + "0" * 30 + "}", ("'head_dim'", "a whole number up to 1e+15", "1e+30")),
        *(
            ('{"head_dim": 1' + "0" * zeros + "}", ("a whole number of more than 308 digits",))
            for zeros in (400, 5000)
        ),
        ('{"head_dim": 64, "more": ' + "[" * 3000 + "]" * 3000 + "}", ("nested deeper than 100 levels",)),
        ('{"head_dim": 64, "head_dim": 128}', ("has 'head_dim' twice",)),
        (b'{"model_type": "\xff"}', ("is not UTF-8",)),
        ('{"rope_scaling": {"factor": true}}', ("rope_scaling.factor", "True")),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(text: str | bytes, pieces: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as refused:
        parse_configuration(text, "config.json")
    assert str(refused.value).startswith("config.json: ")
    assert all(piece in str(refused.value) for piece in pieces)
    assert "\n" not in str(refused.value)


@for_each(
    ("multiplier", "cause"),
    [
        (1.0, "scale-missing"), (1 / 64, "scale-twice"), (1 / 64, "scale-1-over-d"), (8.0, "scale-inverted"),
        (768**-0.5, "scale-d-model"), (12**-0.5, "scale-n-heads"), (8**-0.5, "scale-quarter"),
        (96**-0.5, "scale-n-keys"),
        (math.log2(math.e) / 8, "scale-base2"), (math.log(2) / 8, "scale-base2"), (1 / 32, "scale-layer"),
        (4 / 8, "scale-layer"), (1 / 24, "scale-layer"), (80**-0.5, "scale-padded"), (224**-0.5, "scale-fixed"),
        ((1 + 0.1 * math.log(8)) ** 2 / 8, "scale-yarn"), (8 / (8 + 0.8 * math.log(8)) ** 2, "scale-yarn"),
        (0.0777, "scale-other"),
    ],
)  # fmt: skip
def test_a_multiplier_has_the_names_of_the_rules_that_give_it(multiplier: float, cause: str) -> None:
    facts = StatedFacts(64, scale=1 / 8, layer=3, heads=12, d_model=768, n_heads=12, keys=96)
    found = names(multiplier, 1e-9, 1 / 8, facts, lambda candidate: math.isclose(candidate, multiplier, rel_tol=1e-9))
    assert cause in [name.cause for name in found]
    assert ("scale-other" in [name.cause for name in found]) == (cause == "scale-other")


def causes_of(multiplier: float, tolerance: float, facts: StatedFacts, expected: float = 1 / 8) -> dict[str, str]:
    """The words of each name of a multiplier, by its cause."""
    found = names(multiplier, tolerance, expected, facts, lambda x: math.isclose(x, multiplier, rel_tol=tolerance))
    return {name.cause: str(name.words) for name in found}


@for_each("text", ["{}", '{"hidden_size": 512}', '{"num_attention_heads": 8}'])
def test_a_configuration_that_says_half_of_a_rule_names_nothing(text: str) -> None:
    assert [*causes_of(0.0777, 1e-9, StatedFacts(64, config=parse_configuration(text, "c")))] == ["scale-other"]


def test_a_number_that_is_not_exact_is_no_constant_and_keeps_a_name_that_is_not_vague() -> None:
    assert [*causes_of(10_007**-0.5, 1e-7, StatedFacts(64))] == ["scale-fixed"]
    assert [*causes_of(10_007**-0.5, 5e-5, StatedFacts(64))] == ["scale-other"]
    assert "scale-other" not in causes_of(1 / 64, 1e-3, StatedFacts(64))


@for_each(
    ("inside", "says"),
    [
        ((0.5, 4.0), "q carries × 0.5 and k × 4"), ((2**0.5, 2**0.5), "q and k carry × 1.414 each"),
        ((2.0, 1.0), "q carries × 2"), ((1.0, 2.0), "k carries × 2"),
    ],
)  # fmt: skip
def test_a_factor_that_is_not_the_scale_is_placed(inside: tuple[float, float], says: str) -> None:
    found = causes_of(1 / 8, 1e-9, StatedFacts(64, prescaled=2.0, inside=inside), 1 / 16)
    assert found["prescale-extra"] == f"2 × the expected scale: {says}"


@for_each(
    ("multiplier", "factor", "says"),
    [(1 / 8, 1 / 8, "applied twice: q"), (0.5, 0.5, "why: q"), (4.0, 1 / 4, "not scaled: q"), (1.0, 0.5, "why: q")],
)
def test_what_q_contains_says_why_a_multiplier_is_another_one(multiplier: float, factor: float, says: str) -> None:
    facts = StatedFacts(64, prescaled=factor, inside=(factor, 1.0))
    assert str(other_scale(multiplier, 1 / 8 / factor, facts, [Name("scale-other", "why")]).says).startswith(says)
