"""A captured step of a run, measured: one number a head for each statistic that is watched."""

from __future__ import annotations

import math
from pathlib import Path

from ..captures.capture import Layer
from ..captures.files import CaptureError, NotFiniteError
from ..captures.head import CaptureFile
from ..captures.heads import measure_head
from ..captures.reader import open_capture
from ..captures.rules import file_rule
from ..plain import plain
from .limits import MAX_LOGIT
from .step import Step, grid

_STATISTICS = ("entropy_fraction", "saturation", "one_hot_rows", "first_key_weight")


def measured(path: Path, number: int) -> Step:
    """Measure all heads of a capture under the scale it tells, else 1/√d_k; raise CaptureError if it is none.

    The step is that of the capture's metadata, else `number`. A head that cannot be measured has NaN, and a note; one
    whose queries or keys are not finite has infinite logits.
    """
    capture = open_capture(path)
    rows: dict[str, list[list[float]]] = {name: [] for name in (MAX_LOGIT, *_STATISTICS)}
    notes: list[str] = []
    for layer in capture.layers:
        found = [_head(capture, layer, head, notes) for head in range(layer.heads)]
        for name, table in rows.items():
            table.append([each[name] for each in found])
    scales = {layer.scale for layer in capture.layers}
    return Step(
        step=number if capture.step is None else capture.step,
        time=path.stat().st_mtime,
        layers=tuple(plain(layer.index) for layer in capture.layers),
        values={name: grid(table) for name, table in rows.items()},
        heads=tuple(layer.heads for layer in capture.layers),
        scale=scales.pop() if len(scales) == 1 else None,
        scaled=True,
        file=str(path),
        notes=tuple(notes),
    )


def _head(capture: CaptureFile, layer: Layer, head: int, notes: list[str]) -> dict[str, float]:
    try:
        [column] = measure_head(capture, layer, head, [file_rule(layer)]).columns
    except NotFiniteError:
        return {MAX_LOGIT: math.inf, **dict.fromkeys(_STATISTICS, math.nan)}
    except CaptureError as error:
        notes.append(str(error))
        return dict.fromkeys((MAX_LOGIT, *_STATISTICS), math.nan)
    value = {name: _value(estimate.value) for name, estimate in column.measured.items()}
    return {
        MAX_LOGIT: max(-value["logit_min"], value["logit_max"]),
        **{name: value[name] for name in _STATISTICS},
    }


def _value(value: float | None) -> float:
    return math.nan if value is None else value
