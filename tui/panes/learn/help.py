"""The help on the Learn pane."""

ABOUT = (
    "A tour of why attention divides by √d_k, in ten steps. Each step asks for a guess: type a number, and Enter "
    "shows the measured and the exact answer and how far off the guess was. Enter without a guess shows the answer "
    "too. Enter again goes on, Backspace goes back; what was answered is marked, and remembered when the app is "
    "closed.",
    "E shows what a step speaks of in its pane, with the parameters of the step; Alt+9 returns to the tour, and u "
    "restores the parameters that stood before. r hides the answer again.",
    "Every number is measured now, with fixed seeds: ± is a standard error over independent draws. A dash is where "
    "no exact value is known.",
)
