"""`python -m tools.snapshot_build`: the files it writes and what it prints."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from providers.snapshot import SnapshotProvider
from tools.snapshot_build.__main__ import main

CATALOGUES = str(Path(__file__).parents[3] / "data" / "catalogues")


def build(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_it_writes_a_snapshot_that_can_be_read(tmp_path: Path) -> None:
    """Into a folder that it makes, with its counts printed and the files it did not find named."""
    folder = tmp_path / "new folder" / "prices"
    result = build(CATALOGUES, "--out", str(folder))
    assert result.exit_code == 0, result.output
    fetched = SnapshotProvider(folder=folder).fetch()
    assert fetched.rejected == ()
    assert result.stdout.startswith(f"{len(fetched.offers)} offers, ")
    assert "not found: " in result.stderr
    assert sorted(file.name for file in folder.iterdir()) == ["snapshot.csv", "snapshot_sources.csv"]


def test_it_can_list_rejected_rows(tmp_path: Path) -> None:
    """Each row with its reason."""
    result = build(CATALOGUES, "--out", str(tmp_path), "--rejected")
    count = int(result.stdout.splitlines()[-1].split()[2])
    assert count > 0
    assert len(result.stdout.splitlines()) == count + 1


def test_a_folder_without_catalogues_is_refused(tmp_path: Path) -> None:
    """Nothing is written."""
    result = build(str(tmp_path), "--out", str(tmp_path / "out"))
    assert result.exit_code == 1
    assert "holds none of the price files" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """A file stands where a folder should be."""
    (tmp_path / "file").touch()
    result = build(CATALOGUES, "--out", str(tmp_path / "file" / "below"))
    assert result.exit_code == 1
    assert "cannot be written" in result.stderr
