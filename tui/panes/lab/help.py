"""The help on the Lab pane."""

from ...views.status_help import status_help

ABOUT = (
    "Scores are dot products of random queries and keys. The unscaled column passes them to softmax as they are; the "
    "scaled column multiplies them by the scale first. Hold an arrow key: as d_k grows, unscaled logits spread, "
    "entropy falls and gradients vanish, while the scaled column hardly changes.",
    "Every ± is a standard error over the independent draws of the batch, ±≥ a lower bound of it, where heavy tails "
    "or a correlation make the deciding draws too rare to estimate it. Theory is the exact expectation at this d_k "
    "and n, or — if none is known. A measured value more than four standard errors from it is marked ! and named "
    "under the table. Softmax over n keys freezes once the standard deviation of logits reaches √(2 ln n); the "
    "table says at which d_k, where that is known exactly.",
    status_help({}),
)
