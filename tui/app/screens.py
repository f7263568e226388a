"""What opens over the pane: lists to choose from, the code and the command that are copied, and the help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.errors import InputError
from ...core.message import message
from ...core.work.engine_names import ExecutorError, engine_name
from ..panes.catalogue import PANES
from ..panes.pane import Pane
from ..settings.store import config_file
from ..views.fields.choice_list import ChoiceList
from ..views.fields.choices import Choice
from ..views.help import help_lines, key_overview
from ..views.notice import copied_lines, selected_line
from ..widgets.modal import CodeScreen, HelpScreen, PaneHelpScreen
from .keys import all_commands, help_keys
from .paned_app import PanedApp

if TYPE_CHECKING:
    from ...core.program.text import Dialect
    from ..views.bars import Key


def choose_theme(app: PanedApp) -> None:
    """Choose the colours from a list."""

    def take(values: Sequence[str]) -> None:
        app.theme = values[0]

    rows = [Choice(name, name) for name in sorted(app.available_themes)]
    app.choose(ChoiceList.at(message("colours: choose a theme"), rows, app.theme, live=True), take)


_EXECUTORS = (
    Choice(
        "serial",
        "serial",
        message("one after the other"),
        message("In the process that computes; keys interrupt it."),
    ),
    Choice(
        "threads",
        "threads",
        message("threads of that process"),
        message("As many as there are cores; threads:4 are four."),
    ),
    Choice(
        "processes",
        "processes",
        message("on this machine"),
        message("As many as there are cores; they take a second to start."),
    ),
    Choice(
        "dask",
        "dask",
        message("a cluster on this machine"),
        message("Started and ended by the app; needs attn-tui[cluster]."),
    ),
)


def choose_executor(app: PanedApp) -> None:
    """Choose where long work is done from a list, to which typing adds such as `dask:tcp://HOST:8786`."""
    own = () if app.executor in [row.value for row in _EXECUTORS] else _typed_executor(app.executor)
    found = ChoiceList.at(message("executor: where long work is done"), (*_EXECUTORS, *own), app.executor)

    hints = (message("or threads:N, processes:N, dask:tcp://HOST:PORT, dask:tls://…"), message("or threads:N"))
    listed = replace(found, beyond=_typed_executor, hints=hints)
    app.choose(listed, lambda values: app.use_executor(values[0]))


def _typed_executor(text: str) -> tuple[Choice, ...]:
    """Return the row of an executor with a number or an address, if the text names one."""
    try:
        kind, rest = engine_name(text)
    except ExecutorError:
        return ()
    if not rest:
        return ()
    here = message("{number} {kind} on this machine.", number=rest, kind=kind)
    help = here if rest.isdigit() else message("The workers of a scheduler.")
    return (Choice(text.strip(), text.strip(), help=help),)


def copy_command(app: PanedApp) -> None:
    """Copy the command for what is on screen, and show it, because a terminal may not permit the copy."""
    try:
        command = app.pane.command()
    except InputError as error:
        app.say(str(error))
    else:
        app.copy_to_clipboard(command)
        app.show_notice(lambda width: copied_lines(command, width, app.glyphs))


def show_code(app: PanedApp) -> None:
    """Copy the code for what is on screen, and show it; its screen turns from NumPy to PyTorch and back."""

    def copied(dialect: Dialect) -> str:
        code = app.pane.code(dialect)
        app.copy_to_clipboard(code)
        return code

    try:
        first = copied("python")
    except InputError as error:
        app.say(str(error))
    else:
        app.push_screen(CodeScreen(first, copied))


def copy_selection(app: PanedApp) -> None:
    """Copy the text that is selected with the mouse, if any."""
    text = app.screen.get_selected_text() or ""
    if text.strip():
        app.copy_to_clipboard(text)
        app.show_notice(lambda width: [selected_line(text, width, app.glyphs)])


def pane_help(pane: Pane, keys: Sequence[Key]) -> PaneHelpScreen:
    """Return the help on what has the focus in a pane, with the keys of its key bar."""
    topic, about = pane.topic, PANES[pane.NAME].about
    return PaneHelpScreen(
        message("help: {name}", name=pane.NAME), lambda width: help_lines(topic, about, keys, width, pane.glyphs)
    )


def all_keys(pane: Pane, replaced: Mapping[str, str]) -> HelpScreen:
    """Return the overview of every key of every pane, those of this pane first."""
    groups = help_keys(all_commands(), replaced)
    first = {pane.NAME: groups.pop(pane.NAME)}
    path = str(config_file())
    return HelpScreen("all keys", lambda width: key_overview(first | groups, path, width, pane.glyphs))
