"""Keys that sign records: one for all processes, durable, replaced without losing what they have signed."""

from __future__ import annotations

import stat
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from service.domain.errors import StoreReadOnly
from service.formats.signed_records import sign
from service.usecases.results.signing_keys import FOLDER, public_keys, rotate, signing_key

PROCESSES = 4


def key_id(folder: str) -> str:
    """The id of the key that a process signs with."""
    return str(signing_key(Path(folder))["kid"])


def test_processes_that_begin_at_once_agree_on_one_key(tmp_path: Path) -> None:
    """The first to write wins; nobody reads half a file."""
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(key_id, [str(tmp_path / "new" / "data")] * PROCESSES * 2))
    assert len(set(found)) == 1
    assert [key["kid"] for key in public_keys(tmp_path / "new" / "data")] == found[:1]


def test_threads_that_begin_at_once_agree_on_one_key(tmp_path: Path) -> None:
    """Many at one barrier."""
    barrier, found = threading.Barrier(16), []

    def begin() -> None:
        barrier.wait()
        found.append(key_id(str(tmp_path)))

    threads = [threading.Thread(target=begin) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert [file.name for file in (tmp_path / FOLDER).iterdir()] == ["0001.json"]


def test_only_the_owner_reads_it(tmp_path: Path) -> None:
    """File and folder."""
    signing_key(tmp_path)
    assert stat.S_IMODE((tmp_path / FOLDER).stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / FOLDER / "0001.json").stat().st_mode) == 0o600


def test_a_rotation_keeps_earlier_public_keys_alone(tmp_path: Path) -> None:
    """The newest first; what an earlier key has signed stays verifiable, and nothing new can be signed with it."""
    first = signing_key(tmp_path)
    second = rotate(tmp_path)
    assert signing_key(tmp_path)["kid"] == second["kid"] != first["kid"]
    assert [key["kid"] for key in public_keys(tmp_path)] == [second["kid"], first["kid"]]
    assert "d" not in second
    assert not [key for key in public_keys(tmp_path) if "d" in key]
    assert first["d"] not in (tmp_path / FOLDER / "0001.json").read_text()
    assert sign(b"{}", signing_key(tmp_path))


def test_rotations_at_once_lose_no_key(tmp_path: Path) -> None:
    """Every key that ever signed is still published."""
    signed = {signing_key(tmp_path)["kid"]}
    barrier = threading.Barrier(4)

    def turn() -> None:
        barrier.wait()
        for _ in range(3):
            rotate(tmp_path)
            signed.add(signing_key(tmp_path)["kid"])

    threads = [threading.Thread(target=turn) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert signed <= {key["kid"] for key in public_keys(tmp_path)}


def test_nothing_signed_means_no_key_and_no_folder(tmp_path: Path) -> None:
    """Looking makes none."""
    assert public_keys(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_an_outage_of_storage(tmp_path: Path) -> None:
    """Answered as 503, not as 500."""
    (tmp_path / FOLDER).write_text("in the way")
    with pytest.raises(StoreReadOnly, match="signing key"):
        signing_key(tmp_path)
