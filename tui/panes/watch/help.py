"""The help on the Watch pane."""

ABOUT = (
    "A training run in progress. Each cell of the map is one head at the step named above: a darker shade means "
    "a larger value (of logits by their logarithm), and `!` a largest logit over the limit. At the "
    "right are the heads over the limit, then those that pass it soonest at their growth, "
    "each with its trend. Growth needs 8 steps, and is shown only where noise does not explain it.",
    "Enter opens the selected head in the Capture pane, if the run is a folder of captures; Esc comes back. `b` "
    "makes the step on screen the baseline: map and list then show what changed since it, the largest change first, "
    "and Enter opens a head beside that of the baseline. `b` on the baseline ends this.",
    "Trends have a logarithmic axis, from a hundredth of the limit up to it; below the map, the selected head's own.",
    "`attn-tui watch RUN` opens a folder of captures, one a step, as `attn-tui record -o RUN --every 100 -- python "
    "train.py` makes it of a PyTorch program. Or RUN is a file of lines, one a step, with the largest |logit| of "
    'each head by layer: `{"step": 100, "max_logit": [[20.5, 9.1], [8.3, 12.4]]}`. Without RUN, the pane shows an '
    "example: six layers of a small model, trained at a learning rate that is too high.",
    "A head that passes the limit rings the bell once, whatever pane is shown. The line at the top says whether the "
    "scale is inside the logits: a limit of 100 means little for scores without it.",
)
