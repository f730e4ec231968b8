"""Sessions and the servers they ask."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from providers.http import Http, Limits
from tests.support.servers import DEADLINE_S
from tests.unit.providers.misbehaving_server import Server, listening

PATIENT = Limits(connect_s=DEADLINE_S, read_s=DEADLINE_S, total_s=DEADLINE_S, max_bytes=100_000)
"""For what must not fail by time: a test machine may be slow."""
QUICK = replace(PATIENT, connect_s=0.2, read_s=0.15)


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that misbehaves as told."""
    with listening(Server()) as started:
        yield started


@pytest.fixture
def elsewhere() -> Iterator[Server]:
    """A second server, that must not be asked."""
    with listening(Server()) as started:
        yield started


@pytest.fixture
def http() -> Iterator[Http]:
    """A session with the usual times that does not wait between repeats, and refuses large answers early."""
    session = Http(PATIENT, sleep=lambda _: None)
    yield session
    session.session.close()


@pytest.fixture
def quick() -> Iterator[Http]:
    """A session that does not wait long for a connection or an answer."""
    session = Http(QUICK, sleep=lambda _: None)
    yield session
    session.session.close()
