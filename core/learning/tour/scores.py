"""The steps of the tour about scores: their size, softmax, gradients, other scales, other ways to bound them."""

from __future__ import annotations

import math
from dataclasses import replace

from ...parameters import Parameters
from ..sources import Reading
from ..step import Guess, PaneState, TourFigure, TourStep, UsualGuess, enough, lab, over_scaled, threshold, trial

_ONE = Parameters(1, 128, 64, 64)
_WIDE = enough(256)
_TEN = Parameters(256, 10, 64, 128)
_HALF = enough(64, mean_q=0.5, mean_k=0.5)
_TWICE = enough(64, std_q=2.0, std_k=2.0)
_ALIGNED = Parameters(64, 32, 16, 512, correlation=0.5)
_NARROW = enough(64)
_HALVED = enough(64, scale="two_sqrt_d_k")
_COSINE, _GAIN = enough(64, scale="cosine_1"), enough(64, scale="cosine_10")
_CAP = 10.0
_ABOVE = 0.01


SCORES = (
    TourStep(
        "score",
        "A score and its size",
        "a study note: “the variance of the dot product grows linearly with d_k”; Vaswani et al. 2017, footnote 4",
        (
            "Self-attention compares the query q of each token of a text with the key k of every one, by a number, "
            "the score: the dot product q·k = q₁k₁ + q₂k₂ + …, a sum of d_k products. It is large if q and k point "
            "the same way.",
            "Before training, q and k are close to random. Take their components as independent, with mean 0 and "
            "variance 1. The mean of a score is then 0. How far from 0 it typically is, its standard deviation or "
            "spread, depends on d_k.",
        ),
        Guess(
            "With d_k = {d_k}, what is the standard deviation of a score?",
            "deviation",
            (
                UsualGuess("d_k", "{guess} is the variance; the standard deviation is its square root."),
                UsualGuess("1", "1 is the standard deviation of one product, and of a score divided by √d_k."),
                UsualGuess(
                    "3*sqrt(d_k)",
                    "{guess} is three standard deviations, within which nearly all scores lie.",
                ),
            ),
        ),
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
        PaneState("Lab", "Hold → or press ↑: the unscaled histogram spreads, the scaled one stays.", Parameters(64)),
        {"d_k": 64, "range": 3 * math.sqrt(64)},
    ),
    TourStep(
        "laws",
        "Other distributions, means, correlation",
        "a study note: “Var(Q·Kᵀ) = dim·σ²”",
        (
            "Nothing so far needed a normal distribution. Only means and variances entered, so the variance is d_k "
            "for any distribution of the components with mean 0 and variance 1.",
            "Other assumptions do matter. The variance of one product is (σ_q² + μ_q²)(σ_k² + μ_k²) − μ_q²μ_k². If "
            "matching components of q and k are correlated, each product has a nonzero mean.",
        ),
        Guess(
            "Give every component of q and k a standard deviation of {std} instead of 1. With d_k = {d_k}, what is "
            "the variance of a score?",
            "twice",
            (
                UsualGuess("d_k*std^2", "{guess} is d_k·σ², where only one of the two factors has grown."),
                UsualGuess("d_k", "{guess} is the variance at σ = 1."),
                UsualGuess("sqrt(d_k)*std^2", "{guess} is the standard deviation; the variance is its square."),
            ),
        ),
        (
            "Both factors of a product grow, so the variance is d_k·σ⁴. A widely copied note says “Var(Q·Kᵀ) = "
            "dim·σ²”, which is right only at σ = 1.",
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
        PaneState(
            "Lab",
            "σ of q and k is set to 2: compare the variance with that of σ 1. c changes the distribution.",
            _TWICE,
            statistic="logit_variance",
        ),
        {"d_k": 64, "std": 2, "mu": 0.5, "rho": 0.5},
    ),
    TourStep(
        "softmax",
        "What softmax does to the spread",
        "a study note: unscaled, “the advantage of soft focus is lost”",
        (
            "One query's scores with all n keys are a row. Softmax turns a row into weights that sum to 1: each is "
            "e^z over the sum of all e^z, where z, the logit, is the score itself (unscaled) or the score/√d_k "
            "(scaled). The output is the sum of the keys' values v, each times its weight: softmax(QKᵀ/√d_k)·V.",
            "The ratio of two weights is e to the difference of their logits, so the spread decides everything.",
            "If all logits were equal, each of {n} weights would be 1/{n}.",
        ),
        Guess(
            "Unscaled, with d_k = {d_k}: of {n} weights, how many exceed {limit}?",
            "above",
            (
                UsualGuess("0", "0 is right if all weights are equal: 1/{n} is below {limit}."),
                UsualGuess("1", "1 is the limit of large d_k. Here the second largest logit is often near enough."),
                UsualGuess("n", "Not all can: if all weights are equal, each is below {limit}."),
            ),
            "difference",
        ),
        (
            "Above a spread of √(2 ln n) = {threshold} softmax saturates: a handful of keys holds the weight, "
            "however many there are. Unscaled, the spread is √d_k, so {n} keys saturate from d_k = {width} up. "
            "Divided by √d_k it is 1, whatever d_k is.",
            "A row with all its weight on one key is one-hot. Attention is hard there: a look-up of one value, no "
            "longer a soft average of several.",
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
            "threshold": threshold("√(2 ln n)", 128),
            "width": TourFigure("d_k at which it saturates", Reading(None, math.ceil(2 * math.log(128))), "count"),
        },
        ("above", "above_scaled", "largest", "largest_scaled", "entropy", "entropy_scaled"),
        PaneState(
            "Lab", "Does softmax saturate? The unscaled dot is far beyond the limit, the scaled one is not.", _WIDE
        ),
        {"d_k": 256, "n": 128, "limit": f"{100 * _ABOVE:g} %", "most": math.log(128)},
    ),
    TourStep(
        "gradients",
        "What gradients do",
        "a study note: “unscaled, the norm of ∂L/∂Q ∝ 1/d_k (gradients vanish)”",
        (
            "Training reaches a query through the chain rule: ∂L/∂q = c·Kᵀ·∂L/∂z. L is the loss and z = c·Kq are the "
            "logits, where the scale c is 1 or 1/√d_k. ∂L/∂z is what softmax passes on. The derivative of a weight "
            "p by its own logit is p(1 − p): at most ¼, and 0 in a one-hot row.",
            "Unscaled rows are nearly one-hot, so everyone says that without the scale gradients vanish. But "
            "unscaled, c is larger. Take {n} keys, d_k = {d_k}, and root mean squares over rows.",
        ),
        Guess(
            "From scaled to unscaled, by what factor does c change, and by what factor ‖∂L/∂z‖? Type the product, "
            "such as 2*3: the factor of ‖∂L/∂q‖.",
            "ratio",
            (
                UsualGuess("0", "0 is the belief that this step is about; even in the median row it is {q_median}."),
                UsualGuess(
                    "1/d_k",
                    "{guess} is 1/d_k, as a study note has it: true neither of the median nor of the mean.",
                ),
                UsualGuess(
                    "sqrt(d_k)",
                    "{guess} is the factor of c alone; softmax passes on {softmax} times as much.",
                ),
            ),
        ),
        (
            "c is √d_k = {root} times as large, and softmax passes on {softmax} times as much: together {ratio}. In "
            "the median row it passes on only {z_median} times as much, and ‖∂L/∂q‖ vanishes. The mean is carried by "
            "the few rows in which two keys nearly tie, where p(1 − p) is near ¼: the top {few} of rows hold {top} "
            "of the squares of ‖∂L/∂q‖.",
            "With {many} keys and d_k = {narrow} the two factors are {narrow_root} and {many_softmax}: in long rows "
            "softmax passes on more without the scale.",
            "So learning does not stop, it becomes erratic: ∂L/∂q of a few rows outweighs all others. “Gradients "
            "vanish” is half the truth: say which.",
        ),
        {
            "root": TourFigure("scale c, unscaled / scaled: √d_k", Reading(None, math.sqrt(_TEN.d_k))),
            "softmax": over_scaled("RMS of ‖∂L/∂z‖, unscaled / scaled", "grad_logits_rms", _TEN),
            "ratio": over_scaled("RMS of ‖∂L/∂q‖, unscaled / scaled", "grad_q_rms", _TEN),
            "z_median": over_scaled("median of ‖∂L/∂z‖, the same way", "grad_logits_median", _TEN),
            "q_median": over_scaled("median of ‖∂L/∂q‖, the same way", "grad_q_median", _TEN),
            "top": lab("held by the top {few} of rows, unscaled", "grad_q_top1_share", _TEN, unit="share"),
            "narrow_root": TourFigure("scale c at d_k {narrow}", Reading(None, math.sqrt(_NARROW.d_k))),
            "many_softmax": over_scaled("RMS of ‖∂L/∂z‖, {many} keys", "grad_logits_rms", _NARROW),
        },
        ("root", "softmax", "ratio", "z_median", "q_median", "top"),
        PaneState(
            "Lab",
            "The rows of gradients, of the logits and of q.",
            _TEN,
            statistic="grad_logits_rms",
        ),
        {"d_k": 256, "n": 10, "few": "1 %", "many": 128, "narrow": 64},
    ),
    TourStep(
        "scales",
        "Why not d_k, log d_k or 2√d_k",
        "a study note: “√d_k is the optimum that theory derives”",
        (
            "A divisor proportional to √d_k keeps the spread the same at every width. Others do not: divided by d_k, "
            "logits shrink as d_k grows; divided by ln d_k, they still grow.",
            "The entropy of a row, as a share of the largest possible, ln n, tells how uniform it is.",
        ),
        Guess(
            "Divide by d_k, with d_k = {d_k} and {n} keys. What is the entropy, as a percentage of ln n?",
            "by_d_k",
            (
                UsualGuess(
                    "90",
                    "{guess} is the entropy under 1/√d_k; 1/d_k makes logits smaller, rows more uniform.",
                ),
                UsualGuess("0", "0 % is a one-hot row. A larger divisor makes rows more uniform, not sharper."),
                UsualGuess("100/sqrt(d_k)", "{guess} is the spread, 1/√d_k: so small that rows are nearly uniform."),
            ),
            "difference",
        ),
        (
            "Divided by d_k, weights are nearly uniform, until training aligns q and k. muP, a way to choose "
            "settings that suit every width, divides by d_k for that reason: scores of aligned vectors grow like "
            "d_k. 2√d_k is only a temperature of 2. ln d_k is too small a divisor, ever more so as d_k grows.",
            "√d_k is not an optimum; it makes every width start alike. ‖J‖², the sum of the squares of all "
            "derivatives ∂p_i/∂z_j of softmax, is largest over {n} keys at a spread of {peak}, beyond {threshold}: "
            "rows have begun to saturate. With more keys the peak is at a larger spread; SSMax, a rule for long "
            "contexts, multiplies by ln n.",
        ),
        {
            "root": lab("entropy / ln n, 1/√d_k", "entropy_fraction", enough(64), True, "share"),
            "by_d_k": lab("entropy / ln n, 1/d_k", "entropy_fraction", enough(64, scale="d_k"), True, "share"),
            "log": lab("entropy / ln n, 1/ln d_k", "entropy_fraction", enough(64, scale="log_d_k"), True, "share"),
            "two": lab("entropy / ln n, 1/(2√d_k)", "entropy_fraction", _HALVED, True, "share"),
            "log_spread": lab("spread of logits, 1/ln d_k", "logit_std", enough(64, scale="log_d_k"), True),
            "peak": trial("spread at which ‖J‖² is largest", "most_responsive", 64, 128),
            "threshold": threshold("√(2 ln n)", 128),
        },
        ("root", "by_d_k", "log", "two", "log_spread", "peak"),
        PaneState(
            "Rules", "Every rule at this d_k; o orders them.", Parameters(64)
        ),
        {"d_k": 64, "n": 128},
    ),
    TourStep(
        "bounds",
        "Other ways to bound scores",
        "a study note: “tanh saturates by itself, its output lies in [−1, 1]; no further scaling is needed”",
        (
            "There are other ways to keep scores small. Cosine similarity divides a score by |q||k|; with unit "
            "variance each of the two is about √d_k long. QK-norm normalises q and k as well, then multiplies by a "
            "learned gain.",
            "Soft-capping bends logits: c·tanh(z/c) never exceeds c. Additive attention has no product: its score "
            "v·tanh(W₁q + W₂k) is a sum of d terms, and each tanh lies in ±1.",
        ),
        Guess(
            "With d_k = {d_k}, what is the standard deviation of the cosine of unrelated q and k?",
            "cosine",
            (
                UsualGuess(
                    "1",
                    "1 is the standard deviation of q·k/√d_k. The cosine divides by about √d_k once more.",
                ),
                UsualGuess("1/d_k", "{guess} is its variance; the standard deviation is the square root."),
                UsualGuess("0", "0 is its mean; it is on either side of that."),
            ),
        ),
        (
            "A cosine divides by about d_k: too much, without a gain. With a learned gain it is QK-norm; the gain "
            "can absorb any constant, so √d_k is a convention there. Qwen3 keeps it, Gemma 4 drops it.",
            "A soft-cap bounds logits, but flattens differences between large ones. Fused kernels, which compute "
            "attention without storing scores, drop it silently if they do not implement it. Additive scores are "
            "bounded by the sum of |v|, not by 1: with v ~ N(0, 1) they grow like √d, too, and need a scale or a "
            "smaller v.",
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
        PaneState(
            "Lab",
            "B is the cosine without a gain; s changes the rule.",
            replace(_COSINE, against="sqrt_d_k"),
        ),
        {"d_k": 64, "d_wide": 256, "factor": 10, "cap": _CAP},
    ),
)  # fmt: skip
