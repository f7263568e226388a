"""The verdict on a whole file, in a line."""

from collections.abc import Mapping
from dataclasses import replace

from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.heads import file_rule, measure_head
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.heads.summary import file_summary
from attn_tui.core.diagnosis.results import Expected, Finding, Verdict
from attn_tui.core.statistics.measurement import Estimate

CAPTURE = open_capture(sample_path())
LAYERS = CAPTURE.layers[:2]
SCALE = LAYERS[0].scale or 0.0
EXPECTED = Expected(SCALE, "the file")
HEALTHY = Verdict("healthy", "as expected", EXPECTED, evidence="lse", multiplier=SCALE, misfit=0.8)
TWICE = Finding("scale-twice", "the scale was twice", ("scale-1-over-d",))
WRONG = Verdict("cause", TWICE.says, EXPECTED, (TWICE,), (), "lse", SCALE**2, misfit=0.5)


def measured(layers: int = 2) -> dict[tuple[int, int], Mapping[str, Estimate] | None]:
    return {
        (layer.position, head): measure_head(CAPTURE, layer, head, [file_rule(layer)]).columns[0].measured
        for layer in LAYERS[:layers]
        for head in range(layer.heads)
    }


def test_without_evidence_it_says_that_q_and_k_cannot_tell() -> None:
    long, short = file_summary(LAYERS, measured(), {})
    assert long == (
        "scale × 0.1768 by the file: q and k alone cannot tell which was used · 1 saturated · 1 one-hot · 3 "
        "saturating · 6 sinks"
    )
    assert short == "file says × 0.1768, no evidence · 1 saturated · 1 one-hot · 3 saturating · 6 sinks"
    bare = [replace(layer, scale=None) for layer in LAYERS]
    assert file_summary(bare, {}, {})[1] == "no evidence of the scale"
    assert file_summary(bare, {}, {})[0] == "no scale in the file: q and k alone cannot tell which was used"


def test_evidence_that_agrees_names_the_scale_its_source_and_the_misfit() -> None:
    verdicts = {(0, 0): HEALTHY, (1, 3): replace(HEALTHY, misfit=0.4)}
    layers = [replace(layer, evidence=("lse",)) for layer in LAYERS]
    told = file_summary(layers, {}, verdicts)[0]
    assert told == "all 2 layers: scale × 0.1768 = 1/√d_k, as the file says (lse, misfit 0.8)"
    configured = {(0, 0): replace(HEALTHY, expected=replace(EXPECTED, words="the configuration, 1/√32"))}
    assert "as configured" in file_summary(layers, {}, configured)[0]
    assumed = {(0, 0): replace(HEALTHY, expected=replace(EXPECTED, assumed=True))}
    assert "as assumed" in file_summary(layers, {}, assumed)[0]
    undecided = {(0, 0): replace(HEALTHY, verdict="undecided")}
    assert "does not determine the scale" in file_summary(layers, {}, undecided)[0]
    assert file_summary(layers, {}, {})[0] == "judging the evidence"


def test_a_contradiction_comes_first_with_its_cause() -> None:
    verdicts = {(0, head): WRONG if head < 3 else HEALTHY for head in range(12)}
    told = file_summary(LAYERS, {}, verdicts)[0]
    assert told == "3 of 12 heads: scale-twice, scale × 0.03125 = 1/d_k, not × 0.1768 (or scale-1-over-d)"
    several = {**verdicts, (0, 0): replace(WRONG, multiplier=SCALE / 2)}
    told = file_summary(LAYERS, {}, several)[0]
    assert told == "3 of 12 heads: scale-twice, multiplier 0.177 to 0.5 × expected (or scale-1-over-d)"
    every = {(0, head): WRONG for head in range(12)}
    assert file_summary(LAYERS, {}, every)[0].startswith("all 12 heads: scale-twice")
    other = {**verdicts, (1, 5): replace(WRONG, findings=(replace(TWICE, cause="sink-missing"),), multiplier=SCALE)}
    assert "; 1 with other causes" in file_summary(LAYERS, {}, other)[0]
    masked = {(0, 0): HEALTHY, (1, 5): replace(WRONG, findings=(Finding("future-key", ""),), multiplier=SCALE)}
    assert file_summary(LAYERS, {}, masked)[0] == "1 of 2 heads: future-key, first in layer 1 head 5"


def test_healthy_and_unreadable_heads_are_counted() -> None:
    found = measured(1)
    healthy = found[0, 0]
    assert file_summary(LAYERS, {(0, 0): healthy}, {})[0].endswith("· healthy so far")
    every = {(position, head): healthy for position in range(2) for head in range(12)}
    assert file_summary(LAYERS, every, {})[0].endswith("· all heads healthy")
    assert file_summary(LAYERS, {(0, 0): None}, {})[0].endswith("· 1 unreadable")
