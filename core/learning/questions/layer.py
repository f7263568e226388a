"""Questions about the whole layer: its formula and parameters, why it has several heads, what the scale is for."""

from __future__ import annotations

from ...parameters import Parameters
from ...training.settings import Race
from ..sources import Reading
from ..step import InterviewQuestion, PaneState, TourFigure, enough, lab, trial

_D_MODEL, _HEADS, _D_K = 512, 8, 64
_SHAPE = (2, _HEADS, 10, _D_K)  # batch, heads, tokens, d_k
_FAST = Race(64, ("none", "sqrt_d_k"), rate=0.1, seeds=4, optimiser="adam")
_SLOW = Race(64, ("none", "sqrt_d_k"), rate=0.01, seeds=4, optimiser="adam")

LAYER: tuple[InterviewQuestion, ...] = (
    InterviewQuestion(
        "formula",
        "What are the formula, the shapes and the parameters of self-attention?",
        "softmax(QKᵀ/√d_k)·V with Q = X·W_Q, K = X·W_K, V = X·W_V. X is n × d_model, W_Q and W_K are d_model × d_k, "
        "W_V is d_model × d_v. Scores are n × n, the output n × d_v. Q and K must be equally wide, since their dot "
        "product pairs components; V need not be.",
        (
            "It is self-attention because Q, K and V come from the same X; in cross-attention K and V come from "
            "another text. q·k is |q||k| times the cosine of their angle, largest if both point the same way: W_Q "
            "and W_K learn what counts as alike.",
            "With d_model = {d_model} and d_k = d_v = {d_k}, the three matrices of a head have 3·d_model·d_k = {one} "
            "parameters. {heads} heads and W_O have 3·d_model·h·d_k + d_model² = {all}, biases not counted.",
            "{batch} texts of {tokens} tokens have {scores} scores in {heads} heads, and the outputs are {output} "
            "numbers.",
        ),
        {
            "one": TourFigure("parameters of a head", Reading(None, 3.0 * _D_MODEL * _D_K), "count"),
            "all": trial(
                "parameters, {heads} heads and W_O", "weights_of_attention", _D_MODEL, _D_K, _HEADS, unit="count"
            ),
            "scores": trial("numbers in the scores", "shapes", *_SHAPE, part="scores", unit="count"),
            "output": trial("numbers in the outputs", "shapes", *_SHAPE, part="output", unit="count"),
        },
        PaneState("Learn", "The claim about the shapes of batch and heads.", item="batch-and-heads"),
        "Each of W_Q, W_K and W_V has 3·d_model·d_k parameters.",
        "That is the number of all three together.",
        {"d_model": _D_MODEL, "d_k": _D_K, "heads": _HEADS, "batch": _SHAPE[0], "tokens": _SHAPE[2]},
    ),
    InterviewQuestion(
        "several-heads",
        "Why several heads?",
        "One softmax makes one average of the values. Several heads make several, each of its own subspace, and W_O "
        "mixes them; at h heads of width d_model/h that costs no more parameters than one head of width d_model.",
        (
            "W_O is what makes heads work together: in Concat(head₁, …, head_h) their outputs still stand side by "
            "side. With d_model = {d_model} there are {one} parameters with one head and {eight} with {heads}.",
            "In a trained model, all-MiniLM-L6-v2, the {together} heads of a layer look at {keys} different keys at "
            "once, on average. The most local of its heads looks {near} tokens away, the most global one {far}.",
            "Each head pays with rank: its n × n scores have rank {rank} at most, d_k. So they are not made ever "
            "narrower.",
        ),
        {
            "one": trial("parameters, 1 head", "weights_of_attention", _D_MODEL, _D_MODEL, 1, unit="count"),
            "eight": trial("parameters, {heads} heads", "weights_of_attention", _D_MODEL, _D_K, _HEADS, unit="count"),
            "keys": trial("different top keys of {together} heads", "heads_at_once", part="keys"),
            "near": trial("most local head: distance in tokens", "heads_at_once", part="near"),
            "far": trial("most global head: distance in tokens", "heads_at_once", part="far"),
            "rank": trial("rank of a head's scores", "heads_at_once", part="rank", unit="count"),
        },
        PaneState("Capture", "Each cell of the map is a head: compare those of one layer.", head=(2, 0)),
        "They keep the model from overfitting to one representation.",
        "No evidence: many heads of a trained model can be removed at little cost.",
        {"d_model": _D_MODEL, "heads": _HEADS, "together": 12},
    ),
    InterviewQuestion(
        "without-the-scale",
        "What happens without the scale?",
        "Rows start sharper, the wider the heads, and a few rows carry most of ∂L/∂q. Whether training suffers "
        "depends on the size of its steps: with large ones some rows stay on wrong keys, with small ones weights "
        "make up for it.",
        (
            "At d_k = {narrow} the largest of {n} weights is {small_width} on average, at d_k = {wide} it is "
            "{large_width}; scaled, it is {scaled} at both.",
            "The race of the Train tab, with Adam at d_k = {race_d_k}: without the scale {slow_none} of labels are "
            "recalled at rate {slow}, {fast_none} at rate {fast}. With it {slow_sqrt} and {fast_sqrt}.",
            "Long sequences do not saturate more, but less: with {more} keys at d_k = {narrow} the largest weight is "
            "{long}. Gradients do not simply vanish: see question 4 (q4).",
        ),
        {
            "small_width": lab("largest weight, d_k {narrow}", "max_weight", enough(64), unit="share"),
            "large_width": lab("largest weight, d_k {wide}", "max_weight", enough(256), unit="share"),
            "scaled": lab("largest weight, scaled", "max_weight", enough(256), True, "share"),
            "slow_none": trial("recalled, rate {slow}, no scale", "raced", _SLOW, part="none recalled", unit="share"),
            "slow_sqrt": trial("the same, 1/√d_k", "raced", _SLOW, part="sqrt_d_k recalled", unit="share"),
            "fast_none": trial("recalled, rate {fast}, no scale", "raced", _FAST, part="none recalled", unit="share"),
            "fast_sqrt": trial("the same, 1/√d_k", "raced", _FAST, part="sqrt_d_k recalled", unit="share"),
            "long": lab("largest weight, {more} keys", "max_weight", enough(64, 1024), unit="share"),
        },
        PaneState("Lab", "Hold → or press ↑: the unscaled rows become sharper with d_k.", Parameters(64)),
        "Training is unstable, gradients vanish, weights are too sharp, and long sequences suffer most.",
        "Weights are sharper at large d_k; the rest depends.",
        {
            "narrow": 64, "wide": 256, "n": 128, "more": 1024, "race_d_k": _FAST.d_k, "slow": _SLOW.rate,
            "fast": _FAST.rate,
        },
    ),
)  # fmt: skip
