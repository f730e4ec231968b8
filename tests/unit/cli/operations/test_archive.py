"""`outlay archive` and `outlay unarchive`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from service import create_app
from service.config import Settings
from tests.contract.tracking.tracked_program import told
from tests.unit.cli.invoke import output_of, run


@pytest.fixture
def program(settings: Settings) -> str:
    """The id of a closed program."""
    app = create_app(settings)
    with closing(app.extensions["context"].store) as store:
        store.migrate()
        client = app.test_client()
        found = str(told(client)["id"])
        assert client.patch(f"/v1/track/programs/{found}", json={"state": "closed"}, headers={"If-Match": "*"}).status_code == 200
    return found


def test_a_program_is_archived_and_brought_back(settings: Settings, program: str, tmp_path: Path) -> None:
    """The status says so in between, the list of programs too, and a rebuild leaves it alone."""
    file = tmp_path / "program.jsonl.gz"
    printed = output_of(settings, "archive", program, "--to", str(file))
    assert printed.startswith(f"{file}: 64 events of 2 runs of support-assistant 7B, verified; SHA-256")
    assert output_of(settings, "archive", program, "--to", str(file)) == printed
    assert printed.split()[-1] in output_of(settings, "track", "show", program)
    assert "archived" in output_of(settings, "track", "programs")
    rebuilt = run(settings, "track", "rebuild", "--check")
    assert (rebuilt.exit_code, rebuilt.stdout) == (0, "0 runs rebuilt from the log: 0 hours differed\n")
    assert "2 runs are archived" in rebuilt.stderr
    assert output_of(settings, "unarchive", str(file)) == f"64 events of 2 runs of support-assistant 7B ({program}) are back\n"
    assert "archived" not in output_of(settings, "track", "programs")
    assert output_of(settings, "track", "rebuild", "--check") == "2 runs rebuilt from the log: 0 hours differed\n"


def test_a_refusal_is_one_line(settings: Settings, program: str, tmp_path: Path) -> None:
    """Of another team's program, of a file in a folder that is not there, and of a time within an archived hour."""
    refused = run(settings, "archive", "unknown", "--to", str(tmp_path / "file"))
    assert (refused.exit_code, refused.output) == (1, "Error: there is no program of this id\n")
    nowhere = tmp_path / "no" / "file"
    assert (
        run(settings, "archive", program, "--to", str(nowhere)).output == f"Error: {nowhere} cannot be written: No such file or directory\n"
    )
    output_of(settings, "archive", program, "--to", str(tmp_path / "file"))
    cut = run(settings, "track", "show", program, "--as-of", "2025-08-15T00:30:00Z")
    assert (cut.exit_code, "state the end of one" in cut.output) == (1, True)
