"""What the Capture pane says of a layer."""

from dataclasses import replace

from attn_tui.core.captures.capture import Layer, sample_path
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.statistics.measurement import Estimate
from attn_tui.tui.panes.capture.view import capture_lines, layer_facts, statistic_lines
from attn_tui.tui.views.glyphs import UNICODE
from attn_tui.tui.views.lines import line_width
from line_texts import texts_of

LAYER: Layer = open_capture(sample_path()).layers[0]


def test_the_scale_includes_what_q_and_k_have_already() -> None:
    assert "scale × 0.177" in layer_facts(LAYER, UNICODE)
    stored = replace(LAYER, scale=1.0, prescaled=(0.25, 0.5))
    assert "scale × 0.125, of which × 0.125 is in q and k" in layer_facts(stored, UNICODE)
    for scales in (replace(LAYER, scale=None, head_scales=(1.0,) * 12), replace(LAYER, scale=None, scales="scale")):
        assert "a scale for each head" in layer_facts(scales, UNICODE)
    assert "scale not given" in layer_facts(replace(LAYER, scale=None), UNICODE)


def test_everything_that_enters_softmax_is_named() -> None:
    layer = replace(LAYER, causal="top_left", window=(127, 0), mask="m", bias="alibi", sinks="sinks", rows="rows")
    facts = layer_facts(layer, UNICODE)
    for fact in ("causal", "window 127 before", "mask", "bias", "sink", "some queries of the text"):
        assert fact in facts.split(", "), fact
    assert "window 3 before, all after" in layer_facts(replace(LAYER, window=(3, None)), UNICODE)
    assert "chunks of 64" in layer_facts(replace(LAYER, chunk=64), UNICODE)
    assert "bias" not in layer_facts(LAYER, UNICODE)


def test_a_layer_of_several_files_is_named_after_its_file() -> None:
    assert layer_facts(LAYER, UNICODE).startswith("d_k 32, ")
    assert layer_facts(replace(LAYER, file="step-20.npz"), UNICODE).startswith("step-20.npz, d_k 32, ")


def test_the_statistics_of_a_head_are_all_that_have_a_value_or_the_leading_ones() -> None:
    names = ("logit_mean", "logit_std", "entropy", "max_weight", "dead_rows")
    measured = {name: Estimate(0.5, None) for name in names} | {"dead_rows": Estimate(0.0, None)}
    measured["entropy"] = Estimate(None, None)
    lines = [" ".join(line.split()) for line in texts_of(statistic_lines(measured, 30, 9, UNICODE))]
    assert lines == ["logit mean 0.5", "logit std 0.5", "max weight 50 %", "dead rows none"]
    fewer = statistic_lines(measured, 30, 3, UNICODE)
    assert [" ".join(line.split()) for line in texts_of(fewer)] == lines[1:]
    assert {line_width(line) for line in fewer} == {30}


def test_long_names_are_cut_in_the_middle_and_a_long_title_is_shortened() -> None:
    capture = open_capture(sample_path())
    for width, title in ((40, "layer 0 · head 3"), (14, "0/3")):
        lines = texts_of(capture_lines(capture, capture.layers[0], 3, {}, (0, 3), width, UNICODE))
        assert lines[0] == title
        assert max(map(len, lines)) <= width
        named = next(line for line in lines if line.startswith("sent"))
        assert named.endswith("L6-v2")
        assert ("…" in named) == (width < 38)
