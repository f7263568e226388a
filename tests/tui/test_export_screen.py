"""Exporting a pane into a file, and copying the command for what it shows."""

import base64
import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attn_tui.tui import output
from attn_tui.tui.app import TAKE_AWAY
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.picture import picture
from attn_tui.tui.views.export import KINDS, Kind
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.help import help_lines
from attn_tui.tui.widgets.export_screen import ExportScreen
from test_app import SMALL, Stage, capture_file, play, some_heads
from textual import events


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def opened(stage: Stage, *keys: str) -> ExportScreen:
    """Open the form, and press keys in it."""
    await stage.settled()
    await stage.press("e")
    await stage.until(lambda: isinstance(stage.app.screen, ExportScreen), "the form")
    await stage.still()
    screen = stage.app.screen
    assert isinstance(screen, ExportScreen)
    await stage.press(*keys)
    return screen


async def name(stage: Stage, path: str) -> None:
    """Put this path in place of the one that is proposed."""
    await stage.press("end", "ctrl+u")
    stage.app.post_message(events.Paste(path))
    await stage.answered()


def is_over(stage: Stage) -> bool:
    return not isinstance(stage.app.screen, ExportScreen)


async def said(stage: Stage) -> str:
    """What stands at the foot of the screen, as one line."""
    await stage.until(lambda: stage.app.notice.display, "a notice")
    await stage.still()
    return " ".join(" ".join(stage.part(stage.app.notice)).split())


# Writing


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_what_its_pane_gives_under_the_name_proposed(kind: Kind, folder: Path) -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        lab = stage.lab
        expected = picture(stage.app.screen) if kind == "svg" else lab.numbers(kind)
        await opened(stage, *["tab"] * [*KINDS].index(kind), "enter")
        await stage.until(lambda: is_over(stage))
        (file,) = folder.iterdir()
        assert file.name == f"attn-tui-lab-d64{KINDS[kind][1]}"
        assert file.read_text() == expected
        text = await said(stage)
        assert str(file).replace(" ", "") in text.replace(" ", "")
        assert "written" in text
        await stage.press("right")
        assert not stage.app.notice.display
        assert stage.asked.d_k == 65

    play(script)


def test_every_pane_is_exported_under_a_name_of_its_own(folder: Path) -> None:
    async def script(stage: Stage) -> None:
        await stage.head()
        await stage.press("right")
        await stage.press("e", "enter")
        await stage.until(lambda: [*folder.glob("*.svg")])
        stage.app.action_pane("Claims")
        await stage.still()
        await stage.press("e", "enter")
        await stage.until(lambda: len([*folder.glob("*.svg")]) == 2)

    play(script)
    names = {file.name for file in folder.iterdir()}
    assert names == {"attn-tui-minilm-sample-layer0-head1.svg", "attn-tui-claims.svg"}


def test_up_and_down_choose_the_kind_too_and_the_rest_is_the_path(folder: Path) -> None:
    async def script(stage: Stage) -> None:
        screen = await opened(stage, "up")
        assert screen.form.kind == "markdown"
        await stage.press("down", "down", *"q", "backspace", "home", *"x1")
        assert screen.form.path.text == "x1attn-tui-lab-d64.json"
        await stage.press("enter")
        await stage.until(lambda: is_over(stage))

    play(script)
    assert [file.name for file in folder.iterdir()] == ["x1attn-tui-lab-d64.json"]


def test_escape_leaves_without_a_trace(folder: Path) -> None:
    async def script(stage: Stage) -> None:
        await opened(stage, "tab", "x", "escape")
        await stage.until(lambda: is_over(stage))
        assert not stage.app.notice.display
        assert stage.asked == SMALL
        await stage.press("right")
        assert stage.asked.d_k == 65

    play(script)
    assert not [*folder.iterdir()]


def test_a_tilde_is_the_home_directory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = folder / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))

    async def script(stage: Stage) -> None:
        await opened(stage)
        await name(stage, "~/x.json")
        await stage.still()
        assert f"that is {home}" in " ".join(" ".join(stage.lines).split()) or len(str(home)) > 60
        await stage.press("enter")
        await stage.until(lambda: is_over(stage))

    play(script)
    assert '"d_k": 64' in (home / "x.json").read_text()


def test_a_pasted_path_is_its_first_line_without_what_terminals_obey(folder: Path) -> None:
    async def script(stage: Stage) -> None:
        screen = await opened(stage)
        await name(stage, "  a\x1b[31mb\tc.json \nrm -rf x\n")
        assert screen.form.path.text == "a[31mbc.json "
        await name(stage, "\n\n")
        assert screen.form.path.text == ""

    play(script)


# Never over a file, unless one says so


def test_a_file_that_exists_is_replaced_only_after_y(folder: Path) -> None:
    file = folder / "attn-tui-lab-d64.json"
    file.write_text("precious")
    file.chmod(0o640)

    async def script(stage: Stage) -> None:
        screen = await opened(stage, "tab", "enter")
        for key in ("enter", "x", "space", "backspace", "tab", "ctrl+u"):
            await stage.press(key)
            assert "Replace it?" in screen.form.question
            assert file.read_text() == "precious"
        await stage.still()
        assert "y replace it" in "\n".join(stage.lines)
        await stage.press("n")
        assert not screen.form.question
        assert screen.form.path.text == file.name
        await stage.press("enter", "y")
        await stage.until(lambda: is_over(stage))
        assert file.read_text() == stage.lab.numbers("json")
        assert stat.S_IMODE(file.stat().st_mode) == 0o640

    play(script)
    assert [*folder.iterdir()] == [file]


def test_escape_from_the_question_keeps_the_file(folder: Path) -> None:
    file = folder / "attn-tui-lab-d64.svg"
    file.write_text("precious")

    async def script(stage: Stage) -> None:
        await opened(stage, "enter", "escape")
        await stage.until(lambda: is_over(stage))

    play(script)
    assert file.read_text() == "precious"


def test_a_file_that_appears_at_the_last_moment_is_kept(folder: Path) -> None:
    file = folder / "x.json"
    file.write_text("precious")
    with pytest.raises(output.OutputError, match="exists"):
        output.write("other", file, replace=False)
    assert file.read_text() == "precious"
    assert [*folder.iterdir()] == [file]
    output.write("other", file)
    assert file.read_text() == "other"


def test_a_new_file_that_cannot_be_finished_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(output.OutputError):
        output.write("text", folder / "x.json", replace=False)
    assert not [*folder.iterdir()]


def test_the_capture_that_is_open_is_never_written_over(folder: Path) -> None:
    file = capture_file(folder, some_heads())
    before = file.read_bytes()

    async def script(stage: Stage) -> None:
        await stage.head()
        await stage.press("e")
        await stage.still()
        await name(stage, file.name)
        await stage.press("enter")
        screen = stage.app.screen
        assert isinstance(screen, ExportScreen)
        assert "is the capture itself" in screen.form.objection
        await stage.press("y")
        assert screen.form.path.text == f"{file.name}y"

    play(script, capture=Path(file.name))
    assert file.read_bytes() == before


# What cannot be written


def denied(path: Path) -> Path:
    path.mkdir(mode=0o500)
    return path


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "name of a file is needed"),
        ("   ", "name of a file is needed"),
        ("nowhere/x.svg", "there is no such directory"),
        ("file/x.svg", "there is no such directory"),
        ("here", "is a directory"),
        ("here/", "is a directory"),
        ("new/", "is a directory"),
        (".", "is a directory"),
        ("..", "is a directory"),
        ("/", "is a directory"),
        ("~nobody-of-that-name/x.svg", "no home directory"),
        ("x" * 300 + ".svg", "too long"),
        ("pipe", "device or a pipe"),
        ("/dev/full", "device or a pipe"),
        ("link", "there is no such directory"),
    ],
)
def test_a_path_that_cannot_be_written_is_refused_in_a_line_and_stays(path: str, reason: str, folder: Path) -> None:
    (folder / "here").mkdir()
    (folder / "file").touch()
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("nowhere/at/all")
    before = {*folder.iterdir()}

    async def script(stage: Stage) -> None:
        screen = await opened(stage)
        await name(stage, path)
        if path.isspace():  # nobody pastes that
            for character in path:
                stage.app.post_message(events.Key("space", character))
            await stage.answered()
        assert screen.form.path.text == path
        await stage.press("enter")
        await stage.still()
        assert reason in screen.form.objection
        assert screen.form.objection.isprintable()
        assert screen.form.objection in " ".join(" ".join(stage.part(screen.text)).split())
        await stage.press("a")
        assert screen.form.path.text == path + "a"
        assert not screen.form.objection

    play(script)
    assert {*folder.iterdir()} == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_is_not_ours_is_refused(folder: Path) -> None:
    denied(folder / "theirs")

    async def script(stage: Stage) -> None:
        screen = await opened(stage)
        await name(stage, "theirs/x.svg")
        await stage.press("enter")
        assert "is not writable" in screen.form.objection

    play(script)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_when_writing_fails_the_form_says_why_and_the_old_file_stays(
    code: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / "x.json"
    file.write_text("precious")

    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    async def script(stage: Stage) -> None:
        screen = await opened(stage)
        await name(stage, "x.json")
        with monkeypatch.context() as context:
            context.setattr("os.replace", fail)
            await stage.press("enter", "y")
        assert os.strerror(code) in screen.form.objection
        assert screen.form.path.text == "x.json"
        assert [*folder.iterdir()] == [file]
        assert file.read_text() == "precious"
        await stage.press("enter", "y")
        await stage.until(lambda: is_over(stage))

    play(script)
    assert '"d_k": 64' in file.read_text()


def test_a_directory_that_goes_away_meanwhile_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    async def script(stage: Stage) -> None:
        screen = await opened(stage, "enter")
        await stage.still()
        assert screen.form.objection

    play(script)


def test_numbers_that_are_not_asked_for_are_not_written(folder: Path) -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        stage.app.hold = True
        await stage.press("left", "e", "tab", "enter")
        screen = stage.app.screen
        assert isinstance(screen, ExportScreen)
        assert "d_k 63" in screen.form.objection
        assert not [*folder.iterdir()]
        stage.app.let_go()
        await stage.settled()
        await stage.press("enter")
        await stage.until(lambda: is_over(stage))

    play(script)
    assert '"d_k": 63' in (folder / "attn-tui-lab-d63.json").read_text()


# What it looks like


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("size", [(40, 12), (80, 24)], ids=str)
def test_a_long_path_is_on_screen_whole_whatever_the_size(
    size: tuple[int, int], glyphs: Glyphs, folder: Path
) -> None:
    async def script(stage: Stage) -> None:
        await stage.until(lambda: stage.lab.theory is not None)
        await stage.press("e")
        screen = stage.app.screen
        assert isinstance(screen, ExportScreen)
        path = "a-long-name/" * 10 + "x.svg"
        await name(stage, path)
        await stage.press("enter")
        await stage.still()
        shown = stage.part(screen.text)
        assert path in "".join(line.strip() for line in shown)
        assert any("there is no such directory" in line for line in shown)
        assert any("[SVG]" in line for line in shown)
        assert "Enter write" in shown[-2]
        assert all(line.isascii() for line in stage.lines) or not glyphs.ascii

    play(script, size=size, glyphs=glyphs)


# Copying


class Wire:
    """Listens to what the app sends to its terminal."""

    def __init__(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent = ""
        driver = stage.app._driver
        assert driver is not None
        through = driver.write

        def write(data: str) -> None:
            self.sent += data
            through(data)

        monkeypatch.setattr(driver, "write", write)

    @property
    def copied(self) -> list[str]:
        """What it was asked to put into the clipboard."""
        parts = self.sent.split("\x1b]52;c;")[1:]
        return [base64.b64decode(part.partition("\a")[0], validate=True).decode() for part in parts]


def with_wire(script: Callable[[Stage, Wire], Any], **arguments: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:

        async def run(stage: Stage) -> None:
            await script(stage, Wire(stage, patch))

        play(run, **arguments)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
def test_y_sends_the_command_to_the_clipboard_and_shows_it_until_the_next_key(size: tuple[int, int]) -> None:
    async def script(stage: Stage, wire: Wire) -> None:
        await stage.settled()
        before = stage.lines
        await stage.press("right", "y")
        command = stage.lab.command()
        assert command == "attn-tui report --d-k 65 --n-keys 16 --n-queries 8 --batch 2"
        assert wire.copied == [command]
        assert command in (await said(stage)).replace(" \\ ", " ")
        await stage.press("left")
        assert not stage.app.notice.display
        assert stage.asked == SMALL
        await stage.settled()
        assert stage.lines == before

    with_wire(script, size=size)


def test_y_again_copies_again() -> None:
    async def script(stage: Stage, wire: Wire) -> None:
        await stage.settled()
        await stage.press("y", "s", "y", "y")
        assert len(wire.copied) == 3
        assert wire.copied[0] != wire.copied[1] == wire.copied[2]
        assert "--scale d_k" in await said(stage)

    with_wire(script)


def test_where_there_is_no_command_the_clipboard_stays_as_it_is() -> None:
    async def script(stage: Stage, wire: Wire) -> None:
        await stage.settled()
        await stage.press("0", "y")
        assert "is not accepted" in await said(stage)
        assert wire.copied == []

    with_wire(script)


def test_a_name_of_a_file_that_cannot_be_shown_is_copied_in_letters(folder: Path) -> None:
    file = capture_file(folder, some_heads(), name="\udcff\x1b]52;c;\a.npz")

    async def script(stage: Stage, wire: Wire) -> None:
        pane = await stage.head()
        await stage.press("y")
        assert wire.copied == [pane.command()]
        assert "\\xff\\x1b]52;c;\\x07.npz" in (await said(stage)).replace(" ", "").replace("\\\\", "\\")

    with_wire(script, capture=Path(file.name))


# Keys


def test_e_exports_from_a_field_of_numbers_too_unless_a_number_is_being_typed() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        await stage.press("tab", "e")
        assert isinstance(stage.app.screen, ExportScreen)
        await stage.press("escape")
        await stage.until(lambda: is_over(stage))
        stage.panel.cursor = "mean_q"
        await stage.press("1", "e", "1")
        assert is_over(stage)
        assert stage.asked.mean_q == 10

    play(script)


def test_keys_typed_before_the_form_is_there_do_not_reach_the_pane() -> None:
    async def script(stage: Stage) -> None:
        await stage.settled()
        stage.send("e", "x", "q", "right")
        await stage.until(lambda: isinstance(stage.app.screen, ExportScreen))
        await stage.still()
        assert stage.asked == SMALL

    play(script)


def test_every_pane_names_both_keys_in_its_bar() -> None:
    async def script(stage: Stage) -> None:
        for pane in PANES:
            stage.app.action_pane(pane)
            await stage.still()
            assert all(stage.app.keys.keys.count(key) == 1 for key in TAKE_AWAY)
            assert all(word in stage.lines[-1] for word in ("e export", "y copy command"))

    play(script, size=(200, 40))


def test_both_keys_stand_in_the_help() -> None:
    async def script(stage: Stage) -> None:
        bindings = [(b.key, b.description, b.id or "") for b in stage.app.BINDINGS]
        lines = ["".join(text for text, _ in line).split() for line in help_lines(None, (), bindings, 80, UNICODE)]
        assert any(line[:2] == ["e", "export"] for line in lines)
        assert any(line[:2] == ["y", "copy"] for line in lines)

    play(script)
