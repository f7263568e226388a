"""What `attn-tui inspect --rules all` prints: every scale rule, replayed on captured heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.message import message, name
from ..language.cells import aligned, cells
from ..views.numbers import signed
from .output import Output
from .results import Results

if TYPE_CHECKING:
    from ...core.captures.head import CaptureFile
    from ...core.diagnosis.replay import Replay

_INDENT = "  "  # of further names of a row
_CHANGE = 4  # the column of the change of the entropy


def print_replay(captures: Sequence[CaptureFile], results: Results[Replay], asked: int, output: Output) -> int:
    """Print the replays of `asked` heads; return the exit code, 2 if some heads cannot be read."""
    from ...core.tables.heads import replay_table

    return results.emit(
        output, lambda heads: _tables(heads, output), lambda heads: replay_table(captures, heads, asked)
    )


def _tables(heads: Sequence[Replay], output: Output) -> str:
    """Return a table for each file, after its name if there are several."""
    from ...core.tables.heads import by_file

    return "\n".join(
        (f"{output.glyphs.say(name)}\n" if name else "") + _table(own, output) for name, own in by_file(heads)
    )


def _table(heads: Sequence[Replay], output: Output) -> str:
    """Return a table with a line for each rule, and what is said below it."""
    from ...core.tables.heads import remedy_lines, replay_grid

    say = output.glyphs.say
    header, lines, _ = replay_grid(heads)
    rows = [[say(name(rules)), *(signed(say(each), output.glyphs) for each in figures)] for rules, *figures in lines]
    table = [[*map(say, header)], *rows]
    shown = aligned(_folded(table, output.width) if output.on_screen else table, to_left=(0,))
    left_out = dict.fromkeys(name for each in heads for name in each.left_out)
    below = remedy_lines(heads)
    if left_out:
        below.append(
            message("left out, because they need what the file does not say: {rules}", rules=", ".join(left_out))
        )
    said = [line for text in map(say, below) for line in _lines(text, output.text_width)]
    text = "\n".join([*shown, *([""] if below else []), *said])
    return f"{text}\n"


def _folded(table: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """Return a table that fits a screen: rules with the same multiplier fill several lines.

    If even the longest name has no room, the change of the entropy is left out.
    """
    longest = max(cells(word) for names, *_ in table for word in names.split()) + len(_INDENT)
    if width - _width(table) < longest:
        table = [[*row[:_CHANGE], *row[_CHANGE + 1 :]] for row in table]
    folded: list[list[str]] = []
    for names, *figures in table:
        first, *more = _lines(names, max(width - _width(table), longest) - len(_INDENT))
        folded += [[first, *figures], *([f"{_INDENT}{line}", *("" for _ in figures)] for line in more)]
    return folded


def _width(table: Sequence[Sequence[str]]) -> int:
    """Return the width of all columns but the first, with what separates them."""
    return sum(max(map(cells, column)) + 2 for column in [*zip(*table, strict=True)][1:])


def _lines(text: str, width: int) -> list[str]:
    from ..views.lines import wrapped

    return ["".join(part for part, _ in line).rstrip() for line in wrapped(text, width)]
