"""The cost of a layer as lines of text."""

from dataclasses import replace

from attn_tui.core.attention.cost import Layer, cost
from attn_tui.core.attention.presets import PRESETS, Preset
from attn_tui.tui.panes.heads.view import cache_lines, cost_lines, flops_lines, matrix_lines
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import Line, line_width
from cases import for_each

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


def test_biases_are_counted_for_each_matrix() -> None:
    lines = texts(matrix_lines(cost(PRESETS["qwen2.5-7b"].layer), UNICODE))
    assert [line.split()[-1] for line in lines[1:5]] == ["3,584", "512", "512", "—"]


def test_kinds_of_attention_are_described_in_words() -> None:
    assert "Multi-head attention: 8 heads, each with its own keys and values." in shown(Layer())
    assert "Multi-query attention: 8 query heads share one key/value head." in shown(Layer(kv_heads=1))
    assert not any("multi-head" in line for line in texts(cache_lines(cost(Layer()), UNICODE)))


def test_a_d_k_other_than_d_model_over_heads_is_named() -> None:
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


@for_each("preset", [None, *PRESETS.values()])
@for_each("glyphs", [UNICODE, ASCII])
def test_every_preset_fits_into_60_cells_and_into_ascii(preset: Preset | None, glyphs: Glyphs) -> None:
    layer = preset.layer if preset else Layer()
    lines = cost_lines(cost(layer), 60, glyphs, preset)
    assert max(map(line_width, lines)) <= 60
    if glyphs.ascii:
        assert all(line.isascii() and "?" not in line for line in texts(lines))


def test_columns_stay_aligned_for_the_largest_numbers() -> None:
    found = cost(LARGEST)
    for table in (matrix_lines(found, UNICODE), cache_lines(found, UNICODE), flops_lines(found, UNICODE)):
        assert len({line_width(line) for line in table}) == 1
    assert "9,223,939,402,571,448,320" in texts(matrix_lines(found, UNICODE))[-1]
