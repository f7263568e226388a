"""The cost of a layer agrees with published figures and with figures counted by hand."""

from dataclasses import fields, replace
from typing import Any

import pytest
from attn_tui.core.attention.cost import SHAPE_FIELDS, Layer, cost
from attn_tui.core.attention.formats import FORMATS
from attn_tui.core.attention.presets import PRESETS, Preset
from attn_tui.core.errors import ParameterError
from hypothesis import given
from hypothesis import strategies as st

every_preset = pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda preset: preset.name)


def shapes() -> st.SearchStrategy[Layer]:
    """Small layers of every kind."""
    numbers = st.integers(1, 6)

    def layer(shared: int, **values: Any) -> Layer:
        return Layer(heads=values["kv_heads"] * shared, **values)

    return st.builds(
        layer,
        numbers,
        d_model=st.integers(1, 50),
        kv_heads=numbers,
        d_k=st.integers(1, 20),
        bias=st.sampled_from(["none", "qkv", "all"]),
        layers=numbers,
        context=st.integers(1, 30),
        batch=numbers,
        cache_format=st.sampled_from(list(FORMATS)),
        mask=st.sampled_from(["none", "causal"]),
    )


@pytest.mark.parametrize(
    ("layer", "each", "in_all"),
    [
        # 4 · 512²; with biases 4 · 512 more
        (Layer(512, 8), [262_144] * 4, 1_048_576),
        (Layer(512, 8, bias="all"), [262_656] * 4, 1_050_624),
        (Layer(512, 8, bias="qkv"), [262_656] * 3 + [262_144], 1_050_112),
        # multi-query: keys and values of 64 columns
        (Layer(512, 8, 1), [262_144, 32_768, 32_768, 262_144], 589_824),
        (Layer(512, 8, 1, bias="all"), [262_656, 32_832, 32_832, 262_656], 590_976),
        # grouped-query: of 128
        (Layer(512, 8, 2), [262_144, 65_536, 65_536, 262_144], 655_360),
        # heads wider than their share: 8 · 96 = 768 columns
        (Layer(512, 8, d_k=96, bias="all"), [393_984, 393_984, 393_984, 393_728], 1_575_680),
    ],
)
def test_parameters_of_each_matrix(layer: Layer, each: list[int], in_all: int) -> None:
    found = cost(layer)
    assert [matrix.name for matrix in found.matrices] == ["W_q", "W_k", "W_v", "W_o"]
    assert [matrix.parameters for matrix in found.matrices] == each
    assert found.parameters == found.all_parameters == in_all


@pytest.mark.parametrize(
    ("name", "layer", "model"),
    [
        ("bert-base", 2_362_368, 28_348_416),  # 4 · (768² + 768)
        ("bert-large", 4_198_400, 100_761_600),
        ("gpt2", 2_362_368, 28_348_416),  # c_attn 1 771 776 and c_proj 590 592
        ("llama-2-7b", 67_108_864, 2_147_483_648),
        ("llama-3-8b", 41_943_040, 1_342_177_280),
        ("qwen2.5-7b", 29_364_736, 822_212_608),
        ("gemma-2b", 9_437_184, 169_869_312),
    ],
)
def test_parameters_of_models(name: str, layer: int, model: int) -> None:
    found = cost(PRESETS[name].layer)
    assert (found.parameters, found.all_parameters) == (layer, model)


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("llama-3-8b", 128 * 1024),
        ("llama-2-7b", 512 * 1024),
        ("gpt2-xl", 300 * 1024),
        ("opt-13b", 800 * 1024),  # Kwon et al. 2023, arXiv 2309.06180, section 3
        ("llama-3.1-70b", 320 * 1024),
        # DeepSeek-AI 2025, arXiv 2505.09343, table 1, which says KB of 1000
        ("qwen2.5-72b", 327_680),
        ("llama-3.1-405b", 516_096),
        ("gpt3-175b", 4_718_592),  # 4.5 MiB
    ],
)
def test_the_cache_of_a_token_is_as_published(name: str, published: int) -> None:
    found = cost(PRESETS[name].layer)
    assert found.cache_per_token == published
    assert found.cache == published * found.layer.context


def test_the_cache_of_a_context() -> None:
    llama = PRESETS["llama-3-8b"].layer
    assert cost(llama).cache == 2**30  # one GiB at 8192 tokens
    assert cost(replace(llama, context=131_072)).cache == 16 * 2**30
    assert cost(replace(llama, batch=5)).cache == 5 * 2**30
    for name, form in FORMATS.items():
        assert cost(replace(llama, cache_format=name)).cache_per_token == 65_536 * form.bits // 8


def test_operations_of_a_small_layer_counted_by_hand() -> None:
    """One layer, d_model 4, 2 heads of 2, a context of 3."""
    layer = Layer(4, 2, context=3)
    found = cost(layer)
    # A token goes through four matrices of 16 weights: 4 · 16 · 2 operations.
    assert found.next_token.projections == 128
    assert found.whole_context.projections == 3 * 128
    # Its query meets 3 keys in each head: 2 · 3 scores of 2 products each, 2 operations a product.
    assert found.next_token.scores == found.next_token.weighted_sum == 2 * 3 * 2 * 2
    # 1 + 2 + 3 pairs instead of 9.
    assert layer.pairs == 6
    assert found.whole_context.scores == 2 * 6 * 2 * 2
    assert found.whole_context.total == 384 + 2 * 48
    everything = replace(layer, mask="none")
    assert everything.pairs == 9
    assert cost(everything).whole_context.scores == 2 * 9 * 2 * 2


def test_operations_of_attention_are_those_of_the_palm_paper() -> None:
    """It counts 12 L H Q T for a token, forwards and backwards, whatever the mask (arXiv 2204.02311, appendix B).

    Forwards are a third of that.
    """
    palm = PRESETS["palm-540b"].layer
    found = cost(replace(palm, mask="none"))
    theirs = 12 * 118 * 48 * 256 * 2048
    assert 3 * (found.next_token.scores + found.next_token.weighted_sum) == theirs
    assert 3 * (found.whole_context.scores + found.whole_context.weighted_sum) == theirs * 2048


@given(shapes())
def test_a_projection_takes_two_operations_per_weight_and_token(layer: Layer) -> None:
    found = cost(layer)
    weights = sum(matrix.weights for matrix in found.matrices)
    assert found.next_token.projections == 2 * weights * layer.layers * layer.batch
    assert found.whole_context.projections == found.next_token.projections * layer.context
    assert found.all_parameters == found.parameters * layer.layers


@given(shapes())
def test_tokens_one_by_one_cost_as_much_as_the_whole_context(layer: Layer) -> None:
    causal = replace(layer, mask="causal")
    one_by_one = [cost(replace(causal, context=n)).next_token.total for n in range(1, layer.context + 1)]
    assert sum(one_by_one) == cost(causal).whole_context.total


@given(shapes(), st.integers(2, 4))
def test_sharing_keys_shrinks_the_cache_but_not_the_operations(layer: Layer, shared: int) -> None:
    wide = replace(layer, heads=layer.key_heads * shared, kv_heads=None)
    narrow = replace(wide, kv_heads=layer.key_heads)
    assert cost(wide).cache == shared * cost(narrow).cache
    assert cost(wide).next_token.scores == cost(narrow).next_token.scores
    assert wide.kind == "multi-head"
    assert narrow.kind == ("multi-query" if narrow.key_heads == 1 else "grouped-query")


def test_omitted_sizes_follow_from_the_others() -> None:
    assert Layer(768, 12).width == 64
    assert Layer(768, 12).key_heads == 12
    assert Layer(768, 12, 4, 100).width == 100
    assert Layer(768, 12, 4, 100).key_heads == 4
    assert Layer(100, 7, d_k=16).width == 16  # 7 need not divide 100


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"heads": 7}, "heads: d_model 512 is not divisible by 7; set d_k as well"),
        ({"kv_heads": 3}, "key heads: 8 heads cannot be shared evenly among 3"),
        ({"kv_heads": 16}, "key heads: 8 heads cannot be shared evenly among 16"),
        ({"heads": 0}, "heads: must be a whole number from 1 to 16384"),
        ({"kv_heads": 0}, "key heads: must be a whole number from 1 to 16384"),
        ({"d_k": -1}, "d_k: must be a whole number from 1 to 16384"),
        ({"d_model": 2.0}, "d_model: must be a whole number from 1 to 1048576"),
        ({"bias": "q"}, "bias: must be one of none, qkv, all"),
        ({"cache_format": "int3"}, "cache format: must be one of float64, float32"),
    ],
)
def test_an_impossible_shape_is_refused_in_one_line(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Layer(**values)
    assert str(caught.value).startswith(message)
    assert len(str(caught.value).splitlines()) == 1


def test_every_attribute_of_a_layer_has_a_field() -> None:
    assert [field.name for field in SHAPE_FIELDS] == [field.name for field in fields(Layer)]


@every_preset
def test_a_preset_has_a_source_and_plausible_sizes(preset: Preset) -> None:
    assert preset.source
    assert not preset.note.endswith(".")
    layer = preset.layer
    assert layer.d_model // 10 < layer.heads * layer.width < layer.d_model * 10
    assert cost(layer).all_parameters > 10**6


def test_a_changed_preset_says_so_in_its_title() -> None:
    llama = PRESETS["llama-2-7b"]
    assert not llama.changed(replace(llama.layer, context=10, batch=2, cache_format="float32", mask="none"))
    assert not llama.changed(replace(llama.layer, kv_heads=32, d_k=128))
    for values in ({"heads": 16}, {"kv_heads": 8}, {"d_k": 64}, {"bias": "all"}, {"layers": 1}, {"d_model": 1024}):
        assert llama.changed(replace(llama.layer, **values)), values
    assert llama.title(llama.layer) == "Llama 2 7B"
    assert llama.title(replace(llama.layer, layers=1)) == "Llama 2 7B, changed"
