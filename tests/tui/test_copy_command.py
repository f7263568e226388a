"""The key that copies the command for what a pane shows."""

from pathlib import Path

import pytest
from attn_tui.tui.app.keys import OUTPUT_KEYS
from attn_tui.tui.panes.catalogue import PANES
from clipboard import copies
from stage import SMALL, Stage, capture_file, play, played, some_heads


async def notice(stage: Stage) -> str:
    """Return the message at the bottom of the screen."""
    await stage.until(lambda: stage.app.notice.display, "a notice")
    await stage.still()
    return stage.words(stage.app.notice)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=str)
@played(settled=True)
async def test_y_copies_the_command_and_shows_it_until_the_next_key(
    stage: Stage, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    copied, before = copies(stage, monkeypatch), stage.lines
    await stage.press("right", "y")
    command = stage.lab.command()
    assert command == "attn-tui report --d-k 65 --n-keys 16 --n-queries 8 --batch 2"
    assert copied == [command]
    assert command in (await notice(stage)).replace(" \\ ", " ")
    await stage.press("left")
    assert not stage.app.notice.display
    assert stage.asked == SMALL
    await stage.settled()
    assert stage.lines == before


@played(settled=True)
async def test_y_copies_each_time(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = copies(stage, monkeypatch)
    await stage.press("y", "S", "y", "y")
    assert len(copied) == 3
    assert copied[0] != copied[1] == copied[2]
    assert "--scale d_k" in await notice(stage)


@played(settled=True)
async def test_without_a_command_nothing_is_copied_and_a_reason_is_shown(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = copies(stage, monkeypatch)
    await stage.press("0", "y")
    assert "d_k" in await notice(stage)
    assert copied == []


def test_a_file_name_with_control_characters_is_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = capture_file(tmp_path, some_heads(), name="\udcff\x1b]52;c;\a.npz")

    async def script(stage: Stage) -> None:
        pane = await stage.head()
        copied = copies(stage, monkeypatch)
        await stage.press("y")
        assert copied == [pane.command()]
        assert r"\xff\x1b]52;c;\x07.npz" in (await notice(stage)).replace(" ", "").replace(r"\\", "\\")

    play(script, given={"path": Path(file.name)})


@played(size=(200, 40))
async def test_the_key_bar_of_every_pane_has_the_keys_to_export_and_copy(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage.engine, "send", stage.engine.asked.append)  # measure nothing
    for pane in PANES:
        stage.app.action_pane(pane)
        await stage.press("escape")  # of a field, into which e and y would be typed
        await stage.still()
        assert all(stage.lines[-1].count(f"{press} {does}") == 1 for press, does in OUTPUT_KEYS)
