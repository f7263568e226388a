"""The help on the Capture pane."""

from ....core.statistics.catalogue import SINK

ABOUT = (
    "Each cell of the map is one attention head of a real model, measured at the scale in the file: a darker shade "
    "and a larger digit mean a larger value of the statistic named above. The head with the cursor is shown at the "
    "right, under the file's scale and under another rule.",
    "Softmax depends only on the variance within each row; the ignored share has no effect. Low entropy with much "
    f"weight on the first key (above {100 * SINK:.0f} %) is an attention sink, not a look-up.",
)
