"""Renew the catalogue: `make messages` merges the messages of the sources into the .po, and loses no translation.

`make messages ARGS=--drop` also drops translations that no message uses any more.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po
from find import ROOT, Message, found

PO = ROOT / "tui" / "language" / "zh" / "LC_MESSAGES" / "attn_tui.po"
_HEADER = "# Simplified Chinese messages of attn-tui. `make messages` renews everything but the translations."
_LEFT_OUT = (  # of the header: Git knows them
    "Report-Msgid-Bugs-To", "POT-Creation-Date", "PO-Revision-Date", "Last-Translator", "Language-Team",
    "Generated-By",
)  # fmt: skip


def merged(messages: Iterable[Message], before: str, drop: bool = False) -> str:
    """Return the text of a .po with these messages, and the translations that it had before.

    Translations of messages that are no longer found stay as comments, unless `drop` is set.
    """
    template, catalog = Catalog(charset="utf-8"), read_po(io.BytesIO(before.encode()), locale="zh")
    for each in messages:
        id = (each.text, each.plural) if each.plural else each.text
        template.add(id, locations=[(each.path, 0)], auto_comments=[each.note] if each.note else ())
    catalog.update(template, no_fuzzy_matching=True)
    for message in catalog:
        message.flags.discard("python-format")  # a % is per cent
    catalog.project, catalog.version, catalog.header_comment, catalog.fuzzy = "attn-tui", "", _HEADER, False
    out = io.BytesIO()
    write_po(out, catalog, width=116, ignore_obsolete=drop, include_lineno=False)
    lines = out.getvalue().decode().splitlines()
    return "\n".join(line for line in lines if not line.startswith(tuple(f'"{name}:' for name in _LEFT_OUT))) + "\n"


if __name__ == "__main__":
    PO.write_text(merged(found(), PO.read_text("utf-8"), drop="--drop" in sys.argv), "utf-8")
