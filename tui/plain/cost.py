"""attn-tui cost: what a layer of attention costs."""

from __future__ import annotations

from collections.abc import Callable

from ...core.attention.cost import cost as count
from ...core.export.cost import cost_csv, cost_json, cost_markdown
from .. import output
from ..requests import Cost, Format
from ..views.cost import cost_lines
from ..views.lines import as_text
from .printing import glyphs_of, printed, width_of


def cost(request: Cost, ascii_only: bool) -> int:
    """Count and print; the exit code."""
    result, preset = request.output, request.preset
    output.check_target(result.path)
    glyphs = glyphs_of(result, ascii_only)
    found = count(request.layer)
    texts: dict[Format, Callable[[], str]] = {
        "json": lambda: cost_json(found, preset),
        "csv": lambda: cost_csv(found, preset),
        "markdown": lambda: cost_markdown(found, preset, glyphs.say),
        "table": lambda: printed([as_text(cost_lines(found, width_of(result), glyphs, preset))], result),
    }
    output.write(texts[result.format](), result.path, ascii_only)
    return 0
