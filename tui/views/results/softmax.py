"""Softmax of a few scores, unscaled beside scaled: every step, weights as bars, the Jacobian."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....core.against import settings
from ....core.attention.formats import FORMATS
from ....core.attention.worked_example import EXAMPLE_FIELD, Example, relevant
from ....core.message import joined, message
from ....core.parameters import FIELD, Parameters
from ....core.questions.softmax import SoftmaxSteps
from ....core.scales import scale_rule
from ....core.statistics.catalogue import DEAD, ONE_HOT
from ....core.statistics.measurement import setting_names
from ...language.cells import cells as cells_of
from ...language.cells import to_left, to_right
from ..fields.entry import Draft
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, fitted, wrapped
from ..numbers import percent, power_of_ten, short, signed
from .jacobian import heading_line, jacobian_lines
from .softmax_sentence import naive_note, softmax_sentence
from .table import COLUMN_ROLES

if TYPE_CHECKING:  # which loads NumPy
    from ....core.attention.worked_example import NaiveSoftmax, WorkedExample

LEFT = 8  # cells of a score, or of the name of a row
BESIDE = 36  # cells of a column from which both stand side by side
_ROOMY = 48  # cells of a column from which its parts have wider gaps
_WIDEST = 94  # cells of a column, at most
_LONGEST = 58  # cells of a bar, at most


@dataclass(frozen=True)
class ScoreEntry:
    """The index of the selected score, the text being typed, and why that is not a score, if it is not.

    A note is another error; the results are still those of the scores.
    """

    at: int
    draft: Draft | None = None
    objection: str = ""
    note: str = ""


def softmax_lines(worked: SoftmaxSteps, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the steps and their explanation, separated by empty lines."""
    return [*step_lines(worked, width, glyphs), (), *word_lines(worked, width, glyphs)]


def word_lines(worked: SoftmaxSteps, width: int, glyphs: Glyphs, editing: ScoreEntry | None = None) -> list[Line]:
    """Return the explanation of the results, and where naive exponentials overflow."""
    sentence = glyphs.say(softmax_sentence(worked.example, side_names(worked), worked.sides, worked.remark, glyphs))
    note = glyphs.say(naive_note(worked.parameters.precision))
    stale = editing is not None and editing.objection
    words = [*wrapped(sentence, width - 2, "dim" if stale else "text"), *wrapped(note, width - 2, "dim")]
    return [*map(_indented, words)]


def step_lines(
    worked: SoftmaxSteps, width: int, glyphs: Glyphs, editing: ScoreEntry | None = None, tall: bool = False
) -> list[Line]:
    """Return the steps, the Jacobian and a summary of both columns, side by side if there is room.

    A tall Jacobian has two lines for each row, so that its values need fewer cells.
    """
    side = (width - LEFT) // 2
    stacked = side < BESIDE
    side = width - LEFT if stacked else min(side, _WIDEST)
    top = state_lines(worked, width, glyphs, editing)
    scores = score_lines(worked.example, glyphs, editing)
    still: list[Line] = [((_text(line), "dim"),) for line in score_lines(worked.example, glyphs, None)]
    names = [_text(line).strip() for line in still]
    maps = [
        [heading_line(s.jacobian, names, side, glyphs, tall), *jacobian_lines(s.jacobian, side, role, glyphs, tall)]
        for s, role in zip(worked.sides, COLUMN_ROLES, strict=True)
    ]
    rows = [line for score in still for line in ((score, ()) if tall else (score,))]
    summaries = [_summary(s, worked.parameters, glyphs) for s in worked.sides]
    called = [_line(f" {glyphs.say(name)}", "label") for name, _ in summaries[0]]
    facts = [[_line(f" {glyphs.say(text)}") for _, text in summary] for summary in summaries]
    named = not stacked  # side by side, the titles of the tables apply to all parts
    parts = [
        _joined(
            [(), _line(f"  {glyphs.say('score')}", "dim"), *scores],
            _tables(worked, side, glyphs),
            side,
            stacked,
            True,
            glyphs,
        ),
        _joined([_line(f" {glyphs.say('∂p/∂x')}", "heading"), *rows], maps, side, stacked, named, glyphs),
        _joined(called, facts, side, stacked, named, glyphs),
    ]
    if side < BESIDE:
        parts.insert(1, _powers(worked, still, glyphs))
    lines = [*top, *(line for part in parts for line in (*part, ()))][:-1]
    if editing is not None and editing.objection:
        current = {*range(len(top)), row_of(worked, width, glyphs, editing)}
        lines = [line if at in current else _line(_text(line), "dim") for at, line in enumerate(lines)]
    return lines


def row_of(worked: SoftmaxSteps, width: int, glyphs: Glyphs, editing: ScoreEntry) -> int:
    """Return the index of the selected score's line."""
    return len(state_lines(worked, width, glyphs, editing)) + 2 + editing.at


def _line(text: str, role: Role = "text") -> Line:
    return ((text, role),)


def _indented(line: Line) -> Line:
    return ((" ", "text"), *line)


def _text(line: Line) -> str:
    return "".join(text for text, _ in line)


def _joined(
    left: Sequence[Line], sides: Sequence[Sequence[Line]], width: int, stacked: bool, named: bool, glyphs: Glyphs
) -> list[Line]:
    """Join row names and both columns, side by side, or one below the other with a title each."""
    names = [fitted(name, LEFT) for name in left]
    if not stacked:
        return [(*name, *fitted(a, width), *b) for name, a, b in zip(names, *sides, strict=True)]
    lines: list[Line] = []
    for side, role in zip(sides, COLUMN_ROLES, strict=True):
        lines += [] if named else [_line(f" {glyphs.say(role)}", role)]
        lines += [(*name, *line) for name, line in zip(names, side, strict=True)]
    return lines


def state_lines(worked: SoftmaxSteps, width: int, glyphs: Glyphs, editing: ScoreEntry | None) -> list[Line]:
    """Return the formula of logits; while a score is typed, which keys end that, or an error."""
    example = worked.example
    state = message(
        " T {temperature} · shift {shift} · {format}",
        temperature=_plain("temperature", example.temperature),
        shift=_plain("shift", example.shift),
        format=FORMATS[worked.parameters.precision].word,
    )
    formula, state = glyphs.say(" logit x = scale·score/T + shift"), glyphs.say(state)
    if cells_of(formula) + 2 + cells_of(state) <= width:
        usual: list[Line] = [((formula, "dim"), ("  ", "text"), (state, "text"))]
    else:
        usual = [_line(formula, "dim"), _line(state)]
    if editing is None or (editing.draft is None and not editing.note):
        return usual
    if wrong := editing.objection or editing.note:
        words = wrapped(glyphs.say("{reason}.", reason=wrong), width - 2, "alert")
    else:
        words = wrapped(glyphs.say("Enter accepts the score, Esc restores the old one."), width - 2, "accent")
    lines = [*map(_indented, words)]
    return lines + [()] * (len(usual) - len(lines))


def _plain(name: str, value: float) -> str:
    return EXAMPLE_FIELD[name].format(value).replace("-", "−")


def score_lines(example: Example, glyphs: Glyphs, editing: ScoreEntry | None) -> list[Line]:
    """Return the scores, LEFT cells each, with the selected one marked."""
    lines: list[Line] = []
    room = LEFT - 2
    for at, score in enumerate(example.scores):
        here = editing is not None and editing.at == at
        mark = glyphs.right if here else " "
        if here and editing is not None and editing.draft is not None:
            lines.append(((mark, "accent"), *_typed(editing.draft, room + 1, bool(editing.objection))))
            continue
        text = _score(score, room, glyphs)
        lines.append(((mark, "accent"), (f"{to_right(text, room)} ", "accent" if here else "text")))
    return lines


def _score(score: float, room: int, glyphs: Glyphs) -> str:
    text = glyphs.say(_plain("scores", score))
    return text if len(text) <= room else short(score, glyphs)


def score_names(example: Example, glyphs: Glyphs) -> list[str]:
    """Return the scores as they stand at the left of their rows."""
    return [_score(score, LEFT - 2, glyphs) for score in example.scores]


def _typed(draft: Draft, room: int, wrong: bool) -> Line:
    """Return the text being typed, with its cursor; of a long text, the part around the cursor."""
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


def _tables(worked: SoftmaxSteps, side: int, glyphs: Glyphs) -> list[list[Line]]:
    """Return the table of each column: a title, the names of the steps, a row for each score."""
    wide = side >= _ROOMY
    gap = " " * (2 if wide else 1)
    power = {True: "exp(x−max)", False: "e^(x−m)" if side >= BESIDE else ""}[wide]
    columns = [6, *([len(power)] if power else []), 0, 7, 7]
    columns[-3] = min(max(side - sum(columns) - len(gap) * len(columns), 0), _LONGEST)
    head = [
        (to_right("logit", 6)),
        *([power] if power else []),
        to_left(glyphs.say("weight"), columns[-3] + len(gap) + 7),
        "p(1−p)",
    ]
    tables: list[list[Line]] = []
    for number, (s, role) in enumerate(zip(worked.sides, COLUMN_ROLES, strict=True)):
        lines = [
            _line(f" {side_title(worked, number, side - 2, glyphs)}", role),
            _line(glyphs.say(gap.join(head)), "dim"),
        ]
        logits = in_cells(s.logits, 6, glyphs)
        for logit, exp, p, complement in zip(logits, s.powers, s.weights, s.complement, strict=True):
            cells: list[Span] = [(to_right(logit, 6), "text")]
            if power:
                cells.append((to_left(unit_cells(float(exp), glyphs), len(power)), "dim"))
            cells.append((glyphs.bar(float(p), columns[-3]), role))
            for share in (p, complement):
                cells.append((to_left(unit_cells(float(share), glyphs), 7), "text"))
            lines.append(tuple((text + gap, of) for text, of in cells))
        tables.append(lines)
    return tables


def _powers(worked: SoftmaxSteps, scores: Sequence[Line], glyphs: Glyphs) -> list[Line]:
    """Return the exponentials of both columns, for which narrow tables have no room."""
    names = [*map(glyphs.say, side_names(worked))]
    a, b = (name if cells_of(name) < 12 else letter for name, letter in zip(names, "AB", strict=True))
    lines: list[Line] = [_line(glyphs.say(f" e^(x−m) {to_left(a, 11)} {b}"), "dim")]
    for score, *powers in zip(scores, *(s.powers for s in worked.sides), strict=True):
        texts = [to_left(unit_cells(float(power), glyphs), 11) for power in powers]
        lines.append((*score, *((f" {text}", role) for text, role in zip(texts, COLUMN_ROLES, strict=True))))
    return lines


def side_names(worked: SoftmaxSteps) -> list[str]:
    """Return the names of both columns."""
    return setting_names(relevant(worked.parameters))


def side_title(worked: SoftmaxSteps, number: int, side: int, glyphs: Glyphs) -> str:
    """Return how logits follow from scores, as far as it fits: `scaled × 0.125 (1/√d_k, d_k 64) / 2 + 800`."""
    example = worked.example
    p = settings(relevant(worked.parameters))[number]
    plain = number == 0 and p.scale == "none"
    times = short(worked.sides[number].multiplier, glyphs)
    base = message("unscaled × {number}", number=times) if plain else message("scaled × {number}", number=times)
    rest = "" if example.temperature == 1 else f" / {_plain('temperature', example.temperature)}"
    if example.shift:
        rest += f" {'−' if example.shift < 0 else '+'} {_plain('shift', abs(example.shift))}"
    forms = [joined([base, rest], ""), base]
    if not plain:
        rule = scale_rule(p.scale)
        needs = [joined([FIELD[name].label, FIELD[name].format(getattr(p, name))]) for name in rule.needs]
        named = [joined([rule.label, *needs], ", "), rule.label]
        longer = [message("{title} ({rule}){rest}", title=base, rule=name, rest=rest) for name in named]
        forms = [*(longer if rule.name != "custom" else ()), *forms]
    return glyphs.fitting(forms, side)


def _summary(s: WorkedExample, parameters: Parameters, glyphs: Glyphs) -> list[tuple[str, str]]:
    """Return names and values that summarise a column."""
    n = len(s.weights)
    one_hot, dead = s.max_weight > ONE_HOT, s.jacobian_norm < DEAD
    return [
        (
            message("entropy"),
            message(
                "{entropy} nats, {share} of ln {n}",
                entropy=short(s.entropy, glyphs),
                share=percent(s.entropy_fraction),
                n=n,
            ),
        ),
        ("e^H", message("{count:.2f} effective keys of {n}", count=s.effective_keys, n=n)),
        ("max p", joined([percent(s.max_weight), *([message("one-hot")] if one_hot else [])], ", ")),
        ("‖J‖_F", joined([short(s.jacobian_norm, glyphs), *([message("dead")] if dead else [])], ", ")),
        (message("naive"), _naive(s.naive, n, parameters.precision, glyphs)),
    ]


def _naive(naive: NaiveSoftmax, n: int, number_format: str, glyphs: Glyphs) -> str:
    """Return the result of exponentials without subtracting the largest logit, in a number format."""
    form = FORMATS[number_format]
    if naive.overflow:
        if form.saturates and naive.error is not None:
            return message(
                "{overflow} of {n} held at {largest:g}: {error} off",
                overflow=naive.overflow,
                n=n,
                largest=form.largest,
                error=percent(naive.error),
            )
        return message("{overflow} of {n} overflow: no weights", overflow=naive.overflow, n=n)
    if naive.error is None:
        if naive.total == 0:
            return message("the sum is 0: no weights")
        return message("the sum is too large: no weights")
    off = message(", {error} off", error=percent(naive.error)) if naive.error > 0.000_5 else ""
    return joined([f"Σe^x = {short(naive.total, glyphs)}", off], "")


def unit_cells(value: float, glyphs: Glyphs) -> str:
    """Return a number from 0 to 1 in at most 7 cells, with aligned decimal points."""
    if value == 0:
        return "0"
    if value >= 0.000_95:
        return f"{value:.4f}"
    return signed(power_of_ten(value, 1) if value >= 1e-99 else "<1e-99", glyphs)


def in_cells(values: Sequence[float], room: int, glyphs: Glyphs) -> list[str]:
    """Return numbers of at most `room` cells, all with the same number of decimals, up to three."""
    texts: list[str] = []
    for decimals in (3, 2, 1, 0):
        texts = [f"{value + 0.0:.{decimals}f}" for value in values]
        if max(map(len, texts)) <= room and not all(text.endswith("0") for text in texts if decimals):
            break
    texts = [text if len(text) <= room else power_of_ten(value, 0) for text, value in zip(texts, values, strict=True)]
    return [signed(text, glyphs) for text in texts]
