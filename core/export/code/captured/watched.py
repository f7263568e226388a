"""The program of a head of a run that is watched: from the capture of its step, or from the run's own numbers."""

from __future__ import annotations

import math
from pathlib import Path

from ....captures.reader import open_capture
from ....plain import plain
from ....statistics.catalogue import STATISTIC
from ....watching.limits import MAX_LOGIT
from ....watching.snapshot import Snapshot
from ..program import Dialect, NoCodeError, Piece, assembled, expected, literal, number, shown
from .figures import Figure, figures_code

_LABELS = {name: each.label for name, each in STATISTIC.items()} | {MAX_LOGIT: "largest |logit|"}


def watched_code(run: Path, step: Snapshot, layer: int, head: int, dialect: Dialect, command: str) -> str:
    """Return the program that prints the figures of a head of this step; `layer` is its row on the map.

    Raise CaptureError if the file of the step cannot be read, and NoCodeError if no figure is known.
    """
    figures = {
        name: Figure(_LABELS.get(name, name), table[layer][head])
        for name, table in step.values.items()
        if math.isfinite(table[layer][head])
    }
    if not figures:
        raise NoCodeError("No code: no figure of this head is known.")
    comments = [command, f"step {step.step}, layer {step.layers[layer]}, head {head}"]
    if step.file is None:
        return _read(run, step, (layer, head), figures, comments)
    capture = open_capture(Path(step.file))
    if layer >= len(capture.layers) or head >= capture.layers[layer].heads:
        raise NoCodeError("No code: {file} has other heads now.", file=plain(Path(step.file).name))
    largest = "largest_raw_logit" if capture.layers[layer].softcap else "largest_logit"
    by_code = {largest if name == MAX_LOGIT else name: figure for name, figure in figures.items()}
    return figures_code(capture, capture.layers[layer], head, by_code, dialect, comments)


def _read(run: Path, step: Snapshot, place: tuple[int, int], figures: dict[str, Figure], comments: list[str]) -> str:
    """Return the program that reads the figures from the lines of a run, which has only numbers."""
    wide = max(len(figure.label) for figure in figures.values()) + 2
    lines = [
        f'with open({str(run)!r}, encoding="utf-8") as file:',
        '    steps = [json.loads(line) for line in file if line.endswith("\\n")]  # the last may be written just now',
        f'values = [each for each in steps if each["step"] == {step.step}][-1]',
    ]
    row, at = place
    prints: list[str] = []
    for name, figure in figures.items():
        scaled = name == MAX_LOGIT and step.scaled is False and step.scale is not None
        value = f"values[{literal(name)}][{row}][{at}]" + (f" * {number(step.scale or 0.0)}" if scaled else "")
        prints.append(f'print({literal(figure.label.ljust(wide))} + format({value}, "12.4g"))')
    wanted = expected(("",), {figure.label: [shown(figure.value)] for figure in figures.values()})
    return assembled(comments, [[Piece("\n".join(lines))]], [*prints, *wanted])
