"""Turns the bytes that a terminal sends into messages for the app.

A terminal, or the connection to it, may send anything: broken text, reports of another protocol, half a sequence. The
bytes are split into units: characters, sequences and pastes. Textual's parser reads each unit separately. If it does
not know a sequence, or raises an exception, the sequence is dropped instead of typed, and the next unit is read as if
nothing had happened. An incomplete unit is held until its rest arrives; its size and the wait are bounded.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Any

from textual import events
from textual.constants import ESCAPE_DELAY
from textual.drivers import linux_driver
from textual.message import Message

_ESC = "\x1b"
_PASTE, _PASTE_END = f"{_ESC}[200~", f"{_ESC}[201~"

# The position of the cursor, at any place: some terminals reply only after reading on. `CSI 1 ; 2 R` to
# `CSI 1 ; 16 R` are F3 with modifiers.
_REPLY = re.compile(r"\x1b\[(?!1;(?:[2-9]|1[0-6])R)[0-9]{1,4};[0-9]{1,4}R")

# A complete sequence, or one that the next character cuts short.
_SEQUENCE = re.compile(
    r"""\x1b(?:
        \[(?:
            \[[A-E]                   # a function key of the Linux console
            | M[\s\S]{3}              # a mouse report of an old terminal
            | [0-9]+\$                # a key of rxvt with Shift
            | (?!\[?\Z|M)[ -?]*+(?:[@-~]|(?=[^ -~]))  # a control sequence
        )
        | O(?:[^\x1b]|(?=\x1b))       # a function key
        | [PX\]^_][^\x00-\x1f\x7f]*+(?:  # a string, such as the reply to a query for a colour
            \x07|\x1b\\|(?=[^\x07\x1b]|\x1b[^\\])
        )
        | [1-6\b\x7f]|[^\W\d_OPX]    # Alt and a key; TypeAheadApp knows which letters are bound
        | (?=[^\[OPX\]^_])           # Escape, and another key
    )""",
    re.VERBOSE,
)
_STRING = re.compile(r"\x1b[PX\]^_].")

BACKGROUND_QUERY = "\x1b]11;?\x1b\\"
_BACKGROUND = re.compile(r"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})\b.*", re.DOTALL)

_LONGEST = 32  # characters of a sequence; Textual types those of a longer one
_LONGEST_PASTE = 1 << 16  # characters; more than any field takes
_MOST_HELD = 1 << 10  # characters of an incomplete sequence

_ESCAPE_WAIT = 1.1 * ESCAPE_DELAY  # seconds after which a lone ESC was the Escape key
_LAST_WAIT = 2.0  # seconds after which the rest of a sequence, or of a paste, will not come

_Parser: Any = getattr(linux_driver, "XTermParser", None)
_MOUSE = ("last_x", "last_y", "mouse_pixels", "terminal_size", "terminal_pixel_size")  # what mouse reports depend on

# Whether this version of Textual has the private parts used here.
SUPPORTED = hasattr(_Parser, "feed") and {*_MOUSE} <= {*vars(_Parser())}


class Background(Message):
    """The terminal's background is light, or dark: the reply to BACKGROUND_QUERY."""

    def __init__(self, light: bool) -> None:
        super().__init__()
        self.light = light


class Reader:
    """Reads keys, reports and pastes as messages, and counts replies."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._held = ""  # the start of a sequence
        self._pasted: str | None = None  # the text of a paste whose end has not come
        self._parser = _Parser()

    def feed(self, data: bytes) -> tuple[list[Message], int]:
        """Return the messages in `data`, and the number of replies."""
        messages: list[Message] = []
        replies = 0
        for unit in self._units(self._held + self._decode(data)):
            if _REPLY.fullmatch(unit):
                replies += 1
            else:
                messages += self._read(unit)
        return messages, replies

    @property
    def wait(self) -> float | None:
        """The seconds without input after which to call `pause`; None if nothing is held."""
        if self._pasted is not None or len(self._held) > 2:
            return _LAST_WAIT
        return _ESCAPE_WAIT if self._held else None

    def pause(self) -> list[Message]:
        """Return what is held if it can be a key or is a paste; drop the start of anything else."""
        held, self._held = self._held, ""
        pasted, self._pasted = self._pasted, None
        if pasted is not None:
            return [_paste(pasted)]
        return self._read(held) if 0 < len(held) <= 2 else []

    def _units(self, text: str) -> Iterator[str]:
        """Yield complete units; hold the rest."""
        self._held = ""
        while text:
            if self._pasted is not None:
                pasted, end, text = (self._pasted + text).partition(_PASTE_END)
                self._pasted = None if end else _shortened(pasted)
                if end:
                    yield f"{_PASTE}{pasted}{_PASTE_END}"
                continue
            if not text.startswith(_ESC):
                keys, escape, text = text.partition(_ESC)
                text = escape + text
                yield from keys
                continue
            match = _SEQUENCE.match(text)
            if match is None:
                self._held = text if len(text) <= _MOST_HELD else text[:3]
                return
            text = text[match.end() :]
            if match[0] == _PASTE:
                self._pasted = ""
            else:
                yield match[0]

    def _read(self, unit: str) -> list[Message]:
        """Return the messages of Textual's parser for a unit; none if it does not know the unit, or raises."""
        if unit.startswith(_PASTE):
            return [_paste(unit[len(_PASTE) : -len(_PASTE_END)])]
        if match := _BACKGROUND.fullmatch(unit):
            red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in match.groups())
            return [Background(0.299 * red + 0.587 * green + 0.114 * blue > 0.5)]
        if len(unit) > _LONGEST or _STRING.match(unit):
            return []
        unfinished = unit[0] == _ESC and (unit[1:2] != "[" or len(unit) == 2)  # Escape, or Alt and a key
        try:
            messages: list[Message] = [*self._parser.feed(unit)]
            if unfinished and not messages:
                messages = [*self._parser.feed("")]
        except Exception:  # a number is too large, a code is not a character, a size is 0, …
            messages = []
        if unfinished or not messages:  # the parser has ended, or waits for the rest of an unknown sequence
            before, self._parser = self._parser, _Parser()
            for name in _MOUSE:
                setattr(self._parser, name, getattr(before, name))
        return messages


def _paste(text: str) -> events.Paste:
    """Return the printable characters and line breaks of a paste."""
    return events.Paste("".join(c for c in text[:_LONGEST_PASTE] if c.isprintable() or c in "\t\r\n"))


def _shortened(pasted: str) -> str:
    """Return an unfinished paste without the middle of one that is too long; its end may be the start of the end."""
    tail = len(_PASTE_END) - 1
    return pasted if len(pasted) <= _LONGEST_PASTE + tail else pasted[:_LONGEST_PASTE] + pasted[-tail:]
