"""Texts on screen that cannot be translated yet, found in the sources: `make messages ARGS=--untold` lists them.

- a text put together where it is said, such as `say(f"{count} heads")`: it must be a message with placeholders
- a text of a span, such as `("Keys", "heading")`, that is not said at all
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import get_args

from attn_tui.tui.views.lines import Name
from calls import errors, source_files
from message import ROOT, has_words

_ROLES = get_args(Name)
_NO_TEXTS = (*_ROLES, " attn-tui ", "query")  # pairs of roles, and names
_SAYING = ("say", "message", "counted")


def untold() -> Iterator[str]:
    """Yield a line for each text: its place and how it is written."""
    for path in source_files():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(attr="say"), args=[text, *_]):
                    found = _put_together(text)
                case ast.Call(func=ast.Name(id=name), args=[text, *_]) if name in _SAYING or name in errors():
                    found = _put_together(text)
                case ast.Tuple(elts=[text, ast.Constant(value=role)]) if role in _ROLES:
                    found = _put_together(text) or (isinstance(text, ast.Constant) and text.value not in _NO_TEXTS)
                case _:
                    continue
            words = " ".join(each for each in _pieces(text) if each)
            if found and has_words(words):
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(text)}"


def _put_together(node: ast.expr) -> bool:
    if isinstance(node, ast.IfExp):
        return any(map(_put_together, (node.body, node.orelse)))
    return isinstance(node, ast.JoinedStr | ast.BinOp | ast.BoolOp)


def _pieces(node: ast.AST) -> Iterator[str]:
    """Yield the texts that are written out in an expression, without those in placeholders."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif not isinstance(node, ast.FormattedValue | ast.Call):
        for child in ast.iter_child_nodes(node):
            yield from _pieces(child)
