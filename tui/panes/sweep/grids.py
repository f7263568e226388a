"""The ranges of d_k of the Sweep pane."""

from __future__ import annotations

from dataclasses import dataclass

from ....core.model_widths import MODEL_WIDTHS

_WIDTHS = ",".join(map(str, MODEL_WIDTHS))


@dataclass(frozen=True)
class Grid:
    """A range of d_k, written as on the command line."""

    words: str
    text: str


GRIDS = (
    Grid("to 4096", f"1:4096:log24,{_WIDTHS},1024,2048"),
    Grid("to 512", f"1:512:log20,{_WIDTHS.removesuffix(',576')}"),
    Grid("every one to 512", "1:512"),
    Grid("to 16384", f"1:16384:log28,{_WIDTHS},1024,2048,4096,8192"),
)
