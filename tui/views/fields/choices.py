"""Everything that can be chosen from a list: a row each, with its names, formula, help and source.

Scale rules, statistics and models have their own tables; CHOICES describes the values of the other choices of FIELDS.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from ....core.attention.formats import FORMATS, NumberFormat
from ....core.attention.presets import PRESETS
from ....core.errors import ParameterError
from ....core.field import Field
from ....core.message import joined, message, name
from ....core.models import MODELS, Model
from ....core.parameters import FIELD, UNSCALED, Parameters, choice_word
from ....core.scales import FORMULA_ACCEPTED, SCALE_RULES, ScaleRule, is_formula, multiplier
from ....core.statistics.catalogue import Statistic
from .synonyms import SYNONYMS


@dataclass(frozen=True)
class Choice:
    """A row of a list."""

    value: str  # the name in JSON and on the command line
    name: str  # as the screen shows it
    formula: str = ""
    help: str = ""  # a sentence or two
    source: str = ""
    family: str = ""  # rows of one family are shown together
    words: tuple[str, ...] = ()  # other names by which it is found
    also: tuple[str, ...] = ()  # more texts in which words are found


_VASWANI = "Vaswani et al. 2017, arXiv 1706.03762"
_IEEE = "IEEE 754"
_FLOAT8 = "Micikevicius et al. 2022, arXiv 2209.05433; ml_dtypes"


class Value(NamedTuple):
    """A value of a choice."""

    value: str
    formula: str
    help: str
    source: str
    words: tuple[str, ...]  # other names


# By the name of a field.
CHOICES: dict[str, tuple[Value, ...]] = {
    "model": (
        Value(
            "none", "as you set it",
            "No model: every parameter is as you set it.",
            "your settings",
            ("own", "custom", "random"),
        ),
    ),
    "mask": (
        Value(
            "none", "no key hidden",
            "Every query sees every key, as in an encoder.",
            f"{_VASWANI}, section 3.2.3",
            ("full", "bidirectional", "encoder"),
        ),
        Value(
            "causal", message("key j ≤ query i"),
            "Query i sees keys 0 to i, as in a decoder: rows differ in how many keys they see.",
            f"{_VASWANI}, section 3.2.3; is_causal of PyTorch's scaled_dot_product_attention",
            ("autoregressive", "decoder", "triangular", "is_causal"),
        ),
    ),
    "bias": (
        Value(
            "none", "q = Wx",
            "No matrix has a bias, as in Llama and most recent models.",
            "Touvron et al. 2023, arXiv 2302.13971; transformers, modeling_llama.py (attention_bias false)",
            ("without bias",),
        ),
        Value(
            "qkv", "q = Wx + b",
            "The matrices to queries, keys and values have one; the output's has none, as in Qwen2.",
            "transformers, modeling_qwen2.py",
            ("query key value",),
        ),
        Value(
            "all", "also the output's",
            "All four matrices have one, as in GPT-2 and BERT.",
            "transformers, modeling_gpt2.py and modeling_bert.py",
            ("output bias",),
        ),
    ),
    "mechanism": (
        Value(
            "dot_product", "q·k",
            "The dot product of query and key; its variance grows with d_k, which is why it is scaled.",
            f"{_VASWANI}, section 3.2.1",
            ("scaled dot product", "multiplicative", "Luong dot"),
        ),
        Value(
            "additive", "v·tanh(W₁q + W₂k)",
            "A network with one hidden layer; its scores are bounded by ‖v‖₁, whatever d_k is.",
            "Bahdanau et al. 2014, arXiv 1409.0473",
            ("Bahdanau", "concat", "tanh", "MLP"),
        ),
        Value(
            "cosine", "q·k / (|q||k|)",
            "The dot product of both at length 1: scores lie between −1 and 1.",
            "Graves et al. 2014, arXiv 1410.5401, section 3.3.1",
            ("cosine similarity", "normalised", "Neural Turing Machine"),
        ),
        Value(
            "bilinear", "qᵀWk",
            "The dot product after a learned matrix.",
            "Luong et al. 2015, arXiv 1508.04025, equation 8 (general)",
            ("general", "Luong", "multiplicative"),
        ),
    ),
    "sink": (
        Value(
            "none", "Σ e^z of keys",
            "Weights of a row sum to 1 over its keys.",
            f"{_VASWANI}, section 3.2.1",
            ("no sink",),
        ),
        Value(
            "logit", message("e^σ joins Σ e^z"),
            "A logit of no key takes part of every row, so that a head can attend to nothing.",
            "transformers, modeling_gpt_oss.py; Xiao et al. 2023, arXiv 2309.17453",
            ("attention sink", "off by one", "softmax one", "gpt-oss", "null key"),
        ),
    ),
    "precision": (
        Value(
            "float64", message("53 bits, to 1.8e308"),
            "Double precision; everything is computed in it.",
            f"{_IEEE}, binary64",
            ("fp64", "double", "f64"),
        ),
        Value(
            "float32", message("24 bits, to 3.4e38"),
            "Single precision; everything is computed in it.",
            f"{_IEEE}, binary32",
            ("fp32", "single", "f32"),
        ),
        Value(
            "float16", message("11 bits, to 65504"),
            "Half precision: large unscaled scores overflow, and e^z does above 11.09.",
            f"{_IEEE}, binary16",
            ("fp16", "half", "f16"),
        ),
        Value(
            "bfloat16", message("8 bits, to 3.4e38"),
            "The range of float32 with 8 bits: nothing overflows, but logits are rounded coarsely.",
            "Kalamkar et al. 2019, arXiv 1905.12322",
            ("bf16", "brain float", "half"),
        ),
        Value(
            "float8_e4m3fn", message("4 bits, to 448"),
            "Four exponent bits: finer than e5m2, without infinities. Fused arithmetic only.",
            _FLOAT8,
            ("fp8", "e4m3", "quantised"),
        ),
        Value(
            "float8_e5m2", message("3 bits, to 57344"),
            "Five exponent bits: the range of float16 in 8 bits. Fused arithmetic only.",
            _FLOAT8,
            ("fp8", "e5m2", "quantised"),
        ),
    ),
    "arithmetic": (
        Value(
            "eager", message("round q, k, s, z, p"),
            "Scores, logits and weights are each rounded, as PyTorch does without a fused kernel.",
            "transformers, eager_attention_forward",
            ("unfused", "naive"),
        ),
        Value(
            "fused", message("round e^(z − max)"),
            "Scores and softmax stay in float32; only unnormalised weights are rounded, where they meet the "
            "values.",
            "Dao 2023, arXiv 2307.08691 (FlashAttention-2); Shah et al. 2024, arXiv 2407.08608",
            ("FlashAttention", "kernel", "SDPA"),
        ),
    ),
    "optimiser": (
        Value(
            "sgd", "w − lr·g",
            "Plain stochastic gradient descent, without momentum: steps are as large as gradients.",
            "Robbins and Monro 1951, The Annals of Mathematical Statistics 22",
            ("stochastic gradient descent", "gradient descent"),
        ),
        Value(
            "adam", "w − lr·m/(√v + ε)",
            "Adam: steps do not depend on the size of gradients.",
            "Kingma and Ba 2014, arXiv 1412.6980",
            ("adaptive moments",),
        ),
    ),
    "components": (
        Value(
            "normal", "N(0, 1)",
            "The usual initialisation; a score has the excess kurtosis 6/d_k.",
            "(m₄² − 3)/d_k with the fourth moment m₄ = 3",
            ("Gaussian", "randn"),
        ),
        Value(
            "uniform", "U(−√3, √3)",
            "Light tails, as in Glorot's initialisation; a score has the excess kurtosis 0.24/d_k.",
            "(m₄² − 3)/d_k with the fourth moment m₄ = 1.8",
            ("Glorot", "Xavier", "rand"),
        ),
        Value(
            "laplace", "e^(−√2|x|)/√2",
            "Heavy tails; a score has the excess kurtosis 33/d_k.",
            "(m₄² − 3)/d_k with the fourth moment m₄ = 6",
            ("double exponential", "heavy tails"),
        ),
        Value(
            "rademacher", message("±1, each ½"),
            "Signs; a score is a random walk of d_k steps, with the excess kurtosis −2/d_k.",
            "(m₄² − 3)/d_k with the fourth moment m₄ = 1",
            ("signs", "binary", "random walk", "Bernoulli"),
        ),
        Value(
            "student_t", "t(ν)/√(ν/(ν − 2))",
            "The heaviest tails here, like the outliers of trained models; t degrees sets how heavy.",
            "(m₄² − 3)/d_k with the fourth moment m₄ = 3(ν − 2)/(ν − 4)",
            ("t distribution", "heavy tails", "outliers"),
        ),
    ),
}  # fmt: skip


OF_A = ("precision", "arithmetic", "components", "mechanism", "mask", "sink")  # choices that A may have apart from B
_CONTEXT = {"n_keys", "position", "context_factor"}
FAMILIES = (  # of scale rules, in the order of the list
    "depends on d_k",
    "the same number at every d_k",
    "depends on the number of keys, the position or the context",
    "of normalised q and k",
    "your own",
)


def choices_of(field: Field) -> tuple[Choice, ...]:
    """Return the rows of a choice's values, in the order of the field."""
    if field.name == "scale":
        rules = sorted(SCALE_RULES.values(), key=lambda rule: FAMILIES.index(family_of(rule)))
        return tuple(_rule(rule, family_of(rule)) for rule in rules)
    rows = {
        value: Choice(value, choice_word(value), formula, help, source, words=words)
        for value, formula, help, source, words in CHOICES.get(field.name, ())
    }
    if field.name == "cache_format":
        rows = {name: _cached(form) for name, form in FORMATS.items()}
    if field.name == "model":
        rows |= {name: _full_model(model) for name, model in MODELS.items()}
    return tuple(rows.get(value, Choice(value, choice_word(value))) for value in field.choices)


def against_choices() -> tuple[Choice, ...]:
    """Return the rows of A's scale rule: unscaled, and every rule."""
    help = message("The multiplier 1, with q and k normalised as B's rule does.")
    row = Choice(UNSCALED, UNSCALED, "× 1", help, message("the question of this program"), words=("none", "baseline"))
    return (row, *choices_of(FIELD["scale"]))


def choices_of_a() -> tuple[Choice, ...]:
    """Return the rows of other choices in which A may differ from B; their values are such as precision=bfloat16."""
    return tuple(
        replace(
            row,
            value=f"{name}={row.value}",
            name=joined([FIELD[name].label, row.name]),
            family=message("A only: {label}", label=FIELD[name].label),
            words=(row.name, row.value, *row.words, name),
        )
        for name in OF_A
        for row in choices_of(FIELD[name])
    )


def statistic_choices(statistics: Iterable[Statistic]) -> tuple[Choice, ...]:
    """Return the rows of statistics."""
    return tuple(
        Choice(
            statistic.name, statistic.label, statistic.formula, statistic.definition, statistic.source,
            statistic.group, (statistic.short, *SYNONYMS.get(statistic.name, ())),
        )
        for statistic in statistics
    )  # fmt: skip


def model_choices() -> tuple[Choice, ...]:
    """Return the rows of models."""
    return tuple(
        Choice(
            preset.name,
            preset.title,
            message("d_k {width}, {heads} heads", width=preset.layer.width, heads=preset.layer.heads),
            message("{note}.", note=preset.note) if preset.note else "",
            preset.source,
        )
        for preset in PRESETS.values()
    )


def family_of(rule: ScaleRule) -> str:
    """Return what a rule depends on."""
    if rule.name == "custom":
        return FAMILIES[4]
    if rule.normalise != "none":
        return FAMILIES[3]
    return FAMILIES[2 if _CONTEXT & {*rule.needs} else 0 if "d_k" in rule.needs else 1]


def _cached(form: NumberFormat) -> Choice:
    help = message("Each number of keys and values in the cache takes {bits} bytes.", bits=form.bits // 8)
    known = {row[0]: row for row in CHOICES["precision"]}[form.name]
    return Choice(form.name, form.word, message("{bits} bytes", bits=form.bits // 8), help, known[3], words=known[4])


def _full_model(model: Model) -> Choice:
    facts = message("d_k {width}, {rule}", width=model.width, rule=SCALE_RULES[model.scale].label)
    help = message(
        "d_model {d_model}, {heads} heads, context {context}.",
        d_model=model.d_model,
        heads=model.heads,
        context=model.context,
    )
    if model.help:
        help = joined([help, model.help])
    return Choice(model.name, model.title, facts, help, model.source)


def _rule(rule: ScaleRule, family: str) -> Choice:
    note = message(" {note}.", note=rule.note) if rule.note else ""
    names = rule.short, *SYNONYMS.get(f"scale {rule.name}", ())
    return Choice(
        rule.name,
        name(rule.name),
        rule.formula,
        message("Used by {used_by}.{note}", used_by=rule.used_by, note=note),
        rule.source,
        family,
        names,
    )


_SIGNS = frozenset("()+*/^×÷−·√")  # that only formulas contain
USE = message("use this formula")


def is_like_formula(text: str) -> bool:
    """Return whether a text has signs of a formula, or is a number with a point."""
    return bool(_SIGNS & {*text}) or (text.strip().replace(".", "", 1).isdecimal() and "." in text)


def formula_rows(text: str, parameters: Parameters | None = None) -> list[Choice]:
    """Return the row of a formula, with its multiplier under parameters; none of a word or of what a rule is called.

    Raise ParameterError if the formula is faulty.
    """
    formula, here = text.strip(), ""
    if formula in {"", *(rule.formula for rule in SCALE_RULES.values())} or not is_formula(formula):
        return []
    if parameters is not None:
        try:
            here = message(
                "× {multiplier:.4g} with the present parameters. ",
                multiplier=multiplier(formula, parameters.setting),
            )
        except ParameterError as error:
            here = message("{error}. ", error=error)
    return [
        Choice(
            formula,
            USE,
            formula,
            message(
                "{here}It may contain {formula_accepted}.",
                here=here,
                formula_accepted=FORMULA_ACCEPTED,
            ),
            "you",
        )
    ]
