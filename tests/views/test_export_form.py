"""The export form at several sizes."""

import pytest
from attn_tui.tui.views.export import KINDS, Form, Kind, clicked, form_lines
from attn_tui.tui.views.fields.entry import Draft
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import Line, line_width
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

ROOMS = [(72, 14), (36, 10), (36, 6)]


def form(path: str, kind: Kind = "svg", at: int | None = None, **others: str) -> Form:
    return Form("Lab", kind, Draft(path, len(path) if at is None else at), **others)


def texts(lines: list[Line]) -> list[str]:
    return ["".join(text for text, _ in line).rstrip() for line in lines]


def path_shown(lines: list[Line]) -> str:
    return "".join(text for line in lines[:-1] for text, role in line if role in ("key", "cursor"))


@for_each(
    ("path", "kind", "turned"),
    [
        ("lab.svg", "svg", "lab.json"),
        ("lab.SVG", "svg", "lab.json"),
        ("a.b/lab.json", "json", "a.b/lab.csv"),
        ("lab.csv", "csv", "lab.md"),
        ("lab.md", "markdown", "lab.svg"),
        ("lab.txt", "json", "lab.txt"),
        ("lab", "svg", "lab"),
        (".svg", "svg", ".svg"),
        ("a.svg/lab", "svg", "a.svg/lab"),
    ],
)
def test_the_ending_follows_the_kind_unless_it_belongs_to_none(path: str, kind: Kind, turned: str) -> None:
    found = form(path, kind).turned(1)
    assert found.path == Draft.of(turned)
    assert found.kind == (*KINDS, "svg")[[*KINDS].index(kind) + 1]
    assert found.turned(-1).path.text == path.replace("SVG", "svg")


def test_the_cursor_stays_in_place_when_the_ending_changes() -> None:
    assert form("lab.json", "json", at=3).turned(-1).path == Draft("lab.svg", 3)
    assert form("lab.json", "json", at=7).turned(-1).path == Draft("lab.svg", 7)


@for_each(
    ("path", "kind"),
    [("x.json", "json"), ("x.CSV", "csv"), ("x.md", "markdown"), ("x.svg", "svg"), ("x.txt", "svg"), ("", "svg")],
)
def test_the_kind_follows_the_ending(path: str, kind: Kind) -> None:
    assert form("lab.svg").with_path(Draft.of(path)).kind == kind


@given(st.text().map(lambda text: Draft.of("").typed(text).text), st.data(), st.sampled_from(ROOMS))
def test_every_line_has_the_width_and_shows_as_much_of_the_path_as_fits(
    path: str, data: st.DataObject, room: tuple[int, int]
) -> None:
    at = data.draw(st.integers(0, len(path)))
    lines = form_lines(form(path, at=at), "in the current directory, /home/me", *room, UNICODE)
    assert len(lines) == room[1]
    assert {line_width(line) for line in lines} == {room[0]}
    assert [role for line in lines for _, role in line].count("cursor") == 1
    shown = path_shown(lines)
    assert shown in path + " "
    if len(path) < 4 * room[0] / 2:
        assert shown == path + " "


@for_each("glyphs", [UNICODE, ASCII])
@for_each("room", ROOMS)
def test_the_form_shows_kinds_path_error_and_keys_at_any_size(room: tuple[int, int], glyphs: Glyphs) -> None:
    lines = texts(form_lines(form("lab-√d.svg", objection="there is no x"), "", *room, glyphs))
    whole = "\n".join(lines)
    assert all(word in whole for word in ("[SVG]", "JSON", "CSV", "Markdown", "there is no x", "Enter write"))
    assert "lab-√d.svg" in whole or glyphs.ascii
    assert whole.isascii() or not glyphs.ascii


def test_the_directory_is_shown_if_it_fits_and_a_question_replaces_keys_and_cursor() -> None:
    for room, there in zip(ROOMS, (True, True, False), strict=True):
        lines = form_lines(form("lab.svg", objection="x " * 30), "in the current directory, /w", *room, UNICODE)
        assert ("/w" in "\n".join(texts(lines))) == there
    lines = form_lines(form("lab.svg", question="lab.svg exists. Replace it?"), "", 72, 14, UNICODE)
    assert "y replace" in texts(lines)[-1]
    assert "Enter" not in texts(lines)[-1]
    assert "cursor" not in {role for line in lines for _, role in line}


def at(found: Form, room: tuple[int, int], x: int, y: int, glyphs: Glyphs = UNICODE) -> Form | str | None:
    return clicked(found, "", *room, glyphs, x, y)


@pytest.mark.parametrize("room", ROOMS, ids=str)
def test_a_click_chooses_a_kind_or_presses_a_key(room: tuple[int, int]) -> None:
    found = form("lab.svg")
    lines = texts(form_lines(found, "", *room, UNICODE))
    y = next(y for y, line in enumerate(lines) if "[SVG]" in line)
    for kind, (label, ending, _) in KINDS.items():
        for x in range(lines[y].index(label), lines[y].index(label) + len(label)):
            assert at(found, room, x, y) == form(f"lab{ending}", kind)
    for words, key in (("Enter", "Enter"), ("write", "Enter"), ("Tab", "Tab"), ("format", "Tab")):
        assert at(found, room, lines[-1].index(words), room[1] - 1) == key
    assert at(found, room, room[0] - 1, y) is None
    asking = form("lab.svg", question="Replace it?")
    assert [at(asking, room, x, y) for y in range(room[1] - 1) for x in range(room[0])] == [None] * (
        room[1] - 1
    ) * room[0]
    assert at(asking, room, texts(form_lines(asking, "", *room, UNICODE))[-1].index("keep"), room[1] - 1) == "n"


@for_each("room", ROOMS)
@for_each("glyphs", [UNICODE, ASCII])
@for_each("path", ["lab.svg", "ä/漢字.json", "x" * 300 + ".csv"])
def test_a_click_on_a_character_of_the_path_moves_the_cursor_to_it(
    path: str, room: tuple[int, int], glyphs: Glyphs
) -> None:
    for start in (0, len(path) // 2, len(path)):
        found = form(path, at=start)
        lines = form_lines(found, "", *room, glyphs)
        y, line = next((y, line) for y, line in enumerate(lines) if any(role == "cursor" for _, role in line))
        x = sum(cell_len(text) for text, _ in line[: [role for _, role in line].index("cursor")])
        assert at(found, room, x, y, glyphs) == found
        moved = at(found, room, 0, y, glyphs)
        assert isinstance(moved, Form)
        shown = form_lines(moved, "", *room, glyphs)
        assert any(line and line[0][1] == "cursor" for line in shown)
        past = at(found, room, room[0] - 1, y, glyphs)
        assert isinstance(past, Form)
        assert past.path.at >= start
