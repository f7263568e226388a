"""A captured step of a run, measured: one number a head for each statistic that is watched."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from ..captures.capture import Layer
from ..captures.files import CaptureError, NotFiniteError
from ..captures.head import CaptureFile
from ..captures.heads import measure_head
from ..captures.reader import open_capture
from ..captures.rules import file_rule
from ..captures.settings import ScoreProcessing
from ..plain import plain
from .limits import MAX_LOGIT
from .step import Step, grid

_STATISTICS = ("entropy_fraction", "saturation", "one_hot_rows", "first_key_weight")


def measured(path: Path, number: int) -> Step:
    """Measure all heads of a capture under the scale it tells, else 1/√d_k; raise CaptureError if it is none.

    The step is that of the capture's metadata, else `number`. A head that cannot be measured has NaN, and a note; one
    whose queries or keys are not finite has infinite logits. The largest |logit| is that before a soft-cap, which no
    limit above the cap would ever see passed.
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
    rule = file_rule(layer)
    raw = replace(rule, computed=ScoreProcessing(softcap=0))
    try:
        columns = measure_head(capture, layer, head, [rule, raw] if layer.softcap else [rule]).columns
    except NotFiniteError:
        return {MAX_LOGIT: math.inf, **dict.fromkeys(_STATISTICS, math.nan)}
    except CaptureError as error:
        notes.append(str(error))
        return dict.fromkeys((MAX_LOGIT, *_STATISTICS), math.nan)
    first, last = ({name: _value(each.value) for name, each in columns[at].measured.items()} for at in (0, -1))
    return {
        MAX_LOGIT: max(-last["logit_min"], last["logit_max"]),
        **{name: first[name] for name in _STATISTICS},
    }


def _value(value: float | None) -> float:
    return math.nan if value is None else value
