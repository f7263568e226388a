"""Names in files, on screen and in the clipboard: they are never control sequences or code."""

import ast
import json
from pathlib import Path

import pytest
from attn_tui.tui.panes.watch.pane import WatchPane
from clipboard import copies
from stage import Stage, driver_of, played

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
