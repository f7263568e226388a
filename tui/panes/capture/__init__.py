"""The Capture pane: the heads of a real model."""

from ...views.help import MARKS, status_terms

# Its help: paragraphs, and terms with their meanings.
ABOUT = (
    "The line on top is the verdict on the file: whether its scale is the one that was used, as far as weights, "
    "log-sum-exps or outputs in the file tell. q and k alone cannot tell; v shows what every scale rule would do.",
    ("a cell", "a head, measured at the scale in the file: the darker it is, the larger the statistic named above"),
    ("a digit", "the same from 0 to 9, at the cursor and in wide cells"),
    (
        "a letter",
        "the status of a head that is not healthy; w: the evidence contradicts the file; ?: a recorded scale is not "
        "1/√d_k and no configuration says why",
    ),
    ("≈", "a head of a large file, of which only a few rows are measured so far"),
    "m chooses the statistic: with evidence in the file, also the multiplier over the expected one. The list ranks "
    "heads, worst first, with their mean largest weight (max), their weight on the first key, and the reason; o "
    "changes its order, n and N go through the heads that are not healthy.",
    "Under it is the attention of the head with the cursor: a cell is the share of a query's weight on a key, or, of "
    "large matrices, on some keys, averaged over some queries. Tab gives it the arrows, + and - zoom, and the row "
    "with the cursor is drawn beside it in two settings, and so are its statistics: A, by default unscaled, "
    "which a changes, and B, by default the file's scale, which s changes. f changes the number format in which B "
    "multiplies q and k as they are in the file, and A unless it has its own: float64 rounds nothing. i chooses "
    "statistic, rules, formats and arithmetic of A and B from one list, also without the file's soft-cap, or takes a "
    "formula such as log(n)/sqrt(d). / finds a head (18/7), a query (12) or a token.",
    "Softmax depends only on the variance within each row; the ignored share has no effect. Low entropy with much "
    "weight on the first key is an attention sink, not a look-up.",
    *status_terms(MARKS),
)
