"""The catalogue as a file of translations (.po), and compiled (.mo)."""

from __future__ import annotations

import io
from collections.abc import Iterable
from datetime import UTC, datetime

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from message import ROOT, Message

FOLDER = ROOT / "tui" / "language" / "zh" / "LC_MESSAGES"
PO, MO = FOLDER / "attn_tui.po", FOLDER / "attn_tui.mo"
_HEADER = "# Simplified Chinese messages of attn-tui. `make messages` renews everything but the translations."
_LEFT_OUT = (  # of the header: Git knows them
    "Report-Msgid-Bugs-To", "POT-Creation-Date", "PO-Revision-Date", "Last-Translator", "Language-Team",
    "Generated-By",
)  # fmt: skip
_WIDTH = 116


def merged(found: Iterable[Message], before: str, drop: bool = False) -> str:
    """Return the text of a .po with these messages, and the translations that it had before.

    Translations of messages that are no longer found stay as comments, for the messages that replace them, unless
    `drop` is set.
    """
    catalog = read(before)
    catalog.update(_template(found), no_fuzzy_matching=True)
    for message in catalog:
        message.flags.discard("python-format")  # a % is per cent
    return text_of(catalog, drop)


def text_of(catalog: Catalog, drop: bool = False) -> str:
    """Return the text of a .po, without what differs from day to day; `drop` leaves out unused translations."""
    catalog.header_comment, catalog.fuzzy = _HEADER, False
    out = io.BytesIO()
    write_po(out, catalog, width=_WIDTH, ignore_obsolete=drop, include_lineno=False)
    lines = out.getvalue().decode().splitlines()
    return "\n".join(line for line in lines if not line.startswith(tuple(f'"{name}:' for name in _LEFT_OUT))) + "\n"


def compiled(po: str) -> bytes:
    """Return the .mo of the text of a .po: the same bytes whenever it is compiled."""
    catalog = read(po)
    catalog.creation_date = catalog.revision_date = datetime(2026, 1, 1, tzinfo=UTC)
    out = io.BytesIO()
    write_mo(out, catalog)
    return out.getvalue()


def read(po: str) -> Catalog:
    """Return the catalogue in the text of a .po."""
    catalog = read_po(io.BytesIO(po.encode()), locale="zh")
    catalog.project, catalog.version = "attn-tui", ""
    return catalog


def _template(found: Iterable[Message]) -> Catalog:
    catalog = Catalog(charset="utf-8")
    for each in found:
        catalog.add(each.id, locations=[(each.path, 0)], auto_comments=[each.note] if each.note else ())
    return catalog
