"""The app as its panes and lists know it: what is set, the pane on screen, undo, and what is said."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textual import events
from textual.actions import ActionParseResult
from textual.app import ComposeResult
from textual.dom import DOMNode
from textual.theme import Theme
from textual.widget import Widget

from ...core.field import next_of
from ...core.message import message
from ...core.parameters import Parameters
from ..compute.engine import Engine
from ..language.chosen import AUTO
from ..panes.catalogue import PANES, TABS
from ..panes.pane import Pane
from ..settings.declared import Settings
from ..terminal.themes import DARK, LIGHT
from ..terminal.typeahead import Input, TypeAheadApp
from ..views.glyphs import UNICODE, Glyphs
from ..views.lines import Line, wrapped
from ..widgets.bars import KeyBar, Notice, Paragraph, TopBar
from ..widgets.lines import LinesWidget
from .keys import EVERYWHERE, bar_keys
from .undo import AppState, History

if TYPE_CHECKING:
    from ..views.fields.choice_list import ChoiceList


class PanedApp(TypeAheadApp[int]):
    """An app with panes in tabs, whose changes can be undone."""

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

    @property
    def pane(self) -> Pane:
        """The pane on screen."""
        return self.panes[self.active]

    @property
    def tab(self) -> str:
        """The tab of the pane on screen."""
        return PANES[self.active].tab

    @property
    def view(self) -> tuple[str, str]:
        """The pane on screen, and what the tab calls its view."""
        return self.active, self.pane.view_name or PANES[self.active].views[0]

    # Tabs, views and panes

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

    def to_lab(self, parameters: Parameters) -> None:
        self.as_left &= parameters == self.parameters
        self.parameters = parameters
        self.action_pane("Lab")

    def to_pane(self, name: str, item: Any = None) -> None:
        self.action_pane(name)
        if item is not None:
            self.pane.show_item(item)

    def change(self, parameters: Parameters) -> None:
        if parameters != self.parameters:
            self.parameters = parameters
            self.as_left = False
            self.pane.follow()
            self.show_status()

    def show_status(self) -> None:
        names = tuple(name for _, name in TABS[self.tab] if name)
        self.top.active, self.top.statuses, self.top.views = self.tab, self.pane.statuses(), (names, self.view[1])

    def show_keys(self) -> None:
        """Show the pane's keys, with the user's replacements, in the key bar."""
        bindings = {self.active: self.pane.BINDINGS, EVERYWHERE: self.BINDINGS}
        self.keys.show(bar_keys(self.pane.keys, bindings, self.settings.keys))

    def use_executor(self, name: str) -> None:
        """Do long work there from now on, also what the pane on screen waits for."""
        self.executor = self.engine.executor = name
        self.pane.leave()
        self.pane.follow()

    # Undo

    @property
    def state(self) -> AppState:
        """What is set now."""
        states = {name: pane.undo_state for name, pane in self.panes.items()}
        theme = "" if self.theme == self.usual_theme else self.theme
        return AppState(self.parameters, self.active, theme, self.executor, states)

    def set_state(self, past: AppState) -> None:
        """Set what was set, and show the pane that was on screen; leave the focus where it is."""
        for name, state in past.panes.items():
            if state != self.panes[name].undo_state:
                self.panes[name].restore_state(state)
        self.parameters, self.theme = past.parameters, past.theme or self.usual_theme
        if past.executor != self.executor:
            self.use_executor(past.executor)
        self.show_pane(past.active)

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
            self.history = self.history.noted(self.state, cause, time.monotonic() if at is None else at)

    def note_mouse(self) -> None:
        """Note what the mouse has set since the last key, as of when it did."""
        self.note(*self._moused)

    def note_shown(self, pane: Pane) -> None:
        """Note what a pane shows now without a step, because no one set it."""
        present = self.history.present
        self.history = self.history.showing(present._replace(panes={**present.panes, pane.NAME: pane.undo_state}))

    def _note_typing(self) -> None:
        """Commit what is being typed, and note it; the guess of a question is kept as it is."""
        self.pane.leave_field()
        self.history = self.history.noted(self.state, "typing", time.monotonic())

    def action_undo(self) -> None:
        """Restore what stood before the last change."""
        self._note_typing()
        self._restore(self.history.undone(), message("Nothing to undo."))

    def action_redo(self) -> None:
        """Restore what was undone last."""
        self._note_typing()
        self._restore(self.history.redone(), message("Nothing to redo."))

    def _restore(self, history: History[AppState], otherwise: str) -> None:
        """Restore the present of a history, with the focus; if it is the app's own, say `otherwise`."""
        if history is self.history:
            self.say(otherwise)
            return
        moved = history.present.active != self.active
        self.set_state(history.present)
        focused = self.screen.focused
        if moved or focused is None or not focused.focusable:
            self.screen.set_focus(self.pane)  # the pane itself, not a field, where the next `u` would be typed
        self.history = history.showing(self.state)

    # What is shown over a pane

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

    def choose(self, choices: ChoiceList, take: Callable[[Sequence[str]], object]) -> None:
        """Show a list; `take` is called with the values of the chosen rows, and not at all if it is cancelled.

        Of a live list, it is also called while the cursor moves; what was set before is restored first.
        """
        from ..widgets.picker import ChoiceScreen

        self.pane.leave_field()
        self.note("typing")
        before, as_left = self.state, self.as_left

        def restored() -> None:
            if self.state != before:
                self.set_state(before)

        def preview(values: Sequence[str]) -> None:
            restored()
            if values:
                take(values)

        def chosen(done: ChoiceList | None) -> None:
            if choices.live:
                restored()
                self.as_left, self.previewing = as_left, False
            if done is not None:
                self.note_mouse()
                take(done.values)
                self.note(message("choose {title}", title=choices.title))

        self.previewing = choices.live
        self.push_screen(ChoiceScreen(choices, preview), chosen)

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
