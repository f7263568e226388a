"""Commands in Chinese: help, tables and messages are; every other format is English, byte for byte."""

import re
from pathlib import Path

import pytest
from attn_tui.tui.cli.commands.catalogue import COMMANDS
from attn_tui.tui.cli.main import main
from cases import for_each
from cli_runner import SAMPLE, SMALL, WRONG, Captured, attn, out_of, printed
from rich.cells import cell_len

pytestmark = pytest.mark.usefixtures("short_rule_grids")

CHINESE = re.compile("[\u4e00-\u9fff]")
RUN = str(Path(__file__).parents[1] / "data" / "run.jsonl")
TRAIN = ("train", "--d-k", "8", "--steps", "4", "--seeds", "2")
TABLES: list[tuple[str, ...]] = [
    ("report", *SMALL),
    ("sweep", *SMALL, "--d-k", "8,16"),
    ("softmax",),
    ("rules", *SMALL),
    ("rules", "--mechanisms", *SMALL),
    ("inspect", SAMPLE, "--layer", "0"),
    ("inspect", SAMPLE, "--layer", "0", "--head", "2"),
    ("inspect", SAMPLE, "--layer", "0", "--worst", "3"),
    ("inspect", SAMPLE, "--layer", "0", "--head", "1", "--rules", "all"),
    ("diagnose", WRONG, "--layer", "2"),
    ("compare", SAMPLE, WRONG, "--layer", "2"),
    ("check", WRONG),
    ("watch", RUN, "--once"),
    TRAIN,
    ("learn",),
    ("learn", "1", "--guess", "64"),
    ("cost", "--model", "gpt2"),
]


@pytest.mark.parametrize("words", TABLES, ids=" ".join)
def test_a_table_is_chinese_and_no_wider_than_the_english_one_may_be(
    words: tuple[str, ...], capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    english, chinese = out_of(words, __name__, capsys), out_of((*words, "--lang", "zh"), __name__, capsys)
    assert CHINESE.search(chinese)
    assert not CHINESE.search(english)
    widest = max(80, *map(cell_len, english.splitlines()))
    assert [line for line in chinese.splitlines() if cell_len(line) > widest] == []
    if words == TABLES[0]:
        monkeypatch.setenv("ATTN_TUI_LANG", "zh")
        assert out_of(words, __name__, capsys) == chinese


@pytest.mark.parametrize("words", TABLES[::3], ids=" ".join)
def test_a_table_in_ascii_is_english(words: tuple[str, ...], capsys: Captured) -> None:
    found = out_of((*words, "--ascii", "--lang", "zh"), __name__, capsys)
    assert found == out_of((*words, "--ascii"), __name__, capsys)
    assert found.isascii()


# Without the list of the tour, whose other formats are all its cards; a step is one of them.
@pytest.mark.slow
@pytest.mark.parametrize("words", [words for words in TABLES if words != ("learn",)], ids=" ".join)
def test_other_formats_are_english_byte_for_byte(words: tuple[str, ...], capsys: Captured) -> None:
    cards = ("markdown",) if words[0] == "learn" else ()  # for people, in their language
    for format in {"json", "csv", "markdown", "python"} - {*cards}:
        english = out_of((*words, "--format", format), __name__, capsys)
        assert out_of((*words, "--format", format, "--lang", "zh"), __name__, capsys) == english
        assert english or format in ("csv", "python", "markdown")


@pytest.mark.parametrize(
    ("words", "to_left"),
    [(TRAIN, (1,)), (("inspect", SAMPLE, "--layer", "0", "--head", "1", "--rules", "all"), (0,))],
    ids=["train", "replay"],
)
def test_columns_of_figures_end_in_the_same_cell(
    words: tuple[str, ...], to_left: tuple[int, ...], capsys: Captured
) -> None:
    blocks = out_of((*words, "--lang", "zh"), __name__, capsys).split("\n\n")
    tables = [block.splitlines() for block in blocks if len(block.splitlines()) > 3]
    assert tables
    for table in tables:
        lines = [line for line in table if len(re.split(" {2,}", line.strip())) > 2]
        ends = [[cell_len(line[: found.end()]) for found in re.finditer(r"\S+(?: \S+)*", line)] for line in lines]
        assert len(ends) > 3
        for column in range(len(ends[0])):
            if column not in to_left:
                assert len({line[column] for line in ends}) == 1, (column, table)


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_is_chinese_in_80_cells_with_the_options_and_examples_of_the_english_one(
    command: str | None, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = [] if command is None else [command]
    english = printed([*words, "--help"], capsys)
    chinese = printed([*words, "--help", "--lang", "zh"], capsys)
    assert CHINESE.search(chinese)
    assert [line for line in chinese.splitlines() if cell_len(line) > 80] == []
    for pattern in (r"^  -{1,2}[a-z].*?(?=  |\n)", r"^  attn-tui [a-z].*?(?=  | \||\n)"):
        assert re.findall(pattern, chinese, re.M) == re.findall(pattern, english, re.M)
    assert "--lang NAME" in chinese


@for_each(
    "words",
    [
        ("report", "--nonsense"),
        ("report", "--d-k", "0"),
        ("report", "--scale", "sqrt_dk"),
        ("report", "--format", "yaml"),
        ("report", "extra"),
        ("sweep", "--d-k", "x"),
        ("sweep", "--vary", "nonsense=1"),
        ("softmax", "--scores", "1"),
        ("inspect",),
        ("inspect", "no-such-file.npz"),
        ("inspect", SAMPLE, "--layer", "99"),
        ("check", SAMPLE, "--max-logit", "-1"),
        ("learn", "99"),
        ("record", "-o", "x.safetensors"),
        ("cost", "--heads", "0"),
        ("train", "--rules", "nonsense"),
        ("watch", RUN, "--step", "x"),
        ("cost", "-o", "/no-such-folder/x.json"),
        ("nonsense",),
    ],
)
def test_an_error_is_one_chinese_line(words: tuple[str, ...], capsys: Captured) -> None:
    assert main([*words, "--lang", "zh"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    line, *pointer = err.splitlines()
    assert line.startswith("attn-tui: ")
    assert CHINESE.search(line)
    assert not re.search(" [（，。；：？！）]", line)
    assert [each for each in pointer if not each.startswith("  ")] == []


def test_a_note_and_a_dry_run_are_chinese(capsys: Captured) -> None:
    assert main(["report", *SMALL, "--multiplier", "2", "--scale", "d_k", "--format", "json", "--lang", "zh"]) == 0
    assert CHINESE.search(capsys.readouterr().err)
    assert main(["sweep", "--dry-run", "--lang", "zh"]) == 0
    assert CHINESE.search(capsys.readouterr().out)


def test_names_that_are_words_too_stay_as_they_are_typed(capsys: Captured) -> None:
    assert re.search(r"^ +8  none +\d", out_of((*TRAIN, "--lang", "zh"), __name__, capsys), re.M)
    shown = " ".join(printed(["report", "--help", "--lang", "zh"], capsys).split())
    assert re.search("默认 ?none。", shown)
    assert re.search("默认 ?fused。", shown)


@pytest.mark.slow
def test_the_locale_decides_unless_an_option_does() -> None:
    chinese = attn("cost", env={"LANG": "zh_CN.UTF-8", "PYTHONUTF8": "1"})
    assert CHINESE.search(chinese.stdout.decode())
    assert not CHINESE.search(attn("cost", "--lang", "en", env={"LANG": "zh_CN.UTF-8"}).stdout.decode())
    assert not CHINESE.search(attn("cost", env={"LC_ALL": "C"}).stdout.decode())


@pytest.mark.slow
def test_a_completion_script_is_english_in_every_language(capsys: Captured) -> None:
    english = printed(["completion", "bash"], capsys)
    assert printed(["completion", "bash", "--lang", "zh"], capsys) == english
    assert not CHINESE.search(english)


@for_each("before", [("--lang", "zh"), ("--lang=zh", "--ascii"), ("--ascii",)])
def test_options_of_the_screen_may_stand_before_a_command(before: tuple[str, ...], capsys: Captured) -> None:
    assert main(["rules", *before]) == main([*before, "rules"]) == 0
    text = capsys.readouterr().out
    assert text[: len(text) // 2] == text[len(text) // 2 :]


def test_a_command_that_is_advised_is_what_to_type(capsys: Captured) -> None:
    assert main(["--d-k", "4", "--lang", "zh", "learn"]) == 2
    assert "attn-tui learn" in capsys.readouterr().err
