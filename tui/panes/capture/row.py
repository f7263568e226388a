"""One row of attention as bars, under the scale rules of A and B, with its tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from textual import events

from ....core.against import words
from ....core.message import joined, message
from ....core.scales import scale_rule
from ...language.cells import to_left, to_right
from ...views.glyphs import Glyphs
from ...views.lines import Line, Name, Span, fitted
from ...views.numbers import short, signed
from ...views.results.table import COLUMN_ROLES
from ...widgets.lines import ChoosingLines, Content

if TYPE_CHECKING:
    from ....core.captures.capture import Tokens
    from ....core.diagnosis.results import AttentionRow, RowColumn
    from ....core.parameters import Value


def token(tokens: Sequence[str] | None, place: int) -> str:
    """Return the token at a place in printable characters, or the place itself if there are no tokens."""
    if tokens is None or not 0 <= place < len(tokens):
        return str(place)
    text = tokens[place].replace("Ġ", " ").replace("▁", " ")  # of GPT-2 and SentencePiece: a space
    text = text.strip(" ") or text.replace(" ", "␣")
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def label(tokens: Sequence[str] | None, place: int, width: int, glyphs: Glyphs) -> str:
    """Return a token in exactly `width` cells."""
    text = token(tokens, place)
    text = glyphs.say(text) if glyphs.ascii else text  # a token is no message
    if cell_len(text) > width > 1:
        sign = "~" if glyphs.ascii else "…"
        return set_cell_size(text, width - 1) + sign
    return set_cell_size(text, width)


def named(tokens: Sequence[str] | None, place: int) -> str:
    """Return `12 "Japan"`, or the place alone if there are no tokens."""
    if tokens is None or not 0 <= place < len(tokens):
        return str(place)
    return f"{place} “{token(tokens, place)}”"


_NARROW = 40  # cells of a row whose title says the format, instead of the token
_VALUE = 6  # cells of a weight
_FEWEST = 3  # keys that are shown before figures are left out
_NAME = 8  # cells of the name of a key or figure, at least
_LEAST = 8  # cells of a column
_NAN = message("NaN")
_ROOMY = 14  # cells of a column from which figures have units


def row_lines(
    row: AttentionRow, key: int, tokens: Sequence[str] | None, width: int, height: int, glyphs: Glyphs
) -> list[Line]:
    """Return a heading, a line for each of the keys with the largest weights, the other keys, and figures.

    The first column is A, the second one B; a single one is the file's. `key` has the cursor.
    """
    name, each = _widths(width, tokens, len(row.columns), row.keys[-1] if row.keys else 0)
    roles: Sequence[Name] = COLUMN_ROLES[-len(row.columns) :]
    head: list[Span] = [(to_left(glyphs.say("key"), name + 2), "dim")]
    common = shared(row)
    for column, role in zip(row.columns, roles, strict=True):
        head.append((to_left(_column_title(column, common, each - 1, glyphs), each), role))
    figures = _figures(row, name, each, roles, glyphs)
    room = height - 1 - len(figures)
    if room < _FEWEST:
        figures = figures[: max(height - 1 - _FEWEST, 0)]
        room = height - 1 - len(figures)
    lines = [tuple(head), *_keys(row, key, tokens, max(room, 0), (name, each), roles, glyphs), *figures]
    return [fitted(line, width) for line in lines[:height]]


def shared(row: AttentionRow) -> Mapping[str, Value]:
    """Return the number format, arithmetic and soft-cap that all columns have, where they are not as in the file."""
    first, *others = [column.apart for column in row.columns]
    return {name: value for name, value in first.items() if all(side.get(name) == value for side in others)}


def _column_title(column: RowColumn, common: Mapping[str, Value], room: int, glyphs: Glyphs) -> str:
    """Return `unscaled × 1`, `file × 0.18, float16` or a shorter form, without what is `common` to all."""
    number = f"× {short(column.multiplier, glyphs)}"
    name = glyphs.say(_column_name(column))
    forms = [glyphs.say(form) for form in (f"{name} {number}", name, number)]
    own = {name: value for name, value in column.apart.items() if (name, value) not in common.items()}
    if own:
        others = [glyphs.say(words(each)) for each in (own, dict([next(iter(own.items()))]))]
        forms = [*(f"{form}, {others[0]}" for form in forms[:-1]), *others]
    return glyphs.fitting(forms, room)


def _column_name(column: RowColumn) -> str:
    words = {
        "file": message("file"), "none": message("unscaled"), "is": message("is"), "should be": message("should be"),
    }  # fmt: skip
    return words.get(column.rule) or scale_rule(column.rule).label


def nan_words(row: AttentionRow, width: int, glyphs: Glyphs) -> str:
    """Return which columns are NaN and, if that fits, why; empty if none is."""
    failed = [message("{side} is NaN", side=_column_name(column)) for column in row.columns if column.is_nan]
    sides = joined(failed, ", ")
    return glyphs.fitting([message("{sides}: softmax takes ∞ − ∞", sides=sides), sides], width) if failed else ""


def threshold_words(row: AttentionRow, width: int, glyphs: Glyphs) -> str:
    """Return the multiplier at which the row saturates, in words that fit in `width` cells."""
    own = row.columns[-1]
    if row.threshold is None or own.saturation is None:
        return glyphs.say("never saturates") if row.visible > 1 else glyphs.say("sees one key")
    number = short(row.threshold, glyphs)
    forms = (
        [
            message("this row recovers at × {number}", number=number),
            message("recovers at × {number}", number=number),
        ]
        if own.saturation >= 1
        else [
            message("this row saturates at × {number}", number=number),
            message("saturates at × {number}", number=number),
        ]
    )
    return glyphs.fitting(forms, width)


def key_at(
    row: AttentionRow, key: int, tokens: Sequence[str] | None, width: int, height: int, y: int, glyphs: Glyphs
) -> int | None:
    """Return the key of a line of `row_lines`, if it is that of one."""
    name, each = _widths(width, tokens, len(row.columns), row.keys[-1] if row.keys else 0)
    figures = len(_figures(row, name, each, COLUMN_ROLES, glyphs))
    room = height - 1 - figures
    room = max(room if room >= _FEWEST else height - 1 - max(height - 1 - _FEWEST, 0), 0)
    shown = _shown(row, key, room)
    return shown[y - 1] if 1 <= y <= len(shown) else None


def _widths(width: int, tokens: Sequence[str] | None, columns: int, last: int) -> tuple[int, int]:
    """Return the cells of a key's name and of a column."""
    name = max(min(12, width // 4), _NAME) if tokens is not None else max(len(str(last)), _NAME)
    return name, max((width - name - 2) // max(columns, 1), _LEAST)


def _shown(row: AttentionRow, key: int, room: int) -> list[int]:
    """Return the keys with the largest weights under any rule, that of the cursor among them, in order."""
    if len(row.keys) <= room:
        return list(row.keys)
    most = {k: max(column.weights[at] for column in row.columns) for at, k in enumerate(row.keys)}
    best = sorted(row.keys, key=lambda k: (k != key, -most[k]))[: max(room - 1, 0)]
    return sorted(best)


def _keys(
    row: AttentionRow,
    key: int,
    tokens: Sequence[str] | None,
    room: int,
    widths: tuple[int, int],
    roles: Sequence[Name],
    glyphs: Glyphs,
) -> list[Line]:
    """Return a line for each key shown, and one for the others."""
    name, each = widths
    shown = _shown(row, key, room)
    places = {k: at for at, k in enumerate(row.keys)}
    lines: list[Line] = []
    for k in shown:
        mark = glyphs.cursor if k == key else " "
        first: Span = (mark + label(tokens, k, name, glyphs) + " ", "accent" if k == key else "label")
        weights = [None if column.is_nan else column.weights[places[k]] for column in row.columns]
        lines.append((first, *_bars(weights, each, roles, glyphs)))
    others = row.visible - len(shown)
    if others > 0 and room:
        rest = [
            None
            if column.is_nan
            else max(sum(column.weights) + column.rest - sum(column.weights[places[k]] for k in shown), 0.0)
            for column in row.columns
        ]
        first = (set_cell_size(glyphs.say(" {others} more", others=others), name + 2), "dim")
        lines.append((first, *_bars(rest, each, roles, glyphs)))
    return lines


_SHOWN = 0.005  # of the weight, from which a key has a bar and a number


def _bars(weights: Sequence[float | None], wide: int, roles: Sequence[Name], glyphs: Glyphs) -> list[Span]:
    """Return a bar and its value for each column; a full bar is all of the weight. None is NaN."""
    spans: list[Span] = []
    for weight, role in zip(weights, roles, strict=False):
        room = wide - _VALUE
        if weight is None:
            spans.append((to_right(glyphs.say(_NAN), wide - 1) + " ", "alert"))
            continue
        steps = len(glyphs.lengths) - 1
        parts = min(max(round(weight * room * steps), int(weight >= _SHOWN)), room * steps)
        whole, rest = divmod(parts, steps)
        bar = glyphs.lengths[-1] * whole + (glyphs.lengths[rest] if rest else "")
        spans.append((to_left(bar, room), role))
        number: Span = (f"{weight:.2f}", "text") if weight >= _SHOWN else (glyphs.say("·"), "dim")
        spans.append((to_right(number[0], _VALUE - 1) + " ", number[1]))
    return spans


def _number(value: float | None, room: int, glyphs: Glyphs) -> str:
    """Return a value with as many of three digits as fit."""
    if value is None:
        return short(value, glyphs)
    forms = (short(value, glyphs), *(signed(f"{value:.{digits}e}".replace("e-0", "e-"), glyphs) for digits in (1, 0)))
    return next((form for form in forms if len(form) <= room), forms[-1])


def _figures(row: AttentionRow, name: int, wide: int, roles: Sequence[Name], glyphs: Glyphs) -> list[Line]:
    """Return the entropy, the gradient and the spread of the logits under each rule."""

    def line(title: str, texts: Sequence[str]) -> Line:
        spans: list[Span] = [(set_cell_size(glyphs.say(title), name + 1) + " ", "label")]
        for text, role in zip(texts, roles, strict=False):
            spans.append((set_cell_size(glyphs.say(text), wide - 1) + " ", role))
        return tuple(spans)

    def jacobian(column: RowColumn) -> str:
        return f" {short(column.jacobian, glyphs)}" if wide >= _ROOMY and not column.is_nan else ""

    def entropy(column: RowColumn) -> str:
        if column.is_nan:
            return _NAN
        number = _number(column.entropy, wide - 1, glyphs)
        return message("{number} nats", number=number) if wide >= _ROOMY else number

    def gradient(column: RowColumn) -> str:
        if column.is_nan:
            return glyphs.say(_NAN)
        return glyphs.say("dead") if column.dead else glyphs.say("flows")

    columns = row.columns
    lines = [
        line(message("entropy"), [entropy(column) for column in columns]),
        line(message("gradient"), [gradient(column) + jacobian(column) for column in columns]),
        line(message("satur"), [_number(column.saturation, wide - 1, glyphs) for column in columns]),
    ]
    if any(column.sink is not None for column in columns):
        lines.append(line(message("sink"), [_sink_text(column) for column in columns]))
    return lines


def _sink_text(column: RowColumn) -> str:
    """Return the share of the sink."""
    return _NAN if column.is_nan else "—" if column.sink is None else f"{column.sink:.2f}"


class AttentionBars(ChoosingLines):
    """Shows one row of attention as bars, in the settings of A and B; a click chooses a key."""

    HEADED = True
    DEFAULT_CLASSES = "region"

    row: Content[AttentionRow | None] = Content(None)
    disputed: Content[bool] = Content(False)  # whether the evidence contradicts the file, whose scale is that of B
    softcap: Content[float | None] = Content(None)  # of both columns
    key: Content[int] = Content(0)  # the marked one
    tokens: Tokens = (None, None)

    def show(self, row: AttentionRow, tokens: Tokens) -> None:
        """Show a row."""
        self.row, self.tokens = row, tokens
        self.dim(False)

    def heading(self, width: int) -> Line:
        if self.row is None:
            return ((self.glyphs.say("query"), "heading"),)
        which = named(self.tokens[0], self.row.position)
        if (computed := self._computed) and width < _NARROW:  # no room for it at the right
            which = joined([str(self.row.position), words(computed)], ", ")
        return ((self.glyphs.say("query {named}", named=which), "heading"),)

    @property
    def _computed(self) -> Mapping[str, Value]:
        """The number format and arithmetic of all columns."""
        return {name: value for name, value in shared(self.row).items() if name != "softcap"} if self.row else {}

    def note(self) -> Line:
        if self.row is None:
            return ()
        computed = self._computed
        facts = [words(computed) if computed else message("{keys} keys", keys=self.row.visible)]
        facts += [] if self.softcap is None else [message("capped at {softcap:g}", softcap=self.softcap)]
        return ((self.glyphs.say(joined(facts, ", ")), "dim"),)

    def _foot(self) -> Line:
        """Return what stands below the row: its fault, or where it recovers."""
        if self.disputed:
            return ((self.glyphs.say("file: not as computed"), "alert"),)
        if self.row is None:
            return ()
        failed = nan_words(self.row, self.room.width, self.glyphs)
        return (
            ((failed, "alert"),) if failed else ((threshold_words(self.row, self.room.width, self.glyphs), "text"),)
        )

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        if self.row is None:
            return ()
        below = [fitted(self._foot(), width)]
        return [*row_lines(self.row, self.key, self.tokens[1], width, height - len(below), self.glyphs), *below]

    def on_click(self, event: events.Click) -> None:
        if self.row is not None:
            width, height = self.room
            y = self.place_of(event).y
            found = key_at(self.row, self.key, self.tokens[1], width, height - 1, y, self.glyphs)
            if found is not None:
                self._choose(found)
