"""Files are written as a whole or not at all."""

import errno
import os
from pathlib import Path

import pytest
from attn_tui.tui.files import FileError, write_text


def test_a_file_that_exists_is_replaced_only_on_request(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text("precious")
    with pytest.raises(FileError, match="exists"):
        write_text("other", file, replace=False)
    assert file.read_text() == "precious"
    assert [*tmp_path.iterdir()] == [file]
    write_text("other", file)
    assert file.read_text() == "other"


def test_a_new_file_that_cannot_be_finished_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(FileError):
        write_text("text", tmp_path / "x.json", replace=False)
    assert not [*tmp_path.iterdir()]
