"""`outlay slack`: channels are mapped to teams, listed without secrets, and unmapped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from service.cli import main

HOOK = "https://hooks.slack.com/services/T1/B1/s3cr3t"


@pytest.fixture
def run(tmp_path: Path) -> object:
    """Runs a command on a database of the test's own."""
    env = {"OUTLAY_DATA_DIR": str(tmp_path / "data"), "OUTLAY_OFFLINE": "1"}

    def invoke(*words: str) -> Result:
        return CliRunner().invoke(main, ["slack", *words], env=env)

    return invoke


def test_a_channel_is_mapped_listed_and_unmapped(run: object) -> None:
    assert json.loads(run("list", "--json").stdout) == []
    mapped = run("map", "--workspace", "T1", "--channel", "C1", "--team", "vision", "--scope", "write,read", "--webhook", HOOK)
    assert mapped.stdout == "channel C1 of T1 acts for the team vision: read, write\n"
    run("map", "--workspace", "T1", "--team", "plain")
    rows = json.loads(run("list", "--json").stdout)
    assert rows == [
        {"workspace": "T1", "channel": "all", "team": "plain", "scopes": "read", "alerts": "no"},
        {"workspace": "T1", "channel": "C1", "team": "vision", "scopes": "read,write", "alerts": "yes"},
    ]
    assert "s3cr3t" not in run("list").stdout
    assert run("unmap", "--workspace", "T1", "--channel", "C1").exit_code == 0
    assert len(json.loads(run("list", "--json").stdout)) == 1
    assert "outlay slack list" in run("unmap", "--workspace", "T1", "--channel", "C1").stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--workspace", "example", "--team", "a"), "begins with T or E"),
        (("--workspace", "T1", "--channel", "#general", "--team", "a"), "begins with C, G or D"),
        (("--workspace", "T1", "--team", "a", "--scope", "admin,read"), "a channel may read"),
        (("--workspace", "T1", "--team", "a", "--webhook", "https://example.com/"), "must be at https://hooks.slack.com"),
    ],
)
def test_what_cannot_be_mapped_is_refused_with_what_would_be_right(run: object, words: tuple[str, ...], said: str) -> None:
    refused = run("map", *words)
    assert refused.exit_code == 1
    assert said in refused.stderr
