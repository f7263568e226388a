"""Actions have names, by which the settings can change their keys."""

import pytest
from attn_tui.tui.app.keys import EVERYWHERE, accepted_keys, all_commands
from attn_tui.tui.panes.catalogue import PANES
from cases import for_each
from textual.binding import Binding

ALL = all_commands()
FIXED = ("type(", "typed(", "erase", "fields", "cancel", "pane(")  # actions whose keys cannot be changed


@for_each("place", [EVERYWHERE, *PANES])
def test_each_action_has_a_description_and_a_name_with_its_pane(place: str) -> None:
    found = [command for command in ALL if command.place == place and not command.action.startswith(FIXED)]
    assert found
    for command in found:
        prefix = "" if place == EVERYWHERE else f"{place.lower()}."
        assert command.name.startswith(prefix), command
        assert command.name.removeprefix(prefix).isidentifier(), f"{command} has no id"
        assert command.words


def test_names_of_actions_are_unique_and_every_pane_has_a_help_text() -> None:
    names = [command.name for command in ALL if command.name]
    assert len(names) == len(set(names))
    assert all(row.about for row in PANES.values())


@for_each("name", PANES)
def test_every_binding_of_a_pane_is_a_command(name: str) -> None:
    bindings = [binding for binding in PANES[name].load().BINDINGS if isinstance(binding, Binding)]
    assert [c.action for c in ALL if c.place == name] == [b.action for b in bindings]


@pytest.mark.parametrize(
    "wanted",
    [
        {"lab.redraw": "n"},
        {"lab.redraw": "n,ctrl+y,f5"},
        {"lab.redraw": "s", "lab.scale": "r"},
        {"capture.view": "c"},  # used in the Lab, but not in Capture
        {"help": "!", "lab.view": "?"},
        {"scales_pane": "f6"},
    ],
    ids=str,
)
def test_unused_keys_are_accepted(wanted: dict[str, str]) -> None:
    assert accepted_keys(ALL, wanted) == (wanted, {})


def test_keys_may_be_written_in_any_case_and_by_names_of_earlier_versions() -> None:
    assert accepted_keys(ALL, {"lab.redraw": "n, Ctrl+Y,F5"})[0] == {"lab.redraw": "n,ctrl+y,f5"}
    assert accepted_keys(ALL, {"lab.next_width": "PgUp"}) == ({"lab.next_width": "pageup"}, {})
    assert accepted_keys(ALL, {"sweep_pane": "f6"}) == ({"scales_pane": "f6"}, {})


@for_each(
    ("wanted", "problem"),
    [
        ({"lab.redraw": "n, Ctrl+Y,PgUp"}, "PgUp … next width"),
        ({"lab.redraw": "s"}, "s … 'choose the scale rule'"),
        ({"quit": "r"}, "r … redraw"),
        ({"lab.view": "5"}, "5"),
        ({"lab.view": "?"}, "? … 'help'"),
        ({"lab.view": "question_mark"}, "? … 'help'"),
        ({"lab.view": "ctrl+nothing"}, "'ctrl+nothing'"),
        ({"lab.view": ""}, "''"),
        ({"lab.redraw": "nn"}, "'nn' … n, ?, f2, pageup"),
        ({"lab.redarw": "n"}, "lab.redraw … K"),
        ({"": "n"}, "K"),
    ],
)
def test_a_key_that_is_taken_or_unknown_is_reported(wanted: dict[str, str], problem: str) -> None:
    keymap, problems = accepted_keys(ALL, wanted)
    assert keymap == {}
    [(name, said)] = problems.items()
    assert name in wanted
    assert all(piece in said for piece in problem.split(" … ")), said


def test_one_key_cannot_have_two_actions_and_a_taken_one_is_not_moved() -> None:
    keymap, problems = accepted_keys(ALL, {"quit": "ctrl+y", "help": "Ctrl+Y"})
    assert "Ctrl+Y" in problems["quit"]
    assert keymap == {"help": "ctrl+y"}
    keymap, problems = accepted_keys(ALL, {"lab.redraw": "s", "lab.view": "r"})
    assert (keymap, set(problems)) == ({}, {"lab.redraw", "lab.view"})
