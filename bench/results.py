"""Kept results: listing 1,000 of them, and what keeping one costs on top of its answer."""

from __future__ import annotations

import statistics
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.harness import offline_client, post_cpu_s, report, timed

if TYPE_CHECKING:
    from flask.testing import FlaskClient

RESULTS, REPEATS = 1000, 15
PROMISED_MS = 50.0


def results() -> None:
    """Median time of a page of 1,000 results, with answers of a comparison's size behind them; CPU of keeping an estimate."""
    with offline_client() as client:
        _fill(client, client.application.extensions["context"])
        listed_s = [timed(lambda: client.get(f"/v1/results?limit={RESULTS}"))[0] for _ in range(REPEATS)]
        found_s = [timed(lambda: client.get("/v1/results?limit=1000&title=999"))[0] for _ in range(REPEATS)]
        _keeping(client)
    report(f"results.list_{RESULTS}.p50_ms", 1e3 * statistics.median(listed_s), "ms, one client", "promised", PROMISED_MS)
    report(f"results.search_{RESULTS}.p50_ms", 1e3 * statistics.median(found_s), "ms, one client", "promised", PROMISED_MS)


def _fill(client: FlaskClient, context: object) -> None:
    """Keep one comparison, and its copies until there are 1,000."""
    from service.api.resources.comparison import COMPARISON
    from service.context import AppContext
    from service.domain.teams import DEFAULT_TEAM

    assert isinstance(context, AppContext)
    first = client.post("/v1/results", json={"kind": "compare", "request": COMPARISON}).get_json()
    kept = context.store.result(DEFAULT_TEAM, first["id"], context.clock())
    assert kept is not None
    for number in range(1, RESULTS):
        context.store.create_result(replace(kept, row=replace(kept.row, id=str(uuid.uuid4()), title=f"comparison {number}")))


def _keeping(client: FlaskClient) -> None:
    from service.api.resources.results.results import EXAMPLE

    plain_s = statistics.median(post_cpu_s(client, "/v1/estimate", EXAMPLE["request"])[0] for _ in range(REPEATS))
    keep_s = statistics.median(post_cpu_s(client, "/v1/results", EXAMPLE)[0] for _ in range(REPEATS))
    report("results.keep_estimate.cpu_ms", 1e3 * keep_s, "ms", "estimate", 1e3 * plain_s)
