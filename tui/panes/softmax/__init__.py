"""The Softmax pane: softmax of a few scores, step by step."""

# Its help: paragraphs, and terms with their meanings.
ABOUT = (
    "Softmax of a few scores, step by step, under A, by default unscaled, beside B: "
    "logits, exponentials after subtracting the "
    "largest logit, weights, p(1−p), and the Jacobian: the derivative of the weight in a row with respect to the "
    "logit in a column. Each entry has a sign, and a shade for its size.",
    "Type or step a score, and see when the largest one takes all the weight: the Jacobian is then zero, and "
    "gradients vanish. A temperature divides all logits. A shift is added to all logits and changes no weight; the "
    "line named naive shows its effect on exponentials that are not shifted by the largest logit.",
)
