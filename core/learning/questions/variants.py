"""Questions about variants: cosines, norms, temperatures, additive attention, soft-caps, sinks, embeddings."""

from __future__ import annotations

import math
from dataclasses import replace

from ...statistics.catalogue import SINK
from ..step import InterviewQuestion, PaneState, enough, lab, trial

_CAP = 10.0
_GEMMA_CAP = 50.0
_CAPPED = enough(64, softcap=_CAP)
_HALF = enough(64, scale="two_sqrt_d_k")
_SMALL = enough(64, std_q=1 / math.sqrt(512), std_k=1 / math.sqrt(512))
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
        "model is a different one: it acts on the softmax over the vocabulary.",
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
        "do not implement it drop it silently.",
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
            "first key separately. gpt-oss learns a logit that belongs to no key, so that no token has to serve.",
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
        "components of an embedding have a standard deviation of 1, as large as the positions added to them.",
        (
            "At d_model = {d_model} a component is {small} before, and a sine of a position has a root mean square "
            "of {sine}: without the factor, the positions would drown the words.",
            "Scores made of the small components alone show the difference: after 1/√d_k their standard deviation is "
            "{flat} instead of {right}, and all keys have the same weight. Layers that begin with a norm "
            "do not see the factor; many later models leave it out, and Gemma keeps it.",
        ),
        {
            "right": lab("logit σ, components of σ 1", "logit_std", enough(64), True),
            "flat": lab("logit σ, components of σ 1/√{d_model}", "logit_std", _SMALL, True),
        },
        PaneState("Lab", "With components that small, every key has the same weight.", _SMALL),
        "To undo the division by √d_k.",
        "Wrong: the two act in different places, and d_model is not d_k.",
        {"d_model": 512, "small": 0.044, "sine": 0.71},
    ),
)
