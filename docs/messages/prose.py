"""Texts that read like prose and are not in the catalogue, found in the sources: a screen would show them in English.

They may stand anywhere: in a table, a dataclass, a binding, an error, a variable. Texts of one word are left to the
tests of screens in Chinese.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from os.path import relpath
from pathlib import Path

from calls import source_files
from message import ROOT, has_prose
from po import PO, read

_ENGLISH = (  # files whose texts are English in every language
    "core/program/",
    "core/tables/",
    "tui/cli/crash.py",  # a report for developers
    "tui/cli/root/__init__.py",  # errors of the Python interface
    "tui/terminal/reader.py",  # a regular expression with comments
    "tui/views/fields/synonyms.py",  # words by which choices are found
)
_NO_MESSAGES = {
    "all layers", "nothing to merge", "unscaled median", "scaled median", "the mouse", "terminal watch",  # keys
    "rows whose largest weight is on", "weight on", "float16 with the row's largest subtracted", "; choose another",
    "Every other layer sees", "Five layers in six see", "All layers see", "the baseline", "this file",  # parts
    "find the bug: {}",  # the model of a capture
    "can't start new thread", "expected one argument",  # of Python
    "from attn_tui.tui.compute.worker import main; main({})",
    "first line", "last line", "the other library", "erase the guess; leave the field",  # bindings that no help lists
    "without bias", "query key value", "output bias", "scaled dot product", "Luong dot", "cosine similarity",
    "no sink", "attention sink", "off by one", "softmax one", "null key", "brain float", "double exponential",
    "heavy tails", "random walk",
    "stochastic gradient descent", "gradient descent", "adaptive moments",  # words by which choices are found
}  # fmt: skip
# The head of the settings file, a pattern for errors of Python, or the name of a figure of a race.
_NO_TEXT = re.compile(r"^# Settings of|\(\?P<|^(none|\w*d_k) (recalled|loss|under (none|\w*d_k))( − (none|\w*d_k))?$")
_PROGRAMMING = ("AssertionError", "RuntimeError", "TypeError")


def unlisted(paths: Iterable[Path] = ()) -> Iterator[str]:
    """Yield a line for each text of these files, or of core and tui: its place and how it is written."""
    known = {*_known()}
    every = "\n".join(known)
    for path in paths or source_files():
        name = relpath(path, ROOT)
        if not name.startswith(_ENGLISH):
            for node in _texts(ast.parse(path.read_text("utf-8"))):
                text, pattern = _written(node)
                if has_prose(text) and not (
                    text in known | _NO_MESSAGES
                    or _NO_TEXT.search(text)
                    or ("\n" in text and text in every)  # to which another text is added
                    or (pattern and re.search(pattern, every))
                ):
                    yield f"{name}:{node.lineno}: {ast.unparse(node)}"


def _known() -> Iterator[str]:
    for message in read(PO.read_text("utf-8")):
        for text in [message.id] if isinstance(message.id, str) else message.id:
            yield text
            yield text.split("|")[0]  # of `in_sense`


def _texts(node: ast.AST) -> Iterator[ast.Constant | ast.JoinedStr]:
    """Yield the texts that are written out in a tree, without docstrings and what only programmers read."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Assert():
            return
        case ast.Call(func=ast.Name(id=name)) if name in _PROGRAMMING:
            return
        case ast.JoinedStr() | ast.Constant(value=str()):
            yield node
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _texts(child)


def _written(node: ast.Constant | ast.JoinedStr) -> tuple[str, str]:
    """Return a text with {} for what is filled in, and a pattern of it if there is any."""
    parts: Iterable[ast.expr] = node.values if isinstance(node, ast.JoinedStr) else [node]
    text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts).strip()
    return text, ".*".join(map(re.escape, text.split("{}"))) if "{}" in text else ""
