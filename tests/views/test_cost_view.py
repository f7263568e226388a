"""The cost of a layer as lines of text, and beside that of other key heads, contexts and models."""

from dataclasses import replace

import pytest
from attn_tui.core.attention.cost import Layer, cost
from attn_tui.core.attention.presets import PRESETS, Preset
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import Line, line_width
from attn_tui.tui.views.numbers import binary, metric, percent
from attn_tui.tui.views.results.cost import (
    cache_lines,
    context_lines,
    cost_lines,
    flops_lines,
    matrix_lines,
    model_lines,
    screen_lines,
    sharing_lines,
)
from cases import for_each
from line_texts import texts_of

LARGEST = Layer(2**20, 2**14, 1, 2**14, 2**14, 0, 0, 0, "all", 2**14, 2**30, 2**20, "float64")


def texts(lines: list[Line]) -> list[str]:
    return ["".join(text for text, _ in line).rstrip() for line in lines]


def shown(layer: Layer, preset: Preset | None = None, width: int = 80, glyphs: Glyphs = UNICODE) -> str:
    return "\n".join(texts(cost_lines(cost(layer), width, glyphs, preset)))


def test_llama_3_8b() -> None:
    preset = PRESETS["llama-3-8b"]
    text = shown(preset.layer, preset)
    assert text.startswith("Llama 3 8B\nSource: meta-llama/Meta-Llama-3-8B, config.json.\n")
    assert "Grouped-query attention: 32 query heads share 8 key/value heads." in text
    assert "d_k 128 = d_model/heads = 4096/32; 1/√d_k multiplies scores by 0.08839." in text
    rows = {line.split("  ")[0].strip(): line.split() for line in text.splitlines()}
    assert rows["W_q"] == ["W_q", "4096", "×", "4096", "16,777,216", "—"]
    assert rows["W_k"] == ["W_k", "4096", "×", "1024", "4,194,304", "—"]
    assert rows["per layer"][-1] == "41,943,040"
    assert rows["32 layers"][-1] == "1,342,177,280"
    assert " ".join(rows["per token"]) == "per token 2 × 8 × 128 × 2 bytes × 32 layers 128 KiB"
    assert " ".join(rows["the context"]) == "the context 8,192 tokens 1 GiB"
    assert " ".join(rows["multi-head"]) == "multi-head would need 4 times as much 4 GiB"
    assert rows["projections"][-4:] == ["2.684", "G", "21.99", "T"]
    assert rows["q·k"][-4:] == rows["weights·v"][-4:] == ["2.147", "G", "8.797", "T"]
    assert rows["total"] == ["total", "6.979", "G", "39.58", "T"]
    assert "8,192 × 8,193/2" in " ".join(text.split())


def test_biases_are_counted_and_kinds_of_attention_described() -> None:
    lines = texts(matrix_lines(cost(PRESETS["qwen2.5-7b"].layer), UNICODE))
    assert [line.split()[-1] for line in lines[1:5]] == ["3,584", "512", "512", "—"]
    assert "Multi-head attention: 8 heads, each with its own keys and values." in shown(Layer())
    assert "Multi-query attention: 8 query heads share one key/value head." in shown(Layer(kv_heads=1))
    assert not any("multi-head" in line for line in texts(cache_lines(cost(Layer()), UNICODE)))
    assert "d_k 96, not d_model/heads = 512/8 = 64; 1/√d_k multiplies" in shown(Layer(d_k=96))
    assert "d_k 16, not d_model/heads = 512/7 = 73.14;" in shown(Layer(heads=7, d_k=16))


def test_texts_mask_and_notes_are_shown() -> None:
    text = " ".join(shown(Layer(batch=4, mask="none")).split())
    assert "4,096 tokens × 4 texts" in text
    assert "FLOPs are for one layer and 4 texts; a multiply–add counts as two." in text
    assert "all tokens make 4,096²." in text
    bert = PRESETS["bert-base"]
    assert "An encoder processes all tokens at once" in " ".join(shown(bert.layer, bert).split())
    assert shown(replace(bert.layer, heads=6), bert).startswith("BERT base, changed\n")


def test_columns_stay_aligned_for_the_largest_numbers() -> None:
    found = cost(LARGEST)
    for table in (matrix_lines(found, UNICODE), cache_lines(found, UNICODE), flops_lines(found, UNICODE)):
        assert len({line_width(line) for line in table}) == 1
    assert "9,223,939,402,571,448,320" in texts(matrix_lines(found, UNICODE))[-1]


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
