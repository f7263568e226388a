"""What can be chosen from a list: every choice is described, and found by its names."""

import re

import pytest
from attn_tui.core.field import Field
from attn_tui.core.parameters import FIELDS
from attn_tui.core.scales import SCALE_RULES
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.tui.views.fields.choice_list import ChoiceList, clicked, list_lines
from attn_tui.tui.views.fields.choices import (
    FAMILIES,
    Choice,
    choices_of,
    formula_rows,
    model_choices,
    statistic_choices,
)
from attn_tui.tui.views.fields.matching import matching
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.lines import line_width
from cases import for_each, present
from line_texts import texts_of

LISTS = {
    **{field.label: choices_of(field) for field in FIELDS if field.kind == "choice"},
    "statistic": statistic_choices(STATISTICS),
    "model": model_choices(),
}
SIZES = [(36, 10), (68, 19), (96, 38), (96, 46)]
SCALE = LISTS["scale"]


@for_each("field", [field for field in FIELDS if field.kind == "choice"])
def test_every_choice_of_a_parameter_has_a_formula_help_and_a_source(field: Field) -> None:
    rows = choices_of(field)
    assert sorted(row.value for row in rows) == sorted(field.choices)
    for row in rows:
        assert row.formula, row
        assert row.help.endswith("."), row
        assert row.source, row


def test_every_scale_rule_belongs_to_one_family() -> None:
    assert {row.value for row in SCALE} == {*SCALE_RULES}
    families = [row.family for row in SCALE]
    assert [*dict.fromkeys(families)] == [*FAMILIES]
    assert families == sorted(families, key=families.index), "those of a family stand together"


@pytest.mark.parametrize("law", ["normal", "uniform", "laplace", "rademacher"])
def test_the_excess_kurtosis_that_a_law_is_said_to_give_follows_from_its_fourth_moment(law: str) -> None:
    row = next(row for row in LISTS["components"] if row.value == law)
    said = re.search(r"(−?[\d.]+)/d_k", row.help)
    moment = re.search(r"m₄ = ([\d.]+)", row.source)
    assert said is not None
    assert moment is not None
    assert float(said[1].replace("−", "-")) == pytest.approx(float(moment[1]) ** 2 - 3)


@for_each(
    ("title", "words", "value"),
    [
        ("scale", "sqrt_d_k", "sqrt_d_k"),
        ("scale", "1/√d_k", "sqrt_d_k"),
        ("scale", "1/sqrt d_k", "sqrt_d_k"),
        ("scale", "VASWANI", "sqrt_d_k"),
        ("scale", "gemma 2 27b", "gemma2_27b"),
        ("scale", "swin", "cosine_10"),
        ("scale", "unscaled", "none"),
        ("format", "bf16", "bfloat16"),
        ("format", "half", "float16"),
        ("format", "e5m2", "float8_e5m2"),
        ("mechanism", "bahdanau", "additive"),
        ("components", "gaussian", "normal"),
        ("mask", "decoder", "causal"),
        ("statistic", "entropy", "entropy"),
        ("statistic", "one-hot", "one_hot_rows"),
        ("statistic", "frobenius", "jacobian_norm"),
        ("model", "llama 3 8b", "llama-3-8b"),
        ("model", "llama38", "llama-3-8b"),
    ],
)
def test_words_find_a_choice_by_its_names(title: str, words: str, value: str) -> None:
    assert value in [row.value for row in matching(LISTS[title], words)][:2]


@for_each("title", LISTS)
def test_every_choice_is_the_first_that_its_own_name_and_value_find(title: str) -> None:
    for row in LISTS[title]:
        for words in (row.value, row.name):
            first = matching(LISTS[title], words)[0]
            assert first.value == row.value, (words, first)


def test_all_words_must_match_and_without_any_everything_does() -> None:
    assert matching(SCALE, "  ") == [*SCALE]
    assert {row.value for row in matching(SCALE, "cos percentile")} == {"cosine_log2_n"}
    assert matching(SCALE, "vaswani xyzzy") == []
    assert matching([Choice("a", "hide it and ask again")], "dask") == [], "letters of two words"
    assert len(matching([Choice("a", "max weight")], "maxw")) == 1
    assert matching(SCALE, "vaswnai") == matching(SCALE, "vaswani") != [], "a misspelling"
    assert matching(SCALE, "gm227") == [row for row in SCALE if row.value == "gemma2_27b"], "letters in order"


@for_each("size", SIZES)
@for_each("glyphs", [UNICODE, ASCII])
@for_each("title", LISTS)
def test_a_list_fits_and_always_shows_the_selected_row_with_its_help_and_source(
    title: str, glyphs: Glyphs, size: tuple[int, int]
) -> None:
    found = ChoiceList.at(title, LISTS[title], LISTS[title][-1].value)
    for _ in LISTS[title]:
        lines = list_lines(found, *size, glyphs)
        assert [line_width(line) for line in lines] == [size[0]] * size[1]
        texts, chosen = texts_of(lines), found.chosen
        assert chosen is not None
        assert sum(text.startswith(glyphs.cursor) for text in texts) == 1
        row = next(text for text in texts if text.startswith(glyphs.cursor))
        assert glyphs.say(chosen.name)[:13] in row
        assert not chosen.source or f"Source: {glyphs.say(chosen.source)[:8]}" in " ".join(" ".join(texts).split())
        assert not chosen.help or glyphs.say(chosen.help).split()[0] in "\n".join(texts)
        found = found.moved(-1)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_click_means_the_row_under_it_or_a_key(size: tuple[int, int]) -> None:
    for cursor in (0, 12, len(SCALE) - 1):
        found = ChoiceList("scale", SCALE, "none", cursor=cursor)
        texts = texts_of(list_lines(found, *size, UNICODE))
        meanings = [clicked(found, *size, UNICODE, 5, y) for y in range(size[1])]
        for text, meaning in zip(texts, meanings, strict=True):
            if isinstance(meaning, int):
                assert found.rows[meaning].name[:10] in text
        assert cursor in meanings
        assert clicked(found, *size, UNICODE, texts[-1].index("cancel"), size[1] - 1) == "Esc"
        assert not any(isinstance(meaning, int) for meaning in (meanings[0], meanings[-1]))
        borders = [clicked(found, *size, UNICODE, x, y) for x in (-1, size[0]) for y in range(size[1])]
        assert not any(isinstance(meaning, int) for meaning in borders), "a click on the border chooses nothing"


def test_a_filter_puts_the_cursor_on_the_best_match_and_the_cursor_stays_in_the_list() -> None:
    found = ChoiceList.at("scale", SCALE, "custom")
    assert found.chosen is not None
    assert found.chosen.value == "custom"
    found = found.moved(5).filtered("deberta")
    assert present(found.chosen).value == "sqrt_three_d_k"
    assert found.moved(-9).cursor == 0
    empty = found.filtered("xyzzyq")
    assert empty.chosen is None
    assert empty.moved(3).chosen is None
    assert "Nothing" in "\n".join(texts_of(list_lines(empty, 60, 20, UNICODE)))


def test_the_row_of_a_formula_is_counted_and_has_the_cursor() -> None:
    found = ChoiceList.at("scale", SCALE, "custom", formula_rows)
    for words, count in (("", f"{len(SCALE)} of {len(SCALE)}"), ("2/(d+7)", f"1 of {len(SCALE) + 1}")):
        now = found.filtered(words)
        texts = texts_of(list_lines(now, 60, 20, UNICODE))
        assert texts[0].rstrip().endswith(f" {count}")
        assert sum(text.startswith(UNICODE.cursor) for text in texts) == 1
    assert f" 0 of {len(SCALE)}" in texts_of(list_lines(found.filtered("xyzzyq"), 60, 20, UNICODE))[0]


def test_a_row_without_formula_is_shown_and_help_fills_lines_without_rows() -> None:
    assert "plain" in "\n".join(texts_of(list_lines(ChoiceList("x", (Choice("a", "plain"),)), 40, 12, UNICODE)))
    help_ = "A sentence that is far longer than one line of a small screen, and is shown in full."
    found = ChoiceList("x", (Choice("a", "one", help=help_), Choice("b", "two", help=help_)))
    lines = texts_of(list_lines(found, 36, 10, UNICODE))
    assert help_ in " ".join(" ".join(lines).split())
    assert len(lines) == 10
