"""PANES: the panes of the app, in order, a row each. A pane is loaded when first opened."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .pane import Pane


@dataclass(frozen=True)
class PaneRow:
    """A pane. Its folder contains `pane.py` with the class; `help.py` has the help on all panes."""

    title: str  # as the top bar shows it
    folder: str
    class_name: str
    takes: tuple[str, ...] = ()  # arguments of the class that the command line may give

    def load(self) -> type[Pane]:
        """Load the pane's module and return its class."""
        return getattr(import_module(f".{self.folder}.pane", __package__), self.class_name)

    @property
    def about(self) -> Sequence[str]:
        """The paragraphs of the help on the pane."""
        return import_module(".help", __package__).ABOUT[self.title]


PANES = {
    row.title: row
    for row in (
        PaneRow("Lab", "lab", "LabPane"),
        PaneRow("Sweep", "sweep", "SweepPane"),
        PaneRow("Softmax", "softmax", "SoftmaxPane"),
        PaneRow("Rules", "rules", "RulesPane"),
        PaneRow("Heads", "heads", "HeadsPane"),
        PaneRow("Capture", "capture", "CapturePane", takes=("path", "axes", "mask_true")),
        PaneRow("Claims", "claims", "ClaimsPane"),
        PaneRow("Watch", "watch", "WatchPane", takes=("run", "max_logit")),
        PaneRow("Learn", "learn", "LearnPane", takes=("progress",)),
        PaneRow("Train", "train", "TrainPane"),
    )
}
