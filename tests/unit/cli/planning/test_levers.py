"""`outlay estimate --levers`: the changes worth making, below the estimate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from service.cli import main
from service.cli.planning.estimate import levers_table

RUN = ("--model", "llama-2-7b", "--tokens", "2T", "--accelerator", "H100", "--count", "256")


def outlay(folder: Path, *arguments: str) -> str:
    result = CliRunner().invoke(main, ["estimate", *RUN, *arguments], env={"OUTLAY_DATA_DIR": str(folder), "OUTLAY_OFFLINE": "1"})
    assert result.exit_code == 0, result.output
    return result.stdout


def test_levers_are_shown_with_what_they_change_and_risk(tmp_path: Path) -> None:
    """In their order, each with its fields and its risk on lines of their own."""
    answer: dict[str, Any] = json.loads(outlay(tmp_path, "--levers", "--json"))
    shown = outlay(tmp_path, "--levers")
    places = [shown.index(f"\n{lever['title']} ") for lever in answer["levers"]]
    assert places
    for place, lever in zip(places, answer["levers"], strict=True):
        assert shown.index(f"\n    risk: {lever['risk']}", place)
        assert all(path in shown[place:] for path in lever["change"])
        assert f"{lever['total_usd']:,.0f}" in shown[place:]


def test_they_are_not_shown_unasked(tmp_path: Path) -> None:
    """Nor looked for."""
    assert "levers" not in json.loads(outlay(tmp_path, "--json"))
    assert "saves USD" not in outlay(tmp_path)


def test_a_file_may_ask_for_them(tmp_path: Path) -> None:
    """As over HTTP."""
    file = tmp_path / "run.yaml"
    file.write_text("levers: true\n", encoding="utf-8")
    assert "levers" in json.loads(outlay(tmp_path, str(file), "--json"))


def test_that_there_are_none_is_said() -> None:
    """An empty table would look like a mistake."""
    assert levers_table([]) == ["levers: no single change saves anything worth telling"]
