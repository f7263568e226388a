"""The first steps: scores, their spread, what softmax and gradients make of it, and other scales."""

from __future__ import annotations

import math
from dataclasses import replace

from ...parameters import Parameters
from ..figures import Figure, FromLab, Quotient, lab, trial
from ..step import Guess, Shown, Step


def enough(d_k: int, n_keys: int = 128, **others: float | str) -> Parameters:
    """Return parameters with enough draws for three digits within a tenth of a second or two."""
    rows = max(8, min(64, 2**22 // (32 * max(d_k, n_keys))))
    return Parameters(d_k, n_keys, rows, 128, **others)  # pyright: ignore[reportArgumentType]


_ONE = Parameters(1, 128, 64, 64)
_WIDE = enough(256)
_TEN = Parameters(256, 10, 64, 128)
_HALF = enough(64, mean_q=0.5, mean_k=0.5)
_TWICE = enough(64, std_q=2.0, std_k=2.0)
_ALIGNED = Parameters(64, 32, 16, 512, correlation=0.5)
_RMS = FromLab("grad_q_rms", _TEN, scaled=True)
_HALVED = enough(64, scale="two_sqrt_d_k")
_COSINE, _GAIN = enough(64, scale="cosine_1"), enough(64, scale="cosine_10")
_CAP = 10.0
_ABOVE = 0.01


SCORES = (
    Step(
        "score",
        "A score and its size",
        "study notes 000 to 003; Vaswani et al. 2017, footnote 4",
        (
            "Attention compares a query q with every key k. Each comparison is one number, the score: the dot "
            "product q·k = q₁k₁ + q₂k₂ + …, a sum of d_k products.",
            "Before training, q and k are close to random. Take their components as independent, with mean 0 and "
            "variance 1. The mean of a score is then 0. How far from 0 a score typically is, its standard "
            "deviation, depends on d_k.",
        ),
        Guess("With d_k = {d_k}, what is the standard deviation of a score?", "deviation"),
        (
            "Since q₁ and k₁ are independent, the mean of q₁k₁ is the mean of q₁ times that of k₁: 0. Its variance "
            "is the mean of q₁²k₁², which is the mean of q₁² times that of k₁²: 1. Means always add. Variances "
            "add because the products are independent; standard deviations do not. So the spread of a score grows "
            "like √d_k, not like d_k: four times the width gives twice the spread.",
            "{inside} of scores lie within three standard deviations, ±{range} here. Divided by √d_k, the standard "
            "deviation is {scaled} at every width. At initialisation, that is what the scale does; the next steps "
            "show what follows.",
        ),
        {
            "one_mean": lab("one product, mean: E[q₁]·E[k₁]", "logit_mean", _ONE),
            "one_variance": lab("one product, variance: E[q₁²]·E[k₁²]", "logit_variance", _ONE),
            "mean": lab("score, mean: a sum of d_k means", "logit_mean", enough(64)),
            "variance": lab("score, variance: a sum of d_k variances", "logit_variance", enough(64)),
            "deviation": lab("score, standard deviation: √d_k", "logit_std", enough(64)),
            "scaled": lab("score/√d_k, standard deviation", "logit_std", enough(64), scaled=True),
            "inside": lab("scores within 3 standard deviations", "logit_within_3sd", enough(64), unit="share"),
        },
        ("one_mean", "one_variance", "mean", "variance", "deviation", "scaled"),
        Shown("Lab", "Hold → or press ↑: the unscaled histogram spreads, the scaled one stays.", Parameters(64)),
        {"d_k": 64, "range": 3 * math.sqrt(64)},
    ),
    Step(
        "laws",
        "Other laws, means and correlation",
        "study notes 001, 003",
        (
            "Nothing so far needed a normal law. Only means and variances entered, so the variance is d_k for any "
            "law of the components with mean 0 and variance 1.",
            "Other assumptions do matter. The variance of one product is (σ_q² + μ_q²)(σ_k² + μ_k²) − μ_q²μ_k². If "
            "matching components of q and k are correlated, each product has a nonzero mean.",
        ),
        Guess(
            "Give every component of q and k a standard deviation of {std} instead of 1. With d_k = {d_k}, what is "
            "the variance of a score?",
            "twice",
        ),
        (
            "Both factors of a product grow, so the variance is d_k·σ⁴. A widely copied note has d_k·σ², right only "
            "at σ = 1.",
            "With correlation {rho} the mean score is {rho}·d_k: it grows like d_k, faster than the spread. Softmax "
            "ignores a mean that all keys share, but a few keys aligned with the query stand out by that much. "
            "Training aligns them.",
        ),
        {
            "uniform": lab("variance, uniform components", "logit_variance", enough(64, components="uniform")),
            "signs": lab("variance, components ±1", "logit_variance", enough(64, components="rademacher")),
            "laplace": lab("variance, Laplace components", "logit_variance", enough(64, components="laplace")),
            "twice": lab("variance, σ {std}: d_k·σ⁴", "logit_variance", _TWICE),
            "half": lab("variance, means {mu}", "logit_variance", _HALF),
            "aligned": lab("variance, correlation {rho}", "logit_variance", _ALIGNED),
            "aligned_mean": lab("mean, correlation {rho}: {rho}·d_k", "logit_mean", _ALIGNED),
        },
        ("uniform", "signs", "laplace", "twice", "half", "aligned", "aligned_mean"),
        Shown(
            "Lab",
            "σ of q and k is set to 2: compare the variance with that of σ 1. c changes the law.",
            _TWICE,
            statistic="logit_variance",
        ),
        {"d_k": 64, "std": 2, "mu": 0.5, "rho": 0.5},
    ),
    Step(
        "softmax",
        "What softmax does to the spread",
        "study notes 000, 001, 003",
        (
            "One query's scores with all n keys are a row. Softmax turns a row into weights that sum to 1: each is "
            "e^z over the sum of all e^z, where z, the logit, is the score itself (unscaled) or the score/√d_k "
            "(scaled). The output is the sum of the keys' values v, each times its weight: softmax(QKᵀ/√d_k)·V.",
            "The ratio of two weights is e to the difference of their logits, so the spread decides everything.",
            "If all logits were equal, each of {n} weights would be 1/{n}.",
        ),
        Guess("Unscaled, with d_k = {d_k}: of {n} weights, how many exceed {limit}?", "above", "difference"),
        (
            "Above a spread of √(2 ln n) = {threshold} softmax saturates: a handful of keys holds the weight, "
            "however "
            "many there are. Unscaled, the spread is √d_k, so {n} keys saturate from d_k = {width} up. Divided by "
            "√d_k it is 1, whatever d_k is.",
            "Entropy is −Σ p ln p over the weights p of a row: ln n = {most} if they are uniform, 0 for a single "
            "key.",
        ),
        {
            "above": trial("weights above {limit}, unscaled", "weights_above", 256, 128, _ABOVE, 1.0),
            "above_scaled": trial("weights above {limit}, scaled", "weights_above", 256, 128, _ABOVE, 1 / 16),
            "largest": lab("largest weight, unscaled", "max_weight", _WIDE, unit="share"),
            "largest_scaled": lab("largest weight, scaled", "max_weight", _WIDE, True, "share"),
            "entropy": lab("entropy in nats, unscaled", "entropy", _WIDE),
            "entropy_scaled": lab("entropy in nats, scaled", "entropy", _WIDE, True),
            "threshold": trial("√(2 ln n)", "saturation_threshold", 128),
            "width": trial("d_k at which it saturates", "saturation_width", 128, unit="count"),
        },
        ("above", "above_scaled", "largest", "largest_scaled", "entropy", "entropy_scaled"),
        Shown("Lab", "The gauge at the top: A is far beyond saturation, B is not.", _WIDE),
        {"d_k": 256, "n": 128, "limit": f"{100 * _ABOVE:g} %", "most": math.log(128)},
    ),
    Step(
        "gradients",
        "What gradients do",
        "study notes 000 to 004",
        (
            "Training reaches q and k only through the derivative of softmax. That of a weight p by its own logit is "
            "p(1 − p): 0 if a row puts all its weight on one key. Unscaled rows do. So everyone says that without "
            "the scale, gradients vanish.",
            "Take {n} keys and d_k = {d_k}, as in the notes, and the gradient ∂L/∂q of each row: how much the loss "
            "L changes with its query.",
        ),
        Guess(
            "Take the root mean square of these gradients. What is that of unscaled attention, divided by that of "
            "scaled attention?",
            "ratio",
        ),
        (
            "The typical gradient, the median, does vanish. But the root mean square grows: a few rows are "
            "near-ties between two keys, where weights react violently. The top {few} of rows hold {top} of the sum "
            "of squares.",
            "So learning does not stop, it becomes erratic: a step that suits the near-ties leaves the other rows "
            "as they are. “Gradients vanish” is half the truth: say which.",
        ),
        {
            "median": lab("median ‖∂L/∂q‖, unscaled", "grad_q_median", _TEN),
            "median_scaled": lab("median ‖∂L/∂q‖, scaled", "grad_q_median", _TEN, True),
            "rms": lab("root mean square, unscaled", "grad_q_rms", _TEN),
            "rms_scaled": lab("root mean square, scaled", "grad_q_rms", _TEN, True),
            "ratio": Figure("root mean square, ratio", Quotient(replace(_RMS, scaled=False), _RMS)),
            "top": lab("held by the top {few} of rows, unscaled", "grad_q_top1_share", _TEN, unit="share"),
        },
        ("median", "median_scaled", "rms", "rms_scaled", "ratio", "top"),
        Shown(
            "Lab",
            "The rows of gradients: median, root mean square and the share of the top 1 %.",
            _TEN,
            statistic="grad_q_top1_share",
        ),
        {"d_k": 256, "n": 10, "few": "1 %"},
    ),
    Step(
        "scales",
        "Why not d_k, log d_k or 2√d_k",
        "study notes 002, 003",
        (
            "A divisor proportional to √d_k keeps the spread the same at every width. Others do not: divided by d_k, "
            "logits shrink as d_k grows; divided by ln d_k, they still grow.",
            "How uniform a row is can be read from its entropy, as a share of the largest possible, ln n.",
        ),
        Guess("Divide by d_k, with d_k = {d_k} and {n} keys. What is the entropy, in per cent of ln n?",
              "by_d_k", "difference"),
        (
            "Divided by d_k, weights are nearly uniform, until training aligns q and k. muP divides by d_k for that "
            "reason: scores of aligned vectors grow like d_k. 2√d_k is only a temperature of 2; sampling has one in "
            "another softmax. ln d_k is too small a divisor, and ever more so as d_k grows.",
            "√d_k is not an optimum. The Jacobian J of softmax over {n} keys is largest at a spread of {peak}, "
            "beyond {threshold}: rows have begun to saturate, and those undecided between two keys respond most. "
            "With "
            "more keys the peak is at a larger spread; rules for long contexts, as SSMax, grow with ln n. But √d_k "
            "makes every width start alike, which no constant does.",
        ),
        {
            "root": lab("entropy / ln n, 1/√d_k", "entropy_fraction", enough(64), True, "share"),
            "by_d_k": lab("entropy / ln n, 1/d_k", "entropy_fraction", enough(64, scale="d_k"), True, "share"),
            "log": lab("entropy / ln n, 1/ln d_k", "entropy_fraction", enough(64, scale="log_d_k"), True, "share"),
            "two": lab("entropy / ln n, 1/(2√d_k)", "entropy_fraction", _HALVED, True, "share"),
            "log_spread": lab("spread of logits, 1/ln d_k", "logit_std", enough(64, scale="log_d_k"), True),
            "peak": trial("spread at which ‖J‖² is largest", "most_responsive", 64, 128),
            "threshold": trial("√(2 ln n)", "saturation_threshold", 128),
        },
        ("root", "by_d_k", "log", "two", "log_spread", "peak"),
        Shown("Rules", "Every rule at this d_k, with its spread, entropy and status; o orders them.", Parameters(64)),
        {"d_k": 64, "n": 128},
    ),
    Step(
        "bounds",
        "Other ways to bound scores",
        "study notes 000, 001",
        (
            "Other means keep scores small, too. Cosine similarity divides a score by |q||k|; with unit variance "
            "each of the two is about √d_k long. QK-norm normalises q and k as well, then multiplies by a learned "
            "gain.",
            "Soft-capping bends logits: c·tanh(z/c) never exceeds c. Additive attention has no product: its score "
            "v·tanh(W₁q + W₂k) is a sum of d terms, and each tanh lies in ±1.",
        ),
        Guess("With d_k = {d_k}, what is the standard deviation of the cosine of unrelated q and k?", "cosine"),
        (
            "A cosine divides by about d_k: too much, without a gain. With a learned gain it is QK-norm; the gain "
            "can absorb any constant, so √d_k is a convention there. Qwen3 keeps it, Gemma 4 drops it.",
            "A soft-cap bounds logits, but flattens differences between large ones, and a fused kernel that does "
            "not know it drops it silently. Additive scores are bounded by the sum of |v|, not by 1: with v ~ N(0, "
            "1) they grow like √d, too, and need a scale or a smaller v.",
        ),
        {
            "cosine": lab("spread of cosines", "logit_std", _COSINE, True),
            "entropy": lab("entropy / ln n, cosines", "entropy_fraction", _COSINE, True, "share"),
            "gain": lab("entropy / ln n, {factor} × cosine", "entropy_fraction", _GAIN, True, "share"),
            "normed": lab("spread, RMS norm, 1/√d_k", "logit_std", enough(64, scale="rms_sqrt_d_k"), True),
            "capped": lab("spread, unscaled, soft-cap {cap}", "logit_std", enough(64, softcap=_CAP)),
            "additive": trial("spread in a row, additive, d = {d_k}", "additive", 64, 1.0, part="std"),
            "wide": trial("spread in a row, additive, d = {d_wide}", "additive", 256, 1.0, part="std"),
        },
        ("cosine", "entropy", "gain", "normed", "capped", "additive", "wide"),
        Shown(
            "Lab",
            "A divides by √d_k, B is the cosine without a gain. s goes on to other rules.",
            replace(_COSINE, against="sqrt_d_k"),
        ),
        {"d_k": 64, "d_wide": 256, "factor": 10, "cap": _CAP},
    ),
)  # fmt: skip
