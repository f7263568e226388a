"""The help on the Capture pane."""

from ...views.status_help import status_help
from .heatmap import MARKS

ABOUT = (
    "Each cell of the map is one attention head of a real model, measured at the scale in the file: a darker shade "
    "and a larger digit mean a larger value of the statistic named above, and a letter is the status of a head that "
    "is not healthy. The head with the cursor is shown at the right, under the file's scale and under another rule.",
    "Softmax depends only on the variance within each row; the ignored share has no effect. Low entropy with much "
    "weight on the first key is an attention sink, not a look-up.",
    status_help(MARKS),
)
