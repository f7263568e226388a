"""Claims about scales other than 1/√d_k, and about how 1/√d_k compares with them."""

from __future__ import annotations

import math
from dataclasses import replace

from ...parameters import Parameters
from ..claim import UNCLAIMED, Claim, ClaimFigure, at_least, precise, trial, trial_part, value
from ..sources import FromLab

_UNIFORM = at_least(0.99, "nearly 1, at least 0.99")
_TOO_WIDE = at_least(1.1, "clearly above 1")
_SATURATED = at_least(3.12, "at least 3.12, where softmax over 128 keys saturates")


def _custom(d_k: int, multiplier: float) -> Parameters:
    return precise(d_k, scale="custom", multiplier=multiplier)


_DOUBLED, _HALVED = (precise(64, std_q=std, std_k=std) for std in (2.0, 0.5))

SCALES: tuple[Claim, ...] = (
    Claim(
        "like-normalisation",
        "Like batch or layer normalisation, the scale adapts to the distribution of scores and makes their standard "
        "deviation 1.",
        "widely copied study notes",
        "The scale is a constant that depends on d_k alone: it divides by what the standard deviation is if "
        "components have variance 1, whatever it really is. With q and k twice as long, scaled logits spread four "
        "times as much. Normalisation measures what arrives and divides by that: with QK-norm, which normalises q "
        "and k, the length of both no longer matters. Nor does the scale move the mean to 0; softmax ignores it.",
        Parameters(std_q=2.0, std_k=2.0),
        (
            *(
                ClaimFigure(
                    f"standard deviation of logits at d_k 64, σ of components {words}",
                    value(1),
                    FromLab("logit_std", p, scaled=True),
                )
                for words, p in (("2", _DOUBLED), ("0.5", _HALVED))
            ),
            *(
                ClaimFigure(
                    f"the same with RMS norm of q and k, σ {words}",
                    UNCLAIMED,
                    FromLab("logit_std", replace(p, scale="rms_sqrt_d_k"), scaled=True),
                )
                for words, p in (("2", _DOUBLED), ("0.5", _HALVED))
            ),
        ),
        title="scaling is like normalisation",
    ),
    Claim(
        "like-cosine",
        "Dividing by √d_k has the same effect as cosine similarity, which divides by the lengths of the vectors.",
        "widely copied study notes",
        "A vector of d_k unit-variance components is about √d_k long, and there are two of them: the cosine divides "
        "by |q||k| ≈ d_k. Cosines of random vectors have standard deviation 1/√d_k and their softmax is almost "
        "uniform, which is why cosine attention multiplies them by a temperature.",
        Parameters(scale="d_k"),
        (
            ClaimFigure(
                "standard deviation of cosines at d_k 64", value(1, within=0.05), trial_part("std", "cosine", 64, 128)
            ),
            ClaimFigure(
                "entropy of their softmax minus that of q·k/√d_k, 128 keys",
                value(0, within=0.05),
                trial_part("entropy", "cosine", 64, 128),
            ),
        ),
        title="scaling is like cosine",
    ),
    Claim(
        "dk-overscales",
        "Dividing by d_k scales too much: weights become nearly uniform.",
        "widely copied study notes",
        "The logits have standard deviation 1/√d_k, so each weight e^z/Σe^z differs from 1/n by about that fraction "
        "of it. The entropy falls short of ln n by half the logits' variance, 1/(2·d_k): at d_k 16 that is less "
        "than 1 % of ln 128, but more than 1 % of ln 10, for 10 keys as in a note's code. muP uses 1/d_k on purpose: "
        "it expects training to align queries and keys, which makes scores grow like d_k.",
        Parameters(scale="d_k"),
        (
            ClaimFigure(
                "variance of logits at d_k 64",
                value(1 / 64, words="1/64"),
                FromLab("logit_variance", precise(64, scale="d_k"), scaled=True),
            ),
            *(
                ClaimFigure(
                    f"entropy / ln n at d_k {d}, {n} keys",
                    _UNIFORM,
                    FromLab("entropy_fraction", precise(d, n, scale="d_k"), scaled=True),
                    in_the_limit=d > 16,
                )
                for n in (10, 128)
                for d in (16, 64, 512)
            ),
        ),
        limit="as d_k grows",
        title="1/d_k scales too much",
    ),
    Claim(
        "log-underscales",
        "Dividing by log d_k scales too little: scores stay too large, and softmax saturates.",
        "widely copied study notes",
        "The remaining standard deviation, √d_k/log d_k, grows without bound and eventually saturates softmax, but "
        "it grows slowly. The base-2 logarithm equals the square root at d_k 4 and 16 and is larger between them; at "
        "64 it leaves a standard deviation of 1.33.",
        Parameters(d_k=4096, scale="log_d_k", batch=8),
        (
            *(
                ClaimFigure(
                    f"standard deviation of logits at d_k {d}, divided by log₂ d_k",
                    _TOO_WIDE,
                    FromLab("logit_std", _custom(d, 1 / math.log2(d)), scaled=True),
                )
                for d in (16, 64)
            ),
            *(
                ClaimFigure(
                    f"standard deviation of logits at d_k 4096, divided by {name} d_k",
                    _SATURATED,
                    FromLab("logit_std", _custom(4096, 1 / divisor), scaled=True),
                    in_the_limit=True,
                )
                for name, divisor in (("log₂", math.log2(4096)), ("ln", math.log(4096)))
            ),
        ),
        limit="as d_k grows",
        title="1/log d_k scales too little",
    ),
    Claim(
        "half-scale",
        "Dividing by 2√d_k gives variance ¼, which makes attention ineffective.",
        "widely copied study notes",
        "The variance is ¼: half the standard deviation. But with logits of standard deviation ½, a weight is still "
        "e times another whose logit is two standard deviations lower, and the entropy is only an eighth of a nat "
        "below ln n. This is a temperature of 2, not the nearly uniform weights of 1/d_k.",
        Parameters(n_keys=10, scale="two_sqrt_d_k"),
        (
            ClaimFigure(
                "variance of logits at d_k 64",
                value(0.25),
                FromLab("logit_variance", precise(64, scale="two_sqrt_d_k"), scaled=True),
            ),
            *(
                ClaimFigure(
                    f"entropy / ln n at d_k 64, {n} keys",
                    _UNIFORM,
                    FromLab("entropy_fraction", precise(64, n, scale="two_sqrt_d_k"), scaled=True),
                )
                for n in (10, 128)
            ),
        ),
        title="2√d_k scales too much",
    ),
    Claim(
        "sqrt-optimal",
        "1/√d_k is the theoretical optimum, since it makes the variance exactly 1.",
        "widely copied study notes",
        "It does make the variance 1, but 1 is not optimal. Softmax responds most to its logits, measured by "
        "E‖J‖_F², at a larger standard deviation, which increases with the number of keys: in long rows it has "
        "already begun to saturate there. What 1/√d_k provides is the same starting point for every width, from "
        "which training adjusts the scores.",
        Parameters(n_keys=10),
        (
            *(
                ClaimFigure(
                    f"variance of logits at d_k {d}", value(1), FromLab("logit_variance", precise(d), scaled=True)
                )
                for d in (64, 512)
            ),
            *(
                ClaimFigure(
                    f"logit standard deviation with the largest E‖J‖_F², {n} keys",
                    value(1, within=0.05),
                    trial("most_responsive", 64, n),
                )
                for n in (10, 128, 1024)
            ),
        ),
        title="√d_k is optimal",
    ),
)
