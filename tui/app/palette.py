"""The command palette: all commands that have keys, in words."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, cast

from textual import events, on
from textual.await_complete import AwaitComplete
from textual.command import Command as ListedCommand
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.errors import NoWidget
from textual.geometry import Region
from textual.screen import ModalScreen
from textual.theme import ThemeProvider
from textual.widget import Widget
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option
from textual.worker import WorkerCancelled

from ...core.message import joined, message
from ..panes.catalogue import TABS
from ..views.fields.choices import Choice
from ..views.fields.matching import in_both, matching
from ..views.fields.synonyms import SYNONYMS
from ..views.glyphs import Glyphs
from ..views.help import key_word
from ..widgets.modal import Modal
from .keys import EVERYWHERE, Command, all_commands, with_keys
from .offers import Offer, in_order, offers, pane_offers
from .protocol import App

_OVER_ALL = ("quit", "theme")  # what makes sense while a form or the help covers the pane


class Palette(Modal, CommandPalette):
    """The command palette. It runs a chosen command once, and accepts keys before its list is laid out."""

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Close the palette and end its search, which otherwise might look for a list that is gone."""
        if self.on_top:
            self.workers.cancel_node(self)  # pyright: ignore[reportUnknownMemberType]
        return super().dismiss(result)

    _delayed: Input.Changed | None = None  # what is typed and not searched for yet

    @on(Input.Changed)
    def delay_search(self, message: Input.Changed) -> None:
        """Search only for the newest text while keys wait."""
        self._delayed = message if cast(Any, self.app).keys_wait else None  # pyright: ignore[reportUnknownMemberType]
        if self._delayed:
            message.stop()
            message.prevent_default()

    async def _on_key(self, event: events.Key) -> None:
        """Let keys that move in the list, or choose from it, wait until it shows what is searched for."""
        if event.key != "escape" and not event.is_printable:
            await self._end_of_search()
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            self._choose(self.query_one(CommandList).highlighted_option)

    async def _end_of_search(self) -> None:
        if self._delayed:
            self._input(self._delayed)
            self._delayed = None
        own = [each for each in self.workers if each.node is self]
        searches = [each for each in own if not (each.is_cancelled or each.is_finished)]
        with suppress(WorkerCancelled):  # the palette was closed
            await self.workers.wait_for_complete(searches)  # pyright: ignore[reportUnknownMemberType]

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


class Themes(ThemeProvider):
    """Offers the themes."""

    async def search(self, query: str) -> Hits:
        found = [hit async for hit in super().search(query)]
        for hit in found or [_nothing(cast(Any, self.app).glyphs)]:  # pyright: ignore[reportUnknownMemberType]
            yield hit


def _nothing(glyphs: Glyphs) -> Hit:
    """Return what says that nothing is found; Textual says so half a second later, in English, and twice at times."""
    said = glyphs.say("No matches found")
    return Hit(0, said, lambda: None, text=said)


class Actions(Provider):
    """Offers the pane's commands, then those of the app; a search finds everything that has a name."""

    async def startup(self) -> None:
        self._offered: list[Offer] = []

    async def discover(self) -> Hits:
        over_all = isinstance(self.screen, ModalScreen)
        commands = [offer for offer in self._commands() if offer.row.family in (self._at, EVERYWHERE)]
        for offer in (*commands, *(() if over_all else pane_offers(self._attn))):
            say = self._attn.glyphs.say
            yield DiscoveryHit(say(offer.row.name), offer.do, help=say(offer.row.help))

    async def search(self, query: str) -> Hits:
        found = self._offered = self._offered or self._all()
        matcher = self.matcher(query)
        glyphs = self._attn.glyphs
        rows = matching([offer.row for offer in found], query)
        if not rows:
            yield _nothing(glyphs)
        for rank, offer in enumerate(in_order(found, rows)):
            name, help = glyphs.say(offer.row.name), glyphs.say(offer.row.help)
            yield Hit(1 / (1 + rank), matcher.highlight(name), offer.do, text=name, help=help)

    def _all(self) -> list[Offer]:
        """Return everything that a search may find."""
        found = self._commands()
        if not isinstance(self.screen, ModalScreen):
            found += offers(self._attn)
        glyphs = self._attn.glyphs
        if glyphs.language != "en":
            found = [replace(offer, row=in_both(offer.row, glyphs.say)) for offer in found]
        return found

    @property
    def _attn(self) -> App:
        return cast(Any, self.app)  # pyright: ignore[reportUnknownMemberType]

    @property
    def _at(self) -> str:
        return self._attn.active

    def _commands(self) -> list[Offer]:
        """Return the commands, those of the pane on screen first."""
        app = self._attn
        found = with_keys(offered(), app.settings.keys)
        over_all = isinstance(self.screen, ModalScreen)
        return [
            Offer(self._row(command), partial(run, app, command))
            for command in sorted(found, key=lambda command: command.place != self._at)
            if not over_all or command.name in _OVER_ALL
        ]

    def _row(self, command: Command) -> Choice:
        elsewhere = command.place not in (self._at, EVERYWHERE)
        title = joined([command.place, command.words], ": ") if elsewhere else command.words
        words = SYNONYMS.get(command.words, ())
        return Choice(command.words, title, help=_help(command), family=command.place, words=words)


def offered() -> list[Command]:
    """Return all commands, except the palette itself and those that type digits."""
    named = [command for command in all_commands() if command.name]
    found = [command for command in named if command.name != "palette" and command.words not in TABS]
    executor = Command("executor", EVERYWHERE, message("executor: where long work is done"), "", "executor")
    return [*found, Command("theme", EVERYWHERE, message("colours: choose a theme"), "", "change_theme"), executor]


def _help(command: Command) -> str:
    """Return where a command works, and its key."""
    if not command.keys:
        return message("Choose it from a list")
    if command.place == EVERYWHERE:
        return message("{keys} in every pane", keys=key_word(command.keys))
    return message("{keys} in {place}", keys=key_word(command.keys), place=command.place)


async def run(app: App, command: Command) -> None:
    """Run a command in its pane."""
    if command.place == EVERYWHERE:
        await app.run_action(command.action, app)
        return
    if command.place != app.active:
        app.action_pane(command.place)
    app.do_next(partial(app.run_action, command.action, app.pane))  # by then a new pane is mounted
