"""The steps of the tour about models: initialisation, heads, positions, number formats, training, trained heads."""

from __future__ import annotations

import math
from dataclasses import replace

from ...parameters import Parameters
from ...statistics.catalogue import SINK
from ...training.settings import Race
from ..sources import Reading
from ..step import Guess, PaneState, TourFigure, TourStep, UsualGuess, enough, lab, trial

_D_MODEL, _HEADS, _D_K = 512, 8, 64
_SCALED = 1 / math.sqrt(_D_K)
_BASE = 10_000.0  # of rotary embeddings
_LARGEST = 65_504.0  # of float16
_RANGE = 3 * math.sqrt(_D_K)  # of scores: three standard deviations
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
        "a study note: “similar to batch or layer normalisation”",
        (
            "So far q and k had unit variance by assumption. In a model q = x·W_Q and k = x·W_K. LayerNorm gives x "
            "mean 0 and variance 1; then a component of q has variance d_model times that of the entries of W_Q.",
            "Xavier initialisation of a square matrix has entries of variance 1/d_model, so that it is 1. Kaiming "
            "initialisation has 2/d_model, to make up for a ReLU.",
        ),
        Guess(
            "With Kaiming weights, what is the variance of the logits q·k/√d_k?",
            "kaiming",
            (
                UsualGuess("2", "2 is the variance of a component of q, and of one of k; a score has both factors."),
                UsualGuess("1", "1 is that of Xavier weights on a square matrix."),
                UsualGuess("sqrt(2)", "{guess} is the standard deviation of a component of q."),
            ),
        ),
        (
            "Of these, only Xavier on a square matrix gives 1 under the scale; PyTorch's defaults start flatter. T5 "
            "has no scale: it draws W_Q smaller, by √d_k. Attention starts the same and can express the same, but "
            "it learns differently: in ∂L/∂q = c·Kᵀ·∂L/∂z, c is then 1, so the gradient of W_Q is √d_k times as "
            "large, and W_Q √d_k times as small.",
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
        "study notes: “several heads learn representations of different subspaces in parallel”",
        (
            "A layer with h heads splits the columns of W_Q, W_K and W_V among them: each head has its own d_k = "
            "d_model/h dimensions, its own scores and its own softmax. Their outputs are put side by side, and only "
            "W_O, d_model × d_model, mixes them: Concat(head₁, …, head_h)·W_O.",
            "The divisor is √d_k of the head, not √d_model. Confusing the two is one of the most common bugs.",
        ),
        Guess(
            "d_model = {d_model}, {heads} heads, d_k = {d_k}. Divided by √d_model by mistake: what is the standard "
            "deviation of the logits?",
            "wrong",
            (
                UsualGuess("1", "1 is right with √d_k, which is smaller than √d_model."),
                UsualGuess("sqrt(heads)", "{guess} is the inverse: a larger divisor makes logits smaller."),
                UsualGuess("1/heads", "{guess} is their variance, d_k/d_model."),
            ),
        ),
        (
            "The wrong divisor is √h times too large: it makes attention flatter, not more peaked. The number of "
            "heads changes no count of parameters, 3·d_model·h·d_k + d_model² with W_O, but it does change d_k.",
            "Several heads look at several positions at once. In the sample of a trained model, all-MiniLM-L6-v2, "
            "two heads of a layer differ in {alike} to {apart} of their weight, by layer. That makes a layer more "
            "expressive, not a head: its scores have rank {rank}, d_k; those of one wide head {full}, the number of "
            "tokens. In half of all heads {dimensions} dimensions hold {held} of their variance.",
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
            "alike": trial("weight two heads differ in, least layer", "heads_apart", part="least", unit="share"),
            "apart": trial("the same, most", "heads_apart", part="most", unit="share"),
            "dimensions": trial("dimensions with {held} of a head's scores", "all_heads", part="dimensions"),
        },
        ("one", "eight", "right", "wrong", "keys", "near", "far"),
        PaneState(
            "Lab",
            "A divides by √d_k, B by √d_model: compare their spread.",
            replace(_BY_D_MODEL, against="sqrt_d_k"),
        ),
        {"d_model": _D_MODEL, "heads": _HEADS, "d_k": _D_K, "together": 12, "held": "90 %"},
    ),
    TourStep(
        "positions",
        "Positions and rotary embedding",
        "a study note: “relative positional encoding adjusts the scale further”",
        (
            "Rotary embedding rotates pairs of components of q and k by angles that grow with their positions. A "
            "rotation changes no length, so unrelated q and k still have scores of variance d_k.",
            "Related ones change: a key equal to the query scores |q|², d_k on average, where both stand at the "
            "same place. The further apart they are, the lower it is, on the whole.",
        ),
        Guess(
            "d_k = {d_k}, {d100} positions apart: what percentage of that score is left?",
            "far",
            (
                UsualGuess("0", "0 % needs all pairs to have rotated far; the slowest have hardly rotated yet."),
                UsualGuess(
                    "100",
                    "{guess} is left where both stand at the same place; apart, one is rotated against the other.",
                ),
                UsualGuess("1", "{guess} is one over the distance; it falls far more slowly than that."),
            ),
            "difference",
        ),
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
        "a study note: “the input of softmax may exceed the range of floating-point numbers”",
        (
            "It is often said that the scale prevents overflow. float32 and bfloat16 hold e^z up to z of about "
            "{bound32}. float16 ends at {largest}, so e^z is infinite above z = {bound}.",
            "At d_k = {d_k} nearly all scores are within ±{range}. But softmax first subtracts the largest logit of "
            "the row, and e to a number of at most 0 never overflows.",
        ),
        Guess(
            "Without that subtraction, in float16 and unscaled, d_k = {d_k}: for what percentage of scores would e^z "
            "be infinite?",
            "naive",
            (
                UsualGuess("0", "0 % is right in float32 and bfloat16, and in float16 after the subtraction."),
                UsualGuess(
                    "0.3",
                    "{guess} is what lies beyond three standard deviations; {bound} is only {away} of them.",
                ),
                UsualGuess("100", "{guess} cannot be: half of all scores are negative."),
            ),
            "difference",
        ),
        (
            "e^{range} is {largest_power}, far within float32, and e^−{range} is {smallest_power}, not 0. As "
            "implemented, e^z never overflows. The scores themselves can, in float16, once components are large: "
            "then scale q before the product, not the scores after it. With more than d_k keys that is cheaper, too: "
            "n·d_k numbers instead of n².",
            "Low precision costs digits: a large logit keeps fewer decimals than a small one, so unscaled weights "
            "are rounded more, and more weight is misplaced, moved to other keys.",
        ),
        {
            "naive": trial("e^z infinite, float16, unscaled", "exp_overflow", _D_K, "float16", False, unit="share"),
            "shifted": trial("float16, largest subtracted", "exp_overflow", _D_K, "float16", True, unit="share"),
            "naive32": trial("the same, bfloat16", "exp_overflow", _D_K, "bfloat16", False, unit="share"),
            "raw": trial("score infinite, float16, σ {std}", "score_overflow", _D_K, 80.0, 1.0, unit="share"),
            "first": trial("the same, q scaled first", "score_overflow", _D_K, 80.0, _SCALED, unit="share"),
            "error": lab("weight misplaced, bfloat16, unscaled", "weight_error", _ROUNDED, unit="share"),
            "error_scaled": lab("weight misplaced, bfloat16, scaled", "weight_error", _ROUNDED, True, "share"),
            "largest_power": TourFigure("e^{range}", Reading(None, math.exp(_RANGE))),
            "smallest_power": TourFigure("e^−{range}", Reading(None, math.exp(-_RANGE))),
        },
        ("naive", "shifted", "naive32", "raw", "first", "error", "error_scaled"),
        PaneState(
            "Lab", "bfloat16, rounded at every step: the weight error, unscaled and scaled. f changes the format.",
            _ROUNDED, statistic="weight_error",
        ),
        {
            "d_k": _D_K, "largest": _LARGEST, "bound": math.log(_LARGEST), "bound32": 128 * math.log(2), "std": 80,
            "range": _RANGE, "away": math.log(_LARGEST) / math.sqrt(_D_K),
        },
    ),
    TourStep(
        "training",
        "Training, scaled and unscaled",
        "a study note: the scale “must be the same in training and inference”",
        (
            "What does this do to learning? The Train tab trains one layer of attention to recall labels: {pairs} "
            "pairs of a key and one of {labels} labels, and the layer is asked for the label of every key. Seeds, "
            "examples and initial weights are the same under every scale.",
            "Whatever the scale, it multiplies every logit, in training and afterwards. A study note says that it "
            "“must be the same in training and inference”.",
        ),
        Guess(
            "Trained with 1/√d_k at d_k = {d_k}, then used under 1/d_k: what percentage of labels is recalled?",
            "smaller",
            (
                UsualGuess("100", "{guess} is what it recalls without a scale, which makes sharp rows sharper."),
                UsualGuess(
                    "100/labels",
                    "{guess} is chance. Weights are flatter under 1/d_k, but the right key leads.",
                ),
                UsualGuess("0", "0 % is below chance: one of {labels} labels is right by luck."),
            ),
            "difference",
        ),
        (
            "Without a scale, large steps recall less: rows start nearly one-hot on wrong keys, and some stay "
            "there. With small steps weights can do the work of the scale. What can be expressed is the same; how "
            "it is learned is not.",
            "Another scale at inference makes another model. Here rows end nearly one-hot, so a larger multiplier "
            "harms little, and a smaller one more. Where the heads of all-MiniLM-L6-v2 drop it, {moved} of the "
            "weight moves to other keys. The scale can go if W_Q is multiplied by it once.",
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
        "study notes: “assume that Q and K are independent, with mean 0 and variance 1”",
        (
            "Everything so far was about random vectors. The sample that comes with this program has the queries "
            "and keys of a trained model, all-MiniLM-L6-v2: {heads} heads of d_k = {d_k}.",
            "Random vectors would give unscaled scores a variance of d_k within each row.",
        ),
        Guess(
            "In the head where it is largest, how many times d_k is that variance?",
            "most",
            (
                UsualGuess("1", "1 is what random vectors give; no trained head has to keep it."),
                UsualGuess("2", "2 is near the median head, {median}; the largest is far from it."),
                UsualGuess(
                    "d_k",
                    "{guess} would be queries and keys all along one direction; here they are longer, too.",
                ),
            ),
        ),
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
