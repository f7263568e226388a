"""attn-tui softmax: a handful of scores on their way through softmax."""

from __future__ import annotations

from collections.abc import Callable

from ...core.attention.handful import multiplier_of, relevant
from ...core.attention.steps import steps
from ...core.export.softmax import softmax_csv, softmax_json, softmax_markdown
from .. import output
from ..requests import Format, Softmax
from ..views.lines import as_text
from ..views.softmax import Worked, softmax_lines
from .printing import glyphs_of, printed, width_of


def softmax(request: Softmax, ascii_only: bool) -> int:
    """Work it out and print; the exit code."""
    result, handful, asked = request.output, request.handful, relevant(request.parameters)
    output.check_target(result.path)
    glyphs = glyphs_of(result, ascii_only)
    unscaled, scaled = (steps(handful, c, asked.precision) for c in (1.0, multiplier_of(asked)))
    sides = unscaled, scaled
    texts: dict[Format, Callable[[], str]] = {
        "json": lambda: softmax_json(handful, asked, sides),
        "csv": lambda: softmax_csv(handful, asked, sides),
        "markdown": lambda: softmax_markdown(handful, asked, sides, glyphs.say),
        "table": lambda: printed(
            [as_text(softmax_lines(Worked(handful, asked, sides), width_of(result), glyphs))], result
        ),
    }
    output.write(texts[result.format](), result.path, ascii_only)
    return 0
