"""The manifest of the Slack app, which users install as it is but for the address."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import yaml

MANIFEST = Path(__file__).parents[2] / "examples/slack-manifest.yaml"
LIMITS = {"name": 35, "description": 140, "usage_hint": 1000}
"""Most characters by docs.slack.dev/reference/app-manifest, read on 2026-11-23."""


def test_the_manifest_names_the_routes_of_the_service_within_slacks_limits() -> None:
    manifest = yaml.safe_load(MANIFEST.read_text())
    (command,) = manifest["features"]["slash_commands"]
    paths = {urlsplit(url).path for url in (command["url"], manifest["settings"]["interactivity"]["request_url"])}
    assert paths == {"/slack/commands", "/slack/interactions"}
    assert not command["should_escape"]
    for part in (manifest["display_information"], command):
        assert all(len(part[name]) <= most for name, most in LIMITS.items() if name in part)
