"""An app that delays frames while its terminal has not caught up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from textual.driver import Driver
from textual.filter import LineFilter, Monochrome, NoColor
from textual.geometry import Size
from textual.timer import Timer

from .diff_screen import DiffApp
from .pacing import Pacing

if TYPE_CHECKING:
    from textual.map_geometry import MapGeometry
    from textual.screen import Screen
    from textual.widget import Widget

    AnyScreen = Screen[Any]
else:
    AnyScreen = object  # not a widget: a screen inherits the CSS of its first base that is one

LEAST = (40, 12)  # columns and lines
WIDTHS = [(0, "-thin"), (LEAST[0], "-narrow"), (60, "-medium"), (80, "-paired"), (100, "-wide")]
HEIGHTS = [(0, "-flat"), (LEAST[1], "-low"), (18, "-middle"), (28, "-high")]


def size_classes(size: Size) -> list[str]:
    """Return the two classes of a screen of this size."""
    return [
        max(point for point in breakpoints if cells >= point[0])[1]
        for cells, breakpoints in zip(size, (WIDTHS, HEIGHTS), strict=True)
    ]


def set_size_classes(screen: Screen[Any], size: Size) -> None:
    """Set the classes of a screen of this size; Textual itself does so only after the first frame."""
    chosen = size_classes(size)
    for _, name in (*WIDTHS, *HEIGHTS):
        screen.set_class(name in chosen, name)


class SizedScreen(AnyScreen):
    """A screen that takes only the terminal's newest size, and whose widgets all learn their own.

    Textual tells a screen its size after each layout. Of two sizes on their way, each would bring back the other,
    without end: a terminal that is resized twice while the app is busy would never be painted again.

    Where a widget is asked for its size while a new one waits for its layout, Textual arranges all of them on the
    spot, and then takes the new one for an old one, which gets no Resize (Textual issue 5024).
    """

    def _screen_resized(self, size: Size) -> None:
        if size == self.app.size:  # pyright: ignore[reportUnknownMemberType]
            super()._screen_resized(size)

    def find_widget(self, widget: Widget) -> MapGeometry:
        """Return where the last layout placed a widget; raises NoWidget for one that is not in it."""
        compositor: Any = self._compositor
        if compositor._visible_map is None:  # else it has scrolled since
            compositor._full_map_invalidated = False
        return super().find_widget(widget)


ReturnType = TypeVar("ReturnType")
EXPECTED = 0.05  # seconds that a frame waits for an answer
_DUE = 0.04  # seconds within which the screen, refreshed 60 times a second, paints a frame that no longer waits


class PacedApp(DiffApp[ReturnType], Generic[ReturnType]):
    """An app that delays frames while its terminal has not caught up."""

    pacing: Pacing | None = None  # set by a driver that reads replies
    ascii_only: bool = False  # whether everything is sent in ASCII, including what Textual draws
    follows_background: bool = False  # whether to ask for the colour of the terminal's background
    last_frame = 0.0  # when it was sent
    _batch: ExitStack | None = None  # while frames are delayed
    _released = 0.0  # when frames were delayed no longer
    _timer: Timer | None = None
    _expected: asyncio.TimerHandle | None = None  # ends the wait for an answer

    @property
    def changes_soon(self) -> bool:
        """Whether the next frame should show what is about to change."""
        return self._expected is not None

    def expect_answer(self) -> None:
        """Let the next frame wait a moment for an answer, so that a key and what it changes are one frame.

        If the last answer is not painted yet, it does not wait: under a fast key no frame would come in between.
        """
        overdue = self.last_frame < self._released > time.monotonic() - _DUE
        if self._expected is None and not overdue:
            self._expected = asyncio.get_running_loop().call_later(EXPECTED, self.show_answer)
            self.delay_or_paint()

    def show_answer(self) -> None:
        """Paint the next frame, whether or not the answer is there."""
        if self._expected is not None:
            self._expected.cancel()
            self._expected = None
            self.delay_or_paint()

    def after_frame(self, sent: str) -> str:
        self.last_frame = time.monotonic()
        if self.pacing is None:
            return ""
        query = self.pacing.query(len(sent))
        self.delay_or_paint()
        return query

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the line filters; under NO_COLOR, the terminal's own colours are dropped, as grey would be black."""
        filters = super().get_line_filters()
        if self.no_color and self.native_ansi_color:
            return [NoColor() if isinstance(line_filter, Monochrome) else line_filter for line_filter in filters]
        return filters

    def get_driver_class(self) -> type[Driver]:
        """Return the driver that reads replies, if it supports this platform and this version of Textual."""
        usual = super().get_driver_class()
        try:
            from .driver import SUPPORTED, LinuxDriver, TerminalDriver
        except ImportError:
            return usual
        return TerminalDriver if SUPPORTED and usual is LinuxDriver else usual

    def forget_screen(self) -> None:
        super().forget_screen()
        if self.pacing is not None:
            self.pacing.reset()
        self.delay_or_paint()

    def caught_up(self) -> None:
        """Note that the terminal has replied; may be called from any thread."""
        self.call_later(self.delay_or_paint)

    def delay_or_paint(self) -> None:
        """Delay frames while the terminal is busy, or the state changes soon; after that, paint the newest state."""
        wait = 0.0 if self.pacing is None else self.pacing.delay()
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if wait > 0:
            self._timer = self.set_timer(wait, self.delay_or_paint)
        if wait > 0 or self.changes_soon:
            if self._batch is None:
                self._batch = ExitStack()
                self._batch.enter_context(self.batch_update())
        elif self._batch is not None:
            self._batch.close()
            self._batch, self._released = None, time.monotonic()
            if not self.is_running:  # it is closing
                return
            if self.all_sent():
                self.screen.check_idle()  # paints what has changed
            else:  # the layout changed in the meantime
                self.screen.refresh()
