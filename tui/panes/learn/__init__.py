"""The Learn pane: a guided tour, with a guess before each answer."""

# Its help: paragraphs, and terms with their meanings.
ABOUT = (
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
