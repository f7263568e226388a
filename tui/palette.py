"""The command palette: all commands that have keys, in words."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Protocol, cast

from textual import events, on
from textual.command import Command as ListedCommand
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.errors import NoWidget
from textual.geometry import Region
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from .keymap import EVERYWHERE, Command, all_commands, with_keys
from .panes.catalogue import PANES
from .panes.pane import Pane
from .settings.declared import Settings
from .views.glyphs import Glyphs
from .views.keys import key_word
from .widgets.modal import Modal

_OVER_ALL = ("quit", "theme")  # what makes sense while a form or the help covers the pane


class OfferingApp(Protocol):
    """What the palette needs of the app."""

    active: str
    glyphs: Glyphs
    settings: Settings

    @property
    def pane(self) -> Pane:
        """The pane on screen."""
        ...

    def action_pane(self, name: str) -> None:
        """Show a pane."""
        ...

    async def run_action(self, action: str, default_namespace: Any) -> bool:
        """Run an action of the app or of a pane."""
        ...

    def call_after_refresh(self, callback: Any, *args: Any) -> bool:
        """Call a function after the next frame."""
        ...


class Palette(Modal, CommandPalette):
    """The command palette. It runs a chosen command once, and accepts keys before its list is laid out."""

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":  # now, instead of by several messages: the next key may move the cursor, or cancel
            event.stop()
            event.prevent_default()
            self._choose(self.query_one(CommandList).highlighted_option)

    @on(OptionList.OptionSelected)
    def choose_clicked(self, message: OptionList.OptionSelected) -> None:
        message.stop()
        message.prevent_default()
        self._choose(message.option)

    def _choose(self, option: Option | None) -> None:
        """Close the palette and run the command of an option."""
        if self.on_top and isinstance(option, ListedCommand):
            self.dismiss()
            self.app.call_later(option.hit.command)  # pyright: ignore[reportUnknownMemberType]

    @on(Input.Changed)
    def ignore_if_closed(self, message: Input.Changed) -> None:
        """Start no search after the palette was closed."""
        if not self.on_top:
            message.stop()
            message.prevent_default()

    def get_widget_at(self, x: int, y: int) -> tuple[Widget, Region]:
        """Return the widget at a place; a click before the screen became smaller is beside the palette."""
        try:
            return super().get_widget_at(x, y)
        except NoWidget:
            return self, self.region

    def _action_command_list(self, action: str) -> None:
        laid_out = bool(self.query_one(CommandList).scrollable_content_region)
        if laid_out or not action.startswith("page_"):  # pages have no height yet
            super()._action_command_list(action)


class Actions(Provider):
    """Offers the pane's commands, then those of the app; a search finds those of other panes too."""

    async def discover(self) -> Hits:
        for title, command in self._offered():
            if command.place in (self._at, EVERYWHERE):
                yield DiscoveryHit(title, partial(run, self._attn, command), help=_help(command))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for title, command in self._offered():
            score = matcher.match(title)
            if score > 0:
                run_it = partial(run, self._attn, command)
                yield Hit(score, matcher.highlight(title), run_it, text=title, help=_help(command))

    @property
    def _attn(self) -> OfferingApp:
        return cast(Any, self.app)  # pyright: ignore[reportUnknownMemberType]

    @property
    def _at(self) -> str:
        return self._attn.active

    def _offered(self) -> Iterator[tuple[str, Command]]:
        """Yield commands with their titles."""
        app = self._attn
        found = with_keys(offered(), app.settings.keys)
        over_all = isinstance(self.screen, ModalScreen)
        for command in sorted(found, key=lambda command: command.place != self._at):
            if not over_all or command.name in _OVER_ALL:
                elsewhere = command.place not in (self._at, EVERYWHERE)
                yield app.glyphs.say(f"{command.place}: {command.words}" if elsewhere else command.words), command


def offered() -> list[Command]:
    """Return all commands, except the palette itself and those that type digits."""
    named = [command for command in all_commands() if command.name or command.words in PANES]
    found = [command for command in named if command.name != "palette"]
    return [*found, Command("theme", EVERYWHERE, "colours: choose a theme", "", "change_theme")]


def _help(command: Command) -> str:
    """Return the key of a command, and its name for the settings file."""
    return "   ".join(filter(None, (key_word(command.keys) if command.keys else "", command.name)))


async def run(app: OfferingApp, command: Command) -> None:
    """Run a command in its pane."""
    if command.place == EVERYWHERE:
        await app.run_action(command.action, app)
        return
    if command.place != app.active:
        app.action_pane(command.place)
    app.call_after_refresh(app.run_action, command.action, app.pane)  # by then a new pane is mounted
