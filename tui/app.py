"""The app: owns the state, hands requests to the compute thread and results to the pane on screen."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType

from ..core.attention.scales import multiplier
from ..core.parameters import ParameterError, Parameters
from . import lifelines
from .messages import Computed, Crashed, EditRejected, Failed, MeasurementReady, ParametersEdited, Progress
from .panes.lab import KEYS as LAB_KEYS
from .panes.lab import Lab
from .recompute import Recompute, lab_work
from .themes import DARK, LIGHT
from .views.bars import parameters_status, progress_line
from .views.glyphs import UNICODE, Glyphs
from .widgets.bars import KeyBar, TopBar
from .widgets.lines import LinesWidget

PANES = ("Lab", "Capture")


class AttnApp(App[int]):
    """attn-tui in a terminal."""

    CSS_PATH = "app.tcss"
    TITLE = "attn-tui"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit", show=False),
        Binding("question_mark,f1", "help", "help", show=False),
        Binding("greater_than_sign", "pane(1)", "next pane", show=False),
        Binding("less_than_sign", "pane(-1)", "last pane", show=False),
    ]

    def __init__(self, parameters: Parameters, capture: Path | None = None, glyphs: Glyphs = UNICODE) -> None:
        super().__init__()
        self.parameters = parameters
        self.capture = capture
        self.glyphs = glyphs
        LinesWidget.glyphs = glyphs
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = DARK.name
        self.recompute = Recompute(("lab", "head", "map"), self.deliver)
        self._measure = lab_work()

    def compose(self) -> ComposeResult:
        yield TopBar()
        yield Lab(self.parameters, self.glyphs)
        yield KeyBar()

    def on_mount(self) -> None:
        self.top = self.query_one(TopBar)
        self.keys = self.query_one(KeyBar)
        self.lab = self.query_one(Lab)
        self.top.panes = PANES
        self.keys.show(LAB_KEYS)
        self.lab.focus()
        self.show_status()
        lifelines.install(self)

    def on_ready(self) -> None:
        """The first frame stands: now load NumPy and measure, away from the keyboard."""
        self.request()
        self.recompute.start()

    def on_unmount(self) -> None:
        self.recompute.stop()

    def deliver(self, message: Computed) -> None:
        """Bring a message over from the compute thread."""
        if self.is_running:
            self.post_message(message)

    def request(self) -> None:
        """Ask for the measurement of the parameters as they are now."""
        parameters = self.parameters
        self.recompute.request("lab", lambda: self._measure(parameters))

    def show_status(self) -> None:
        self.top.show("Lab", parameters_status(self.parameters, self.glyphs))

    def on_parameters_edited(self, message: ParametersEdited) -> None:
        """Take over new parameters, unless the scale rule has no multiplier for them."""
        p = message.parameters
        try:
            multiplier(p.scale, p.d_k, p.multiplier)
        except ParameterError as error:
            self.lab.show_stale(f"{error}.")
            return
        self.parameters = p
        self.lab.show_parameters(p)
        self.show_status()
        self.request()

    def on_edit_rejected(self, message: EditRejected) -> None:
        if message.reason:
            self.lab.show_stale(f"{message.reason}.")
        elif self.lab.measurement is not None:
            self.lab.show_measurement(self.lab.measurement)

    def on_measurement_ready(self, message: MeasurementReady) -> None:
        self.lab.show_measurement(message.measurement)
        self.show_status()

    def on_progress(self, message: Progress) -> None:
        self.top.show("Lab", progress_line(message.fraction, self.glyphs))
        if self.lab.measurement is None or self.lab.measurement.subject != self.parameters:
            self.lab.show_stale(f"Computing d_k {self.parameters.d_k}.")

    def on_failed(self, message: Failed) -> None:
        self.lab.show_stale(f"{message.reason}.")

    def on_crashed(self, message: Crashed) -> None:
        raise message.error

    def action_pane(self, direction: int) -> None:
        pass

    def action_help(self) -> None:
        pass
