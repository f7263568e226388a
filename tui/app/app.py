"""The app: owns the parameters, the panes and the engine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from textual import events
from textual.actions import ActionParseResult
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.dom import DOMNode
from textual.message import Message
from textual.screen import Screen
from textual.theme import Theme
from textual.widget import Widget

from ...core.field import next_of
from ...core.message import message
from ...core.parameters import Parameters
from ..compute.engine import Engine, EngineError, Notification
from ..language.chosen import AUTO
from ..panes.catalogue import PANES, TABS
from ..panes.pane import Pane
from ..settings.declared import Settings, non_default
from ..terminal import signals, tuning
from ..terminal.paced_app import HEIGHTS, LEAST, WIDTHS, SizedScreen, set_size_classes, size_classes
from ..terminal.reader import Background
from ..terminal.themes import DARK, LIGHT
from ..terminal.typeahead import Input, TypeAheadApp
from ..views.glyphs import UNICODE, Glyphs
from ..views.help import key_word
from ..views.lines import Line, wrapped
from ..widgets.bars import KeyBar, Notice, Paragraph, TopBar
from ..widgets.lines import LinesWidget
from ..widgets.placed import Blank
from .keys import APP_BINDINGS, EVERYWHERE, QUIT, bar_keys
from .undo import AppState, History, restore, state_of

if TYPE_CHECKING:
    from ..views.fields.choice_list import ChoiceList

_SETTLED = 2.0  # seconds after which start-up is complete


@dataclass(eq=False)
class EngineNotification(Message):
    """The engine has a line for the user, or an error that ends the app."""

    notification: Notification


class MainScreen(Blank, SizedScreen, Screen[object]):
    """The screen with the tabs and the pane."""


class AttnApp(TypeAheadApp[int]):
    """attn-tui in a terminal."""

    CSS_PATH = "app.tcss"
    TITLE = "attn-tui"
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    CLICK_CHAIN_TIME_THRESHOLD = -1  # a double click is two clicks: Textual would select everything in the widget
    BINDINGS: ClassVar[list[BindingType]] = [*APP_BINDINGS]

    def __init__(
        self,
        parameters: Parameters,
        engine: Engine,
        *,
        first_pane: str = "Lab",
        given: dict[str, Any] | None = None,
        glyphs: Glyphs = UNICODE,
        settings: Settings | None = None,
        themes: tuple[Theme, ...] = (DARK, LIGHT),
    ) -> None:
        """Start in `first_pane`; `given` holds arguments for panes, by the names in `PaneRow.takes`."""
        super().__init__()
        self.settings = settings or Settings()
        self.parameters = parameters
        self.engine = engine
        self.executor = self.settings.executor  # where long work is done
        self.glyphs = glyphs
        LinesWidget.glyphs = glyphs
        self.ascii_only = glyphs.ascii
        for theme in themes:
            self.register_theme(theme)
        self.follows_background = self.settings.theme == AUTO
        self.usual_theme = DARK.name if self.follows_background else self.settings.theme  # unless another is chosen
        self.theme = self.usual_theme
        self.stylesheet.set_variables(self.get_css_variables())  # before the first parse: they are of this theme
        self.as_left = bool(self.settings.parameters)  # whether the parameters are still the saved ones
        self.keymap = self.settings.keys
        opened = {"whole": self.settings.all_parameters, "statistics": self.settings.all_statistics}
        self._given = opened | (given or {})
        self.panes: dict[str, Pane] = {}  # those opened so far
        self.active = first_pane
        self._last: dict[str, str] = {}  # the pane that each tab showed last
        self._focus_before: Widget | None = None
        self.history = History(AppState(parameters, first_pane, "", self.executor, {}))  # for undo
        self.previewing = False
        self._moused = "", 0.0  # what the mouse did last, and when
        self.greeting = False  # whether the greeting is on screen
        self.greeted = False  # whether to hide it permanently

    def refresh_css(self, animate: bool = True) -> None:
        """Parse the style sheets again if their variables have changed, as they have not when the app starts."""
        if self.get_css_variables() != self.stylesheet._variables:  # pyright: ignore[reportPrivateUsage]
            super().refresh_css(animate)

    def get_default_screen(self) -> Screen[object]:
        return MainScreen(id="_default", classes=" ".join(size_classes(self.size)))

    def compose(self) -> ComposeResult:
        self.top = TopBar()
        self.top.panes = tuple(TABS)
        self.keys = KeyBar()
        self.too_small = Paragraph(id="too-small")
        self.notice = self._notice_on_top = Notice()
        yield self.top
        yield self._opened(self.active)
        yield self.keys
        yield self.too_small
        yield self.notice

    def _opened(self, name: str) -> Pane:
        """Return a pane, created when first opened."""
        if name not in self.panes:
            row = PANES[name]
            self.panes[name] = row.load()(self, **{key: self._given[key] for key in row.takes if key in self._given})
        return self.panes[name]

    def on_load(self) -> None:
        signals.end_on_signals(self)

    def on_mount(self) -> None:
        signals.install(self)
        self.engine.attach(asyncio.get_running_loop(), lambda sent: self.post_message(EngineNotification(sent)))
        if self.settings.keys:
            self.set_keymap(self.settings.keys)
        self.history = History(state_of(self))
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

    @property
    def pane(self) -> Pane:
        """The pane on screen."""
        return self.panes[self.active]

    def changed_settings(self) -> dict[str, Any]:
        """Return the settings that changed, as the file stores them."""
        parameters = self.history.present.parameters if self.previewing else self.parameters
        changed: dict[str, Any] = {"parameters": non_default(parameters)}
        theme = self.settings.theme if self.theme == self.usual_theme else self.theme
        now = {"theme": theme, "executor": self.executor, "hint": self.settings.hint and not self.greeted}
        changed |= {name: value for name, value in now.items() if value != getattr(self.settings, name)}
        return changed | {key: value for pane in self.panes.values() for key, value in pane.saved_settings.items()}

    # Actions

    @property
    def tab(self) -> str:
        """The tab of the pane on screen."""
        return PANES[self.active].tab

    @property
    def view(self) -> tuple[str, str]:
        """The pane on screen, and what the tab calls its view."""
        return self.active, self.pane.view_name or PANES[self.active].views[0]

    def action_turn(self, direction: int) -> None:
        """Show the next or previous tab."""
        self.action_tab(next_of(tuple(TABS), self.tab, direction))

    def action_tab(self, tab: str) -> None:
        """Show a tab, with the pane that it showed last."""
        if tab != self.tab:
            self.action_pane(self._last.get(tab, TABS[tab][0][0]))

    def action_view(self, name: str) -> None:
        """Show the view of this tab with this name."""
        self._show_view(next(view for view in TABS[self.tab] if view[1] == name))

    def next_view(self) -> None:
        if len(views := TABS[self.tab]) > 1:
            self._show_view(next_of(views, self.view))

    action_next_view = next_view

    def _show_view(self, view: tuple[str, str]) -> None:
        pane, name = view
        self.action_pane(pane)
        self.pane.show_view(name)

    def action_pane(self, name: str) -> None:
        """Show a pane, with the focus, and hide the others; what is being typed is committed."""
        if name != self.active and self.pane.is_typing:
            self._note_typing()
        self.show_pane(name)
        self.pane.focus()

    def show_pane(self, name: str) -> None:
        """Show a pane, and hide the others."""
        if name != self.active:
            self.pane.leave()
        pane = self._opened(name)
        if not pane.is_attached:
            self.mount(pane, before=self.keys)
        self.active = self._last[PANES[name].tab] = name
        for other, each in self.panes.items():
            each.set_class(other != name, "hidden")
        pane.follow()
        self.show_keys()
        self.show_status()

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Run an action, and note what it set, so that it can be undone."""
        handled = await super().run_action(action, default_namespace, namespaces)
        self.note(str(action))
        return handled

    def note(self, cause: str, at: float | None = None) -> None:
        """Note what is set now; what is being typed or previewed is noted once it is accepted."""
        if not self.pane.is_typing and not self.previewing:
            self.history = self.history.noted(state_of(self), cause, time.monotonic() if at is None else at)

    def note_mouse(self) -> None:
        """Note what the mouse has set since the last key, as of when it did."""
        self.note(*self._moused)

    def note_shown(self, pane: Pane) -> None:
        """Note what a pane shows now without a step, because no one set it."""
        present = self.history.present
        self.history = self.history.showing(present._replace(panes={**present.panes, pane.NAME: pane.undo_state}))

    def action_undo(self) -> None:
        """Restore what stood before the last change."""
        self._note_typing()
        self._restore(self.history.undone(), message("Nothing to undo."))

    def action_redo(self) -> None:
        """Restore what was undone last."""
        self._note_typing()
        self._restore(self.history.redone(), message("Nothing to redo."))

    def _restore(self, history: History[AppState], otherwise: str) -> None:
        """Restore the present of a history; if it is the app's own, say `otherwise`."""
        if history is self.history:
            self.say(otherwise)
        else:
            restore(self, history.present)
            self.history = history.showing(state_of(self))

    def _note_typing(self) -> None:
        """Commit what is being typed, and note it; the guess of a question is kept as it is."""
        self.pane.leave_field()
        self.history = self.history.noted(state_of(self), "typing", time.monotonic())

    def action_help(self) -> None:
        """Explain what has the focus, and show all keys that work there."""
        from .screens import pane_help

        self.push_screen(pane_help(self.pane, self.BINDINGS, self.settings.keys))

    def action_all_keys(self) -> None:
        """Show every key of every pane, those of this pane first."""
        from .screens import all_keys

        self.push_screen(all_keys(self.pane, self.settings.keys))

    def show_keys(self) -> None:
        """Show the pane's keys, with the user's replacements, in the key bar."""
        bindings = {self.active: self.pane.BINDINGS, EVERYWHERE: self.BINDINGS}
        self.keys.show(bar_keys(self.pane.keys, bindings, self.settings.keys))

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

    def use_executor(self, name: str) -> None:
        """Do long work there from now on, also what the pane on screen waits for."""
        self.executor = self.engine.executor = name
        self.pane.leave()
        self.pane.follow()

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

    def say(self, text: str) -> None:
        """Show a message at the bottom of the screen until the next key."""
        margin: Line = ((" ", "text"),)
        self.show_notice(lambda width: [margin + line for line in wrapped(self.glyphs.say(text), width - 1)])

    def show_notice(self, write: Callable[[int], Sequence[Line]]) -> None:
        """Show a message over the pane, or over the screen that covers it."""
        self._notice_on_top = self.notice
        if len(self.screen_stack) > 1:  # pyright: ignore[reportUnknownMemberType,reportUnknownArgumentType]
            self._notice_on_top = Notice()
            self.screen.mount(self._notice_on_top)
        self._notice_on_top.show(write)

    def alert(self, text: str) -> None:
        """Show a message, ring the bell, and notify the user (OSC 9; terminals that do not know it ignore it)."""
        self.say(text)
        self.bell()
        if self._driver is not None:
            self._driver.write(f"\x1b]9;{''.join(filter(str.isprintable, text))}\x07")

    def choose(self, found: ChoiceList, take: Callable[[Sequence[str]], object]) -> None:
        """Show a list; `take` is called with the values of the chosen rows, and not at all if it is cancelled."""
        from .screens import choose

        choose(self, found, take)

    async def take(self, event: Input) -> None:
        """Hide the message at the bottom of the screen on a key, a paste or a click."""
        if isinstance(event, (events.Key, events.Paste, events.MouseDown)):
            self.greeted |= self.greeting and isinstance(event, events.Key) and event.key == "escape"
            self.greeting = False
            self._notice_on_top.hide()
            self.screen.clear_selection()
        if isinstance(event, events.MouseUp) and self.screen.selections:
            self.screen.suppress_click()  # what was dragged over is copied, and nothing else
        if not isinstance(event, (events.MouseMove, events.MouseUp)):
            self.note_mouse()
        if isinstance(event, (events.MouseDown, events.MouseScrollDown, events.MouseScrollUp)):
            self._moused = f"{type(event).__name__} at {event.y}", time.monotonic()
        await super().take(event)

    # For panes (see Host)

    def change(self, parameters: Parameters) -> None:
        if parameters != self.parameters:
            self.parameters = parameters
            self.as_left = False
            self.pane.follow()
            self.show_status()

    def to_lab(self, parameters: Parameters) -> None:
        self.as_left &= parameters == self.parameters
        self.parameters = parameters
        self.action_pane("Lab")

    def to_pane(self, name: str, item: Any = None) -> None:
        self.action_pane(name)
        if item is not None:
            self.pane.show_item(item)

    def show_status(self) -> None:
        names = tuple(name for _, name in TABS[self.tab] if name)
        self.top.active, self.top.statuses, self.top.views = self.tab, self.pane.statuses(), (names, self.view[1])

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
