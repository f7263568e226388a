"""What has the focus, explained: a field, a statistic, a pane, and every key that works there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ...core.attention.scales import SCALE_RULES
from ...core.parameters import Field
from ...core.statistics.catalogue import DEAD, ONE_HOT, SINK, Statistic
from .glyphs import Glyphs
from .keys import key_word
from .lines import Line, ends, line_width, wrapped

LAB = (
    "Scores are dot products of random queries and keys. The unscaled column hands them to softmax as they are; the "
    "scaled one multiplies them by the rule first. Hold an arrow key: as d_k climbs, unscaled logits spread, entropy "
    "falls and rows die, while the scaled column stands still.",
    "Every ± is a standard error over the independent draws of the batch. Theory is the exact expectation at this "
    "d_k and n; — where there is none. A measured value more than four standard errors from it is marked ! and named "
    "under the table. Softmax over n keys freezes where logits deviate by √(2 ln n).",
)
SWEEP = (
    "One statistic over d_k, unscaled and scaled. A thin line is its exact expectation, a point what was measured, "
    "with a bar of one standard error to either side where that is longer than the point; a point more than four "
    "standard errors from the line is marked !. All points share their draws: the one at d_k uses their first d_k "
    "columns.",
    "The upright line is the current d_k, and the Lab follows it. The table has a row for each width that real "
    "models use; all its histograms have one axis.",
)
SOFTMAX = (
    "A handful of scores on their way through softmax, unscaled beside scaled: logits, exponentials with the largest "
    "logit subtracted, weights, p(1−p), and the Jacobian: what a small change of the logit in a column does to the "
    "weight in a row. A sign stands before every entry, and its shade says how large it is.",
    "Type a score, or step it, and see where the largest one takes all the weight: no entry of the Jacobian is left, "
    "and no gradient passes. A temperature divides all logits, as the scale does. A shift adds to all logits and "
    "moves no weight; the line called naive says what it does to exponentials with nothing subtracted.",
)
RULES = (
    "Every scale rule on the same queries and keys, so that what differs between two rows is the rules' own: the "
    "multiplier, the deviation of the logits, entropy, the largest weight, the gradient of a typical query, dead "
    "rows, and scores that the number format cannot hold. A row is what the Lab shows as scaled under that rule. The "
    "small curve is entropy from 0 to ln n over d_k, measured on a sample of rows.",
    "The row with the cursor is explained below, and Enter takes its rule to the Lab. m compares mechanisms over d_k "
    "instead, each under the rule it is used with: what they make of the same draws, and the bounds of their scores.",
)
HEADS = (
    "What a layer of attention costs: its parameters, matrix by matrix, its KV cache, its floating-point operations, "
    "and the d_k that follows from its shape. Heads that share keys and values shrink the cache, and leave d_k and "
    "the number of scores as they are.",
    "p goes through the layers of well-known models, each with its source; Enter takes the d_k to the Lab. Key heads "
    "and d_k follow from the other fields, and are dim, until they are stepped. Where a shape is none, this is "
    "said, and the figures of the last one stand back.",
)
CAPTURE = (
    "Each cell of the map is one attention head of a real model, measured at the file's own scale: a darker shade "
    "and a larger digit mean more of the statistic named above it. The head with the cursor is shown at the right, "
    "the file's scale beside another rule.",
    "Variance in row is what softmax sees; the invisible share is what it does not. Low entropy with much weight on "
    f"the first key (above {100 * SINK:.0f} %) is an attention sink, not a look-up.",
)
CLAIMS = (
    "Statements about the square root of d_k from widely copied study notes. Each is measured now, on this machine, "
    "and the verdict is computed from the figures: claimed, measured with its standard error, and exact where theory "
    "has a value. Enter takes a claim's parameters to the Lab, where one can see it happen.",
)
ABOUT = {
    "Lab": LAB,
    "Sweep": SWEEP,
    "Softmax": SOFTMAX,
    "Rules": RULES,
    "Heads": HEADS,
    "Capture": CAPTURE,
    "Claims": CLAIMS,
}
WORDS = (
    f"One-hot row: its largest weight is above {ONE_HOT}. Dead row: the norm of its softmax Jacobian is below "
    f"{DEAD}, so that no gradient reaches its query.",
)

_DIGITS = ",".join("0123456789")
PRESS = 12  # cells of what to press

KeyHelp: TypeAlias = tuple[str, str, str]  # keys set off by commas, what they do, the name of that in settings


def help_lines(
    about: Field | Statistic | None, pane: Sequence[str], keys: Sequence[KeyHelp], width: int, glyphs: Glyphs
) -> list[Line]:
    """The help as lines: what has the focus first, then the pane, the words and the keys."""
    lines: list[Line] = [()]
    if isinstance(about, Field):
        lines += _field(about, width, glyphs)
    elif about is not None:
        lines += _statistic(about, width, glyphs)
    for paragraph in (*pane, *WORDS):
        lines += [*wrapped(glyphs.say(paragraph), width), ()]
    lines.append((("Keys", "heading"), ("  K shows those of all panes", "dim")))
    for pressed, does, _ in _folded(keys):
        lines += _key_lines(pressed, does, "", width, glyphs)
    return lines


def key_overview(groups: Mapping[str, Sequence[KeyHelp]], path: str, width: int, glyphs: Glyphs) -> list[Line]:
    """All keys by the places where they work, each with the name that gives it another key in the settings file."""
    title: Line = (("All keys", "heading"),)
    lines: list[Line] = [(), title]
    about = f'The words at the right are names: [keys] in {path} gives other keys, as in lab.redraw = "n".'
    lines += wrapped(glyphs.say(about), width, "dim")
    for place, keys in groups.items():
        heading: Line = ((place, "heading"),)
        lines += [(), heading]
        for pressed, does, name in _folded(keys):
            lines += _key_lines(pressed, does, name, width, glyphs)
    return lines


def _folded(keys: Sequence[KeyHelp]) -> list[KeyHelp]:
    """In words, with what does the same on one line; digits as 0-9."""
    folded: dict[str, KeyHelp] = {}
    for key, does, name in keys:
        before = folded.get(does)
        folded[does] = (f"{before[0]},{key}" if before else key, does, name)
    return [(key_word(keys.replace(_DIGITS, "0-9")), does, name) for keys, does, name in folded.values()]


def _key_lines(pressed: str, does: str, name: str, width: int, glyphs: Glyphs) -> list[Line]:
    """What to press, what it does, and its name at the right end, on a line of its own if need be."""
    press = glyphs.say(pressed).rjust(PRESS)
    lines: list[Line] = [
        ((" " * len(press) if number else press, "key"), ("  ", "text"), *text)
        for number, text in enumerate(wrapped(glyphs.say(does), width - len(press) - 2))
    ]
    if name and line_width(lines[-1]) + len(name) + 2 > width:
        lines.append(())
    return [*lines[:-1], ends(lines[-1], ((name, "dim"),), width)] if name else lines


def _field(field: Field, width: int, glyphs: Glyphs) -> list[Line]:
    lines: list[Line] = [((glyphs.say(f"{field.label} ({field.symbol})"), "heading"),)]
    lines += wrapped(glyphs.say(field.help), width)
    lines += wrapped(glyphs.say(f"It takes {field.accepted}. On the command line: {field.option}."), width, "dim")
    if field.name == "scale":
        for name in field.choices:
            rule = SCALE_RULES[name]
            lines.append(())
            called = f"{name} ({rule.short})" if rule.short else name
            lines.append(((glyphs.say(rule.formula), "accent"), (f"  {glyphs.say(called)}", "dim")))
            note = f" {rule.note}." if rule.note else ""
            lines += wrapped(glyphs.say(f"Used by {rule.used_by}.{note} Source: {rule.source}."), width)
    return [*lines, ()]


def _statistic(statistic: Statistic, width: int, glyphs: Glyphs) -> list[Line]:
    return [
        ((glyphs.say(statistic.label), "heading"),),
        *wrapped(glyphs.say(statistic.formula), width, "accent"),
        *wrapped(glyphs.say(statistic.definition), width),
        *wrapped(glyphs.say(f"Source: {statistic.source}. In reports: {statistic.name}."), width, "dim"),
        (),
    ]
