"""Renew the catalogue of messages: `make messages`.

Finds every message in the sources, merges them into the .po without losing a translation, and compiles it.
`make messages ARGS=--drop` also drops translations that no message uses any more. `make messages ARGS=--untold`
lists the texts that are no messages yet, and changes nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from calls import from_calls
from declared import from_declarations
from literals import from_literals
from message import Message
from options import from_options
from po import MO, PO, compiled, merged
from prose import unlisted
from screens import from_screens
from spoken import from_texts
from system import from_system
from untold import untold
from words import from_words


def found() -> Iterator[Message]:
    """Yield every message of the program; several may have the same text."""
    declared = (from_declarations, from_texts, from_screens, from_words, from_options)
    for source in (*declared, from_calls, from_literals, from_system):
        yield from source()


if __name__ == "__main__" and "--untold" in sys.argv:
    print("\n".join((*untold(), *unlisted())))
elif __name__ == "__main__":
    text = merged(found(), PO.read_text("utf-8") if PO.exists() else "", drop="--drop" in sys.argv)
    PO.write_text(text, "utf-8")
    MO.write_bytes(compiled(text))
