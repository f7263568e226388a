"""What `attn-tui inspect --rules all` prints: every scale rule, replayed on captured heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.message import message
from ..language.cells import to_left, to_right
from .output import Output
from .results import Results

if TYPE_CHECKING:
    from ...core.captures.reader import CaptureFile
    from ...core.diagnosis.replay import Replay


def print_replay(captures: Sequence[CaptureFile], results: Results[Replay], asked: int, output: Output) -> int:
    """Print the replays of `asked` heads; return the exit code, 2 if some heads cannot be read."""
    from ...core.export.diagnosing.replay import replay_listing, replay_markdown

    if output.is_streamed:
        results.stream(replay_listing(captures, asked), output)
    elif heads := [*results]:
        output.emit(
            {
                "markdown": lambda: replay_markdown(heads, output.glyphs.say),
                "table": lambda: _tables(heads, output),
            }
        )
    return results.code(output)


def _tables(heads: Sequence[Replay], output: Output) -> str:
    """Return a table for each file, after its name if there are several."""
    from ...core.export.diagnosing.replay import by_file

    return "\n".join(
        (output.glyphs.say(f"{name}\n") if name else "") + _table(own, output) for name, own in by_file(heads)
    )


def _table(heads: Sequence[Replay], output: Output) -> str:
    """Return a table with a line for each rule, and what is said below it."""
    from ...core.export.diagnosing.replay import replay_table, thawing_lines

    header, lines = replay_table(heads)
    widths = [max(len(line[column]) for line in (header, *lines)) for column in range(len(header))]
    shown: list[str] = []
    for first, *others in (header, *lines):
        cells = [to_right(cell, wide) for cell, wide in zip(others, widths[1:], strict=True)]
        shown.append("  ".join([to_left(first, widths[0]), *cells]))
    left_out = dict.fromkeys(name for each in heads for name in each.left_out)
    below = thawing_lines(heads)
    if left_out:
        below.append(
            message(
                "left out, because they need what the file does not say: {left_out}", left_out=", ".join(left_out)
            )
        )
    text = "\n".join([*(line.rstrip() for line in shown), *([""] if below else []), *below])
    return output.glyphs.say(f"{text}\n")
