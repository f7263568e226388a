"""docs/keys.md is the one table of keys: the bindings of all panes are those of the table, with one meaning a key."""

import re
from dataclasses import dataclass
from pathlib import Path

from attn_tui.tui.app.keys import EVERYWHERE, all_commands
from attn_tui.tui.panes.catalogue import PANES
from cases import for_each

PAGE = (Path(__file__).parents[2] / "docs/keys.md").read_text()
TYPED = ("type(", "typed(")  # what every key does to the text being typed is told below the table


@dataclass(frozen=True)
class Row:
    keys: tuple[str, ...]
    meaning: str
    names: tuple[str, ...]
    places: tuple[str, ...]


ROWS = [
    Row(tuple(re.findall("`(.+?)`", keys)), meaning, tuple(names.split(", ")), tuple(places.split(", ")))
    for keys, meaning, names, places in re.findall(r"^\| (`.+?) \| (.+?) \| (.+?) \| (.+?) \|$", PAGE, re.M)
]
BOUND = [
    (key, command)
    for command in all_commands()
    if not command.action.startswith((*TYPED, "tab("))
    for key in command.keys.split(",")
]


def test_each_key_stands_once_in_the_table() -> None:
    keys = [key for row in ROWS for key in row.keys]
    assert keys
    assert len(keys) == len(set(keys))


@for_each("place", [EVERYWHERE, *PANES])
def test_each_binding_is_in_the_row_of_its_key(place: str) -> None:
    for key, command in BOUND:
        if command.place == place:
            rows = [row for row in ROWS if key in row.keys]
            assert rows, f"{key} is not in docs/keys.md"
            assert place in rows[0].places, key
            assert not command.name or command.name.rpartition(".")[2] in rows[0].names, key


@for_each("row", ROWS)
def test_each_row_is_bound_in_all_its_places_under_all_its_names(row: Row) -> None:
    for key in row.keys:
        assert {command.place for pressed, command in BOUND if pressed == key} == {*row.places}
    bound = {command.name.rpartition(".")[2] for pressed, command in BOUND if pressed in row.keys} - {""}
    assert bound in ({*row.names}, set())


def test_digits_type_in_every_pane_or_do_nothing() -> None:
    for command in all_commands():
        if {*command.keys.split(",")} & {*"0123456789"}:
            assert command.action.startswith("type(")
    panes = {command.place for command in all_commands() if command.action.startswith("type('5'")}
    assert panes == {*PANES} - {"Capture", "Watch"}
