"""What stands over the run shipped with the program: that it is an example, and how to watch another one."""

from __future__ import annotations

from collections.abc import Sequence

from ....core.message import joined, message
from ...views.glyphs import Glyphs
from ...views.lines import Line, wrapped

EXAMPLE = message("An example: a small model, trained at a learning rate that is too high.")
HINT = message("`attn-tui watch RUN` watches yours; ? says how to make one.")
FROM_PYTORCH = ("attn-tui record -o run/ --every 100 -- python train.py", "attn-tui watch run/")
LINE = '{"step": 100, "max_logit": [[20.5, 9.1], [8.3, 12.4]]}'
FROM_LINES = "attn-tui watch run.jsonl"
_LOW = 14  # lines below which only the example is named
_HIGH, _WIDE = 28, 60  # lines and cells from which commands are shown


def about_sample(width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return what is said over the example: with commands and a blank line below, if there is room."""
    example = glyphs.say(EXAMPLE)
    if height < _LOW:
        return wrapped(example, width, "accent")
    if height < _HIGH or width < _WIDE:
        return wrapped(glyphs.say(joined([EXAMPLE, HINT])), width, "accent")
    return [
        *wrapped(example, width, "accent"),
        *_told(message("To watch a PyTorch program, from another terminal:"), FROM_PYTORCH, width, glyphs),
        *_told(
            message("Or let any program write lines, with the largest |logit| of each head by layer, to run.jsonl:"),
            (LINE, FROM_LINES), width, glyphs,
        ),
        (),
    ]  # fmt: skip


def _told(text: str, commands: Sequence[str], width: int, glyphs: Glyphs) -> list[Line]:
    """Return a sentence, and commands below it."""
    lines: list[Line] = [((f"  {command}", "text"),) for command in commands]
    return [*wrapped(glyphs.say(text), width, "dim"), *lines]
