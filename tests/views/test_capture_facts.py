"""What the Capture pane says of a layer."""

from dataclasses import replace

from attn_tui.core.captures.capture import Layer
from attn_tui.core.captures.reader import open_capture, sample_path
from attn_tui.tui.panes.capture.view import layer_facts
from attn_tui.tui.views.glyphs import UNICODE

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
