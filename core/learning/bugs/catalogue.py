"""BUGS: captures to examine, from easy to hard."""

from __future__ import annotations

from .bug import Bug, Recipe

_PLAIN = Recipe()
_CAUSAL = Recipe(sees=0)
_SCALES = ("scale-missing", "scale-twice", "scale-d-model", "scale-inverted", "causal-lost", "healthy")
_MIXED = ("scale-twice", "causal-lost", "future-key", "gqa-tiled", "softcap-missing", "healthy")

BUGS: tuple[Bug, ...] = (
    Bug(
        "port",
        "A port to another framework",
        "After a port every layer picks single words, and the text that the model writes repeats itself.",
        _PLAIN,
        Recipe("1"),
        _SCALES,
        "The weights are far sharper than they should be, and ln(weight) rises by 1 for each unit of q·k. That "
        "slope is the multiplier.",
    ),
    Bug(
        "fused",
        "A faster kernel",
        "A fused kernel was switched on. The loss rose, and attention maps look washed out.",
        _PLAIN,
        Recipe("1/d_k"),
        _SCALES,
        "The slope of ln(weight) is 1/d_k, the square of 1/√d_k: the queries were scaled, and the kernel scaled "
        "again. A model that follows muP has the same number, and is right.",
        layer=2,
        head=1,
    ),
    Bug(
        "decoder",
        "A loss too good to be true",
        "A language model reaches a loss that nobody believes, and writes nonsense.",
        _CAUSAL,
        _PLAIN,
        _MIXED,
        "Weight lies on keys after the query, also far after it: the model reads what it is to predict. Its "
        "multiplier is right.",
        head=2,
    ),
    Bug(
        "tutorial",
        "Straight from a tutorial",
        "A small model was written after a tutorial, line by line. It trains, but more slowly than its sibling.",
        _PLAIN,
        Recipe("1/√d_model"),
        _SCALES,
        "The slope of ln(weight) is 1/√d_model. The weights are flatter than expected, not sharper: that tells it "
        "from a scale that is missing.",
        layer=1,
        head=3,
    ),
    Bug(
        "sharp",
        "One key takes all",
        "A head gives nearly all the weight of every row to one key. A colleague says that the scale must be "
        "missing.",
        _PLAIN,
        _PLAIN,
        _SCALES,
        "What was returned is what the file says. Training made this head sharp: its queries and keys are long and "
        "aligned. Sharpness alone is no evidence of a bug.",
        layer=0,
        head=2,
    ),
    Bug(
        "grouped",
        "Grouped queries",
        "A checkpoint with grouped queries was loaded by another program. It answers every prompt with noise.",
        _PLAIN,
        Recipe(tiled=True),
        _MIXED,
        "ln(weight) has next to nothing to do with q·k as stored, whatever the multiplier: the weights were made "
        "from other keys. Each key head must be repeated for the query heads of its group, not tiled.",
        head=1,
        kv_heads=2,
    ),
    Bug(
        "by-hand",
        "A mask written by hand",
        "A causal mask was rewritten for speed. The loss is a little too good since.",
        _CAUSAL,
        Recipe(sees=1),
        _MIXED,
        "There is weight on later keys, but none after the very next one: the mask is off by one. Without a mask, "
        "weight would lie further away, too.",
        layer=2,
        head=3,
    ),
    Bug(
        "served",
        "Trained here, served there",
        "A model answers well where it was trained. Another server, with another kernel, gives slightly other "
        "answers.",
        Recipe(softcap=4.0),
        _PLAIN,
        _MIXED,
        "The slope of ln(weight) is the same among the largest scores as among all. Under a soft-cap it would be "
        "smaller there: c·tanh(z/c) bends large logits.",
        layer=1,
    ),
)
