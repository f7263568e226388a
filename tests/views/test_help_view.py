"""The help: the focused field, the pane, and every key by its name."""

from attn_tui.core.field import Field
from attn_tui.core.parameters import FIELD, FIELDS
from attn_tui.core.scales import SCALE_RULES
from attn_tui.core.statistics.catalogue import DEAD, ONE_HOT, STATISTICS, Statistic
from attn_tui.tui.app.keys import all_commands, commands, help_keys
from attn_tui.tui.language.cells import cells
from attn_tui.tui.language.chosen import Language
from attn_tui.tui.panes.catalogue import PANES, PaneRow
from attn_tui.tui.views.glyphs import ASCII, IN_LANGUAGE, UNICODE, Glyphs
from attn_tui.tui.views.help import help_lines, key_name, key_overview, key_word, rekeyed
from attn_tui.tui.views.lines import line_width
from cases import for_each
from line_texts import text_of, texts_of

LAB = PANES["Lab"].about
KEYS = [
    ("right,l", "d_k + 1", "lab.more"),
    ("greater_than_sign", "next tab", "next_pane"),
    ("s", "next scale rule", "lab.next_scale"),
]
BAR = (("←→", "d_k"), ("s", "scale"), ("?", "help"), ("Enter", "tour"), (">", "next tab"))


def paragraphs(about: Field | Statistic | None) -> str:
    """Return the whole help as one line."""
    return " ".join(text_of(line) for line in help_lines(about, LAB, BAR, 80, UNICODE))


@for_each("statistic", STATISTICS)
def test_a_statistic_is_explained_with_formula_source_and_name(statistic: Statistic) -> None:
    text = paragraphs(statistic)
    for words in (statistic.label, statistic.formula, statistic.definition, statistic.source, statistic.name):
        assert " ".join(words.split()) in text


@for_each("field", FIELDS)
def test_a_field_is_explained_with_its_accepted_values_and_option(field: Field) -> None:
    text = paragraphs(field)
    for words in (field.label, field.symbol, field.help, field.accepted, field.option):
        assert words in text


def test_the_help_on_the_scale_names_every_rule_with_its_users_and_source() -> None:
    text = paragraphs(FIELD["scale"])
    for rule in (SCALE_RULES[name] for name in FIELD["scale"].choices):
        assert rule.formula in text
        assert rule.note in text
        assert rule.used_by in text
        assert rule.source in text


def test_help_begins_with_the_field_then_keys_and_the_pane_and_defines_terms() -> None:
    text = paragraphs(FIELD["seed"])
    assert text.index("seed") < text.index("next tab") < text.index(str(LAB[0])[:20]) < text.index("dead row")
    text = paragraphs(None)
    assert f"above {ONE_HOT}" in text
    assert f"below {DEAD}" in text


@for_each("width", [20, 36, 60, 110])
@for_each("glyphs", [UNICODE, ASCII, IN_LANGUAGE["zh"]])
def test_keys_of_the_bar_stand_in_columns_that_are_read_down(width: int, glyphs: Glyphs) -> None:
    lines = [text_of(line) for line in help_lines(None, (), BAR, width, glyphs)[1:]]
    rows = lines[: lines.index("")]
    said = [f"{glyphs.say(press)}  {glyphs.say(effect)}" for press, effect in BAR]
    places = [
        (cells(row[: row.index(words)] + words.split()[0]), at)
        for words in said
        for at, row in enumerate(rows)
        if words in row
    ]
    assert len(places) == len(said), "each once"
    assert places == sorted(places)
    assert all(line_width(line) <= width for line in help_lines(None, (), BAR, width, glyphs)[1 : len(rows) + 1])
    assert (len(rows) == 1) == (width == 110)


def test_keys_have_the_names_on_a_keyboard_and_those_of_one_effect_share_a_line() -> None:
    def words(keys: list[tuple[str, str, str]], glyphs: Glyphs = UNICODE) -> list[list[str]]:
        return [text_of(line).split() for line in key_overview({"Lab": keys}, "", 80, glyphs)]

    assert ["→", "l", "d_k", "+", "1", "lab.more"] in words(KEYS)
    assert [">", "next", "tab", "next_pane"] in words(KEYS)
    assert ["right", "l", "d_k", "+", "1", "lab.more"] in words(KEYS, ASCII)
    lines = words([(digit, "type d_k", "") for digit in "0123456789"] + [("a", "same", ""), ("b", "same", "")])
    assert ["0-9", "type", "d_k"] in lines
    assert ["a", "b", "same"] in lines


@for_each("row", PANES.values())
def test_keys_are_not_listed_by_their_names_in_textual(row: PaneRow) -> None:
    bindings = row.load().BINDINGS
    groups = help_keys(commands({row.title: bindings}), {})
    assert len(groups[row.title]) == len(bindings), "every key says what it does"
    pressed = [line.split("  ")[0] for line in map(str.strip, texts_of(key_overview(groups, "", 200, UNICODE)[4:]))]
    assert not [words for words in pressed if "_" in words or "bracket" in words]


@for_each("width", [36, 60, 90])
@for_each("glyphs", [UNICODE, ASCII])
def test_the_overview_has_every_key_with_its_name_and_fits(width: int, glyphs: Glyphs) -> None:
    lines = key_overview({"Lab": KEYS, "everywhere": [("Q,ctrl+x", "a way out " * 8, "quit")]}, "/a/b", width, glyphs)
    assert all(line_width(line) <= width for line in lines)
    text = texts_of(lines)
    assert text.index("Lab") < text.index("everywhere")
    for _, does, name in KEYS:
        at = next(at for at, row in enumerate(text) if does in row)
        assert any(row.endswith(f" {name}") for row in text[at : at + 2])
    assert any(row.split()[:2] == ["Q", "Ctrl+X"] for row in text)
    assert sum(row.endswith(" quit") for row in text) == 1


@for_each("width", [36, 66, 90])
@for_each("language", ["en", "zh"])
def test_what_keys_do_stands_in_one_column_below_long_lists_of_keys(language: Language, width: int) -> None:
    groups = help_keys(all_commands(), {})
    lines = key_overview(groups, "/a/b", width, IN_LANGUAGE[language])
    assert all(line_width(line) <= width for line in lines)
    pairs = [line for line in lines if len(line) > 2 and line[0][1] == "key"]
    assert len(pairs) > 150
    assert len({line_width(line[:2]) for line in pairs}) == 1
    above = [text_of(line) for line in lines if line and {role for _, role in line} == {"key"}]
    assert any("Ctrl+W" in text for text in above)


def test_the_name_in_reports_is_that_of_json_in_every_language() -> None:
    for statistic in STATISTICS:
        text = "".join(texts_of(help_lines(statistic, (), (), 400, IN_LANGUAGE["zh"])))
        assert f"报告中的名称：{statistic.name}。" in text


@for_each(
    ("name", "word"),
    [
        ("question_mark", "?"), ("pageup", "PgUp"), ("left", "←"), ("s", "s"), ("S", "S"), ("?", "?"), (",", ","),
        ("ctrl+p", "Ctrl+P"), ("shift+tab", "Shift+Tab"), ("f1", "F1"), ("right,l", "→ l"), ("+", "+"),
        ("ctrl+pageup", "Ctrl+PgUp"), ("enter", "Enter"), ("0-9", "0-9"),
    ],
)  # fmt: skip
def test_a_key_is_named(name: str, word: str) -> None:
    assert key_word(name) == word


@for_each("name", ["pageup", "ctrl+p", "f1", "enter", "shift+tab", "n", "N", "?", "escape", "+"])
def test_a_written_name_gives_its_key(name: str) -> None:
    assert key_name(key_word(name)) == name


def test_a_changed_key_is_shown() -> None:
    keys = [("←→", "d_k ±1"), ("[ ]", "keys"), ("PgUp PgDn", "width"), ("s", "scale"), ("S", "back")]
    instead = {"→": "d", "]": "F2", "PgDn": "x", "s": "n"}
    shown = [press for press, _ in rekeyed(keys, instead)]
    assert shown == ["←d", "[ F2", "PgUp x", "n", "S"]
