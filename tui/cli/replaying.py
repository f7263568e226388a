"""What `attn-tui inspect --rules all` prints: every scale rule, replayed on captured heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.errors import InputError
from .output import Output, say, screen_glyphs
from .progress import ProgressLine

if TYPE_CHECKING:
    from ...core.captures.capture import Layer, Told
    from ...core.captures.reader import CaptureFile
    from ...core.diagnosis.replay import Replay
    from .parallel import Steps


def print_replay(
    capture: CaptureFile,
    chosen: Sequence[tuple[Layer, int]],
    told: Told,
    output: Output,
    formulas: Sequence[str] = (),
) -> int:
    """Replay every rule and these formulas on these heads and print the result.

    Return the exit code, 2 if some heads cannot be read.
    """
    from ...core.diagnosis.replay import replay
    from ...core.export.diagnosing.replay import replay_csv, replay_json, replay_markdown
    from .parallel import of_each

    def work(files: Sequence[CaptureFile], place: tuple[Layer, int]) -> Steps[Replay]:
        yield 1.0, replay(files[0], *place, told, formulas=formulas)

    heads: list[Replay] = []
    refusal: InputError | None = None
    with ProgressLine(f"replaying {len(chosen)} heads") as progress:
        for found in of_each([capture], chosen, work, progress):
            if isinstance(found, InputError):
                refusal = refusal or found
            else:
                heads.append(found)
    if refusal is not None and not heads:
        raise refusal
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
    left_out = len(chosen) - len(heads)
    say(f"{refusal} ({left_out} of {len(chosen)} heads are left out)", screen_glyphs(output.ascii_only))
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
        below.append(f"left out, because they need what the file does not say: {', '.join(left_out)}")
    text = "\n".join([*(line.rstrip() for line in shown), *([""] if below else []), *below])
    return output.glyphs.say(f"{text}\n")
