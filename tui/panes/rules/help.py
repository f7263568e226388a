"""The help on the Rules pane."""

ABOUT = (
    "Every scale rule on the same queries and keys: the multiplier, its status in a word, the standard deviation of "
    "the logits, entropy, the largest weight, the gradient of a typical query, dead rows, the deviation over "
    "√(2 ln n), at which softmax saturates, and scores that overflow the number format. A row shows what the Lab "
    "measures in its scaled column under that rule. The small curve is entropy over d_k, from 0 to ln n, on a sample "
    "of rows.",
    "The selected rule is explained below the table; Enter opens the Lab with it. m compares mechanisms over d_k "
    "instead, each with its usual rule: their statistics on the same draws, and the bounds of their scores. Once "
    "more, it compares weightings of the same logits, under the chosen rule: softmax, with a sink, sigmoid, entmax, "
    "sparsemax, differential and forgetting attention, QK-Clip.",
)
