"""The command palette: one list of what can be done, seen and learned, and what choosing it does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, cast

from textual.screen import ModalScreen

from ...core.attention.cost import SHAPE_FIELDS
from ...core.errors import ParameterError
from ...core.field import Field
from ...core.learning.items import ITEMS, SECTIONS, Item
from ...core.message import joined, message
from ...core.parameters import FIELDS, Parameters, Value
from ...core.statistics.catalogue import ALWAYS, STATISTICS, Statistic
from ...core.training.settings import RACE_FIELDS
from ..panes.catalogue import PANES, TABS
from ..panes.lists import choose_value
from ..views.fields.choice_list import ChoiceList
from ..views.fields.choices import Choice, choices_of, model_choices
from ..views.fields.items import item_row
from ..views.fields.synonyms import SYNONYMS
from ..views.help import key_word
from ..widgets.picker import ChoiceScreen
from .keys import EVERYWHERE, Command, all_commands, with_keys
from .paned_app import PanedApp

if TYPE_CHECKING:
    from ..panes.heads.pane import HeadsPane
    from ..panes.lab.pane import LabPane
    from ..panes.sweep.pane import SweepPane
    from ..panes.train.pane import TrainPane


_OVER_ALL = ("quit", "theme")  # what makes sense while a form or the help covers the pane


class Palette(ChoiceScreen):
    """The command palette."""


def open_palette(app: PanedApp) -> None:
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


def offered(app: PanedApp) -> list[Offer]:
    """Return everything that can be done, seen and learned; over a form, what makes sense there."""
    found = sorted(with_keys(named_commands(), app.settings.keys), key=lambda command: command.place != app.active)
    if isinstance(app.screen, ModalScreen):
        return [_offer(app, command) for command in found if command.name in _OVER_ALL]
    return offers(app, [_offer(app, command) for command in found])


def named_commands() -> list[Command]:
    """Return all commands but the palette itself, those that type digits, and those that do the same as another."""
    named: dict[tuple[str, str], Command] = {}
    for command in all_commands():
        if command.name and command.name != "palette" and command.words not in TABS:
            named.setdefault((command.place, command.action), command)
    executor = Command("executor", EVERYWHERE, message("executor: where long work is done"), "", "executor")
    theme = Command("theme", EVERYWHERE, message("colours: choose a theme"), "", "change_theme")
    return [*named.values(), theme, executor]


def _offer(app: PanedApp, command: Command) -> Offer:
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


async def run(app: PanedApp, command: Command) -> None:
    """Run a command in its pane."""
    if command.place == EVERYWHERE:
        await app.run_action(command.action, app)
        return
    if command.place != app.active:
        app.action_pane(command.place)
    app.do_next(partial(app.run_action, command.action, app.pane))  # by then a new pane is mounted


_OF_PARAMETERS = ("Lab", "Sweep", "Softmax", "Rules")  # panes that show what the parameters give


@dataclass(frozen=True, eq=False)
class Offer:
    """A line of the palette: its names, what choosing it does in a sentence, and a function that does it."""

    row: Choice  # its value is the name by which it is known; its help, what choosing it does
    do: Callable[[], object]
    at_first: bool = False  # whether it is offered before a word is typed


def offers(app: PanedApp, commands: Iterable[Offer]) -> list[Offer]:
    """Return everything that can be found by its name: what can be done, seen and learned, and each value."""
    to_do = [
        *commands,
        *(_parameter(app, field) for field in FIELDS),
        *(_setting(app, "Heads", field) for field in SHAPE_FIELDS),
        *(_setting(app, "Train", field) for field in RACE_FIELDS),
        _language(app),
    ]
    to_see = [
        *(_pane(app, name) for name in PANES),
        *(
            _statistic(app, statistic)
            for statistic in STATISTICS
            if statistic in ALWAYS or not statistic.exported_only
        ),
    ]
    to_learn = [_item(app, item) for item in ITEMS]
    to_set = [_choice(app, field, row) for field in FIELDS if field.kind == "choice" for row in choices_of(field)]
    costs = [_model(app, row) for row in model_choices()]  # of equal matches, the model itself is better
    see = message("see")
    by_family = (
        (message("do"), to_do),
        (see, to_see),
        (message("learn"), to_learn),
        (message("set"), to_set),
        (see, costs),
    )
    return [
        replace(offer, row=replace(offer.row, family=family))
        for family, family_offers in by_family
        for offer in family_offers
    ]


def _pane(app: PanedApp, name: str) -> Offer:
    about = _sentence(app, PANES[name].about[0])
    row = Choice(
        name,
        PANES[name].place,
        help=message("Show it. {about}", about=about),
        words=SYNONYMS.get(name, ()),
    )
    return Offer(row, lambda: app.action_pane(name), at_first=True)


def _parameter(app: PanedApp, field: Field) -> Offer:
    """Return the offer to set a parameter: from a list, or by typing into its field."""
    now = field.format(getattr(app.parameters, field.name))
    how = message("Type it in the Lab") if field.kind in ("integer", "real") else message("Choose from a list")
    words = (field.name, field.symbol, *SYNONYMS.get(field.name, ()))
    row = Choice(
        field.label,
        message("set {label}", label=field.label),
        help=message("{how}, {now} now. {help}", how=how, now=now, help=_sentence(app, field.help)),
        words=words,
        also=(field.help,),
    )
    return Offer(row, lambda: _edit(app, field))


def _edit(app: PanedApp, field: Field) -> None:
    if field.kind in ("choice", "setting"):
        choose_value(app, field.name, lambda value: set_value(app, field.name, value))
    elif not field.applies(app.parameters):
        app.say(message("{label} has no effect with these parameters.", label=field.label))
    else:
        app.action_pane("Lab")
        cast("LabPane", app.pane).go_to_field(field.name)


def _setting(app: PanedApp, place: Literal["Heads", "Train"], field: Field) -> Offer:
    """Return the offer to go to a field of a pane that has its own."""
    row = Choice(
        field.label,
        joined([place, message("set {label}", label=field.label)], ": "),
        help=message("Show its field in {place}. {help}", place=place, help=_sentence(app, field.help)),
        words=(field.name, field.symbol, field.label, *SYNONYMS.get(field.name, ())),
        also=(field.help,),
    )
    return Offer(row, lambda: _go_to_field(app, place, field.name))


def _go_to_field(app: PanedApp, place: str, name: str) -> None:
    app.action_pane(place)
    cast("HeadsPane | TrainPane", app.pane).go_to_field(name)
    app.note("palette")


def _language(app: PanedApp) -> Offer:
    """Return the offer that says how the language is chosen."""
    how = message("The app starts in the language of --lang zh, or of lang in the settings file: zh, en or auto.")
    row = Choice("language", message("language"), help=how, words=SYNONYMS["language"])
    return Offer(row, lambda: app.say(how))


def _choice(app: PanedApp, field: Field, row: Choice) -> Offer:
    formula = row.formula and row.formula != row.name
    help = message(
        "Set the {label} to {value}. {help}",
        label=field.label,
        value=joined([row.name, row.formula], ", ") if formula else row.name,
        help=_sentence(app, row.help),
    )
    words = (row.formula, row.name, *row.words, field.label)
    choice = Choice(row.value, joined([field.label, row.name]), "", help, row.source, "", words, (row.help,))
    return Offer(choice, lambda: set_value(app, field.name, row.value))


def set_value(app: PanedApp, name: str, value: Value) -> None:
    """Set a parameter, and show a pane that follows the parameters; say why if it is not accepted."""
    app.pane.end_typing()
    app.note("typing")
    try:
        changed: Parameters = app.parameters.with_value(name, value)
    except ParameterError as error:
        app.say(message("{reason}.", reason=error))
        return
    if app.active in _OF_PARAMETERS:
        app.change(changed)
    else:
        app.to_lab(changed)
    app.note("palette")


def _statistic(app: PanedApp, statistic: Statistic) -> Offer:
    where = _pane_of(app, statistic)
    told = {
        "Lab": message("Explain it in the table of the Lab"),
        "Sweep": message("Show it over d_k in Sweep"),
    }.get(where, message("Show it on the map of heads"))
    sentence = _sentence(app, statistic.definition)
    help = message("{told}: {formula}. {sentence}", told=told, formula=statistic.formula, sentence=sentence)
    words = (statistic.label, statistic.short, statistic.formula, *SYNONYMS.get(statistic.name, ()))
    row = Choice(
        statistic.name,
        message("statistic {label}", label=statistic.label),
        help=help,
        source=statistic.source,
        words=words,
        also=(statistic.definition,),
    )
    return Offer(row, lambda: _show_statistic(app, statistic))


def _pane_of(app: PanedApp, statistic: Statistic) -> str:
    """Return the pane that shows a statistic: the one on screen if it can."""
    if statistic not in ALWAYS:
        return "Lab"
    panes = ("Sweep", "Capture") if statistic.exported_only else ("Lab", "Sweep", "Capture")
    return app.active if app.active in panes else "Sweep"


def _show_statistic(app: PanedApp, statistic: Statistic) -> None:
    app.note("typing")
    app.action_pane(_pane_of(app, statistic))
    cast("LabPane | SweepPane", app.pane).show_statistic(statistic.name)
    app.note("palette")


def _model(app: PanedApp, row: Choice) -> Offer:
    help = message("Show its attention layer in Heads: {formula}. {help}", formula=row.formula, help=row.help).strip()
    choice = Choice(
        row.value,
        message("cost of {name}", name=row.name),
        help=help,
        source=row.source,
        words=(row.name, *row.words),
    )
    return Offer(choice, lambda: _show_model(app, row.value))


def _show_model(app: PanedApp, name: str) -> None:
    app.action_pane("Heads")
    cast("HeadsPane", app.pane).show_model(name)
    app.note("palette")


def _item(app: PanedApp, item: Item) -> Offer:
    row = item_row(item, item.word, SECTIONS[item.kind])
    return Offer(row, lambda: app.to_pane("Learn", item.id), at_first=True)


def _sentence(app: PanedApp, text: str) -> str:
    """Return the first sentence of a text, in the language of the app."""
    said = app.glyphs.say(text)
    ends = [end + len(stop.rstrip()) for stop in (". ", "。") if (end := said.find(stop)) >= 0]
    return said[: min(ends, default=len(said))]
