"""Questions about using the scale: where it is applied, whether it can go, which is best."""

from __future__ import annotations

from dataclasses import replace

from ...training.settings import Race
from ..step import InterviewQuestion, PaneState, enough, lab, threshold, trial

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
            "itself; dividing the queries moves {queries}. A fused kernel, which never stores the scores, does "
            "either for nothing.",
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
            "In ∂L/∂q = c·Kᵀ·∂L/∂z the scale c is then 1, so the gradient of W_Q is √d_k times as large, and W_Q "
            "√d_k times as small: plain gradient descent learns it d_k times as fast relative to its size, Adam, "
            "whose steps have one size, √d_k times.",
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
            "fixes it.",
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
            "Measured by ‖J‖², the sum of the squares of all derivatives of softmax, the best spread is {ten} for "
            "{n_ten} keys, {hundred} for {n_hundred} and {thousand} for {n_thousand}.",
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
        "contexts grow with n: SSMax (scalable softmax) multiplies by ln n, Llama 4 multiplies queries by more at "
        "later positions.",
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
