"""Claims about attention weights and their gradients, unscaled and scaled by 1/√d_k."""

from __future__ import annotations

import math

from ...message import message
from ...parameters import Parameters
from ..claim import UNCLAIMED, Bounds, Claim, ClaimFigure, at_least, at_most, precise, trial, trial_part, value
from ..sources import Difference, FromLab

_UNSCALED = (-24.0, -10.0, 0.0, 10.0, 24.0)
_SCALED = (-3.0, -1.0, 0.0, 1.0, 3.0)
_INTERVIEWS = "widely copied interview answers"
_TEN = Parameters(n_keys=10, n_queries=10, batch=512)


def _weights(logits: tuple[float, ...], claimed: tuple[float, ...], decimals: int) -> tuple[ClaimFigure, ...]:
    """Return a figure for each of a row's first weights, claimed to this number of decimals."""
    return tuple(
        ClaimFigure(
            message("weight of {logits:g}", logits=logits[place]).replace("-", "−"),
            value(weight, within=0.5 * 10**-decimals),
            trial_part(str(place), "softmax_example", *logits),
        )
        for place, weight in enumerate(claimed)
    )


def _exponent(label: str, claimed: Bounds, column: str, first: int, last: int) -> ClaimFigure:
    """Return the exponent of d_k with which a norm of ∂L/∂q grows from d_k `first` to `last`."""
    part = trial_part(column, "gradient_growth", first, last, 10, 64)
    return ClaimFigure(
        message("exponent of d_k from {first} to {last}, {label}", first=first, last=last, label=label), claimed, part
    )


_LENGTHS = ((10, 128), (128, 1024))
_INVERSE = value(-1, within=0.1)
_CONSTANT = value(0, within=0.05, words="0 (constant)")

SOFTMAX: tuple[Claim, ...] = (
    Claim(
        "softmax-unscaled-example",
        "softmax(−24, −10, 0, 10, 24) is about (0, 0, 0, 0, 1).",
        "widely copied study notes",
        "The ratio of two weights is e to the difference of their logits, and the largest two differ by 14: the "
        "second weight is e⁻¹⁴ of the first, less than a millionth. Such differences are common among scores with a "
        "standard deviation of 8.",
        Parameters(n_keys=5),
        _weights(_UNSCALED, (0, 0, 0, 0, 1), 5),
        title="softmax of five scores",
        scores=_UNSCALED,
    ),
    Claim(
        "softmax-scaled-example",
        "softmax(−3, −1, 0, 1, 3) = (0.012, 0.089, 0.243, 0.661, 0.995).",
        "widely copied study notes",
        "These five add up to 2, but attention weights add up to 1: they are not the softmax of any scores. The "
        "largest weight is e³ over the sum of all five exponentials, 20.09/24.22 = 0.829.",
        Parameters(n_keys=5),
        (
            *_weights(_SCALED, (0.012, 0.089, 0.243, 0.661, 0.995), 3),
            ClaimFigure("their sum", value(2, within=0.0005), trial_part("sum", "softmax_example", *_SCALED)),
        ),
        title="softmax of five scaled scores",
        scores=_SCALED,
    ),
    Claim(
        "softmax-of-20",
        "softmax(20, 10, 10) is about (0.99, 0.005, 0.005).",
        _INTERVIEWS,
        "The first logit is 10 larger, so its weight is e¹⁰ times each of the others, over twenty thousand. They "
        "are less than five hundred-thousandths, not five thousandths. The claimed weights belong to a difference of "
        "ln 198 = 5.3.",
        Parameters(n_keys=3),
        _weights((20.0, 10.0, 10.0), (0.99, 0.005), 3),
        title="softmax of 20, 10 and 10",
        scores=(20.0, 10.0, 10.0),
    ),
    Claim(
        "softmax-of-8-8",
        "softmax(8.8, 4.4, 4.4) begins with 0.90.",
        _INTERVIEWS,
        "The first weight is e^4.4, about 81, times each of the others, so it is 81/83 = 0.976. A weight of 0.90 "
        "beside two of 0.05 belongs to a difference of ln 18 = 2.9.",
        Parameters(n_keys=3),
        _weights((8.8, 4.4, 4.4), (0.90,), 2),
        title="softmax of 8.8, 4.4 and 4.4",
        scores=(8.8, 4.4, 4.4),
    ),
    Claim(
        "softmax-of-101",
        "Of the logits 100 and 101, the larger one gets 0.99999 of the weight.",
        _INTERVIEWS,
        "Softmax depends on differences only: 100 and 101 have the weights of 0 and 1, and the larger one gets "
        "e/(1 + e) = 0.731. Large logits alone do not saturate it.",
        Parameters(n_keys=2),
        _weights((101.0, 100.0), (0.99999,), 5),
        title="softmax of 100 and 101",
        scores=(101.0, 100.0),
    ),
    Claim(
        "scaled-derivative",
        "Scaled, the derivative p(1 − p) of every weight stays above 0.01.",
        "widely copied study notes",
        "p(1 − p) is less than p, and weights add up to 1: whatever the scale, fewer than 100 of a row's derivatives "
        "can be above 0.01. With 10 keys nearly all are. With 1024 a typical weight is a thousandth, and even fewer "
        "are above 0.01 scaled than unscaled, where a row has at least a few larger weights.",
        Parameters(n_keys=10),
        (
            ClaimFigure(
                "smallest p(1 − p) of the note's own example",
                at_least(0.01),
                trial_part("least p(1 − p)", "softmax_example", *_SCALED),
            ),
            *(
                ClaimFigure(
                    f"share above 0.01, scaled, {n} keys", value(1, words="all"), trial("live_entries", 64, n, 1 / 8)
                )
                for n in (10, 1024)
            ),
            *(
                ClaimFigure(f"share above 0.01, unscaled, {n} keys", UNCLAIMED, trial("live_entries", 64, n, 1.0))
                for n in (10, 1024)
            ),
        ),
        title="scaled p(1 − p) above 0.01",
    ),
    Claim(
        "entropy-table",
        "At d_k 16, 64 and 256 the entropy of a row is 2.1, 0.8 and 0.2 unscaled, and always 2.3 scaled.",
        "widely copied study notes",
        "The direction is right, the figures are not. The note's code has 10 keys, so 2.3 = ln 10 is the entropy of "
        "equal weights, and weights under 1/√d_k are not equal. Unscaled, the entropy at d_k 16 is far lower than "
        "claimed, and then falls only like 1/√d_k: four times the width halves it.",
        _TEN,
        tuple(
            ClaimFigure(
                f"entropy at d_k {d}, {'scaled' if scaled else 'unscaled'}, 10 keys",
                value(claimed, within=0.05),
                FromLab("entropy", _TEN.with_value("d_k", d), scaled),
            )
            for scaled, column in ((False, (2.1, 0.8, 0.2)), (True, (2.3, 2.3, 2.3)))
            for d, claimed in zip((16, 64, 256), column, strict=True)
        ),
        title="a table of entropies",
    ),
    Claim(
        "gradient-inverse-dk",
        "Unscaled, the norm of ∂L/∂Q falls like 1/d_k; scaled, it is constant.",
        "widely copied study notes",
        "Unscaled, the norm does not follow a single power of d_k. The typical row becomes one-hot and its ∂L/∂q "
        "vanishes, eventually like an exponential of −√d_k. But where two keys nearly tie softmax still passes on "
        "∂L/∂z, and ∂L/∂q = c·Kᵀ·∂L/∂z grows with the keys, which no c makes up for: such rows dominate the norm of "
        "the whole matrix, which grows, eventually like d_k^¼. Scaled, both are constant for values of a given "
        "width.",
        _TEN,
        (
            _exponent(message("unscaled, root mean square"), _INVERSE, "unscaled RMS", 16, 32),
            _exponent(message("unscaled, root mean square"), _INVERSE, "unscaled RMS", 128, 256),
            _exponent(message("unscaled, median row"), _INVERSE, "unscaled median", 16, 32),
            _exponent(message("unscaled, median row"), _INVERSE, "unscaled median", 128, 256),
            _exponent(message("scaled, root mean square"), _CONSTANT, "scaled RMS", 16, 32),
            _exponent(message("scaled, root mean square"), _CONSTANT, "scaled RMS", 128, 256),
            _exponent(message("scaled, median row"), _CONSTANT, "scaled median", 128, 256),
        ),
        title="gradients fall like 1/d_k",
    ),
    Claim(
        "max-weight-example",
        "The largest weight of a 10 × 10 matrix at d_k 16, 64 and 256 is 0.342, 0.891 and 0.998 unscaled, "
        "and 0.289, 0.276 and 0.301 scaled.",
        "widely copied study notes",
        "The code printed beside these figures does not produce them. It takes the largest of all hundred weights; "
        "already at d_k 16 one of the ten rows is almost one-hot, and even scaled, one of them usually puts half of "
        "its weight on one key.",
        Parameters(d_k=16, n_keys=10, n_queries=10),
        tuple(
            ClaimFigure(
                f"largest weight at d_k {d}, {'scaled' if scaled else 'unscaled'}, mean of many runs",
                value(claimed, within=0.05),
                trial("largest_of_matrix", d, 10, 1 / math.sqrt(d) if scaled else 1.0),
            )
            for scaled, column in ((False, (0.342, 0.891, 0.998)), (True, (0.289, 0.276, 0.301)))
            for d, claimed in zip((16, 64, 256), column, strict=True)
        ),
        title="an example of max weights",
    ),
    Claim(
        "unscaled-one-hot",
        "Unscaled, rows become one-hot as d_k grows; scaled, they do not change.",
        "widely copied study notes",
        "The gap between the largest two scores of a row is proportional to their standard deviation √d_k: "
        "eventually it is so large that one key holds nearly all the weight. Scaled, the standard deviation is 1 at "
        "any width, and d_k changes only how close to normal the scores are.",
        Parameters(d_k=4096, n_keys=10, n_queries=16, batch=16),
        (
            ClaimFigure(
                "one-hot rows at d_k 4096, unscaled, 10 keys",
                at_least(0.9, "nearly all, at least 0.9"),
                FromLab("one_hot_rows", precise(4096, 10)),
            ),
            *(
                ClaimFigure(
                    f"one-hot rows at d_k {more} minus those at {d}, unscaled",
                    at_least(0.02, "more, by at least 0.02"),
                    Difference(
                        FromLab("one_hot_rows", precise(more, 10)), FromLab("one_hot_rows", precise(d, 10, seed=1))
                    ),
                )
                for d, more in ((16, 256), (256, 4096))
            ),
            ClaimFigure(
                "one-hot rows at d_k 4096, scaled",
                at_most(0.01, "hardly any, at most 0.01"),
                FromLab("one_hot_rows", precise(4096, 10), scaled=True),
            ),
            ClaimFigure(
                "scaled entropy at d_k 4096 minus that at 16",
                value(0, within=0.02),
                Difference(
                    FromLab("entropy", precise(4096, 10), True), FromLab("entropy", precise(16, 10, seed=1), True)
                ),
            ),
        ),
        title="unscaled rows are one-hot",
    ),
    Claim(
        "first-last-token",
        "Unscaled, attention concentrates on the first or the last token.",
        "widely copied study notes",
        "It concentrates, but on a random key: nothing in independent queries and keys distinguishes one position. "
        "In trained models the first token often does attract weight (an attention sink), but that is learned, and "
        "also happens with the scale.",
        Parameters(d_k=512),
        tuple(
            ClaimFigure(
                f"{words} the first or last of {n} keys",
                at_least(0.5, "most"),
                trial_part(part, "first_or_last", 512, n),
            )
            for n in (10, 128)
            for words, part in (("rows whose largest weight is on", "largest"), ("weight on", "weight"))
        ),
        title="first and last tokens",
    ),
    Claim(
        "long-sequences",
        "Without the scale, long sequences suffer more.",
        "widely copied study notes",
        "It depends on what is measured. By the largest weight the opposite is true: with more keys the largest "
        "scores lie closer together, so at the same d_k a longer row is less saturated, and the standard deviation "
        "that saturates softmax, √(2 ln n), grows with the length. But the entropy grows more slowly than ln n: a "
        "longer row distributes its weight over a smaller part of what it could.",
        Parameters(n_keys=1024),
        (
            *(
                ClaimFigure(
                    f"largest weight with {more} keys minus that with {n}, d_k 64, unscaled",
                    at_least(0, "more"),
                    Difference(
                        FromLab("max_weight", precise(64, more)), FromLab("max_weight", precise(64, n, seed=1))
                    ),
                    measure="the largest weight",
                )
                for n, more in _LENGTHS
            ),
            *(
                ClaimFigure(
                    f"entropy / ln n with {more} keys minus that with {n}",
                    at_most(0, "less"),
                    Difference(
                        FromLab("entropy_fraction", precise(64, more)),
                        FromLab("entropy_fraction", precise(64, n, seed=1)),
                    ),
                    measure="entropy / ln n",
                )
                for n, more in _LENGTHS
            ),
        ),
        title="long sequences",
    ),
)
