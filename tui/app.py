"""The app: owns the parameters and the panes, and hands on what panes want of each other."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.filter import LineFilter, Monochrome, NoColor
from textual.geometry import Size
from textual.screen import Screen
from textual.theme import Theme
from textual.widget import Widget

from ..core.errors import InputError
from ..core.parameters import Parameters
from . import lifelines
from .frugal import FrugalScreen
from .messages import ParametersChanged, ToLab
from .pacing import PacedApp
from .panes.catalogue import PANES
from .panes.lab import Lab
from .panes.pane import Pane
from .second_process import SecondProcess
from .settings import Settings, unusual
from .themes import DARK, LIGHT
from .views.glyphs import UNICODE, Glyphs
from .views.keys import rekeyed
from .views.lines import Line, wrapped
from .widgets.bars import KeyBar, Paragraph, TopBar
from .widgets.ground import Ground
from .widgets.lines import LinesWidget
from .widgets.notice import Notice

LEAST = (40, 12)  # columns and lines
NEXT_PANE = (">", "next pane")  # in the bar of every pane, and after it
TAKE_AWAY = (("e", "export"), ("y", "copy command"))
WIDTHS = [(0, "-thin"), (LEAST[0], "-narrow"), (100, "-wide")]
HEIGHTS = [(0, "-flat"), (LEAST[1], "-high")]

_SETTLED = 2.0  # seconds after which whatever starting makes has been made


def _actions() -> type[Provider]:
    """Loaded when the command palette is opened."""
    from .palette import Actions

    return Actions


class AttnApp(PacedApp[int]):
    """attn-tui in a terminal."""

    CSS_PATH = "app.tcss"
    TITLE = "attn-tui"
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_actions}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit", show=False, id="quit"),
        Binding("question_mark,f1", "help", "help", show=False, id="help"),
        Binding("K", "all_keys", "all keys", show=False, id="all_keys"),
        Binding("ctrl+p", "command_palette", "every action, by its words", show=False, priority=True, id="palette"),
        Binding("e", "export", "export the picture or the numbers to a file", show=False, id="export"),
        Binding("y", "copy", "copy the command that prints these numbers", show=False, id="copy"),
        Binding("greater_than_sign", "turn(1)", "next pane", show=False, id="next_pane"),
        Binding("less_than_sign", "turn(-1)", "previous pane", show=False, id="previous_pane"),
        *(Binding(str(number), f"pane('{name}')", name, show=False) for number, name in enumerate(PANES, start=1)),
    ]

    def __init__(
        self,
        parameters: Parameters,
        capture: Path | None = None,
        axes: str | None = None,
        glyphs: Glyphs = UNICODE,
        settings: Settings | None = None,
        themes: tuple[Theme, ...] = (DARK, LIGHT),
        second: SecondProcess | None = None,
    ) -> None:
        super().__init__()
        self.settings = settings or Settings()
        self.parameters = parameters
        self.glyphs = glyphs
        LinesWidget.glyphs = glyphs
        self.ascii_only = glyphs.ascii
        for theme in themes:
            self.register_theme(theme)
        self.begin_in(self.settings.theme)
        self.first_pane = "Lab" if capture is None else "Capture"
        self.lab = Lab(parameters, glyphs, second)
        self.lab.as_left = bool(self.settings.parameters)
        self.panes: dict[str, Pane] = {"Lab": self.lab}  # those that have been opened
        self.active = "Lab"
        self._given: dict[str, dict[str, Any]] = {"Capture": {"path": capture, "axes": axes}}
        self._focus_before: Widget | None = None
        self.greeting = False  # whether the greeting is on screen
        self.greeted = False  # whether it is not to be said again

    def begin_in(self, theme: str) -> None:
        """Take a theme before the first frame; to set `theme` then would have all CSS parsed twice."""
        chosen = self.available_themes[theme]
        if chosen.ansi:
            self.theme = theme
            return
        self.set_reactive(AttnApp.theme, theme)
        self.set_class(chosen.dark, "-dark-mode", update=False)
        self.set_class(not chosen.dark, "-light-mode", update=False)
        self.stylesheet.set_variables(self.get_css_variables())

    def get_line_filters(self) -> Sequence[LineFilter]:
        """NO_COLOR makes greys of colours; of the terminal's own it would make black alone, so they are left out."""
        filters = super().get_line_filters()
        if self.no_color and self.native_ansi_color:
            return [NoColor() if isinstance(each, Monochrome) else each for each in filters]
        return filters

    def get_default_screen(self) -> Screen[object]:
        screen = _Backdrop(id="_default")
        self._suit(screen, self.size)
        return screen

    def _suit(self, screen: Screen[Any], size: Size) -> None:
        """Give the screen the classes for its size; Textual does so only after it has shown a frame without them."""
        for cells, breakpoints in zip(size, (WIDTHS, HEIGHTS), strict=True):
            chosen = max(point for point in breakpoints if cells >= point[0])
            for point in breakpoints:
                screen.set_class(point == chosen, point[1])

    def compose(self) -> ComposeResult:
        self.top = TopBar()
        self.top.panes = tuple(PANES)
        self.keys = KeyBar()
        self.too_small = Paragraph(id="too-small")
        self.notice = Notice()
        yield self.top
        yield self.lab
        yield self.keys
        yield self.too_small
        yield self.notice

    def on_mount(self) -> None:
        lifelines.install(self)
        if self.settings.keys:
            self.set_keymap(self.settings.keys)
        self._show_keys()
        self.lab.focus()
        self.on_status_changed()
        if self.settings.hint and self.settings.path is not None:  # only where it can be sent away for good
            from .views.notice import GREETING

            self.greeting = True
            self.say(GREETING)

    def on_ready(self) -> None:
        """The first frame stands: now load NumPy and measure, away from the keyboard."""
        # What threads compute is many short calls; by default each may wait five milliseconds for the screen.
        sys.setswitchinterval(0.000_3)
        self.lab.shown()
        self.lab.start()
        if not gc.isenabled():
            self.set_timer(_SETTLED, _collect_garbage)
        if self.first_pane != "Lab":
            self.action_pane(self.first_pane)

    @property
    def pane(self) -> Pane:
        """The one on screen."""
        return self.panes[self.active]

    def lasting(self) -> dict[str, Any]:
        """The settings that have become others, as the file keeps them."""
        changed: dict[str, Any] = {"parameters": unusual(self.parameters)}
        if self.theme != self.settings.theme:
            changed["theme"] = self.theme
        if self.greeted:
            changed["hint"] = False
        return changed

    # What people do

    def action_turn(self, direction: int) -> None:
        names = tuple(PANES)
        self.action_pane(names[(names.index(self.active) + direction) % len(names)])

    def action_pane(self, name: str) -> None:
        """Show a pane; the others are hidden and paint nothing."""
        if name not in self.panes:
            pane = self.panes[name] = PANES[name]()(self.parameters, self.glyphs, **self._given.get(name, {}))
            self.mount(pane, after=self.lab)
            self.call_after_refresh(pane.start)
        self.active = name
        for other, pane in self.panes.items():
            pane.set_class(other != name, "hidden")
        self.pane.follow(self.parameters)
        self.pane.shown()
        self.pane.focus()
        self._show_keys()
        self.on_status_changed()

    def action_help(self) -> None:
        """What has the focus, explained, and all keys that work there."""
        from .commands import EVERYWHERE, commands, help_keys
        from .views.help import ABOUT, help_lines
        from .widgets.help_screen import HelpScreen

        topic, about = self.pane.topic, ABOUT[self.active]
        found = commands({self.active: self.pane.BINDINGS, EVERYWHERE: self.BINDINGS})
        keys = [key for group in help_keys(found, self.settings.keys).values() for key in group]
        self.push_screen(HelpScreen(lambda width: help_lines(topic, about, keys, width, self.glyphs)))

    def action_all_keys(self) -> None:
        """Every key of every pane, this one's first."""
        from .commands import all_commands, help_keys
        from .remember import config_file
        from .views.help import key_overview
        from .widgets.help_screen import HelpScreen

        groups = help_keys(all_commands(self.BINDINGS), self.settings.keys)
        first = {self.active: groups.pop(self.active)}
        path = str(config_file())
        self.push_screen(HelpScreen(lambda width: key_overview(first | groups, path, width, self.glyphs)))

    def _show_keys(self) -> None:
        """The pane's keys at the bottom, as they are now."""
        keys = self.pane.KEYS
        at = keys.index(NEXT_PANE) + 1 if NEXT_PANE in keys else len(keys)
        keys = (*keys[:at], *TAKE_AWAY, *keys[at:])
        if self.settings.keys:
            from .commands import EVERYWHERE, commands, other_words

            found = commands({self.active: self.pane.BINDINGS, EVERYWHERE: self.BINDINGS})
            keys = rekeyed(keys, other_words(found, self.settings.keys))
        self.keys.show(keys)

    def action_export(self) -> None:
        """Ask for a file and write the pane into it."""
        from .widgets.export_screen import ExportScreen

        self.push_screen(ExportScreen(self.pane), lambda written: self.say(written) if written else None)

    def action_copy(self) -> None:
        """Copy the command for what is on screen, and show it, since a terminal may refuse the clipboard."""
        from .views.notice import copied_lines

        try:
            command = self.pane.command()
        except InputError as error:
            self.say(str(error))
        else:
            self.copy_to_clipboard(command)
            self.notice.show(lambda width: copied_lines(command, width, self.glyphs))

    def say(self, text: str) -> None:
        """Show this at the foot of the screen, until the next key."""
        margin: Line = ((" ", "text"),)
        self.notice.show(lambda width: [margin + line for line in wrapped(self.glyphs.say(text), width - 1)])

    async def on_event(self, event: events.Event) -> None:
        """A key, or whatever else comes from a person, takes away what was said at the foot of the screen."""
        if isinstance(event, (events.Key, events.Paste, events.MouseDown)) and not event.is_forwarded:
            self.greeted |= self.greeting and isinstance(event, events.Key) and event.key == "escape"
            self.greeting = False
            self.notice.hide()
        await super().on_event(event)

    # What panes want of each other

    def on_parameters_changed(self, message: ParametersChanged) -> None:
        self.parameters = message.parameters
        if message.by != self.active:
            self.pane.follow(self.parameters)
        self.on_status_changed()

    def on_to_lab(self, message: ToLab) -> None:
        self.parameters = message.parameters
        self.action_pane("Lab")

    def on_status_changed(self) -> None:
        self.top.show(self.active, self.pane.statuses())

    def on_resize(self, event: events.Resize) -> None:
        width, height = event.size
        self._suit(self.screen_stack[0], event.size)  # pyright: ignore[reportUnknownMemberType]
        needs, has = f"{LEAST[0]} x {LEAST[1]}", f"{width} x {height}"
        self.too_small.show(f"attn-tui needs {needs}, not {has}.")
        self._focus_before = self.focused or self._focus_before
        self.call_after_refresh(self._focus_again)

    def _focus_again(self) -> None:
        """What was hidden for want of room has lost the focus, and with it every key."""
        if self.focused is None and len(self.screen_stack) == 1:
            candidates = (self._focus_before, self.pane)
            self.screen.set_focus(next((w for w in candidates if w is not None and w.focusable), None))


class _Backdrop(FrugalScreen[object], Ground):
    """The screen that panes stand on.

    A screen first: Textual takes component classes, such as that of selected text, from the first base alone.
    """


def _collect_garbage() -> None:
    """From here on; what starting has made stays, and need not be looked over again."""
    gc.freeze()
    gc.set_threshold(100_000, 10, 10)  # a key leaves hundreds of objects, hardly any of them in cycles
    gc.enable()
