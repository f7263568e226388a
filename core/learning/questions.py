"""QUESTIONS: the questions most asked about the scale, in an order that a conversation would take."""

from __future__ import annotations

import math
from dataclasses import replace

from ..parameters import Parameters
from ..statistics.catalogue import SINK
from ..training.settings import Race
from .step import InterviewQuestion, PaneState, lab, threshold, trial
from .tour import enough

_TEN = Parameters(256, 10, 64, 128)
_ALIGNED, _ALIGNED_WIDE = (Parameters(d_k, 32, 16, 512, correlation=0.5) for d_k in (64, 256))
_BY_D_MODEL = enough(64, scale="custom", multiplier=1 / math.sqrt(512))

_SMALL = enough(64, std_q=1 / math.sqrt(512), std_k=1 / math.sqrt(512))

SIZE: tuple[InterviewQuestion, ...] = (
    InterviewQuestion(
        "why-sqrt",
        "Why are scores divided by √d_k?",
        "A score is a sum of d_k products. If components are independent, with mean 0 and variance 1, its variance "
        "is d_k. Dividing by √d_k makes it 1, so softmax starts in the same state at every width. Otherwise, the "
        "paper suspects, large d_k push softmax “into regions where it has extremely small gradients”.",
        (
            "Without the scale the standard deviation is √d_k, {spread} at d_k = {d_k}. Softmax over {n} keys "
            "saturates at a spread of √(2 ln n) = {threshold}: the largest weight of a row is {largest} on average, "
            "and {scaled} with the scale.",
            "Question 4 (q4) tells which gradients are small there, and which are not. All of this is "
            "about initialisation: afterwards training sets the spread of each head.",
        ),
        {
            "spread": lab("standard deviation, unscaled", "logit_std", enough(64)),
            "threshold": threshold("where softmax saturates, √(2 ln n)", 128),
            "largest": lab("largest weight, unscaled", "max_weight", enough(64), unit="share"),
            "scaled": lab("largest weight, scaled", "max_weight", enough(64), True, "share"),
        },
        PaneState("Lab", "Step d_k with the arrows: only the unscaled column changes.", Parameters(64)),
        given={"d_k": 64, "n": 128},
    ),
    InterviewQuestion(
        "why-not-d_k",
        "Why not divide by d_k?",
        "At initialisation that is too much: logits have a standard deviation of 1/√d_k, and weights are nearly "
        "uniform. It is right once queries and keys are aligned, because aligned scores grow like d_k: muP divides "
        "by d_k.",
        (
            "At d_k = {d_k} with {n} keys the entropy is {by_d} of ln n, against {by_root} under 1/√d_k. A row that "
            "weighs all keys alike selects nothing, and says little about which key to prefer.",
            "muP asks what keeps a trained network alike at every width. Training correlates q and k; at a "
            "correlation of {rho} the mean score is {mean}, which is {rho}·d_k, and only 1/d_k keeps that constant.",
        ),
        {
            "by_d": lab("entropy / ln n, 1/d_k", "entropy_fraction", enough(64, scale="d_k"), True, "share"),
            "by_root": lab("entropy / ln n, 1/√d_k", "entropy_fraction", enough(64), True, "share"),
            "mean": lab("mean score, correlation {rho}", "logit_mean", _ALIGNED),
        },
        PaneState(
            "Lab",
            "A divides by √d_k, B by d_k: the weights of B are nearly uniform.",
            enough(64, scale="d_k", against="sqrt_d_k"),
        ),
        given={"d_k": 64, "n": 128, "rho": 0.5},
    ),
    InterviewQuestion(
        "grow-like-d",
        "Do dot products grow with the dimension d?",
        "Their spread grows like √d. Only products of aligned vectors grow like d.",
        (
            "Independent terms partly cancel: with four times the width the standard deviation goes from {std} to "
            "{std_wide}, twice as much. Aligned terms do not cancel: at a correlation of {rho} the mean score goes "
            "from {mean} to {mean_wide}, four times as much.",
            "The difference decides the scale: √d_k for random vectors, d_k for aligned ones.",
        ),
        {
            "std": lab("standard deviation, d_k {d_k}", "logit_std", enough(64)),
            "std_wide": lab("standard deviation, d_k {wide}", "logit_std", enough(256)),
            "mean": lab("mean, d_k {d_k}, correlation {rho}", "logit_mean", _ALIGNED),
            "mean_wide": lab("mean, d_k {wide}, correlation {rho}", "logit_mean", _ALIGNED_WIDE),
        },
        PaneState(
            "Lab",
            "q and k are correlated: compare the mean of the logits with their spread.",
            _ALIGNED,
            statistic="logit_mean",
        ),
        "Yes, they grow like d, so they must be divided.",
        "Half right. It would call for a division by d.",
        {"d_k": 64, "wide": 256, "rho": 0.5},
    ),
    InterviewQuestion(
        "vanishing-gradients",
        "Do gradients vanish without the scale?",
        "That of a typical row does. Their mean square does not: it grows, carried by rare rows that are near-ties "
        "between two keys. Training becomes erratic rather than dead.",
        (
            "With {n} keys and d_k = {d_k} the median of ‖∂L/∂q‖ falls from {median_scaled} to {median}. The root "
            "mean square rises from {rms_scaled} to {rms}, and {top} of all squared gradient sits in the top {few} "
            "of rows.",
            "Depth multiplies this. At the input of {layers} layers, at initialisation, the gradient is {deep} times "
            "that of scaled attention, and {shallow} times with one layer: it explodes rather than vanishes.",
            "A note has both fall like 1/d_k, which is true of neither: the median falls like an exponential of "
            "−√d_k, and the root mean square grows slowly.",
        ),
        {
            "median": lab("median, unscaled", "grad_q_median", _TEN),
            "median_scaled": lab("median, scaled", "grad_q_median", _TEN, True),
            "rms": lab("root mean square, unscaled", "grad_q_rms", _TEN),
            "rms_scaled": lab("root mean square, scaled", "grad_q_rms", _TEN, True),
            "top": lab("held by the top {few} of rows", "grad_q_top1_share", _TEN, unit="share"),
            "shallow": trial("at the input of 1 layer, unscaled / scaled", "through_layers", 1, 64, 32, part="ratio"),
            "deep": trial("at the input of {layers} layers", "through_layers", 16, 64, 32, part="ratio"),
        },
        PaneState("Lab", "The rows of gradients, unscaled beside scaled.", _TEN, statistic="grad_q_median"),
        "Yes: softmax saturates, its derivative is 0, so gradients vanish.",
        "True of the typical row, false of the mean. Say which.",
        {"d_k": 256, "n": 10, "few": "1 %", "layers": 16},
    ),
    InterviewQuestion(
        "unit-variance",
        "Do Xavier initialisation or LayerNorm guarantee unit variance?",
        "Only at initialisation, and only both together: inputs after LayerNorm, and weights of variance 1/d_model. "
        "Trained heads are far from it.",
        (
            "Xavier on a square matrix gives scaled logits a variance of {xavier}; the default of nn.Linear gives "
            "{linear}.",
            "Among the heads of a trained model, all-MiniLM-L6-v2, the variance within rows is between {least} and "
            "{most} times d_k, with a median of {median}.",
        ),
        {
            "xavier": trial("variance, Xavier", "projected", 512, 64, 1 / 512, 1 / 512, 1 / 8, part="logits"),
            "linear": trial("variance, nn.Linear", "projected", 512, 64, 1 / 1536, 1 / 1536, 1 / 8, part="logits"),
            "least": trial("trained: variance in rows / d_k, least", "all_heads", part="least"),
            "median": trial("trained: median", "all_heads", part="median"),
            "most": trial("trained: most", "all_heads", part="most"),
        },
        PaneState("Capture", "Every head has its own spread; n goes to the next head of note.", head=(0, 2)),
        "Yes, they normalise queries and keys.",
        "They set the variances of the inputs and weights that q and k are made from, and only at initialisation.",
    ),
    InterviewQuestion(
        "d_model-or-d_head",
        "Is it √d_model or √d_head?",
        "√d_head: each head has its own scores, and each is a sum of d_head products. Confusing the two is one "
        "of the commonest bugs.",
        (
            "With d_model = {d_model} and {heads} heads, d_head is {d_k}. Divided by √d_model, logits have a "
            "standard deviation of {wrong} instead of {right}: √{heads} times too small.",
            "The bug survives because models still train with it. Weights are flatter at the start, and training "
            "can make up for that.",
        ),
        {
            "right": lab("logit σ, divided by √d_head", "logit_std", enough(64), True),
            "wrong": lab("logit σ, divided by √d_model", "logit_std", _BY_D_MODEL, True),
        },
        PaneState(
            "Lab",
            "A divides by √d_k, B by √d_model: compare their spread.",
            replace(_BY_D_MODEL, against="sqrt_d_k"),
        ),
        given={"d_model": 512, "heads": 8, "d_k": 64},
    ),
    InterviewQuestion(
        "too-peaked",
        "An implementation divides by √d_model. Is its attention too peaked?",
        "No, too flat: the divisor is √h times too large for h heads, so logits are √h times too small.",
        (
            "With {heads} heads the largest of {n} weights is {flat} on average instead of {right}, and the entropy "
            "{flat_entropy} of ln n instead of {entropy}.",
            "Attention that is too peaked points the other way: a scale that is missing, or inverted.",
        ),
        {
            "right": lab("largest weight, divided by √d_k", "max_weight", enough(64), True, "share"),
            "flat": lab("largest weight, divided by √d_model", "max_weight", _BY_D_MODEL, True, "share"),
            "entropy": lab("entropy / ln n, divided by √d_k", "entropy_fraction", enough(64), True, "share"),
            "flat_entropy": lab("entropy / ln n, by √d_model", "entropy_fraction", _BY_D_MODEL, True, "share"),
        },
        PaneState(
            "Lab",
            "A divides by √d_k, B by √d_model: compare their largest weights.",
            replace(_BY_D_MODEL, against="sqrt_d_k"),
            statistic="max_weight",
        ),
        "Yes: with the wrong scale, softmax saturates.",
        "Wrong direction.",
        {"heads": 8, "n": 128},
    ),
)


_SCALED = 1 / 8  # at d_k 64
_LARGEST = 65_504.0  # of float16
_TRAINED = Race(64, ("none", "sqrt_d_k", "d_k"), rate=2.0, seeds=4)
_SLOW = Race(64, ("none", "sqrt_d_k"), rate=0.01, seeds=4, optimiser="adam")
_FAST = replace(_SLOW, rate=0.1)

USE: tuple[InterviewQuestion, ...] = (
    InterviewQuestion(
        "q-or-scores",
        "Scale the queries or the scores?",
        "In exact arithmetic it is the same. Scaling q is cheaper with more than d_k keys, n·d_k numbers instead of "
        "n², and safer in float16, where raw scores can be too large before they are scaled.",
        (
            "Dividing {n} × {n} scores of d_k = {d_k} moves {scores} as many numbers through memory as the product "
            "itself; dividing the queries moves {queries}. Fused kernels do either for nothing.",
            "float16 ends at {largest}. With components of standard deviation {std}, {raw} of raw scores are "
            "infinite, and next to none with q scaled first.",
        ),
        {
            "scores": trial(
                "traffic of dividing scores", "dividing", 64, 1024, "scores", part="traffic", unit="share"
            ),
            "queries": trial("of dividing queries", "dividing", 64, 1024, "queries", part="traffic", unit="share"),
            "raw": trial("score infinite, float16, σ {std}", "score_overflow", 64, 80.0, 1.0, unit="share"),
            "first": trial("the same, q scaled first", "score_overflow", 64, 80.0, _SCALED, unit="share"),
        },
        PaneState(
            "Learn",
            "The claim that dividing costs nothing, by operations and by memory traffic.",
            item="division-is-free",
        ),
        given={"n": 1024, "d_k": 64, "largest": _LARGEST, "std": 80},
    ),
    InterviewQuestion(
        "drop-at-inference",
        "Can the scale be dropped at inference?",
        "No. That multiplies every learned logit by √d_k, which makes it another model.",
        (
            "Dropping it from the heads of a trained model, all-MiniLM-L6-v2 with d_k = {d_k}, moves {moved} of the "
            "weight of a row to other keys, on average; the entropy falls from {before} to {after} of ln n.",
            "How much that harms depends on how far training went. In the race of the Train tab rows end nearly "
            "one-hot: trained with 1/√d_k at d_k {race_d_k}, {kept} of labels are recalled without it, but {lost} "
            "under 1/d_k.",
            "It can be moved, though: multiply W_Q by 1/√d_k once, and leave the scale out.",
        ),
        {
            "moved": trial("weight moved, mean over heads", "scale_dropped", part="moved", unit="share"),
            "before": trial("entropy / ln n, with the scale", "scale_dropped", part="before", unit="share"),
            "after": trial("entropy / ln n, without", "scale_dropped", part="after", unit="share"),
            "kept": trial("race, recalled without it", "raced", _TRAINED, part="sqrt_d_k under none", unit="share"),
            "lost": trial("race, under 1/d_k", "raced", _TRAINED, part="sqrt_d_k under d_k", unit="share"),
        },
        PaneState("Capture", "Weights of a query at the file's scale and at × 1, side by side.", head=(2, 3)),
        given={"d_k": 32, "race_d_k": _TRAINED.d_k},
    ),
    InterviewQuestion(
        "learn-it",
        "Could the weights learn the scale?",
        "Yes. W_Q can absorb any constant, and T5 starts that way. What attention can express is the same; how it "
        "learns is not, because a step of one size changes small weights more.",
        (
            "T5 draws W_Q with variance 1/(d_model·d_k) and uses no scale. Its logits start with the variance "
            "that Xavier weights have under 1/√d_k: {t5} against {xavier}.",
            "With plain gradient descent, a W_Q smaller by √d_k, without a scale, learns d_k times as fast relative "
            "to its size; with Adam, whose steps have one size, √d_k times.",
            "The race of the Train tab, with Adam at d_k {race_d_k}: at rate {slow}, {slow_none} of labels are "
            "recalled without a scale, so weights can do its work. At rate {fast} it is {fast_none}, and "
            "{fast_sqrt} with 1/√d_k.",
        ),
        {
            "t5": trial("variance, T5, no scale", "projected", 512, 64, 1 / (512 * 64), 1 / 512, 1.0, part="logits"),
            "xavier": trial(
                "variance, Xavier, 1/√d_k", "projected", 512, 64, 1 / 512, 1 / 512, _SCALED, part="logits"
            ),
            "slow_none": trial("recalled, rate {slow}, no scale", "raced", _SLOW, part="none recalled", unit="share"),
            "fast_none": trial("recalled, rate {fast}, no scale", "raced", _FAST, part="none recalled", unit="share"),
            "fast_sqrt": trial("the same, 1/√d_k", "raced", _FAST, part="sqrt_d_k recalled", unit="share"),
        },
        PaneState(
            "Train",
            "Adam at a large rate: without a scale less is recalled. A smaller learning rate (↓ twice, then ←) "
            "mends it.",
            race=_FAST,
        ),
        given={"race_d_k": _FAST.d_k, "slow": _SLOW.rate, "fast": _FAST.rate},
    ),
    InterviewQuestion(
        "optimum",
        "Is √d_k the optimal scale?",
        "No, a convention. It makes the spread 1 at every width. Softmax responds most to its logits at a larger "
        "spread, which grows with the number of keys.",
        (
            "Measured by ‖J‖², J the derivative of softmax, the best spread is {ten} for {n_ten} keys, {hundred} "
            "for {n_hundred} and {thousand} for {n_thousand}.",
            "There long rows have begun to saturate. What matters more than the constant is that it is the same at "
            "every width, so that one setting of the optimiser fits all.",
        ),
        {
            "ten": trial("best spread, {n_ten} keys", "most_responsive", 64, 10),
            "hundred": trial("best spread, {n_hundred} keys", "most_responsive", 64, 128),
            "thousand": trial("best spread, {n_thousand} keys", "most_responsive", 64, 1024),
        },
        PaneState("Learn", "The claim that √d_k is the optimum, with its figures.", item="sqrt-optimal"),
        "Yes, theory derives it: it makes the variance exactly 1.",
        "It does make the variance 1. Nothing says that 1 is best.",
        {"n_ten": 10, "n_hundred": 128, "n_thousand": 1024},
    ),
    InterviewQuestion(
        "number-of-keys",
        "Should the scale depend on the number of keys?",
        "Softmax saturates near a spread of √(2 ln n), so at a fixed spread longer rows are flatter. Rules for long "
        "contexts grow with n: SSMax multiplies by ln n, Llama 4 multiplies queries by more at later positions.",
        (
            "The threshold is {short} for {n_short} keys and {long} for {n_long}. At a spread of 1 the largest "
            "weight falls from {weight_short} to {weight_long}: one key among many is harder to single out.",
            "Training at one length sets the spread for that length; a model extended to longer contexts may need "
            "more.",
        ),
        {
            "short": threshold("√(2 ln n), {n_short} keys", 128),
            "long": threshold("√(2 ln n), {n_long} keys", 2048),
            "weight_short": lab("largest weight, {n_short} keys", "max_weight", enough(64), True, "share"),
            "weight_long": lab("largest weight, {n_long} keys", "max_weight", enough(64, 2048), True, "share"),
        },
        PaneState("Lab", "B is SSMax; [ and ] change the number of keys.", enough(64, scale="ssmax")),
        given={"n_short": 128, "n_long": 2048},
    ),
    InterviewQuestion(
        "overflow",
        "Does the scale prevent overflow?",
        "Not in float32 or bfloat16, and hardly in float16: softmax subtracts the largest logit of a row first. "
        "What can overflow is the raw score in float16, beyond {largest}.",
        (
            "Unscaled at d_k = {d_k} and without that subtraction, {naive} of e^z would be infinite in float16; "
            "with it {shifted}, as in every implementation.",
            "Raw scores need components far larger than 1: at a standard deviation of {std}, {raw} of them are "
            "infinite.",
        ),
        {
            "naive": trial("e^z infinite, nothing subtracted", "exp_overflow", 64, "float16", False, unit="share"),
            "shifted": trial("with the largest subtracted", "exp_overflow", 64, "float16", True, unit="share"),
            "raw": trial("score infinite, σ {std}", "score_overflow", 64, 80.0, 1.0, unit="share"),
        },
        PaneState("Learn", "The claim that scores overflow, format by format.", item="float-overflow"),
        "Yes: large scores overflow in e^x.",
        "Not as softmax is implemented.",
        {"d_k": 64, "largest": _LARGEST, "std": 80},
    ),
)


_CAP = 10.0
_GEMMA_CAP = 50.0
_CAPPED = enough(64, softcap=_CAP)
_HALF = enough(64, scale="two_sqrt_d_k")
_NORMED, _NORMED_1 = enough(64, scale="rms_sqrt_d_k"), enough(64, scale="rms_none")

VARIANTS: tuple[InterviewQuestion, ...] = (
    InterviewQuestion(
        "cosine",
        "Why not use cosine similarity instead?",
        "A cosine of random vectors is only about 1/√d_k in size, so without a gain its softmax is nearly uniform. "
        "With a learned gain it is QK-norm, and works well.",
        (
            "The cosine divides by |q||k|, about d_k, not by √d_k. At d_k = {d_k} cosines have a standard deviation "
            "of {spread}, and the entropy of {n} weights is {entropy} of ln n.",
            "With a gain of {gain} the entropy is {entropy_gain} of ln n. The gain is what selects, and training "
            "can set it.",
        ),
        {
            "spread": lab("standard deviation of cosines", "logit_std", enough(64, scale="cosine_1"), True),
            "entropy": lab(
                "entropy / ln n, cos(q, k)", "entropy_fraction", enough(64, scale="cosine_1"), True, "share"
            ),
            "entropy_gain": lab(
                "entropy / ln n, {gain}·cos(q, k)", "entropy_fraction", enough(64, scale="cosine_10"), True, "share"
            ),
        },
        PaneState(
            "Lab",
            "A divides by √d_k, B is the cosine without a gain: nearly uniform.",
            enough(64, scale="cosine_1", against="sqrt_d_k"),
        ),
        given={"d_k": 64, "n": 128, "gain": 10},
    ),
    InterviewQuestion(
        "qk-norm",
        "With QK-norm, is √d_k still needed?",
        "No, it is a convention there. Normalised q and k have a fixed length, and a learned gain sets the spread, "
        "so it can absorb any constant. Qwen3 keeps 1/√d_k, Gemma 4 drops it.",
        (
            "With RMS norm and a gain of 1, logits have a standard deviation of {kept} under 1/√d_k and of "
            "{dropped} without it, at d_k = {d_k}. Then the gains of q and k must start smaller.",
            "Normalisation bounds a score by d_k times both gains, however large x becomes: that, and not the "
            "scale, is what it is for.",
        ),
        {
            "kept": lab("logit σ, RMS norm, 1/√d_k", "logit_std", _NORMED, True),
            "dropped": lab("logit σ, RMS norm, no scale", "logit_std", _NORMED_1, True),
        },
        PaneState("Lab", "Both normalise q and k; B keeps 1/√d_k, A drops it.", _NORMED),
        given={"d_k": 64},
    ),
    InterviewQuestion(
        "worked-examples",
        "softmax(20, 10, 10) is about ({one}, {two}, {two}). Right?",
        "No: {first} and twice {second}. The ratio of two weights is e to the difference of their logits.",
        (
            "Two more that are often printed: softmax(8.8, 4.4, 4.4) is said to start with {three}; it is {third}. "
            "And {high} against {low} is said to give {four}; it is {fourth}, because only the difference of 1 "
            "counts.",
            "A constant added to all logits changes nothing; a factor changes everything.",
        ),
        {
            "first": replace(
                trial("first weight of 20, 10, 10", "softmax_example", 20.0, 10.0, 10.0, part="0"), digits=5
            ),
            "second": trial("second weight", "softmax_example", 20.0, 10.0, 10.0, part="1"),
            "third": trial("first weight of 8.8, 4.4, 4.4", "softmax_example", 8.8, 4.4, 4.4, part="0"),
            "fourth": trial("weight of {high} beside {low}", "softmax_example", 100.0, 101.0, part="1"),
        },
        PaneState("Softmax", "The row worked out step by step; ↑ and ↓ change a score.", scores=(20.0, 10.0, 10.0)),
        "Yes, it is the standard example of saturation.",
        "It saturates far more than that.",
        {"one": 0.99, "two": "0.005", "three": "0.90", "four": "0.99999", "high": 101, "low": 100},
    ),
    InterviewQuestion(
        "temperature",
        "Is the scale a temperature?",
        "Yes: dividing by √d_k is a temperature of √d_k for raw scores. The sampling temperature of a language "
        "model is another one: it acts on the softmax over the vocabulary.",
        (
            "Doubling it, ÷ 2√d_k, halves the logits: at d_k = {d_k} with {n} keys the entropy rises from {entropy} "
            "to {warm} of ln n.",
            "As a temperature it changes how sharp weights are, and not their order within a row.",
        ),
        {
            "entropy": lab("entropy / ln n, ÷ √d_k", "entropy_fraction", enough(64), True, "share"),
            "warm": lab("entropy / ln n, ÷ 2√d_k", "entropy_fraction", _HALF, True, "share"),
        },
        PaneState("Softmax", "t and T double and halve the temperature of one row.", scores=(20.0, 10.0, 10.0)),
        given={"d_k": 64, "n": 128},
    ),
    InterviewQuestion(
        "additive",
        "Does additive attention need no scale?",
        "It needs none only if its vector v is small. Each tanh lies in [−1, 1], but the score is a sum of them "
        "weighted by v, bounded by ‖v‖₁, not by 1.",
        (
            "With v ~ N(0, 1) the standard deviation within a row is {narrow} at d = {d} and {wide} at d = "
            "{d_wide}: it grows like √d, as a dot product does.",
            "With v of variance 1/d it is {small} at d = {d}, which is a scale by another name.",
        ),
        {
            "narrow": trial("σ in row, d {d}, v ~ N(0, 1)", "additive", 64, 1.0, part="std"),
            "wide": trial("σ in row, d {d_wide}, v ~ N(0, 1)", "additive", 256, 1.0, part="std"),
            "small": trial("σ in row, d {d}, v ~ N(0, 1/d)", "additive", 64, 1 / 8, part="std"),
        },
        PaneState("Lab", "The mechanism is additive; → and ← change d.", enough(64, mechanism="additive")),
        "Right: tanh bounds its scores.",
        "tanh bounds each term, not their weighted sum.",
        {"d": 64, "d_wide": 256},
    ),
    InterviewQuestion(
        "softcap",
        "Could soft-capping replace the scale?",
        "It bounds logits, but it bends them: c·tanh(z/c) flattens differences between large ones. And kernels that "
        "do not know it drop it silently.",
        (
            "Unscaled at d_k = {d_k}, a cap of {cap} lowers the largest weight from {before} to {after}, and the "
            "spread from {spread} to {spread_capped}. Scaled, it changes next to nothing: {scaled} and "
            "{scaled_capped}.",
            "So models use both, the scale for the usual logits and a cap, {gemma} in Gemma 2, against rare large "
            "ones.",
        ),
        {
            "before": lab("largest weight, unscaled", "max_weight", enough(64), unit="share"),
            "after": lab("largest weight, unscaled, cap {cap}", "max_weight", _CAPPED, unit="share"),
            "spread": lab("logit σ, unscaled", "logit_std", enough(64)),
            "spread_capped": lab("logit σ, unscaled, cap {cap}", "logit_std", _CAPPED),
            "scaled": lab("largest weight, scaled", "max_weight", enough(64), True, "share"),
            "scaled_capped": lab("largest weight, scaled, cap {cap}", "max_weight", _CAPPED, True, "share"),
        },
        PaneState(
            "Lab",
            "Both are unscaled, and B has a soft-cap: compare their spread and largest weight.",
            replace(_CAPPED, scale="none", against="none,softcap=0"),
        ),
        given={"d_k": 64, "cap": _CAP, "gemma": _GEMMA_CAP},
    ),
    InterviewQuestion(
        "sinks",
        "Are attention sinks a bug?",
        "Mostly not. Softmax must give its weight to some key, and a head that finds no relevant one puts it on a "
        "key that changes the output little, usually the first. Over {sink} on the first key is common.",
        (
            "In all-MiniLM-L6-v2 that is so in {sinks} of {heads} heads. The scale does not make them, training "
            "does.",
            "They do hide in averages: low entropy may be a sink and not a look-up, so look at the weight on the "
            "first key apart. gpt-oss learns a logit that belongs to no key, so that no token has to serve.",
        ),
        {
            "sinks": trial("heads with over {sink} on the first key", "all_heads", part="sinks", unit="count"),
            "heads": trial("heads", "all_heads", part="heads", unit="count"),
        },
        PaneState("Capture", "s marks a sink on the map; this head is one.", head=(2, 0)),
        given={"sink": f"{100 * SINK:.0f} %"},
    ),
)


INPUTS: tuple[InterviewQuestion, ...] = (
    InterviewQuestion(
        "embeddings",
        "Why are embeddings multiplied by √d_model?",
        "It has nothing to do with scores. The first transformer shares the matrix of its embeddings with the last "
        "layer, whose weights start with a standard deviation of 1/√d_model in its code. Times √d_model, the "
        "components of an embedding have one of 1, as large as the positions that are added to them.",
        (
            "At d_model = {d_model} a component is {small} before, and a sine of a position has a root mean square "
            "of {sine}: without the factor, the positions would drown the words.",
            "Scores made of the small components alone show the difference: after 1/√d_k their standard deviation is "
            "{flat} instead of {right}, and all keys have the same weight. Layers with a norm in front of "
            "them do not see the factor; many later models leave it out, and Gemma keeps it.",
        ),
        {
            "right": lab("logit σ, components of σ 1", "logit_std", enough(64), True),
            "flat": lab("logit σ, components of σ 1/√{d_model}", "logit_std", _SMALL, True),
        },
        PaneState("Lab", "With components that small, every key has the same weight.", _SMALL),
        "To undo the division by √d_k.",
        "Wrong: the two are elsewhere, and d_model is not d_k.",
        {"d_model": 512, "small": 0.044, "sine": 0.71},
    ),
)

QUESTIONS: tuple[InterviewQuestion, ...] = SIZE + USE + VARIANTS + INPUTS
