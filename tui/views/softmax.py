"""A handful of scores on their way through softmax, unscaled beside scaled: steps, weights as bars, Jacobian."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.attention.formats import FORMATS
from ...core.attention.handful import HANDFUL_FIELD, Handful
from ...core.attention.scales import SCALE_RULES
from ...core.parameters import FIELD, Parameters
from ...core.statistics.catalogue import DEAD, ONE_HOT
from .draft import Draft
from .glyphs import Glyphs
from .jacobian import jacobian_lines, legend_line
from .lines import Line, Role, Span, fitted, wrapped
from .numbers import percent, power_of_ten, short, signed
from .softmax_sentence import naive_note, softmax_sentence
from .table import COLUMN_ROLES

if TYPE_CHECKING:  # which loads NumPy
    from ...core.attention.steps import Naive, Steps

LEFT = 8  # cells of a score, or of a row's name
BESIDE = 36  # cells that a side needs beside the other
_ROOMY = 48  # cells from which on its columns stand further apart
_WIDEST = 72  # cells beyond which a side only grows apart
_LONGEST = 36  # cells of a bar


@dataclass(frozen=True, eq=False)
class Worked:
    """A handful of scores, worked out under two multipliers."""

    handful: Handful
    parameters: Parameters  # whose scale rule and number format these are
    sides: tuple[Steps, Steps]  # unscaled, scaled
    remark: str = ""  # what is not as in the Lab, in sentences


@dataclass(frozen=True)
class Editing:
    """Where one is among the scores, what is being typed there, and why it is not accepted, if it is not.

    A note is said in the same place; the numbers are those of the scores all the same.
    """

    at: int
    draft: Draft | None = None
    objection: str = ""
    note: str = ""


def softmax_lines(worked: Worked, width: int, glyphs: Glyphs) -> list[Line]:
    """The steps and what they mean; empty lines set the parts apart."""
    return [*step_lines(worked, width, glyphs), (), *word_lines(worked, width, glyphs)]


def word_lines(worked: Worked, width: int, glyphs: Glyphs, editing: Editing | None = None) -> list[Line]:
    """What the numbers mean, and where naive exponentials end."""
    sentence = glyphs.say(softmax_sentence(worked.handful, worked.sides, worked.remark, glyphs))
    note = glyphs.say(naive_note(worked.parameters.precision))
    stale = editing is not None and editing.objection
    words = [*wrapped(sentence, width - 2, "dim" if stale else "text"), *wrapped(note, width - 2, "dim")]
    return [*map(_indented, words)]


def step_lines(
    worked: Worked, width: int, glyphs: Glyphs, editing: Editing | None = None, tall: bool = False
) -> list[Line]:
    """The steps, the Jacobian and the figures of both sides, which stand beside each other where there is room.

    A tall Jacobian takes two lines for each of its rows, and has all its values where they take eight cells.
    """
    side = (width - LEFT) // 2
    stacked = side < BESIDE
    side = width - LEFT if stacked else min(side, _WIDEST)
    top = _top(worked, width, glyphs, editing)
    scores = _scores(worked.handful, glyphs, editing)
    still: list[Line] = [((_text(line), "dim"),) for line in _scores(worked.handful, glyphs, None)]
    maps = [
        [legend_line(side, glyphs), *jacobian_lines(s.jacobian.tolist(), side, role, glyphs, tall)]
        for s, role in zip(worked.sides, COLUMN_ROLES, strict=True)
    ]
    rows = [line for score in still for line in ((score, ()) if tall else (score,))]
    said = [_summary(s, worked.parameters, glyphs) for s in worked.sides]
    facts = [[_line(f" {glyphs.say(text)}") for _, text in rows] for rows in said]
    named = not stacked  # beside each other, the titles of the tables stand over all of it
    parts = [
        _joined([(), _line("  score", "dim"), *scores], _tables(worked, side, glyphs), side, stacked, True),
        _joined([_line(f" {glyphs.say('∂p/∂x')}", "heading"), *rows], maps, side, stacked, named),
        _joined([_line(f" {glyphs.say(name)}", "label") for name, _ in said[0]], facts, side, stacked, named),
    ]
    if side < BESIDE:
        parts.insert(1, _powers(worked, still, glyphs))
    lines = [*top, *(line for part in parts for line in (*part, ()))][:-1]
    if editing is not None and editing.objection:
        kept = {*range(len(top)), row_of(worked, width, glyphs, editing)}
        lines = [line if at in kept else _line(_text(line), "dim") for at, line in enumerate(lines)]
    return lines


def row_of(worked: Worked, width: int, glyphs: Glyphs, editing: Editing) -> int:
    """The line of the score with the cursor."""
    return len(_top(worked, width, glyphs, editing)) + 2 + editing.at


def _line(text: str, role: Role = "text") -> Line:
    return ((text, role),)


def _indented(line: Line) -> Line:
    return ((" ", "text"), *line)


def _text(line: Line) -> str:
    return "".join(text for text, _ in line)


def _joined(
    left: Sequence[Line], sides: Sequence[Sequence[Line]], width: int, stacked: bool, named: bool
) -> list[Line]:
    """The left column and the two sides, beside each other, or one after the other and each under its name."""
    names = [fitted(name, LEFT) for name in left]
    if not stacked:
        return [(*name, *fitted(a, width), *b) for name, a, b in zip(names, *sides, strict=True)]
    lines: list[Line] = []
    for side, role in zip(sides, COLUMN_ROLES, strict=True):
        lines += [] if named else [_line(f" {role}", role)]
        lines += [(*name, *line) for name, line in zip(names, side, strict=True)]
    return lines


def _top(worked: Worked, width: int, glyphs: Glyphs, editing: Editing | None) -> list[Line]:
    """What is done to the scores; while one is being typed, how to end that, or why it cannot be."""
    handful = worked.handful
    state = f"T {_plain('temperature', handful.temperature)} · shift {_plain('shift', handful.shift)}"
    state += f" · {FORMATS[worked.parameters.precision].word}"
    formula, state = glyphs.say(" logit x = scale·score/T + shift"), glyphs.say(f" {state}")
    if len(formula) + 2 + len(state) <= width:
        usual: list[Line] = [((formula, "dim"), ("  ", "text"), (state, "text"))]
    else:
        usual = [_line(formula, "dim"), _line(state)]
    if editing is None or (editing.draft is None and not editing.note):
        return usual
    if wrong := editing.objection or editing.note:
        words = wrapped(glyphs.say(f"{wrong}."), width - 2, "alert")
    else:
        words = wrapped("Enter keeps what you type, Esc goes back to what it was.", width - 2, "accent")
    lines = [*map(_indented, words)]
    return lines + [()] * (len(usual) - len(lines))


def _plain(name: str, value: float) -> str:
    return HANDFUL_FIELD[name].format(value).replace("-", "−")


def _scores(handful: Handful, glyphs: Glyphs, editing: Editing | None) -> list[Line]:
    """The scores in LEFT cells each, the one with the cursor set off."""
    lines: list[Line] = []
    room = LEFT - 2
    for at, score in enumerate(handful.scores):
        here = editing is not None and editing.at == at
        mark = glyphs.right if here else " "
        if here and editing is not None and editing.draft is not None:
            lines.append(((mark, "accent"), *_typed(editing.draft, room + 1, bool(editing.objection))))
            continue
        text = glyphs.say(_plain("scores", score))
        if len(text) > room:
            text = short(score, glyphs)
        lines.append(((mark, "accent"), (f"{text.rjust(room)} ", "accent" if here else "text")))
    return lines


def _typed(draft: Draft, room: int, wrong: bool) -> Line:
    """What is being typed, with its cursor; of a long text the part about it."""
    text = draft.text + " "
    first = min(max(draft.at - room + 1, 0), max(len(text) - room, 0))
    role: Role = "alert" if wrong else "accent"
    shown, at = text[first : first + room], draft.at - first
    return (
        (" " * (room - len(shown)), "text"),
        (shown[:at], role),
        (shown[at], "cursor"),
        (shown[at + 1 :], role),
    )


def _tables(worked: Worked, side: int, glyphs: Glyphs) -> list[list[Line]]:
    """Every step of each side: a title, the names of the columns, a row for each score."""
    wide = side >= _ROOMY
    gap = " " * (2 if wide else 1)
    power = {True: "exp(x−max)", False: "e^(x−m)" if side >= BESIDE else ""}[wide]
    columns = [6, *([len(power)] if power else []), 0, 7, 7]
    columns[-3] = min(max(side - sum(columns) - len(gap) * len(columns), 0), _LONGEST)
    head = [("logit".rjust(6)), *([power] if power else []), "weight".ljust(columns[-3] + len(gap) + 7), "p(1−p)"]
    tables: list[list[Line]] = []
    for number, (s, role) in enumerate(zip(worked.sides, COLUMN_ROLES, strict=True)):
        lines = [
            _line(f" {_title(worked, number, side - 2, glyphs)}", role),
            _line(glyphs.say(gap.join(head)), "dim"),
        ]
        logits = in_cells(s.logits.tolist(), 6, glyphs)
        for logit, exp, p, complement in zip(logits, s.powers, s.weights, s.complement, strict=True):
            cells: list[Span] = [(logit.rjust(6), "text")]
            if power:
                cells.append((unit_cells(float(exp), glyphs).ljust(len(power)), "dim"))
            cells.append((bar_cells(float(p), columns[-3], glyphs), role))
            for share in (p, complement):
                cells.append((unit_cells(float(share), glyphs).ljust(7), "text"))
            lines.append(tuple((text + gap, of) for text, of in cells))
        tables.append(lines)
    return tables


def _powers(worked: Worked, scores: Sequence[Line], glyphs: Glyphs) -> list[Line]:
    """The exponentials of both sides, which have no room among the other steps where the sides are narrow."""
    lines: list[Line] = [_line(glyphs.say(" e^(x−m) unscaled    scaled"), "dim")]
    for score, *powers in zip(scores, *(s.powers for s in worked.sides), strict=True):
        texts = [unit_cells(float(power), glyphs).ljust(11) for power in powers]
        lines.append((*score, *((f" {text}", role) for text, role in zip(texts, COLUMN_ROLES, strict=True))))
    return lines


def _title(worked: Worked, number: int, side: int, glyphs: Glyphs) -> str:
    """`scaled × 0.125 (1/√d_k, d_k 64) / 2 + 800`: what makes logits of the scores, as far as there is room."""
    handful = worked.handful
    base = f"{COLUMN_ROLES[number]} × {short(worked.sides[number].multiplier, glyphs)}"
    rest = "" if handful.temperature == 1 else f" / {_plain('temperature', handful.temperature)}"
    if handful.shift:
        rest += f" {'−' if handful.shift < 0 else '+'} {_plain('shift', abs(handful.shift))}"
    forms = [base + rest, base]
    if number == 1:
        p, rule = worked.parameters, SCALE_RULES[worked.parameters.scale]
        needs = [f"{FIELD[name].label} {FIELD[name].format(getattr(p, name))}" for name in rule.needs]
        named = [f" ({', '.join([rule.label, *needs])})", f" ({rule.label})"]
        forms = [*(base + name + rest for name in named if rule.name != "custom"), *forms]
    said = [glyphs.say(form) for form in forms]
    return next((form for form in said if len(form) <= side), said[-1])


def _summary(s: Steps, parameters: Parameters, glyphs: Glyphs) -> list[tuple[str, str]]:
    """Names, and what one side says to each."""
    n = len(s.weights)
    one_hot, dead = s.max_weight > ONE_HOT, s.jacobian_norm < DEAD
    return [
        ("entropy", f"{short(s.entropy, glyphs)} nats, {percent(s.entropy_fraction)} of ln {n}"),
        ("e^H", f"{s.effective_keys:.2f} effective keys of {n}"),
        ("max p", f"{percent(s.max_weight)}{', one-hot' if one_hot else ''}"),
        ("‖J‖_F", f"{short(s.jacobian_norm, glyphs)}{', dead' if dead else ''}"),
        ("naive", _naive(s.naive, n, parameters.precision, glyphs)),
    ]


def _naive(naive: Naive, n: int, number_format: str, glyphs: Glyphs) -> str:
    """What comes of exponentials with nothing subtracted, in a number format."""
    form = FORMATS[number_format]
    if naive.overflow:
        if form.saturates and naive.error is not None:
            return f"{naive.overflow} of {n} held at {form.largest:g}: {percent(naive.error)} off"
        return f"{naive.overflow} of {n} overflow: no weights"
    if naive.error is None:
        total = "0" if not naive.powers.any() else "too large"
        return f"the sum is {total}: no weights"
    off = f", {percent(naive.error)} off" if naive.error > 0.000_5 else ""
    return f"Σe^x = {short(float(naive.powers.sum()), glyphs)}{off}"


def unit_cells(value: float, glyphs: Glyphs) -> str:
    """A number from 0 to 1 in at most 7 cells, its point always in the second."""
    if value == 0:
        return "0"
    if value >= 0.000_95:
        return f"{value:.4f}"
    return _tiny(value, 1, glyphs)


def _tiny(value: float, digits: int, glyphs: Glyphs) -> str:
    return signed(power_of_ten(value, digits) if value >= 1e-99 else "<1e-99", glyphs)


def in_cells(values: Sequence[float], room: int, glyphs: Glyphs) -> list[str]:
    """Numbers in at most so many cells, all with as many decimals as it takes to tell them, up to three."""
    texts: list[str] = []
    for decimals in (3, 2, 1, 0):
        texts = [f"{value + 0.0:.{decimals}f}" for value in values]
        if max(map(len, texts)) <= room and not all(text.endswith("0") for text in texts if decimals):
            break
    texts = [text if len(text) <= room else power_of_ten(value, 0) for text, value in zip(texts, values, strict=True)]
    return [signed(text, glyphs) for text in texts]


def bar_cells(share: float, cells: int, glyphs: Glyphs) -> str:
    """A bar of a share of so many cells."""
    steps = len(glyphs.lengths) - 1
    full, part = divmod(round(share * cells * steps), steps)
    bar = glyphs.lengths[-1] * full + (glyphs.lengths[part] if part else "")
    return bar.ljust(cells)
