"""The app: owns the state, hands requests to the compute thread and results to the pane they belong to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widget import Widget

from ..core.attention.scales import multiplier
from ..core.parameters import ParameterError, Parameters
from . import lifelines, work
from .frugal import FrugalApp
from .messages import (
    CaptureOpened,
    ClaimsListed,
    ClaimTested,
    Computed,
    Crashed,
    EditRejected,
    Failed,
    MapPart,
    MeasurementReady,
    ParametersEdited,
    Progress,
)
from .panes.capture import KEYS as CAPTURE_KEYS
from .panes.capture import CapturePane
from .panes.claims import KEYS as CLAIMS_KEYS
from .panes.claims import ClaimsPane
from .panes.lab import KEYS as LAB_KEYS
from .panes.lab import Lab
from .recompute import Recompute
from .themes import DARK, LIGHT
from .views.bars import Key, parameters_status, progress_line
from .views.glyphs import UNICODE, Glyphs
from .views.lines import Line
from .widgets.bars import KeyBar, Paragraph, TopBar
from .widgets.lines import LinesWidget

if TYPE_CHECKING:
    from ..core.captures.reader import Capture

LEAST = (80, 20)  # columns and lines
KEYS: dict[str, tuple[Key, ...]] = {"Lab": LAB_KEYS, "Capture": CAPTURE_KEYS, "Claims": CLAIMS_KEYS}  # by pane
KINDS = ("lab", "file", "head", "map")  # of work, the more urgent first


class AttnApp(FrugalApp[int]):
    """attn-tui in a terminal."""

    CSS_PATH = "app.tcss"
    TITLE = "attn-tui"
    HORIZONTAL_BREAKPOINTS = [(0, "-thin"), (LEAST[0], "-narrow"), (100, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (LEAST[1], "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit", show=False),
        Binding("question_mark,f1", "help", "help", show=False),
        Binding("greater_than_sign", "turn(1)", "next pane", show=False),
        Binding("less_than_sign", "turn(-1)", "previous pane", show=False),
        Binding("1", "pane('Lab')", "Lab", show=False),
        Binding("2", "pane('Capture')", "Capture", show=False),
        Binding("3", "pane('Claims')", "Claims", show=False),
    ]
    PANES: ClassVar[tuple[str, ...]] = tuple(KEYS)

    def __init__(
        self,
        parameters: Parameters,
        capture: Path | None = None,
        axes: str | None = None,
        glyphs: Glyphs = UNICODE,
    ) -> None:
        super().__init__()
        lifelines.tolerate_broken_input()
        self.parameters = parameters
        self.path, self.axes = capture, axes
        self.capture: Capture | None = None
        self.glyphs = glyphs
        LinesWidget.glyphs = glyphs
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = DARK.name
        self.active = "Lab"
        self.recompute = Recompute(KINDS, self.deliver)
        # Apart from the keys' own thread, because their steps are long.
        self.theorist = Recompute(("theory",), self.deliver)
        self.tester = Recompute(("claims",), self.deliver)
        self._lab_work = work.Lab()
        self._focus_before: Widget | None = None

    def compose(self) -> ComposeResult:
        self.top = TopBar()
        self.top.panes = self.PANES
        self.keys = KeyBar()
        self.lab = Lab(self.parameters, self.glyphs)
        self.heads: CapturePane | None = None  # this and the next are made when they are first opened
        self.claims: ClaimsPane | None = None
        self.too_small = Paragraph(id="too-small")
        yield self.top
        yield self.lab
        yield self.keys
        yield self.too_small

    def on_mount(self) -> None:
        lifelines.install(self)
        self.keys.show(LAB_KEYS)
        self.lab.focus()
        self._show_status()

    def on_ready(self) -> None:
        """The first frame stands: now load NumPy and measure, away from the keyboard."""
        # A measurement is a hundred short calls; by default each may wait five milliseconds for the screen's thread.
        sys.setswitchinterval(0.000_3)
        if self.path is not None:
            self.action_pane("Capture")
        self._measure()
        self.recompute.start()
        self.theorist.start()
        self.tester.start()

    def on_unmount(self) -> None:
        self.recompute.stop()
        self.theorist.stop()
        self.tester.stop()

    def deliver(self, message: Computed) -> None:
        """Bring a message over from the compute thread."""
        if self.is_running:
            self.post_message(message)

    # What people do

    def on_parameters_edited(self, message: ParametersEdited) -> None:
        """Take over new parameters; where the scale rule has no multiplier for them, say so and keep the numbers."""
        p = self.parameters = message.parameters
        self._show_status()
        try:
            multiplier(p.scale, p.d_k, p.multiplier)
        except ParameterError as error:
            self.lab.object_to(f"{error}.")
        else:
            self.lab.object_to("")
            self._measure()

    def on_edit_rejected(self, message: EditRejected) -> None:
        self.lab.object_to(f"{message.reason}." if message.reason else "")

    def on_claims_pane_to_lab(self, message: ClaimsPane.ToLab) -> None:
        self._to_lab(message.parameters)

    def _to_lab(self, parameters: Parameters) -> None:
        """Show the Lab with other parameters."""
        self.action_pane("Lab")
        self.lab.panel.finish()
        self.lab.panel.show(parameters)
        self.post_message(ParametersEdited(parameters))

    def on_capture_pane_head_wanted(self, message: CapturePane.HeadWanted) -> None:
        capture = self.capture
        if capture is not None:
            where = message.layer, message.head, message.rule
            self.recompute.request("head", lambda: work.measure_one(capture, *where))
        self._show_status()

    def on_capture_pane_read_again(self) -> None:
        self._open()

    def on_capture_pane_shape_to_lab(self, message: CapturePane.ShapeToLab) -> None:
        """The lab takes over the shape of a head; what is beyond its bounds is said, not bent."""
        try:
            changed = self.parameters
            for name, value in (("d_k", message.d_k), ("n_keys", message.keys), ("n_queries", message.queries)):
                changed = changed.with_value(name, value)
        except ParameterError as error:
            if self.heads is not None:
                self.heads.show_stale(f"The Lab cannot take this shape over. {error}.")
            return
        self._to_lab(changed)

    def action_turn(self, direction: int) -> None:
        at = self.PANES.index(self.active) + direction
        self.action_pane(self.PANES[at % len(self.PANES)])

    def action_pane(self, name: str) -> None:
        """Show a pane; the others are hidden and paint nothing."""
        self.active = name
        if name == "Capture" and self.heads is None:
            self.heads = CapturePane(self.glyphs)
            self.mount(self.heads, after=self.lab)
            self._open()
        elif name == "Claims" and self.claims is None:
            self.claims = ClaimsPane()
            self.mount(self.claims, after=self.lab)
            self._test_claims()
        panes = self._panes()
        for other, pane in panes.items():
            pane.set_class(other != name, "hidden")
        panes[name].focus()
        self.keys.show(KEYS[name])
        self._show_status()

    def _panes(self) -> dict[str, Lab | CapturePane | ClaimsPane]:
        """The panes that have been opened."""
        panes = {"Lab": self.lab, "Capture": self.heads, "Claims": self.claims}
        return {name: pane for name, pane in panes.items() if pane is not None}

    def action_help(self) -> None:
        """What has the focus, explained, and all keys that work there."""
        from .views.help import ABOUT, help_lines
        from .widgets.help_screen import HelpScreen

        pane = self._panes()[self.active]
        about = None
        if self.lab.panel.has_focus:
            about = self.lab.panel.field
        elif not isinstance(pane, ClaimsPane):
            about = pane.results.table.statistic
        bindings = [b for source in (pane, self) for b in source.BINDINGS if isinstance(b, Binding)]
        keys = [(b.key, b.description) for b in bindings if not b.action.startswith("type(")]
        if pane is self.lab:
            keys.insert(0, ("0-9", "type d_k, or into the field with the cursor"))
        self.push_screen(HelpScreen(lambda width: help_lines(about, ABOUT[self.active], keys, width, self.glyphs)))

    def on_resize(self, event: events.Resize) -> None:
        width, height = event.size
        needs, has = f"{LEAST[0]} x {LEAST[1]}", f"{width} x {height}"
        self.too_small.show(f"attn-tui needs a terminal of {needs}; this one is {has}.")
        self._focus_before = self.focused or self._focus_before
        self.call_after_refresh(self._focus_again)

    def _focus_again(self) -> None:
        """What was hidden for want of room has lost the focus, and with it every key."""
        if self.focused is None and len(self.screen_stack) == 1:
            candidates = (self._focus_before, self._panes()[self.active])
            self.screen.set_focus(next((w for w in candidates if w is not None and w.focusable), None))

    # What the compute thread found

    def on_measurement_ready(self, message: MeasurementReady) -> None:
        measurement, theory = message.measurement, message.theory
        if message.kind == "head":
            if self.heads is not None:
                self.heads.show_head(measurement)
        elif message.kind == "lab" or measurement is self.lab.measurement:
            self.lab.show_measurement(measurement, theory)
            if theory is None:
                self.theorist.request("theory", lambda: self._lab_work.predict(measurement))
        self._show_status()

    def on_progress(self, message: Progress) -> None:
        if message.kind == "lab":
            shown = self.lab.measurement
            if shown is None or shown.subject != self.parameters:
                self.lab.show_stale(f"Computing d_k {self.parameters.d_k}.")
        elif self.heads is not None:
            self.heads.show_stale("Computing this head.")
        if (message.kind == "lab") == (self.active == "Lab"):
            self.top.show(self.active, [progress_line(message.fraction, self.glyphs)])

    def on_capture_opened(self, message: CaptureOpened) -> None:
        capture = self.capture = message.capture
        if self.heads is not None:
            self.heads.show_capture(capture)
        self.recompute.request("map", lambda: work.measure_all(capture))

    def on_map_part(self, message: MapPart) -> None:
        if self.heads is not None:
            self.heads.show_map(message.part)

    def on_claims_pane_again(self) -> None:
        self._test_claims()

    def on_claims_listed(self, message: ClaimsListed) -> None:
        if self.claims is not None:
            self.claims.show_claims(message.claims)

    def on_claim_tested(self, message: ClaimTested) -> None:
        if self.claims is not None:
            self.claims.show_outcome(message.outcome)

    def on_failed(self, message: Failed) -> None:
        if message.kind == "lab":
            self.lab.show_stale(f"{message.reason}.")
        elif self.heads is not None:
            self.heads.show_stale(f"{message.reason}.")
        self._show_status()

    def on_crashed(self, message: Crashed) -> None:
        raise message.error

    def _measure(self) -> None:
        parameters = self.parameters
        self.recompute.request("lab", lambda: self._lab_work.measure(parameters))

    def _test_claims(self) -> None:
        self.tester.request("claims", work.check_claims)

    def _open(self) -> None:
        path, axes = self.path, self.axes
        self.recompute.request("file", lambda: work.open_file(path, axes))

    def _show_status(self) -> None:
        statuses: list[Line] = []
        if self.active == "Lab":
            statuses = parameters_status(self.parameters, self.glyphs)
        elif self.capture is not None:
            statuses = [((self.glyphs.say(self.capture.model or self.capture.path.name), "text"),)]
        self.top.show(self.active, statuses)
