"""The command that prints what the Capture pane shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...compute.question import in_shell
from .finding import layer_word

if TYPE_CHECKING:
    from ....core.captures.head import Capture
    from .requests import OpenCapture
    from .sides import Sides


def capture_line(
    capture: Capture,
    cursor: tuple[int, int],
    opened: OpenCapture,
    sides: Sides,
    baseline: Path | None,
    replayed: bool,
    ascii_only: bool,
) -> str:
    """Return the command of the head with the cursor in the settings of A and B, or with all rules replayed.

    With a baseline it is the comparison of both captures.
    """
    file = _as_argument(capture.path)
    if baseline is not None:
        words = ["compare", _as_argument(baseline), file]
    else:
        layer, head = cursor
        words = ["inspect", file, "--layer", layer_word(capture.layers, layer), "--head", str(head)]
        words += ["--rules", "all"] if replayed else sides.options
    words += ["--axes", opened.axes] if opened.axes else []
    words += ["--mask-true", opened.mask_true] if opened.mask_true else []
    return in_shell(["attn-tui", *words], ascii_only)


def _as_argument(path: Path) -> str:
    """Return a path that a command does not read as an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)
