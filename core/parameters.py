"""Parameters: the settings of one measurement. FIELDS: the one declaration of each parameter.

A row of FIELDS becomes a command-line option, a line of the parameter panel, its help and a key of the JSON report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import itemgetter
from typing import Any, Literal, cast, get_args

from .errors import ParameterError
from .field import Field, Value
from .message import message
from .models import MODELS, SET_BY_MODEL
from .scales import SCALE_RULES, UNSCALED_RULES, RuleSetting, ScaleName, is_formula, rules_that_need, scale_rule
from .setting_text import ACCEPTED, UNSCALED, changes_in, text_of, with_next_rule

NO_MODEL = "none"
ComponentLaw = Literal["normal", "uniform", "laplace", "rademacher", "student_t"]
MaskName = Literal["none", "causal"]
MechanismName = Literal["dot_product", "additive", "cosine", "bilinear"]
SinkName = Literal["none", "logit"]
ArithmeticName = Literal["eager", "fused"]
FormatName = Literal["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]


@dataclass(frozen=True)
class Parameters:
    """The settings of one measurement, each checked against its row of FIELDS."""

    d_k: int = 64
    n_keys: int = 128
    n_queries: int = 64
    batch: int = 16
    components: ComponentLaw = "normal"
    degrees_of_freedom: int = 5
    mean_q: float = 0.0
    std_q: float = 1.0
    mean_k: float = 0.0
    std_k: float = 1.0
    correlation: float = 0.0
    against: str = UNSCALED
    scale: ScaleName = "sqrt_d_k"
    multiplier: float = 1.0
    layer: int = 11
    position: int = 32_767
    context_factor: float = 8.0
    temperature: float = 20.0
    norm_gain: float = 1.0
    mask: MaskName = "none"
    mechanism: MechanismName = "dot_product"
    gain: float = 1.0
    softcap: float = 0.0
    sink: SinkName = "none"
    sink_logit: float = 0.0
    precision: FormatName = "float32"
    arithmetic: ArithmeticName = "fused"
    d_v: int = 64
    seed: int = 0
    model: str = NO_MODEL

    def __post_init__(self) -> None:
        values = vars(self)
        for name, field in FIELD.items():
            value, usual = values[name], _DEFAULTS[name]
            if value != usual or type(value) is not type(usual):
                field.check(value)
        check_arithmetic(self.precision, self.arithmetic)
        if self.n_keys * max(self.d_k, self.d_v) > _MOST_COMPONENTS:
            raise ParameterError(
                "keys: {n_keys} of width {width} are too many; at most {most} of this width",
                n_keys=self.n_keys, width=max(self.d_k, self.d_v), most=_MOST_COMPONENTS // max(self.d_k, self.d_v),
            )  # fmt: skip
        if self.against != UNSCALED:
            _ = self.a  # or raise

    def __reduce__(self) -> tuple[Callable[..., Parameters], tuple[Value, ...]]:
        """Pickle the values alone, which are half as many bytes as with their names: every part of work has them."""
        return _unpickled, _values_of(vars(self))

    @cached_property
    def setting(self) -> RuleSetting:
        """The parameters that a scale rule's multiplier may depend on."""
        return RuleSetting(*(getattr(self, name) for name in _OF_SETTING))

    @cached_property
    def a(self) -> Parameters:
        """A's parameters; raises ParameterError if they contradict each other."""
        changed = changes(self.against)
        if changed.get("scale") == UNSCALED:
            changed["scale"] = _unscaled(self.scale)
        if self.against == UNSCALED:
            return self.unchecked(**changed)
        try:
            return replace(self, **{**changed, "against": UNSCALED})  # pyright: ignore[reportArgumentType]
        except ParameterError as error:
            raise ParameterError("against: {error}", error=error) from None

    def unchecked(self, **values: Value) -> Parameters:
        """Return these parameters with values that are valid beside the others; checking would take longer."""
        return _unpickled(*_values_of(vars(self) | values))

    def with_value(self, name: str, value: Value) -> Parameters:
        """Return these parameters with a value replaced, or with all that a model sets; may raise ParameterError."""
        new: dict[str, Any] = {name: value}
        if name == "model" and value in MODELS:
            before = MODELS[self.model].parameters if self.model in MODELS else {}
            new |= {name: getattr(Parameters, name) for name in (*SET_BY_MODEL, *before)}
            new |= MODELS[str(value)].parameters
        return replace(self, **new)

    def stepped(self, name: str, direction: Literal[-1, 1]) -> Value:
        """Return the next or previous value of a parameter, as its field declares.

        A goes past the rule `none` where `unscaled` is the same: beside a rule of B that does not normalise q and k.
        """
        field = FIELD[name]
        value = field.stepped(getattr(self, name), direction)
        if name == "against" and changes(str(value)).get("scale") == _unscaled(self.scale) == "none":
            value = field.stepped(value, direction)
        return value


def check_arithmetic(precision: FormatName, arithmetic: ArithmeticName) -> None:
    """Raise ParameterError if a format has no such arithmetic."""
    if arithmetic == "eager" and precision in FUSED_ONLY:
        word = choice_word(precision)
        raise ParameterError("arithmetic: must be fused with format {word}; no kernel rounds scores to it", word=word)


@dataclass(frozen=True)
class AgainstField(Field):
    """The field of a text that says in what A differs from B."""

    @property
    def accepted(self) -> str:
        return ACCEPTED

    def check(self, value: object) -> None:
        if not (isinstance(value, str) and changes(value)):
            raise self.refused(value)

    def parse(self, text: str) -> Value:
        return text_of(changes(text.strip()), FIELDS)

    def stepped(self, value: Value, direction: Literal[-1, 1]) -> Value:
        return text_of(with_next_rule(changes(str(value)), direction), FIELDS)


def changes(against: str) -> dict[str, Value]:
    """Return the parameters in which A differs from B, by name; raise ParameterError if the text is not accepted."""
    return {"scale": UNSCALED} if against == UNSCALED else changes_in(against, FIELDS)


def setting_a(p: Parameters) -> Parameters:
    """Return A's parameters; raise ParameterError if they contradict each other."""
    return p.a


def _unscaled(scale: ScaleName) -> ScaleName:
    """Return the rule of multiplier 1 that normalises q and k as a rule does."""
    return UNSCALED_RULES[scale_rule(scale).normalise]


_WORDS = {
    "laplace": "Laplace", "rademacher": "Rademacher", "student_t": "Student t", "dot_product": "dot product",
    "float8_e4m3fn": "float8 e4m3", "float8_e5m2": "float8 e5m2",
}  # fmt: skip


def choice_word(value: str) -> str:
    """Return the word for the value of a choice: `student_t` is Student t, and `gpt2` is GPT-2 small."""
    return MODELS[value].title if value in MODELS else _WORDS.get(value, value)


def _users_of(name: str) -> str:
    """Name the scale rules that depend on a field: "yarn, deepseek_v2 and longrope"."""
    *others, last = rules_that_need(name)
    return message("{others} and {last}", others=", ".join(others), last=last) if others else last


def rows_differ(p: Parameters, rule: ScaleName) -> bool:
    """Return whether each row has its own multiplier under a rule: it is of the keys it sees, and these differ."""
    return p.mask == "causal" and "n_keys" in scale_rule(rule).by_row


def scales_vectors(p: Parameters, rule: ScaleName) -> bool:
    """Return whether a rule multiplies q and k instead of their scores, in a format in which that differs."""
    return scale_rule(rule).on_vectors and p.precision in ROUNDED and p.mechanism in ("dot_product", "bilinear")


def _needed(name: str) -> Callable[[Parameters], bool]:
    """Return whether the scale rule of A or B depends on this field of B."""

    def needs(p: Parameters) -> bool:
        changed = changes(p.against)
        own = UNSCALED if name in changed else str(changed.get("scale", UNSCALED))
        return any(name in scale_rule(rule).needs for rule in (p.scale, own) if rule != UNSCALED)

    return needs


ROUNDED: tuple[FormatName, ...] = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")  # below 32 bits
FUSED_ONLY: tuple[FormatName, ...] = ("float8_e4m3fn", "float8_e5m2")
_MOST_COMPONENTS = 1 << 27  # of the keys of a draw: 512 MiB of float32
_LEAST = 1e-6  # of a number that may be 0: products of several are far from the smallest number of float32

FIELDS: tuple[Field, ...] = (
    Field(
        "model", "model", "model",
        "The model whose attention to measure. Sets d_k, d_v, keys (its longest context), scale rule, soft-cap and "
        "sink, and for more than 8192 keys one query and four draws. Queries stand at the end of the context, where "
        "a causal mask hides nothing.",
        "choice", choices=(NO_MODEL, *MODELS), group="model",
    ),
    Field(
        "d_k", "d_k", "d_k",
        "Width of a query and of a key: how many products are summed into one score.",
        "integer", 1, 16_384, step="double", group="shape",
    ),
    Field(
        "n_keys", "keys", "n",
        "Number of keys; softmax runs over them.",
        "integer", 1, 2**20, step="double", group="shape",
    ),
    Field(
        "n_queries", "queries", "m",
        "Queries per draw; each is one row of attention weights.",
        "integer", 1, 8_192, step="double", group="shape",
    ),
    Field(
        "batch", "batch", "B",
        "Independent draws of queries and keys. Every ± is a standard error over them.",
        "integer", 2, 4_096, step="double", group="shape",
    ),
    Field(
        "d_v", "d_v", "d_v",
        "Width of a value. The gradient of one weight is a sum of d_v products ∂L/∂output·v, so d_v sets the size of "
        "all gradients.",
        "integer", 1, 1_024, step="double", group="shape",
    ),
    AgainstField(
        "against", "against", "A",
        "What column A is: B with another scale rule, other parameters, or both, such as none, components=laplace or "
        "d_k,precision=bfloat16. unscaled is multiplier 1, with q and k normalised as B's rule does.",
        "setting", group="attention",
    ),
    Field(
        "scale", "scale", "c",
        "The rule for the multiplier of column B.",
        "choice", choices=tuple(SCALE_RULES), group="attention", beyond=is_formula,
    ),
    Field(
        "multiplier", "multiplier", "c",
        "The number that scores are multiplied by under the custom rule (not a divisor).",
        "real", 1e-6, 1_000, step=0.05, group="attention", applies=_needed("multiplier"),
    ),
    Field(
        "layer", "layer", "layer",
        f"The layer's number in the model, from 0; used by {_users_of('layer')}.",
        "integer", 0, 1_000, group="attention", applies=_needed("layer"),
    ),
    Field(
        "position", "position", "position",
        f"The query's position in the text, from 0; used by {_users_of('position')}.",
        "integer", 0, 2**24 - 1, step=8_192, group="attention",
        applies=_needed("position"),
    ),
    Field(
        "context_factor", "context factor", "s",
        f"How many times longer the context was made after training; used by {_users_of('context_factor')}.",
        "real", 1, 1_024, step="double", group="attention",
        applies=_needed("context_factor"),
    ),
    Field(
        "temperature", "temperature", "t",
        f"The learned factor of a cosine: scores are this times cos(q, k); used by {_users_of('temperature')}.",
        "real", 1e-3, 1_000, step=5, group="attention", applies=_needed("temperature"),
    ),
    Field(
        "norm_gain", "norm gain", "g",
        "The learned gain of QK-norm under scale rules that normalise q and k: every normalised query and key is "
        "multiplied by it, so scores are by g². It starts at 1; trained heads have one for each component.",
        "real", 1e-3, 100, step=0.1, group="attention",
        applies=lambda p: any(scale_rule(rule).normalise != "none" for rule in (p.scale, setting_a(p).scale)),
    ),
    Field(
        "mask", "mask", "M",
        "Which keys a query sees: none hides no key; causal lets query i see keys 0 to i (top-left aligned, as "
        "PyTorch's is_causal).",
        "choice", choices=get_args(MaskName), group="attention",
    ),
    Field(
        "mechanism", "mechanism", "s(q, k)",
        "How a query and a key become a score: their dot product; additive, v·tanh(W₁q + W₂k); cosine, the dot "
        "product of both at length 1; bilinear, qᵀWk. W and v are drawn once per seed; ± does not include their "
        "variation.",
        "choice", choices=get_args(MechanismName), group="attention",
    ),
    Field(
        "gain", "gain", "g",
        "Extra gain on the scores of mechanisms with learned weights (additive, bilinear).",
        "real", 1e-3, 1_000, step="double", group="attention",
        applies=lambda p: p.mechanism in ("additive", "bilinear"),
    ),
    Field(
        "softcap", "soft-cap", "cap",
        "Logits become cap·tanh(logit/cap) after scaling and before the mask, as in Gemma 2 (50); 0 turns it off.",
        "real", 0, 10_000, step=10, least=_LEAST, group="attention",
    ),
    Field(
        "sink", "sink", "sink",
        "Adds a logit that belongs to no key: it absorbs weight and contributes nothing (an attention sink).",
        "choice", choices=get_args(SinkName), group="attention",
    ),
    Field(
        "sink_logit", "sink logit", "σ",
        "The logit of the sink. Models learn one per head (GPT-OSS); 0 is the off-by-one softmax.",
        "real", -1_000, 1_000, step=1, group="attention", applies=lambda p: p.sink == "logit",
    ),
    Field(
        "precision", "format", "format",
        "The number format of queries, keys and values; products are summed in float32. The arithmetic says which "
        "other numbers are rounded to it. float64 and float32 compute in that format.",
        "choice", choices=get_args(FormatName), group="attention",
    ),
    Field(
        "arithmetic", "arithmetic", "arithmetic",
        "What is rounded in formats of 16 and 8 bits. eager: scores, logits and weights in turn, as PyTorch does "
        "without a fused kernel. fused: only e^(x − max), where it meets the values; scores and softmax are float32, "
        "as in FlashAttention-2 and -3 (arXiv 2307.08691, 2407.08608). float8 is fused only.",
        "choice", choices=get_args(ArithmeticName), group="attention", applies=lambda p: p.precision in ROUNDED,
    ),
    Field(
        "components", "components", "law",
        "The distribution that each component of q and k is drawn from, standardised to mean 0 and variance 1 "
        "before its own mean and standard deviation are applied.",
        "choice", choices=get_args(ComponentLaw), group="components",
    ),
    Field(
        "degrees_of_freedom", "t degrees", "ν",
        "Degrees of freedom of Student's t: fewer give heavier tails. The kurtosis exists from 5 on.",
        "integer", 3, 1_000, group="components", applies=lambda p: p.components == "student_t",
    ),
    Field(
        "mean_q", "mean of q", "μ_q", "Mean of each component of a query.",
        "real", -100, 100, step=0.1, least=_LEAST, group="components",
    ),
    Field(
        "std_q", "std of q", "σ_q", "Standard deviation of each component of a query.",
        "real", 0, 100, step=0.1, least=_LEAST, group="components",
    ),
    Field(
        "mean_k", "mean of k", "μ_k", "Mean of each component of a key.",
        "real", -100, 100, step=0.1, least=_LEAST, group="components",
    ),
    Field(
        "std_k", "std of k", "σ_k", "Standard deviation of each component of a key.",
        "real", 0, 100, step=0.1, least=_LEAST, group="components",
    ),
    Field(
        "correlation", "correlation", "ρ",
        "Correlation of matching components of every query and key: both contain √|ρ| of one shared direction, as "
        "aligned queries and keys of trained heads do.",
        "real", -1, 1, step=0.05, least=_LEAST, group="components",
    ),
    Field(
        "seed", "seed", "seed",
        "Seed of the random numbers. The same seed gives the same numbers, in whatever order parameters are changed.",
        "integer", 0, 2**32 - 1, group="draw",
    ),
)  # fmt: skip

_OF_SETTING = RuleSetting._fields
FIELD: dict[str, Field] = {field.name: field for field in FIELDS}
_DEFAULTS: dict[str, object] = {field.name: field.default for field in fields(Parameters)}
assert set(FIELD) == set(_DEFAULTS)
_values_of: Callable[[dict[str, Any]], tuple[Value, ...]] = itemgetter(*_DEFAULTS)


def _unpickled(*values: Value) -> Parameters:
    """Return parameters with these values, which were checked before."""
    made = object.__new__(Parameters)
    vars(made).update(zip(_DEFAULTS, values, strict=True))
    return made


def parameters_from(values: Mapping[str, Value], start: Parameters | None = None) -> Parameters:
    """Return parameters, by default those without a model, with these values; others override what a model sets."""
    start = start or Parameters()
    if "model" in values:
        start = start.with_value("model", values["model"])
    return replace(start, **cast(Any, values))


def usual_of(p: Parameters) -> Parameters:
    """Return the default parameters, with what the model of `p` sets."""
    return Parameters() if p.model == NO_MODEL else Parameters().with_value("model", p.model)


def context_note(p: Parameters) -> str:
    """Return that fewer keys are measured than the model's longest context has; empty if not, or without a model."""
    if p.model == NO_MODEL or p.n_keys >= MODELS[p.model].context:
        return ""
    context = MODELS[p.model].context
    return message("longest context {context:,}, measured at {keys:,} keys", context=context, keys=p.n_keys)


def model_title(p: Parameters) -> str:
    """Return the title of the model, marked as changed unless all is as the model sets it; empty without a model."""
    if p.model == NO_MODEL:
        return ""
    usual, title = usual_of(p), MODELS[p.model].title
    changed = any(getattr(p, name) != getattr(usual, name) for name in SET_BY_MODEL)
    return message("{title}, changed", title=title) if changed else title
