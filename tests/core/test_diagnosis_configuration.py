"""The keys of a config.json that say how attention is scaled."""

import math

import pytest
from attn_tui.core.diagnosis.configuration import configured_scale, parse_configuration
from attn_tui.core.diagnosis.multipliers import expected_multiplier, names
from attn_tui.core.diagnosis.subject import Facts
from attn_tui.core.errors import InputError
from cases import for_each

YARN = 0.1 * math.log(40) + 1


@for_each(
    ("text", "layer", "scale"),
    [
        ('{"head_dim": 128}', 0, 128**-0.5),
        ('{"hidden_size": 4096, "num_attention_heads": 32}', 0, 128**-0.5),
        ("{}", 0, 96**-0.5),  # the width of the head in the file
        ('{"head_dim": 128, "query_pre_attn_scalar": 144}', 0, 1 / 12),
        ('{"hidden_size": 768, "num_heads": [3, 6, 12, 24]}', 0, 96**-0.5),  # Swin: one number a stage
        ('{"attention_multiplier": 0.0078125, "hidden_size": 4096, "num_attention_heads": 32}', 0, 1 / 128),
        ('{"hidden_size": 768, "num_attention_heads": 12, "pos_att_type": ["p2c", "c2p"]}', 0, 192**-0.5),  # DeBERTa
        ('{"model_type": "gpt_neo", "hidden_size": 768, "num_heads": 12}', 0, 1.0),
        ('{"model_type": "gemma3n_text", "query_pre_attn_scalar": 256}', 0, 1.0),
        ('{"model_type": "gemma4", "text_config": {"model_type": "gemma4_text", "head_dim": 256}}', 0, 1.0),
        ('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "scale_attn_weights": false}', 0, 1.0),
        ('{"n_embd": 768, "n_head": 12, "scale_attn_by_inverse_layer_idx": true}', 3, 1 / 32),
        ('{"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "kv_lora_rank": 512}', 0, 192**-0.5),
        (
            '{"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "kv_lora_rank": 512, "rope_scaling": '
            '{"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0}}',
            0,
            192**-0.5 * YARN**2,
        ),
    ],
)
def test_the_expected_scale(text: str, layer: int, scale: float) -> None:
    assert configured_scale(parse_configuration(text, "config.json"), layer, 96).multiplier == pytest.approx(scale)


@pytest.mark.parametrize(
    ("text", "prescaled", "expected"),
    [
        (None, 0.25, 1 / 8 / 0.25),
        ('{"head_dim": 64}', 0.25, 1 / 8 / 0.25),
        ('{"rope_scaling": {"rope_type": "yarn", "factor": 40}}', YARN**2, 1 / 8),  # YaRN's amplitude is inside
        ('{"rope_scaling": {"rope_type": "yarn", "factor": 40}}', 0.25, 1 / 8 / 0.25),
    ],
)
def test_factors_inside_q_and_k_are_not_expected_again(text: str | None, prescaled: float, expected: float) -> None:
    given = None if text is None else parse_configuration(text, "config.json")
    assert expected_multiplier(Facts(64, prescaled=prescaled), given).multiplier == pytest.approx(expected)
    assert expected_multiplier(Facts(64, scale=0.5, prescaled=prescaled), None).multiplier == 0.5


def test_windows_and_soft_caps_are_read() -> None:
    types = '"layer_types": ["sliding_attention", "full_attention"]'
    text = f'{{"sliding_window": 512, {types}, "attn_logit_softcapping": 50}}'
    found = parse_configuration(text, "config.json")
    assert (found.window_of(0), found.window_of(1), found.softcap) == (512, None, 50.0)


def test_the_amplitude_of_yarn() -> None:
    yarn = '"rope_scaling": {"rope_type": "yarn", "factor": 40'
    assert parse_configuration(f"{{{yarn}}}}}", "c").amplitude == pytest.approx(YARN)
    assert parse_configuration(f'{{{yarn}, "attention_factor": 1.25}}}}', "c").amplitude == 1.25
    assert parse_configuration(f'{{{yarn}, "mscale": 1, "mscale_all_dim": 1}}}}', "c").amplitude == 1
    assert parse_configuration('{"rope_scaling": null}', "c").amplitude is None


@for_each(
    ("text", "pieces"),
    [
        ("{", ("is not JSON",)),
        ("[1]", ("must be a JSON object",)),
        ('{"head_dim": "wide"}', ("'head_dim'", "a positive number", "'wide'")),
        ('{"head_dim": 12.5}', ("'head_dim'", "a whole number")),
        ('{"query_pre_attn_scalar": -1}', ("'query_pre_attn_scalar'", "-1")),
        ('{"rope_scaling": {"factor": true}}', ("rope_scaling.factor", "True")),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(text: str, pieces: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as refused:
        parse_configuration(text, "config.json")
    assert str(refused.value).startswith("config.json: ")
    assert all(piece in str(refused.value) for piece in pieces)
    assert "\n" not in str(refused.value)


@for_each(
    ("multiplier", "cause"),
    [
        (1.0, "scale-missing"), (1 / 64, "scale-twice"), (1 / 64, "scale-1-over-d"), (8.0, "scale-inverted"),
        (768**-0.5, "scale-d-model"), (12**-0.5, "scale-n-heads"), (8**-0.5, "scale-quarter"),
        (math.log2(math.e) / 8, "scale-base2"), (math.log(2) / 8, "scale-base2"), (1 / 32, "scale-layer"),
        (4 / 8, "scale-layer"), (1 / 24, "scale-layer"), (80**-0.5, "scale-padded"), (224**-0.5, "scale-fixed"),
        ((1 + 0.1 * math.log(8)) ** 2 / 8, "scale-yarn"), (8 / (8 + 0.8 * math.log(8)) ** 2, "scale-yarn"),
        (0.0777, "scale-other"),
    ],
)  # fmt: skip
def test_a_multiplier_has_the_names_of_the_rules_that_give_it(multiplier: float, cause: str) -> None:
    facts = Facts(64, scale=1 / 8, layer=3, heads=12, d_model=768, n_heads=12)
    found = names(multiplier, 1e-9, 1 / 8, facts, lambda candidate: math.isclose(candidate, multiplier, rel_tol=1e-9))
    assert cause in [name.cause for name in found]
    assert ("scale-other" in [name.cause for name in found]) == (cause == "scale-other")
