"""What the command palette offers: everything that a key does, in words, with the key."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.screen import ModalScreen

from .app import AttnApp
from .commands import EVERYWHERE, Command, all_commands, with_keys
from .panes.catalogue import PANES
from .views.keys import key_word

_OVER_ALL = ("quit", "theme")  # what makes sense while a form or the help stands over the pane


class Actions(Provider):
    """This pane's actions first, then those of all panes; a search finds those of the other panes too."""

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
    def _attn(self) -> AttnApp:
        assert isinstance(self.app, AttnApp)
        return self.app

    @property
    def _at(self) -> str:
        return self._attn.active

    def _offered(self) -> Iterator[tuple[str, Command]]:
        """Commands with their titles."""
        app = self._attn
        found = with_keys(offered(app), app.settings.keys)
        over_all = isinstance(self.screen, ModalScreen)
        for command in sorted(found, key=lambda command: command.place != self._at):
            if not over_all or command.name in _OVER_ALL:
                elsewhere = command.place not in (self._at, EVERYWHERE)
                yield app.glyphs.say(f"{command.place}: {command.words}" if elsewhere else command.words), command


def offered(app: AttnApp) -> list[Command]:
    """All commands but the palette, and those that type a number, which are nothing without their keys."""
    named = [command for command in all_commands(app.BINDINGS) if command.name or command.words in PANES]
    found = [command for command in named if command.name != "palette"]
    return [*found, Command("theme", EVERYWHERE, "other colours: choose a theme", "", "change_theme")]


def _help(command: Command) -> str:
    """Its key, and the name that gives it another one."""
    return "   ".join(filter(None, (key_word(command.keys) if command.keys else "", command.name)))


async def run(app: AttnApp, command: Command) -> None:
    """Do it, in the pane where it belongs."""
    if command.place == EVERYWHERE:
        await app.run_action(command.action, app)
        return
    if command.place != app.active:
        app.action_pane(command.place)
    app.call_after_refresh(app.run_action, command.action, app.pane)  # a pane that is new starts before
