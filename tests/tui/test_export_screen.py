"""The export form: its fields, keys, clicks, and the files that it writes."""

import errno
import os
import stat
from html import escape
from pathlib import Path

import pytest
from attn_tui.tui.app.export_screen import ExportScreen
from attn_tui.tui.panes.capture.requests import OpenCapture
from attn_tui.tui.panes.heads.pane import HeadsPane
from attn_tui.tui.panes.softmax.pane import SoftmaxPane
from attn_tui.tui.panes.sweep.pane import SweepPane
from attn_tui.tui.panes.train.pane import TrainPane
from attn_tui.tui.terminal.picture import picture
from attn_tui.tui.views.export import KINDS, Kind
from attn_tui.tui.views.fields.entry import Draft
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from stage import SMALL, Stage, capture_file, play, played, some_heads
from textual import events


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def opened(stage: Stage, *keys: str) -> ExportScreen:
    """Open the form, and press keys in it."""
    if stage.app.active == "Lab":
        await stage.settled()
    await stage.press("e")
    screen = stage.screen(ExportScreen)
    await stage.press(*keys)
    return screen


async def name(stage: Stage, path: str) -> None:
    """Replace the path."""
    await stage.press("end", "ctrl+u")
    stage.app.post_message(events.Paste(path))
    await stage.answered()


async def closed(stage: Stage) -> None:
    await stage.until(lambda: not isinstance(stage.app.screen, ExportScreen), "closing the form")


# Writing


@pytest.mark.parametrize("kind", KINDS)
@played()
async def test_each_kind_of_file_has_the_contents_of_the_pane_and_the_default_name(
    stage: Stage, kind: Kind, folder: Path
) -> None:
    await stage.settled()
    expected = picture(stage.app.screen) if kind == "svg" else (await stage.known(stage.lab)).numbers(kind)
    await opened(stage, *["tab"] * [*KINDS].index(kind), "enter")
    await closed(stage)
    (file,) = folder.iterdir()
    assert file.name == f"attn-tui-lab-d64{KINDS[kind][1]}"
    assert file.read_text() == expected
    await stage.until(lambda: stage.app.notice.display, "the notice")
    await stage.still()
    assert str(file) in stage.words(stage.app.notice).replace(" ", "")
    await stage.press("right")
    assert not stage.app.notice.display
    assert stage.asked.d_k == 65


@played()
async def test_a_curve_is_written_as_a_figure_with_its_command(stage: Stage, folder: Path) -> None:
    sweep = await stage.opened(SweepPane)
    await stage.known(sweep)
    await opened(stage, "enter")
    await closed(stage)
    (file,) = folder.iterdir()
    assert f">{escape(sweep.command())}<" in file.read_text()
    assert "<polyline" in file.read_text()


@played()
async def test_every_pane_has_a_different_default_name(stage: Stage, folder: Path) -> None:
    await stage.head()
    await stage.press("right")
    await opened(stage, "enter")
    await closed(stage)
    await stage.opened(HeadsPane)
    await opened(stage, "enter")
    await closed(stage)
    names = {file.name for file in folder.iterdir()}
    assert names == {"attn-tui-minilm-sample-layer0-head1.svg", "attn-tui-heads-d512-h8.svg"}


@played()
async def test_up_and_down_choose_the_kind_and_other_keys_edit_the_path(stage: Stage, folder: Path) -> None:
    screen = await opened(stage, "up")
    assert screen.form.kind == "markdown"
    await stage.press("down", "down", *"q", "backspace", "home", *"x1")
    assert screen.form.path.text == "x1attn-tui-lab-d64.json"
    await stage.press("enter")
    await closed(stage)
    assert [file.name for file in folder.iterdir()] == ["x1attn-tui-lab-d64.json"]
    screen = await opened(stage, "ctrl+u", *"x.svg")
    assert screen.form.path == Draft.of("x.svg"), "an ending is not there twice"
    await stage.press("home", *"a.json")
    assert screen.form.path.text == "a.jsonx.svg"


@played()
async def test_escape_closes_the_form_and_writes_nothing(stage: Stage, folder: Path) -> None:
    await opened(stage, "tab", "x", "escape")
    await closed(stage)
    assert not stage.app.notice.display
    assert stage.asked == SMALL
    await stage.press("right")
    assert stage.asked.d_k == 65
    assert not [*folder.iterdir()]


@played()
async def test_a_tilde_is_the_home_directory_and_only_the_first_line_is_pasted(
    stage: Stage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = await opened(stage)
    await name(stage, "  a\x1b[31mb\tc.json \nrm -rf x\n")
    assert screen.form.path.text == "a[31mbc.json "
    await name(stage, "\n\n")
    assert screen.form.path.text == ""
    home = folder / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    screen = await opened(stage)
    await name(stage, "~/x.json")
    await stage.still()
    assert str(home / "x.json") in stage.words(screen.text).replace(" ", "")
    await stage.press("enter")
    await closed(stage)
    assert '"d_k": 64' in (home / "x.json").read_text()


@played()
async def test_only_numbers_of_the_current_parameters_are_written(stage: Stage, folder: Path) -> None:
    await stage.settled()
    stage.engine.hold = True
    await stage.press("left", "e", "tab", "enter")
    screen = stage.screen(ExportScreen)
    assert "d_k 63" in screen.form.objection
    assert not [*folder.iterdir()]
    stage.engine.let_go()
    await stage.settled()
    await stage.press("enter")
    await closed(stage)
    assert '"d_k": 63' in (folder / "attn-tui-lab-d63.json").read_text()


# Files that exist


@played()
async def test_an_existing_file_is_replaced_only_after_y(stage: Stage, folder: Path) -> None:
    file = folder / "attn-tui-lab-d64.json"
    file.write_text("precious")
    file.chmod(0o640)
    screen = await opened(stage, "tab", "enter")
    for key in ("enter", "x", "space", "backspace", "tab", "ctrl+u"):
        await stage.press(key)
        assert screen.form.question
        assert file.read_text() == "precious"
    await stage.still()
    assert screen.form.question in stage.words(screen.text)
    await stage.press("n")
    assert not screen.form.question
    assert screen.form.path.text == file.name
    await stage.press("enter", "escape")
    await closed(stage)
    assert file.read_text() == "precious"
    await opened(stage, "tab", "enter", "y")
    await closed(stage)
    assert file.read_text() == stage.lab.numbers("json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [*folder.iterdir()] == [file]


def test_the_open_capture_is_never_overwritten(folder: Path) -> None:
    file = capture_file(folder, some_heads())
    before = file.read_bytes()

    async def script(stage: Stage) -> None:
        await stage.head()
        screen = await opened(stage)
        await name(stage, file.name)
        await stage.press("enter")
        assert "the capture being read" in screen.form.objection
        await stage.press("y")
        assert screen.form.path.text == f"{file.name}y"

    play(script, given={"file": OpenCapture(Path(file.name))})
    assert file.read_bytes() == before


# Files that cannot be written


REFUSED = {
    "enter a file name": ["", "   "],
    "no such directory": ["nowhere/x.svg", "file/x.svg", "link"],
    "is a directory": ["here", "here/", "new/", ".", "..", "/"],
    "no such home directory": ["~nobody-of-that-name/x.svg"],
    os.strerror(errno.ENAMETOOLONG): ["x" * 300 + ".svg"],
    "not a regular file": ["pipe", "/dev/full"],
}


@played()
async def test_a_path_that_cannot_be_written_stays_in_the_form_with_the_reason(stage: Stage, folder: Path) -> None:
    (folder / "here").mkdir()
    (folder / "file").touch()
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("nowhere/at/all")
    before = {*folder.iterdir()}
    screen = await opened(stage)
    for reason, path in ((reason, path) for reason, paths in REFUSED.items() for path in paths):
        await name(stage, path)
        if path.isspace():  # a paste of spaces is dropped
            await stage.press(*path)
        assert screen.form.path.text == path
        await stage.press("enter")
        assert reason in screen.form.objection
        assert screen.form.objection.isprintable()
        assert screen.form.objection in stage.words(screen.text)
        await stage.press("a")
        assert screen.form.path.text == path + "a"
        assert not screen.form.objection
        assert {*folder.iterdir()} == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
@played()
async def test_a_directory_without_write_permission_is_refused(stage: Stage, folder: Path) -> None:
    (folder / "theirs").mkdir(mode=0o500)
    screen = await opened(stage)
    await name(stage, "theirs/x.svg")
    await stage.press("enter")
    assert "not writable" in screen.form.objection


@played()
async def test_if_writing_fails_the_reason_is_shown_and_the_old_file_stays(
    stage: Stage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / "x.json"
    file.write_text("precious")

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    screen = await opened(stage)
    await name(stage, "x.json")
    with monkeypatch.context() as context:
        context.setattr("os.replace", fail)
        await stage.press("enter", "y")
    assert os.strerror(errno.ENOSPC) in screen.form.objection
    assert screen.form.path.text == "x.json"
    assert [*folder.iterdir()] == [file]
    assert file.read_text() == "precious"
    await stage.press("enter", "y")
    await closed(stage)
    assert '"d_k": 64' in file.read_text()


@played()
async def test_a_removed_current_directory_is_reported(
    stage: Stage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    screen = await opened(stage, "enter")
    assert screen.form.objection


# Keys and layout


@played(idle=True)
async def test_e_opens_the_form_unless_it_continues_a_number(stage: Stage) -> None:
    softmax, train = await stage.opened(SoftmaxPane), await stage.opened(TrainPane)
    for pane, keys, is_open in (
        ("Lab", ("1", "e", "1"), False), ("Softmax", ("2", "e", "1", "enter"), False), ("Softmax", ("e",), True),
        ("Train", ("3", "e"), True),  # d_k is a whole number
    ):  # fmt: skip
        await stage.show(pane)
        if pane == "Lab":
            stage.lab.go_to_field("mean_q")
        await stage.press(*keys)
        assert isinstance(stage.app.screen, ExportScreen) == is_open, (pane, keys)
        if is_open:
            await stage.press("escape")
    assert (stage.asked.mean_q, softmax.example.scores[softmax.editing.at], train.race.d_k) == (10, 20, 3)


@played()
async def test_keys_pressed_while_the_form_opens_do_not_reach_the_pane(stage: Stage) -> None:
    await stage.settled()
    stage.send("e", "x", "q", "right")
    await stage.until(lambda: isinstance(stage.app.screen, ExportScreen))
    await stage.still()
    assert stage.asked == SMALL


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("size", [(40, 12), (80, 24)], ids=str)
@played()
async def test_the_form_shows_a_long_path_the_error_and_the_keys(
    stage: Stage, size: tuple[int, int], glyphs: Glyphs
) -> None:
    screen = await opened(stage)
    path = "a-long-name/" * 10 + "x.svg"
    await name(stage, path)
    await stage.press("enter")
    shown = stage.part(screen.text)
    assert path in "".join(line.strip() for line in shown)
    assert any(screen.form.objection in line for line in shown)
    assert any("[SVG]" in line for line in shown)
    assert "Enter" in shown[-1]
    assert all(line.isascii() for line in stage.lines) or not glyphs.ascii


@pytest.mark.slow
@pytest.mark.parametrize("size", [(40, 12), (80, 24), (120, 40)], ids=str)
@played()
async def test_fields_and_keys_of_the_form_can_be_clicked(stage: Stage, folder: Path, size: tuple[int, int]) -> None:
    await stage.settled()
    screen = await opened(stage)
    await stage.click(" CSV ")
    assert screen.form.kind == "csv"
    await stage.click("lab-d64.csv")
    await stage.press("x")
    assert screen.form.path.text == "attn-tui-xlab-d64.csv"
    await stage.click("Enter write")
    await closed(stage)
    assert [path.name for path in folder.iterdir()] == ["attn-tui-xlab-d64.csv"]
    screen = await opened(stage, "tab", "tab", "end", "ctrl+u", *"attn-tui-xlab-d64.csv", "enter")
    await stage.until(lambda: screen.form.question != "", "the question")
    await stage.click("n keep")
    assert not screen.form.question
    assert isinstance(stage.app.screen, ExportScreen)
