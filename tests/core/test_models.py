"""The parameter `model`: what it sets, how other values override it, and where stepping through d_k stops."""

import pytest
from attn_tui.core.errors import ParameterError
from attn_tui.core.lab.experiment import run
from attn_tui.core.models import MODEL_WIDTHS, MODELS, SET_BY_MODEL, landmarks, next_width
from attn_tui.core.parameters import FIELD, FIELDS, Parameters, model_title, parameters_from
from attn_tui.core.scales import multiplier
from attn_tui.core.tables.statistics import parameter_words
from cases import for_each

GEMMA = Parameters().with_value("model", "gemma-2-27b")


def test_a_model_sets_its_parameters_and_leaves_the_others() -> None:
    before = Parameters(seed=7, batch=3, n_queries=5, sink="logit", mean_q=0.5, mask="causal")
    after = before.with_value("model", "gemma-2-27b")
    assert (after.d_k, after.scale, after.softcap, after.n_keys, after.sink) == (128, "gemma2_27b", 50, 8_192, "none")
    for field in FIELDS:
        if field.name not in (*SET_BY_MODEL, "model"):
            assert getattr(after, field.name) == getattr(before, field.name), field.name


def test_one_model_after_another_leaves_nothing_of_the_first() -> None:
    for name in MODELS:
        assert GEMMA.with_value("model", name) == Parameters().with_value("model", name)


def test_a_long_context_is_measured_with_one_query_in_each_of_four_draws() -> None:
    long = GEMMA.with_value("model", "llama-3.1-70b")
    assert (long.n_keys, long.n_queries, long.batch) == (131_072, 1, 4)
    assert long.with_value("model", GEMMA.model) == GEMMA


def test_without_a_model_the_values_stay() -> None:
    left = GEMMA.with_value("model", "none")
    assert model_title(left) == ""
    assert all(getattr(left, name) == getattr(GEMMA, name) for name in SET_BY_MODEL)


def test_other_values_override_what_a_model_sets_in_whatever_order_they_are_given() -> None:
    for values in ({"softcap": 0.0, "model": "gemma-2-27b"}, {"model": "gemma-2-27b", "softcap": 0.0}):
        p = parameters_from(values)
        assert (p.softcap, p.scale) == (0, "gemma2_27b")
        assert model_title(p) == "Gemma 2 27B, changed"
    assert parameters_from({"d_k": 16}, GEMMA) == GEMMA.with_value("d_k", 16)
    assert parameters_from({"model": "gpt2"}, GEMMA).softcap == 0


@for_each("name", SET_BY_MODEL)
def test_a_model_is_changed_while_one_of_its_parameters_differs(name: str) -> None:
    field, value = FIELD[name], getattr(GEMMA, name)
    other = field.stepped(value, 1)
    changed = GEMMA.with_value(name, field.stepped(value, -1) if other == value else other)
    assert model_title(changed) == "Gemma 2 27B, changed"
    assert model_title(changed.with_value(name, value)) == "Gemma 2 27B"


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(ParameterError, match="model: must be one of none, bert-base"):
        Parameters(model="gemma")


def test_the_title_of_a_report_names_the_model() -> None:
    assert parameter_words(GEMMA)[0] == "model Gemma 2 27B"


def test_the_lab_measures_what_the_model_does() -> None:
    """1/√144 of standard normal q and k of 128 components: a standard deviation of √(128/144) before the soft-cap."""
    p = GEMMA.with_value("batch", 4).with_value("n_keys", 512).with_value("softcap", 0.0)
    _, scaled = run(p).columns
    assert scaled.multiplier == multiplier("gemma2_27b", p.setting) == 1 / 12
    found = scaled.measured["logit_std"]
    assert found.value is not None
    assert found.stderr is not None
    assert found.value == pytest.approx((128 / 144) ** 0.5, abs=5 * found.stderr)


def test_landmarks_are_the_widths_of_models_and_powers_of_two_beyond() -> None:
    widest = max(MODEL_WIDTHS)
    powers = [2**power for power in range(20) if widest < 2**power < 5000]
    assert landmarks(range(1, 5000)) == [*MODEL_WIDTHS, *powers]
    assert landmarks([8, 64, 65, 1000]) == [64]


@pytest.mark.parametrize("d_k", [1, 64, 65, 100, 9999])
def test_the_next_width_is_the_nearest_on_that_side_or_the_same(d_k: int) -> None:
    assert next_width(d_k, 1) == min((width for width in MODEL_WIDTHS if width > d_k), default=d_k)
    assert next_width(d_k, -1) == max((width for width in MODEL_WIDTHS if width < d_k), default=d_k)
