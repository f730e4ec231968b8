"""Web pages: server time of kept results, tracked programs and estimates never asked before; what the first view loads."""

from __future__ import annotations

import gzip
import itertools
import re
import statistics
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bench.harness import offline_client, report, timed

if TYPE_CHECKING:
    from flask.testing import FlaskClient

REPEATS = 25
KEPT_PROMISED_MS, NEVER_ASKED_PROMISED_MS, FIRST_VIEW_PROMISED_KB = 50.0, 120.0, 150.0
COMPARISON = (
    "/compare?model=7B&workload.data.tokens={}B&candidates.accelerators=H100%2C+H200&candidates.counts=64%2C+128%2C+256"
    "&constraints.max_wall_clock_days=60"
)
PURCHASE = (
    "/buy-or-rent?demand.accelerator=H100&demand.count={}&demand.years=3&own.0.capex_usd_per_accelerator=32000"
    "&rent.quotes.0.name=lambda+3y&rent.quotes.0.pricing=reserved_3y&rent.quotes.0.usd_per_accelerator_hour=1.89"
)
ESTIMATE = (
    "/estimate?model=llama-3-70b&data.tokens=15T&hardware.accelerator=H100&hardware.count=2048&training.input_tokens_per_s_per_node={}"
)


def pages() -> None:
    """Median times of pages in this process; each question is asked once."""
    with offline_client() as client:
        kept = {"result": f"/r/{_kept(client)}", "program": f"/programs/{_tracked(client)}", "home": "/", "prices": "/prices"}
        for name, address in kept.items():
            _report(f"page_{name}", client, itertools.repeat(address), KEPT_PROMISED_MS)
        _report("page_estimate_never_asked", client, (ESTIMATE.format(10**11 + at) for at in itertools.count()), NEVER_ASKED_PROMISED_MS)
        _report("page_comparison_never_asked", client, (COMPARISON.format(at) for at in itertools.count(100)), NEVER_ASKED_PROMISED_MS)
        _report("page_purchase_never_asked", client, (PURCHASE.format(at) for at in itertools.count(256)))
        report("page_first_view.kb", _first_view_bytes(client) / 1e3, "kB compressed", "promised", FIRST_VIEW_PROMISED_KB)


def _report(name: str, client: FlaskClient, addresses: Iterator[str], promised_ms: float | None = None) -> None:
    _seconds(client, next(addresses))
    seconds = [_seconds(client, next(addresses)) for _ in range(REPEATS)]
    report(f"{name}.p50_ms", 1e3 * statistics.median(seconds), "ms, one client", "promised" if promised_ms else None, promised_ms)


def _seconds(client: FlaskClient, address: str) -> float:
    """Seconds until a page is there. Raises RuntimeError for an answer that is no success."""
    seconds, answer = timed(lambda: client.get(address))
    if answer.status_code != 200:
        raise RuntimeError(f"{address} answered {answer.status_code}")
    return seconds


def _kept(client: FlaskClient) -> str:
    from service.api.resources.results.results import EXAMPLE

    return str(client.post("/v1/results", json=EXAMPLE).get_json()["id"])


def _tracked(client: FlaskClient) -> str:
    from service.api.resources.tracking.programs import EVENTS_EXAMPLE, PROGRAM_EXAMPLE, RUN_EXAMPLE

    program = str(client.post("/v1/track/programs", json=PROGRAM_EXAMPLE).get_json()["id"])
    run = client.post(f"/v1/track/programs/{program}/runs", json=RUN_EXAMPLE).get_json()["id"]
    client.post(f"/v1/track/runs/{run}/events", json=EVENTS_EXAMPLE)
    return program


def _first_view_bytes(client: FlaskClient) -> int:
    """Bytes of the first page with its style and scripts, compressed."""
    page = client.get("/")
    loaded = re.findall(r'(?:href|src)="(/assets/[^"]+)"', page.text)
    answers = [client.get(address, headers={"Accept-Encoding": "gzip"}) for address in loaded]
    return len(gzip.compress(page.data)) + sum(len(answer.data) for answer in answers)
