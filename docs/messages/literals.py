"""Messages written out in functions: a text that a function of one of FILES returns, or a value of another message.

They are said where they are drawn. Texts without a space are left to `words.TABLES`: most are names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from message import ROOT, Message, messages

FOLDERS = ("core/captures", "core/diagnosis", "core/claims", "core/learning", "core/theory", "core/watching")
FILES = (
    "core/against.py",
    "core/field.py",
    "core/formula.py",
    "core/grid.py",
    "core/lab/weighting/comparison.py",
    "core/models.py",
    "core/parameters.py",
    "core/scales.py",
    "core/work/worker.py",
)
_NO_TEXTS = ("cast", "partition", "split", "replace", "removeprefix", "AssertionError", "RuntimeError")


def from_literals() -> Iterator[Message]:
    """Yield the texts of all functions in FOLDERS and FILES."""
    found = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    for path in (*found, *(ROOT / name for name in FILES)):
        yield from messages(str(path.relative_to(ROOT)), (("", text.strip()) for text in _of_file(path)))


def _of_file(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef):
            for statement in node.body:
                if not isinstance(statement, ast.FunctionDef):
                    yield from _texts(statement)


def _texts(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)) if " " in text.strip():
            yield text
        case ast.Expr(value=ast.Constant()) | ast.JoinedStr() | ast.Compare() | ast.FunctionDef() | ast.Assert():
            return
        case ast.AnnAssign(value=ast.expr() as value):
            yield from _texts(value)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _NO_TEXTS:
            return
        case ast.Call(func=ast.Name(id="message" | "counted"), keywords=words):  # calls.py has the templates
            for word in words:
                yield from _texts(word.value)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _texts(child)
