"""Load on a served installation: requests as fast as they are answered, or at a rate whatever happens to them."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from multiprocessing import get_context
from pathlib import Path

from service.config import Settings
from service.container import build_context
from service.usecases.keys import make_key
from tests.integration.test_noisy_team import ask, several
from tests.integration.test_serve import processes

MOST_AT_A_TIME = 400
KEYS = 6
"""Of a team each, so that no share of one client is met."""


@dataclass(frozen=True)
class Outcome:
    """Status and header `Retry-After` of an answer, and its time [s]."""

    status: int
    retry_after: str | None
    took_s: float


Act = Callable[[], Outcome]


def without_budgets(settings: Settings) -> Settings:
    """Settings under which the queue alone refuses."""
    most = "100000000/minute"
    return replace(settings, rate_limit=most, team_cpu=most, team_estimates=most, team_rows=most, team_concurrency=MOST_AT_A_TIME)


def keys_of_teams(settings: Settings) -> list[str]:
    """Keys of as many teams, on a new database."""
    settings.data_dir.mkdir(mode=0o700, exist_ok=True)
    context = build_context(settings)
    context.store.migrate()
    keys = [make_key(context, f"team-{number}", "k", ("read", "write"), "1h")[1] for number in range(KEYS)]
    context.store.close()
    return keys


def outcome(*given: object, **named: object) -> Outcome:
    """What becomes of a request; status 0: no answer."""
    began_s = time.monotonic()
    try:
        status, _, took_s, headers = ask(*given, **named)  # type: ignore[arg-type]
    except OSError:
        return Outcome(0, None, time.monotonic() - began_s)
    return Outcome(status, headers.get("Retry-After"), took_s)


def ceiling_per_s(act: Act, seconds: float, clients: int = 12) -> float:
    """Requests that are answered with success in a second, by clients each of whom waits for its answer."""
    done: list[Outcome] = []
    with several(clients, lambda: done.append(act())):
        time.sleep(seconds)
        answered = sum(200 <= each.status < 300 for each in list(done))
    return answered / seconds


def offer(act: Act, rate_per_s: float, seconds: float) -> list[Outcome]:
    """Outcomes of requests that are sent at this rate, whether those before them are answered or not."""
    began_s = time.monotonic()
    with ThreadPoolExecutor(MOST_AT_A_TIME) as pool:
        sent = []
        for number in count():
            at_s = number / rate_per_s
            if at_s >= seconds:
                break
            time.sleep(max(0.0, began_s + at_s - time.monotonic()))
            sent.append(pool.submit(act))
        return [each.result() for each in sent]


@contextmanager
def watching(port: int, path: str, seconds: float, key: str = "", body: object = None) -> Iterator[Future[list[Outcome]]]:
    """Outcomes of a request ten times a second for so long, by a process of its own: this one's threads do not slow it."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        pool.submit(os.getpid).result()  # it has started
        yield pool.submit(_watch, port, path, seconds, key, body)


def _watch(port: int, path: str, seconds: float, key: str, body: object) -> list[Outcome]:
    found = []
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        found.append(outcome(port, "GET" if body is None else "POST", path, key, body))
        time.sleep(0.1)
    return found


def percentile_s(outcomes: Sequence[Outcome], percent: int) -> float:
    """Time that so many per cent of the answers take at most [s]."""
    return statistics.quantiles([each.took_s for each in outcomes], n=100)[percent - 1]


def memory_bytes(settings: Settings) -> int:
    """Memory of all processes of an installation, shared pages divided among those that share them."""
    total = 0
    for process in processes(settings):
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def figure(name: str, value: float, unit: str) -> None:
    """One measured figure as a line of JSON, for those who run `make soak`."""
    print(json.dumps({"name": name, "value": round(value, 3), "unit": unit}))  # noqa: T201 - what the soak is run for
