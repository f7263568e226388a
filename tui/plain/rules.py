"""attn-tui rules: every scale rule on one question, or mechanisms over d_k."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from ...core.blas import one_blas_thread
from ...core.export import rules as export
from ...core.lab import mechanisms, rule_curves, rules
from .. import output
from ..command import rules_line
from ..requests import Format, Output, Rules
from ..views.glyphs import Glyphs
from ..views.lines import as_text, wrapped
from ..views.mechanisms import mechanism_lines
from ..views.rules import HEAD, Shown, left_out, table_lines, words_of
from .printing import glyphs_of, printed, title_lines, width_of
from .progress import Progress

_ALWAYS = ("d_k", "n_keys", "n_queries", "batch", "components", "precision", "seed")  # what a title says
_CURVES = 0.6  # the part of the work that the curves are, about


def print_rules(request: Rules, ascii_only: bool) -> int:
    """Measure and print; the exit code."""
    result = request.output
    output.check_target(result.path)
    glyphs, command = glyphs_of(result, ascii_only), rules_line(request, ascii_only)
    texts: dict[Format, Callable[[], str]]
    if request.mechanisms:
        compared = _compare(request, command)
        texts = {
            "json": lambda: export.mechanisms_json(compared),
            "csv": lambda: export.mechanisms_csv(compared),
            "markdown": lambda: export.mechanisms_markdown(compared, glyphs.say),
            "table": lambda: _mechanisms_table(compared, result, glyphs),
        }
    else:
        found = _measure(request, command)
        texts = {
            "json": lambda: export.rules_json(found),
            "csv": lambda: export.rules_csv(found),
            "markdown": lambda: export.rules_markdown(found, glyphs.say),
            "table": lambda: _rules_table(found, result, glyphs),
        }
    output.write(texts[result.format](), result.path, ascii_only)
    return 0


def _measure(request: Rules, command: str) -> export.Rules:
    p, rows, curves = request.parameters, list[rules.Row](), None
    with Progress("measuring scale rules") as progress, one_blas_thread():
        for step in rules.stream(p):
            rows += step.rows
            progress.show((1 - _CURVES) * step.fraction)
        for found in rule_curves.stream(p):
            curves = found.curves
            progress.show(1 - _CURVES + _CURVES * found.fraction)
    assert curves is not None, "the last step has the curves"
    return export.Rules(p, request.order, rows, curves, command)


def _compare(request: Rules, command: str) -> export.Mechanisms:
    rows: list[mechanisms.Row] = []
    with Progress("comparing mechanisms") as progress, one_blas_thread():
        for step in mechanisms.stream(request.parameters):
            rows += [step.row] if step.row else []
            progress.show(step.fraction)
    return export.Mechanisms(request.parameters, rows, command)


def _rules_table(found: export.Rules, result: Output, glyphs: Glyphs) -> str:
    width = output.screen_width() if result.path is None else 80
    order = found.sorted
    names = [row.rule for row in order]
    rows = {row.rule: row for row in order}
    shown = Shown(names, rows, found.curves, found.order, found.parameters.scale)
    said = export.remarks(found)
    if missing := left_out(width, 0, found.order.column, found.curves):
        said.append(f"No room for {', '.join(map(words_of, missing))}; JSON and CSV have everything.")
    parts = [
        title_lines(export.rules_words(found.parameters, _ALWAYS), width_of(result), glyphs),
        Text(),
        as_text(table_lines(shown, width, 0, HEAD + len(names), glyphs)),
        Text(),
        *(as_text(wrapped(glyphs.say(sentence), width_of(result))) for sentence in said),
        as_text([((found.command, "dim"),)]),
    ]
    return printed(parts, result)


def _mechanisms_table(found: export.Mechanisms, result: Output, glyphs: Glyphs) -> str:
    words = export.mechanisms_words(found.parameters, _ALWAYS)
    parts = [
        title_lines(words, width_of(result), glyphs),
        Text(),
        as_text(mechanism_lines(found.rows, width_of(result), glyphs)),
        as_text([((found.command, "dim"),)]),
    ]
    return printed(parts, result)
