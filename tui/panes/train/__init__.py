"""The Train pane: the training race, on screen."""

# Its help: paragraphs, and terms with their meanings.
ABOUT = (
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
