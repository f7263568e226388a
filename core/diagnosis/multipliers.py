"""Names for a multiplier: every rule, right or wrong, that gives this number for this head."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..message import joined, message
from .causes.catalogue import CAUSES
from .configuration import Configuration, configured_scale
from .results import Expected
from .subject import StatedFacts

# What implementations pad the width of a head to.
_PADDED = (8, 16, 32, 64, 96, 128, 256)
# query_pre_attn_scalar of Gemma 2 and 3, and the widths that other implementations used instead.
_SCALARS = (64, 72, 80, 96, 112, 128, 144, 160, 168, 192, 224, 256, 288, 320, 512, 576)
_LATENT = (576, 320, 288)  # widths of q and k in absorbed latent attention: the latent rank and 64 or 32 rotated
_ALIKE = 2e-3  # relative: what rounding a scale to 16 bits makes of it
_COARSE = 1e-4  # relative: above it, an unknown number may be near one of many rules by chance

Rule: TypeAlias = tuple[float, str, str]  # a multiplier, the cause that explains it, and words for it


@dataclass(frozen=True)
class Name:
    """A cause that explains a multiplier."""

    cause: str
    words: str


def expected_multiplier(facts: StatedFacts, given: Configuration | None) -> Expected:
    """Return the multiplier that a head should have, and its formula; see `_expected`."""
    found = _expected(facts, given)
    powers = {f"1/√{facts.d_k}": facts.d_k**-0.5, f"1/{facts.d_k}": 1 / facts.d_k}
    whole = facts.product(found.start)
    formula = next((name for name, power in powers.items() if facts.d_k > 1 and near(whole, power, 1e-4)), "")
    return replace(found, inside=facts.prescaled, formula=formula)


def _expected(facts: StatedFacts, given: Configuration | None) -> Expected:
    """Return the expected multiplier: what is intended or configured, else the file's, else configured there.

    What a recorder saw is not an expectation; neither is the file's configuration for heads of another width, such as
    those of images beside a text. Without any, 1/√d_k is assumed.
    """
    config = deciding(facts, given)
    if config is not None:
        is_given = given is not None or config.intended is not None
        return _configured(config, facts, "the configuration" if is_given else "the configuration in the file")
    if facts.scale is not None and not facts.observed:
        return Expected(facts.scale, "the file")
    multiplier = facts.d_k**-0.5 / facts.prescaled
    return Expected(multiplier, message("1/√{d_k}, assumed", d_k=facts.d_k), assumed=True)


def deciding(facts: StatedFacts, given: Configuration | None) -> Configuration | None:
    """Return the configuration that says which scale a head should have; None if none does."""
    config = facts.config
    if given is not None or (config is not None and config.intended is not None):
        return config or given
    if config is None or (facts.scale is not None and not facts.observed):
        return None
    other_heads = facts.observed and config.width not in (None, facts.d_k)
    return config if config.states_scale and not other_heads else None


def _configured(config: Configuration, facts: StatedFacts, source: str) -> Expected:
    scale = configured_scale(config, facts.layer, facts.d_k)
    multiplier, words = scale.start, joined((source, scale.words), ", ")
    if config.intended is not None:
        words = message("{formula}, as intended", formula=scale.words)
    if config.inside != 1 and (facts.observed or near(facts.prescaled, config.inside, 1e-3)):
        multiplier *= config.inside
        words = message("{words} × {inside:.4g} of q and k", words=words, inside=config.inside)
    if facts.prescaled != 1:
        amplitude = config.amplitude
        if amplitude is not None and near(facts.prescaled, amplitude**2, 1e-3):
            multiplier *= amplitude**2
        multiplier /= facts.prescaled
    unknown = scale.unknown or facts.unknown_positions
    return Expected(multiplier, words, assumed=bool(unknown), unknown=unknown)


def names(
    multiplier: float, tolerance: float, expected: float, facts: StatedFacts, fits: Callable[[float], bool]
) -> list[Name]:
    """Return every name of a multiplier that is not the expected one, the likeliest first.

    `tolerance` is its relative uncertainty, and `fits` says whether a number explains the evidence. If nothing else
    fits, it is `scale-other`.
    """
    names: dict[str, Name] = {}
    tried: dict[float, bool] = {}
    own = facts.prescaled  # rules are of everything that q·k is multiplied by
    for whole, cause, words in _rules(expected * own, facts, tolerance, multiplier * own):
        candidate = whole / own
        if cause in names or candidate <= 0 or near(candidate, expected, 1e-9):
            continue
        if candidate not in tried:
            tried[candidate] = fits(candidate)
        if tried[candidate]:
            names[cause] = Name(cause, words)
    listed = sorted(names.values(), key=lambda name: -_explained(name.cause, expected * own, facts))
    if not listed or (tolerance > _COARSE and all(CAUSES[name.cause].ambiguous for name in listed)):
        listed.append(
            Name("scale-other", "no known rule gives this number: a learned temperature or a wrong constant")
        )
    return listed


def _rules(expected: float, facts: StatedFacts, tolerance: float, multiplier: float) -> Iterator[Rule]:
    """Yield multipliers with their causes and words, the likeliest first."""
    d, config = facts.d_k, facts.config
    root = d**-0.5
    if is_scale(facts.prescaled, expected):
        words = "the factor that is already inside q and k was applied again"
        yield expected * facts.prescaled, "scale-twice", words
    yield from _yarn(expected, root, _factors_of(config))
    if not near(expected, root, 1e-9) and not near(expected, 1, 1e-9):
        yield root, "scale-fixed", message("1/√d_k = 1/√{d}, the default, not the model's scale", d=d)
    if config and config.inverse_layer:
        yield expected * (facts.layer + 1), "scale-layer", "the division by layer + 1 is missing"
    if not near(expected, 1, 1e-9):
        yield 1.0, "scale-missing", "the scores were not scaled"
        yield expected**2, "scale-twice", "the scale was applied twice"
    yield 1 / d, "scale-1-over-d", message("1/d_k = 1/{d}, as in muP and Granite", d=d)
    if near(expected, 1, 1e-9):
        yield root, "scale-twice", message("1/√{d} was applied to scores that need no scale", d=d)
    yield math.sqrt(d), "scale-inverted", message("the scores were multiplied by √{d} instead of divided", d=d)
    yield 1 / expected, "scale-inverted", "the scores were divided by the scale"
    if facts.prescaled != 1:
        yield expected * facts.prescaled, "prescale-extra", _extra(facts)
    yield from _of_other_widths(expected, facts)
    yield math.sqrt(expected), "scale-quarter", "the square root of the scale: applied to q or k alone"
    yield d**-0.25, "scale-quarter", message("{d}^−¼: the scale was applied to q or k alone", d=d)
    yield expected * math.log2(math.e), "scale-base2", "the expected scale × log₂ e"
    yield expected * math.log(2), "scale-base2", "the expected scale × ln 2: exp2 without log₂ e"
    if layer := facts.layer:
        after = layer + 1
        yield expected / after, "scale-layer", message("divided by layer + 1 = {layer}", layer=after)
        yield expected * after, "scale-layer", message("the division by layer + 1 = {layer} is missing", layer=after)
        yield expected / layer, "scale-layer", message("divided by the layer's number {layer}", layer=layer)
    # The padded width of the expected rule, 1/√w: 80 → 96, 15 → 16, 64 → 128.
    for width in {d, round(expected**-2) if expected < 1 else d}:
        for padded in _padded(width):
            yield padded**-0.5, "scale-padded", message("1/√{padded}, a padded width", padded=padded)
    if facts.keys is not None:
        yield facts.keys**-0.5, "scale-n-keys", message("1/√keys = 1/√{keys}, the other axis of q·k", keys=facts.keys)
    yield from _constants(expected, facts)
    yield from _yarn(expected, root, _USUAL_FACTORS)
    if tolerance < _COARSE and 0 < multiplier < 1:
        scalar = round(multiplier**-2)
        if 8 <= scalar <= 16_384 and tolerance * scalar < 0.02:
            words = message("1/√{scalar}, a constant that is not the model's", scalar=scalar)
            yield scalar**-0.5, "scale-fixed", words


def _explained(cause: str, expected: float, facts: StatedFacts) -> int:
    """Return how many other layers of a recording have another multiplier than expected that this cause explains."""
    count = 0
    for layer, whole in facts.others:
        if not near(whole, expected, _ALIKE):
            rules = _rules(expected, replace(facts, layer=layer), 1.0, whole)
            count += any(name == cause and near(number, whole, _ALIKE) for number, name, _ in rules)
    return count


def is_scale(prescaled: float, expected: float) -> bool:
    """Return whether the factor inside q and k is the expected scale of the whole product, or its root.

    Then q and k are scaled as they should be: both by the root, one of them by all, or only one by the root.
    """
    return prescaled != 1 and (near(prescaled, expected, _ALIKE) or near(prescaled**2, expected, _ALIKE))


def _extra(facts: StatedFacts) -> str:
    """Return what is said of a factor inside q and k that is not the scale."""
    factor, (of_q, of_k) = facts.prescaled, facts.inside
    if of_q != 1 and near(of_q, of_k, _ALIKE):
        inside = message("q and k carry × {factor:.4g} each", factor=of_q)
    elif of_k == 1 or of_q == 1:
        inside = message("{side} carries × {factor:.4g}", side="q" if of_k == 1 else "k", factor=factor)
    else:
        inside = message("q carries × {of_q:.4g} and k × {of_k:.4g}", of_q=of_q, of_k=of_k)
    return message("{factor:.4g} × the expected scale: {inside}", factor=factor, inside=inside)


def _of_other_widths(expected: float, facts: StatedFacts) -> Iterator[Rule]:
    """Yield 1/√ of widths that are not the head's: of the model, the number of heads, and the latent."""
    d, config = facts.d_k, facts.config
    root = d**-0.5
    together = (facts.n_heads or facts.heads) * d
    for width in _known(facts.d_model, config and config.hidden_size, together if together > d else None):
        yield width**-0.5, "scale-d-model", f"1/√d_model = 1/√{width:g}"
        words = message("1/√{d} and again 1/√d_model = 1/√{width:g}", d=d, width=width)
        yield root * width**-0.5, "scale-d-model", words
    for heads in _known(facts.n_heads, config and config.heads, facts.heads):
        if heads > 1:
            yield heads**-0.5, "scale-n-heads", message("1/√heads = 1/√{heads:g}", heads=heads)
    latent = [config.latent_width, config.latent_rank] if config else []
    for width in _known(*latent, *([d, d - 64] if d in _LATENT and not near(expected, root, 1e-9) else [])):
        words = message("1/√{width:g}, the width of latent attention and not of a head", width=width)
        for cause in ("scale-d-model", "scale-padded", "scale-fixed"):
            yield width**-0.5, cause, words


def _constants(expected: float, facts: StatedFacts) -> Iterator[Rule]:
    """Yield constants that are another model's scale, or the default."""
    config = facts.config
    if config and config.hidden_size and config.heads:
        share = config.hidden_size / config.heads
        yield share**-0.5, "scale-fixed", message("1/√(hidden size / heads) = 1/√{share:g}", share=share)
    for scalar in _SCALARS:
        words = message("1/√{scalar}, a query_pre_attn_scalar of another model", scalar=scalar)
        yield scalar**-0.5, "scale-fixed", words


def _mscale(context: float, mscale: float = 1.0) -> float:
    """Return YaRN's factor of the scale where a context was made this many times longer."""
    return (0.1 * mscale * math.log(context) + 1) ** 2


def _factors_of(config: Configuration | None) -> list[float]:
    """Return YaRN's factors of the scale that a configuration may mean."""
    factors: list[float] = []
    if config and config.rope_factor and config.rope_factor > 1:
        known = _known(config.mscale_all_dim, config.mscale, 1.0)
        factors += [_mscale(config.rope_factor, mscale) for mscale in known]
    if config and config.amplitude:
        factors.append(config.amplitude**2)
    return factors


# YaRN's factors of usual contexts, with DeepSeek's mscale too, and the logarithm of one over 4,096.
_USUAL_FACTORS = [
    factor
    for context in (2, 4, 8, 16, 32, 40, 64, 128)
    for factor in (_mscale(context), _mscale(context, 0.707), 1 + math.log(context) / math.log(4096))
]


def _yarn(expected: float, root: float, factors: Sequence[float]) -> Iterator[Rule]:
    """Yield YaRN's factor squared again, missing or extra, and twice."""
    larger = [factor for factor in dict.fromkeys(factors) if factor > 1]
    for factor in larger:
        if near(expected, factor * root, 1e-3):
            words = message("YaRN's mscale² = {factor:.4g} was squared again", factor=factor)
            yield expected * factor, "scale-yarn-twice", words
    for factor in larger:
        yield expected / factor, "scale-yarn", message("YaRN's mscale² = {factor:.4g} is missing", factor=factor)
        yield expected * factor, "scale-yarn", message("× YaRN's mscale² = {factor:.4g}", factor=factor)
    for factor in larger:
        words = message("× YaRN's mscale² = {factor:.4g}, twice", factor=factor)
        yield expected * factor**2, "scale-yarn-twice", words
        words = message("÷ YaRN's mscale² = {factor:.4g}, twice", factor=factor)
        yield expected / factor**2, "scale-yarn-twice", words


def _padded(width: int) -> list[int]:
    padded = {(width // step + 1) * step for step in _PADDED if step <= 2 * width or step <= 32}
    padded |= {1 << width.bit_length(), 256}
    return sorted(number for number in padded if width < number <= max(4 * width, 32) or number == 256)


def _known(*numbers: float | None) -> list[float]:
    return [number for number in dict.fromkeys(numbers) if number]


def near(a: float, b: float, tolerance: float) -> bool:
    """Return whether a number is another one, to a relative tolerance."""
    return b != 0 and abs(a / b - 1) <= tolerance
