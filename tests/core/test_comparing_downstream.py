"""After the first layer that differs, other q, k and v follow from it; faults of later layers are still found."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import attn_tui
import numpy as np
import pytest
from attn_tui.core.diagnosis.comparing.compare import compare
from attn_tui.core.diagnosis.comparing.results import Comparison, HeadComparison, downstream_words, same_before
from pairs import D_K, HEADS, TOKENS, causal, written
from stacks import ROOT, Faults, stack

TWICE: dict[str, Any] = {"said_scale": ROOT, "scale": 1 / D_K}
INSIDE: dict[str, Any] = {"inside": ROOT, "scale": ROOT}


def compared(faults: Faults, folder: Path, *evidence: str) -> Comparison:
    """A run with faults against the one without."""
    good = written(stack({}, *evidence), folder / "a.safetensors")
    return compare(good, written(stack(faults, *evidence), folder / "b.safetensors"))


def states(each: HeadComparison) -> dict[str, str]:
    return {stage.name: stage.state for stage in each.stages}


def layers(heads: tuple[HeadComparison, ...] | list[HeadComparison]) -> list[int]:
    """The layers of heads, all of whose heads have to be there."""
    found = [each.layer.index for each in heads]
    assert all(found.count(index) == HEADS for index in found)
    return sorted(set(found))


def own(found: Comparison) -> list[tuple[int, str]]:
    """The layers with a first difference of their own, and its stage."""
    return sorted({(each.layer.index, each.first.name) for each in found.heads if each.first is not None})


@pytest.mark.parametrize("evidence", [("lse",), ("weights",), ("o",), ("lse", "weights", "o")])
def test_a_fault_of_layer_0_alone_is_told_of_layer_0_alone(evidence: tuple[str, ...], tmp_path: Path) -> None:
    found = compared({0: TWICE}, tmp_path, *evidence)
    assert own(found) == [(0, "multiplier")]
    assert layers(found.downstream) == [1, 2, 3]
    assert found.differs
    for each in found.downstream:
        seen = states(each)
        assert seen["qk"] == "downstream"
        assert {seen[name] for name in ("multiplier", "softcap", "bias", "mask", "sink")} == {"same"}
        assert {seen[name] for name in evidence} == {"downstream"}
        assert seen["v"] == ("downstream" if "o" in evidence else "not-compared")
    words = downstream_words(found)
    assert "1–3" in words
    assert f"{3 * HEADS} heads" in words
    assert "layer 0" in words
    assert (": q, k and v differ" if "o" in evidence else ": q and k differ") in words
    assert same_before(found) == ""


def test_layers_before_the_first_difference_are_the_same_and_only_later_ones_downstream(tmp_path: Path) -> None:
    found = compared({2: TWICE}, tmp_path)
    assert own(found) == [(2, "multiplier")]
    assert layers(found.downstream) == [3]
    assert "0 and 1" in same_before(found)
    assert "layer 2" in downstream_words(found)


def test_the_same_runs_have_nothing_downstream(tmp_path: Path) -> None:
    found = compared({}, tmp_path)
    assert not found.differs
    assert (found.downstream, downstream_words(found), same_before(found)) == ((), "", "")


@pytest.mark.parametrize(
    ("second", "stage", "product"),
    [
        ({"said_scale": ROOT, "scale": 1.0}, "multiplier", 1.0),
        (INSIDE, "multiplier", 1 / D_K),
        ({"inside": 1 / ROOT, "scale": ROOT}, "multiplier", 1.0),
        ({"seen": causal(), "causal": "top-left"}, "mask", ROOT),
        ({"softcap": 1.0, "said_softcap": None}, "softcap", ROOT),
        ({"sink": 2.0}, "sink", ROOT),
        ({"whole": 0.5}, "o", ROOT),
    ],
)
def test_a_second_fault_in_a_later_layer_is_still_found(
    second: dict[str, Any], stage: str, product: float, tmp_path: Path
) -> None:
    evidence = ("lse", "o") if "whole" in second else ("lse", "weights", "o")
    found = compared({0: TWICE, 2: second}, tmp_path, *evidence)
    assert own(found) == [(0, "multiplier"), (2, stage)]
    assert layers(found.downstream) == [1, 3]
    of_second = [each for each in found.heads if each.layer.index == 2]
    for each in of_second:
        assert states(each)["qk"] == "downstream"
        assert each.reference is not None
        assert each.test is not None
        assert each.reference.multiplier == pytest.approx(ROOT, rel=1e-3)
        assert each.test.multiplier == pytest.approx(product, rel=1e-3)


def test_a_factor_that_moved_into_q_of_a_later_layer_is_no_second_fault(tmp_path: Path) -> None:
    found = compared({0: TWICE, 2: {"inside": ROOT, "scale": 1.0}}, tmp_path)
    assert own(found) == [(0, "multiplier")]
    assert layers(found.downstream) == [1, 2, 3]


def test_other_keys_of_the_first_layer_are_a_difference_of_their_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    good = stack({})
    bad = stack({})
    for layer in bad.layers:
        layer.k = layer.k + rng.normal(size=layer.k.shape)
    found = compare(written(good, tmp_path / "a.safetensors"), written(bad, tmp_path / "b.safetensors"))
    assert own(found) == [(0, "qk")]
    assert layers(found.downstream) == [1, 2, 3]


def test_json_has_the_state_and_counts_it(tmp_path: Path) -> None:
    one, other = (tmp_path / f"{name}.safetensors" for name in "ab")
    written(stack({}), one)
    written(stack({0: TWICE}), other)
    said = attn_tui.compare(one, other).to_dict()
    assert said["stages"]["qk"]["downstream"] == 3 * HEADS
    assert said["stages"]["multiplier"]["differs"] == HEADS
    heads = {(each["layer"], each["head"]): each for each in said["heads"]}
    assert heads["1", 0]["stages"]["qk"]["state"] == "downstream"
    assert heads["1", 0]["first"] is None
    assert heads["0", 0]["first"] == "multiplier"
    multipliers = [heads["0", 0][side]["multiplier"] for side in ("reference", "test")]
    assert multipliers == pytest.approx([ROOT, 1 / D_K], rel=1e-3)


def test_a_factor_inside_q_is_part_of_the_product_also_with_another_text(tmp_path: Path) -> None:
    good = written(stack({}), tmp_path / "a.safetensors")
    for inside, scale, faults in ((ROOT, 1.0, []), (ROOT, ROOT, [(2, "multiplier")])):
        other = replace(stack({2: {"inside": inside, "scale": scale}}), tokens=["another"] * TOKENS)
        found = compare(good, written(other, tmp_path / "b.safetensors"))
        assert own(found) == faults
        products = [each.test.multiplier for each in found.heads if each.layer.index == 2 and each.test]
        assert products == pytest.approx([inside * scale] * HEADS, rel=1e-3)
