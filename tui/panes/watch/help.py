"""The help on the Watch pane."""

ABOUT = (
    "A training run while it goes on. Each cell of the map is one head at the step named above: a darker shade means "
    "a larger value, and `!` a largest logit over the limit. At the right are the heads over the limit, then those "
    "that pass it soonest at the rate of the last 32 steps, each with its trend.",
    "`attn-tui watch RUN` opens a folder of captures, one a step, or a file of attn-tui/watch-1 lines. A head that "
    "passes the limit rings the bell once. The line at the top says whether the scale is inside the logits: a limit "
    "of 100 means little for scores without it.",
)
