"""Compiling a catalogue of translations: a .po, as `make messages` writes it, becomes the .mo that gettext reads.

A wheel has the .mo alone. In a clone there is only the .po, which is compiled at start in 40 ms.
"""

from __future__ import annotations

import json
import re
from struct import pack

_TEXT = r'((?:".*"\n)+)'
_ENTRY = re.compile(rf"^msgid {_TEXT}(?:msgid_plural {_TEXT})?msgstr(?:\[0\])? {_TEXT}", re.MULTILINE)
_MAGIC, _HEAD = 0x950412DE, 28  # of a .mo: its first number, and the bytes of its head


def compiled(po: str) -> bytes:
    """Return the .mo of the text of a .po, for a language that has one form for all numbers."""
    forms = [(_read(one), _read(many), _read(said)) for one, many, said in _ENTRY.findall(po)]
    entries = sorted(("\0".join(filter(None, (one, many))).encode(), said.encode()) for one, many, said in forms)
    texts = [text for text, _ in entries] + [said for _, said in entries]
    at, table = _HEAD + 8 * len(texts), list[int]()
    for text in texts:
        table += len(text), at
        at += len(text) + 1
    head = (_MAGIC, 0, len(entries), _HEAD, _HEAD + 8 * len(entries), 0, 0)
    return pack(f"<{len(head) + len(table)}I", *head, *table) + b"".join(text + b"\0" for text in texts)


def _read(lines: str) -> str:
    """Return the text of lines in quotes."""
    return json.loads(lines.rstrip("\n").replace('"\n"', "")) if lines else ""
