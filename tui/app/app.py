"""The app in a terminal: how it starts, what its keys do, and what the mouse and the terminal tell it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.screen import Screen

from ...core.message import message
from ..compute.engine import EngineError, Notification
from ..settings.declared import non_default
from ..terminal import signals, tuning
from ..terminal.paced_app import HEIGHTS, LEAST, WIDTHS, SizedScreen, set_size_classes, size_classes
from ..terminal.reader import Background
from ..terminal.themes import DARK, LIGHT
from ..views.help import key_word
from ..widgets.placed import Blank
from .keys import APP_BINDINGS, QUIT
from .paned_app import PanedApp
from .undo import History

_SETTLED = 2.0  # seconds after which start-up is complete


@dataclass(eq=False)
class EngineNotification(Message):
    """The engine has a line for the user, or an error that ends the app."""

    notification: Notification


class MainScreen(Blank, SizedScreen, Screen[object]):
    """The screen with the tabs and the pane."""


class AttnApp(PanedApp):
    """attn-tui in a terminal."""

    CSS_PATH = "app.tcss"
    TITLE = "attn-tui"
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    CLICK_CHAIN_TIME_THRESHOLD = -1  # a double click is two clicks: Textual would select everything in the widget
    BINDINGS: ClassVar[list[BindingType]] = [*APP_BINDINGS]

    def refresh_css(self, animate: bool = True) -> None:
        """Parse the style sheets again if their variables have changed, as they have not when the app starts."""
        if self.get_css_variables() != self.stylesheet._variables:  # pyright: ignore[reportPrivateUsage]
            super().refresh_css(animate)

    def get_default_screen(self) -> Screen[object]:
        return MainScreen(id="_default", classes=" ".join(size_classes(self.size)))

    def on_load(self) -> None:
        signals.end_on_signals(self)

    def on_mount(self) -> None:
        signals.install(self)
        self.engine.attach(asyncio.get_running_loop(), lambda sent: self.post_message(EngineNotification(sent)))
        if self.settings.keys:
            self.set_keymap(self.settings.keys)
        self.history = History(self.state)
        self.show_keys()
        self.pane.follow()
        self.pane.focus()
        self.show_status()
        if self.active == "Lab" and self.settings.hint and self.settings.path is not None:  # where it can be hidden
            from ..views.notice import GREETING

            self.greeting = True
            self.say(GREETING)

    def on_ready(self) -> None:
        self.set_timer(_SETTLED, tuning.resume_collector)

    def on_background(self, event: Background) -> None:
        """Take the theme for the terminal's background, unless another is chosen."""
        if self.follows_background:
            before, self.usual_theme = self.usual_theme, (LIGHT if event.light else DARK).name
            self.theme = self.usual_theme if self.theme == before else self.theme

    def changed_settings(self) -> dict[str, Any]:
        """Return the settings that changed, as the file stores them."""
        parameters = self.history.present.parameters if self.previewing else self.parameters
        changed: dict[str, Any] = {"parameters": non_default(parameters)}
        theme = self.settings.theme if self.theme == self.usual_theme else self.theme
        now = {"theme": theme, "executor": self.executor, "hint": self.settings.hint and not self.greeted}
        changed |= {name: value for name, value in now.items() if value != getattr(self.settings, name)}
        return changed | {key: value for pane in self.panes.values() for key, value in pane.saved_settings.items()}

    # Actions

    def action_help(self) -> None:
        """Explain what has the focus, and show the keys of the key bar."""
        from .screens import pane_help

        self.push_screen(pane_help(self.pane, self.keys.keys))

    def action_all_keys(self) -> None:
        """Show every key of every pane, those of this pane first."""
        from .screens import all_keys

        self.push_screen(all_keys(self.pane, self.settings.keys))

    def action_command_palette(self) -> None:
        """Show the command palette, unless it is already open."""
        from .palette import open_palette

        open_palette(self)

    def search_themes(self) -> None:
        """Show the list of themes."""
        from .screens import choose_theme

        choose_theme(self)

    def action_suspend_process(self) -> None:
        """Stop, and go on where the shell continues the app."""
        if self.is_headless or not signals.suspend():
            self.say(message("No shell can continue the app, so it was not suspended."))

    def action_help_quit(self) -> None:
        """Say which key quits; Ctrl+C does not, as many copy with it."""
        self.say(message("{key} quits.", key=key_word(self.settings.keys.get("quit", QUIT[0]))))

    def action_executor(self) -> None:
        """Choose where long work is done."""
        from .screens import choose_executor

        choose_executor(self)

    async def action_export(self) -> None:
        """Ask for a file and write the pane to it."""
        from .export_screen import ExportScreen

        await self.pane.complete()
        self.push_screen(ExportScreen(self.pane), lambda written: self.say(written) if written else None)

    async def action_copy(self, what: Literal["command", "code"] = "command") -> None:
        """Copy the command or the code that prints what is on screen."""
        from .screens import copy_command, show_code

        if what == "code":
            await self.pane.complete()
        (copy_command if what == "command" else show_code)(self)

    def on_text_selected(self) -> None:
        """Copy the text that was selected with the mouse."""
        from .screens import copy_selection

        copy_selection(self)

    def on_engine_notification(self, message: EngineNotification) -> None:
        if isinstance(message.notification, EngineError):
            raise message.notification
        self.say(message.notification)

    def on_resize(self, event: events.Resize) -> None:
        for screen in self.screen_stack:  # pyright: ignore[reportUnknownMemberType]
            set_size_classes(screen, event.size)
        sizes = {name: f"{wide}x{high}" for name, (wide, high) in (("actual", event.size), ("needed", LEAST))}
        self.too_small.show(message("Too small: {actual}. attn-tui needs {needed}.", **sizes))
        self._focus_before = self.focused or self._focus_before
        self.call_after_refresh(self._focus_again)

    def _focus_again(self) -> None:
        """Restore the focus, without which no key works, if its widget was hidden on a small screen."""
        if self.focused is None and len(self.screen_stack) == 1:
            candidates = (self._focus_before, self.pane)
            self.screen.set_focus(next((w for w in candidates if w is not None and w.focusable), None))
