"""Messages, found by one rule: a text is a message where the code says that it is one.

- What is said: the first argument of `message`, `say`, `counted` (and its plural), `in_sense` (and the sense), of
  InputError and the errors derived from it; title and help of an option of the command line. It is written out, or
  a constant.
- What is declared: the fields in TEXTS of objects of these classes, the constants in TABLES, and what keys do, in
  whatever is annotated as Key or as several.
- In FOLDERS, whose functions return sentences that are said where they are drawn, every text with a space.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, cast, get_args

from attn_tui.core.field import Field
from attn_tui.core.message import SENSE
from attn_tui.core.message import Message as Filled
from attn_tui.core.parameters import choice_word

ROOT = Path(__file__).parents[2]

# The fields that are texts, by class; those with a ? only if they have two words in a row, or else are names.
TEXTS = {
    "Field": "label help", "Statistic": "label short group definition formula? source?",
    "ScaleRule": "formula? short? used_by note source?", "Model": "note source?", "Quantity": "label help",
    "Claim": "title statement source? why limit untestable",
    "ClaimFigure": "label measure", "TourFigure": "label measure", "Bounds": "words",
    "TourStep": "title source introduction explanation given",
    "Guess": "question", "UsualGuess": "meaning", "PaneState": "what",
    "InterviewQuestion": "question short long usual verdict given",
    "Bug": "title story lesson", "Symptom": "label", "PaneRow": "title about", "Binding": "description",
    "CliCommand": "description examples title", "CommandRow": "group summary", "Setting": "help",
    "Value": "formula? help source?", "_ColumnFormat": "titles",
}  # fmt: skip
# The constants whose texts are messages, by module; of a dictionary, its values.
TABLES = {
    "core/learning/claim.py": "VERDICT_WORDS", "core/diagnosis/comparing/results.py": "FIGURES",
    "core/diagnosis/results.py": "STAGES Word",
    "core/learning/bugs.py": "CAUSES", "core/models.py": "MODEL_WIDTHS?",
    "core/statistics/status.py": "MEANINGS Status", "core/training/settings.py": "ACCEPTED",
    "tui/app/keys.py": "EVERYWHERE", "tui/cli/parser.py": "_TITLES",
    "tui/cli/help.py": "DESCRIPTION EPILOG OUTPUT",
    "tui/views/results/rules.py": "WAY_OF STATUS SATURATED_AT _WORDS",
    "tui/views/results/sweep.py": "_UNITS",
    "tui/views/export.py": "KINDS?", "tui/views/fields/choices.py": "FAMILIES", "tui/views/help.py": "WORDS",
    "tui/views/notice.py": "GREETING COPIED _COPIED",
    "tui/views/plots/lab_pictures.py": "LOGITS SATURATION ENTROPY",
    "tui/views/results/lab_page.py": "ROW",
    "tui/views/plots/histograms.py": "TITLES", "tui/views/results/comparison.py": "_TITLES",
    "tui/views/results/watching.py": "LABELS", "tui/widgets/modal.py": "_TITLES",
}  # fmt: skip
FOLDERS = ("core/captures/", "core/diagnosis/", "core/watching/", "core/work/worker.py")

_NAMES = ("model", "scale", "precision", "cache_format", "optimiser")  # fields whose choices are names
_NO_SENTENCES = ("cast", "partition", "split", "replace", "removeprefix", "AssertionError", "RuntimeError")
_WORD = re.compile(r"[A-Za-z]{2,}")
_PROSE = re.compile(r"(?<![\w'\"/.-])[A-Za-z][a-z]+ [a-z]{2,}(?![\w'\"/.=(-])")
_REASONS = (  # of the operating system, why a file cannot be read or written, as Linux and macOS say it
    "Disk quota exceeded", "File exists", "File name too long", "File too large", "Input/output error",
    "Is a directory", "No space left on device", "No such file or directory", "Not a directory",
    "Operation not permitted", "Permission denied", "Read-only file system", "Too many levels of symbolic links",
)  # fmt: skip


@dataclass(frozen=True)
class Message:
    """A text that users read: where it is, what it is, and the text for other numbers than one."""

    text: str
    path: str  # of the source file, from the root
    note: str = ""  # such as `Statistic: label`
    plural: str = ""


def has_words(text: str) -> bool:
    """Return whether a text has a word of two letters beside its placeholders, and so may need a translation."""
    return _WORD.search(re.sub(r"\{[^{}]*\}|d_[a-z]+", "", text)) is not None


def has_prose(text: str) -> bool:
    """Return whether a text has two words in a row, so that it is more than a name."""
    return _PROSE.search(text) is not None


def found() -> Iterator[Message]:
    """Yield every message of the program; several may have the same text."""
    for path in source_files():
        place, module = path.relative_to(ROOT).as_posix(), tree(path)
        for one, plural in _said(module, place.startswith("tui/cli/")):
            if has_words(one) or plural:
                yield Message(one.strip(), place, plural=plural.strip())
        functions = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef)]
        texts = [*(("a key bar", text) for text in _keys(module)), *_declared(place)]
        if place.startswith(FOLDERS):
            texts += [("", text) for each in functions for text in _sentences(each.body)]
        yield from (Message(text.strip(), place, note) for note, text in texts if has_words(text))
    yield from (Message(text, "core/files.py", "reason of the operating system") for text in _REASONS)


def source_files() -> list[Path]:
    """Return the modules of core and tui; the recorder runs in other programs and speaks English there."""
    found = [path for folder in ("core", "tui") for path in (ROOT / folder).rglob("*.py")]
    return sorted(path for path in found if not path.is_relative_to(ROOT / "core" / "recorder"))


@cache
def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text("utf-8"))


@cache
def _errors() -> Collection[str]:
    """Return the names of InputError and of the errors derived from it."""
    classes = [node for path in source_files() for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]
    found = {"InputError"}
    while more := {each.name for each in classes if found & {*map(ast.unparse, each.bases)}} - found:
        found |= more
    return found


def _said(module: ast.Module, options: bool) -> Iterator[tuple[str, str]]:
    """Yield the texts of calls, each with its plural; those of `options` of the command line too."""
    values = {name: value for node in ast.walk(module) for name, value in _assigned(node)}
    names = values if options else {name: value for name, value in values.items() if name.isupper()}
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Name(id="counted" | "in_sense" as name), args=[one, other, *_]):
                pairs = zip(_texts(one, names), _texts(other, names), strict=True)
                yield from ((SENSE.join(pair), "") if name == "in_sense" else pair for pair in pairs)
            case (
                ast.Call(func=ast.Name(id="option"), args=[title, _, _, words, *_])
                | ast.Call(func=ast.Name(id="flag"), args=[title, _, words])
            ):
                yield from ((each, "") for value in (title, words) for each in _texts(value, values))
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[text, *_]) if (
                name in ("message", "say") or name in _errors() or (options and name in ("add", "add_common"))
            ):
                helps = [each.value for each in node.keywords if each.arg == "help" and name == "add"]
                yield from ((each, "") for value in (text, *helps) for each in _texts(value, names))
            case _:
                pass


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that a statement assigns, with their values."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            yield from zip(map(ast.unparse, names), values, strict=True)
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=ast.expr() as value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
        ):
            yield name, value
        case _:
            pass


def _texts(node: ast.expr, names: Mapping[str, ast.expr]) -> Iterator[str]:
    """Yield the texts that an expression may be: written out, or the value of one of these names."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=one, orelse=other):
            yield from (*_texts(one, names), *_texts(other, names))
        case ast.Tuple(elts=nodes) | ast.Dict(values=nodes):
            yield from (text for each in nodes for text in _texts(each, names))
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)) if name in names:
            yield from _texts(names[name], {})
        case _:
            pass


def _keys(module: ast.Module) -> Iterator[str]:
    """Yield what keys do, in pairs with the key: `("PgUp PgDn", "scroll")`."""
    for node in ast.walk(module):
        match node:
            case ast.AnnAssign(annotation=kind, value=ast.expr()) | ast.FunctionDef(returns=ast.expr() as kind):
                pairs = ast.walk(node) if re.search(r"\bKey\b", ast.unparse(kind)) else ()
                yield from (ast.literal_eval(pair)[1] for pair in pairs if _is_pair(pair))
            case _:
                pass


def _is_pair(node: ast.AST) -> bool:
    texts = (
        [each.value for each in node.elts if isinstance(each, ast.Constant)] if isinstance(node, ast.Tuple) else []
    )
    return len(texts) == 2 and all(isinstance(text, str) for text in texts)


def _sentences(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the texts with a space in a function, without docstrings, f-strings and what no one reads."""
    for node in nodes:
        match node:
            case ast.Constant(value=str(text)) if " " in text.strip():
                yield text
            case ast.Expr(value=ast.Constant()) | ast.JoinedStr() | ast.Compare() | ast.FunctionDef() | ast.Assert():
                pass
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _NO_SENTENCES:
                pass
            case ast.Call(func=ast.Name(id="message" | "counted")):  # `_said` has the templates
                yield from _sentences(each.value for each in node.keywords)
            case ast.AnnAssign(value=ast.expr() as value):
                yield from _sentences([value])
            case _:
                yield from _sentences(ast.iter_child_nodes(node))


def _declared(place: str) -> Iterator[tuple[str, str]]:
    """Yield the texts that a module declares, with what they are."""
    module = import_module("attn_tui." + place.removesuffix(".py").replace("/", "."))
    for table in TABLES.get(place, "").split():
        name = table.rstrip("?")
        yield from ((name, text) for text in _flat(getattr(module, name)) if name == table or has_prose(text))
    for node in tree(ROOT / place).body:
        names = [node.name] if isinstance(node, ast.ClassDef) else [name for name, _ in _assigned(node)]
        for name in names:
            yield from _of_object(getattr(module, name, None))


def _of_object(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts of all declarations that are reachable from a value."""
    kind = next((each.__name__ for each in type(value).__mro__ if each.__name__ in TEXTS), "")
    for word in TEXTS.get(kind, "").split():
        field = word.rstrip("?")
        texts = _flat(getattr(value, field, ""))  # classes may have the same name
        yield from ((f"{kind}: {field}", text) for text in texts if field == word or has_prose(text))
    if isinstance(value, Field) and value.name not in _NAMES:
        yield from (("Field: choice", choice_word(choice)) for choice in value.choices)
    if isinstance(value, type):  # a widget: its keys and its title
        yield from (("TITLE", text) for text in _flat(vars(value).get("TITLE", "")))
        inside = _inside(vars(value).get("BINDINGS", ()))
    else:
        inside = _inside(vars(value) if kind and hasattr(value, "__dict__") else value)
    for each in inside:
        yield from _of_object(each)


def _flat(value: Any) -> Iterator[str]:
    """Yield the texts in a value; one that is filled in is a message where it is written."""
    if isinstance(value, str):
        template, values = (value.template, value.values) if isinstance(value, Filled) else (value, {})
        yield from () if values else (template,)
    else:
        yield from (text for each in _inside(value) or get_args(value) for text in _flat(each))


def _inside(value: Any) -> Sequence[Any]:
    """Return the values of a dictionary, or the elements of a tuple or list."""
    inside = cast(Any, value).values() if isinstance(value, dict) else value
    return [*inside] if isinstance(value, dict | tuple | list) else ()
