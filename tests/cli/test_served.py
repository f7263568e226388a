"""The app under `textual serve`, where stdout is a pipe and Textual's web driver writes packets; and on Windows."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from attn_tui.core.work.worker import interrupts_blocked
from cli_runner import Captured, assert_refused


def packet(text: bytes) -> bytes:
    return b"D" + len(text).to_bytes(4, "big") + text


@pytest.mark.parametrize(
    ("words", "shown"),
    [([], b"Softmax"), (["learn"], b"A score and its size"), (["watch", "run.jsonl"], b"run.jsonl")],
    ids=["app", "learn", "watch"],
)
def test_the_app_paints_for_a_browser_and_quits_and_saves_nothing(
    words: list[str], shown: bytes, tmp_path: Path
) -> None:
    served = {"TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver", "COLUMNS": "80", "ROWS": "24"}
    settings = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": str(tmp_path)}
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "attn_tui", *words]
    with subprocess.Popen(
        command, env=os.environ | served | settings, cwd=tmp_path, stdin=pipe, stdout=pipe, bufsize=0
    ) as app:
        assert app.stdin is not None
        assert app.stdout is not None
        assert app.stdout.readline() == b"__GANGLION__\n"
        painted = b""
        while shown not in painted:
            read = os.read(app.stdout.fileno(), 1 << 16)
            assert read, "it ended before it painted"
            painted += read
        for keys in (b"\r\r", b"\x11"):  # an answer, which the settings would remember; Ctrl+Q
            app.stdin.write(packet(keys))
        app.stdin.flush()
        app.stdout.read()
        assert app.wait(300) == 0
    assert not (tmp_path / "config").exists()


def test_the_app_is_refused_in_one_line_on_windows(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attn_tui.tui.cli.output.is_terminal", lambda: True)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        assert_refused(["--d-k", "8"], "needs a POSIX terminal", capsys)


def test_workers_start_where_signals_cannot_be_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "pthread_sigmask")
    with interrupts_blocked():
        pass
