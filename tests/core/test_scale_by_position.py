"""Expected multipliers that depend on the position of the query: what a configuration says, and what q contains."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.configuration import configured_scale, parse_configuration
from attn_tui.core.diagnosis.multipliers import expected_multiplier
from attn_tui.core.diagnosis.reading import file_configuration, read_subject
from attn_tui.core.diagnosis.results import Verdict
from attn_tui.core.diagnosis.scale_keys import SCALE_KEYS, unapplied
from attn_tui.core.diagnosis.subject import StatedFacts
from attn_tui.core.diagnosis.verdict import diagnose
from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]

Array = Any
D, TOKENS, HEADS = 16, 40, 2
POSITIONS = np.arange(TOKENS)
LLAMA = {"model_type": "llama4_text", "head_dim": D, "attn_scale": 0.3, "floor_scale": 8, "num_hidden_layers": 4}
MINISTRAL = {
    "model_type": "ministral3",
    "head_dim": D,
    "rope_parameters": {"llama_4_scaling_beta": 0.3, "original_max_position_embeddings": 8},
}
OF_LLAMA = 1 + 0.3 * np.log1p(np.floor((POSITIONS + 1) / 8))
OF_MINISTRAL = 1 + 0.3 * np.log1p(np.floor(POSITIONS / 8))
ONES = np.ones(TOKENS)


def verdicts(
    folder: Path,
    used: Array,
    inside: Array | None,
    config: dict[str, Any] | None,
    layer: int = 3,
    kind: str = "lse",
    number: str = "float32",
    scales: Array | None = None,
    **said: Any,
) -> list[Verdict]:
    """The verdicts on heads whose q·k was multiplied by 1/√d_k and these factors of rows, of which q has `inside`."""
    rng = np.random.default_rng(7)
    q, k, v = (rng.normal(size=(1, HEADS, TOKENS, D)) for _ in range(3))
    factors = ONES if inside is None else inside
    z = (q @ k.mT) * (used / math.sqrt(D))[:, np.newaxis]
    z = np.where(POSITIONS[:, np.newaxis] >= POSITIONS, z, -np.inf)
    lse = np.log(np.exp(z).sum(-1))
    weights = np.exp(z - lse[..., np.newaxis])
    stored = {"q": q * factors[:, np.newaxis], "k": k, "v": v}
    stored[kind] = {"lse": lse, "weights": weights, "o": weights @ v}[kind]
    if inside is not None:
        stored["row_factors"] = inside.reshape(1, 1, TOKENS, 1)
    told: dict[str, Any] = {"schema": "attn-tui/qk-2", "causal": "true", "observed": "true"}
    if scales is None:
        told["scale"] = str(D**-0.5)
    else:
        stored["scales"] = scales.reshape(1, 1, TOKENS, 1)
    told |= {} if config is None else {"config": json.dumps(config)}
    arrays = {f"layers.{layer}.attn.{name}": array.astype(number) for name, array in stored.items()}
    save_file(arrays, folder / "capture.safetensors", {key: each for key, each in (told | said).items() if each})
    capture = open_capture(folder / "capture.safetensors")
    own = file_configuration(capture)
    return [diagnose(read_subject(capture, capture.layers[0], head, own, None)) for head in range(HEADS)]


def told(found: list[Verdict]) -> set[str]:
    return {each.cause if each.word == "cause" and each.cause else each.word for each in found}


@pytest.mark.parametrize("kind", ["lse", "weights", "o"])
@pytest.mark.parametrize(("config", "factors"), [(LLAMA, OF_LLAMA), (MINISTRAL, OF_MINISTRAL)])
def test_a_temperature_of_the_position_is_judged_in_the_product(
    kind: str, config: dict[str, Any], factors: Array, tmp_path: Path
) -> None:
    for inside in (factors, None):  # in q, or applied to the scores
        right = verdicts(tmp_path, factors, inside, config, kind=kind)
        assert told(right) == {"healthy"}
        assert {round(each.ratio or 0, 4) for each in right} == {1.0}
    wrong = verdicts(tmp_path, ONES, None, config, kind=kind)
    assert told(wrong) == {"scale-by-position"}
    assert all("(1 + 0.3 ln(1 + ⌊(pos" in each.says or "(1 + 0.3 ln(1 + ⌊pos" in each.says.replace("(pos)", "pos")
               for each in wrong)  # fmt: skip
    assert {round(each.multiplier or 0, 4) for each in wrong} == {D**-0.5}


def test_a_temperature_in_a_layer_that_has_none(tmp_path: Path) -> None:
    assert told(verdicts(tmp_path, ONES, None, LLAMA, layer=2)) == {"healthy"}
    wrong = verdicts(tmp_path, OF_LLAMA, OF_LLAMA, LLAMA, layer=2)
    assert told(wrong) == {"scale-by-position"}
    assert "multiplied by 1 to 1.538, which this layer is not expected to do" in wrong[0].says


def test_another_temperature_than_the_configured_one(tmp_path: Path) -> None:
    wrong = verdicts(tmp_path, OF_MINISTRAL, OF_MINISTRAL, LLAMA)
    assert told(wrong) == {"scale-by-position"}
    assert "and the configuration says × (1 + 0.3 ln(1 + ⌊(pos + 1)/8⌋))" in wrong[0].says


def test_a_wrong_scale_beside_the_right_temperature(tmp_path: Path) -> None:
    wrong = verdicts(tmp_path, OF_LLAMA / math.sqrt(D), OF_LLAMA, LLAMA)
    assert told(wrong) == {"scale-twice"}
    assert {round(each.multiplier or 0, 5) for each in wrong} == {1 / D}


def test_factors_of_rows_that_nothing_says_are_undecided(tmp_path: Path) -> None:
    found = verdicts(tmp_path, OF_LLAMA, OF_LLAMA, None)
    assert told(found) == {"undecided"}
    assert "multiplied by 1 to 1.538 before" in found[0].says
    other = verdicts(tmp_path, OF_LLAMA, OF_LLAMA, {"model_type": "unheard_of", "head_dim": D})
    assert told(other) == {"undecided"}


def test_multipliers_of_rows_as_recorded_are_no_expectation(tmp_path: Path) -> None:
    recorded: dict[str, Any] = {"scales": OF_LLAMA / math.sqrt(D)}
    found = verdicts(tmp_path, OF_LLAMA, None, None, **recorded)
    assert told(found) == {"undecided"}
    assert "each by its own number" in found[0].says
    assert told(verdicts(tmp_path, OF_LLAMA, None, LLAMA, **recorded)) == {"healthy"}
    plain = verdicts(tmp_path, OF_LLAMA, None, {"model_type": "llama", "head_dim": D}, **recorded)
    assert told(plain) == {"scale-by-position"}


def test_factors_rounded_to_the_format_of_q(tmp_path: Path) -> None:
    rounded = OF_LLAMA.astype(np.float16).astype(np.float64)
    assert told(verdicts(tmp_path, rounded, rounded, LLAMA, number="float16")) == {"healthy"}


def test_a_temperature_that_has_not_begun_to_grow(tmp_path: Path) -> None:
    assert told(verdicts(tmp_path, ONES, None, {"model_type": "llama4_text", "head_dim": D})) == {"healthy"}


def test_the_layers_of_a_temperature() -> None:
    every_fourth = parse_configuration(json.dumps(LLAMA), "config.json")
    assert [layer for layer in range(9) if every_fourth.growth_in(layer)] == [3, 7]
    listed = parse_configuration(json.dumps(LLAMA | {"no_rope_layers": [1, 0, 1]}), "config.json")
    assert [layer for layer in range(3) if listed.growth_in(layer)] == [1]
    assert "layer 3" in configured_scale(listed, 3, D).unknown
    off = parse_configuration(json.dumps(LLAMA | {"attn_temperature_tuning": False}), "config.json")
    assert off.growth is None


@pytest.mark.parametrize(
    ("config", "position", "factor"),
    [
        (LLAMA, 30, 1 + 0.3 * math.log(4)),
        (LLAMA, 31, 1 + 0.3 * math.log(5)),
        (MINISTRAL, 31, 1 + 0.3 * math.log(4)),
        (MINISTRAL, 32, 1 + 0.3 * math.log(5)),
        (
            {"log_scaling_n_floor": 4, "log_scaling_alpha": 0.2, "layer_types": ["hybrid"] * 4},
            9,
            1 + 0.2 * math.log(2.5),
        ),
        ({"log_scaling_n_floor": 4, "layer_types": ["hybrid"] * 4}, 2, 1.0),
        ({"llama_4_scaling": {"beta": 0.1, "original_max_position_embeddings": 8}}, 8, 1 + 0.1 * math.log(2)),
    ],
)
def test_the_factor_of_a_position(config: dict[str, Any], position: int, factor: float) -> None:
    growth = parse_configuration(json.dumps(config), "config.json").growth_in(3)
    assert growth is not None
    assert growth.factor(position) == pytest.approx(factor)


UNKNOWN = [
    ({"model_type": "qwen", "use_logn_attn": True}, "use_logn_attn"),
    ({"rope_parameters": {"llama_4_scaling_beta": 0.1}}, "llama_4_scaling_beta"),
    ({"log_scaling_n_floor": 4}, "log_scaling_n_floor"),
    ({"model_type": "swinv2"}, "swinv2"),
]


@pytest.mark.parametrize(("config", "key"), UNKNOWN)
def test_a_key_that_is_not_applied_makes_the_expectation_unknown(
    config: dict[str, Any], key: str, tmp_path: Path
) -> None:
    said = expected_multiplier(StatedFacts(D), parse_configuration(json.dumps(config), "config.json"))
    assert said.multiplier is None
    assert key in said.unknown
    for factor in (ONES, ONES / 2, OF_LLAMA):  # neither a pass nor a finding
        found = verdicts(tmp_path, factor, None, config, scale=None)
        assert told(found) == {"undecided"}
        assert all(key in each.says for each in found)
        assert {each.ratio for each in found} == {None}


def test_what_the_user_expects_overrides_a_key_that_is_not_applied(tmp_path: Path) -> None:
    config, _ = UNKNOWN[0]
    assert told(verdicts(tmp_path, ONES, None, config, expect="1/sqrt(d)")) == {"healthy"}
    assert told(verdicts(tmp_path, ONES / math.sqrt(D), None, config, expect="1/sqrt(d)")) == {"scale-twice"}


def test_a_mask_that_is_lost_is_found_although_the_scale_is_unknown(tmp_path: Path) -> None:
    found = verdicts(tmp_path, ONES, None, UNKNOWN[0][0], causal="false")
    assert told(found) == {"causal-extra"}


def test_keys_without_effect_do_not_count() -> None:
    keys = [key for row in SCALE_KEYS if not row.applied for key in row.keys]
    for neutral in (None, False, 0, 1, 1.0):
        assert unapplied(dict.fromkeys(keys, neutral)) == ()
    assert unapplied({"mup_attn_multiplier": 2.0, "use_logn_attn": True}) == ("use_logn_attn", "mup_attn_multiplier")


@pytest.mark.parametrize(
    ("config", "prescaled", "expected"),
    [
        ({"model_type": "falcon_h1", "head_dim": D, "key_multiplier": 0.5}, 0.5, D**-0.5 / 2),
        ({"model_type": "falcon_h1", "head_dim": D, "key_multiplier": 0.5}, 1.0, D**-0.5 / 2),
        ({"model_type": "muse_spark_text", "head_dim": D, "qk_scale_factor": 3.0}, 3.0, 3 * D**-0.5),
        ({"attn_config": {"softmax_scale": 0.5}}, 1.0, 0.5),
        ({"model_type": "inkling_text", "head_dim": D}, 1.0, 1 / D),
        ({"model_type": "pix2struct_text_model", "head_dim": D}, 1.0, 1.0),
    ],
)
def test_factors_of_the_configuration(config: dict[str, Any], prescaled: float, expected: float) -> None:
    own = parse_configuration(json.dumps(config), "config.json")
    facts = StatedFacts(D, prescaled=prescaled, observed=True, config=own)
    assert expected_multiplier(facts, None).multiplier == pytest.approx(expected)
    assert expected_multiplier(facts, None).start == pytest.approx(expected / prescaled)  # of the stored numbers


def test_the_amplitude_of_longrope() -> None:
    rope = {"rope_type": "longrope", "long_factor": [1.0], "short_factor": [1.0]}
    config = {"max_position_embeddings": 131072, "original_max_position_embeddings": 4096, "rope_scaling": rope}
    amplitude = math.sqrt(1 + math.log(32) / math.log(4096))
    found = parse_configuration(json.dumps(config | {"head_dim": D}), "config.json")
    assert found.amplitude == pytest.approx(amplitude)
    facts = StatedFacts(D, prescaled=amplitude**2, observed=True)
    assert expected_multiplier(facts, found).multiplier == pytest.approx(amplitude**2 * D**-0.5)
    assert expected_multiplier(facts, found).start == pytest.approx(D**-0.5)  # of numbers that contain it
