"""A service with a Slack app, and a workspace where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from flask import Flask

from service import create_app
from service.config import load_settings
from service.usecases.slack.channels import map_channel
from tests.support.slack import CHANNEL, SECRET, WORKSPACE, Slack, installed


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flask]:
    """The service with an empty database and the app's secret; response URLs may be on this machine."""
    settings = load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("slack") / "data"), "OUTLAY_OFFLINE": "1"})
    made = create_app(replace(settings, slack_signing_secret=SECRET, allow_private_webhooks=True))
    with closing(made.extensions["context"].store) as store:
        store.migrate()
        yield made


@pytest.fixture
def slack(app: Flask) -> Iterator[Slack]:
    """A workspace whose channel may read and write for a team."""
    hook = "https://hooks.slack.com/services/T0001/B1/s3cr3t"
    map_channel(app.extensions["context"], WORKSPACE, CHANNEL, "default", ["read", "write"], hook)
    with installed(app) as made:
        yield made
