"""STEPS: the tour, in order. Command line, pane and flash cards show these declarations."""

from __future__ import annotations

import math
from dataclasses import replace

from ..parameters import Parameters
from ..statistics.catalogue import SINK
from ..training.settings import Race
from .sources import FromLab, Quotient, Reading
from .step import Guess, PaneState, TourFigure, TourStep, lab, threshold, trial


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
    TourStep(
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
        PaneState("Lab", "Hold → or press ↑: the unscaled histogram spreads, the scaled one stays.", Parameters(64)),
        {"d_k": 64, "range": 3 * math.sqrt(64)},
    ),
    TourStep(
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
        PaneState(
            "Lab",
            "σ of q and k is set to 2: compare the variance with that of σ 1. c changes the law.",
            _TWICE,
            statistic="logit_variance",
        ),
        {"d_k": 64, "std": 2, "mu": 0.5, "rho": 0.5},
    ),
    TourStep(
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
            "threshold": threshold("√(2 ln n)", 128),
            "width": TourFigure("d_k at which it saturates", Reading(None, math.ceil(2 * math.log(128))), "count"),
        },
        ("above", "above_scaled", "largest", "largest_scaled", "entropy", "entropy_scaled"),
        PaneState("Lab", "The gauge at the top: A is far beyond saturation, B is not.", _WIDE),
        {"d_k": 256, "n": 128, "limit": f"{100 * _ABOVE:g} %", "most": math.log(128)},
    ),
    TourStep(
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
            "ratio": TourFigure("root mean square, ratio", Quotient(replace(_RMS, scaled=False), _RMS)),
            "top": lab("held by the top {few} of rows, unscaled", "grad_q_top1_share", _TEN, unit="share"),
        },
        ("median", "median_scaled", "rms", "rms_scaled", "ratio", "top"),
        PaneState(
            "Lab",
            "The rows of gradients: median, root mean square and the share of the top 1 %.",
            _TEN,
            statistic="grad_q_top1_share",
        ),
        {"d_k": 256, "n": 10, "few": "1 %"},
    ),
    TourStep(
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
            "threshold": threshold("√(2 ln n)", 128),
        },
        ("root", "by_d_k", "log", "two", "log_spread", "peak"),
        PaneState(
            "Rules", "Every rule at this d_k, with its spread, entropy and status; o orders them.", Parameters(64)
        ),
        {"d_k": 64, "n": 128},
    ),
    TourStep(
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
        PaneState(
            "Lab",
            "A divides by √d_k, B is the cosine without a gain. s goes on to other rules.",
            replace(_COSINE, against="sqrt_d_k"),
        ),
        {"d_k": 64, "d_wide": 256, "factor": 10, "cap": _CAP},
    ),
)  # fmt: skip


_D_MODEL, _HEADS, _D_K = 512, 8, 64
_SCALED = 1 / math.sqrt(_D_K)
_BASE = 10_000.0  # of rotary embeddings
_LARGEST = 65_504.0  # of float16
_BY_D_MODEL = enough(_D_K, scale="custom", multiplier=1 / math.sqrt(_D_MODEL))
_KAIMING = enough(_D_K, std_q=1.41421, std_k=1.41421)  # √2, in as many digits as the Lab's panel has room for
_THREE = Parameters(_D_K, scale="sqrt_three_d_k")
_USED = Race(_D_K, ("none", "sqrt_d_k", "d_k"), rate=2.0, seeds=4)
_LARGE = replace(_USED, rules=("none", "sqrt_d_k"), rate=4.0)
_SMALL = replace(_LARGE, rate=1.0)
_ROUNDED = enough(_D_K, precision="bfloat16", arithmetic="eager")


def _weights(label: str, q: float, k: float, multiplier: float, part: str = "logits") -> TourFigure:
    """Return the variance under weights of these variances over 1/d_model."""
    return trial(label, "projected", _D_MODEL, _D_K, q / _D_MODEL, k / _D_MODEL, multiplier, part=part)


def _rotary(distance: int) -> TourFigure:
    return trial(f"{{d{distance}}} apart: share of the score left", "rotary", _D_K, distance, _BASE,
                 part="same", unit="share")  # fmt: skip


def _raced(label: str, race: Race, part: str) -> TourFigure:
    return trial(label, "raced", race, part=part, unit="share")


MODELS = (
    TourStep(
        "initialisation",
        "Where unit variance comes from",
        "study notes 000, 001",
        (
            "So far q and k had unit variance by assumption. In a model q = x·W_Q and k = x·W_K. LayerNorm gives x "
            "mean 0 and variance 1; then a component of q has variance d_model times that of the entries of W_Q.",
            "Xavier initialisation of a square matrix has entries of variance 1/d_model, and makes it 1. Kaiming "
            "initialisation has 2/d_model, to make up for a ReLU.",
        ),
        Guess("With Kaiming weights, what is the variance of the logits q·k/√d_k?", "kaiming"),
        (
            "Of these, only Xavier on a square matrix gives 1 under the scale; PyTorch's defaults start flatter. T5 "
            "has no scale: it draws W_Q smaller, by √d_k. Attention starts the same and can express the same, but "
            "it learns differently: a step changes such a W_Q more, relative to its size.",
            "All of this holds at initialisation only, and needs LayerNorm. The scale is a constant and normalises "
            "nothing: inputs with standard deviation s multiply the variance by s⁴.",
        ),
        {
            "component": _weights("Xavier, square: a component of q", 1, 1, _SCALED, "component"),
            "xavier": _weights("Xavier, square: logits", 1, 1, _SCALED),
            "kaiming": _weights("Kaiming: logits", 2, 2, _SCALED),
            "linear": _weights("default of PyTorch's nn.Linear: logits", 1 / 3, 1 / 3, _SCALED),
            "multihead": _weights("nn.MultiheadAttention: logits", 1 / 2, 1 / 2, _SCALED),
            "t5": _weights("T5, without a scale: logits", 1 / _D_K, 1, 1.0),
        },
        ("component", "xavier", "kaiming", "linear", "multihead", "t5"),
        PaneState(
            "Lab",
            "σ of q and k is √2, as Kaiming weights make it: see the variance of the logits, scaled.",
            _KAIMING,
            statistic="logit_variance",
        ),
    ),
    TourStep(
        "heads",
        "Several heads",
        "study note 004",
        (
            "A layer with h heads splits the columns of W_Q, W_K and W_V among them: each head has its own d_k = "
            "d_model/h dimensions, and its own scores. The divisor is √d_k of the head, not √d_model.",
            "Dividing by √d_model is one of the commonest bugs.",
        ),
        Guess(
            "d_model = {d_model}, {heads} heads, d_k = {d_k}. Divided by √d_model by mistake: what is the standard "
            "deviation of the logits?",
            "wrong",
        ),
        (
            "The wrong divisor is √h times too large: it makes attention flatter, not more peaked. The number of "
            "heads changes no count of parameters, but it does change d_k.",
            "Several heads look at several positions at once. In a trained model, the sample all-MiniLM-L6-v2, two "
            "heads of a layer put {apart} of their weight on different keys. That makes a layer more expressive, not "
            "a head: its scores have rank {rank}, against {full} of one wide head, and in half of all heads "
            "{dimensions} dimensions or fewer hold {held} of their variance.",
        ),
        {
            "one": trial("parameters, 1 head", "weights_of_attention", _D_MODEL, _D_MODEL, 1, unit="count"),
            "eight": trial(
                "parameters, {heads} heads", "weights_of_attention", _D_MODEL, _D_K, _HEADS, unit="count"
            ),
            "right": lab("spread of logits, divided by √d_k", "logit_std", enough(_D_K), True),
            "wrong": lab("spread of logits, by √d_model", "logit_std", _BY_D_MODEL, True),
            "keys": trial("sample: different top keys of {together} heads", "heads_at_once", part="keys"),
            "near": trial("most local head: distance in tokens", "heads_at_once", part="near"),
            "far": trial("most global head: distance in tokens", "heads_at_once", part="far"),
            "rank": trial("rank of a head's scores", "heads_at_once", part="rank", unit="count"),
            "full": trial("rank of the scores of one wide head", "heads_at_once", part="full", unit="count"),
            "apart": trial("weight two heads of the sample differ in", "heads_apart", 2, unit="share"),
            "dimensions": trial("dimensions with {held} of a head's scores", "all_heads", part="dimensions"),
        },
        ("one", "eight", "right", "wrong", "keys", "near", "far"),
        PaneState(
            "Lab",
            "A divides by √d_k, B by √d_model: compare their spread and entropy.",
            replace(_BY_D_MODEL, against="sqrt_d_k"),
        ),
        {"d_model": _D_MODEL, "heads": _HEADS, "d_k": _D_K, "together": 12, "held": "90 %"},
    ),
    TourStep(
        "positions",
        "Positions and rotary embedding",
        "study note 001",
        (
            "Rotary embedding turns pairs of components of q and k by angles that grow with their positions. A turn "
            "changes no length, so unrelated q and k still have scores of variance d_k.",
            "Related ones change: a key equal to the query scores |q|², d_k on average, where both stand at the "
            "same place. The further apart they are, the less, on the whole.",
        ),
        Guess("d_k = {d_k}, {d100} positions apart: how many per cent of that score are left?", "far", "difference"),
        (
            "Rotary embedding needs no other scale. Schemes that add a product with a position's vector do: every "
            "independent term adds d_k to the variance. DeBERTa has 3 terms, and divides by √(3·d_k).",
            "A bias added after the scale, as in T5 or ALiBi, leaves the scale alone; added before by mistake, the "
            "bias is scaled down, too.",
        ),
        {
            "near": _rotary(1),
            "middle": _rotary(10),
            "far": _rotary(100),
            "further": _rotary(1000),
            "variance": trial("{d100} apart: variance, unrelated q, k", "rotary", _D_K, 100, _BASE, part="variance"),
            "two": trial("2 terms/√d_k: variance of logits", "summed_terms", _D_K, 2),
            "three": trial("3 terms/√d_k: variance of logits", "summed_terms", _D_K, 3),
        },
        ("near", "middle", "far", "further", "variance", "two", "three"),
        PaneState("Lab", "B divides by √(3·d_k), as DeBERTa does: too much for the Lab's one term.", _THREE),
        {"d_k": _D_K, "d1": 1, "d10": 10, "d100": 100, "d1000": 1000},
    ),
    TourStep(
        "formats",
        "Number formats and overflow",
        "study note 003",
        (
            "It is often said that the scale prevents overflow. float32 and bfloat16 hold e^z up to z of about "
            "{bound32}. float16 ends at {largest}, so e^z is infinite above z = {bound}.",
            "But softmax first subtracts the largest logit of the row, and e to a number of at most 0 never "
            "overflows.",
        ),
        Guess(
            "Without that subtraction, in float16 and unscaled, d_k = {d_k}: for how many per cent of scores would "
            "e^z be infinite?",
            "naive",
            "difference",
        ),
        (
            "As implemented, e^z never overflows. The scores themselves can, in float16, once components are large: "
            "then scale q before the product, not the scores after it. With more than d_k keys that is cheaper, too: "
            "n·d_k numbers instead of n².",
            "Low precision costs digits: a large logit keeps fewer decimals than a small one, so unscaled weights "
            "are rounded more. Weight is misplaced if rounding moves it to other keys.",
        ),
        {
            "naive": trial("e^z infinite, float16, unscaled", "exp_overflow", _D_K, "float16", False, unit="share"),
            "shifted": trial("float16, largest subtracted", "exp_overflow", _D_K, "float16", True, unit="share"),
            "naive32": trial("the same, bfloat16", "exp_overflow", _D_K, "bfloat16", False, unit="share"),
            "raw": trial("score infinite, float16, σ {std}", "score_overflow", _D_K, 80.0, 1.0, unit="share"),
            "first": trial("the same, q scaled first", "score_overflow", _D_K, 80.0, _SCALED, unit="share"),
            "error": lab("weight misplaced, bfloat16, unscaled", "weight_error", _ROUNDED, unit="share"),
            "error_scaled": lab("weight misplaced, bfloat16, scaled", "weight_error", _ROUNDED, True, "share"),
        },
        ("naive", "shifted", "naive32", "raw", "first", "error", "error_scaled"),
        PaneState(
            "Lab", "bfloat16, rounded at every step: the weight error, unscaled and scaled. f changes the format.",
            _ROUNDED, statistic="weight_error",
        ),
        {
            "d_k": _D_K, "largest": _LARGEST, "bound": math.log(_LARGEST), "bound32": 128 * math.log(2), "std": 80,
        },
    ),
    TourStep(
        "training",
        "Training, scaled and unscaled",
        "study note 002",
        (
            "What does this do to learning? The Train tab trains one layer of attention to recall labels: {pairs} "
            "pairs of a key and one of {labels} labels, and every key is asked for its label. Seeds, examples and "
            "initial weights are the same under every scale.",
            "Whatever the scale, it multiplies every logit, in training and afterwards. The notes say that it must "
            "be the same at both times.",
        ),
        Guess(
            "Trained with 1/√d_k at d_k = {d_k}, then used under 1/d_k: how many per cent of labels are recalled?",
            "smaller",
            "difference",
        ),
        (
            "Without a scale, large steps recall less: rows start nearly one-hot on wrong keys, and some stay "
            "there. With small steps weights can do the work of the scale. What can be expressed is the same; how "
            "it is learned is not.",
            "Another scale at inference makes another model. Here rows end nearly one-hot, so a larger multiplier "
            "harms little, and a smaller one more. Where the heads of all-MiniLM-L6-v2 drop it, {moved} of the "
            "weight moves to other keys. It can go if W_Q is multiplied by it once.",
        ),
        {
            "large": _raced("learning rate {large_rate}: recalled, no scale", _LARGE, "none recalled"),
            "large_root": _raced("learning rate {large_rate}: recalled, 1/√d_k", _LARGE, "sqrt_d_k recalled"),
            "small": _raced("learning rate {small_rate}: recalled, no scale", _SMALL, "none recalled"),
            "small_root": _raced("learning rate {small_rate}: recalled, 1/√d_k", _SMALL, "sqrt_d_k recalled"),
            "dropped": _raced("trained with 1/√d_k, used without", _USED, "sqrt_d_k under none"),
            "smaller": _raced("trained with 1/√d_k, used under 1/d_k", _USED, "sqrt_d_k under d_k"),
            "moved": trial("all-MiniLM-L6-v2: weight moved", "scale_dropped", part="moved", unit="share"),
        },
        ("large", "large_root", "small", "small_root", "dropped", "smaller"),
        PaneState(
            "Train", "A large learning rate, without a scale and with it; m shows entropy and gradients.", race=_LARGE
        ),
        {"pairs": _USED.task.pairs, "labels": _USED.task.labels, "d_k": _D_K, "large_rate": 4, "small_rate": 1},
    ),
    TourStep(
        "trained",
        "What trained heads do instead",
        "study notes 000 to 004",
        (
            "Everything up to here is about random vectors. The sample that comes with this program has the queries "
            "and keys of a trained model, all-MiniLM-L6-v2: {heads} heads of d_k = {d_k}.",
            "Random vectors would give unscaled scores a variance of d_k within each row.",
        ),
        Guess("In the head where it is largest, how many times d_k is that variance?", "most"),
        (
            "The scale only set the start; training chose the spread of each head. Queries learned to point where "
            "keys differ most: in the median head this alone multiplies the variance by {alignment}. Longer q and k "
            "do the rest.",
            "{sinks} heads put over {sink} of their weight on the first token, an attention sink: mostly a way of "
            "doing nothing. {saturated} heads spread beyond saturation, most of them onto a sink; the other "
            "{looking} "
            "look up a few keys, as training made them.",
        ),
        {
            "least": trial("variance in rows / d_k, least", "all_heads", part="least"),
            "median": trial("variance in rows / d_k, median", "all_heads", part="median"),
            "most": trial("variance in rows / d_k, most", "all_heads", part="most"),
            "alignment": trial("factor of alignment, median (1 if random)", "all_heads", part="alignment"),
            "sinks": trial("heads with a sink", "all_heads", part="sinks", unit="count"),
            "saturated": trial("heads spread beyond saturation", "all_heads", part="saturated", unit="count"),
            "looking": trial("these without a sink", "all_heads", part="looking", unit="count"),
        },
        ("least", "median", "most", "alignment", "sinks", "saturated", "looking"),
        PaneState("Capture", "The head with the largest spread. n goes to the next head of note.", head=(0, 2)),
        {"heads": 72, "d_k": 32, "sink": f"{100 * SINK:.0f} %"},
    ),
)  # fmt: skip


STEPS: tuple[TourStep, ...] = SCORES + MODELS
