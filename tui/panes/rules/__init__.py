"""The Rules pane: every scale rule side by side."""

# Its help: paragraphs, and terms with their meanings.
ABOUT = (
    "Every scale rule on the same queries and keys: the multiplier, its status in a word, the standard deviation of "
    "the logits, entropy, the largest weight, the gradient of a typical query, dead rows, the deviation over "
    "√(2 ln n), at which softmax saturates, and scores that overflow the number format. A row shows what the Lab "
    "measures in its scaled column under that rule.",
    ("a dot", "that deviation, on the axis of the Lab's gauge"),
    ("an arrow", "where it moves from d_k 16 to d_k 256: a rule without it suits every width"),
    "i shows the columns that do not fit.",
    "The selected rule is explained below the table; Enter opens the Lab with it. m shows mechanisms "
    "over d_k instead, each with its usual rule: their statistics on the same draws, and the bounds of their scores.",
)
