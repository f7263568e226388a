"""What every page of the app is: keys, a thread of its own for what it computes, the parameters it follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual.containers import Container

from ...core.errors import InputError
from ...core.parameters import Field, Parameters
from ...core.statistics.catalogue import Statistic
from ..messages import Computed, Crashed, Progress, StatusChanged
from ..pacing import PacedApp
from ..recompute import Recompute, Work
from ..views.bars import Key, parameters_status, progress_status
from ..views.glyphs import Glyphs
from ..views.lines import Line
from ..widgets.ground import Ground
from ..work import nothing

if TYPE_CHECKING:
    from ...core.export.formats import Format


SOON = 0.08  # seconds in which the result of a key may come in one frame with the key itself


class Pane(Ground, Container, can_focus=True):
    """One page of the app.

    What it asks `compute` for comes back to it as messages; what it wants of others it says with the app's
    messages: ParametersChanged, ToLab, StatusChanged.
    """

    NAME: ClassVar[str]  # as the bar at the top shows it
    KEYS: ClassVar[tuple[Key, ...]]  # as the bar at the bottom shows them, the first ones first
    WORK: ClassVar[tuple[str, ...]] = ()  # kinds of work that it asks for, the more urgent first

    def __init__(self, parameters: Parameters, glyphs: Glyphs) -> None:
        super().__init__(classes="pane")
        self.parameters = parameters
        self.glyphs = glyphs
        self.progress: float | None = None  # of a long computation, 0 to 1
        self._wanted: dict[str, Callable[[], Work]] = {}  # what was asked for last, by its kind
        self.recompute = Recompute(self.WORK, lambda message: self.deliver(message))

    # What the app tells it

    def start(self) -> None:
        """The first frame stands: begin to compute, what has been requested so far first."""
        self.recompute.start()

    def follow(self, parameters: Parameters) -> None:
        """These are the parameters now, by somebody else's doing; only the visible pane is told."""
        self.parameters = parameters

    def shown(self) -> None:
        """It has come on screen, for the first time or again: ask for what is missing."""

    def statuses(self) -> Sequence[Line]:
        """What stands at the right of the top bar, in forms from long to short."""
        if self.progress is not None:
            # The result may be far behind a held key.
            return progress_status(self.progress, self.glyphs, f"d_k {self.parameters.d_k}")
        return parameters_status(self.parameters, self.glyphs)

    @property
    def topic(self) -> Field | Statistic | None:
        """What the help explains before everything else."""
        return None

    def compute(self, kind: str, asked: Callable[[], Work], soon: bool = False) -> None:
        """Have this computed, in place of what is waiting of its kind.

        A result that is to come soon is waited for, so that one frame shows it with what it was asked for. Otherwise
        the thread is told after the next frame: it would take time from painting what has been asked for.
        """
        paced = self._paced if soon else None
        if paced is not None:
            paced.expect(SOON)
            self.compute_now(kind, asked)
        else:
            self.has_come()
            self._wanted[kind] = asked
            self.call_after_refresh(self._request, kind, asked)

    def compute_now(self, kind: str, asked: Callable[[], Work]) -> None:
        """Have this computed; neither does that wait for a frame, nor a frame for that."""
        self._wanted[kind] = asked
        self.recompute.request(kind, asked)

    def _request(self, kind: str, asked: Callable[[], Work]) -> None:
        if self._wanted.get(kind) is asked:  # and not something newer, which may have been requested at once
            self.recompute.request(kind, asked)

    def drop(self, kind: str) -> None:
        """Nothing of this kind is wanted any more."""
        self._wanted.pop(kind, None)
        self.recompute.request(kind, nothing)

    def has_come(self) -> None:
        """What was to come soon is on screen, or is no longer waited for."""
        if self._paced is not None:
            self._paced.expect_no_more()

    @property
    def _paced(self) -> PacedApp[object] | None:
        """The app, where it is one that can wait."""
        app: object = self.app  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return cast("PacedApp[object]", app) if isinstance(app, PacedApp) else None

    # What people take away from it

    def numbers(self, kind: Format) -> str:
        """The numbers on screen, exactly as the pane's command prints them in this format.

        Raises InputError, with a sentence that says why, where what is on screen is not what is asked for, or where
        there are no numbers yet. Called on the app's thread: it only spells results that are at hand.
        """
        raise InputError(f"The {self.NAME} pane has no numbers to export.")

    def command(self) -> str:
        """The line for a shell that prints these numbers; raises InputError where there is none."""
        raise InputError(f"No command prints what the {self.NAME} pane shows.")

    @property
    def file_name(self) -> str:
        """What a file of it is called, without its ending: what is shown in a word or two, such as lab-d64."""
        return self.NAME.lower()

    @property
    def files_read(self) -> Sequence[Path]:
        """Files that its numbers come from; none of them is written over."""
        return ()

    # What its thread found

    def deliver(self, message: Computed) -> None:
        """Bring a message over from the compute thread."""
        if self.is_running:
            self.post_message(message)

    def on_crashed(self, message: Crashed) -> None:
        raise message.error

    def on_progress(self, message: Progress) -> None:
        self.say_progress(message.fraction)

    def say_progress(self, fraction: float | None) -> None:
        """Show how far a long computation is; with None, that none is running."""
        if fraction != self.progress:
            self.progress = fraction
            self.post_message(StatusChanged().set_sender(self))

    def on_unmount(self) -> None:
        self.recompute.stop()
