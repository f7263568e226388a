"""What `attn-tui inspect --rules all` prints: every scale rule, replayed on captured heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.message import message, name
from ..language.cells import aligned
from .output import Output
from .results import Results

if TYPE_CHECKING:
    from ...core.captures.head import CaptureFile
    from ...core.diagnosis.replay import Replay


def print_replay(captures: Sequence[CaptureFile], results: Results[Replay], asked: int, output: Output) -> int:
    """Print the replays of `asked` heads; return the exit code, 2 if some heads cannot be read."""
    from ...core.export.diagnosing.replay import replay_listing, replay_markdown

    if output.is_streamed:
        results.stream(replay_listing(captures, asked), output)
    elif heads := [*results]:
        output.emit(lambda: _tables(heads, output), lambda _: replay_markdown(heads, output.glyphs.say))
    return results.code(output)


def _tables(heads: Sequence[Replay], output: Output) -> str:
    """Return a table for each file, after its name if there are several."""
    from ...core.export.diagnosing.replay import by_file

    return "\n".join(
        (f"{output.glyphs.say(name)}\n" if name else "") + _table(own, output) for name, own in by_file(heads)
    )


def _table(heads: Sequence[Replay], output: Output) -> str:
    """Return a table with a line for each rule, and what is said below it."""
    from ...core.export.diagnosing.replay import replay_table, thawing_lines

    say = output.glyphs.say
    header, lines = replay_table(heads)
    rows = [[say(name(rules)), *map(say, figures)] for rules, *figures in lines]
    shown = aligned([[*map(say, header)], *rows], to_left=(0,))
    left_out = dict.fromkeys(name for each in heads for name in each.left_out)
    below = thawing_lines(heads)
    if left_out:
        below.append(
            message("left out, because they need what the file does not say: {rules}", rules=", ".join(left_out))
        )
    text = "\n".join([*shown, *([""] if below else []), *map(say, below)])
    return f"{text}\n"
