"""The Sweep pane: a statistic over d_k."""

# Its help: paragraphs, and terms with their meanings.
ABOUT = (
    "One statistic over d_k, or over the number of keys, unscaled and scaled. m chooses the statistic, a and s the "
    "two rules, or a formula such as log(n)/sqrt(d), g the range of d_k or of keys. "
    "i chooses more scale rules: Tab marks "
    "a row, Enter shows the curves of all that are marked, as the letters C to H. "
    "Line: exact expectation. Points: measurements, with ±1 standard error where it is "
    "visible; a point more than four standard errors from the line is marked !. All points share "
    "the same draws: the point at d_k uses their first d_k columns.",
    "The vertical line marks the current d_k or number of keys, which is also the Lab's. v shows a table with a row "
    "for each width that real models use, or for each number of keys; its histograms share one axis.",
    "After the table, v leads to a map of the statistic over d_k (across) and the number of keys (up), on which the "
    "arrows walk. Exact values are shown where they are known; others are measured on a few draws. The line is "
    "where the standard deviation of a row's logits reaches √(2 ln n); softmax is saturated on the side of the S.",
)
