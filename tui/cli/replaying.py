"""What `attn-tui inspect --rules all` prints: every scale rule, replayed on captured heads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...core.errors import InputError
from ...core.message import message
from .output import Output, say, screen_glyphs
from .working import readable

if TYPE_CHECKING:
    from ...core.captures.reader import CaptureFile
    from ...core.diagnosis.replay import Replay


def print_replay(capture: CaptureFile, asked: int, results: Iterable[Replay | InputError], output: Output) -> int:
    """Print the replays of `asked` heads; return the exit code, 2 if some heads cannot be read."""
    from ...core.export.diagnosing.replay import replay_csv, replay_json, replay_markdown

    heads, refusal = readable(results)
    output.emit(
        {
            "json": lambda: replay_json(capture, heads),
            "csv": lambda: replay_csv(heads),
            "markdown": lambda: replay_markdown(heads, output.glyphs.say),
            "table": lambda: _table(heads, output),
        }
    )
    if refusal is None:
        return 0
    say(
        message(
            "{refusal} ({asked} of {asked2} heads are left out)",
            refusal=refusal,
            asked=asked - len(heads),
            asked2=asked,
        ),
        screen_glyphs(output.ascii_only),
    )
    return 2


def _table(heads: Sequence[Replay], output: Output) -> str:
    """Return a table with a line for each rule, and what is said below it."""
    from ...core.export.diagnosing.replay import replay_table, thawing_lines

    header, lines = replay_table(heads)
    widths = [max(len(line[column]) for line in (header, *lines)) for column in range(len(header))]
    shown: list[str] = []
    for first, *others in (header, *lines):
        cells = [cell.rjust(wide) for cell, wide in zip(others, widths[1:], strict=True)]
        shown.append("  ".join([first.ljust(widths[0]), *cells]))
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
