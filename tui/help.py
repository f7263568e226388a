"""The help on a pane, and the overview of all keys, as screens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.binding import BindingType

from ..core.message import message
from .keymap import EVERYWHERE, all_commands, commands, help_keys
from .panes.catalogue import PANES
from .panes.pane import Pane
from .settings.store import config_file
from .views.help.page import help_lines, key_overview
from .widgets.help_screen import HelpScreen


def pane_help(pane: Pane, everywhere: Sequence[BindingType], replaced: Mapping[str, str]) -> HelpScreen:
    """Return the help on what has the focus in a pane, with all keys that work there."""
    topic, about = pane.topic, PANES[pane.NAME].about
    found = commands({pane.NAME: pane.BINDINGS, EVERYWHERE: everywhere})
    keys = [key for group in help_keys(found, replaced).values() for key in group]
    return HelpScreen(
        message("help: {name}", name=pane.NAME), lambda width: help_lines(topic, about, keys, width, pane.glyphs)
    )


def all_keys(pane: Pane, replaced: Mapping[str, str]) -> HelpScreen:
    """Return the overview of every key of every pane, those of this pane first."""
    groups = help_keys(all_commands(), replaced)
    first = {pane.NAME: groups.pop(pane.NAME)}
    path = str(config_file())
    return HelpScreen("all keys", lambda width: key_overview(first | groups, path, width, pane.glyphs))
