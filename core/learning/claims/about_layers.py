"""Claims about the attention layer: other mechanisms, operations, parameter counts, results."""

from __future__ import annotations

from ...parameters import Parameters
from ..claim import UNCLAIMED, Claim, ClaimFigure, at_least, at_most, precise, trial, trial_part, value
from ..sources import FromLab, Reading

_DEEP = (16, 64, 32)  # layers, d_k, tokens
_SHAPE = (2, 8, 10, 64)  # batch, heads, tokens, d_k
_ALMOST_NOTHING = at_most(0.1, "almost nothing, at most 0.1")


LAYERS: tuple[Claim, ...] = (
    Claim(
        "division-is-free",
        "Dividing scores by √d_k costs almost nothing compared with the product of queries and keys.",
        "widely copied study notes",
        "In arithmetic it is almost nothing: for each score the product takes 2·d_k operations, the division one. "
        "But a separate division reads and writes all n² scores again, and at d_k 64 that is more than the product "
        "itself moves; processors do arithmetic many times faster than they pass over memory. It is negligible if "
        "queries are divided instead of scores, n·d_k numbers of many more, or inside a fused kernel.",
        figures=(
            *(
                ClaimFigure(
                    f"operations of dividing scores over those of the product, d_k {d}",
                    _ALMOST_NOTHING,
                    trial_part("operations", "dividing", d, 1024, "scores"),
                    measure="operations",
                )
                for d in (16, 64)
            ),
            *(
                ClaimFigure(
                    f"memory traffic of dividing scores over that of the product, {n} tokens, d_k {d}",
                    _ALMOST_NOTHING,
                    trial_part("traffic", "dividing", d, n, "scores"),
                    measure="memory traffic",
                )
                for n, d in ((64, 64), (1024, 64), (1024, 2048))
            ),
            ClaimFigure(
                "the same if queries are divided, 4096 tokens, d_k 64",
                UNCLAIMED,
                trial_part("traffic", "dividing", 64, 4096, "queries"),
            ),
        ),
        title="dividing by √d_k is free",
    ),
    Claim(
        "dot-faster",
        "Dot-product attention is much faster than additive attention.",
        "widely copied study notes; Vaswani et al. 2017, section 3.2.1",
        "Additive scores take twice the operations, which is not much. But dot products are a single matrix "
        "product, which processors are built for. Additive scores need a tanh for every pair "
        "and component, and write n²·d_k numbers to memory and read them again to sum them. "
        "Memory traffic stands for time: a clock would also measure the load of this machine.",
        figures=(
            ClaimFigure(
                "memory traffic of additive over dot product, 256 tokens, d_k 64",
                at_least(10, "much more than 1, at least 10"),
                trial_part("traffic", "additive_over_dot", 64, 256),
            ),
            ClaimFigure(
                "operations, the same way", UNCLAIMED, trial_part("operations", "additive_over_dot", 64, 256)
            ),
        ),
        title="dot products are faster",
    ),
    Claim(
        "additive-bounded",
        "The score of additive attention, vᵀ tanh(W₁q + W₂k), lies in [−1, 1], so it needs no scale.",
        "widely copied study notes",
        "Each tanh lies in [−1, 1], but the score is their sum weighted by v, bounded only by ‖v‖₁. With v ~ N(0, "
        "1) it grows like √d, exactly as a dot product does. Only v of variance 1/d keeps it at a constant size, "
        "which is a scale by another name, and even then it is not always within [−1, 1].",
        figures=(
            *(
                ClaimFigure(
                    f"scores in [−1, 1] at d 64, v ~ N(0, {words})",
                    value(1, words="all"),
                    trial_part("inside", "additive", 64, std),
                )
                for words, std in (("1", 1.0), ("1/d", 1 / 8))
            ),
            *(
                ClaimFigure(
                    f"standard deviation within a row at d {d}, v ~ N(0, {words})",
                    at_most(1, "at most 1, at any width"),
                    trial_part("std", "additive", d, std),
                )
                for d, words, std in ((16, "1", 1.0), (64, "1", 1.0), (256, "1", 1.0), (64, "1/d", 1 / 8))
            ),
        ),
        title="additive scores are bounded",
    ),
    Claim(
        "bilinear-unscaled",
        "Bilinear attention, qᵀWk, needs no scale, since its matrix controls the size of scores.",
        "widely copied study notes",
        "It can, but only if it is drawn for that. A matrix that keeps the variance of k, with entries of variance "
        "1/d, leaves scores a standard deviation of √d, as a dot product has; they need the scale just as much. "
        "Entries √d times smaller make it 1: the scale, moved into the initialisation, as T5 does. Once training "
        "has begun, W can have any size, with a scale or without.",
        Parameters(mechanism="bilinear"),
        (
            *(
                ClaimFigure(
                    f"standard deviation of scores at d {d}, unscaled",
                    at_most(1, "at most 1, at any width"),
                    FromLab("logit_std", precise(d, mechanism="bilinear")),
                )
                for d in (16, 64, 256)
            ),
            ClaimFigure(
                "the same at d 64, W smaller by √d",
                UNCLAIMED,
                FromLab("logit_std", precise(64, mechanism="bilinear", gain=1 / 8)),
            ),
        ),
        title="bilinear scores need no scale",
    ),
    Claim(
        "three-matrices",
        "W_Q, W_K and W_V have 3·d_model·d_k parameters each; with h heads and W_O there are 3·h·d_model·d_k + "
        "d_model².",
        "widely copied study notes",
        "Each of the three has d_model rows and d_k columns, so 3·d_model·d_k is the count of all three together, "
        "which the note also says. Every head has its own three, and W_O maps the h·d_k = d_model outputs of all "
        "heads to d_model, so the total is right. Biases are not counted, and values are as wide as keys.",
        figures=(
            ClaimFigure("each of the three, d_model 512, d_k 64", value(98_304), Reading(None, 512.0 * 64)),
            ClaimFigure("the three together", value(98_304), Reading(None, 3 * 512.0 * 64)),
            ClaimFigure("8 heads of 64 with W_O", value(1_048_576), trial("weights_of_attention", 512, 64, 8)),
        ),
        title="each head has three matrices",
    ),
    Claim(
        "heads-are-free",
        "With d_k = d_model/h, the number of heads h does not change the number of parameters.",
        "widely copied study notes",
        "h heads of width d_model/h have 3·h·d_model·(d_model/h) = 3·d_model² weights, and W_O has d_model². Heads "
        "only split the columns of the same matrices. They do change the number of scores, and the √d_k that "
        "divides them.",
        figures=tuple(
            ClaimFigure(f"d_model 512, heads {h}", value(1_048_576), trial("weights_of_attention", 512, 512 // h, h))
            for h in (1, 2, 8, 64)
        ),
        title="more heads cost nothing",
    ),
    Claim(
        "batch-and-heads",
        "Q, K and V of shape [batch, h, n, d_k] give scores of shape [batch, h, n, n] and an output of [batch, h, n, "
        "d_k].",
        "widely copied study notes",
        "The product of the last two axes is taken for each batch and head apart, so nothing mixes, and a loop over "
        "heads gives the same output. Every row of weights sums to 1. It is the scores that grow like n²: here they "
        "are few, at 10 tokens, and from n = d_k up they are more numbers than the queries. Fused kernels never "
        "store them.",
        figures=(
            ClaimFigure(
                "numbers in the scores, batch 2, 8 heads, 10 tokens",
                value(1600),
                trial_part("scores", "shapes", *_SHAPE),
            ),
            ClaimFigure("numbers in the output, d_k 64", value(10_240), trial_part("output", "shapes", *_SHAPE)),
            ClaimFigure("sum of a row, the one furthest from 1", value(1), trial_part("sum", "shapes", *_SHAPE)),
            ClaimFigure("difference from head by head, at most", value(0), trial_part("apart", "shapes", *_SHAPE)),
        ),
        title="the shapes of batch and heads",
    ),
    Claim(
        "deep-models",
        "Dividing by √d_k matters most in deep models.",
        "widely copied study notes",
        "At initialisation it does: without the scale every layer enlarges the gradient that passes back through it, "
        "and with the scale next to none does. So gradients of deep models explode, rather than vanish. The scale "
        "has a price, which the notes leave out: nearly uniform weights make tokens alike from layer to layer, and "
        "only residual connections keep them apart (Dong et al. 2021, arXiv:2103.03404). Layers here are x + "
        "attention(LayerNorm(x)) of one head over 32 tokens, with weights of variance 1/d_model and no feed-forward "
        "part; how much the gradient grows depends on the width.",
        figures=(
            ClaimFigure(
                "gradient at the input, unscaled over scaled, 1 layer, d_k 64",
                UNCLAIMED,
                trial_part("ratio", "through_layers", 1, *_DEEP[1:]),
            ),
            ClaimFigure(
                "the same, 16 layers over 1 layer",
                at_least(2, "more in deep models, at least 2"),
                trial_part("over_one", "through_layers", *_DEEP),
            ),
            *(
                ClaimFigure(
                    f"the same, 16 layers, d_k {d_k}",
                    UNCLAIMED,
                    trial_part("ratio", "through_layers", _DEEP[0], d_k, _DEEP[2]),
                )
                for d_k in (16, 64, 128)
            ),
            *(
                ClaimFigure(
                    f"gradient at the input, 16 layers, {which}",
                    UNCLAIMED,
                    trial_part(which, "through_layers", *_DEEP),
                )
                for which in ("unscaled", "scaled")
            ),
            *(
                ClaimFigure(
                    f"cosine of two tokens after 16 layers, {which}",
                    UNCLAIMED,
                    trial_part(f"alike_{which}", "through_layers", *_DEEP),
                )
                for which in ("unscaled", "scaled")
            ),
        ),
        title="the scale matters in deep models",
    ),
    Claim(
        "heads-regularise",
        "Several heads make a model robust: they keep it from overfitting to one representation.",
        "widely copied study notes",
        "At the same d_model, more heads have as many parameters and fewer dimensions each, so counts favour "
        "neither. What a trained model shows is that its heads differ in where they look; that many of them can be "
        "removed afterwards at little cost (Michel et al. 2019, arXiv:1905.10650) shows redundancy, not "
        "regularisation.",
        untestable="The claim is about how well trained models generalise, with one head and with several.",
        title="several heads regularise",
    ),
    Claim(
        "every-variant",
        "Nearly all variants of the Transformer divide by √d_k.",
        "widely copied study notes",
        "Most well-known ones do. Others multiply further for long contexts (YaRN), or divide by the root of another "
        "width (Gemma 2 27B, Gemma 3 27B). With QK-norm 1/√d_k is a convention, because a learned gain sets the "
        "spread. T5 has no scale. Scales lists which models use which rule.",
        untestable="A share depends on which models are counted, and no list of models is a census.",
        title="every model divides by √d_k",
    ),
    Claim(
        "bleu-table",
        "The Transformer paper's Table 3 (B) shows BLEU rising without the scale as d_k goes from 64 to 32.",
        "widely copied study notes",
        "The table has no unscaled row: every model in it divides by √d_k. And BLEU falls with d_k, from 25.8 at 64 "
        "to 25.4 at 32 and 25.1 at 16. The paper cites other work, Britz et al. 2017, for the finding that unscaled "
        "dot products do worse at large d_k.",
        untestable="The claim is about trained translation models; every row of the paper's Table 3 is scaled.",
        title="BLEU with and without scaling",
    ),
)
