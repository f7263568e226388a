"""What has the focus, explained: a field, a statistic, a pane, and every key that works there."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.attention.scales import SCALE_RULES
from ...core.parameters import Field
from ...core.statistics.catalogue import DEAD, ONE_HOT, SINK, Statistic
from .bars import Key
from .glyphs import Glyphs
from .lines import Line, wrapped

LAB = (
    "Scores are dot products of random queries and keys. The unscaled column hands them to softmax as they are; the "
    "scaled one multiplies them by the rule first. Hold an arrow key: as d_k climbs, unscaled logits spread, entropy "
    "falls and rows die, while the scaled column stands still.",
    "Every ± is a standard error over the independent draws of the batch. Theory is the exact expectation at this "
    "d_k and n; — where there is none. A measured value more than four standard errors from it is marked ! and named "
    "under the table. Softmax over n keys freezes where logits deviate by √(2 ln n).",
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
ABOUT = {"Lab": LAB, "Capture": CAPTURE, "Claims": CLAIMS}
WORDS = (
    f"One-hot row: its largest weight is above {ONE_HOT}. Dead row: the norm of its softmax Jacobian is below "
    f"{DEAD}, so that no gradient reaches its query.",
)

_KEY_NAMES = {
    "question_mark": "?", "greater_than_sign": ">", "less_than_sign": "<", "left_square_bracket": "[",
    "right_square_bracket": "]", "pageup": "PgUp", "pagedown": "PgDn", "enter": "Enter", "escape": "Esc",
    "left": "←", "right": "→", "up": "↑", "down": "↓", "tab": "Tab", "shift+tab": "Shift+Tab",
    "backspace": "Backspace", "f1": "F1",
}  # fmt: skip


def help_lines(
    about: Field | Statistic | None, pane: Sequence[str], keys: Sequence[Key], width: int, glyphs: Glyphs
) -> list[Line]:
    """The help as lines: what has the focus first, then the pane, the words and the keys."""
    lines: list[Line] = [()]
    if isinstance(about, Field):
        lines += _field(about, width, glyphs)
    elif about is not None:
        lines += _statistic(about, width, glyphs)
    for paragraph in (*pane, *WORDS):
        lines += [*wrapped(glyphs.say(paragraph), width), ()]
    lines.append((("Keys", "heading"),))
    for names, does in keys:
        pressed = " ".join(_KEY_NAMES.get(name, name) for name in names.split(","))
        lines.append(((glyphs.say(pressed).rjust(12), "key"), ("  " + glyphs.say(does), "text")))
    return lines


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
