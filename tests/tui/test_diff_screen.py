"""Only differences are sent, and afterwards the terminal shows what a full repaint would show."""

import asyncio
import importlib.util
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Literal

import pytest
from attn_tui.tui.terminal import diff_screen, driver
from attn_tui.tui.terminal.cell_diff import ScreenRow, cells_of
from attn_tui.tui.terminal.diff_screen import DiffApp
from attn_tui.tui.terminal.paced_app import PacedApp
from cases import for_each, present
from emulator import PLAIN, Terminal, repainted
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import COLOR_SYSTEMS, Console
from rich.segment import Segment
from rich.style import Style
from stage import rendered
from textual import _compositor
from textual.app import ComposeResult
from textual.geometry import Size
from textual.strip import Strip
from textual.widgets import Label

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
COMPOSED = ["👩\u200d🚀", "❤\ufe0f", "词\u0301", "👍🏽", "🇩🇪", "क्षि"]

Update = list[tuple[int, int, Strip]]  # line, column, strip


@pytest.mark.parametrize("wide", ["", "词"])  # with which a row is compared cell by cell
@pytest.mark.parametrize(("between", "pieces"), [(4, 1), (5, 2)])
def test_up_to_four_unchanged_cells_are_sent_again(between: int, pieces: int, wide: str) -> None:
    row = ScreenRow(between + 2 + 2 * len(wide))
    row.show(0, Strip([Segment(f"{wide}a{'.' * between}a", STYLES[0])]))
    assert len(row.show(0, Strip([Segment(f"{wide}b{'.' * between}b", STYLES[0])]))[0]) == pieces


def test_what_follows_a_composed_character_is_sent_as_it_is_now() -> None:
    row = ScreenRow(4)
    for x, text in ((0, "ab"), (2, "cd"), (2, "xy"), (0, COMPOSED[0])):
        _, cells = row.show(x, Strip([Segment(text, STYLES[0])]))
    assert [character for character, _ in cells] == [COMPOSED[0], "", "x", "y"]


class Link:
    """An app that is not run, and a terminal that receives its output."""

    def __init__(
        self, size: tuple[int, int] = (40, 1), colors: Literal["truecolor", "standard", "256"] = "truecolor"
    ) -> None:
        self.app = DiffApp[None]()
        self.console = Console(color_system=colors, force_terminal=True)
        self.clear(size)

    def clear(self, size: tuple[int, int], strict: bool = True, joins: bool = True) -> None:
        """Start with another terminal of unknown contents."""
        self.size, self.terminal = Size(*size), Terminal(*size)
        self.terminal.strict, self.terminal.joins = strict, joins
        self.picture: dict[tuple[int, int], Strip] = {}

    def update(self, update: Update) -> str:
        """Send the differences; return what was sent."""
        self.picture |= {(y, x): strip for y, x, strip in update}
        sent = self.app.difference(iter(update), self.size, self.console)
        self.terminal.feed(sent)
        assert self.terminal.pen == PLAIN, "the style was not reset"
        return sent

    def show(self, *texts: str, style: Style = STYLES[0]) -> str:
        """Send lines in one style; return what was sent."""
        return self.update([(y, 0, Strip([Segment(text, style)])) for y, text in enumerate(texts)])

    @property
    def is_as_repainted(self) -> bool:
        places = sorted(self.picture)
        whole = [[self.picture[place] for place in places if place[0] == y] for y in range(self.size.height)]
        system = COLOR_SYSTEMS[self.console.color_system or "truecolor"]
        return self.terminal.places == repainted(whole, self.size, system).places


# Any frames

narrow_or_wide = st.text(st.sampled_from(["a", "b", " ", "█", "é", "词", "語"]), max_size=6)
combining = st.lists(st.sampled_from(["a", "b", " ", "e\u0301", "a\u0308\u0301"]), max_size=6).map("".join)
composed = st.lists(st.sampled_from(["a", "b", " ", "语", *COMPOSED]), max_size=4).map("".join)
piece = st.sampled_from(["aaa", "aba", "语a", "语█", "e\u0301a", "b语\u0301"])

BORDER = 7  # the column between two widgets


def strip_of(segments: Sequence[tuple[str, Style]], width: int) -> Strip:
    """Return a strip of segments, cropped or extended as the compositor does."""
    return Strip([Segment(text, style) for text, style in segments]).adjust_cell_length(width, STYLES[0])


@st.composite
def frames_of(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> list[tuple[Size, bool, Update]]:
    """Draw frames: the size, whether the screen is forgotten before the frame, and its strips."""
    pieces = st.lists(st.tuples(texts, st.sampled_from(STYLES)), max_size=5)
    frames: list[tuple[Size, bool, Update]] = []
    size = Size(0, 0)
    for _ in range(draw(st.integers(1, 8))):
        resized = not frames or draw(st.integers(0, 4)) == 0
        if resized:
            size = Size(draw(st.integers(1, 24)), draw(st.integers(1, 4)))
        forget = draw(st.integers(0, 6)) == 0
        update: Update = []
        for y in range(size.height):
            for x, end in ((0, min(BORDER, size.width)), (BORDER, size.width)):
                if x < end and (resized or forget or draw(st.booleans())):
                    update.append((y, x, strip_of(draw(pieces), end - x)))
        frames.append((size, forget, update))
    return frames


@given(frames=frames_of(narrow_or_wide | combining))
def test_after_any_frames_the_terminal_is_as_after_a_full_repaint(frames: list[tuple[Size, bool, Update]]) -> None:
    link = Link((0, 0))
    for size, forget, update in frames:
        if forget or link.size != size:
            link.clear(size)
        if forget:
            link.app.forget_screen()
        link.update(update)
        assert link.is_as_repainted


@settings(max_examples=3 * settings().max_examples)
@given(words=st.lists(st.tuples(st.sampled_from([0, 8]), piece, piece, st.sampled_from(STYLES[:2])), min_size=5))
def test_texts_that_change_in_place_are_as_after_a_full_repaint(words: list[tuple[int, str, str, Style]]) -> None:
    link = Link((16, 1))
    link.update([(0, x, strip_of([], 8)) for x in (0, 8)])
    for x, first, second, style in words:
        link.update([(0, x, strip_of([(first, STYLES[0]), (second, style)], 8))])
        assert link.is_as_repainted


@pytest.mark.parametrize("joins", [True, False], ids=["as one", "part by part"])
@given(frames=frames_of(composed))
def test_all_other_characters_are_in_place_however_a_terminal_draws_composed_ones(
    joins: bool, frames: list[tuple[Size, bool, Update]]
) -> None:
    link = Link((0, 0))
    for size, forget, update in frames:
        if forget or link.size != size:
            link.clear(size, strict=False, joins=joins)
            link.app.forget_screen()
        link.update(update)
        for (y, left), strip in link.picture.items():
            places = link.terminal.places[y][left : left + strip.cell_length]
            part_of = ""
            for x, (character, _) in enumerate(cells_of(strip)[0][: len(places)]):
                part_of = character or part_of
                assert len(part_of) > 1 or places[x][0] == character, (y, left + x)


# The amount sent


def test_an_unchanged_frame_or_an_equal_style_sends_nothing() -> None:
    link = Link((6, 2))
    assert link.show("abcdef", "词语12")
    assert link.show("abcdef", "词语12") == ""
    link = Link((3, 1))
    link.show("abc", style=Style.parse("bold red"))
    assert link.show("abc", style=Style.parse("bold red")) == ""


def test_only_what_changes_is_sent_with_its_position_and_style() -> None:
    link = Link()
    link.show("d_k 64".ljust(40))
    sent = link.show("d_k 65".ljust(40))
    assert sent.endswith("\x1b[1;6H5\x1b[m")
    assert len(sent) < 50
    link.show("1.23 " * 8)
    close = link.show("9.29 " + "1.23 " * 7)
    assert close.count("H") == 1
    apart = link.show("8.28 " + "1.23 " * 6 + "9.29 ")
    assert apart.count("H") == apart.count("G") == 1
    assert len(apart) < 80
    sent = Link((2, 1)).update([(0, 0, Strip([Segment("a", STYLES[0]), Segment("b", STYLES[1])]))])
    assert sent.count("48;2;") == 1
    assert sent.count("38;2;") == 2


def test_colors_are_those_of_the_terminal() -> None:
    strip = Strip([Segment("a", style) for style in STYLES])
    for colors in ("truecolor", "standard", "256", "truecolor", "standard"):
        link = Link((len(STYLES), 1), colors)
        sent = link.update([(0, 0, strip)])
        assert link.is_as_repainted
        assert ("38;2;" in sent) == (colors == "truecolor")


# Wide characters, edges and repaints


@pytest.mark.parametrize(
    "texts",
    [("词語", "a語b", "语词", " 词 ", "词語", "abcd"), ("語e\u0301 ", "語e\u0300 ", "a   ")],
    ids=["changed by halves", "beside a combining mark"],
)
def test_wide_characters_are_sent_whole(texts: Sequence[str]) -> None:
    link = Link((4, 1))
    for text in texts:
        link.show(text)
        assert link.terminal.lines == [text]


@pytest.mark.parametrize("text", COMPOSED[:3])
def test_a_composed_character_takes_the_cells_that_the_layout_gives_it(text: str) -> None:
    strip = Strip([Segment(text, STYLES[0])])
    cells, is_composed = cells_of(strip)
    assert is_composed
    assert [character for character, _ in cells] == [text, ""]
    assert len(cells) == strip.cell_length


@pytest.mark.parametrize(("text", "shown"), [("abcdef", "abc"), ("ab词", "ab ")])
def test_a_line_for_a_wider_screen_is_cut_at_the_edge(text: str, shown: str) -> None:
    link = Link((3, 1))
    link.show(text)
    assert link.terminal.lines == [shown]


def test_after_a_resize_or_forgetting_the_screen_everything_is_sent_again() -> None:
    link = Link((6, 1))
    first = link.show("abcdef")
    link.app.forget_screen()
    assert link.show("abcdef") == first
    link.show("abcdef")
    for width in (8, 6):
        link.clear((width, 1))
        assert "abcdef" in link.show("abcdef".ljust(width))


# Other versions of Textual


def test_this_version_of_textual_is_supported() -> None:
    assert diff_screen.SUPPORTED
    assert "_display" in vars(DiffApp)


@for_each("name", ["SUPPORTED", "LinuxDriver"])
def test_an_unknown_version_of_textual_has_its_own_driver(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PacedApp().get_driver_class() is driver.TerminalDriver
    usual = driver.LinuxDriver
    with monkeypatch.context() as patch:
        patch.setattr(driver, name, None)
        assert PacedApp().get_driver_class() is usual


class OtherUpdate:
    def __init__(self, parts: object) -> None:
        self.parts = parts


@pytest.fixture(
    params=[(name, kind) for name in ("ChopsUpdate", "LayoutUpdate") for kind in (OtherUpdate, None)], ids=str
)
def loaded_elsewhere(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Load the module with a Textual in which an update class is different or missing."""
    name, kind = request.param
    with monkeypatch.context() as patch:
        if kind is None:
            patch.delattr(_compositor, name)
        else:
            patch.setattr(_compositor, name, kind)
        spec = present(importlib.util.spec_from_file_location("attn_tui.tui.terminal.other", diff_screen.__file__))
        module = importlib.util.module_from_spec(spec)
        present(spec.loader).exec_module(module)
    return module


def test_an_unknown_version_of_textual_sends_its_own_frames(loaded_elsewhere: ModuleType) -> None:
    other: Any = loaded_elsewhere.DiffApp
    assert not loaded_elsewhere.SUPPORTED
    assert "_display" not in vars(other)

    class Hello(other):
        def compose(self) -> ComposeResult:
            yield Label("hello")

    async def shown() -> str:
        app: Any = Hello()
        async with app.run_test(size=(20, 3)):
            app.forget_screen()
            assert not app.all_sent()
            return "\n".join(strip.text for strip in rendered(app.screen))

    assert "hello" in asyncio.run(shown())
