"""The tables that the cost of a layer is compared with: key heads, contexts and models."""

from dataclasses import replace

import pytest
from attn_tui.core.attention.cost import Layer, cost
from attn_tui.core.attention.presets import PRESETS
from attn_tui.tui.panes.heads.tables import context_lines, model_lines, screen_lines, sharing_lines
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import line_width
from attn_tui.tui.views.numbers import binary, metric, percent
from cases import for_each
from line_texts import texts_of

GROUPED = PRESETS["llama-3-8b"].layer


@pytest.mark.parametrize(
    ("layer", "counts"),
    [
        (Layer(), [8, 4, 2, 1]),
        (GROUPED, [32, 16, 8, 4, 2, 1]),
        (Layer(d_model=71 * 64, heads=71, kv_heads=1), [71, 1]),
        (Layer(d_model=96, heads=96, kv_heads=32), [96, 48, 32, 24, 12, 6, 1]),
    ],
)
def test_other_key_heads_divide_the_heads_and_the_layers_own_is_marked(layer: Layer, counts: list[int]) -> None:
    title, _, *rows = texts_of(sharing_lines(cost(layer), UNICODE))
    assert title.strip() == "with other key heads"
    assert [int(row.replace("▌", " ").split()[0]) for row in rows] == counts
    (marked,) = [row for row in rows if row.startswith("▌")]
    assert int(marked[1:].split()[0]) == layer.key_heads
    for row, count in zip(rows, counts, strict=True):
        other = cost(replace(layer, kv_heads=count))
        assert other.layer.kind in row
        assert metric(other.all_parameters) in row
        assert binary(other.cache) in row


def test_the_share_of_attention_grows_with_the_context() -> None:
    rows = texts_of(context_lines(cost(GROUPED), 80, UNICODE))[2:]
    *rows, sentence = rows
    assert [int(row.replace("▌", " ").split()[0].replace(",", "")) for row in rows] == [
        1024, 4096, 8192, 16384, 65536, 262144, 1048576,
    ]  # fmt: skip
    for row in rows:
        flops = cost(replace(GROUPED, context=int(row.replace("▌", " ").split()[0].replace(",", "")))).next_token
        assert percent((flops.scores + flops.weighted_sum) / flops.total) in row
    bars = [row.count("█") for row in rows]
    assert bars == sorted(bars)
    even = int(sentence.split("from ")[1].split()[0].replace(",", ""))
    at, below = (cost(replace(GROUPED, context=n)).next_token for n in (even, even - 1))
    assert at.scores + at.weighted_sum >= at.projections
    assert below.scores + below.weighted_sum < below.projections


@for_each("name", PRESETS)
@for_each("height", [7, 20, 40])
def test_the_preset_is_among_the_models_shown(name: str, height: int) -> None:
    lines = texts_of(model_lines(PRESETS[name].layer, height, UNICODE, PRESETS[name]))
    assert len(lines) <= height
    (marked,) = [line for line in lines if line.startswith("▌")]
    assert PRESETS[name].model in marked
    hidden = len(PRESETS) + 1 - len(lines) + (height <= len(PRESETS))
    assert (f"{hidden} more models" in lines[-1]) == (height <= len(PRESETS))


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize(("width", "height"), [(60, 20), (90, 37), (166, 57), (240, 90)])
def test_tables_fit_the_screen_and_stay_in_place_from_model_to_model(glyphs: Glyphs, width: int, height: int) -> None:
    places = set[int]()
    for preset in (None, *PRESETS.values()):
        layer = preset.layer if preset else Layer()
        lines = screen_lines(cost(layer), width, height, glyphs, preset)
        assert max(map(line_width, lines)) <= width
        if height > 30:
            assert len(lines) <= height
        places |= {at for at, text in enumerate(texts_of(lines)) if "KV per token" in text}
    assert len(places) == (width > 150)
