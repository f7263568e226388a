"""The Heads pane: what a layer costs."""

# Its help: paragraphs, and terms with their meanings.
ABOUT = (
    "What an attention layer costs: the parameters of each matrix, the KV cache and the floating-point operations; "
    "and the d_k that follows from its shape. Query heads that share keys and values shrink the cache; they change "
    "neither d_k nor the number of scores.",
    "p chooses the layer of a well-known model, each with its source; Enter opens the Lab with the layer's d_k. "
    "Key heads and d_k follow from the other fields, and are dimmed, until you step them. An impossible shape is "
    "explained; the last valid figures stay, dimmed.",
)
