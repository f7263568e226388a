"""The help on the Claims pane."""

ABOUT = (
    "Claims about √d_k from widely copied study notes. Each is tested now, on this machine, and its verdict is "
    "computed from its figures: claimed, measured with a standard error, and exact if theory has a value. Enter "
    "opens the Lab with a claim's parameters, Softmax with the scores that a claim is about, or Train with its race.",
)
