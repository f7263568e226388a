"""The keys that copy the command and the code of what a pane shows; what is copied has no control characters."""

import ast
import json
from pathlib import Path

import pytest
from attn_tui.core.learning.claims import catalogue
from attn_tui.core.learning.claims.catalogue import CLAIMS
from attn_tui.core.learning.items import AT
from attn_tui.core.program.lab import report_code
from attn_tui.tui.app.keys import OUTPUT_KEYS
from attn_tui.tui.panes.capture.requests import OpenCapture
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.panes.learn.pane import LearnPane
from attn_tui.tui.panes.watch.pane import WatchPane
from attn_tui.tui.widgets.modal import CodeScreen
from cases import present
from stage import SMALL, Stage, capture_file, copies, driver_of, play, played, some_heads


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

    play(script, given={"file": OpenCapture(Path(file.name))})


@played(size=(200, 40), idle=True)
async def test_the_key_bar_of_every_pane_has_the_keys_to_export_and_copy(stage: Stage) -> None:
    for pane in PANES:
        stage.app.action_pane(pane)
        await stage.press("escape")  # of a field, into which e and y would be typed
        assert all(stage.lines[-1].count(f"{press} {does}") == 1 for press, does in OUTPUT_KEYS)


@played(settled=True)
async def test_capital_y_copies_the_code_of_the_lab_and_tab_turns_to_pytorch(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = copies(stage, monkeypatch)
    await stage.press("Y")
    assert isinstance(stage.app.screen, CodeScreen)
    answer = present(stage.lab.answer)
    assert copied == [report_code(answer.measurement, "python", stage.lab.command())]
    assert "import numpy as np" in stage.text
    await stage.press("end")
    assert "# entropy" in stage.text
    await stage.press("escape")
    assert not isinstance(stage.app.screen, CodeScreen)
    copied.clear()
    await stage.press("Y", "tab")
    assert "code: PyTorch" in stage.text
    await stage.press("tab")
    assert "code: NumPy" in stage.text
    assert "import torch" in copied[1]
    assert copied[0] == copied[2]


@pytest.mark.slow
@pytest.mark.usefixtures("short_rule_grids")
@pytest.mark.parametrize("pane", ["Sweep", "Softmax", "Rules", "Heads", "Capture", "Train", "Watch"])
@played(settled=True)
async def test_capital_y_copies_a_program_in_each_of_these_panes(
    stage: Stage, pane: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = copies(stage, monkeypatch)
    stage.app.action_pane(pane)
    await stage.at_rest()
    await stage.press("Y")
    await stage.until(lambda: bool(copied), "a program")
    assert copied[0].startswith(f"# {stage.app.pane.command().partition(' --')[0]}")
    assert "# expected" in copied[0]


@pytest.mark.slow
@played(settled=True, claims=True)
async def test_a_claim_that_is_tested_has_code_and_another_says_why_not(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = copies(stage, monkeypatch)
    wanted = ("softmax-of-20", "bleu-table", "train-equals-inference")
    monkeypatch.setattr(catalogue, "CLAIMS", [claim for claim in CLAIMS if claim.id in wanted])
    pane = await stage.opened(LearnPane)
    pane.show_item(wanted[0])
    await stage.until(lambda: len(pane.outcomes) == len(wanted), "the claims")
    pane.show_item("softmax-of-20")
    await stage.press("Y")
    await stage.until(lambda: bool(copied), "a program")
    assert "softmax-of-20" in copied[0]
    await stage.press("escape")
    pane.show_item("bleu-table")
    await stage.press("Y")
    await stage.until(lambda: "trained translation models" in stage.words(stage.app.notice), "a notice")
    assert len(copied) == 1
    pane.show_item("train-equals-inference")
    await stage.press("Y")
    await stage.until(lambda: len(copied) > 1, "a program")
    assert "train-equals-inference" in copied[1]


@pytest.mark.slow
@played(settled=True)
async def test_a_step_of_the_tour_shows_its_code_after_the_answer(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = copies(stage, monkeypatch)
    pane = await stage.opened(LearnPane)
    await stage.until(lambda: pane.is_current, "the figures")
    await stage.press("escape", "Y")
    await stage.until(lambda: stage.app.notice.display, "a notice")
    assert not copied
    await stage.press("enter")
    await stage.press("Y")
    await stage.until(lambda: bool(copied), "a program")
    assert copied[0].startswith("# attn-tui learn 1")
    await stage.press("escape", *["down"] * AT["training"], "enter")
    await stage.until(lambda: pane.is_current, "the figures")
    await stage.press("Y")
    await stage.until(lambda: len(copied) > 1, "a program")
    assert f"attn_tui.learn({AT['training'] + 1})" in copied[1]


NAME = "0\n__import__('os')\n#\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b2J\u202e"


@played(size=(120, 40))
async def test_a_hostile_name_of_a_layer_is_escaped_wherever_it_goes(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run.jsonl"
    line = {"step": 1, "layers": [NAME], "max_logit": [[50.0, 2.0]]}
    run.write_text(json.dumps(line) + "\n")
    stage.app.panes["Watch"] = WatchPane(stage.app, run=run)
    pane = await stage.opened(WatchPane)
    await stage.until(lambda: pane.shown is not None)
    copied = copies(stage, monkeypatch)
    shown = [await stage.still()]
    await stage.press("y", "Y")
    assert "__import__" in stage.text
    for text in ("".join(stage.lines), "".join(shown[0].lines), *copied):
        assert {c for c in text if not c.isprintable()} <= {"\n"}
    program = ast.parse(copied[-1])
    assert "__import__" not in {node.id for node in ast.walk(program) if isinstance(node, ast.Name)}


@played(size=(120, 40))
async def test_an_alert_sends_the_terminal_no_control_characters_of_a_file(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run.jsonl"
    run.write_text(json.dumps({"step": 1, "layers": [NAME], "max_logit": [[50.0]]}) + "\n")
    stage.app.panes["Watch"] = WatchPane(stage.app, run=run)
    pane = await stage.opened(WatchPane)
    await stage.until(lambda: pane.shown is not None)
    sent: list[str] = []
    monkeypatch.setattr(driver_of(stage.app), "write", sent.append)
    with run.open("a") as file:
        file.write(json.dumps({"step": 2, "layers": [NAME], "max_logit": [[500.0]]}) + "\n")
    await stage.until(lambda: any(text.startswith("\x1b]9;") for text in sent), "the notification")
    for text in sent:
        assert text.removeprefix("\x1b]9;").removesuffix("\x07").isprintable()
