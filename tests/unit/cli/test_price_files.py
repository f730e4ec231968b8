"""`outlay prices import`, `files` and `forget`: vendors' sheets from the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from service.cli import main

CSV = "Vendor,GPU,Price per GPU-hour (USD),Term\nLambda,H100 SXM,1.11,1 year\nLambda,A100,0.99,6 months\n"


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    """A vendor's sheet with one ambiguous accelerator."""
    path = tmp_path / "lambda quote.csv"
    path.write_text(CSV)
    return path


def outlay(folder: Path, *arguments: str) -> Result:
    """The command's result on that data directory."""
    return CliRunner().invoke(main, ["prices", *arguments], env={"OUTLAY_DATA_DIR": str(folder / "data"), "OUTLAY_OFFLINE": "1"})


def test_a_sheet_is_shown_then_kept_then_listed_then_forgotten(tmp_path: Path, sheet: Path) -> None:
    """Nothing is kept without --confirm."""
    shown = outlay(tmp_path, "import", str(sheet))
    assert shown.exit_code == 0, shown.output
    assert "1 offer, 1 refused, 0 skipped; nothing is kept" in shown.output
    assert "state mapping.accelerators.A100 (1 price)" in shown.output
    assert not (tmp_path / "data" / "outlay.db").exists()
    assert "kept as 'lambda quote', version 1" in outlay(tmp_path, "import", str(sheet), "--confirm").output
    assert "lambda quote" in outlay(tmp_path, "files").output
    assert "its offers are not used any more" in outlay(tmp_path, "forget", "lambda quote").output
    assert outlay(tmp_path, "files").output == "no price file is kept\n"
    assert "no price file called 'lambda quote'" in outlay(tmp_path, "forget", "lambda quote").output


def test_corrections_come_from_a_file(tmp_path: Path, sheet: Path) -> None:
    """As `mapping` over HTTP."""
    mapping = tmp_path / "mapping.json"
    mapping.write_text(json.dumps({"accelerators": {"A100": "NVIDIA-A100-80GB-SXM"}}))
    answer = json.loads(outlay(tmp_path, "import", str(sheet), "--mapping", str(mapping), "--json").output)
    assert answer["proposal"]["counts"] == {"offer": 2, "refused": 0, "skipped": 0}


@pytest.mark.parametrize(
    ("mapping", "said"), [("{", "is no JSON"), ('{"colour": 1}', "mapping.colour: unknown field"), ('{"sheet": "x"}', "mapping.sheet")]
)
def test_what_is_wrong_is_said_in_a_line(tmp_path: Path, sheet: Path, mapping: str, said: str) -> None:
    """With the pointer into the request."""
    path = tmp_path / "mapping.json"
    path.write_text(mapping)
    answer = outlay(tmp_path, "import", str(sheet), "--mapping", str(path))
    assert answer.exit_code == 1
    assert said in answer.output


def test_an_unknown_team_is_refused(tmp_path: Path, sheet: Path) -> None:
    """Its name may be misspelt."""
    answer = outlay(tmp_path, "import", str(sheet), "--confirm", "--team", "nobody")
    assert (answer.exit_code, "there is no team 'nobody'" in answer.output) == (1, True)
