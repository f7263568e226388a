"""The help as lines: the names of keys, the fields and statistics of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from ...core import message as messages
from ...core.field import Field
from ...core.message import message
from ...core.scales import scale_rule
from ...core.statistics.catalogue import DEAD, ONE_HOT, Statistic
from ...core.statistics.status import MEANINGS
from ..language.cells import cells, to_right
from .bars import PIECE, Key
from .glyphs import Glyphs
from .lines import Line, Role, ends, fitted, line_width, wrapped

_WORDS = {
    "question_mark": "?", "greater_than_sign": ">", "less_than_sign": "<", "left_square_bracket": "[",
    "right_square_bracket": "]", "left_parenthesis": "(", "right_parenthesis": ")",
    "left_curly_bracket": "{", "right_curly_bracket": "}",
    "full_stop": ".", "comma": ",", "slash": "/", "plus": "+", "minus": "-", "equals_sign": "=",
    "pageup": "PgUp", "pagedown": "PgDn", "enter": "Enter", "escape": "Esc", "space": "Space", "home": "Home",
    "end": "End", "left": "←", "right": "→", "up": "↑", "down": "↓", "tab": "Tab", "backspace": "Backspace",
    "delete": "Del", "insert": "Ins",
}  # fmt: skip
# Alt+1 to Alt+9, then Alt+0, of terminals that send Alt as an Esc before the key, which Textual reads as on the
# keyboard of a Mac.
ALT = dict(
    zip(
        (1, 2, 3, 4, 5, 6, 7, 8, 9, 0),
        (
            "inverted_exclamation_mark", "trade_mark_sign", "pound_sign", "cent_sign", "infinity", "section_sign",
            "pilcrow_sign", "bullet", "ª", "º",
        ),
        strict=True,
    )
)  # fmt: skip
_NAMES = {word.lower(): name for name, word in _WORDS.items()}


def key_word(key: str) -> str:
    """Return `ctrl+p` as Ctrl+P and `question_mark` as ?; several keys, separated by commas, as several words."""
    if len(key) == 1:
        return key
    if "," in key:
        return " ".join(key_word(each) for each in key.split(",") if each not in ALT.values())
    *modifiers, name = key.split("+")
    return "+".join([*map(str.capitalize, modifiers), _WORDS.get(name) or name.capitalize()])


def key_name(word: str) -> str:
    """Return Textual's name of a key that a user wrote: Ctrl+P is ctrl+p, PgUp is pageup."""
    if len(word) == 1 and word not in "←→↑↓":
        return word
    *modifiers, name = word.lower().split("+")
    return "+".join([*modifiers, _NAMES.get(name, name)])


def pressed_name(word: str) -> str:
    """Return Textual's name of the key that `key_word` writes so: ? is question_mark."""
    return _NAMES.get(word) or key_name(word)


def rekeyed(keys: Sequence[Key], replacements: Mapping[str, str]) -> list[Key]:
    """Return keys with their words replaced as `replacements` maps them."""
    return [(PIECE.sub(lambda word: replacements.get(word[0], word[0]), press), effect) for press, effect in keys]


HelpEntry: TypeAlias = str | tuple[str, str]  # a text, or a term and its meaning
WORDS: tuple[HelpEntry, ...] = (
    ("one-hot row", f"a row whose largest weight is above {ONE_HOT}"),
    ("dead row", f"the norm of its softmax Jacobian is below {DEAD}, so no gradient reaches its query"),
)

_DIGITS = ",".join("0123456789")
PRESS = 13  # cells for the keys to press, and for a term

KeyHelp: TypeAlias = tuple[str, str, str]  # keys separated by commas, their effect, the name of the action
_GAP = 2  # cells between keys and their effect
MARKS: dict[str, str] = {  # of the words that a head may have
    "wrong": "w", "unusual": "?",
    "saturated": "S", "sink": "s", "one-hot": "o", "saturating": "t", "uniform": "u", "NaN": "N",
}  # fmt: skip


def help_lines(
    topic: Field | Statistic | None, about: Sequence[HelpEntry], keys: Sequence[Key], width: int, glyphs: Glyphs
) -> list[Line]:
    """Return the help: what has the focus, the keys of the key bar in columns, what the pane shows, and terms."""
    lines: list[Line] = [()]
    if isinstance(topic, Field):
        lines += _field(topic, width, glyphs)
    elif topic is not None:
        lines += _statistic(topic, width, glyphs)
    lines += [*_columns(keys, width, glyphs), ()]
    for paragraph, following in pairwise((*about, *WORDS, "")):
        if isinstance(paragraph, str):
            lines += wrapped(glyphs.say(paragraph), width)
        else:
            lines += _entry(*paragraph, "", width, glyphs, "accent")
        if isinstance(following, str):
            lines.append(())
    return lines


def _columns(keys: Sequence[Key], width: int, glyphs: Glyphs) -> list[Line]:
    """Return keys and their effects in as many columns as fit, to be read down."""
    said = [(glyphs.say(press), glyphs.say(effect)) for press, effect in keys]
    pressed = max((cells(press) for press, _ in said), default=0)
    needed = pressed + max((cells(effect) for _, effect in said), default=0) + 2 * _GAP
    columns = max(width // needed, 1)
    entries = [
        fitted(((to_right(press, pressed), "key"), (" " * _GAP + effect, "text")), width // columns)
        for press, effect in said
    ]
    rows = -(-len(entries) // columns)
    return [tuple(span for entry in entries[row::rows] for span in entry) for row in range(rows)]


def key_overview(groups: Mapping[str, Sequence[KeyHelp]], path: str, width: int, glyphs: Glyphs) -> list[Line]:
    """Return all keys, grouped by where they work, each with the action's name for the settings file."""
    title: Line = ((glyphs.say("All keys"), "heading"),)
    lines: list[Line] = [(), title]
    about = message(
        'To change keys, put the names at the right under [keys] in {path}, as in lab.redraw = "n".', path=path
    )
    lines += wrapped(glyphs.say(about), width, "dim")
    for place, keys in groups.items():
        heading: Line = ((glyphs.say(place), "heading"),)
        lines += [(), heading]
        for pressed, effect, name in _folded(keys):
            lines += _entry(pressed, effect, name, width, glyphs)
    return lines


def _folded(keys: Sequence[KeyHelp]) -> list[KeyHelp]:
    """Return keys in words, those with the same effect on one line, digits as 0-9."""
    folded: dict[str, KeyHelp] = {}
    for key, effect, name in keys:
        before = folded.get(effect)
        folded[effect] = (f"{before[0]},{key}" if before else key, effect, name)
    return [(key_word(keys.replace(_DIGITS, "0-9")), effect, name) for keys, effect, name in folded.values()]


def _entry(term: str, meaning: str, name: str, width: int, glyphs: Glyphs, role: Role = "key") -> list[Line]:
    """Return keys and their effect, or a term and its meaning, and a name at the right, on lines of `width`."""
    said = glyphs.say(term)
    above = cells(said) > PRESS  # many keys
    lines = wrapped(said, width, role) if above else []
    for number, text in enumerate(wrapped(glyphs.say(meaning), width - PRESS - 2)):
        before = to_right("" if above or number else said, PRESS)
        lines.append(((before, role), ("  ", "text"), *text))
    if name and line_width(lines[-1]) + len(name) + 2 > width:
        lines.append(())
    return [*lines[:-1], ends(lines[-1], ((name, "dim"),), width)] if name else lines


def _field(field: Field, width: int, glyphs: Glyphs) -> list[Line]:
    lines: list[Line] = [((glyphs.say("{label} ({symbol})", label=field.label, symbol=field.symbol), "heading"),)]
    lines += wrapped(glyphs.say(field.help), width)
    lines += wrapped(
        glyphs.say("Accepts {accepted}. Option: {option}.", accepted=field.accepted, option=field.option),
        width,
        "dim",
    )
    if field.name == "scale":
        for choice in field.choices:
            rule, called = scale_rule(choice), messages.name(choice)
            lines.append(())
            called = message("{name} ({short})", name=called, short=rule.short) if rule.short else called
            title: Line = ((glyphs.say(rule.formula), "accent"), (f"  {glyphs.say(called)}", "dim"))
            lines += [title] if line_width(title) <= width else [title[:1], title[1:]]
            note = message(" {note}.", note=rule.note) if rule.note else ""
            lines += wrapped(
                glyphs.say(
                    "Used by {used_by}.{note} Source: {source}.", used_by=rule.used_by, note=note, source=rule.source
                ),
                width,
            )
    return [*lines, ()]


def _statistic(statistic: Statistic, width: int, glyphs: Glyphs) -> list[Line]:
    return [
        ((glyphs.say(statistic.label), "heading"),),
        *wrapped(glyphs.say(statistic.formula), width, "accent"),
        *wrapped(glyphs.say(statistic.definition), width),
        *wrapped(
            glyphs.say(
                "Source: {source}. Name in reports: {name}.",
                source=statistic.source,
                name=messages.name(statistic.name),
            ),
            width,
            "dim",
        ),
        (),
    ]


def status_terms(marks: Mapping[str, str]) -> list[HelpEntry]:
    """Return every status, with its mark if it has one, and its meaning."""
    terms = [
        (message("{word} ({mark})", word=word, mark=marks[word]) if word in marks else word, meaning)
        for word, meaning in MEANINGS.items()
    ]
    return ["The status is the first of these words that applies.", *terms]
