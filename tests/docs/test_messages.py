"""The Chinese catalogue: complete, current, and faithful to the English messages."""

import ast
import io
import re
import runpy
import string
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from gettext import GNUTranslations
from pathlib import Path
from typing import Any

import pytest
from attn_tui.core.attention.cost import SHAPE_FIELDS
from attn_tui.core.attention.worked_example import EXAMPLE_FIELDS
from attn_tui.core.parameters import FIELDS
from attn_tui.core.scales import SCALE_RULES
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.core.statistics.status import MEANINGS
from attn_tui.core.training.settings import RACE_FIELDS
from attn_tui.tui.language.po import compiled
from attn_tui.tui.panes.catalogue import PANES
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po
from cases import for_each
from rich.cells import cell_len

ROOT = Path(__file__).parents[2]
PO = ROOT / "tui" / "language" / "zh" / "LC_MESSAGES" / "attn_tui.po"
SCRIPT = ROOT / "docs" / "messages"
CHINESE = re.compile("[\u4e00-\u9fff\uff00-\uff60]")

# Texts that read like prose and are no messages.
ENGLISH = (
    "core/captures/features.py",  # what docs/capture-format.md says
    "core/captures/calls/",  # for developers
    "core/program/", "core/tables/", "core/diagnosis/scale_keys.py",  # what docs/diagnose.md says
    "tui/cli/crash.py", "tui/cli/root/",  # for developers
    "tui/terminal/reader.py",  # a regular expression with comments
    "tui/views/fields/synonyms.py", "tui/views/fields/choices.py",  # words by which choices are found
)  # fmt: skip
ERRORS = ("AssertionError", "AttributeError", "KeyError", "RuntimeError", "TypeError")  # for programmers
NO_MESSAGES = re.compile(  # names in JSON, keys, parts of messages, words of Python, the head of the settings file
    "all layers|nothing to merge|the mouse|terminal watch|(un)?scaled median|rows whose largest weight is on"
    "|weight on|float16 with the row's largest subtracted|; choose another|Every other layer sees|All layers see"
    "|Five layers in six see|the baseline|this file|find the bug: {}|can't start new thread|expected one argument"
    "|holds in the limit|depends on the measure|does not hold|from attn_tui.*|# Settings of.*|.*\\(\\?P<.*"
    "|(none|\\w*d_k) (recalled|loss|under (none|\\w*d_k))( − (none|\\w*d_k))?"
    "|Written by attn-tui {}",
    re.DOTALL,
)

Texts = dict[str, str]
Catalogues = tuple[str, Catalog, Texts]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    """Return what the script that renews the catalogue defines, and what it finds messages with."""
    defined = runpy.run_path(str(SCRIPT))
    return vars(sys.modules.pop("find")) | defined


@pytest.fixture(scope="module")
def catalogues() -> Catalogues:
    """Return the .po as text and as read, and its translations by their messages."""
    text = PO.read_text("utf-8")
    found = read_po(io.BytesIO(text.encode()), locale="zh")
    texts: Texts = {}
    for message in found:
        if message.id:  # Chinese has one form for all numbers: that of many
            texts[_forms(message.id)[-1]] = _forms(message.string or "")[-1]
    return text, found, texts


def _forms(text: str | Iterable[str]) -> list[str]:
    """Return the forms of a message, or of its translation, for different numbers."""
    return [text] if isinstance(text, str) else [*text]


def _written(tree: ast.AST) -> Iterator[str]:
    """Yield the texts in a tree, with {} for what is filled in; no docstrings, and nothing for programmers alone."""
    match tree:
        case ast.Expr(value=ast.Constant()) | ast.Assert() | ast.FunctionDef(name="__repr__"):
            pass
        case ast.Call(func=ast.Name(id=name)) if name in ERRORS:
            pass
        case ast.JoinedStr() | ast.Constant(value=str()):
            parts = tree.values if isinstance(tree, ast.JoinedStr) else [tree]
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts).strip()
        case _:
            for child in ast.iter_child_nodes(tree):
                yield from _written(child)


def _unlisted(tree: ast.AST, known: Collection[str], script: dict[str, Any]) -> list[str]:
    """Return the texts in a tree that read like prose and are neither known nor a part of what is known."""
    every = "\n".join(known)
    found = [text for text in _written(tree) if script["has_prose"](text) and text not in known]
    parts = [text for text in found if re.search("{}|\n", text)]
    joined = [text for text in parts if re.search(".*".join(map(re.escape, text.split("{}"))), every)]
    return [text for text in found if text not in joined and not NO_MESSAGES.fullmatch(text)]


@pytest.mark.slow
def test_the_catalogue_has_exactly_the_messages_of_the_program(
    script: dict[str, Any], catalogues: Catalogues
) -> None:
    assert script["merged"](script["found"](), catalogues[0], drop=True) == catalogues[0], "run `make messages`"


def test_every_text_that_reads_like_prose_is_a_message(script: dict[str, Any], catalogues: Catalogues) -> None:
    known = {text for each in catalogues[1] for form in _forms(each.id) for text in (form, form.split("|")[0])}
    for path in script["source_files"]():
        if not path.relative_to(ROOT).as_posix().startswith(ENGLISH):
            assert _unlisted(script["tree"](path), known, script) == [], f"{path}: say it as a message"


@pytest.mark.parametrize(
    "source", ['{"x": "apples fall down"}', 'f"apples fall {n}"', 'Field("a", help="how far apples fall")']
)
def test_prose_is_found_wherever_it_is_written(source: str, script: dict[str, Any]) -> None:
    assert len(_unlisted(ast.parse(f"x = {source}"), (), script)) == 1


def test_gettext_reads_every_translation_of_the_compiled_catalogue(catalogues: Catalogues) -> None:
    found = GNUTranslations(io.BytesIO(compiled(catalogues[0])))
    for each in catalogues[1]:
        one, *many = _forms(each.id)
        said = found.ngettext(one, many[0], 2) if many else found.gettext(one)
        assert not one or said == _forms(each.string or "")[0]


def test_every_message_is_translated(catalogues: Catalogues) -> None:
    assert [message for message, said in catalogues[2].items() if not said] == []


def test_no_translation_is_unused_or_unsure(catalogues: Catalogues) -> None:
    assert not catalogues[1].obsolete, "`make messages ARGS=--drop` drops translations that nothing uses"
    assert [message.id for message in catalogues[1] if message.fuzzy] == []


def test_what_is_not_in_chinese_is_a_name_that_stays_as_it_is(catalogues: Catalogues) -> None:
    same = {
        message for message, said in catalogues[2].items() if said.replace("，", ", ").replace("。", ".") == message
    }
    assert [m for m, said in catalogues[2].items() if not CHINESE.search(said) and m not in same] == []
    assert [m for m in same if len(re.findall("[a-z]{3,}", _bare(m))) > 4] == []


def test_placeholders_are_those_of_the_message_with_the_same_formats(catalogues: Catalogues) -> None:
    filled = [message for message in catalogues[2] if _is_format(message)]
    assert filled
    assert [m for m in filled if _placeholders(catalogues[2][m]) != _placeholders(m)] == []


def test_every_number_of_a_message_is_in_its_translation(catalogues: Catalogues) -> None:
    lost = {m: Counter(_numbers(m)) - Counter(_numbers(said)) for m, said in catalogues[2].items()}
    assert {message: [*numbers] for message, numbers in lost.items() if numbers} == {}


def test_options_names_and_code_stay_as_they_are(catalogues: Catalogues) -> None:
    assert [(name, m) for m, said in catalogues[2].items() for name in _names(m) if name not in said] == []


def test_sentences_end_as_in_english(catalogues: Catalogues) -> None:
    ends = {".": "。）”", "?": "？", "!": "！!", ":": "："}
    for message, said in catalogues[2].items():
        last = message.rstrip().removesuffix("...")[-1:]
        assert said.rstrip()[-1] in ends.get(last, said.rstrip()[-1]), message
        assert last in ends or said.rstrip()[-1] not in "。？：", message
        assert _margins(said) == _margins(message), message


def test_chinese_has_full_width_punctuation_and_spaces_beside_latin_letters(catalogues: Catalogues) -> None:
    odd = (
        "[\u4e00-\u9fff][,;!?A-Za-z0-9]|[A-Za-z0-9][\u4e00-\u9fff]"  # half width, or no space
        "| [，。；：、？（）]|[，。；、？（] "  # a space beside full-width punctuation
    )
    lines = [line.strip() for said in catalogues[2].values() for line in said.splitlines()]
    assert [line for line in lines if re.search(odd, line)] == []


@for_each(
    ("most", "labels"),
    [
        (15, [statistic.short_label for statistic in STATISTICS]),
        (15, [rule.label for rule in SCALE_RULES.values()]),
        (14, [field.label for field in (*FIELDS, *SHAPE_FIELDS, *EXAMPLE_FIELDS, *RACE_FIELDS)]),
        (8, [*MEANINGS]),
        (8, [*PANES]),
        (12, [key for row in PANES.values() for _, key in row.load().KEYS]),
    ],
)
def test_a_label_takes_no_more_cells_than_its_place_has(most: int, labels: list[str], catalogues: Catalogues) -> None:
    said = {label: catalogues[2].get(label, label) for label in labels}
    assert {label: text for label, text in said.items() if cell_len(text) > max(most, cell_len(label))} == {}


def test_lines_of_the_command_line_help_fit_into_80_cells(catalogues: Catalogues) -> None:
    lines = [line for message, said in catalogues[2].items() if "\n" in message for line in said.splitlines()]
    assert [line for line in lines if cell_len(line) > 80] == []


def _is_format(message: str) -> bool:
    try:
        return any(name for _, name, _, _ in string.Formatter().parse(message))
    except ValueError:
        return False


def _placeholders(text: str) -> set[tuple[str, str, str]]:
    """Return the placeholders of a text with their formats and conversions."""
    return {
        (name, form or "", conversion or "")
        for _, name, form, conversion in string.Formatter().parse(text)
        if name is not None
    }


def _numbers(text: str) -> list[str]:
    """Return the numbers of a text, without a point at its end; 1st and 1-hot are words."""
    return re.findall(r"\d+(?:[.,]\d+)*", re.sub(r"\b1(st|-hot)\b", "", _bare(text)))


def _names(text: str) -> list[str]:
    """Return options, code in backquotes, and names with an underscore."""
    return re.findall(r"(?<!\S)--[a-z][a-z-]+|`[^`]+`|\b[A-Za-z]\w*_\w+\b", _bare(text))


def _bare(text: str) -> str:
    """Return a text without its placeholders."""
    return re.sub(r"\{[^{}]*\}", "", text)


def _margins(text: str) -> tuple[str, str]:
    """Return the blanks before and after a text."""
    return text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
