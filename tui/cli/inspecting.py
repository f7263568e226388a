"""What `attn-tui inspect` prints of the heads it has measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.captures.capture import Capture, HeadSubject, Layer
from ...core.message import message
from ...core.statistics.measurement import Measurement
from ..views.glyphs import Glyphs
from .captured import ranges
from .output import Output

if TYPE_CHECKING:
    from ...core.captures.head import CaptureFile
    from ...core.tables.heads import HeadMeasurement, Inspected
    from .working import HeadsRequest


def worst(
    captures: Sequence[CaptureFile], heads: Sequence[Inspected], count: int, request: HeadsRequest, output: Output
) -> list[Inspected]:
    """Return the heads most worth a look, worst first, and why; `heads` are in the order of the captures."""
    from ...core.diagnosis.heads.ranking import Known, rank
    from ...core.work import heads as working
    from .working import complete, on_heads

    asked = {(head.subject.layer.path, head.subject.layer.position) for head, _ in heads}
    layers = [[layer for layer in each.layers if (layer.path, layer.position) in asked] for each in captures]
    chosen = [[(layer, head) for layer in each for head in range(layer.heads)] for each in layers]
    known: dict[tuple[Path, int], dict[int, Known]] = {}
    what = message("explaining {number} heads", number=len(heads))
    for layer, head, each in complete(on_heads(working.explain, captures, chosen, (), what, request, output)):
        known.setdefault((layer.path, layer.position), {})[head] = each
    return [*rank([head for head, _ in heads], known)[:count]]


def head_text(capture: Capture, head: HeadMeasurement, output: Output) -> str:
    """Return a head in full, for a terminal."""
    from ..views.results.table import Contents
    from .printing import whole_table

    layer = head.subject.layer
    title = [
        *_file_words([capture], [layer]),
        message("layer {index}", index=layer.index),
        message("head {head}", head=head.subject.head),
    ]
    return whole_table(title, Contents(head.columns), output)


def _file_words(captures: Sequence[Capture], layers: Sequence[Layer]) -> list[str]:
    """Return what a title says about the files and these layers."""
    from ...core.plain import plain
    from ...core.tables.heads import files_words

    words = files_words(captures, lambda capture: plain(capture.path.name))
    words.append(f"d_k {ranges([layer.d_k for layer in layers])}")
    words.append(message("{numbers} tokens", numbers=ranges([layer.keys for layer in layers])))
    batches = [layer.batch for layer in layers]
    return [*words, message("{numbers} texts", numbers=ranges(batches))] if max(batches) > 1 else words


def _scale_words(heads: Sequence[Measurement[HeadSubject]], glyphs: Glyphs) -> str:
    """Return what a title says about the scale of a list of heads."""
    from ...core.diagnosis.disagreement import scale_disagreement
    from ..views.results.table import column_title

    columns = [head.columns[0] for head in heads]
    titles = dict.fromkeys(column_title(column, glyphs) for column in columns)
    if len(titles) == 1:
        return message("scale: {scale}", scale=next(iter(titles)))
    layers = dict.fromkeys(head.subject.layer for head in heads)
    said = scale_disagreement([*layers]) if columns[0].rule == "file" else ""
    numbers = sorted(column.multiplier for column in columns)
    return said or message("scale: × {low:.4g} to × {high:.4g}, by layer", low=numbers[0], high=numbers[-1])


def list_text(captures: Sequence[Capture], heads: Sequence[Inspected], output: Output) -> str:
    """Return a title and a table with one line per head; with reasons, they end the lines."""
    from ...core.statistics.catalogue import STATISTIC
    from ..panes.capture.ranking.printed import head_list
    from ..panes.capture.ranking.ranked import RankedHead, ranked_lines
    from .printing import page

    glyphs, width = output.glyphs, output.width if output.on_screen else None
    measured, layers = [head for head, _ in heads], [head.subject.layer for head, _ in heads]
    title = [*_file_words(captures, layers), _scale_words(measured, glyphs)]
    if heads[0][1] is None:
        return page(output, title, "", head_list(measured, width, glyphs))
    ranked = [
        RankedHead(
            layer.index,
            head.subject.head,
            head.columns[0].measured,
            explained.because,
            file=layer.file,
            verdict=explained.verdict,
        )
        for layer, (head, explained) in zip(layers, heads, strict=True)
        if explained is not None
    ]
    return page(output, title, "", ranked_lines(ranked, STATISTIC["saturation"], width, glyphs))
