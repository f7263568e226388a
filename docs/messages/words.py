"""Messages of small tables inside modules, read from the sources: these names are no part of what a module offers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import get_args

from attn_tui.tui.views.lines import Name
from calls import source_files
from message import ROOT, Message, messages

_ROLES = get_args(Name)

# By file: the names whose values are texts. Keys of dictionaries are names, not texts.
TABLES: dict[str, tuple[str, ...]] = {
    "core/training/settings.py": ("ACCEPTED",),
    "tui/cli/parser.py": ("_TITLES",),
    "tui/panes/rules/mechanisms.py": ("_WORDS",),
    "tui/panes/rules/view.py": ("CURVE", "METER", "STATUS", "SATURATED", "_WORDS", "_FORMATS"),
    "tui/panes/rules/weightings.py": ("_COLUMNS",),
    "tui/panes/sweep/print_table.py": ("_UNITS",),
    "tui/panes/train/view.py": ("_COLUMNS",),
    "tui/widgets/code_screen.py": ("_TITLES",),
    "tui/views/notice.py": ("_COPIED", "COPIED"),
    "tui/views/results/comparison.py": ("_TITLES",),
}
# A key to press, or several, before what it does: `("PgUp PgDn", "scroll")`.
_ONE = r"(?:\S\S?|[←→↑↓]{2,4}|a-z|0-9|Enter|Esc|Tab|Backspace|Space|Home|End|PgUp|PgDn|Ctrl\+\w|Shift\+\S+)"
_KEY = re.compile(rf"{_ONE}(?: {_ONE})*")
_WITH_KEYS = ("tui/app/keys.py", "tui/panes/", "tui/views/export.py", "tui/views/fields/", "tui/widgets/")


def from_words() -> Iterator[Message]:
    """Yield the texts of all tables, of constants that are said in their module, and what keys do in key bars."""
    for path, names in TABLES.items():
        for name in names:
            yield from messages(path, ((name, text) for text in _texts(_declared(path, name))))
    for file in source_files():
        path = str(file.relative_to(ROOT))
        tree = ast.parse(file.read_text("utf-8"))
        constants = {name: value for statement in tree.body for name, value in _assigned(statement)}
        for node in ast.walk(tree):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="say") | ast.Name(id="say" | "message"),
                    args=[ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)), *_],
                ) if name in constants:
                    yield from messages(path, ((name, text) for text in _texts(constants[name])))
                case ast.Assign(targets=[ast.Name(id="TITLE")], value=ast.Constant(value=str(title))):
                    yield from messages(path, [("TITLE", title)])
                case ast.Tuple(elts=[ast.Constant(value=str(key)), ast.Constant(value=str(effect))]) if (
                    path.startswith(_WITH_KEYS) and _KEY.fullmatch(key) and effect not in _ROLES
                ):
                    yield from messages(path, [("a key bar", effect)])
                case _:
                    pass


def _declared(path: str, name: str) -> ast.expr:
    """Return the value of a name in a file; raise LookupError if there is none."""
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        for found, value in _assigned(node):
            if found == name:
                return value
    raise LookupError(f"{path} declares no {name}: correct the tables of {__name__}.py")


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that a statement assigns, with their values."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield name, value
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            for target, value in zip(names, values, strict=True):
                if isinstance(target, ast.Name):
                    yield target.id, value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case _:
            pass


def _texts(node: ast.AST) -> Iterator[str]:
    """Yield the texts in an expression, in order, except for keys of dictionaries."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "in_sense":
        return  # calls.py has it
    elif isinstance(node, ast.Dict):
        for value in node.values:
            yield from _texts(value)
    elif not isinstance(node, ast.JoinedStr):
        for child in ast.iter_child_nodes(node):
            yield from _texts(child)
