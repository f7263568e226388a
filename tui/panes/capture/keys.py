"""The keys of the Capture pane, and those that the bottom bar shows."""

from __future__ import annotations

from collections.abc import Mapping

from textual.binding import Binding

from ...views.bars import Key
from .arrangement import Part

KEYS_OF_PART: Mapping[Part, tuple[Key, ...]] = {  # shown before the others while the part has the focus
    "list": (("↑↓", "head"), ("Esc", "back")),
    "matrix": (("↑↓", "query"), ("←→", "key"), ("+ -", "zoom"), ("Esc", "back")),
    "results": (("↑↓", "row"), ("Esc", "back")),
    "replay": (("↑↓", "scroll"), ("Esc", "back")),
}
ASKING: tuple[Key, ...] = (("Enter", "accept"), ("Esc", "cancel"))  # everything else types
KEYS: tuple[Key, ...] = (
    ("←→", "head"), ("n N", "of note"), ("a s", "scales"), ("v", "view"), ("/", "find"), ("?", "help"),
    ("q", "quit"), (">", "next tab"), ("o", "order"), ("f", "format"), ("b", "baseline"), ("m", "map"),
    ("↑↓", "layer"), ("Tab", "list, matrix"), ("i", "list"), ("+ -", "zoom"), ("Enter", "Lab"), ("r", "reload"),
    ("PgUp PgDn", "scroll"), (", .", "text"),
)  # fmt: skip
BINDINGS: tuple[Binding, ...] = (
    Binding("right,l", "move(0, 1)", "next head", id="capture.next_head"),
    Binding("left,h", "move(0, -1)", "previous head", id="capture.previous_head"),
    Binding("down,j", "move(1, 0)", "next layer", id="capture.next_layer"),
    Binding("up,k", "move(-1, 0)", "previous layer", id="capture.previous_layer"),
    Binding("n", "of_note(1)", "next head that is not healthy", id="capture.next_of_note"),
    Binding("N", "of_note(-1)", "previous head that is not healthy", id="capture.previous_of_note"),
    Binding("slash", "find", "find a head, a query or a token", id="capture.find"),
    Binding("b", "baseline", "compare with another capture", id="capture.baseline"),
    Binding("m", "options('statistic')", "choose the statistic on the map", id="capture.statistic"),
    Binding("M", "statistic", "next statistic on the map", id="capture.next_statistic"),
    Binding("o", "choose_order", "choose the order of the list", id="capture.order"),
    Binding("O", "order", "next order of the list", id="capture.sort_next"),
    Binding("i", "options", "choose statistic, scale rules or formats from a list", id="capture.options"),
    Binding("s", "options('B')", "B: choose the scale rule", id="capture.scale"),
    Binding("S", "rule", "B: next scale rule", id="capture.next_scale"),
    Binding("a", "options('A')", "A: choose the scale rule", id="capture.against"),
    Binding("A", "against", "A: next scale rule", id="capture.next_against"),
    Binding("f", "options('B precision=')", "B: choose the number format", id="capture.format"),
    Binding("F", "format", "B: next number format", id="capture.next_format"),
    Binding("v", "view", "next view: attention, statistics, rules replayed", id="capture.view"),
    Binding("plus,equals_sign", "zoom(0.5)", "zoom the matrix in", id="capture.zoom_in"),
    Binding("minus", "zoom(2)", "zoom the matrix out", id="capture.zoom_out"),
    Binding("full_stop", "text(1)", "next text of the file", id="capture.next_text"),
    Binding("comma", "text(-1)", "previous text of the file", id="capture.previous_text"),
    Binding("pagedown,space", "read(4)", "scroll down", id="capture.read_on"),
    Binding("pageup", "read(-4)", "scroll up", id="capture.read_back"),
    Binding("r", "read_again", "read the file again", id="capture.read_again"),
    Binding("escape", "back", "back to Watch, if it opened the file", id="capture.back"),
    Binding("enter", "to_lab", "open the Lab with the head's shape", id="capture.to_lab"),
)
