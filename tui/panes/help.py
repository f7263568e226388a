"""The help on each pane: its paragraphs, by the title of the pane."""

from __future__ import annotations

from ..views.help import MARKS, status_help

_LAB = (
    "Scores are dot products of random queries and keys. Unscaled, they go to softmax as they are; scaled, they are "
    "multiplied by the scale first. Hold an arrow key: as d_k grows, unscaled logits spread, a few keys take all the "
    "weight and rows stop passing a gradient, while the scaled picture hardly changes.",
    "Logits: what enters softmax, on an axis that stays. A row of attention: the mean over all rows of the largest "
    "weight, the second, and so on; a piece is a key. Keys matter: e to the entropy of a row, the number of keys "
    "that would share it evenly.",
    "Does softmax saturate: the standard deviation of a row's logits over √(2 ln n), on a logarithmic axis. Past the "
    "limit, 1, softmax over n keys gives a few of them all the weight. It is exact where theory knows it.",
    "a replaces unscaled by another rule, number, law or format, such as d_k,precision=bfloat16; s the scaled one.",
    "v shows all numbers. A ± is a standard error over the independent draws of the batch, ±≥ a lower bound of it, "
    "where heavy tails or a correlation make the deciding draws too rare to estimate it. Theory is the exact "
    "expectation at this d_k and n, or — if none is known. A measured value more than four standard errors from it "
    "is marked ! and named.",
    status_help({}),
)
_SWEEP = (
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
_SOFTMAX = (
    "Softmax of a few scores, step by step, under A, by default unscaled, beside B: "
    "logits, exponentials after subtracting the "
    "largest logit, weights, p(1−p), and the Jacobian: the derivative of the weight in a row with respect to the "
    "logit in a column. Each entry has a sign, and a shade for its size.",
    "Type or step a score, and see when the largest one takes all the weight: the Jacobian is then zero, and "
    "gradients vanish. A temperature divides all logits. A shift is added to all logits and changes no weight; the "
    "line named naive shows its effect on exponentials that are not shifted by the largest logit.",
)
_RULES = (
    "Every scale rule on the same queries and keys: the multiplier, its status in a word, the standard deviation of "
    "the logits, entropy, the largest weight, the gradient of a typical query, dead rows, the deviation over "
    "√(2 ln n), at which softmax saturates, and scores that overflow the number format. A row shows what the Lab "
    "measures in its scaled column under that rule.",
    "A dot is that deviation on the axis of the Lab's gauge, and the line beside it where it moves from d_k 16 to "
    "d_k 256: a rule without a line suits every width. i shows the columns that do not fit.",
    "The selected rule is explained below the table; Enter opens the Lab with it. m shows mechanisms "
    "over d_k instead, each with its usual rule: their statistics on the same draws, and the bounds of their scores.",
)
_HEADS = (
    "What an attention layer costs: the parameters of each matrix, the KV cache and the floating-point operations; "
    "and the d_k that follows from its shape. Query heads that share keys and values shrink the cache; they change "
    "neither d_k nor the number of scores.",
    "p chooses the layer of a well-known model, each with its source; Enter opens the Lab with the layer's d_k. "
    "Key heads and d_k follow from the other fields, and are dimmed, until you step them. An impossible shape is "
    "explained; the last valid figures stay, dimmed.",
)
_CAPTURE = (
    "The line on top is the verdict on the file: whether its scale is the one that was used, as far as weights, "
    "log-sum-exps or outputs in the file tell. q and k alone cannot tell; v shows what every scale rule would do.",
    "Each cell of the map is one attention head of a real model, measured at the scale in the file: a darker shade "
    "and, in wide cells, a larger digit mean a larger value of the statistic named above, and a letter is the "
    "status of a head that is not healthy: w, wrong, where the evidence contradicts the file, and ?, unusual, where "
    "a recorded scale is not 1/√d_k and no configuration says why. m chooses the statistic: with evidence in the "
    "file, also the multiplier over the expected one. The list ranks heads, worst first, with their mean largest "
    "weight (max), their weight on the first key, and the reason; o changes its order, n and N go through the heads "
    "that are not healthy. ≈ marks heads of a large file of which only a few rows are measured so far.",
    "Under it is the attention of the head with the cursor: a cell is the share of a query's weight on a key, or, of "
    "large matrices, on some keys, averaged over some queries. Tab gives it the arrows, + and - zoom, and the row "
    "with the cursor is drawn beside it in two settings, and so are its statistics: A, by default unscaled, "
    "which a changes, and B, by default the file's scale, which s changes. f changes the number format in which B "
    "multiplies q and k as they are in the file, and A unless it has its own: float64 rounds nothing. i chooses "
    "statistic, rules, formats and arithmetic of A and B from one list, also without the file's soft-cap, or takes a "
    "formula such as log(n)/sqrt(d). / finds a head (18/7), a query (12) or a token.",
    "Softmax depends only on the variance within each row; the ignored share has no effect. Low entropy with much "
    "weight on the first key is an attention sink, not a look-up.",
    status_help(MARKS),
)
_WATCH = (
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
_LEARN = (
    "A tour of why attention divides by √d_k, in twelve steps. Each step asks for a guess: type a number, or a "
    "formula such as sqrt(d_k), and Enter shows the measured and the exact answer and how far off the guess was. "
    "Enter without a guess shows the answer too. Enter again goes on, Backspace goes back; what was answered is "
    "marked, and remembered when the app is closed.",
    "Until then the field of the guess has the focus: letters and digits type into it. Esc erases what is typed, "
    "and once more leaves the field: then letters are shortcuts, until Tab, a digit or the next step goes to a "
    "field again.",
    "M goes on to the questions of interviews: Enter shows the answer in 30 seconds, and again the long one; 1 "
    "says that you knew it, 2 has it asked again. Then come the bugs to find: captures made on the spot, with one "
    "defect, two or none. Compare what was returned with what the file says, type the number of a cause or words of "
    "it, and Enter has the capture diagnosed.",
    "Last come claims about √d_k from widely copied study notes. Each is tested now, on this machine; its verdict is "
    "computed from its figures: claimed, measured with a standard error, and exact if theory has a value. n goes "
    "to the next one that is not simply true, r tests all again.",
    "E shows what an item speaks of in its tab: the Lab with its parameters, a row of Softmax, a head in "
    "Model. Alt+6 returns to the item, and u restores the parameters that stood before. r hides the answer "
    "again.",
    "Every number is measured now, with fixed seeds: ± is a standard error over independent draws. A dash is "
    "where no exact value is known. In the picture of scores, a line is one score, product by product, and white "
    "is theory.",
)
_TRAIN = (
    "One layer of attention learns to recall labels: 16 pairs of a key and one of 8 labels, every key asked once. "
    "It is trained under several scale rules side by side, with the same seeds, examples and initial weights, which "
    "give q and k components of variance 1.",
    "A curve is the median over seeds; a letter on it shows its rule, with the standard error of the mean. The table "
    "has the mean of the last 10 steps, the share of recalled labels, the steps until it is 90 %, and how many runs "
    "diverged. At the end it says what weights trained under a row's rule recall if a column's rule is used.",
    "Try d_k 256 with SGD at a learning rate of 5: without a scale, attention is one-hot from the start and stays on "
    "some wrong keys. Then a learning rate of 1, at which both recall everything; and Adam, which hides the scale at "
    "d_k 64 and its rate of 0.01, but not at d_k 256. / chooses the rules; a number or a formula typed there is a "
    "rule too.",
)

ABOUT = {
    "Lab": _LAB,
    "Sweep": _SWEEP,
    "Softmax": _SOFTMAX,
    "Rules": _RULES,
    "Heads": _HEADS,
    "Capture": _CAPTURE,
    "Watch": _WATCH,
    "Learn": _LEARN,
    "Train": _TRAIN,
}
