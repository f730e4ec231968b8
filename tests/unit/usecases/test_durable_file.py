"""Files that appear complete, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.domain.errors import InvalidRequest
from service.usecases.durable_file import new_file


def test_a_file_has_its_name_once_it_is_whole(tmp_path: Path) -> None:
    """And is its owner's alone."""
    file = tmp_path / "file"
    with new_file(file) as target:
        target.write(b"whole")
        assert not file.exists()
    assert (file.read_bytes(), oct(file.stat().st_mode & 0o777)) == (b"whole", "0o600")
    assert list(tmp_path.iterdir()) == [file]


def write(file: Path, error: BaseException | None = None) -> None:
    """Write a file, up to an error."""
    with new_file(file) as target:
        target.write(b"half")
        if error is not None:
            raise error


def test_a_file_that_cannot_be_written_is_not_there(tmp_path: Path) -> None:
    """Of a full disk nothing stays that takes space; the message has the file and why."""
    with pytest.raises(InvalidRequest, match="file cannot be written: No space left on device"):
        write(tmp_path / "file", OSError(28, "No space left on device"))
    with pytest.raises(InvalidRequest, match="file cannot be written: No such file or directory"):
        write(tmp_path / "nowhere" / "file")
    assert list(tmp_path.iterdir()) == []


def test_what_a_kill_has_left_is_overwritten(tmp_path: Path) -> None:
    """It has another name, which is nobody's."""
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "file", KeyboardInterrupt())
    assert not (tmp_path / "file").exists()
    write(tmp_path / "file")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    """Nothing is overwritten."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InvalidRequest, match="file exists; name another file"):
        write(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"
