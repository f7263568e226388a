"""The code of a report, which prints the numbers that its comments say, and what all programs share."""

import math
import random
from dataclasses import replace
from typing import Any

import pytest
from attn_tui.core.errors import InputError
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import FIELD, ComponentLaw, Parameters
from attn_tui.core.program import lab
from attn_tui.core.program.lab import draws_of, report_code, scale_code
from attn_tui.core.program.text import CodePiece, Dialect, NoCodeError, assembled, code_of, filled, in_torch, number
from attn_tui.core.scales import SCALE_RULES
from attn_tui.core.statistics.catalogue import STATISTIC
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from printed_code import INSTALLED, compared, expected_in, lines_of, printed_by

CODED = [name for name in SCALE_RULES if name != "custom"]
SMALL = Parameters(d_k=16, n_keys=12, n_queries=10, batch=3, d_v=8)
KINDS: dict[str, tuple[Any, ...]] = {
    "components": FIELD["components"].choices,
    "mask": FIELD["mask"].choices,
    "mechanism": FIELD["mechanism"].choices,
    "precision": FIELD["precision"].choices,
    "sink": FIELD["sink"].choices,
    "softcap": (2.5,),
    "correlation": (0.3, -0.5),
    "mean_q": (0.5,),
    "std_k": (2.0,),
    "d_k": (1, 65, 130),
    "n_queries": (1, 300),
    "seed": (7,),
    "against": ("d_k", "precision=bfloat16", "components=laplace", "mask=causal", "n_keys=7", "0.05", "rms_none"),
}


def program(p: Parameters, dialect: Dialect = "python") -> str:
    return report_code(run(p), dialect, "attn-tui report")


@pytest.mark.parametrize("dialect", INSTALLED)
@for_each("name", [*CODED, "custom", "log(n)/sqrt(d)", "-min(2, 1/d)^2 + 1", "1/log(n)"])
def test_the_code_of_every_rule_prints_its_numbers(name: str, dialect: Dialect) -> None:
    assert compared(program(replace(SMALL, scale=name, multiplier=0.3), dialect)) == ""
    assert compared(program(replace(SMALL, scale=name, multiplier=0.3, mask="causal"), dialect)) == ""


@pytest.mark.parametrize("dialect", INSTALLED)
@for_each(
    "change",
    [
        {},
        {"arithmetic": "fused", "precision": "float8_e4m3fn"},
        {"against": "rms_none", "softcap": 3.0},
        {"mechanism": "bilinear", "against": "precision=float16", "precision": "bfloat16"},
        {"mechanism": "cosine"},
    ],
)
def test_the_code_of_scaled_q_and_k_rounds_them_as_the_report_does(change: Any, dialect: Dialect) -> None:
    p = replace(SMALL, **{"scale": "quarter", "precision": "float16", "arithmetic": "eager", **change})
    text = program(p, dialect)
    assert compared(text) == ""
    if p.mechanism != "cosine":
        assert compared(text.replace("** 0.5)", "** 0.25)"))


@for_each("name", CODED)
def test_the_code_of_a_rule_is_its_multiplier(name: str) -> None:
    for d_k, n, layer, position in [(2, 2, 0, 0), (64, 128, 11, 32_767), (100, 8192, 3, 8191), (7, 5, 1, 16_384)]:
        p = Parameters(d_k=d_k, n_keys=n, layer=layer, position=position, context_factor=32.0, temperature=7.0)
        names = {"d_k": d_k, "n": n, "layer": layer, "position": position, "s": 32.0, "t": 7.0}
        found = eval(scale_code(replace(p, scale=name)), {**vars(math)}, names)
        assert found == pytest.approx(SCALE_RULES[name].multiplier(p.setting), rel=1e-14)


@pytest.mark.parametrize("dialect", INSTALLED)
@for_each(("name", "value"), [(name, value) for name, values in KINDS.items() for value in values])
def test_the_code_of_every_setting_prints_its_numbers(name: str, value: object, dialect: Dialect) -> None:
    p = SMALL.with_value(name, value)  # pyright: ignore[reportArgumentType]
    assert compared(program(p, dialect)) == ""
    if name == "precision" and "float8" not in p.precision:
        assert compared(program(replace(p, arithmetic="eager", sink="logit", sink_logit=1.3), dialect)) == ""


@pytest.mark.slow
@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize("seed", range(8))
def test_the_code_of_random_settings_prints_their_numbers(seed: int, dialect: Dialect) -> None:
    rng = random.Random(seed)
    done = 0
    while done < 12:
        values = {name: rng.choice(kinds) for name, kinds in KINDS.items() if rng.random() < 0.4}
        values |= {"scale": rng.choice([*SCALE_RULES]), "multiplier": 0.3}
        try:
            p = replace(SMALL, **values)
            text = program(p, dialect)
        except InputError:  # these values do not go together, or have no multiplier
            continue
        degenerate = p.components == "rademacher" and (p.correlation or p.d_k == 1)  # vectors without direction
        if not degenerate:
            done += 1
            assert (values, compared(text, least=5e-5)) == (values, "")


def test_the_expected_values_are_those_of_the_report() -> None:
    measurement = run(SMALL)
    found = expected_in(report_code(measurement, "python", "attn-tui report"))
    for name in ("logit_std", "entropy", "max_weight", "dead_rows", "grad_q_median"):
        for column, (value, stderr) in zip(measurement.columns, found[STATISTIC[name].label], strict=True):
            assert value == pytest.approx(column.measured[name].value, rel=1e-3)
            assert stderr == float(f"{column.measured[name].stderr:.1g}")


def test_a_program_that_is_changed_prints_other_numbers() -> None:
    text = program(SMALL)
    assert compared(text.replace("1 / d_k**0.5", "1 / d_k"))
    assert compared(text.replace("q @ k.mT", "q @ k.mT * 1.01"))
    assert compared(text.replace("= 0, 3, 10", "= 1, 3, 10"))


def test_only_what_is_in_use_appears() -> None:
    plain = program(Parameters())
    for absent in ("hidden", "tanh", "sink", "rounded", "ml_dtypes", "unbiased", "shared", "rms", "math", "log("):
        assert absent not in plain.replace("np.log(", "")
    assert lines_of(plain) <= 30
    assert "ml_dtypes" in program(replace(SMALL, precision="bfloat16"))
    assert "sqrt" not in program(replace(SMALL, scale="d_k")).replace("np.sqrt", "")


@pytest.mark.parametrize("law", FIELD["components"].choices)
def test_lines_are_short_whatever_the_law_of_components_is(law: ComponentLaw) -> None:
    assert max(map(len, program(replace(SMALL, components=law)).splitlines())) < 110


def test_settings_that_differ_in_more_than_the_rule_share_what_they_can() -> None:
    text = program(replace(SMALL, against="softcap=2"))
    assert text.count("def draw") == 1
    assert text.count("q, k =") == 1
    assert text.count("def measure") == 2


OF_ROUNDING, OF_SINK, OF_GRADIENT = (
    {"weight_lost"},
    {"first_key_weight", "sink_weight"},
    {"grad_q_median", "grad_q_rms"},
)
OF_EXTREMES = {"logit_max", "logit_std"}


@for_each(
    ("change", "differs"),
    [
        ({"mask": "causal"}, {"first_key_weight"}), ({"sink": "logit"}, OF_SINK),
        ({"precision": "float16"}, OF_ROUNDING),
        ({"precision": "float16", "arithmetic": "eager"}, OF_ROUNDING),
        ({"precision": "float16", "arithmetic": "eager", "std_q": 55.0, "std_k": 55.0}, OF_ROUNDING | OF_EXTREMES),
        ({"precision": "float16", "std_q": 55.0, "std_k": 55.0}, OF_ROUNDING),
        ({"mechanism": "additive"}, OF_GRADIENT), ({"scale": "rms_none"}, OF_GRADIENT), ({"softcap": 2.0}, set()),
    ],
)  # fmt: skip
def test_a_program_prints_the_statistics_that_it_can_compute(change: dict[str, Any], differs: set[str]) -> None:
    usual, found = (set(expected_in(program(replace(SMALL, **of)))) for of in ({}, change))
    assert usual ^ found == {STATISTIC[name].label for name in differs}


def test_large_settings_take_fewer_draws_and_say_so() -> None:
    large = Parameters(n_keys=8192, n_queries=8192, batch=4096)
    assert draws_of(large) == 2
    assert draws_of(Parameters(16_384, n_keys=1000, n_queries=1000, batch=64)) == 4
    assert draws_of(Parameters()) == 16
    assert draws_of(Parameters(1024, mechanism="additive")) == 16  # one query after another
    assert draws_of(Parameters(1024, n_keys=256, n_queries=256, batch=64, mechanism="additive")) == 4
    assert draws_of(Parameters(1024, n_keys=16_384, n_queries=1, batch=64, mechanism="additive")) == 4


def test_of_fewer_draws_no_extremes_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "z.max()" in program(SMALL)
    monkeypatch.setattr(lab, "LARGEST", 2 * SMALL.n_queries * SMALL.n_keys)
    assert "z.max()" not in program(SMALL)


def test_what_normalising_leaves_to_rounding_has_no_code() -> None:
    with pytest.raises(NoCodeError, match="rounding"):
        program(replace(SMALL, scale="layer_norm_sqrt_d_k", std_q=0.0))


def test_a_program_runs_without_attn_tui() -> None:
    assert "import attn_tui" not in program(SMALL)
    assert len(printed_by(program(SMALL))) == len(expected_in(program(SMALL)))


def test_the_bias_of_few_draws_is_removed() -> None:
    p = Parameters(n_keys=128, n_queries=128, batch=7)
    assert ["def unbiased" in program(replace(p, batch=batch)) for batch in (7, 8)] == [True, False]
    assert "def unbiased" in program(Parameters(n_keys=4, n_queries=4, batch=8))  # whose errors are large


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_read_back_unchanged(value: float) -> None:
    assert float(number(value)) == value


def test_a_round_number_is_short() -> None:
    assert [number(value) for value in (0.5, 64.0, 1 / 3)] == ["0.5", "64", "0.3333333333333333"]


@pytest.mark.parametrize(("width", "lines"), [(12, ["some, words,"]), (11, ["some,", "words,"])])
def test_lines_are_filled_to_the_width(width: int, lines: list[str]) -> None:
    assert filled(["some", "words"], width) == lines


@pytest.mark.parametrize(("value", "defines", "times"), [("1", False, 1), ("2", False, 2), ("2", True, 1)])
def test_a_piece_is_said_again_if_it_computes_from_one_that_changed(value: str, defines: bool, times: int) -> None:
    blocks = [[CodePiece(f"a = {each}"), CodePiece("b = a", defines)] for each in ("1", value)]
    assert assembled([], blocks, []).count("b = a") == times


@pytest.mark.parametrize(
    "text", ["'np.max(-1).npz'", '"np.array(axis=0)"', '"it\'s \\"np.x\\""', "# np.max(-1), it's so"]
)
def test_strings_and_comments_stay_as_they_are(text: str) -> None:
    assert in_torch(f"np.exp(x)  {text}") == f"torch.exp(x)  {text}"
    assert code_of(f"x = 1 {text}") == "x = 1 "


@for_each(
    ("numpy", "torch"),
    [
        ("x.max(-1, keepdims=True)", "x.amax(-1, keepdim=True)"),
        ("x.max()", "x.max()"),
        ("x.std() + x.var(-1)", "x.std(correction=0) + x.var(-1, correction=0)"),
        ("np.array([1]).astype(np.float64)", "torch.tensor([1]).double()"),
        ("x.astype(ml_dtypes.bfloat16)", "x.to(torch.bfloat16)"),
        ("np.random.default_rng(np.load(a))", "np.random.default_rng(np.load(a))"),
    ],
)
def test_numpy_becomes_pytorch(numpy: str, torch: str) -> None:
    assert in_torch(numpy) == torch
