"""Choosing from a list over the pane, and the list of executors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..core.message import message
from ..core.work.engine_names import EngineError, engine_name
from .app_protocol import App
from .views.fields.choice_list import ChoiceList
from .views.fields.choices import Choice
from .views.fields.matching import in_both
from .widgets.picker import ChoiceScreen


def choose(app: App, found: ChoiceList, take: Callable[[Sequence[str]], object]) -> None:
    """Show a list; `take` is called with the values of the chosen rows, and not at all if it is cancelled."""

    def chosen(values: tuple[str, ...] | None) -> None:
        if values is not None:
            app.note_mouse()
            take(values)
            app.note(message("choose {title}", title=found.title))

    if app.glyphs.language != "en":
        found = replace(found, choices=[in_both(row, app.glyphs.say) for row in found.choices])
    app.push_screen(ChoiceScreen(found), chosen)


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


def choose_executor(app: App) -> None:
    """Choose where long work is done from a list, to which typing adds such as `dask:tcp://HOST:8786`."""
    own = () if app.executor in [row.value for row in _EXECUTORS] else _typed_executor(app.executor)
    found = ChoiceList.at(message("executor: where long work is done"), (*_EXECUTORS, *own), app.executor)

    hints = (message("or threads:N, processes:N, dask:tcp://HOST:PORT, dask:tls://…"), message("or threads:N"))
    listed = replace(found, beyond=_typed_executor, hints=hints)
    choose(app, listed, lambda values: use_executor(app, values[0]))


def use_executor(app: App, name: str) -> None:
    """Do long work there from now on, also what the pane on screen waits for."""
    app.executor = app.engine.executor = name
    app.pane.leave()
    app.pane.follow()


def _typed_executor(text: str) -> tuple[Choice, ...]:
    """Return the row of an executor with a number or an address, if the text names one."""
    try:
        kind, rest = engine_name(text)
    except EngineError:
        return ()
    if not rest:
        return ()
    here = message("{number} {kind} on this machine.", number=rest, kind=kind)
    help = here if rest.isdigit() else message("The workers of a scheduler.")
    return (Choice(text.strip(), text.strip(), help=help),)
