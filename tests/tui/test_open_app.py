"""attn-tui on a terminal without a command: the app opens, or prints why not on one line."""

import gc
import os
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.tui.app.app import AttnApp
from attn_tui.tui.cli import output
from attn_tui.tui.cli.main import main
from attn_tui.tui.terminal import signals
from cases import for_each
from terminal_session import SMALL, printing, running


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "columns"),
    [([], "99999999"), (["--ascii", "--d-k", "8"], "0"), ([str(sample_path()), "--theme", "attn-light"], "abc")],
)
def test_the_app_opens_as_wide_as_its_terminal_whatever_columns_says(words: list[str], columns: str) -> None:
    with running(*words, COLUMNS=columns, LINES=columns) as session:
        session.sees("quit")
        session.quiet()
        session.quit()
        assert b"\x1b[?1049h" in session.written
        lines = re.findall(rb"\x1b\[([0-9]+);[0-9]+H", session.written)
        across = re.findall(rb"\x1b\[(?:[0-9]+;)?([0-9]+)[HG]", session.written)  # G moves within a line
    assert max(map(int, lines)) <= 40
    assert 80 < max(map(int, across)) <= 120


@pytest.mark.slow
def test_a_mistake_is_reported_before_the_app_opens() -> None:
    code, seen = printing("missing.npz")
    assert code == 2
    assert re.fullmatch(r"attn-tui: [^\n\x1b]+\r\n", seen)


def test_a_dumb_terminal_gets_the_report() -> None:
    code, seen = printing(*SMALL, TERM="dumb")
    assert code == 0
    assert "unscaled × 1" in seen


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Make the program take stdout for a terminal; the app must not open, as there is none."""
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    return monkeypatch


def refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line with which these words are refused."""
    assert main(words) == 2
    assert gc.isenabled()
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"attn-tui: [^\n\x1b]+\n", err)
    return err


@pytest.mark.parametrize(
    ("words", "variable"),
    [
        ([__file__], ""),
        (["--theme", "mauve"], ""),
        (["--d-k", "mauve"], ""),
        ([], "ATTN_TUI_THEME"),
        ([], "ATTN_TUI_D_K"),
        ([], "ATTN_TUI_ASCII"),
    ],
)
def test_what_the_app_does_not_accept_is_refused_in_one_line(
    words: list[str], variable: str, terminal: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal.setattr("sys.stdin.isatty", lambda: True, raising=False)
    if variable:
        terminal.setenv(variable, "mauve")
    line = refused(words, capsys)
    assert (variable or words[0]) in line
    assert ("'mauve'" in line) == (words != [__file__])


@pytest.mark.usefixtures("terminal")
def test_the_app_needs_a_terminal_on_stdin(capsys: pytest.CaptureFixture[str]) -> None:
    assert "stdin is not a terminal" in refused([], capsys)


class Started(NamedTuple):
    """What the app starts with."""

    d_k: int = 64
    pane: str = "Lab"
    theme: str = "attn-dark"
    ascii: bool = False
    language: str = "en"
    mouse: bool = True
    executor: str = "threads"
    columns: str = ""  # of the environment


@pytest.fixture
def starts(terminal: pytest.MonkeyPatch) -> list[Started]:
    """The starts of the app, which does not run."""
    found: list[Started] = []

    def run(app: AttnApp, mouse: bool) -> int:
        columns = os.environ.get("COLUMNS", "")
        start = Started(app.parameters.d_k, app.active, app.theme, app.ascii_only, app.glyphs.language, mouse)
        found.append(start._replace(executor=app.executor, columns=columns))
        return 0

    terminal.setattr(signals, "run", run)
    terminal.setattr("sys.stdin.isatty", lambda: True, raising=False)
    terminal.setattr(os, "get_terminal_size", lambda descriptor=1: os.terminal_size((120, 40)))
    terminal.setenv("LANG", "C.UTF-8")
    return found


CHANGED = 'theme = "attn-light"\nlang = "zh"\nmouse = false\nexecutor = "serial"\n[parameters]\nd_k = 9\n'
SERVED = {"TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver"}
IN_FILE = Started(9, "Lab", "attn-light", False, "zh", False, "serial")


@for_each(
    ("words", "file", "environment", "start"),
    [
        ("", None, {}, Started(4)), ("--d-k 5", None, {}, Started(5)), ("--n-keys 5", None, {}, Started()),
        ("--no-config", None, {}, Started()), ("", "", {}, Started()), ("", CHANGED, {}, IN_FILE),
        ("--no-config", CHANGED, {}, Started()), ("", CHANGED, SERVED, Started(columns="7")),
        ("--theme attn-dark --lang en --executor processes --d-k 8", CHANGED, {},
         Started(8, "Lab", "attn-dark", False, "en", False, "processes")),
        ("--theme attn-light --lang zh --executor serial --d-k 9 --no-mouse", "", {}, IN_FILE),
        ("", CHANGED, {"ATTN_TUI_D_K": "20", "ATTN_TUI_ASCII": "1"},
         IN_FILE._replace(d_k=20, ascii=True, language="en")),
        ("--d-k 30", CHANGED, {"ATTN_TUI_D_K": "20", "ATTN_TUI_LANG": "en"}, IN_FILE._replace(d_k=30, language="en")),
        ("--no-mouse", "", {}, Started(mouse=False)), ("--ascii", "", {}, Started(ascii=True)),
        ("", "ascii = true", {}, Started(ascii=True)),
        ("", "", {"LANG": "C"}, Started(ascii=True)), ("", "", {"LANG": "zh_CN.UTF-8"}, Started(language="zh")),
        ("--theme auto", "", {}, Started()), ("learn", "", {}, Started(pane="Learn")),
        ("watch run.jsonl", "", {}, Started(pane="Watch")), ("SAMPLE", "", {}, Started(pane="Capture")),
        ("SAMPLE --d-k 8", "", {}, Started(8, "Capture")),
    ],
)  # fmt: skip
def test_options_settings_and_the_environment_decide_what_the_app_starts_with(
    words: str, file: str | None, environment: dict[str, str], start: Started, starts: list[Started],
    own_config: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    settings = own_config / "attn-tui" / "config.toml"
    settings.unlink(missing_ok=True)
    if file is not None:
        settings.parent.mkdir(exist_ok=True)
        settings.write_text(file)
    starts.clear()
    with monkeypatch.context() as patch:
        for name, value in {"COLUMNS": "7", **environment}.items():
            patch.setenv(name, value)
        assert main(words.replace("SAMPLE", str(sample_path())).split()) == 0
    assert starts == [start]
    assert settings.exists() == (file is not None or "--no-config" not in words)


def test_a_file_with_the_name_of_a_command_is_opened_after_options(
    starts: list[Started], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("check").write_bytes(sample_path().read_bytes())
    assert main(["--d-k", "8", "check"]) == 0
    assert [(start.d_k, start.pane) for start in starts] == [(8, "Capture")]


@for_each(
    ("words", "opens"),
    [
        ("learn", True), ("learn 3", True), ("learn b2 --answer", False), ("learn 1 --guess 8", False),
        ("learn 1 --questions", False), ("learn 1 --format json", False), ("learn 1 -o FILE", False),
        ("watch RUN", True), ("watch RUN --once", False), ("watch RUN --step 9", False),
        ("watch RUN --baseline 0", False), ("watch RUN --format json", False), ("watch RUN -o FILE", False),
    ],
)  # fmt: skip
def test_learn_and_watch_open_the_app_unless_something_is_to_be_printed(
    words: str, opens: bool, starts: list[Started], tmp_path: Path
) -> None:
    starts.clear()
    run = Path(__file__).parents[1] / "data" / "run.jsonl"
    for name, path in (("RUN", run), ("FILE", tmp_path / "file")):
        words = words.replace(name, str(path))
    main(words.split())
    assert bool(starts) == opens


@pytest.mark.parametrize(
    ("file", "words", "said"),
    [("[parameters]\nd_k = 9\n", [], True), ("", [], False), ("[parameters]\nd_k = 9\n", ["--no-config"], False)],
)
def test_a_crash_from_saved_parameters_says_how_to_start_without(
    file: str, words: list[str], said: bool, capfd: pytest.CaptureFixture[str], starts: list[Started],
    own_config: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    def crash(*_: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(signals, "run", crash)
    if "--no-config" in words:
        monkeypatch.setenv("ATTN_TUI_D_K", "9")
    (own_config / "attn-tui").mkdir()
    (own_config / "attn-tui" / "config.toml").write_text(file)
    assert main(words) == 1
    assert ("--no-config" in capfd.readouterr().err) == said
    assert not starts
