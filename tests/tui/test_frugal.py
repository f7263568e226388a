"""What is sent leaves the terminal as a full repaint would, and is little."""

import asyncio
import importlib.util
import re
from collections.abc import Iterator, Sequence
from types import ModuleType

import pytest
from attn_tui.tui import frugal, rows
from attn_tui.tui.frugal import FrugalApp
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, Console
from rich.segment import Segment
from rich.style import Style
from textual import _compositor
from textual.app import App, ComposeResult
from textual.geometry import Size
from textual.screen import Screen
from textual.strip import Strip
from textual.widgets import Label

CONSOLE = Console(color_system="truecolor", force_terminal=True)


# A terminal, as far as frames need one

Pen = tuple[str, str, frozenset[str]]  # colour of the text, of the ground, and attributes
PLAIN: Pen = ("", "", frozenset())
Place = tuple[str, Pen]  # a character; the second half of a wide one is empty
NOISE: Place = ("?", ("noise", "noise", frozenset()))  # what stood there before

_TOKEN = re.compile(r"\x1b\[([0-?]*)([ -/]*[@-~])|\x1b[\]P_^].*?(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]|[^\x1b]+", re.DOTALL)
_OFF = {"22": "12", "23": "3", "24": "4", "25": "5", "27": "7", "28": "8", "29": "9"}


class Terminal:
    """Interprets CUP, CUF, SGR and text, cell by cell; other sequences only move nothing."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.places: list[list[Place]] = [[NOISE] * width for _ in range(height)]
        self.x = self.y = 0
        self.pen = PLAIN
        self.left = False  # the other screen, which is the shell's, is shown
        self.strict = True  # nothing is ever written past an edge
        self.joins = True  # what is seen as one character is drawn as one, or else each of its parts

    def feed(self, data: str) -> None:
        for token in _TOKEN.finditer(data):
            arguments, final = token.group(1), token.group(2)
            if final == "H":
                row, _, column = arguments.partition(";")
                self.y, self.x = int(row or 1) - 1, int(column or 1) - 1
                inside = 0 <= self.y < self.height and 0 <= self.x < self.width
                assert inside or not self.strict
                self.y, self.x = min(self.y, self.height - 1), min(self.x, self.width - 1)
            elif final == "C":
                assert self.x < self.width - int(arguments) or not self.strict
                self.x = min(self.x + int(arguments), self.width - 1)
            elif final == "m":
                self._dye(arguments.split(";") if arguments else ["0"])
            elif final == "J" and arguments == "2":
                self.places = [[(" ", PLAIN)] * self.width for _ in range(self.height)]
            elif arguments == "?1049":
                self.left = final == "l"
            elif not self.left and not token.group().startswith("\x1b"):
                self._write("".join(character for character in token.group() if character >= " "))

    @property
    def lines(self) -> list[str]:
        return ["".join(character for character, _ in row) for row in self.places]

    def _write(self, text: str) -> None:
        if not self.joins:
            for character in text:
                self._put(character, cell_len(character))
        else:
            for character, width in rows._characters(text):
                self._put(character, width)

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
        """What is left of a wide character that is written over on one side of this border: blanks."""
        row = self.places[self.y]
        if 0 < at < self.width and row[at][0] == "":
            row[at - 1], row[at] = (" ", row[at - 1][1]), (" ", row[at][1])

    def _dye(self, codes: Sequence[str]) -> None:
        text, ground, attributes = self.pen
        rest = iter(codes)
        for code in rest:
            if code in ("0", ""):
                text, ground, attributes = PLAIN
            elif code in ("38", "48"):
                kind = next(rest)
                colour = ";".join([kind, *(next(rest) for _ in range(3 if kind == "2" else 1))])
                text, ground = (colour, ground) if code == "38" else (text, colour)
            elif code in _OFF:
                attributes -= set(_OFF[code])
            elif int(code) < 22:
                attributes |= {code}
            elif 30 <= int(code) <= 39 or 90 <= int(code) <= 97:
                text = "" if code == "39" else code
            else:
                assert 40 <= int(code) <= 49 or 100 <= int(code) <= 107, code
                ground = "" if code == "49" else str(int(code) - 10)
        self.pen = (text, ground, attributes)


def repainted(frame: Sequence[Sequence[Strip]], size: Size, system: ColorSystem = ColorSystem.TRUECOLOR) -> Terminal:
    """A terminal of so many colours that a whole frame was written to, each segment after a reset."""
    terminal = Terminal(*size)
    for y, line in enumerate(frame):
        terminal.feed(f"\x1b[{y + 1};1H")
        for segment in (segment for strip in line for segment in strip):
            segment.style._ansi = None  # where Rich keeps the codes of the colours that came first
            codes = segment.style.render("X", color_system=system).partition("X")[0]
            terminal.feed(f"\x1b[0m{codes}{segment.text}")
    return terminal


# Frames


class Quiet(FrugalApp[None]):
    """An app that is never run: its frames are made here."""


Update = list[tuple[int, int, Strip]]

STYLES = [
    Style(color="#f0a868", bgcolor="#101319"),
    Style(color="#6cc5e0", bgcolor="#101319"),
    Style(color="#6cc5e0", bgcolor="#1a1f29"),
    Style(color="#c8b6ff", bgcolor="#101319", bold=True),
    Style(color="#f0a868", bgcolor="#101319", bold=True),
    Style(color="red", bgcolor="blue", reverse=True),
    Style(color="bright_red", underline=True, dim=True),
    Style(bgcolor="#1a1f29"),
    Style(color="default", bgcolor="default"),
    Style(bold=True),
    Style(),
]
CUT = 7  # a column where one widget ends and the next one begins

# Narrow and wide characters, or narrow ones and such as are made of two.
wide = st.text(st.sampled_from(["a", "b", " ", "█", "é", "词", "語"]), max_size=6)
combined = st.lists(st.sampled_from(["a", "b", " ", "e\u0301", "a\u0308\u0301"]), max_size=6).map("".join)
COMPOSED = ["👩\u200d🚀", "❤\ufe0f", "词\u0301", "👍🏽", "🇩🇪", "क्षि"]
composed = st.lists(st.sampled_from(["a", "b", " ", "语", *COMPOSED]), max_size=4).map("".join)
piece = st.sampled_from(["aaa", "aba", "语a", "语█", "e\u0301a", "b语\u0301"])
pieces = st.lists(st.tuples(wide | combined, st.sampled_from(STYLES)), max_size=5)


def strip_of(segments: Sequence[tuple[str, Style]], width: int) -> Strip:
    """These segments cut or filled to the width, as the compositor hands them over."""
    return Strip([Segment(text, style) for text, style in segments]).adjust_cell_length(width, STYLES[0])


@st.composite
def shows(draw: st.DrawFn, pieces: st.SearchStrategy[Sequence[tuple[str, Style]]]) -> list[tuple[Size, bool, Update]]:
    """Frames at a size, each whole or of some parts of some lines, and whether the screen is forgotten before it."""
    frames: list[tuple[Size, bool, Update]] = []
    size = Size(0, 0)
    for _ in range(draw(st.integers(1, 8))):
        resized = not frames or draw(st.integers(0, 4)) == 0
        if resized:
            size = Size(draw(st.integers(1, 24)), draw(st.integers(1, 4)))
        forget = draw(st.integers(0, 6)) == 0
        update: Update = []
        for y in range(size.height):
            for x, end in ((0, min(CUT, size.width)), (CUT, size.width)):
                if x < end and (resized or forget or draw(st.booleans())):
                    update.append((y, x, strip_of(draw(pieces), end - x)))
        frames.append((size, forget, update))
    return frames


@settings(max_examples=150)
@given(frames=shows(pieces))
def test_after_any_frames_the_terminal_shows_what_a_full_repaint_would(
    frames: list[tuple[Size, bool, Update]],
) -> None:
    app = Quiet()
    terminal, picture = Terminal(0, 0), {}
    for size, forget, update in frames:
        if (terminal.width, terminal.height) != size:
            terminal, picture = Terminal(*size), {}  # after a resize a terminal shows anything
        if forget:
            terminal = Terminal(*size)
            app.forget_screen()
        picture |= {(y, x): strip for y, x, strip in update}
        terminal.feed(app._difference(iter(update), size, CONSOLE))
        assert terminal.pen == PLAIN, "the next one who writes starts from plain"
        whole = [
            [strip for (line, _), strip in sorted(picture.items(), key=at) if line == y] for y in range(size.height)
        ]
        assert terminal.places == repainted(whole, size).places


@settings(max_examples=300)
@given(words=st.lists(st.tuples(st.sampled_from([0, 8]), piece, piece, st.sampled_from(STYLES[:2])), min_size=5))
@pytest.mark.parametrize("ahead", [None, -1, -2], ids=["at once", "compared ahead", "compared ahead with another"])
def test_pieces_that_stay_where_they_are_and_say_something_else_leave_the_terminal_as_a_full_repaint_would(
    ahead: int | None, words: list[tuple[int, str, str, Style]]
) -> None:
    app, size = Quiet(), Size(16, 1)
    terminal = Terminal(*size)
    picture = {x: strip_of([], 8) for x in (0, 8)}
    terminal.feed(app._difference(iter([(0, x, strip) for x, strip in picture.items()]), size, CONSOLE))
    shown_before = {x: [strip, strip] for x, strip in picture.items()}
    for x, first, second, style in words:
        strip = picture[x] = rows.LineStrip(strip_of([(first, STYLES[0]), (second, style)], 8))
        if ahead is not None:
            strip.foresee(shown_before[x][ahead])
        shown_before[x].append(strip)
        terminal.feed(app._difference(iter([(0, x, picture[x])]), size, CONSOLE))
        shown = repainted([[strip for _, strip in sorted(picture.items())]], size).places[0]
        assert terminal.places[0] == shown


@pytest.mark.parametrize("joins", [True, False], ids=["as one", "each part"])
@settings(max_examples=100)
@given(frames=shows(st.lists(st.tuples(composed, st.sampled_from(STYLES)), max_size=5)))
def test_however_a_terminal_draws_a_composed_character_everything_else_is_in_its_place(
    joins: bool, frames: list[tuple[Size, bool, Update]]
) -> None:
    app = Quiet()
    terminal, picture = Terminal(0, 0), {}
    for size, forget, update in frames:
        if forget or (terminal.width, terminal.height) != size:
            terminal, picture = Terminal(*size), {}
            terminal.joins, terminal.strict = joins, False
            app.forget_screen()
        picture |= {(y, x): strip for y, x, strip in update}
        terminal.feed(app._difference(iter(update), size, CONSOLE))
        for (y, left), strip in picture.items():
            places = terminal.places[y][left : left + strip.cell_length]
            part_of = ""
            for x, (character, _) in enumerate(rows.cells_of(strip)[0][: len(places)]):
                part_of = character or part_of
                assert len(part_of) > 1 or places[x][0] == character, (y, left + x)


def at(item: tuple[tuple[int, int], Strip]) -> tuple[int, int]:
    return item[0]


def lines_at(*texts: str, style: Style = STYLES[0]) -> Iterator[tuple[int, int, Strip]]:
    return iter([(y, 0, Strip([Segment(text, style)])) for y, text in enumerate(texts)])


def test_nothing_is_sent_for_an_unchanged_frame() -> None:
    app, size = Quiet(), Size(6, 2)
    assert app._difference(lines_at("abcdef", "词語12"), size, CONSOLE)
    assert app._difference(lines_at("abcdef", "词語12"), size, CONSOLE) == ""


def test_an_equal_style_that_is_another_object_is_no_change() -> None:
    app, size = Quiet(), Size(3, 1)
    app._difference(lines_at("abc", style=Style.parse("bold red")), size, CONSOLE)
    assert app._difference(lines_at("abc", style=Style.parse("bold red")), size, CONSOLE) == ""


def test_one_changed_digit_costs_its_place_its_colour_and_itself() -> None:
    app, size = Quiet(), Size(40, 1)
    app._difference(lines_at("d_k 64".ljust(40)), size, CONSOLE)
    sent = app._difference(lines_at("d_k 65".ljust(40)), size, CONSOLE)
    assert sent.endswith("\x1b[1;6H5\x1b[m")
    assert len(sent) < 50


def test_changes_that_lie_close_are_sent_in_one_piece_and_distant_ones_apart() -> None:
    app, size = Quiet(), Size(40, 1)
    app._difference(lines_at("1.23 " * 8), size, CONSOLE)
    close = app._difference(lines_at("9.29 " + "1.23 " * 7), size, CONSOLE)
    assert close.count("H") == 1
    apart = app._difference(lines_at("8.28 " + "1.23 " * 6 + "9.29 "), size, CONSOLE)
    assert apart.count("H") == apart.count("C") == 1
    assert len(apart) < 80


def test_between_colours_of_one_ground_only_the_colour_is_sent() -> None:
    app, size = Quiet(), Size(2, 1)
    two = Strip([Segment("a", STYLES[0]), Segment("b", STYLES[1])])
    sent = app._difference(iter([(0, 0, two)]), size, CONSOLE)
    assert sent.count("48;2;") == 1
    assert sent.count("38;2;") == 2


def test_colours_are_those_that_the_terminal_knows() -> None:
    for system, known in (("256", "38;5;"), ("standard", "3")):
        console = Console(color_system=system, force_terminal=True)
        sent = Quiet()._difference(lines_at("ab"), Size(2, 1), console)
        assert "38;2;" not in sent
        assert known in sent


def test_no_style_remembers_the_colours_of_another_terminal() -> None:
    for name in ("truecolor", "standard", "256", "truecolor", "standard"):
        console, size = Console(color_system=name, force_terminal=True), Size(len(STYLES), 1)
        terminal, strip = Terminal(*size), Strip([Segment("a", style) for style in STYLES])
        terminal.feed(Quiet()._difference(iter([(0, 0, strip)]), size, console))
        assert terminal.places == repainted([[strip]], size, COLOR_SYSTEMS[name]).places


def test_a_wide_character_is_sent_whole_when_either_half_changes() -> None:
    app, size = Quiet(), Size(4, 1)
    terminal = Terminal(*size)
    for text in ("词語", "a語b", "语词", " 词 ", "词語", "abcd"):
        terminal.feed(app._difference(lines_at(text), size, CONSOLE))
        assert terminal.lines == [text]


def test_after_forgetting_the_screen_everything_is_sent_again() -> None:
    app, size = Quiet(), Size(6, 1)
    first = app._difference(lines_at("abcdef"), size, CONSOLE)
    app.forget_screen()
    assert app._difference(lines_at("abcdef"), size, CONSOLE) == first


def test_after_a_resize_everything_is_sent_again() -> None:
    app = Quiet()
    app._difference(lines_at("abcdef"), Size(6, 1), CONSOLE)
    assert "abcdef" in app._difference(lines_at("abcdef  "), Size(8, 1), CONSOLE)
    assert "abcdef" in app._difference(lines_at("abcdef"), Size(6, 1), CONSOLE)


def test_a_frame_made_for_a_wider_screen_is_cut_at_the_edge() -> None:
    terminal = Terminal(3, 1)
    terminal.feed(Quiet()._difference(lines_at("abcdef"), Size(3, 1), CONSOLE))
    assert terminal.lines == ["abc"]


def test_a_wide_character_on_the_edge_of_a_smaller_screen_is_not_halved() -> None:
    Terminal(3, 1).feed(Quiet()._difference(lines_at("ab词"), Size(3, 1), CONSOLE))


def test_a_wide_character_beside_a_combining_mark_changes_alone() -> None:
    app, size, terminal = Quiet(), Size(3, 1), Terminal(3, 1)
    for text in ("語e\u0301", "語e\u0300", "a  "):
        terminal.feed(app._difference(lines_at(text), size, CONSOLE))
        assert terminal.lines == [text]


@pytest.mark.parametrize("text", ["👩\u200d🚀", "❤\ufe0f", "词\u0301"])
def test_characters_of_several_parts_take_the_cells_that_the_layout_gave_them(text: str) -> None:
    strip = Strip([Segment(text, STYLES[0])])
    cells, composed = rows.cells_of(strip)
    assert composed
    assert len(cells) == strip.cell_length
    assert "".join(character for character, _ in cells) == text
    assert cells[1][0] == ""


# In a running app


def test_with_this_textual_only_differences_are_sent() -> None:
    assert frugal.SUPPORTED


class Hello(App[None]):
    def compose(self) -> ComposeResult:
        yield Label("hello")


class OtherParts:
    def __init__(self, parts: object) -> None:
        self.parts = parts


def module_with(name: str, part: type | None, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as it is with a Textual that has this part of the compositor in place of its own, or none."""
    if part is None:
        monkeypatch.delattr(_compositor, name)
    else:
        monkeypatch.setattr(_compositor, name, part)
    spec = importlib.util.spec_from_file_location("attn_tui.tui.frugal_elsewhere", frugal.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.undo()
    return module


@pytest.mark.parametrize(
    ("name", "part"),
    [("ChopsUpdate", OtherParts), ("ChopsUpdate", None), ("Compositor", OtherParts), ("Compositor", None)],
)
def test_with_a_textual_it_does_not_know_frames_are_textual_s_own(
    name: str, part: type | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = module_with(name, part, monkeypatch)
    assert not module.SUPPORTED
    assert module.FrugalApp._display is App._display
    assert FrugalApp._display is not App._display

    class Elsewhere(Hello, module.FrugalApp):  # type: ignore[name-defined, misc]
        def get_default_screen(self) -> Screen[object]:
            screen: Screen[object] = module.FrugalScreen(id="_default")
            assert "render_partial_update" not in vars(screen._compositor)
            return screen

    async def show() -> list[str]:
        app = Elsewhere()
        async with app.run_test(size=(20, 3)):
            app.forget_screen()
            return [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]

    assert "hello" in asyncio.run(show())
