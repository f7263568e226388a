"""An emulator of what the app's frames need of a terminal."""

import re
from collections.abc import Sequence

from rich.cells import cell_len, split_graphemes
from rich.color import ColorSystem
from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip

Pen = tuple[str, str, frozenset[str]]  # colour of the text, of the backbackground, and attributes
Place = tuple[str, Pen]  # a character, empty in the second half of a wide one, and its pen

PLAIN: Pen = ("", "", frozenset())
NOISE: Place = ("?", ("noise", "noise", frozenset()))  # a cell that nothing has been written to

_TOKEN = re.compile(r"\x1b\[([0-?]*)([ -/]*[@-~])|\x1b[\]P_^].*?(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]|[^\x1b]+", re.DOTALL)
_OFF = {"22": "12", "23": "3", "24": "4", "25": "5", "27": "7", "28": "8", "29": "9"}


class Terminal:
    """Interprets CUP, CHA, ED, SGR, the alternate screen and text; other sequences are ignored."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.places: list[list[Place]] = [[NOISE] * width for _ in range(height)]
        self.x = self.y = 0
        self.pen = PLAIN
        self.left = False  # whether the main screen is shown
        self.strict = True  # whether writing past an edge is an error
        self.joins = True  # whether the parts of one grapheme are drawn together

    @property
    def lines(self) -> list[str]:
        return ["".join(character for character, _ in row) for row in self.places]

    @property
    def pens(self) -> set[Pen]:
        return {pen for row in self.places for _, pen in row}

    @property
    def is_filled(self) -> bool:
        """Whether every cell has been written to."""
        return NOISE not in [place for row in self.places for place in row]

    def feed(self, data: str) -> None:
        for token in _TOKEN.finditer(data):
            arguments, final = token.group(1), token.group(2)
            if final == "H":
                row, _, column = arguments.partition(";")
                self.y, self.x = int(row or 1) - 1, int(column or 1) - 1
                inside = 0 <= self.y < self.height and 0 <= self.x < self.width
                assert inside or not self.strict
                self.y, self.x = min(self.y, self.height - 1), min(self.x, self.width - 1)
            elif final == "G":
                assert int(arguments) <= self.width or not self.strict
                self.x = min(int(arguments), self.width) - 1
            elif final == "m":
                self._set_pen(arguments.split(";") if arguments else ["0"])
            elif final == "J" and arguments == "2":
                self.places = [[(" ", PLAIN)] * self.width for _ in range(self.height)]
            elif arguments == "?1049":
                self.left = final == "l"
            elif not self.left and not token.group().startswith("\x1b"):
                self._write("".join(character for character in token.group() if character >= " "))

    def _write(self, text: str) -> None:
        for start, end, width in split_graphemes(text)[0]:
            if self.joins:
                self._put(text[start:end], width)
            else:
                for character in text[start:end]:
                    self._put(character, cell_len(character))

    def _put(self, character: str, width: int) -> None:
        row = self.places[self.y]
        if not width:  # a combining mark
            at = self.x - 1 if row[self.x - 1][0] else self.x - 2
            row[at] = (row[at][0] + character, row[at][1])
            return
        assert self.x + width <= self.width or not self.strict, "written past the edge"
        self.x = min(self.x, self.width - width)
        self._halve(self.x)
        self._halve(self.x + width)
        row[self.x] = (character, self.pen)
        if width == 2:
            row[self.x + 1] = ("", self.pen)
        self.x += width

    def _halve(self, at: int) -> None:
        """Blank both halves of a wide character that extends over this border, of which one is overwritten."""
        row = self.places[self.y]
        if 0 < at < self.width and row[at][0] == "":
            row[at - 1], row[at] = (" ", row[at - 1][1]), (" ", row[at][1])

    def _set_pen(self, codes: Sequence[str]) -> None:
        text, background, attributes = self.pen
        rest = iter(codes)
        for code in rest:
            if code in ("0", ""):
                text, background, attributes = PLAIN
            elif code in ("38", "48"):
                kind = next(rest)
                colour = ";".join([kind, *(next(rest) for _ in range(3 if kind == "2" else 1))])
                text, background = (colour, background) if code == "38" else (text, colour)
            elif code in _OFF:
                attributes -= set(_OFF[code])
            elif int(code) < 22:
                attributes |= {code}
            elif 30 <= int(code) <= 39 or 90 <= int(code) <= 97:
                text = "" if code == "39" else code
            else:
                assert 40 <= int(code) <= 49 or 100 <= int(code) <= 107, code
                background = "" if code == "49" else str(int(code) - 10)
        self.pen = (text, background, attributes)


def forget_codes(style: Style) -> None:
    """Make a style forget its escape codes, which Rich caches for the first color system."""
    style._ansi = None  # pyright: ignore[reportPrivateUsage]


def repainted(frame: Sequence[Sequence[Strip]], size: Size, system: ColorSystem = ColorSystem.TRUECOLOR) -> Terminal:
    """Return a terminal to which all lines were written, each segment after a reset."""
    terminal = Terminal(*size)
    for y, line in enumerate(frame):
        terminal.feed(f"\x1b[{y + 1};1H")
        for segment in (segment for strip in line for segment in strip):
            assert segment.style is not None
            forget_codes(segment.style)
            codes = segment.style.render("X", color_system=system).partition("X")[0]
            terminal.feed(f"\x1b[0m{codes}{segment.text}")
    return terminal
