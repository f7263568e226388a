"""Messages of the app: panes and their help, keys, lists, forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from attn_tui.tui.app.keys import EVERYWHERE, all_commands, commands
from attn_tui.tui.panes.capture import parts
from attn_tui.tui.panes.capture.replay import ReplayList
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.settings.declared import SETTINGS
from attn_tui.tui.views.export import KINDS
from attn_tui.tui.views.fields.choices import CHOICES, FAMILIES
from attn_tui.tui.views.help.page import WORDS
from attn_tui.tui.views.notice import GREETING
from attn_tui.tui.views.plots.histograms import TITLES
from attn_tui.tui.views.results.watching import LABELS, LOGITS
from attn_tui.tui.widgets.help_screen import HelpScreen
from attn_tui.tui.widgets.parameter_panel import ParameterPanel
from attn_tui.tui.widgets.statistics_table import StatisticsTable
from message import Message, has_prose, messages

# Widgets with keys of their own, by the names of their files.
_WIDGETS: dict[str, tuple[type[Any], ...]] = {
    "tui/panes/capture/parts.py": tuple(
        found for found in vars(parts).values() if isinstance(found, type) and found.__module__ == parts.__name__
    ),
    "tui/panes/capture/replay.py": (ReplayList,),
    "tui/widgets/help_screen.py": (HelpScreen,),
    "tui/widgets/parameter_panel.py": (ParameterPanel,),
    "tui/widgets/statistics_table.py": (StatisticsTable,),
}


def from_screens() -> Iterator[Message]:
    """Yield the texts of all screens that are declared."""
    for table in (panes, bindings, lists, forms):
        yield from table()


def panes() -> Iterator[Message]:
    """Yield the title of each pane, its help and the words of its key bar."""
    for title, row in PANES.items():
        yield from messages("tui/panes/catalogue.py", [("PANES: title", title)])
        about = [(f"help on {title}", text) for text in row.about]
        yield from messages(f"tui/panes/{row.folder}/help.py", about)
        keys = [(f"{title}: a key bar", effect) for _, effect in row.load().KEYS]
        yield from messages(f"tui/panes/{row.folder}/pane.py", keys)
    yield from messages("tui/views/help/page.py", (("help: the words of all panes", text) for text in WORDS))


def bindings() -> Iterator[Message]:
    """Yield what each key does, in the words of its binding."""
    folders = {title: f"tui/panes/{row.folder}/pane.py" for title, row in PANES.items()}
    for command in all_commands():
        path = folders.get(command.place, "tui/app/keys.py")
        yield from messages(path, [(f"{command.place}: what a key does", command.words)])
    yield from messages("tui/app/keys.py", [("a place in the list of keys", EVERYWHERE)])
    for path, widgets in _WIDGETS.items():
        for widget in widgets:
            found: Sequence[Any] = vars(widget).get("BINDINGS", ())
            words = [command.words for command in commands({widget.__name__: found})]
            yield from messages(path, ((f"{widget.__name__}: what a key does", text) for text in words))


def lists() -> Iterator[Message]:
    """Yield the rows of lists to choose from: what they mean, and their formulas if these have words."""
    for field, rows in CHOICES.items():
        for value, formula, help, source, _ in rows:
            name = f"CHOICES {field} {value}"
            texts = [(f"{name}: formula", formula if _in_words(formula) else ""), (f"{name}: help", help)]
            texts += [(f"{name}: source", source if has_prose(source) else "")]
            yield from messages("tui/views/fields/choices.py", texts)
    families = (("FAMILIES: of scale rules", family) for family in FAMILIES)
    yield from messages("tui/views/fields/choices.py", families)


def _in_words(formula: str) -> bool:
    words = (" key", "key j", "you ", " to ", "keys", "joins", "each", "round", "also")
    return any(word in formula for word in words)


def forms() -> Iterator[Message]:
    """Yield the words of the export form, histograms, settings and the greeting."""
    yield from messages("tui/views/export.py", (("KINDS: contents", contents) for _, _, contents in KINDS.values()))
    yield from messages("tui/views/plots/histograms.py", (("TITLES", title) for title in TITLES.values()))
    yield from messages("tui/views/results/watching.py", [("LABELS", LABELS[LOGITS])])
    yield from messages("tui/views/notice.py", [("GREETING", GREETING)])
    yield from messages("tui/settings/declared.py", ((f"SETTINGS {each.name}", each.help) for each in SETTINGS))
