"""So many requests a key, told and kept: in memory, on Redis, and when Redis is gone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service import cache as caches
from service import create_app
from service.cache import BREAKER_S, COUNTERS_DIR, FileCounter, MemoryCache, RedisCache
from service.config import Settings
from tests.contract.doors import House, house, is_problem
from tests.integration.outages import own_redis
from tests.support.patience import PATIENCE_S

QUOTA = 20
PATH = "/v1/models?limit=1"
HOUR_S = 3600


@contextmanager
def limited(settings: Settings, redis_url: str | None) -> Iterator[House]:
    """A house where each key may ask so often an hour."""
    with house(replace(settings, rate_limit=f"{QUOTA}/hour", redis_url=redis_url)) as made:
        yield made


@pytest.fixture(params=["memory", "redis"])
def doors(request: pytest.FixtureRequest, settings: Settings) -> Iterator[House]:
    """One that counts in each place."""
    with limited(settings, request.getfixturevalue("redis_url") if request.param == "redis" else None) as made:
        yield made


def burst(doors: House, times: int, key: str = "ours") -> list[Any]:
    """The answers to so many requests."""
    return [doors.ask(key, "GET", PATH) for _ in range(times)]


def allowance(answer: Any) -> tuple[int, int]:
    """What the header says is left, and in how many seconds all is back."""
    found = re.fullmatch(r'"default";r=(\d+);t=(\d+)', answer.headers["RateLimit"])
    assert found is not None, answer.headers["RateLimit"]
    return int(found[1]), int(found[2])


def test_of_a_burst_as_many_pass_as_may(doors: House) -> None:
    """The quota and not one more; each answer tells what is left, those refused when to come again."""
    answers = burst(doors, QUOTA + 10)
    assert [answer.status_code for answer in answers] == QUOTA * [200] + 10 * [429]
    assert [allowance(answer)[0] for answer in answers] == [*range(QUOTA - 1, -1, -1), *(10 * [0])]
    assert {answer.headers["RateLimit-Policy"] for answer in answers} == {f'"default";q={QUOTA};w={HOUR_S}'}
    for answer in answers[QUOTA:]:
        is_problem(answer, 429)
        assert answer.headers["Retry-After"] == str(allowance(answer)[1])
        assert 0 < int(answer.headers["Retry-After"]) <= HOUR_S


def test_every_key_has_its_own(doors: House) -> None:
    """Another key of the same team too; who has no good key is told nothing of limits."""
    burst(doors, QUOTA + 1)
    assert [burst(doors, 1, key)[0].status_code for key in ("ours", "theirs", "we may read")] == [429, 200, 200]
    for key in ("revoked", None):
        refused = doors.ask(key, "GET", PATH)
        assert (refused.status_code, "RateLimit" in refused.headers) == (401, False)


def test_what_needs_no_key_has_no_limit(doors: House) -> None:
    """Whoever watches the service goes on watching it."""
    burst(doors, QUOTA + 1)
    watched = [doors.ask("ours", "GET", "/healthz") for _ in range(3)]
    assert [(answer.status_code, "RateLimit" in answer.headers) for answer in watched] == 3 * [(200, False)]


def test_errors_count_and_tell_too(doors: House) -> None:
    """Guessing is asking."""
    answers = [doors.ask("ours", "GET", "/v1/nothing") for _ in range(2)]
    assert [(answer.status_code, allowance(answer)[0]) for answer in answers] == [(404, QUOTA - 1), (404, QUOTA - 2)]
    assert allowance(doors.ask("we may read", "POST", "/v1/track/programs", json={"name": "x"}))[0] == QUOTA - 1


def test_all_processes_count_together_on_redis(settings: Settings, redis_url: str) -> None:
    """What one has let through the other counts."""
    with limited(settings, redis_url) as doors:
        other = House(create_app(doors.context.settings), doors.tokens)
        answers = [*burst(doors, QUOTA - 5), *burst(other, 10)]
        assert [answer.status_code for answer in answers].count(200) == QUOTA


def test_all_processes_of_a_machine_count_together_without_redis(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The quota is not multiplied by the number of processes; in the next window it is whole again."""
    monkeypatch.setenv(COUNTERS_DIR, str(tmp_path))
    with limited(settings, None) as doors:
        other = House(create_app(doors.context.settings), doors.tokens)
        answers = [*burst(doors, QUOTA - 5), *burst(other, 10)]
        assert [answer.status_code for answer in answers].count(200) == QUOTA
    now = [0.0]
    counter = FileCounter(tmp_path, lambda: now[0])
    assert [counter.count("key", 60) for _ in range(2)] == [(1, 60.0), (2, 60.0)]
    now[0] = 60.0
    assert counter.count("key", 60) == (1, 60.0)


def test_requests_go_on_without_redis(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed: each process counts by itself, nobody gets an error, and Redis is left alone for a while."""
    with own_redis(tmp_path) as redis, limited(settings, redis.url) as doors:
        monkeypatch.setattr(caches, "TIMEOUT_S", PATIENCE_S)
        assert [answer.status_code for answer in burst(doors, 5)] == 5 * [200]
        redis.hurt("killed")
        answers = burst(doors, QUOTA + 1)
        assert [answer.status_code for answer in answers] == QUOTA * [200] + [429]
        assert allowance(answers[0])[0] == QUOTA - 1


def test_a_hung_redis_costs_one_timeout(settings: Settings, tmp_path: Path) -> None:
    """Stopped in the middle of its work: asked once while the breaker is open, for counts and for the cache together."""
    with own_redis(tmp_path) as redis, limited(settings, redis.url) as doors:
        cache = doors.context.cache
        assert isinstance(cache, RedisCache)
        now = [1000.0]
        cache._clock = lambda: now[0]
        burst(doors, 1)
        redis.hurt("paused")
        assert [answer.status_code for answer in burst(doors, 3)] == 3 * [200]
        assert cache._closed_until == now[0] + BREAKER_S


def test_a_window_that_is_over_is_forgotten() -> None:
    """In memory as on Redis, where the key's own time ends it."""
    now = [1000.0]
    cache = MemoryCache(lambda: now[0])
    assert [cache.count("k", 60), cache.count("k", 60)] == [(1, 60.0), (2, 60.0)]
    now[0] += 59.5
    assert cache.count("k", 60) == (3, 0.5)
    now[0] += 0.5
    assert cache.count("k", 60) == (1, 60.0)
