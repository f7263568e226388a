"""The Watch pane."""

# Its help: paragraphs, and terms with their meanings.
ABOUT = (
    "A training run in progress: every head, a line each, over the steps. A darker shade is a larger logit, on a "
    "logarithmic scale; a full block is over the limit. Where not all heads fit, the layer with the cursor is shown "
    "by head, and another one by the largest of its heads.",
    "v shows the numbers of one step: a map of heads, and beside it those over the limit, then those that pass it "
    "soonest at their growth. Growth needs 8 steps, and is shown only where noise does not explain it.",
    "Enter opens the selected head in the capture view, if the run is a folder of captures; Esc comes back. `b` "
    "makes the step on screen the baseline: map and list then show what changed since it, the largest change first, "
    "and Enter opens a head beside that of the baseline. `b` on the baseline ends this.",
    "Trends have a logarithmic axis, from a ninth of the limit up to it; below the map, the selected head's own.",
    "`attn-tui watch RUN` opens a folder of captures, one a step, as `attn-tui record -o RUN --every 100 -- python "
    "train.py` makes it of a PyTorch program. Or RUN is a file of lines, one a step, with the largest |logit| of "
    'each head by layer: `{"step": 100, "max_logit": [[20.5, 9.1], [8.3, 12.4]]}`. Without RUN, it shows an '
    "example: six layers of a small model, trained at a learning rate that is too high.",
    "A head that passes the limit rings the bell once, whatever tab is shown. The line at the top says whether the "
    "scale is inside the logits: a limit of 100 means little for scores without it.",
)
