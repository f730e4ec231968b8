"""`outlay usage`: here what the team has stored."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from service.cli import main


def test_the_storage_of_a_team_is_shown_here(tmp_path: Path) -> None:
    """With its limits; where nothing was ever kept, that is said."""
    environment = {"OUTLAY_DATA_DIR": str(tmp_path / "data"), "OUTLAY_OFFLINE": "1", "OUTLAY_TEAM_STORED_ROWS": "2000"}

    def outlay(*arguments: str) -> str:
        return CliRunner().invoke(main, [*arguments], env=environment).output

    assert "there is no database yet" in outlay("usage")
    outlay("keys", "create", "--team", "vision", "--name", "ci")
    found = json.loads(outlay("usage", "--team", "vision", "--json"))
    assert (found["team"], [budget["name"] for budget in found["budgets"]]) == ("vision", ["stored-rows", "stored-bytes"])
    assert outlay("usage", "--team", "vision").splitlines()[1].split() == ["stored-rows", "0", "2,000", "0.0%"]
