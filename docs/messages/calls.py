"""Messages of calls: what is written out where it is said, found in the sources.

- `message(template, …)`, and `say(template, …)`, as a method of whatever draws characters
- `counted(one, many, number, …)`, for the singular and the plural
- `in_sense(text, sense)`, for a text that is said differently in another sense
- `InputError(template, …)` and its kind

A text that is put together at the call (an f-string, a sum) is not a message: it cannot be translated.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from attn_tui.core.message import SENSE
from message import ROOT, Message, has_words


def from_calls() -> Iterator[Message]:
    """Yield the messages of all calls in core and tui."""
    for path in source_files():
        place = str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                yield from _of_call(node, place)


def source_files() -> list[Path]:
    """Return the modules of core and tui; the recorder runs in other programs and speaks English there."""
    found = [path for folder in ("core", "tui") for path in (ROOT / folder).rglob("*.py")]
    return sorted(path for path in found if not path.is_relative_to(ROOT / "core" / "recorder"))


def _of_call(node: ast.Call, place: str) -> Iterator[Message]:
    texts = [*map(_text, node.args[:2])]
    match node.func:
        case ast.Attribute(attr="say") | ast.Name(id="say" | "message"):
            one = next(iter(texts), "")
        case ast.Name(id="in_sense") if len(texts) == 2 and all(texts):
            one = SENSE.join(texts)
        case ast.Name(id="counted") if len(texts) == 2 and all(texts):
            yield Message(texts[0].strip(), place, plural=texts[1].strip())  # numbers may need a measure word
            return
        case ast.Name(id=name) if name in errors():
            one = next(iter(texts), "")
        case _:
            return
    if has_words(one):
        yield Message(one.strip(), place)


@cache
def errors() -> frozenset[str]:
    """Return the names of InputError and of the errors derived from it."""
    bases: dict[str, set[str]] = {}  # several modules may have a class of one name
    for path in source_files():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases.setdefault(node.name, set()).update(
                    base.id for base in node.bases if isinstance(base, ast.Name)
                )
    found = {"InputError"}
    while more := {name for name, of in bases.items() if of & found} - found:
        found |= more
    return frozenset(found)


def _text(node: ast.expr) -> str:
    """Return a text that is written out; "" for any other expression."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
