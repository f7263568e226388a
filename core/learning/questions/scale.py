"""Questions about the size of scores: why √d_k, why not d_k, what gradients do, which width it is."""

from __future__ import annotations

import math
from dataclasses import replace

from ...parameters import Parameters
from ..step import InterviewQuestion, PaneState, enough, lab, over_scaled, threshold, trial

_TEN, _NARROW = Parameters(256, 10, 64, 128), enough(64)
_TOKENS = 32  # of deep models
_ALIGNED, _ALIGNED_WIDE = (Parameters(d_k, 32, 16, 512, correlation=0.5) for d_k in (64, 256))
_BY_D_MODEL = enough(64, scale="custom", multiplier=1 / math.sqrt(512))


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
        "uniform. It is right once queries and keys are aligned, because aligned scores grow like d_k: muP, whose "
        "settings suit every width, divides by d_k.",
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
        "Half right. If that were so, one would divide by d.",
        {"d_k": 64, "wide": 256, "rho": 0.5},
    ),
    InterviewQuestion(
        "vanishing-gradients",
        "Do gradients vanish without the scale?",
        "With few keys softmax passes on less, ∂L/∂z. But ∂L/∂q = c·Kᵀ·∂L/∂z, and without the scale c is √d_k times "
        "as large. So ∂L/∂q vanishes in the typical row only; its mean square grows, carried by few rows. Training "
        "becomes erratic rather than dead.",
        (
            "With {n} keys and d_k = {d_k}, unscaled over scaled: c is {root} times as large, ‖∂L/∂z‖ {z_rms} times "
            "in the root mean square and {z_median} times in the median; so ‖∂L/∂q‖ is {q_rms} and {q_median} times "
            "as large.",
            "With {many} keys and d_k = {narrow}, c is {narrow_root} times as large and the median of ‖∂L/∂z‖ "
            "{many_z} times: even the typical ‖∂L/∂q‖ grows, {many_q} times.",
            "Depth multiplies this. At the input of {layers} layers of one head, d_k = {narrow}, {tokens} tokens, at "
            "initialisation, the gradient is {deep} times that of scaled attention, {shallow} times with one layer: "
            "it explodes rather than vanishes. With wider heads it does so more.",
        ),
        {
            "z_rms": over_scaled("RMS of ‖∂L/∂z‖, unscaled / scaled", "grad_logits_rms", _TEN),
            "z_median": over_scaled("median of ‖∂L/∂z‖", "grad_logits_median", _TEN),
            "q_rms": over_scaled("RMS of ‖∂L/∂q‖", "grad_q_rms", _TEN),
            "q_median": over_scaled("median of ‖∂L/∂q‖", "grad_q_median", _TEN),
            "many_z": over_scaled("median of ‖∂L/∂z‖, {many} keys, d_k {narrow}", "grad_logits_median", _NARROW),
            "many_q": over_scaled("median of ‖∂L/∂q‖, the same", "grad_q_median", _NARROW),
            "shallow": trial("at the input of 1 layer", "through_layers", 1, 64, _TOKENS, part="ratio"),
            "deep": trial("at the input of {layers} layers", "through_layers", 16, 64, _TOKENS, part="ratio"),
        },
        PaneState("Lab", "The rows of gradients, unscaled beside scaled.", _TEN, statistic="grad_logits_rms"),
        "Yes: softmax saturates, its derivative is 0, so gradients vanish.",
        "True of ∂L/∂z in the typical row. ∂L/∂q has one more factor, the scale.",
        {
            "d_k": 256,
            "n": 10,
            "root": math.sqrt(_TEN.d_k),
            "many": 128,
            "narrow": 64,
            "narrow_root": math.sqrt(_NARROW.d_k),
            "layers": 16,
            "tokens": _TOKENS,
        },
    ),
    InterviewQuestion(
        "unit-variance",
        "Do Xavier initialisation or LayerNorm guarantee unit variance?",
        "Only at initialisation, and only together: LayerNorm on the inputs, and weights of variance 1/d_model. "
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
        "of the most common bugs.",
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
