"""Editing a line of text."""

from attn_tui.tui.views.fields.entry import Draft, edited
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

KEYS = ("left", "right", "home", "end", "ctrl+a", "ctrl+e", "backspace", "delete", "ctrl+u", "ctrl+k", "ctrl+w")


def draft(shown: str) -> Draft:
    """Return a draft from its text, with | for the cursor."""
    before, _, after = shown.partition("|")
    return Draft(before + after, len(before))


@for_each(
    ("before", "key", "after"),
    [
        ("ab|c", "left", "a|bc"),
        ("|ab", "left", "|ab"),
        ("a|b", "right", "ab|"),
        ("ab|", "right", "ab|"),
        ("ab|c", "home", "|abc"),
        ("a|bc", "end", "abc|"),
        ("ab|c", "backspace", "a|c"),
        ("|ab", "backspace", "|ab"),
        ("a|bc", "delete", "a|c"),
        ("ab|", "delete", "ab|"),
        ("ab|c", "ctrl+u", "|c"),
        ("ab|c", "ctrl+k", "ab|"),
        ("a/b-c.svg|", "ctrl+w", "a/b-c.|"),
        ("a/b-c.|", "ctrl+w", "a/b-|"),
        ("a_bc_|", "ctrl+w", "a_|"),
        ("a/b|/c", "ctrl+w", "a/|/c"),
        ("|a", "ctrl+w", "|a"),
    ],
)
def test_a_key_edits_as_in_a_shell(before: str, key: str, after: str) -> None:
    assert edited(draft(before), key) == draft(after)


def test_other_keys_edit_nothing() -> None:
    assert edited(draft("a|"), "f5") is None


@given(st.text(), st.lists(st.sampled_from(KEYS) | st.text(max_size=3)))
def test_the_cursor_stays_within_a_printable_text(text: str, keys: list[str]) -> None:
    found = Draft("", 0).typed(text)
    for key in keys:
        found = edited(found, key) if key in KEYS else found.typed(key)
        assert found is not None
        assert 0 <= found.at <= len(found.text)
        assert found.text.isprintable()


@given(st.text(), st.text(), st.text())
def test_typed_characters_are_erased_one_by_one(before: str, typed: str, after: str) -> None:
    start = Draft(before + after, len(before))
    found = start.typed(typed)
    for _ in range(len(found.text) - len(start.text)):
        erased = edited(found, "backspace")
        assert erased is not None
        found = erased
    assert found == start
