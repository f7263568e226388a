"""The Lab pane: random queries and keys, recomputed on every key."""

from ...views.help import status_help

# The paragraphs of its help.
ABOUT = (
    "Scores are dot products of random queries and keys. Unscaled, they go to softmax as they are; scaled, they are "
    "multiplied by the scale first. Hold an arrow key: as d_k grows, unscaled logits spread, a few keys take all the "
    "weight and rows stop passing a gradient, while the scaled picture hardly changes.",
    "Logits: what enters softmax, on an axis that stays. A row of attention: the mean over all rows of the largest "
    "weight, the second, and so on; a piece is a key. Keys matter: e to the entropy of a row, the number of keys "
    "that would share it evenly.",
    "Does softmax saturate: the standard deviation of a row's logits over √(2 ln n), on a logarithmic axis. Past the "
    "limit, 1, softmax over n keys gives a few of them all the weight. It is exact where theory knows it.",
    "a replaces unscaled by another rule, number, law or format, such as d_k,precision=bfloat16; s the scaled one.",
    "v shows all numbers. A ± is a standard error over the independent draws of the batch, ±≥ a lower bound of it, "
    "where heavy tails or a correlation make the deciding draws too rare to estimate it. Theory is the exact "
    "expectation at this d_k and n, or — if none is known. A measured value more than four standard errors from it "
    "is marked ! and named.",
    status_help({}),
)
