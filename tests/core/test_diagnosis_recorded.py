"""Recorded multipliers are compared with what is intended, never with themselves; layers that disagree are named."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.captures.capture import Layer, sample_path
from attn_tui.core.captures.files import CaptureError
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.check import Limits, findings, measure
from attn_tui.core.diagnosis.configuration import parse_configuration
from attn_tui.core.diagnosis.disagreement import disagreements
from attn_tui.core.diagnosis.reading import file_configuration, read_subject
from attn_tui.core.diagnosis.results import Verdict
from attn_tui.core.diagnosis.verdict import diagnose
from attn_tui.core.message import plain
from capture_files import save
from evidence_files import TOKENS, WIDTH, attended

ROOT = WIDTH**-0.5
LAYERS = tuple(replace(layer, name=f"a.{layer.index}") for layer in open_capture(sample_path()).layers[:4])


def verdict(path: Path, config: str | None = None, own: str | None = None) -> Verdict:
    capture = open_capture(path)
    given, inside = (None if text is None else parse_configuration(text, "config.json") for text in (config, own))
    return diagnose(read_subject(capture, capture.layers[0], 0, inside, given), given)


def recorded(folder: Path, scale: float, **said: Any) -> Path:
    return attended(folder, "lse", {"scale": scale}, {"scale": scale, "observed": True, **said})


def test_a_recorded_multiplier_that_is_not_1_over_root_d_k_is_told_and_no_cause(tmp_path: Path) -> None:
    path = recorded(tmp_path, 1 / WIDTH)
    found = verdict(path)
    assert (found.word, found.cause) == ("undecided", None)
    assert "× 0.125, " in found.says
    assert "1/√8 is × 0.3536" in found.says
    assert (found.multiplier, found.expected.multiplier) == (pytest.approx(1 / WIDTH, rel=1e-5), ROOT)
    assert found.suspect is not None
    assert (found.suspect.cause, found.suspect.also[0]) == ("scale-twice", "scale-1-over-d")
    capture = open_capture(path)
    [*_, (_, figures)] = measure(capture, capture.layers[0], 0, None, None)
    assert figures is not None
    assert findings([figures], Limits(min_file_entropy=0)) == []
    assert verdict(recorded(tmp_path, ROOT)).word == "healthy"


@pytest.mark.parametrize(
    ("said", "beside"),
    [
        ({"head_scales": [1.0, ROOT, ROOT, ROOT]}, {}),
        ({}, {"scales": np.array([1.0, ROOT, ROOT, ROOT], np.float32)}),
        ({}, {"scales": np.ones((2, 4, TOKENS, 1), np.float32)}),
    ],
)
def test_recorded_multipliers_of_heads_or_rows_are_not_what_was_intended(
    said: dict[str, Any], beside: dict[str, Any], tmp_path: Path
) -> None:
    path = attended(tmp_path, "lse", {"scale": 1.0}, {"scale": None, "observed": True, **said}, beside=beside)
    found = verdict(path)
    assert (found.word, found.also[0], found.expected.multiplier) == ("undecided", "scale-missing", ROOT)
    assert verdict(path, own='{"model_type": "llama", "head_dim": 8}').cause == "scale-missing"
    path = attended(tmp_path, "lse", {"scale": 1.0}, {"scale": None, **said}, beside=beside)
    assert verdict(path).word == "healthy", "a file that was not recorded says what is intended"


def test_a_factor_inside_q_is_part_of_the_product(tmp_path: Path) -> None:
    """What is told is what q·k was multiplied by in all: what q contains times what attention multiplied by."""
    for inside, applied, cause, numbers in (
        (ROOT, ROOT, "scale-twice", ("× 0.125", "q arrives × 0.3536", "× 0.3536 again")),
        (8**0.5, ROOT, "scale-missing", ("× 1", "q arrives × 2.828", "attention's × 0.3536")),
        (ROOT, 1.0, None, ("× 0.3536",)),
    ):
        capture = open_capture(
            attended(
                tmp_path, "lse", {"scale": applied}, {"scale": applied, "observed": True, "prescaled": [inside, 1]}
            )
        )
        found = diagnose(read_subject(capture, capture.layers[0], 0, None, None))
        assert found.multiplier == pytest.approx(inside * applied, rel=1e-5)
        assert (found.expected.multiplier, found.expected.inside) == (pytest.approx(ROOT), pytest.approx(inside))
        assert (found.suspect.cause if found.suspect else None) == cause
        assert all(number in found.says for number in numbers)


def test_a_file_that_was_not_recorded_says_what_is_expected(tmp_path: Path) -> None:
    assert verdict(attended(tmp_path, "lse", {"scale": 1 / WIDTH}, {"scale": 1 / WIDTH})).word == "healthy"


def test_a_file_says_what_is_intended_whatever_was_recorded(tmp_path: Path) -> None:
    for scale, cause in ((1 / WIDTH, "scale-twice"), (ROOT, None)):
        capture = replace(open_capture(recorded(tmp_path, scale)), expect=plain("1/sqrt(d)"))
        found = diagnose(read_subject(capture, capture.layers[0], 0, file_configuration(capture), None))
        assert (found.cause, found.expected.words) == (cause, "1/sqrt(d), as intended")


@pytest.mark.parametrize("where", ["config", "own"])
def test_a_recorded_multiplier_is_compared_with_a_configuration(where: str, tmp_path: Path) -> None:
    path = recorded(tmp_path, 1 / WIDTH)
    assert verdict(path, **{where: '{"model_type": "llama", "head_dim": 8}'}).cause == "scale-twice"
    assert verdict(path, **{where: '{"head_dim": 8, "attention_multiplier": 0.125}'}).word == "healthy"


def test_a_recorded_configuration_of_heads_of_another_width_is_not_the_expectation(tmp_path: Path) -> None:
    path = recorded(tmp_path, ROOT)
    assert verdict(path, own='{"head_dim": 32}').word == "healthy"
    assert verdict(path, own='{"head_dim": 32, "attention_multiplier": 0.5}').word == "healthy"


def test_a_recorded_configuration_without_widths_is_the_expectation(tmp_path: Path) -> None:
    found = verdict(recorded(tmp_path, ROOT), own='{"attention_multiplier": 0.125}')
    assert (found.word, found.expected.multiplier) == ("cause", 0.125)


@pytest.mark.parametrize(
    ("own", "found"),
    [
        ({"model_type": "qwen2_vl_text", "head_dim": 8}, "cause"),
        ({"model_type": "sudoku", "head_dim": 8}, "undecided"),
        (
            {"model_type": "sudoku", "head_dim": 8, "encoder_config": {"model_type": "bert", "head_dim": 8}},
            "undecided",
        ),
        ({"model_type": "sudoku", "head_dim": 8, "decoder_config": {"model_type": "bert", "head_dim": 8}}, "cause"),
    ],
)
def test_only_known_types_of_models_expect_a_scale_that_nobody_states(
    own: dict[str, Any], found: str, tmp_path: Path
) -> None:
    path = recorded(tmp_path, 1 / WIDTH, name="decoder.0")
    assert verdict(path, own=json.dumps(own)).word == found


@pytest.mark.parametrize(
    ("said", "how"),
    [
        ({"weights_dropout": 0.1}, "dropout 0.1"),
        ({"weights_changed": ["sub", "relu"]}, "sub, relu"),
        ({"weights_followed": False}, "not followed"),
    ],
)
def test_outputs_of_weights_that_were_changed_are_not_judged(said: dict[str, Any], how: str, tmp_path: Path) -> None:
    found = verdict(attended(tmp_path, "o", {"scale": 1.0}, {"observed": True, **said}))
    assert (found.word, how in found.says) == ("no-evidence", True)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"weights_dropout": 0.1}, "healthy"),
        ({"weights_changed": ["relu"]}, "undecided"),
        ({"weights_followed": False}, "undecided"),
    ],
)
def test_scores_are_judged_whatever_became_of_the_weights(
    said: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    assert verdict(attended(tmp_path, "lse", {}, {"observed": True, **said})).word == expected
    wrong = attended(tmp_path, "lse", {"scale": 1.0}, {"observed": True, **said})
    assert verdict(wrong, '{"head_dim": 8}').cause == "scale-missing"


@pytest.mark.parametrize(
    "note",
    [
        "the weights were not multiplied by values along the keys",
        "between softmax and the values: relu",
        "softmax runs over the queries",
    ],
)
@pytest.mark.parametrize("kind", ["lse", "o"])
def test_the_words_of_a_note_decide_nothing(note: str, kind: str, tmp_path: Path) -> None:
    found = verdict(attended(tmp_path, kind, {}, {"observed": True, "notes": note}))
    assert found.word == "healthy"


@pytest.mark.parametrize(
    ("kind", "done", "found"),
    [
        ("o", {"over_queries": True}, ("cause", "softmax-axis")),
        ("weights", {"over_queries": True}, ("cause", "softmax-axis")),
        ("o", {}, ("undecided", None)),
        ("lse", {}, ("undecided", None)),
    ],
)
def test_softmax_over_the_queries_is_a_mistake_only_where_evidence_proves_it(
    kind: str, done: dict[str, Any], found: tuple[str, str | None], tmp_path: Path
) -> None:
    said = verdict(attended(tmp_path, kind, done, {"observed": True, "softmax_axis": "queries"}))
    assert (said.word, said.cause) == found
    assert "over the queries" in said.says or "over queries" in said.says


def test_scores_that_were_not_finite_are_named_with_their_number(tmp_path: Path) -> None:
    said = {"observed": True, "not_finite": [[3, 256], *[[0, 256]] * 3], "scores": "float16"}
    found = verdict(attended(tmp_path, "lse", {}, said))
    assert (found.cause, found.findings[0].stage) == ("not-finite", "qk")
    assert "3 of 1,024 scores of the layer are NaN or infinite" in found.says
    assert verdict(attended(tmp_path, "lse", {}, said | {"not_finite": [[0, 256]] * 4})).word == "healthy"


@pytest.mark.parametrize(
    "said",
    [
        {"weights_dropout": 1.5},
        {"weights_changed": "relu"},
        {"weights_followed": "perhaps"},
        {"not_finite": [[3, 2]]},
        {"not_finite": [3]},
        {"not_finite": [[1, 2], [0, 2]]},
    ],
)
def test_facts_that_are_not_understood_are_refused(said: dict[str, Any], tmp_path: Path) -> None:
    [key] = said
    with pytest.raises(CaptureError, match=key):
        verdict(attended(tmp_path, "lse", {}, said))


def test_queries_and_keys_alone_tell_that_float16_would_overflow(tmp_path: Path) -> None:
    q, k = np.ones((2, 1, 1, 4, 4), np.float16)
    q[0, 0, 2], k[0, 0, 1] = 200, 100
    for size, note in ((1.0, "q·k is up to 80,000, and float16 ends at 65,504"), (0.8, "")):
        path = save(tmp_path / "x.safetensors", {"q": q * np.float16(size), "k": k})
        found = verdict(path)
        assert found.word == "no-evidence"
        assert (note in found.note) if note else not found.note


def test_a_scale_of_all_heads_together_is_that_of_the_model(tmp_path: Path) -> None:
    assert verdict(attended(tmp_path, "lse", {"scale": (4 * WIDTH) ** -0.5})).cause == "scale-d-model"


def test_a_soft_cap_that_the_configuration_has_and_the_recording_lacks_is_missing(tmp_path: Path) -> None:
    path = recorded(tmp_path, ROOT)
    assert verdict(path, own='{"head_dim": 8, "attn_logit_softcapping": 1}').cause == "softcap-missing"


def test_the_hidden_size_of_a_given_configuration_names_the_cause(tmp_path: Path) -> None:
    path = recorded(tmp_path, 128**-0.5)
    found = verdict(path, '{"head_dim": 8, "hidden_size": 128, "num_attention_heads": 16}')
    assert (found.cause, found.also[0]) == ("scale-d-model", "scale-fixed")


def changed(number: int, **values: Any) -> tuple[Layer, ...]:
    return tuple(replace(layer, **values) if layer.index == number else layer for layer in LAYERS)


def test_the_layer_that_disagrees_with_the_others_is_named() -> None:
    assert disagreements(LAYERS) == []
    assert disagreements(changed(1, scale=1 / 32)) == ["layer 1 is × 0.03125, the others × 0.1768"]
    assert disagreements(changed(2, causal="top_left")) == ["layer 2 is causal, the others not causal"]
    assert disagreements(changed(3, softcap=5.0)) == ["layer 3 is capped at 5, the others without soft-cap"]


def test_layers_that_differ_as_a_configuration_or_their_width_explains_do_not_disagree() -> None:
    inverse = parse_configuration('{"head_dim": 32, "scale_attn_by_inverse_layer_idx": true}', "config.json")
    divided = [replace(layer, scale=32**-0.5 / (layer.index + 1)) for layer in LAYERS]
    assert disagreements(divided, inverse) == []
    for count in (3, 4):
        [text] = disagreements(divided[:count])
        assert re.findall(r"× ([.\d]+)", text) == ["0.1768", "0.08839", "0.05893", "0.04419"][:count]
        assert not re.search(r"layer \d", text), "none is usual"
    assert disagreements(changed(1, d_k=128, scale=128**-0.5)) == []
    typed = parse_configuration('{"layer_types": ["sliding_attention", "full_attention"]}', "config.json")
    windowed = [replace(layer, causal="top_left", window=(15, 0) if layer.index == 2 else None) for layer in LAYERS]
    assert disagreements(windowed) == ["layer 2 is causal, window of 16 keys, the others causal, no window"]
    assert disagreements(windowed, typed) == []


def test_a_pattern_that_repeats_is_a_design_and_one_layer_is_not() -> None:
    def windowed(*numbers: int) -> list[Layer]:
        layers = [replace(LAYERS[0], position=i, index=i, name=f"layers.{i}", causal="top_left") for i in range(6)]
        return [replace(each, window=(15, 0)) if each.index in numbers else each for each in layers]

    assert disagreements(windowed(0, 2, 4)) == []
    assert disagreements(windowed(2, 5)) == []
    for numbers in ((2,), (0, 1), (1, 3)):
        [text] = disagreements(windowed(*numbers))
        assert "window of 16 keys" in text


def test_calls_without_the_name_of_a_module_may_differ() -> None:
    calls = [replace(LAYERS[0], position=i, index=i, name=f"call {i}") for i in range(4)]
    assert disagreements([replace(calls[0], causal="top_left"), *calls[1:]]) == []


def test_layers_of_another_kind_may_differ() -> None:
    other = changed(1, name="b.1", causal="top_left")
    assert disagreements(other) == []
