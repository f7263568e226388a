"""Operands of `and` and `or` that decide in no test: tests pass without them as well.

The tests of every `--room` run once, in the environment of the first, on a temporary copy of their sources that notes
which operands change the value of the whole, in a condition whether it is true. Prints the others. Exit code 1 if
there are any.
"""

from __future__ import annotations

import argparse
import ast
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from mutants import TESTS, copy_project, git
from rooms import ROOMS, ROOT, room_of

# In the copy: `whole` evaluates as the expression does, then tries it without the operand at which it ended.
SEEN = """
import os

found, busy = set(), []


def whole(place, is_and, condition, *operands):
    values = []
    for operand in operands:
        values.append(operand())
        if len(values) < len(operands) and bool(values[-1]) != is_and:
            break
    key = f"{place} {len(values) - 1}"
    if not busy and key not in found:
        busy.append(key)
        try:
            changed = differ(values, is_and, condition, operands)
        except Exception:
            changed = True
        finally:
            busy.pop()
        if changed:
            found.add(key)
            with open(os.environ["OPERANDS"], "a") as stream:
                stream.write(f"{key}\\n")
    return values[-1]


def differ(values, is_and, condition, operands):
    if len(values) == len(operands):
        other = values[-2]
    else:
        for operand in operands[len(values):]:
            other = operand()
            if bool(other) != is_and:
                break
    if bool(other) != bool(values[-1]):
        return True
    return not condition and not (type(other) is type(values[-1]) and bool(other == values[-1]))
"""


class Noting(ast.NodeTransformer):
    """Replace each `and` and `or` of a file by a call of `whole`; those of class bodies, := and await stay."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.inside: list[ast.AST] = []
        self.operands: dict[str, str] = {}  # `path:line:column index` to the operand in its expression

    def text(self, source: str) -> str:
        """Return the source with the calls."""
        tree = self.visit(ast.parse(source))
        assert isinstance(tree, ast.Module)
        at = next((i + 1 for i, each in enumerate(tree.body) if "__future__" in ast.unparse(each)), 0)
        tree.body.insert(at, ast.parse("from operands_seen import whole as _whole").body[0])
        return ast.unparse(ast.fix_missing_locations(tree))

    def visit(self, node: ast.AST) -> ast.AST:
        """Visit a node, and remember what it is inside of."""
        self.inside.append(node)
        found = super().visit(node)
        self.inside.pop()
        return found

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Return the call of `whole`."""
        text, operands = ast.unparse(node), [ast.unparse(each) for each in node.values]
        scopes = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
        scope = next((each for each in reversed(self.inside) if isinstance(each, scopes)), None)
        named = any(isinstance(each, ast.NamedExpr | ast.Await) for each in ast.walk(node)) or "super()" in text
        condition = self._is_condition(node)
        self.generic_visit(node)
        if named or isinstance(scope, ast.ClassDef):
            return node
        place = f"{self.path}:{node.lineno}:{node.col_offset}"
        self.operands |= {f"{place} {at}": f"{each}  of  {text}" for at, each in enumerate(operands)}
        given: list[ast.expr] = [ast.Constant(x) for x in (place, isinstance(node.op, ast.And), condition)]
        none = ast.arguments([], [], None, [], [], None, [])
        return ast.Call(ast.Name("_whole"), [*given, *(ast.Lambda(none, each) for each in node.values)], [])

    def _is_condition(self, node: ast.AST) -> bool:
        """Return whether only the truth of a node matters."""
        for above in reversed(self.inside[:-1]):
            if isinstance(above, ast.comprehension):
                return node in above.ifs
            if not isinstance(above, ast.BoolOp):
                return (isinstance(above, (ast.If, ast.While, ast.IfExp)) and node is above.test) or (
                    isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not)
                )
            node = above
        return False


def main() -> int:
    """Print the operands that decide in no test."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--room", action="append", required=True, choices=[room.name for room in ROOMS])
    rooms = [room for room in ROOMS if room.name in parser.parse_args().room]
    operands: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="operands-") as folder:
        copy, seen = copy_project(Path(folder).resolve()), Path(folder) / "seen"
        (copy.parent / "names" / "operands_seen.py").write_text(SEEN)
        for path in git("ls-files", "core/*.py", "tui/*.py").splitlines():
            if room_of(path) in rooms:
                noting = Noting(path)
                (copy / path).write_text(noting.text((copy / path).read_text()))
                operands |= noting.operands
        seen.touch()
        os.environ["OPERANDS"] = str(seen)
        files = dict.fromkeys(name for room in rooms for name in room.files())
        tests = subprocess.run(
            [str(ROOT / rooms[0].environment / "bin/python"), *shlex.split(TESTS), "--maxfail=0", *files], check=False
        )
        decided = {*seen.read_text().splitlines()}
    if tests.returncode:
        print("Some tests fail with the calls that note operands; the others count")
    for key in (key for key in operands if key not in decided):
        print(f"{key}: {operands[key]}")
    print(f"{len(operands.keys() & decided)} of {len(operands)} operands decide in a test")
    return int(not operands.keys() <= decided)


if __name__ == "__main__":
    sys.exit(main())
