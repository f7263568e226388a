"""attn-tui report: the Lab's table, sentence and histograms."""

from __future__ import annotations

from collections.abc import Callable

from ...core.blas import one_blas_thread
from ...core.export.report import report_csv, report_json, report_markdown
from ...core.export.words import notable_words
from ...core.lab.comparison import deviations
from ...core.lab.experiment import stream
from ...core.lab.prediction import Prediction
from ...core.lab.theory import predict, score_curve
from ...core.parameters import FIELD, Parameters
from ...core.statistics.measurement import Measurement
from .. import output
from ..requests import Format, Output, Report
from ..views.glyphs import Glyphs
from ..views.table import Contents
from .printing import glyphs_of, whole_table
from .progress import Progress

_ALWAYS = ("d_k", "n_keys", "n_queries", "batch", "scale", "components", "seed")  # what the title says


def report(request: Report, ascii_only: bool) -> int:
    """Measure and print what the Lab shows; the exit code."""
    result = request.output
    output.check_target(result.path)
    measurement, prediction = measure(request.parameters)
    glyphs = glyphs_of(result, ascii_only)
    texts: dict[Format, Callable[[], str]] = {
        "json": lambda: report_json(measurement, prediction),
        "csv": lambda: report_csv(measurement, prediction),
        "markdown": lambda: report_markdown(measurement, prediction, glyphs.say),
        "table": lambda: _report_table(measurement, prediction, result, glyphs),
    }
    output.write(texts[result.format](), result.path, ascii_only)
    return 0


def measure(parameters: Parameters) -> tuple[Measurement[Parameters], Prediction]:
    """The complete measurement, with its progress, and the theory of the same question."""
    measurement = None
    with Progress("computing") as progress, one_blas_thread():
        for step in stream(parameters):
            progress.show(step.fraction)
            if step.fraction == 1:
                measurement = step.measurement()
        prediction = predict(parameters)
    assert measurement is not None, "a stream ends with a complete step"
    return measurement, prediction


def _report_table(
    measurement: Measurement[Parameters], prediction: Prediction, result: Output, glyphs: Glyphs
) -> str:
    p = measurement.subject
    contents = Contents(measurement.columns, prediction.columns, deviations(measurement, prediction))
    return whole_table(notable_words(p, FIELD, _ALWAYS), contents, result, glyphs, score_curve(p))
