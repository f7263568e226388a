"""The cost of a layer agrees with published figures and with figures counted by hand."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from attn_tui.core.attention.cost import SHAPE_FIELDS, LayerShape, cost
from attn_tui.core.attention.formats import FORMATS
from attn_tui.core.attention.presets import PRESETS, Preset
from attn_tui.core.errors import ParameterError
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

every_preset = for_each("preset", PRESETS.values())


def shapes() -> st.SearchStrategy[LayerShape]:
    """Small layers of every kind."""
    numbers = st.integers(1, 6)

    def layer(shared: int, **values: Any) -> LayerShape:
        return LayerShape(heads=values["kv_heads"] * shared, **values)

    return st.builds(
        layer,
        numbers,
        d_model=st.integers(1, 50),
        kv_heads=numbers,
        d_k=st.integers(1, 20),
        d_v=st.none() | st.integers(1, 20),
        q_latent=st.integers(0, 9),
        bias=st.sampled_from(["none", "qkv", "all"]),
        layers=numbers,
        context=st.integers(1, 30),
        batch=numbers,
        cache_format=st.sampled_from(list(FORMATS)),
        mask=st.sampled_from(["none", "causal"]),
    )


@for_each(
    ("layer", "each", "in_all"),
    [
        # 4 · 512²; with biases 4 · 512 more
        (LayerShape(512, 8), [262_144] * 4, 1_048_576),
        (LayerShape(512, 8, bias="all"), [262_656] * 4, 1_050_624),
        (LayerShape(512, 8, bias="qkv"), [262_656] * 3 + [262_144], 1_050_112),
        # multi-query: keys and values of 64 columns
        (LayerShape(512, 8, 1), [262_144, 32_768, 32_768, 262_144], 589_824),
        (LayerShape(512, 8, 1, bias="all"), [262_656, 32_832, 32_832, 262_656], 590_976),
        # grouped-query: of 128
        (LayerShape(512, 8, 2), [262_144, 65_536, 65_536, 262_144], 655_360),
        # heads wider than their share: 8 · 96 = 768 columns
        (LayerShape(512, 8, d_k=96, bias="all"), [393_984, 393_984, 393_984, 393_728], 1_575_680),
    ],
)
def test_parameters_of_each_matrix(layer: LayerShape, each: list[int], in_all: int) -> None:
    found = cost(layer)
    assert [matrix.name for matrix in found.matrices] == ["W_q", "W_k", "W_v", "W_o"]
    assert [matrix.parameters for matrix in found.matrices] == each
    assert found.parameters == found.all_parameters == in_all


@for_each(
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


@for_each(
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
        ("deepseek-v3", 70_272),
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
    layer = LayerShape(4, 2, context=3)
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


def test_matrices_of_latent_attention_have_the_sizes_of_the_published_weights() -> None:
    """Transformers' DeepseekV3Attention: q_a_proj, q_b_proj, kv_a_proj_with_mqa, kv_b_proj and o_proj."""
    found = cost(PRESETS["deepseek-v3"].layer)
    sizes = {matrix.name: matrix.parameters for matrix in found.matrices}
    assert [*sizes] == ["W_dq", "W_uq", "W_dkv", "W_kr", "W_uk", "W_uv", "W_o"]
    assert sizes["W_dq"] == 1536 * 7168
    assert sizes["W_uq"] == 24_576 * 1536
    assert sizes["W_dkv"] + sizes["W_kr"] == 576 * 7168
    assert sizes["W_uk"] + sizes["W_uv"] == 32_768 * 512
    assert sizes["W_o"] == 7168 * 16_384
    assert found.parameters == 187_105_280


def test_operations_of_small_latent_attention_counted_by_hand() -> None:
    """One layer, d_model 8, 2 heads of 4 of which 1 rotary, values of 3, latents of 5 and 6, a context of 3."""
    layer = LayerShape(8, 2, d_k=4, d_v=3, kv_latent=5, q_latent=6, rotary=1, context=3)
    found = cost(layer)
    weights = 8 * 6 + 6 * 8 + 8 * 5 + 8 * 1 + 5 * 6 + 5 * 6 + 6 * 8
    assert found.parameters == weights
    assert found.cache_per_token == (5 + 1) * 2
    # All tokens: 6 pairs in 2 heads, 4 products for a score and 3 for values.
    assert (found.whole_context.scores, found.whole_context.weighted_sum) == (2 * 2 * 6 * 4, 2 * 2 * 6 * 3)
    # The next token: 3 pairs in 2 heads, with keys of 5 + 1 and values of 5.
    assert (found.next_token.scores, found.next_token.weighted_sum) == (2 * 2 * 3 * 6, 2 * 2 * 3 * 5)
    assert found.next_token.projections == 2 * weights


def test_absorbing_the_projections_from_the_latent_changes_no_score_and_takes_as_many_operations() -> None:
    generator = np.random.default_rng(0)
    heads, d_k, latent, n = 3, 5, 7, 11
    up, q, c = (generator.standard_normal(shape) for shape in ((heads, latent, d_k), (heads, d_k), (n, latent)))
    projected = np.einsum("hd,hnd->hn", q, np.einsum("nc,hcd->hnd", c, up))
    absorbed = np.einsum("hc,nc->hn", np.einsum("hd,hcd->hc", q, up), c)
    np.testing.assert_allclose(absorbed, projected)
    matrices = cost(LayerShape(4, heads, d_k=d_k, kv_latent=latent)).matrices
    assert next(matrix.weights for matrix in matrices if matrix.name == "W_uk") == up.size


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
def test_a_projection_takes_two_operations_per_weight_and_token(layer: LayerShape) -> None:
    found = cost(layer)
    weights = sum(matrix.weights for matrix in found.matrices)
    assert found.next_token.projections == 2 * weights * layer.layers * layer.batch
    assert found.whole_context.projections == found.next_token.projections * layer.context
    assert found.all_parameters == found.parameters * layer.layers


@given(shapes())
def test_tokens_one_by_one_cost_as_much_as_the_whole_context(layer: LayerShape) -> None:
    causal = replace(layer, mask="causal")
    one_by_one = [cost(replace(causal, context=n)).next_token.total for n in range(1, layer.context + 1)]
    assert sum(one_by_one) == cost(causal).whole_context.total


@given(shapes(), st.integers(2, 4))
def test_sharing_keys_shrinks_the_cache_but_not_the_operations(layer: LayerShape, shared: int) -> None:
    wide = replace(layer, heads=layer.key_heads * shared, kv_heads=None)
    narrow = replace(wide, kv_heads=layer.key_heads)
    assert cost(wide).cache == shared * cost(narrow).cache
    assert cost(wide).next_token.scores == cost(narrow).next_token.scores
    assert wide.kind == "multi-head"
    assert narrow.kind == ("multi-query" if narrow.key_heads == 1 else "grouped-query")


def test_omitted_sizes_follow_from_the_others() -> None:
    assert LayerShape(768, 12).width == 64
    assert LayerShape(768, 12).key_heads == 12
    assert LayerShape(768, 12, 4, 100).width == 100
    assert LayerShape(768, 12, 4, 100).key_heads == 4
    assert LayerShape(100, 7, d_k=16).width == 16  # 7 need not divide 100


@for_each(
    ("values", "message"),
    [
        ({"heads": 7}, "heads: d_model 512 is not divisible by 7; set d_k as well"),
        ({"kv_heads": 3}, "key heads: 8 heads cannot be shared evenly among 3"),
        ({"kv_heads": 16}, "key heads: 8 heads cannot be shared evenly among 16"),
        ({"heads": 0}, "heads: must be a whole number from 1 to 16384"),
        ({"kv_heads": 0}, "key heads: must be a whole number from 1 to 16384"),
        ({"kv_latent": 64, "kv_heads": 4}, "key heads: must be 8, like heads, with a KV latent"),
        ({"rotary": 8}, "rotary: only with a KV latent"),
        ({"kv_latent": 64, "rotary": 64}, "rotary: must be below d_k, which is 64, not 64"),
        ({"d_k": -1}, "d_k: must be a whole number from 1 to 16384"),
        ({"d_model": 2.0}, "d_model: must be a whole number from 1 to 1048576"),
        ({"bias": "q"}, "bias: must be one of none, qkv, all"),
        ({"cache_format": "int3"}, "cache format: must be one of float64, float32"),
    ],
)
def test_an_impossible_shape_is_refused_in_one_line(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        LayerShape(**values)
    assert str(caught.value).startswith(message)
    assert len(str(caught.value).splitlines()) == 1


def test_sizes_have_bounds() -> None:
    most = {field.name: field.high for field in SHAPE_FIELDS if field.kind == "integer"}
    assert {most["layers"], most["context"], most["batch"]} == {2**14, 2**30, 2**20}


def test_every_attribute_of_a_layer_has_a_field() -> None:
    assert [field.name for field in SHAPE_FIELDS] == [field.name for field in fields(LayerShape)]


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
    assert llama.heading(llama.layer) == "Llama 2 7B"
    assert llama.heading(replace(llama.layer, layers=1)) == "Llama 2 7B, changed"
