"""The command palette: one list of what can be done, seen and learned."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.screen import ModalScreen

from ...core.message import joined, message
from ..panes.catalogue import TABS
from ..views.fields.choice_list import ChoiceList
from ..views.fields.choices import Choice
from ..views.fields.synonyms import SYNONYMS
from ..views.help import key_word
from ..widgets.picker import ChoiceScreen
from .keys import EVERYWHERE, Command, all_commands, with_keys
from .offers import Offer, offers

if TYPE_CHECKING:
    from .app import AttnApp

_OVER_ALL = ("quit", "theme")  # what makes sense while a form or the help covers the pane


class Palette(ChoiceScreen):
    """The command palette."""


def open_palette(app: AttnApp) -> None:
    """Show the palette, unless it is shown."""
    if isinstance(app.screen, Palette):
        return
    found = offered(app)
    rows = [offer.row for offer in found]
    first = [row for row, offer in zip(rows, found, strict=True) if offer.at_first]
    do = {id(row): offer.do for row, offer in zip(rows, found, strict=True)}

    def chosen(done: ChoiceList | None) -> None:
        if done is not None and done.chosen is not None:
            app.do_next(do[id(done.chosen)])

    app.push_screen(Palette(ChoiceList(message("commands"), rows, offered=first), lambda _: None), chosen)


def offered(app: AttnApp) -> list[Offer]:
    """Return everything that can be done, seen and learned; over a form, what makes sense there."""
    found = sorted(with_keys(named_commands(), app.settings.keys), key=lambda each: each.place != app.active)
    if isinstance(app.screen, ModalScreen):
        return [_offer(app, command) for command in found if command.name in _OVER_ALL]
    return offers(app, [_offer(app, command) for command in found])


def named_commands() -> list[Command]:
    """Return all commands, except the palette itself and those that type digits."""
    named = [command for command in all_commands() if command.name]
    found = [command for command in named if command.name != "palette" and command.words not in TABS]
    executor = Command("executor", EVERYWHERE, message("executor: where long work is done"), "", "executor")
    return [*found, Command("theme", EVERYWHERE, message("colours: choose a theme"), "", "change_theme"), executor]


def _offer(app: AttnApp, command: Command) -> Offer:
    here, keys = (
        command.place in (app.active, EVERYWHERE),
        key_word(command.keys.split(",")[0]) if command.keys else "",
    )
    where = "" if command.place == EVERYWHERE else command.place
    words = (where, *SYNONYMS.get(command.words, ()))
    row = Choice(
        command.words, command.words, joined([where, keys], "  ") if where else keys, _help(command), words=words
    )
    return Offer(row, partial(run, app, command), at_first=here)


def _help(command: Command) -> str:
    """Return where a command works, and its key."""
    if not command.keys:
        return message("Choose it from a list")
    if command.place == EVERYWHERE:
        return message("{keys} in every tab", keys=key_word(command.keys))
    return message("{keys} in {place}", keys=key_word(command.keys), place=command.place)


async def run(app: AttnApp, command: Command) -> None:
    """Run a command in its pane."""
    if command.place == EVERYWHERE:
        await app.run_action(command.action, app)
        return
    if command.place != app.active:
        app.action_pane(command.place)
    app.do_next(partial(app.run_action, command.action, app.pane))  # by then a new pane is mounted
