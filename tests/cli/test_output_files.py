"""-o FILE: what stdout would get, in UTF-8, whole or not at all."""

import json
import os
import signal
from pathlib import Path

import pytest
from cli_runner import SMALL, Captured, attn, printed, refusal


@pytest.mark.parametrize("kind", ["table", "json", "csv", "markdown"])
def test_o_writes_what_stdout_would_get(kind: str, tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "übersicht"
    assert printed(["report", *SMALL, "--format", kind, "-o", str(file)], capsys) == ""
    assert file.read_text("utf-8") == printed(["report", *SMALL, "--format", kind], capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["übersicht"]


def test_an_existing_file_keeps_its_mode_and_its_links(tmp_path: Path, capsys: Captured) -> None:
    file, link = tmp_path / "report.json", tmp_path / "link"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    printed(["report", *SMALL, "--format", "json", "-o", str(link)], capsys)
    assert link.is_symlink()
    assert json.loads(file.read_text())["schema"] == "attn-tui/report-2"
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_file_is_written_and_replaced_without_what_windows_lacks(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((signal, "SIGHUP"), (os, "fchmod"), (os, "O_TMPFILE")):
        monkeypatch.delattr(module, name)
    for _ in range(2):
        printed(["report", *SMALL, "-o", str(tmp_path / "report")], capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_the_old_file_stays_if_writing_fails(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "report.json"
    file.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    assert "No space left on device" in refusal(["report", *SMALL, "-o", str(file)], capsys)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("report.json", "old")]


def test_a_device_is_written_to_and_a_dash_is_stdout(capsys: Captured) -> None:
    assert printed(["report", *SMALL, "-o", "/dev/null"], capsys) == ""
    assert printed(["report", *SMALL, "-o", "-"], capsys) == printed(["report", *SMALL], capsys)


def test_a_file_is_utf_8_in_any_locale(tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    assert attn("report", *SMALL, "-o", str(file), env={"LC_ALL": "C"}).returncode == 0
    assert "√d_k" in file.read_text("utf-8")
