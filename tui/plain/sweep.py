"""attn-tui sweep: what the Lab shows over many d_k."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace

from rich.console import RenderableType
from rich.text import Text

from ...core.export import sweep as export
from ...core.lab.comparison import deviations
from ...core.lab.prediction import Prediction
from ...core.lab.sweep import Point, stream
from ...core.lab.theory import predict
from ...core.statistics.catalogue import STATISTIC
from .. import output
from ..command import sweep_line
from ..requests import Format, Output, Sweep
from ..views.glyphs import Glyphs
from ..views.lines import as_text, wrapped
from ..views.sweep_table import sweep_lines, sweep_sentences
from .printing import glyphs_of, printed, title_lines, width_of
from .progress import Progress

_INTERRUPTED = 130
_ALWAYS = ("n_keys", "n_queries", "batch", "scale", "components", "seed")  # what the title says


def sweep(request: Sweep, ascii_only: bool) -> int:
    """Measure and print every point, or, after Ctrl-C, those that are done; the exit code."""
    result = request.output
    output.check_target(result.path)
    points: list[tuple[Point, Prediction]] = []
    found = export.Sweep(
        request.parameters,
        request.d_ks,
        points,
        sweep_line(request, ascii_only),
        request.vary,
        request.target,
        request.statistics,
    )
    interrupted = False
    try:
        _measure(request, found, points)
    except KeyboardInterrupt:
        interrupted = True
    glyphs = glyphs_of(result, ascii_only)
    texts: dict[Format, Callable[[], str]] = {
        "json": lambda: export.sweep_json(found),
        "csv": lambda: export.sweep_csv(found),
        "markdown": lambda: export.sweep_markdown(found, glyphs.say),
        "table": lambda: _table(found, result, glyphs),
    }
    if points:
        output.write(texts[result.format](), result.path, ascii_only)
    if not interrupted:
        return 0
    where = "" if result.path is None else f" in {result.path}" if points else f"; {result.path} is not written"
    output.say(f"interrupted: kept {len(points)} of {found.asked} points{where}", output.screen_glyphs(ascii_only))
    return _INTERRUPTED


def _measure(request: Sweep, found: export.Sweep, points: list[tuple[Point, Prediction]]) -> None:
    """Append every point, with its theory and what of its histograms is printed."""
    brief = request.output.format in ("table", "markdown")
    full = any(STATISTIC[name].optional for name in (found.shown if brief else found.written))
    steps = stream(request.parameters, request.d_ks, vary=request.vary, target=request.target, full=full)
    with Progress(f"sweeping {found.asked} points") as progress, closing(steps):
        for step in steps:
            for point in step.points:
                points.append((_lean(point, request.output.format == "table"), predict(point.parameters)))
            progress.show(step.fraction)


def _lean(point: Point, drawn: bool) -> Point:
    """The point with the histogram of logits if it is drawn: those of thousands of points would fill the memory."""
    columns = point.measurement.columns
    kept = [replace(c, histograms={"logits": c.histograms["logits"]} if drawn else {}) for c in columns]
    return replace(point, measurement=replace(point.measurement, columns=tuple(kept)))


def _table(found: export.Sweep, result: Output, glyphs: Glyphs) -> str:
    width = output.screen_width() if result.path is None else 80
    far = [deviations(point.measurement, prediction) for point, prediction in found.points]
    parts: list[RenderableType] = [
        title_lines(export.fixed_words(found, _ALWAYS), width_of(result), glyphs),
        Text(),
        as_text(sweep_lines(found, far, width, glyphs)),
        Text(),
    ]
    said: Sequence[str] = (*sweep_sentences(found, far), *export.remarks(found))
    parts += [as_text(wrapped(glyphs.say(sentence), width_of(result))) for sentence in said]
    return printed([*parts, as_text([((found.command, "dim"),)])], result)
