"""Texts from outside: each that a parser or its reader cannot take is refused in one line; bounds; edited TOML."""

import math
from collections.abc import Callable
from contextlib import suppress

import pytest
from attn_tui.core.message import without_commands
from attn_tui.core.texts import LARGEST, TextError, decoded, edited_toml, from_json, from_toml
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

MARK = b"\xef\xbb\xbf"
DEEP = "is nested deeper than 100 levels"
LONG = "has a whole number of more than 308 digits"


def refusal(parse: Callable[[bytes], object], text: bytes) -> str:
    """The one line with which a text is refused."""
    with pytest.raises(TextError) as refused:
        parse(text)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@for_each(
    ("text", "says"),
    [
        (b"", "is not JSON: Expecting value at character 1"),
        (b"{\n  'a': 1\n}", "is not JSON: Expecting property name enclosed in double quotes at line 2, column 3"),
        (b"[1] [2]", "is not JSON: Extra data at character 5"),
        (b"\xff\xfe[\x001\x00]\x00", "is not UTF-8"),
        (MARK + MARK + b"[1]", "is not JSON: "),
        (b"9" * 5000, LONG),
        (b'{"a": [-1' + b"0" * 308 + b"]}", LONG),
        (b"[" * 102 + b"]" * 102, DEEP),
        (b"[" * 100_000, DEEP),
        (b'{"a":' * 3000 + b"1" + b"}" * 3000, DEEP),
        (b'{"a": 1, "b": {"x": 1, "y": 2, "x": 1}}', "has 'x' twice"),
        (b'{"\x1b\\n": 1, "\x1b\\n": 2}', "is not JSON: "),
        (b" " * LARGEST + b"1", f"must have at most {LARGEST} characters, not {LARGEST + 1}"),
    ],
)
def test_what_is_not_read_as_json_is_refused(text: bytes, says: str) -> None:
    assert refusal(from_json, text).startswith(says)


@for_each(
    ("text", "says"),
    [
        (b"a = ", "is not TOML: Invalid value (at end of document)"),
        (b"a = 1\na = 2", "is not TOML: Cannot overwrite a value"),
        (b"a = '\xff'", "is not UTF-8"),
        (b"a = " + b"9" * 5000, LONG),
        (b"a = [{b = -1" + b"0" * 308 + b"}]", LONG),
        (b"a = " + b"[" * 101 + b"]" * 101, DEEP),
        (b"a = " + b"[" * 100_000, DEEP),
        (b"a = " + b"{a = " * 3000 + b"1" + b"}" * 3000, DEEP),
        (b".".join([b"a"] * 3000) + b" = 1", DEEP),
        (b"[" + b".".join([b"a"] * 3000) + b"]", DEEP),
        (b"#" * (LARGEST + 1), f"must have at most {LARGEST} characters, not {LARGEST + 1}"),
    ],
)
def test_what_is_not_read_as_toml_is_refused(text: bytes, says: str) -> None:
    assert refusal(from_toml, text).startswith(says)


def test_what_is_within_the_bounds_is_read_and_every_whole_number_is_one_that_a_float_holds() -> None:
    for digits in ("9" * 308, "-" + "9" * 308):
        assert math.isfinite(float(str(from_json(f"[{digits}]")).strip("[]")))
        assert from_toml(f"a = {digits}") == {"a": int(digits)}
    assert from_json("[" * 100 + "]" * 100)
    assert from_toml("a = " + "[" * 99 + "]" * 99)
    assert from_json("[1e999, NaN, true]", largest=18)
    with pytest.raises(TextError, match="at most 17 characters, not 18"):
        from_json("[1e999, NaN, true]", largest=17)


def test_a_byte_order_mark_is_no_part_of_a_text() -> None:
    assert from_json(MARK + b'{"a": 1}') == from_json('\ufeff{"a": 1}') == {"a": 1}
    assert from_toml(MARK + b"a = 1") == from_toml("\ufeffa = 1") == {"a": 1}
    assert decoded(MARK + "ü".encode()) == "ü"


def edited(text: bytes) -> bytes:
    return edited_toml(text, {"a": {"b": 1}})


@given(st.binary(max_size=60) | st.text("[]{},:\"'=.-#\n\\ab019eEu\ufeff", max_size=60).map(str.encode))
def test_any_bytes_are_a_value_or_refused(text: bytes) -> None:
    for parse in (from_json, from_toml, edited):
        with suppress(TextError):
            parse(text)


def test_a_text_that_has_the_values_already_is_not_touched() -> None:
    text = MARK + b"a   =   1\r\n[t]\nb = 2"
    assert edited_toml(text, {"a": 1, "t": {"b": 2}}) is text


KEYS = st.sampled_from(("a", "b.c", "t.u", "t.u.v", "t"))
LINES = st.lists(
    st.builds("{} = {}".format, KEYS, st.sampled_from(("1", "[2]", '"x"', "{d = 1}")))
    | st.builds("[{}]".format, KEYS)
    | st.sampled_from(("# note", "")),
    max_size=8,
)


@given(LINES, st.sampled_from(("\n", "\r\n")), st.booleans(), st.sampled_from(({"t": {"u": 5}}, {"n": 1, "t": {}})))
def test_an_edited_text_has_all_values_and_line_ends(
    lines: list[str], end: str, ended: bool, changes: dict[str, object]
) -> None:
    text = end.join(lines) + end * ended
    try:
        before = from_toml(text)
        after = edited_toml(text.encode(), changes).decode()
    except TextError:
        return
    found, wanted = from_toml(after), before | changes
    assert [found.get(name, {}) for name in wanted] == [*wanted.values()]
    if end == "\r\n" and end in text:
        assert "\n" not in after.replace(end, "")


@for_each(
    ("text", "shown", "as_annotation"),
    [
        ("::error::x", "\\u003a:error::x", "::error::x"),
        ("a ::b\n  ::c", "a ::b\n  \\u003a:c", "a ::b\n  \\u003a:c"),
        ("a ##[b]", "a \\u0023#[b]", "a \\u0023#[b]"),
        ("a #b[c]", "a #b[c]", "a #b[c]"),
        ("#", "#", "#"),
    ],
)
def test_what_the_runner_of_a_build_obeys_is_escaped(text: str, shown: str, as_annotation: str) -> None:
    assert (without_commands(text), without_commands(text, annotates=True)) == (shown, as_annotation)
