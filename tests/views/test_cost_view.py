"""The cost of a layer as lines of text, and beside that of other key heads, contexts and models."""

from dataclasses import replace

import pytest
from attn_tui.core.attention.cost import LayerShape, cost
from attn_tui.core.attention.presets import PRESETS, Preset
from attn_tui.core.tables.cost import cost_blocks, variants
from attn_tui.core.tables.formats import binary, metric
from attn_tui.core.tables.table import TextGrid
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.grid import block_lines
from attn_tui.tui.views.lines import line_width
from line_texts import texts_of

LARGEST = LayerShape(2**20, 2**14, 1, 2**14, 2**14, 0, 0, 0, "all", 2**14, 2**30, 2**20, "float64")


def shown(layer: LayerShape, preset: Preset | None = None) -> str:
    return "\n".join(map(str.rstrip, texts_of(block_lines(cost_blocks(cost(layer), preset), 80, UNICODE))))


def test_llama_3_8b() -> None:
    preset = PRESETS["llama-3-8b"]
    text = shown(preset.layer, preset)
    assert text.startswith("Llama 3 8B\nSource: meta-llama/Meta-Llama-3-8B, config.json.\n")
    assert "Grouped-query attention: 32 query heads share 8 key/value heads." in text
    assert "d_k 128 = d_model/heads = 4096/32; 1/√d_k multiplies scores by 0.08839." in text
    rows = {line.split("  ")[0].strip(): line.split() for line in text.splitlines()}
    assert rows["W_q"] == ["W_q", "4096", "×", "4096", "16,777,216", "0"]
    assert rows["W_k"] == ["W_k", "4096", "×", "1024", "4,194,304", "0"]
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
    lines = shown(PRESETS["qwen2.5-7b"].layer).splitlines()
    assert [line.split()[-1] for line in lines if line.startswith("W_")] == ["3,584", "512", "512", "0"]
    assert "Multi-head attention: 8 heads, each with its own keys and values." in shown(LayerShape())
    assert "Multi-query attention: 8 query heads share one key/value head." in shown(LayerShape(kv_heads=1))
    assert "would need" not in shown(LayerShape())
    assert "d_k 96, not d_model/heads = 512/8 = 64; 1/√d_k multiplies" in shown(LayerShape(d_k=96))
    assert "d_k 16, not d_model/heads = 512/7 = 73.14;" in shown(LayerShape(heads=7, d_k=16))


def test_texts_mask_and_notes_are_shown() -> None:
    text = " ".join(shown(LayerShape(batch=4, mask="none")).split())
    assert "4,096 tokens × 4 texts" in text
    assert "FLOPs are for one layer and 4 texts; a multiply–add counts as two." in text
    assert "all tokens make 4,096²." in text
    bert = PRESETS["bert-base"]
    assert "An encoder processes all tokens at once" in " ".join(shown(bert.layer, bert).split())
    assert shown(replace(bert.layer, heads=6), bert).startswith("BERT base, changed\n")
    assert "9,223,939,402,571,448,320" in shown(LARGEST)


GROUPED = PRESETS["llama-3-8b"].layer


@pytest.mark.parametrize(
    ("layer", "counts"),
    [
        (LayerShape(), [8, 4, 2, 1]),
        (GROUPED, [8, 32, 16, 4, 2, 1]),
        (PRESETS["falcon-7b"].layer, [1, 71]),
        (LayerShape(d_model=96, heads=96, kv_heads=32), [32, 96, 48, 24, 12, 6, 1]),
        (PRESETS["deepseek-v3"].layer, [128, 128, 64, 32, 16, 8, 4, 1]),
    ],
)
def test_other_key_heads_divide_the_heads_and_contexts_and_all_models_follow(
    layer: LayerShape, counts: list[int]
) -> None:
    table = variants(cost(layer), None)
    rows = [dict(zip(table.header, line, strict=True)) for line in table.lines]
    shared, models = rows[: len(counts)], rows[-len(PRESETS) :]
    assert [int(row["key heads"]) for row in shared] == counts
    for row, count in [*zip(shared, counts, strict=True)][1:]:
        other = cost(replace(layer, kv_heads=count, kv_latent=0, rotary=0))
        assert row["attention"] == other.layer.kind
        assert (row["parameters"], row["KV cache"]) == (metric(other.all_parameters), binary(other.cache))
    assert [row["layer"] for row in models] == [preset.title for preset in PRESETS.values()]


def test_the_share_of_attention_grows_with_the_context() -> None:
    table = variants(cost(GROUPED), None)
    rows = [dict(zip(table.header, line, strict=True)) for line in table.lines if line[0].endswith("tokens")]
    assert [row["context"] for row in rows] == ["1,024", "4,096", "16,384", "65,536", "262,144", "1,048,576"]
    shares: list[float] = []
    for row in rows:
        flops = cost(replace(GROUPED, context=int(row["context"].replace(",", "")))).next_token
        shares.append(float(row["in q·k and weights·v"].removesuffix(" %")))
        assert shares[-1] == pytest.approx(100 * (flops.scores + flops.weighted_sum) / flops.total, rel=1e-3)
    assert shares == sorted(shares)
    even = int(shown(GROUPED).split(" tokens up.")[0].split()[-1].replace(",", ""))
    at, below = (cost(replace(GROUPED, context=n)).next_token for n in (even, even - 1))
    assert at.scores + at.weighted_sum >= at.projections
    assert below.scores + below.weighted_sum < below.projections


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("width", [60, 90, 166])
def test_tables_fit_and_only_columns_beside_other_layers_are_left_out(glyphs: Glyphs, width: int) -> None:
    for preset in (None, *PRESETS.values()):
        found = cost(preset.layer if preset else LayerShape())
        for block in [*cost_blocks(found, preset), variants(found, preset)]:
            lines = block_lines([block], width, glyphs)
            assert max(map(line_width, lines)) <= width
            is_short = isinstance(block, TextGrid) and len(block.header) <= 4
            assert not (is_short and "Not shown" in "".join(texts_of(lines)))
