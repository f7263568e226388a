"""The Capture pane: the heads of a real model."""

from ...views.help import MARKS, status_help

# The paragraphs of its help.
ABOUT = (
    "The line on top is the verdict on the file: whether its scale is the one that was used, as far as weights, "
    "log-sum-exps or outputs in the file tell. q and k alone cannot tell; v shows what every scale rule would do.",
    "Each cell of the map is one attention head of a real model, measured at the scale in the file: a darker shade "
    "and, in wide cells, a larger digit mean a larger value of the statistic named above, and a letter is the "
    "status of a head that is not healthy: w, wrong, where the evidence contradicts the file, and ?, unusual, where "
    "a recorded scale is not 1/√d_k and no configuration says why. m chooses the statistic: with evidence in the "
    "file, also the multiplier over the expected one. The list ranks heads, worst first, with their mean largest "
    "weight (max), their weight on the first key, and the reason; o changes its order, n and N go through the heads "
    "that are not healthy. ≈ marks heads of a large file of which only a few rows are measured so far.",
    "Under it is the attention of the head with the cursor: a cell is the share of a query's weight on a key, or, of "
    "large matrices, on some keys, averaged over some queries. Tab gives it the arrows, + and - zoom, and the row "
    "with the cursor is drawn beside it in two settings, and so are its statistics: A, by default unscaled, "
    "which a changes, and B, by default the file's scale, which s changes. f changes the number format in which B "
    "multiplies q and k as they are in the file, and A unless it has its own: float64 rounds nothing. i chooses "
    "statistic, rules, formats and arithmetic of A and B from one list, also without the file's soft-cap, or takes a "
    "formula such as log(n)/sqrt(d). / finds a head (18/7), a query (12) or a token.",
    "Softmax depends only on the variance within each row; the ignored share has no effect. Low entropy with much "
    "weight on the first key is an attention sink, not a look-up.",
    status_help(MARKS),
)
