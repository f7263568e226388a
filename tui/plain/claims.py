"""attn-tui claims: what is said about √d_k, put to the test."""

from __future__ import annotations

from collections.abc import Callable

from ...core.export.claims import claims_csv, claims_json, claims_markdown
from ...core.lab.claims import CLAIMS, Outcome, check_all
from .. import output
from ..requests import Claims, Format
from ..views.claims import claims_report
from ..views.lines import as_text
from .printing import glyphs_of, printed, width_of
from .progress import Progress


def claims(request: Claims, ascii_only: bool) -> int:
    """Put every claim to the test and print what became of it; the exit code."""
    result = request.output
    output.check_target(result.path)
    glyphs = glyphs_of(result, ascii_only)
    found: dict[str, Outcome] = {}
    with Progress(f"testing {len(CLAIMS)} claims") as progress:
        for outcome in check_all():
            found[outcome.claim.id] = outcome
            progress.show(len(found) / len(CLAIMS))
    outcomes = [found[claim.id] for claim in CLAIMS]
    texts: dict[Format, Callable[[], str]] = {
        "json": lambda: claims_json(outcomes),
        "csv": lambda: claims_csv(outcomes),
        "markdown": lambda: claims_markdown(outcomes, glyphs.say),
        "table": lambda: printed([as_text(claims_report(outcomes, width_of(result), glyphs))], result),
    }
    output.write(texts[result.format](), result.path, ascii_only)
    return 0
