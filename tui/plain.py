"""The Lab's report and the inspection of a capture without the app: measured here, printed as the app shows them."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.text import Text

from ..core import export
from ..core.blas import one_blas_thread
from ..core.captures.files import plain
from ..core.captures.heads import HeadSubject, named_rule, stream_head
from ..core.captures.reader import Capture, CaptureError, Layer, open_capture
from ..core.lab.comparison import deviations
from ..core.lab.experiment import stream
from ..core.lab.theory import Prediction, ScoreCurve, predict, score_curve
from ..core.parameters import FIELDS, Parameters
from ..core.statistics.measurement import Measurement
from . import output
from .options import Claims, Format, Inspect, Output, Report
from .views.claims import claims_report
from .views.glyphs import ASCII, UNICODE, Glyphs
from .views.head_list import SHOWN, head_list
from .views.histograms import grid_lines
from .views.lines import as_text, wrapped
from .views.sentence import sentence
from .views.table import Contents, column_title, rich_table
from .views.verdict import verdict

_WIDEST = 100
_NARROWEST = 60
_UNBOUNDED = 10_000  # cells: a table takes what it needs, and a narrow terminal breaks its lines
_HISTOGRAMS = 14  # lines of the four pairs

Head = tuple[Layer, int]


def report(request: Report, ascii_only: bool) -> int:
    """Measure and print what the Lab shows; the exit code."""
    result = request.output
    output.check_target(result.path)
    measurement, prediction = measure(request.parameters)
    glyphs = _glyphs(result, ascii_only)
    texts: dict[Format, Callable[[], str]] = {
        "json": lambda: export.report_json(measurement, prediction),
        "csv": lambda: export.report_csv(measurement, prediction),
        "markdown": lambda: export.report_markdown(measurement, prediction, glyphs.say),
        "table": lambda: _report_table(measurement, prediction, result, glyphs),
    }
    output.write(texts[result.format](), result.path, ascii_only)
    return 0


def inspect(request: Inspect, ascii_only: bool) -> int:
    """Measure and print heads of a capture; the exit code, which is 2 if some of them could not be read."""
    result = request.output
    capture = open_capture(request.file, request.axes)
    output.check_target(result.path, (request.file, *(path for path, _ in capture.files)))
    glyphs = _glyphs(result, ascii_only)
    for note in capture.notes:
        output.say(f"note: {note}", output.screen_glyphs(ascii_only))
    chosen = _chosen(capture, request.layer, request.head)
    one = len(chosen) == 1
    other = request.scale or "file"
    names = ("none" if other == "file" else other, "file") if one else (other,)
    heads, refusal = _measure_heads(capture, chosen, names, request.multiplier)
    texts: dict[Format, Callable[[], str]] = {
        "json": lambda: export.inspect_json(capture, heads),
        "csv": lambda: export.inspect_csv(heads),
        "markdown": lambda: (
            export.head_markdown(capture, heads[0], glyphs.say)
            if one
            else export.heads_markdown(capture, heads, SHOWN, verdict, glyphs.say)
        ),
        "table": lambda: (
            _whole_table(_head_title(capture, heads[0]), Contents(heads[0].columns), result, glyphs)
            if one
            else _list_table(capture, heads, result, glyphs)
        ),
    }
    output.write(texts[result.format](), result.path, ascii_only)
    if refusal is None:
        return 0
    left_out = f"{len(chosen) - len(heads)} of {len(chosen)} heads are left out"
    output.say(f"{refusal} ({left_out})", output.screen_glyphs(ascii_only))
    return 2


def claims(request: Claims, ascii_only: bool) -> int:
    """Put every claim to the test and print what became of it; the exit code."""
    from ..core.lab.claims import CLAIMS, Outcome, check_all

    result = request.output
    output.check_target(result.path)
    glyphs = _glyphs(result, ascii_only)
    found: dict[str, Outcome] = {}
    with output.Progress(f"testing {len(CLAIMS)} claims") as progress:
        for outcome in check_all():
            found[outcome.claim.id] = outcome
            progress.show(len(found) / len(CLAIMS))
    outcomes = [found[claim.id] for claim in CLAIMS]
    texts: dict[Format, Callable[[], str]] = {
        "json": lambda: export.claims_json(outcomes),
        "csv": lambda: export.claims_csv(outcomes),
        "markdown": lambda: export.claims_markdown(outcomes, glyphs.say),
        "table": lambda: _printed([as_text(claims_report(outcomes, _width(result), glyphs))], result),
    }
    output.write(texts[result.format](), result.path, ascii_only)
    return 0


def measure(parameters: Parameters) -> tuple[Measurement[Parameters], Prediction]:
    """The complete measurement, with its progress, and the theory of the same question."""
    measurement = None
    with output.Progress("computing") as progress, one_blas_thread():
        for step in stream(parameters):
            progress.show(step.fraction)
            if step.fraction == 1:
                measurement = step.measurement()
        prediction = predict(parameters)
    assert measurement is not None, "a stream ends with a complete step"
    return measurement, prediction


def _chosen(capture: Capture, layer: str | None, head: int | None) -> list[Head]:
    """The heads of this layer and number, or of any; raises CaptureError if there are none."""
    layers = [found for found in capture.layers if layer is None or layer in (str(found.index), found.name)]
    if not layers:
        there = _ranges([found.index for found in capture.layers])
        raise CaptureError(f"{plain(capture.path)}: there is no layer {plain(layer)}; it has layers {there}")
    chosen = [(found, h) for found in layers for h in range(found.heads) if head is None or h == head]
    if not chosen:
        whose = f"layer {plain(layer)} has" if layer is not None else "its layers have"
        last = max(found.heads for found in layers) - 1
        raise CaptureError(f"{plain(capture.path)}: there is no head {head}; {whose} heads 0 to {last}")
    return chosen


def _measure_heads(
    capture: Capture, chosen: Sequence[Head], rules: Sequence[str], multiplier: float
) -> tuple[list[Measurement[HeadSubject]], CaptureError | None]:
    """The heads that can be read, and what is wrong with the first that cannot; raises it if no head can."""
    heads: list[Measurement[HeadSubject]] = []
    refusal: CaptureError | None = None
    with output.Progress(f"measuring {len(chosen)} heads") as progress, one_blas_thread():
        for number, (layer, head) in enumerate(chosen):
            try:
                named = [named_rule(rule, layer, multiplier) for rule in rules]
                for fraction, measurement in stream_head(capture, layer, head, named):
                    progress.show((number + fraction) / len(chosen))
                    if measurement is not None:
                        heads.append(measurement)
            except CaptureError as error:
                refusal = refusal or error
    if refusal is not None and not heads:
        raise refusal
    return heads, refusal


def _report_title(p: Parameters) -> list[str]:
    """The question: its shape, rule, law and seed, and whatever else is not as usual."""
    usual = Parameters()
    always = ("d_k", "n_keys", "n_queries", "batch", "scale", "components", "seed")
    fields = [f for f in FIELDS if f.name in always or getattr(p, f.name) != getattr(usual, f.name)]
    return export.parameter_words(p, fields)


def _head_title(capture: Capture, head: Measurement[HeadSubject]) -> list[str]:
    layer = head.subject.layer
    return [*_file_words(capture, [layer]), f"layer {layer.index}", f"head {head.subject.head}"]


def _file_words(capture: Capture, layers: Sequence[Layer]) -> list[str]:
    """What the file says of itself and of these layers."""
    words = [plain(capture.path.name)]
    words += [text for text in (capture.model, capture.licence) if text]
    words.append(f"d_k {_ranges([layer.d_k for layer in layers])}")
    words.append(f"{_ranges([layer.keys for layer in layers])} tokens")
    batch = layers[0].batch
    return [*words, f"{batch} texts"] if batch > 1 else words


def _scale_words(heads: Sequence[Measurement[HeadSubject]], glyphs: Glyphs) -> str:
    """The scale that a list of heads was measured under."""
    columns = [head.columns[0] for head in heads]
    titles = dict.fromkeys(column_title(column, glyphs) for column in columns)
    return f"scale: {next(iter(titles))}" if len(titles) == 1 else f"scale: {len(titles)} of them, by layer"


def _ranges(numbers: Sequence[int]) -> str:
    """`32`, `0 to 5`, or `0, 2, 7`."""
    found = sorted(set(numbers))
    if len(found) > 2 and found[-1] - found[0] == len(found) - 1:
        return f"{found[0]} to {found[-1]}"
    return ", ".join(map(str, found[:12])) + (", …" if len(found) > 12 else "")


def _list_table(capture: Capture, heads: Sequence[Measurement[HeadSubject]], result: Output, glyphs: Glyphs) -> str:
    """What the file is, and a line for each head."""
    words = [*_file_words(capture, [head.subject.layer for head in heads]), _scale_words(heads, glyphs)]
    table = head_list(heads, output.screen_width() if _on_screen(result) else None, glyphs)
    return _printed([_title(words, _width(result), glyphs), Text(), table], result)


def _report_table(
    measurement: Measurement[Parameters], prediction: Prediction, result: Output, glyphs: Glyphs
) -> str:
    p = measurement.subject
    contents = Contents(measurement.columns, prediction.columns, deviations(measurement, prediction))
    return _whole_table(_report_title(p), contents, result, glyphs, score_curve(p))


def _whole_table(
    title: Sequence[str], contents: Contents, result: Output, glyphs: Glyphs, curve: ScoreCurve | None = None
) -> str:
    """The table, without its theory where the screen has no room for it; what it says; and the histograms."""
    width = _width(result)
    table = rich_table(contents, glyphs)
    if _on_screen(result) and Console(width=_UNBOUNDED).measure(table).maximum > output.screen_width():
        table = rich_table(Contents(contents.columns), glyphs)
    parts: list[RenderableType] = [
        _title(title, width, glyphs),
        Text(),
        table,
        Text(),
        as_text(wrapped(sentence(contents, glyphs), width)),
        Text(),
        as_text(grid_lines(contents.columns, width, _HISTOGRAMS, glyphs, curve)),
    ]
    return _printed(parts, result)


def _title(words: Sequence[str], width: int, glyphs: Glyphs) -> Text:
    """Words set off by points, none of them broken between lines."""
    lines: list[str] = []
    for word in map(glyphs.say, words):
        if lines and cell_len(f"{lines[-1]} {word} .") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
        lines[-1] += "" if word is words[-1] else glyphs.say(" ·")
    return as_text([((line, "heading"),) for line in lines])


def _glyphs(result: Output, ascii_only: bool) -> Glyphs:
    """Files are UTF-8, whatever the terminal shows."""
    if result.path is None:
        return output.screen_glyphs(ascii_only)
    return ASCII if ascii_only else UNICODE


def _on_screen(result: Output) -> bool:
    return result.path is None and output.is_terminal()


def _width(result: Output) -> int:
    width = output.screen_width() if result.path is None else 80
    return min(max(width, _NARROWEST), _WIDEST)


def _printed(parts: Sequence[RenderableType], result: Output) -> str:
    """The parts as text, in colour where a terminal shows them and nobody asked for none."""
    colour = _on_screen(result) and not os.environ.get("NO_COLOR")
    console = Console(
        file=io.StringIO(),
        force_terminal=colour,
        color_system="auto" if colour else None,
        width=_UNBOUNDED,
        highlight=False,
    )
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())
