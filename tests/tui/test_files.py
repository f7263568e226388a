"""Files are written as a whole or not at all."""

import errno
import os
import stat
from pathlib import Path

import pytest
from attn_tui.core.files import FileError, read_file, write_file, write_pieces, write_text


def test_a_file_that_exists_is_replaced_only_on_request(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text("precious")
    with pytest.raises(FileError, match="exists"):
        write_text("other", file, replace=False)
    assert file.read_text() == "precious"
    assert [*tmp_path.iterdir()] == [file]
    write_text("other", file)
    assert file.read_text() == "other"


def test_a_file_is_as_private_as_it_is_asked_to_be(tmp_path: Path) -> None:
    write_text("x", tmp_path / "text")
    write_file(b"x", tmp_path / "file")
    write_pieces([b"x"], tmp_path / "pieces")
    write_pieces([b"x"], tmp_path / "private", private=True)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) & 0o077 for path in tmp_path.iterdir()}
    (tmp_path / "usual").touch()
    usual = stat.S_IMODE((tmp_path / "usual").stat().st_mode) & 0o077
    assert modes == {"text": usual, "file": usual, "pieces": usual, "private": 0}


def test_a_text_is_read_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"four")
    monkeypatch.setattr("attn_tui.core.files.LARGEST", 4)
    assert read_file(tmp_path / "x") == b"four"
    monkeypatch.setattr("attn_tui.core.files.LARGEST", 3)
    with pytest.raises(FileError, match="at most 3 bytes"):
        read_file(tmp_path / "x")


@pytest.mark.parametrize("failing", ["os.fsync", "os.replace"])
@pytest.mark.parametrize("unnamed", [True, False])  # whether the system has files without a name
def test_a_new_file_that_cannot_be_finished_leaves_nothing(
    failing: str, unnamed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not unnamed:
        monkeypatch.delattr("os.O_TMPFILE", raising=False)

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(failing, fail)
    with pytest.raises(FileError):
        write_text("text", tmp_path / "x.json", replace=False)
    assert not [*tmp_path.iterdir()]


def test_a_file_is_on_the_disk_before_it_takes_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    flush, rename = os.fsync, os.replace

    def fsync(descriptor: int) -> None:
        mode = os.fstat(descriptor).st_mode
        steps.append("folder" if stat.S_ISDIR(mode) else f"{os.fstat(descriptor).st_size} bytes")
        flush(descriptor)

    def replace(source: Path, target: Path) -> None:
        steps.append("rename")
        rename(source, target)

    monkeypatch.setattr("os.fsync", fsync)
    monkeypatch.setattr("os.replace", replace)
    write_text("text", tmp_path / "x.json")
    assert steps == ["4 bytes", "rename", "folder"]


def test_a_file_system_that_cannot_flush_a_folder_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = os.fsync

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        flush(descriptor)

    monkeypatch.setattr("os.fsync", fsync)
    write_text("text", tmp_path / "x.json")
    assert (tmp_path / "x.json").read_text() == "text"


def test_the_temporary_file_of_another_process_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In another container or on another machine, a process can have the same number."""
    other = tmp_path / f".attn-tui-{os.getpid()}.tmp"
    other.write_text("of another process")
    write_text("text", tmp_path / "x.json")
    assert (tmp_path / "x.json").read_text() == "text"

    def zeros(count: int) -> bytes:
        return bytes(count)

    monkeypatch.setattr("os.urandom", zeros)
    same = tmp_path / f".attn-tui-{bytes(8).hex()}.tmp"
    same.write_text("of another process")
    with pytest.raises(FileError, match="exists"):
        write_text("other", tmp_path / "x.json")
    assert (tmp_path / "x.json").read_text() == "text"
    assert [file.read_text() for file in (other, same)] == ["of another process"] * 2


def test_nobody_else_can_read_a_private_file_at_any_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[int] = []
    flush = os.fsync

    def fsync(descriptor: int) -> None:
        modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        flush(descriptor)

    monkeypatch.setattr("os.fsync", fsync)
    old = tmp_path / "old"
    old.touch(0o600)
    write_file(b"text", old)
    write_file(b"text", tmp_path / "new", replace=False, private=True)
    assert modes[::2] == [0o600, 0o600]
    assert [stat.S_IMODE(file.stat().st_mode) for file in (old, tmp_path / "new")] == [0o600, 0o600]
