"""The Chinese catalogue: complete, current, and faithful to the English messages."""

import io
import re
import runpy
import string
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from gettext import GNUTranslations
from pathlib import Path
from typing import Any

import pytest
from attn_tui.core.attention.cost import SHAPE_FIELDS
from attn_tui.core.attention.worked_example import EXAMPLE_FIELDS
from attn_tui.core.lab.weighting.results import WEIGHTINGS
from attn_tui.core.parameters import FIELDS
from attn_tui.core.scales import SCALE_RULES
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.core.statistics.status import MEANINGS
from attn_tui.core.training.settings import RACE_FIELDS
from attn_tui.tui.panes.catalogue import PANES
from babel.messages.catalog import Catalog
from babel.messages.mofile import read_mo
from babel.messages.pofile import read_po
from rich.cells import cell_len

FOLDER = Path(__file__).parents[2] / "tui" / "language" / "zh" / "LC_MESSAGES"
SCRIPT = Path(__file__).parents[2] / "docs" / "messages"
CHINESE = re.compile("[\u4e00-\u9fff\uff00-\uff60]")

Texts = dict[str, str]
Catalogues = tuple[str, Catalog, Texts]


@pytest.fixture(scope="module")
def script() -> Iterator[dict[str, Any]]:
    """Return what the script that renews the catalogue defines."""
    yield runpy.run_path(str(SCRIPT))
    for name in [file.stem for file in SCRIPT.glob("[!_]*.py")]:  # its modules are found only while it runs
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def catalogues() -> Catalogues:
    """Return the .po as text and as read, and its translations by their messages."""
    text = (FOLDER / "attn_tui.po").read_text("utf-8")
    found = read_po(io.BytesIO(text.encode()), locale="zh")
    texts: Texts = {}
    for message in found:
        if message.id:  # Chinese has one form for all numbers: that of many
            texts[_forms(message.id)[-1]] = _forms(message.string or "")[-1]
    return text, found, texts


def _forms(text: str | Iterable[str]) -> list[str]:
    """Return the forms of a message, or of its translation, for different numbers."""
    return [text] if isinstance(text, str) else [*text]


@pytest.mark.slow
def test_the_catalogue_has_exactly_the_messages_of_the_program(
    script: dict[str, Any], catalogues: Catalogues
) -> None:
    renew: Callable[..., str] = script["merged"]
    assert renew(script["found"](), catalogues[0], drop=True) == catalogues[0], "run `make messages`"


def test_no_text_is_put_together_where_it_is_said_or_drawn_without_being_said(script: dict[str, Any]) -> None:
    untold: Callable[[], Iterator[str]] = script["untold"]
    assert [*untold()] == [], "say a message with placeholders"


def test_every_text_that_reads_like_prose_is_a_message(script: dict[str, Any]) -> None:
    unlisted: Callable[[], Iterator[str]] = script["unlisted"]
    assert [*unlisted()] == [], "say it as a message and run `make messages`; docs/messages/prose.py lists exceptions"


@pytest.mark.parametrize(
    "source",
    [
        'HINTS = {"x": "apples fall down"}',
        'text = f"apples fall {n}"',
        '"apples fall {} times".format(n)',
        'Field("a", help="how far apples fall")',
        'Binding("x", "drop", "let apples fall")',
        'parser.add("x", "--drop", help="let apples fall")',
        'app.notify("The apple fell down")',
        'raise ValueError("the apple fell")',
        'print("apples fall")',
    ],
)
def test_prose_is_found_wherever_it_is_written(source: str, script: dict[str, Any], tmp_path: Path) -> None:
    (file := tmp_path / "new.py").write_text(source)
    unlisted: Callable[..., Iterator[str]] = script["unlisted"]
    assert len([*unlisted([file])]) == 1


def test_the_compiled_catalogue_has_the_translations_of_the_text(catalogues: Catalogues) -> None:
    with (FOLDER / "attn_tui.mo").open("rb") as file:
        compiled = {tuple(_forms(each.id)): _forms(each.string or "") for each in read_mo(file) if each.id}
    written = {tuple(_forms(each.id)): _forms(each.string or "") for each in catalogues[1] if each.id}
    assert compiled == written, "run `make messages`"


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


@pytest.mark.parametrize(
    ("most", "labels"),
    [
        (15, [statistic.short_label for statistic in STATISTICS]),
        (15, [rule.label for rule in SCALE_RULES.values()]),
        (18, [weighting.label for weighting in WEIGHTINGS.values()]),
        (14, [field.label for field in (*FIELDS, *SHAPE_FIELDS, *EXAMPLE_FIELDS, *RACE_FIELDS)]),
        (8, [*MEANINGS]),
        (8, [*PANES]),
        (12, [key for row in PANES.values() for _, key in row.load().KEYS]),
    ],
    ids=["statistics", "rules", "weightings", "fields", "statuses", "panes", "key bars"],
)
def test_a_label_takes_no_more_cells_than_its_place_has(most: int, labels: list[str], catalogues: Catalogues) -> None:
    said = {label: catalogues[2].get(label, label) for label in labels}
    assert {label: text for label, text in said.items() if cell_len(text) > max(most, cell_len(label))} == {}


def test_lines_of_the_command_line_help_fit_into_80_cells(catalogues: Catalogues) -> None:
    lines = [line for message, said in catalogues[2].items() if "\n" in message for line in said.splitlines()]
    assert [line for line in lines if cell_len(line) > 80] == []


def test_gettext_reads_the_compiled_catalogue() -> None:
    with (FOLDER / "attn_tui.mo").open("rb") as file:
        assert GNUTranslations(file).gettext("entropy") == "熵"


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
