"""The Lab pane: random queries and keys, recomputed on every key."""

from ...views.help import status_terms

# Its help: paragraphs, and terms with their meanings.
ABOUT = (
    "Random queries and keys. Unscaled, their dot products enter softmax as they are; scaled, they are multiplied by "
    "the scale first. Hold →: as d_k grows, unscaled logits spread, a few keys take all the weight and rows stop "
    "passing a gradient, while the scaled picture hardly changes.",
    ("logits", "what enters softmax, on an axis that stays"),
    ("spread", "standard deviation of the logits: of unscaled ones it grows like √d_k"),
    ("a row", "the mean over all rows of the largest weight, the second, and so on; a piece is a key"),
    ("keys matter", "e to the entropy of a row: the number of keys that would share it evenly"),
    ("the limit", "a row's logits spread by √(2 ln n): beyond, a few of n keys take all the weight"),
    (
        "saturated",
        "the spread of a row's logits is over that limit; exact where theory knows it",
    ),
    "a replaces unscaled by another rule, number, law or format, such as d_k,precision=bfloat16; s the scaled one.",
    "v shows all numbers. A ± is a standard error over the independent draws of the batch, ±≥ a lower bound of it, "
    "where heavy tails or a correlation make the deciding draws too rare to estimate it. Theory is the exact "
    "expectation at this d_k and n, or — if none is known. A measured value more than four standard errors from it "
    "is marked ! and named.",
    *status_terms({}),
)
