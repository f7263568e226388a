"""Claims about the attention layer: other mechanisms, running time, parameter counts, results."""

from __future__ import annotations

from .claim import Claim, Figure, at_least, at_most, value
from .examine import trial, trial_part
from .timings import additive_over_dot, cost_of_dividing
from .trials import additive, weights_of_attention

_ALMOST_UNCLAIMED = at_most(0.1, "almost nothing, at most 0.1")

LAYERS: tuple[Claim, ...] = (
    Claim(
        "division-is-free",
        "Dividing scores by √d_k costs almost nothing compared with the product of queries and keys.",
        "study note 002",
        "The product takes d_k multiplications for each of the n² scores, the division one. But processors multiply "
        "matrices many times faster than they pass over memory, so at d_k 64 a separate division is noticeable. It "
        "is negligible in wide heads, and when it is folded into the queries: n·d_k numbers instead of n².",
        figures=(
            *(
                Figure(
                    f"extra time, {n} tokens, d_k {d}, scores divided",
                    _ALMOST_UNCLAIMED,
                    trial(cost_of_dividing, n, d, False),
                )
                for n, d in ((64, 64), (1024, 64), (1024, 16))
            ),
            Figure(
                "extra time, 256 tokens, d_k 2048, scores divided",
                _ALMOST_UNCLAIMED,
                trial(cost_of_dividing, 256, 2048, False),
                in_the_limit=True,
            ),
            Figure(
                "extra time, 1024 tokens, d_k 64, queries divided",
                _ALMOST_UNCLAIMED,
                trial(cost_of_dividing, 1024, 64, True),
                in_the_limit=True,
            ),
        ),
        limit="in wide heads, and for many tokens if queries are divided",
        timed=True,
    ),
    Claim(
        "dot-faster",
        "Dot-product attention is much faster than additive attention.",
        "study note 000; Vaswani et al. 2017, section 3.2.1",
        "Both take n²·d_k operations, but dot products are a single matrix product, which processors are built for. "
        "Additive scores need a tanh for every pair and component, and write n²·d_k numbers to memory to sum them.",
        figures=(
            Figure(
                "time of additive over dot product, 256 tokens, d_k 64",
                at_least(10, "much more than 1, at least 10"),
                trial(additive_over_dot, 256, 64),
            ),
        ),
        timed=True,
    ),
    Claim(
        "additive-bounded",
        "The score of additive attention, vᵀ tanh(W₁q + W₂k), lies in [−1, 1], so it needs no scale.",
        "study note 000",
        "Each tanh lies in [−1, 1], but the score is their sum weighted by v, bounded only by ‖v‖₁. With v ~ N(0, 1) "
        "it grows like √d, exactly as a dot product does. Only v of variance 1/d keeps it at a constant size, which "
        "is a scale by another name, and even then it is not always within [−1, 1].",
        figures=(
            *(
                Figure(
                    f"scores in [−1, 1] at d 64, v ~ N(0, {words})",
                    value(1, words="all"),
                    trial_part("inside", additive, 64, std),
                )
                for words, std in (("1", 1.0), ("1/d", 1 / 8))
            ),
            *(
                Figure(
                    f"standard deviation within a row at d {d}, v ~ N(0, {words})",
                    at_most(1, "at most 1, at any width"),
                    trial_part("std", additive, d, std),
                )
                for d, words, std in ((16, "1", 1.0), (64, "1", 1.0), (256, "1", 1.0), (64, "1/d", 1 / 8))
            ),
        ),
    ),
    Claim(
        "three-matrices",
        "W_Q, W_K and W_V together have 3·d_model·d_k parameters; with h heads and W_O, 3·h·d_model·d_k + d_model².",
        "study note 004",
        "Each of the three has d_model rows and d_k columns, every head has its own three, and W_O maps the h·d_k = "
        "d_model outputs of all heads to d_model. Biases are not counted, and values are as wide as keys. The note "
        "also gives 3·d_model·d_k as the count of each single matrix, which is three times too high.",
        figures=(
            Figure("one head, d_model 512, d_k 64", value(98_304), trial(weights_of_attention, 512, 64, 1, False)),
            Figure("8 heads of 64 with W_O", value(1_048_576), trial(weights_of_attention, 512, 64, 8, True)),
        ),
    ),
    Claim(
        "heads-are-free",
        "With d_k = d_model/h, the number of heads h does not change the number of parameters.",
        "study note 004",
        "h heads of width d_model/h have 3·h·d_model·(d_model/h) = 3·d_model² weights, and W_O has d_model². Heads "
        "only split the columns of the same matrices. They do change the number of scores, and the √d_k that divides "
        "them.",
        figures=tuple(
            Figure(f"d_model 512, heads {h}", value(1_048_576), trial(weights_of_attention, 512, 512 // h, h, True))
            for h in (1, 2, 8, 64)
        ),
    ),
    Claim(
        "bleu-table",
        "The Transformer paper's Table 3 (B) shows BLEU rising without the scale as d_k goes from 64 to 32.",
        "study note 000",
        "The table has no unscaled row: every model in it divides by √d_k. And BLEU falls with d_k, from 25.8 at 64 "
        "to 25.4 at 32 and 25.1 at 16. The paper cites other work, Britz et al. 2017, for the finding that unscaled "
        "dot products do worse at large d_k.",
        untestable="The claim is about trained translation models; every row of the paper's Table 3 is scaled.",
    ),
)
