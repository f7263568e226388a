"""attn-tui inspect: what the heads of a capture do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text

from ...core.blas import one_blas_thread
from ...core.captures.files import plain
from ...core.captures.heads import HeadSubject, named_rule, stream_head
from ...core.captures.reader import Capture, CaptureError, Layer, open_capture
from ...core.export.inspect import head_markdown, heads_markdown, inspect_csv, inspect_json
from ...core.statistics.measurement import Measurement
from .. import output
from ..requests import Format, Inspect, Output
from ..views.glyphs import Glyphs
from ..views.head_list import SHOWN, head_list
from ..views.table import Contents, column_title
from ..views.verdict import verdict
from .printing import glyphs_of, on_screen, printed, title_lines, whole_table, width_of
from .progress import Progress

Head = tuple[Layer, int]


def inspect(request: Inspect, ascii_only: bool) -> int:
    """Measure and print heads of a capture; the exit code, which is 2 if some of them could not be read."""
    result = request.output
    capture = open_capture(request.file, request.axes)
    output.check_target(result.path, (request.file, *(path for path, _ in capture.files)))
    glyphs = glyphs_of(result, ascii_only)
    for note in capture.notes:
        output.say(f"note: {note}", output.screen_glyphs(ascii_only))
    chosen = _chosen(capture, request.layer, request.head)
    one = len(chosen) == 1
    other = request.scale or "file"
    names = ("none" if other == "file" else other, "file") if one else (other,)
    heads, refusal = _measure_heads(capture, chosen, names, request.multiplier)
    texts: dict[Format, Callable[[], str]] = {
        "json": lambda: inspect_json(capture, heads),
        "csv": lambda: inspect_csv(heads),
        "markdown": lambda: (
            head_markdown(capture, heads[0], glyphs.say)
            if one
            else heads_markdown(capture, heads, SHOWN, verdict, glyphs.say)
        ),
        "table": lambda: (
            whole_table(_head_title(capture, heads[0]), Contents(heads[0].columns), result, glyphs)
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
    with Progress(f"measuring {len(chosen)} heads") as progress, one_blas_thread():
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
    table = head_list(heads, output.screen_width() if on_screen(result) else None, glyphs)
    return printed([title_lines(words, width_of(result), glyphs), Text(), table], result)
