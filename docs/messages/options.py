"""Messages of the command line: what `--help` says, except for options that are made from FIELDS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from attn_tui.core.field import Field
from attn_tui.core.message import Message as Filled
from attn_tui.core.parameters import FIELDS
from attn_tui.tui.cli.commands.catalogue import COMMANDS
from attn_tui.tui.cli.help import DESCRIPTION, EPILOG, OUTPUT
from attn_tui.tui.cli.open_app import app_parser
from attn_tui.tui.cli.parser import Parser
from attn_tui.tui.views.glyphs import UNICODE
from message import Message, messages

_OF_FIELDS = tuple(field.help for field in FIELDS)


class Recorder(Parser):
    """A parser that keeps the titles and the helps of its options."""

    def __init__(self) -> None:
        super().__init__("", "", "", "", UNICODE)
        self.texts: list[tuple[str, str]] = []

    def add(
        self, title: str, *names: str, choices: Iterable[str] = (), suggest: Iterable[str] = (), **settings: Any
    ) -> None:
        """Keep a title and the help of an option, with the %% that argparse wants."""
        help = settings.get("help") or ""
        self.texts += [("title of options", title), (f"{names[-1]}: help", "" if _is_filled(help) else help)]
        super().add(title, *names, choices=choices, suggest=suggest, **settings)

    def add_fields(self, fields: Iterable[Field]) -> None:
        """Leave out parameters: FIELDS has their helps."""


def from_options() -> Iterator[Message]:
    """Yield the texts of `attn-tui --help` and of the help of every command."""
    yield from messages(
        "tui/cli/help.py", [("attn-tui --help", DESCRIPTION), ("attn-tui --help", EPILOG), ("every --help", OUTPUT)]
    )
    options = [action for action, _ in app_parser(UNICODE).arguments]
    own = [
        (f"{(action.option_strings or [action.metavar])[-1]}: help", action.help or "")
        for action in options
        if not (_is_filled(action.help or "") or (action.help or "").replace("%%", "%").startswith(_OF_FIELDS))
    ]
    yield from messages("tui/cli/open_app.py", [("title of options", "screen"), *own])
    for name, row in COMMANDS.items():
        yield from messages("tui/cli/commands/catalogue.py", [(f"COMMANDS {name}: summary", row.summary)])
        command = row.load()
        parser = Recorder()
        command.add_options(parser)
        texts = [(f"attn-tui {name} --help", text) for text in (command.description, command.examples)]
        texts += [(f"attn-tui {name} {note}", text) for note, text in parser.texts]
        yield from messages(f"tui/cli/commands/{name}.py", texts)


def _is_filled(help: str) -> bool:
    """Return whether a help is made of a template: that is a message where it is written."""
    return isinstance(help, Filled) and bool(help.values)
