"""Find the bug: captures made with one defect each, which the diagnosis must name."""

from pathlib import Path

import numpy as np
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.head import read_head
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.learning.bugs import BUGS, CAUSES, D_K, D_MODEL, SYMPTOMS, Bug, facts
from attn_tui.core.learning.card import bug_card
from attn_tui.core.learning.examine import examine_bug, write_safetensors
from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]

EXPECTED = {
    "port": "scale-missing",
    "fused": "scale-twice",
    "decoder": "causal-lost",
    "tutorial": "scale-d-model",
    "sharp": "healthy",
    "grouped": "gqa-tiled",
    "by-hand": "future-key",
    "served": "softcap-missing",
}


@pytest.mark.parametrize("bug", BUGS, ids=[bug.id for bug in BUGS])
def test_the_diagnosis_names_the_defect_and_the_learner_can_choose_it(bug: Bug, tmp_path: Path) -> None:
    found = examine_bug(bug, tmp_path / "bug.safetensors")
    assert found.cause == EXPECTED[bug.id]
    assert found.cause in bug.choices
    assert not set(found.also) & set(bug.choices), "two choices would be right"
    assert set(bug.choices) | set(found.also) <= set(CAUSES)
    assert len(set(bug.choices)) == len(bug.choices) <= 9


@pytest.mark.parametrize("bug", BUGS, ids=[bug.id for bug in BUGS])
def test_what_is_returned_differs_from_what_the_file_says_only_if_there_is_a_defect(bug: Bug, tmp_path: Path) -> None:
    found = examine_bug(bug, tmp_path / "bug.safetensors")
    assert list(found.symptoms) == list(SYMPTOMS)
    differs = False
    for measured, exact in found.symptoms.values():
        assert measured is not None
        assert measured.value is not None
        assert exact is not None
        differs |= abs(measured.value - exact) > 1e-6
    assert differs == (bug.said != bug.done)


def test_the_slope_is_the_multiplier_that_was_used(tmp_path: Path) -> None:
    slopes = {bug.id: examine_bug(bug, tmp_path / "bug.safetensors").symptoms["slope"].measured for bug in BUGS}
    wanted = {"port": 1.0, "fused": 1 / 32, "tutorial": 384**-0.5, "sharp": 32**-0.5, "decoder": 32**-0.5}
    for name, slope in wanted.items():
        found = slopes[name]
        assert found is not None
        assert found.value == pytest.approx(slope, rel=1e-4)


def test_the_facts_are_those_of_the_sample_and_of_the_capture(tmp_path: Path) -> None:
    layer = open_capture(sample_path()).layers[0]
    assert (layer.d_k, layer.heads * layer.d_k) == (D_K, D_MODEL)
    for bug in BUGS:
        examine_bug(bug, tmp_path / "bug.safetensors")
        capture = open_capture(tmp_path / "bug.safetensors")
        [made] = capture.layers
        assert (made.heads, made.kv_heads, made.d_k, capture.d_model) == (bug.heads, bug.kv_heads, D_K, D_MODEL)
        assert (made.causal is not None) == (bug.said.sees is not None)
        assert made.softcap == bug.said.softcap
        assert not capture.unused
        assert f"d_k {D_K}" in facts(bug)
        assert read_head(capture, made, bug.head).q.shape[-1] == D_K


def test_titles_and_stories_do_not_give_the_cause_away() -> None:
    for bug in BUGS:
        shown = f"{bug.id} {bug.title}".lower()
        assert not any(
            word in shown for word in ("scale", "twice", "d_model", "tiled", "soft-cap", "healthy", "causal")
        )


def test_a_card_has_the_symptoms_and_the_lesson(tmp_path: Path) -> None:
    card = bug_card(3, BUGS[2], examine_bug(BUGS[2], tmp_path / "bug.safetensors"))
    assert card.place == "b3"
    assert card.answer[0].startswith("The diagnosis: the causal mask was lost.")
    assert card.answer[-1] == BUGS[2].lesson
    assert "2 the causal mask was lost" in card.introduction[-1]


def test_the_file_is_one_that_safetensors_reads(tmp_path: Path) -> None:
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones((1, 2), np.float32).T}
    write_safetensors(tmp_path / "x.safetensors", arrays, {"schema": "x"})
    read = load_file(tmp_path / "x.safetensors")
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
