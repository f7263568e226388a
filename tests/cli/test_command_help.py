"""--help and --version, and what they load."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
from attn_tui.core import VERSION
from attn_tui.core.attention.cost import SHAPE_FIELDS, LayerShape
from attn_tui.core.attention.presets import PRESETS
from attn_tui.core.captures.settings import HEAD_FIELDS
from attn_tui.core.field import Field
from attn_tui.core.models import MODELS
from attn_tui.core.parameters import FIELDS, Parameters
from attn_tui.core.scales import SCALE_RULES
from attn_tui.tui.app.keys import all_commands
from attn_tui.tui.cli import open_app
from attn_tui.tui.cli.commands.catalogue import COMMANDS
from attn_tui.tui.cli.help import TOPICS
from attn_tui.tui.cli.main import main
from attn_tui.tui.settings.declared import SETTINGS
from attn_tui.tui.views.glyphs import UNICODE
from cli_runner import SMALL, Captured, printed, python, request_of
from rich.cells import cell_len


def examples(shown: str) -> list[list[str]]:
    """The words of the examples, without comments and without what the shell does with the output."""
    found = re.findall(r"^  attn-tui\b(.*?)(?:  .*| [|>].*)?$", shown.partition("examples:")[2], re.M)
    return [shlex.split(example) for example in found]


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_fits_80_columns_and_its_examples_are_accepted(
    command: str | None, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")  # with which Python 3.14 colours help anywhere
    words = [] if command is None else [command]
    shown = printed([*words, "--help"], capsys)
    assert "\x1b" not in shown
    assert shown == printed([*words, "-h"], capsys)
    assert [line for line in shown.splitlines() if len(line) > 80] == []
    assert examples(shown)
    for example in examples(shown):
        if example and example[0] in COMMANDS:
            request_of(*example)
        else:
            open_app.parse(example, UNICODE)


@pytest.mark.parametrize("command", ["report", "cost"])
def test_the_examples_in_help_work(command: str, capsys: Captured) -> None:
    for example in examples(printed([command, "--help"], capsys)):
        assert main([*example, "-o", "/dev/null"]) == 0


@pytest.mark.parametrize(
    ("words", "fields", "default"),
    [
        (["help", "parameters"], FIELDS[1:], Parameters().d_k),
        (["report"], FIELDS[1:], Parameters().d_k),
        (["cost"], SHAPE_FIELDS, LayerShape().d_model),
        (["inspect"], HEAD_FIELDS[1:], 1),
    ],
)
def test_help_has_every_parameter_what_it_accepts_and_its_default(
    words: list[str], fields: Sequence[Field], default: int, capsys: Captured
) -> None:
    words = words if words[0] == "help" else [*words, "--help"]
    shown = " ".join(printed(words, capsys).casefold().split())
    for field in fields:
        assert field.option in shown
        assert field.accepted.casefold() in shown or field.name == "scale", field.name
    assert f"{fields[0].accepted}; default {default}." in shown


def test_help_lists_the_models_with_what_they_set_and_the_rules(capsys: Captured) -> None:
    for topic, texts in (
        ("models", {model.name: model.summary for model in MODELS.values()}),
        ("rules", {name: rule.formula for name, rule in SCALE_RULES.items() if name != "custom"}),
    ):
        shown = printed(["help", topic], capsys)
        for name, text in texts.items():
            assert re.search(rf"^  {re.escape(name)} +{re.escape(text)}$", shown, re.M)


def test_help_without_a_topic_is_that_of_the_app_and_fits_two_screens(capsys: Captured) -> None:
    shown = printed(["help"], capsys)
    assert shown == printed(["--help"], capsys)
    assert len(shown.splitlines()) <= 60


def test_help_has_every_key_and_its_name(capsys: Captured) -> None:
    shown = printed(["help", "keys"], capsys)
    for command in all_commands():
        assert command.name in shown


def test_every_topic_and_command_is_explained_in_80_columns(capsys: Captured) -> None:
    for topic in TOPICS:
        lines = printed(["help", topic], capsys).splitlines()
        assert len(lines) > 5
        assert [line for line in lines if len(line) > 80] == []
    check = printed(["help", "check"], capsys)
    assert check == printed(["check", "--help"], capsys)
    assert "1 with findings" in " ".join(check.split())


def test_help_of_cost_lists_the_presets(capsys: Captured) -> None:
    shown = printed(["cost", "--help"], capsys)
    for preset in PRESETS.values():
        assert re.search(rf"^  {re.escape(preset.name)} +{re.escape(preset.title)}$", shown, re.M)


def test_help_lists_the_settings_and_their_file(capsys: Captured, own_config: Path) -> None:
    shown = printed(["help", "settings"], capsys)
    assert str(own_config / "attn-tui" / "config.toml") in shown
    for setting in SETTINGS:
        assert setting.variable in shown
    assert "ATTN_TUI" not in printed(["report", "--help"], capsys)


@pytest.mark.parametrize("columns", ["9999", "99999999999", "0", "-1", "abc"])
def test_columns_of_any_value_give_lines_that_can_be_read(
    columns: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:  # pytest -v writes lines as long as COLUMNS says
        patch.setenv("COLUMNS", columns)
        commands = ["report", "--help"], ["cost", "--help"], ["cost"], ["softmax"]
        lines = "".join(printed(words, capsys) for words in commands).splitlines()
    assert max(map(cell_len, lines)) <= 100


@pytest.mark.usefixtures("short_rule_grids")
def test_columns_beyond_every_screen_take_no_memory(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("COLUMNS", "99999999999")
        text = printed(["rules", *SMALL], capsys)
    assert "1/√d_k" in text


def test_columns_of_the_settings_do_not_run_together(capsys: Captured) -> None:
    shown = printed(["help", "settings"], capsys)
    for setting in SETTINGS:
        assert re.search(rf"^  {setting.name}  +{setting.variable}(  +\S|$)", shown, re.M), setting.name


def test_the_help_of_a_sweep_points_to_the_parameters_it_shares(capsys: Captured) -> None:
    shown = printed(["sweep", "--help"], capsys)
    assert "attn-tui help parameters" in shown
    assert len(shown.splitlines()) <= 100
    others = [field.option for field in FIELDS if field.name not in ("d_k", "n_keys")]
    assert not [option for option in others if re.search(rf"^  {option} ", shown, re.M)]
    assert request_of("sweep", "--d-k", "4", "--correlation", "0.5").question.parameters.correlation == 0.5


def test_version(capsys: Captured) -> None:
    assert printed(["--version"], capsys) == printed(["-V"], capsys) == f"attn-tui {VERSION}\n"


@pytest.mark.parametrize(
    ("words", "needed"),
    [("--version", ""), ("--help", ""), ("report --help", ""), ("report --d-k 0", ""), ("cost", "rich")],
)
def test_what_needs_no_measurement_loads_few_libraries(words: str, needed: str) -> None:
    done = python(
        "import sys; from attn_tui.tui.cli.main import main; main(sys.argv[1:]);"
        "print(*({'textual', 'numpy', 'rich', 'scipy', 'ml_dtypes'} & {*sys.modules}), file=sys.stderr)",
        *words.split(),
    )
    assert done.stderr.splitlines()[-1] == needed
