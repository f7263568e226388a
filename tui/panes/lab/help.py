"""The help on the Lab pane."""

from ...views.help.status_words import status_help

ABOUT = (
    "Scores are dot products of random queries and keys. Two settings stand side by side. A, by default unscaled, "
    "passes the scores to softmax as they are; B multiplies them by the scale. Hold an arrow key: as d_k grows, "
    "unscaled logits spread, entropy falls and more and more rows pass no gradient, while the scaled column hardly "
    "changes. a and A change A's rule; its field also takes a number, a law, a format or other parameters, such as "
    "d_k,precision=bfloat16.",
    "The gauge shows the standard deviation of the logits of a row over √(2 ln n), at which softmax over n keys "
    "saturates: the exact one where it is known. The line under the table says why B has its status, and which "
    "multiplier would mend it.",
    "Every ± is a standard error over the independent draws of the batch, ±≥ a lower bound of it, where heavy tails "
    "or a correlation make the deciding draws too rare to estimate it. Theory is the exact expectation at this d_k "
    "and n, or — if none is known. A measured value more than four standard errors from it is marked ! and named "
    "under the table. Softmax over n keys saturates once the standard deviation of logits reaches √(2 ln n); the "
    "table says at which d_k, where that is known exactly.",
    status_help({}),
)
