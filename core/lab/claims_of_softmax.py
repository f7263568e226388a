"""What is said about attention weights and the gradients behind them, unscaled and scaled by 1/√d_k."""

from __future__ import annotations

import math

from ..parameters import Parameters
from .trials import (
    first_or_last,
    gradient_growth,
    largest_of_matrix,
    live_entries,
    softmax_example,
)
from .verdicts import NOTHING, Claim, Figure, Said, at_least, at_most, enough, lab, less, trial, trial_part, value

_UNSCALED = (-24.0, -10.0, 0.0, 10.0, 24.0)
_SCALED = (-3.0, -1.0, 0.0, 1.0, 3.0)
_TEN = Parameters(n_keys=10, n_queries=10, batch=512)


def _weights(logits: tuple[float, ...], claimed: tuple[float, ...], decimals: int) -> tuple[Figure, ...]:
    """A figure for each weight of a row, claimed to so many decimals."""
    return tuple(
        Figure(
            f"weight of {logit:g}",
            value(weight, within=0.5 * 10**-decimals),
            trial_part(str(place), softmax_example, *logits),
        )
        for place, (logit, weight) in enumerate(zip(logits, claimed, strict=True))
    )


def _exponent(label: str, said: Said, column: str, first: int, last: int) -> Figure:
    """How a norm of ∂L/∂q grows from one d_k to another: as d_k to this power."""
    part = trial_part(column, gradient_growth, first, last, 10, 64)
    return Figure(f"exponent of d_k from {first} to {last}, {label}", said, part)


_INVERSE = value(-1, within=0.1)
_CONSTANT = value(0, within=0.05, words="0 (constant)")

SOFTMAX: tuple[Claim, ...] = (
    Claim(
        "softmax-unscaled-example",
        "softmax(−24, −10, 0, 10, 24) is about (0, 0, 0, 0, 1).",
        "study note 000",
        "Weights compare by e to the difference of logits, and the largest two differ by 14: the second gets e⁻¹⁴, "
        "less than a millionth, and the first the rest. Differences of that size are common among scores whose "
        "standard deviation is 8.",
        Parameters(n_keys=5),
        _weights(_UNSCALED, (0, 0, 0, 0, 1), 5),
    ),
    Claim(
        "softmax-scaled-example",
        "softmax(−3, −1, 0, 1, 3) = (0.012, 0.089, 0.243, 0.661, 0.995).",
        "study note 000",
        "These five add up to 2, and attention weights add up to 1: they are a softmax of nothing at all. The "
        "largest weight is e³ over the sum of all five exponentials, 20.09/24.22 = 0.829.",
        Parameters(n_keys=5),
        (
            *_weights(_SCALED, (0.012, 0.089, 0.243, 0.661, 0.995), 3),
            Figure("their sum", value(2, within=0.0005), trial_part("sum", softmax_example, *_SCALED)),
        ),
    ),
    Claim(
        "scaled-derivative",
        "Scaled, the derivative p(1 − p) of every weight stays above 0.01.",
        "study note 000",
        "p(1 − p) is less than p, and weights add up to 1: fewer than 100 of them can have it above 0.01, whatever "
        "the scale. With 10 keys nearly all do. With 1024 a typical weight is a thousandth, and even fewer are "
        "above 0.01 scaled than unscaled, where a row has at least a few larger weights.",
        Parameters(n_keys=10),
        (
            Figure(
                "least p(1 − p) of the note's own example",
                at_least(0.01),
                trial_part("least p(1 − p)", softmax_example, *_SCALED),
            ),
            *(
                Figure(
                    f"share above 0.01, scaled, {n} keys", value(1, words="all"), trial(live_entries, 64, n, 1 / 8)
                )
                for n in (10, 1024)
            ),
            *(
                Figure(f"share above 0.01, unscaled, {n} keys", NOTHING, trial(live_entries, 64, n, 1.0))
                for n in (10, 1024)
            ),
        ),
    ),
    Claim(
        "entropy-table",
        "At d_k 16, 64 and 256 the entropy of a row is 2.1, 0.8 and 0.2 unscaled, and 2.3 each time scaled.",
        "study note 000",
        "The direction is right, the figures are not. The note's code has 10 keys, so that 2.3 = ln 10 is the "
        "entropy of weights that are all equal, which 1/√d_k does not make them. Unscaled, the entropy is far lower "
        "at d_k 16 than claimed, and then falls only like 1/√d_k: four times the width halves it.",
        _TEN,
        tuple(
            Figure(
                f"entropy at d_k {d}, {'scaled' if scaled else 'unscaled'}, 10 keys",
                value(claimed, within=0.05),
                lab("entropy", _TEN.with_value("d_k", d), scaled),
            )
            for scaled, column in ((False, (2.1, 0.8, 0.2)), (True, (2.3, 2.3, 2.3)))
            for d, claimed in zip((16, 64, 256), column, strict=True)
        ),
    ),
    Claim(
        "gradient-inverse-dk",
        "Unscaled, the norm of ∂L/∂Q falls like 1/d_k; scaled, it is constant.",
        "study note 000",
        "Unscaled, no power of d_k describes it. The typical row becomes one-hot and its gradient dies, in the end "
        "like an exponential of −√d_k. But a few rows are near ties between two keys; their gradient is larger the "
        "larger the keys are, and they make up the norm of the whole matrix, which grows, in the end like d_k^¼. "
        "Scaled, both are constant, for values of a given width.",
        _TEN,
        (
            _exponent("unscaled, root mean square", _INVERSE, "unscaled RMS", 16, 32),
            _exponent("unscaled, root mean square", _INVERSE, "unscaled RMS", 128, 256),
            _exponent("unscaled, median row", _INVERSE, "unscaled median", 16, 32),
            _exponent("unscaled, median row", _INVERSE, "unscaled median", 128, 256),
            _exponent("scaled, root mean square", _CONSTANT, "scaled RMS", 16, 32),
            _exponent("scaled, root mean square", _CONSTANT, "scaled RMS", 128, 256),
            _exponent("scaled, median row", _CONSTANT, "scaled median", 128, 256),
        ),
    ),
    Claim(
        "max-weight-example",
        "The largest weight of a 10 × 10 matrix at d_k 16, 64 and 256 is 0.342, 0.891 and 0.998 unscaled, "
        "and 0.289, 0.276 and 0.301 scaled.",
        "study note 000",
        "The code that is printed beside these figures does not give them. It takes the largest of all hundred "
        "weights; among ten rows one is all but one-hot already at d_k 16, and even scaled one usually gives half "
        "of its weight to one key.",
        Parameters(d_k=16, n_keys=10, n_queries=10),
        tuple(
            Figure(
                f"largest weight at d_k {d}, {'scaled' if scaled else 'unscaled'}, mean of many runs",
                value(claimed, within=0.05),
                trial(largest_of_matrix, d, 10, 1 / math.sqrt(d) if scaled else 1.0),
            )
            for scaled, column in ((False, (0.342, 0.891, 0.998)), (True, (0.289, 0.276, 0.301)))
            for d, claimed in zip((16, 64, 256), column, strict=True)
        ),
    ),
    Claim(
        "unscaled-one-hot",
        "Unscaled, rows become one-hot as d_k grows; scaled, they do not change.",
        "study notes 000, 001",
        "The gap between the largest two scores of a row is proportional to their standard deviation √d_k: sooner "
        "or later it is large enough for one weight to take everything. Scaled, the standard deviation is 1 at any "
        "width, and all that d_k still changes is how normal the scores are.",
        Parameters(d_k=4096, n_keys=10, n_queries=16, batch=16),
        (
            Figure(
                "one-hot rows at d_k 4096, unscaled, 10 keys",
                at_least(0.9, "nearly all, at least 0.9"),
                lab("one_hot_rows", enough(4096, 10)),
            ),
            *(
                Figure(
                    f"one-hot rows at d_k {more}, less those at {d}, unscaled",
                    at_least(0.02, "more, by at least 0.02"),
                    less(lab("one_hot_rows", enough(more, 10)), lab("one_hot_rows", enough(d, 10, seed=1))),
                )
                for d, more in ((16, 256), (256, 4096))
            ),
            Figure(
                "one-hot rows at d_k 4096, scaled",
                at_most(0.01, "hardly any, at most 0.01"),
                lab("one_hot_rows", enough(4096, 10), scaled=True),
            ),
            Figure(
                "scaled entropy at d_k 4096, less that at 16",
                value(0, within=0.02),
                less(lab("entropy", enough(4096, 10), True), lab("entropy", enough(16, 10, seed=1), True)),
            ),
        ),
    ),
    Claim(
        "first-last-token",
        "Unscaled, attention concentrates on the first or the last token.",
        "study note 001",
        "It concentrates, but on a key drawn at random: nothing in independent queries and keys distinguishes one "
        "position. In trained models the first token often does attract weight (an attention sink), but that is "
        "learned, and happens with the scale in place.",
        Parameters(d_k=512),
        tuple(
            Figure(
                f"{words} the first or last of {n} keys",
                at_least(0.5, "most"),
                trial_part(part, first_or_last, 512, n),
            )
            for n in (10, 128)
            for words, part in (("rows whose largest weight is on", "largest"), ("weight on", "weight"))
        ),
    ),
    Claim(
        "long-sequences",
        "Without the scale, long sequences suffer more.",
        "study note 002",
        "For saturation it is the other way round. With more keys the largest scores lie closer together, so that "
        "at the same d_k the largest weight of a longer row is smaller. The standard deviation that freezes "
        "softmax, √(2 ln n), grows with the length too.",
        Parameters(n_keys=1024),
        tuple(
            Figure(
                f"largest weight with {more} keys, less that with {n}, d_k 64, unscaled",
                at_least(0, "more"),
                less(lab("max_weight", enough(64, more)), lab("max_weight", enough(64, n, seed=1))),
            )
            for n, more in ((10, 128), (128, 1024))
        ),
    ),
)
