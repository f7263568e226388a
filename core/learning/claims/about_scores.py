"""Claims about scores: their size and their distribution."""

from __future__ import annotations

import math

from ...parameters import Parameters
from ..claim import UNCLAIMED, Claim, ClaimFigure, at_least, precise, trial, trial_part, value
from ..sources import FromLab

_PRODUCT = precise(1, batch=512, mean_q=1, std_q=2, mean_k=0.5)
_SMALL = precise(256, std_q=1 / 4, std_k=1 / 4)
_EXAMPLE = (512, 2, 3, 1.0)  # of the study note: d_k, batch, tokens, and the tolerance of a run
_HUNDRED = 100 / math.sqrt(512)  # standard deviations of a score at d_k 512

SCORES: tuple[Claim, ...] = (
    Claim(
        "variance-equals-dk",
        "The dot product of two vectors of d_k independent components with mean 0 and variance 1 has variance d_k.",
        "widely copied study notes; Vaswani et al. 2017, footnote 4",
        "Each of the d_k products q_i·k_i has mean 0 and variance E q_i²·E k_i² = 1; the products are uncorrelated, "
        "and variances of uncorrelated terms add. Nothing else about the distribution of the components matters. The "
        "claim is about random vectors: queries and keys of trained models are aligned, and their scores can have a "
        "variance far from d_k.",
        Parameters(),
        tuple(
            ClaimFigure(f"variance at d_k {d}", value(d), FromLab("logit_variance", precise(d)))
            for d in (64, 128, 256, 512)
        ),
        title="the variance equals d_k",
    ),
    Claim(
        "variance-dim-sigma2",
        "If each component of q and k has variance σ², the dot product has variance d_k·σ².",
        "widely copied study notes",
        "One product has variance E q_i²·E k_i² = σ²·σ² = σ⁴, so the sum has d_k·σ⁴. The formula is right only if "
        "σ² = σ⁴, that is at σ = 1: the case in which it is usually checked.",
        precise(64, std_q=2, std_k=2),
        tuple(
            ClaimFigure(
                f"variance at d_k 64, σ {s:g}",
                value(64 * s**2),
                FromLab("logit_variance", precise(64, std_q=s, std_k=s)),
            )
            for s in (0.5, 1.0, 2.0)
        ),
        title="the variance is d_k σ²",
    ),
    Claim(
        "product-variance",
        "A product of independent q and k has variance σ_q²σ_k² + μ_q²σ_k² + μ_k²σ_q².",
        "widely copied study notes",
        "Var(qk) = E q²·E k² − (E q·E k)², and E q² = σ_q² + μ_q². Multiplied out, μ_q²μ_k² cancels and these three "
        "terms remain. With means of 0 only the first remains. A score is the sum of d_k such products.",
        _PRODUCT,
        (
            ClaimFigure(
                "variance of a product, σ 2 and 1, μ 1 and 0.5", value(6), FromLab("logit_variance", _PRODUCT)
            ),
            ClaimFigure(
                "variance of the sum of 64",
                value(384),
                FromLab("logit_variance", precise(64, mean_q=1, std_q=2, mean_k=0.5)),
            ),
        ),
        title="variance of one product",
    ),
    Claim(
        "small-init",
        "Components from N(0, 1/√d_k) give dot products of variance 1 without any scale.",
        "widely copied study notes",
        "With components of variance σ² the score has variance d_k·σ⁴. That is 1 when σ² = 1/√d_k: the second "
        "argument of N is a variance. Code that passes 1/√d_k as the standard deviation gets 1/d_k instead.",
        _SMALL,
        (
            ClaimFigure(
                "variance at d_k 256, component variance 1/√d_k", value(1), FromLab("logit_variance", _SMALL)
            ),
            ClaimFigure(
                "the same with 1/√d_k as the standard deviation",
                UNCLAIMED,
                FromLab("logit_variance", precise(256, std_q=1 / 16, std_k=1 / 16)),
            ),
        ),
        title="small initial weights",
    ),
    Claim(
        "scaled-is-normal",
        "The scaled score q·k/√d_k follows the standard normal distribution N(0, 1).",
        "widely copied study notes",
        "Its mean and variance are those of N(0, 1); its shape is not. Given the query, scores of normal keys are "
        "normal with standard deviation |q|, which differs from query to query; over all queries they follow a "
        "variance-gamma law, whose excess kurtosis is 6/d_k and whose distribution function differs from the normal "
        "one by up to about 0.14/d_k. By the central limit theorem the difference vanishes as d_k grows.",
        precise(2),
        (
            *(
                ClaimFigure(
                    f"distance from N(0, 1) at d_k {d}",
                    value(0, within=0.001),
                    trial("distance_from_normal", d),
                    in_the_limit=d == 1024,
                )
                for d in (1, 16, 64, 1024)
            ),
            *(
                ClaimFigure(
                    f"excess kurtosis at d_k {d}",
                    value(0, within=0.01),
                    FromLab("logit_excess_kurtosis", precise(d)),
                    in_the_limit=d == 1024,
                )
                for d in (16, 64, 1024)
            ),
        ),
        limit="as d_k grows",
        title="scaled scores are normal",
    ),
    Claim(
        "three-sigma-range",
        "99.7 % of scores lie within three standard deviations: ±24 at d_k 64, and ±3 after scaling.",
        "widely copied study notes",
        "It is true of single scores: a normal distribution has 99.73 % there, and the heavier tails of a dot "
        "product change that little. But softmax takes whole rows and is dominated by their largest score, and one "
        "of many scores is likely to be outside: about every third row of 128 keys has one, and most rows of 1024 "
        "do. Extreme values such as ±100 at d_k 512, which one note mentions, are possible, but rare even in long "
        "rows.",
        Parameters(),
        (
            ClaimFigure(
                "scores within ±24 at d_k 64", value(0.997, within=0.0005), FromLab("logit_within_3sd", precise(64))
            ),
            ClaimFigure(
                "scaled scores within ±3 at d_k 512",
                value(0.997, within=0.0005),
                FromLab("logit_within_3sd", precise(512), scaled=True),
            ),
            *(
                ClaimFigure(
                    f"rows of {n} keys entirely within ±24 at d_k 64", UNCLAIMED, trial("rows_within", 64, n, 3.0)
                )
                for n in (10, 128, 1024)
            ),
            ClaimFigure(
                "rows of 1024 keys entirely within ±100 at d_k 512",
                UNCLAIMED,
                trial("rows_within", 512, 1024, _HUNDRED),
            ),
        ),
        title="three standard deviations",
    ),
    Claim(
        "std-at-512",
        "The 18 scores of a small example (2 × 3 × 3, d_k 512) have standard deviation 22.6, or 1.0 scaled.",
        "widely copied study notes",
        "√512 = 22.6 is the standard deviation on average over many runs. One run has 18 scores of only 12 vectors, "
        "which is far too few: its figure varies by about 4, and is within 1 of 22.6 in a fifth of runs.",
        Parameters(d_k=512, n_keys=3, n_queries=3, batch=2),
        (
            ClaimFigure(
                "runs within 1 of 22.6", at_least(0.5, "most"), trial_part("near", "std_of_one_run", *_EXAMPLE)
            ),
            ClaimFigure(
                "root mean square of many runs",
                value(22.6, within=0.05),
                trial_part("unscaled", "std_of_one_run", *_EXAMPLE),
                in_the_limit=True,
            ),
            ClaimFigure(
                "the same, scaled",
                value(1.0, words="1.0"),
                trial_part("scaled", "std_of_one_run", *_EXAMPLE),
                in_the_limit=True,
            ),
        ),
        limit="on average over many runs",
        title="σ at d_k 512",
    ),
    Claim(
        "float-overflow",
        "With a standard deviation of 8 (d_k 64, unscaled), scores can overflow the floating-point range in softmax.",
        "widely copied study notes",
        "In float32 and bfloat16, exp overflows above 88.7, eleven standard deviations away: never. In float16 it "
        "overflows above 11.1, which one score in twelve exceeds. But implementations subtract the row's largest "
        "score first, and exp of a number that is at most 0 cannot overflow in any format. The scores themselves "
        "are well within the range of all three.",
        Parameters(),
        tuple(
            ClaimFigure(f"infinite exp(score) in {words}", at_least(1e-6, "some"), trial("exp_overflow", 64, *how))
            for words, how in (
                ("float32", ("float32", False)),
                ("bfloat16", ("bfloat16", False)),
                ("float16", ("float16", False)),
                ("float16 with the row's largest subtracted", ("float16", True)),
            )
        ),
        title="e^x overflows",
    ),
)
