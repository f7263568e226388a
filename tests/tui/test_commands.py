"""What keys do has names, by which it can be given other keys."""

import pytest
from attn_tui.tui.app import AttnApp
from attn_tui.tui.commands import EVERYWHERE, accepted_keys, all_commands
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.views.help import ABOUT
from textual.binding import Binding

ALL = all_commands(AttnApp.BINDINGS)
UNNAMED = ("type(", "typed(", "pane(", "dismiss_hint")  # what always has its own key


@pytest.mark.parametrize("place", [EVERYWHERE, *PANES])
def test_what_a_key_does_has_a_name_of_its_place(place: str) -> None:
    found = [command for command in ALL if command.place == place and not command.action.startswith(UNNAMED)]
    assert found
    for command in found:
        prefix = "" if place == EVERYWHERE else f"{place.lower()}."
        assert command.name.startswith(prefix), command
        assert command.name.removeprefix(prefix).isidentifier(), f"{command} has no id"
        assert command.words


def test_no_two_commands_have_one_name() -> None:
    names = [command.name for command in ALL if command.name]
    assert len(names) == len(set(names))


def test_every_pane_is_explained() -> None:
    assert set(ABOUT) == set(PANES)


def test_commands_are_all_the_bindings_of_the_panes() -> None:
    for name, load in PANES.items():
        bindings = [binding for binding in load().BINDINGS if isinstance(binding, Binding)]
        assert [c.action for c in ALL if c.place == name] == [b.action for b in bindings]


@pytest.mark.parametrize(
    ("wanted", "keymap"),
    [
        ({"lab.redraw": "n"}, {"lab.redraw": "n"}),
        ({"lab.redraw": "n, Ctrl+Y,PgUp"}, None),  # PgUp is taken
        ({"lab.redraw": "n, Ctrl+Y,F5"}, {"lab.redraw": "n,ctrl+y,f5"}),
        ({"lab.redraw": "s", "lab.next_scale": "r"}, {"lab.redraw": "s", "lab.next_scale": "r"}),
        ({"quit": "r"}, None),  # the Lab's
        ({"capture.view": "r"}, {"capture.view": "r"}),  # free there
        ({"lab.view": "5"}, None),
        ({"lab.view": "?"}, None),
        ({"lab.view": "question_mark"}, None),
        ({"help": "!", "lab.view": "?"}, {"help": "!", "lab.view": "?"}),
        ({"lab.view": "ctrl+nothing"}, None),
        ({"lab.view": ""}, None),
        ({"lab.vew": "n"}, None),
        ({"": "n"}, None),
    ],
)
def test_other_keys_are_taken_where_they_are_free(wanted: dict[str, str], keymap: dict[str, str] | None) -> None:
    found, problems = accepted_keys(ALL, wanted)
    assert found == (keymap or {})
    assert list(problems) == ([] if keymap else list(wanted))


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"lab.redarw": "n"}, "there is no such action (did you mean lab.redraw?); K shows all of them"),
        ({"lab.redraw": "nn"}, "'nn' is no key; n, ?, f2, pageup and ctrl+x are some"),
        ({"lab.redraw": "s"}, "s is taken already, for 'next scale rule'"),
        ({"quit": "ctrl+y", "help": "Ctrl+Y"}, "Ctrl+Y is taken already, for 'help'"),
    ],
)
def test_what_is_wrong_with_a_key_is_said(wanted: dict[str, str], words: str) -> None:
    assert next(iter(accepted_keys(ALL, wanted)[1].values())) == words


def test_a_wish_that_falls_away_gives_its_old_key_back_before_others_take_it() -> None:
    keymap, problems = accepted_keys(ALL, {"lab.redraw": "s", "lab.view": "r"})
    assert (keymap, set(problems)) == ({}, {"lab.redraw", "lab.view"})
