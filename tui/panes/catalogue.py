"""PANES: the panes of the app, a row each, and TABS, which show them. A pane is loaded when first opened."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from ...core.message import Message, message

if TYPE_CHECKING:
    from ..views.help import HelpEntry
    from .pane import Pane


class PaneRow(NamedTuple):
    """A pane. Its folder contains `pane.py` with the class, and `__init__.py` with the help on it, ABOUT."""

    title: str  # as help and palette name it
    folder: str
    class_name: str
    tab: str  # the tab that shows it
    views: tuple[str, ...] = ("",)  # what the tab calls its views
    takes: tuple[str, ...] = ()  # arguments of the class that the command line may give

    @property
    def place(self) -> Message:
        """Where it is on screen: its tab, and what the tab calls its first view."""
        if not self.views[0]:
            return message("{tab} tab", tab=message(self.tab))
        return message("{tab} tab: {view}", tab=message(self.tab), view=self.views[0])

    def load(self) -> type[Pane]:
        """Load the pane's module and return its class."""
        return getattr(import_module(f".{self.folder}.pane", __package__), self.class_name)

    @property
    def about(self) -> tuple[str, *tuple[HelpEntry, ...]]:
        """The help on the pane: what it shows, then paragraphs, and terms with their meanings."""
        return import_module(f".{self.folder}", __package__).ABOUT


PANES = {
    row.title: row
    for row in (
        PaneRow("Lab", "lab", "LabPane", "Lab", takes=("whole", "statistics")),
        PaneRow("Softmax", "softmax", "SoftmaxPane", "Softmax"),
        PaneRow("Rules", "rules", "RulesPane", "Scales", (message("rules"),)),
        PaneRow("Sweep", "sweep", "SweepPane", "Scales", (message("curves"), message("map"))),
        PaneRow("Capture", "capture", "CapturePane", "Model", (message("capture"),), takes=("file",)),
        PaneRow("Watch", "watch", "WatchPane", "Model", (message("watch"),), takes=("run", "max_logit")),
        PaneRow("Heads", "heads", "HeadsPane", "Model", (message("cost"),)),
        PaneRow("Train", "train", "TrainPane", "Train"),
        PaneRow("Learn", "learn", "LearnPane", "Learn", takes=("progress",)),
    )
}
# The views of each tab, in order: the title of the pane, and what the tab calls the view.
TABS: dict[str, list[tuple[str, str]]] = {}
for _row in PANES.values():
    TABS.setdefault(_row.tab, []).extend((_row.title, view) for view in _row.views)
