"""The command that prints what the Capture pane shows, and the scale rules that it can name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ....core.field import next_of
from ....core.scales import SCALE_RULES
from ...views.reproduce import in_shell
from .ranking.finding import layer_word

if TYPE_CHECKING:
    from ....core.captures.head import Capture
    from .requests import OpenCapture

_RULES = ("file", *(name for name in SCALE_RULES if name != "custom"))


def capture_line(
    capture: Capture,
    cursor: tuple[int, int],
    opened: OpenCapture,
    rules: tuple[str, str],
    baseline: Path | None,
    replayed: bool,
    ascii_only: bool,
) -> str:
    """Return the command of the head with the cursor under the scale rules of A and B, or with all rules replayed.

    With a baseline it is the comparison of both captures.
    """
    file = _as_argument(capture.path)
    if baseline is not None:
        words = ["compare", _as_argument(baseline), file]
    else:
        layer, head = cursor
        words = ["inspect", file, "--layer", layer_word(capture.layers, layer), "--head", str(head)]
        if replayed:
            words += ["--rules", "all"]
        else:
            against, rule = rules
            words += ["--scale", rule] if rule != "file" else []
            usual = "none" if rule == "file" else "file"
            words += ["--against", against] if against != usual else []
    words += ["--axes", opened.axes] if opened.axes else []
    words += ["--mask-true", opened.mask_true] if opened.mask_true else []
    return in_shell(["attn-tui", *words], ascii_only)


def next_rule(rule: str, direction: int) -> str:
    """Return the next or previous scale rule, with the file's own before the first; after a formula, an end."""
    return next_of(_RULES, rule, direction)


def _as_argument(path: Path) -> str:
    """Return a path that a command does not read as an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)
