"""The cache's promises, the same in memory and on Redis; and that Redis in trouble costs speed and nothing else."""

from __future__ import annotations

import socket

import pytest

from service import cache as caches
from service.cache import BREAKER_S, MEMORY_BYTES, MEMORY_ENTRIES, Cache, MemoryCache, RedisCache, make_cache
from service.config import load_settings
from tests.support.servers import wait_for


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=["memory", "redis"])
def cache(request: pytest.FixtureRequest) -> Cache:
    """An empty cache of each kind."""
    return MemoryCache() if request.param == "memory" else RedisCache(request.getfixturevalue("redis_url"))


@pytest.fixture
def clock() -> Clock:
    """A clock in the test's hands."""
    return Clock()


class TestEveryCache:
    def test_a_value_comes_back_as_it_was(self, cache: Cache) -> None:
        """Any bytes are kept as they are."""
        cache.set("offers", b"\x00\xff", 60)
        assert cache.get("offers") == b"\x00\xff"

    def test_an_unknown_key_is_none(self, cache: Cache) -> None:
        """What was never set is not known."""
        assert cache.get("nothing") is None

    def test_a_later_value_replaces_the_earlier(self, cache: Cache) -> None:
        """The last value set counts."""
        cache.set("a", b"1", 60)
        cache.set("a", b"2", 60)
        assert cache.get("a") == b"2"

    def test_a_value_leaves_when_its_time_is_over(self, cache: Cache) -> None:
        """A value is forgotten after its time to live."""
        cache.set("a", b"1", 0.02)
        wait_for(lambda: cache.get("a") is None, "the value to expire")

    def test_counts_begin_again_with_each_window(self, cache: Cache) -> None:
        """Each key has a window of its own, begun by its first count; the time left never exceeds it."""
        found = [cache.count("a", 60), cache.count("a", 60), cache.count("b", 1)]
        assert [entry and entry[0] for entry in found] == [1, 2, 1]
        assert all(entry and 0 < entry[1] <= window_s for entry, window_s in zip(found, (60, 60, 1), strict=True))
        wait_for(lambda: (cache.count("b", 1) or (0, 0))[0] == 1, "a new window")

    def test_it_answers_a_ping(self, cache: Cache) -> None:
        """A healthy cache says so."""
        assert cache.ping()


class TestMemory:
    @pytest.mark.parametrize("now", [4095.6, 8191.7, 16_383.9, 1_048_575.6])
    def test_no_clock_leaves_more_than_the_window(self, clock: Clock, now: float) -> None:
        """Close below a power of two the end of the window is rounded up."""
        clock.now = now
        assert now + 60 - now > 60
        assert MemoryCache(clock).count("a", 60) == (1, 60)

    def test_it_holds_so_many_bytes_and_no_more(self) -> None:
        """The least recently used values go first, a replaced one counts once, and one that is larger than all is not held."""
        cache, value = MemoryCache(), b"x" * (MEMORY_BYTES // 4)
        for name in ("a", "b", "c", "c", "d"):
            cache.set(name, value, 60.0)
        assert cache.get("a") == value
        cache.set("e", value, 60.0)
        assert [name for name in "abcde" if cache.get(name)] == ["a", "c", "d", "e"]
        cache.set("f", value * 5, 60.0)
        assert (cache.get("f"), cache.get("e")) == (None, value)

    def test_the_least_recently_used_entry_leaves_first(self) -> None:
        """A full cache makes room without touching what was just read."""
        cache = MemoryCache()
        for n in range(MEMORY_ENTRIES):
            cache.set(str(n), b"", 60)
        cache.get("0")
        cache.set("one more", b"", 60)
        assert cache.get("0") == b""
        assert cache.get("1") is None

    def test_it_is_what_no_redis_means(self) -> None:
        """Without a Redis URL the cache lives in the process."""
        assert isinstance(make_cache(load_settings({})), MemoryCache)
        assert isinstance(make_cache(load_settings({"OUTLAY_REDIS_URL": "redis://localhost"})), RedisCache)


class TestRedisInTrouble:
    def test_a_dead_redis_is_a_miss(self, free_port: int) -> None:
        """Nobody listening: reads miss, writes are dropped, ping says no, nothing raises."""
        cache = RedisCache(f"redis://127.0.0.1:{free_port}")
        cache.set("a", b"1", 60)
        assert cache.get("a") is None
        assert cache.count("a", 60) is None
        assert not cache.ping()

    def test_a_hung_redis_is_asked_once(self, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        """A server that accepts and never answers costs one timeout; until the breaker closes it is not asked again."""
        monkeypatch.setattr(caches, "TIMEOUT_S", 0.25)
        with socket.create_server(("127.0.0.1", 0)) as hung:
            cache = RedisCache(f"redis://127.0.0.1:{hung.getsockname()[1]}", clock)
            for _ in range(100):
                assert cache.get("a") is None
            hung.accept()[0].close()
            hung.settimeout(0)
            with pytest.raises(BlockingIOError):
                hung.accept()

    def test_the_breaker_closes_again(self, redis_url: str, free_port: int, clock: Clock) -> None:
        """After its time, a Redis that is back is used again."""
        cache = RedisCache(f"redis://127.0.0.1:{free_port}", clock)
        assert not cache.ping()
        cache._url, cache._client = redis_url, None
        assert not cache.ping()
        clock.now += BREAKER_S
        assert cache.ping()

    def test_a_wrong_password_is_a_miss(self, own_redis_url: str) -> None:
        """Redis refusing us is as good as Redis away."""
        from redis import Redis

        with Redis.from_url(own_redis_url) as admin:
            admin.config_set("requirepass", "right")
            answers = RedisCache(own_redis_url.replace("redis://", "redis://:wrong@")).ping()
            admin.config_set("requirepass", "")
        assert answers is False

    def test_a_full_redis_forgets(self, own_redis_url: str) -> None:
        """Redis out of memory drops the write and nothing else."""
        from redis import Redis

        with Redis.from_url(own_redis_url) as admin:
            admin.config_set("maxmemory", "1")
            cache = RedisCache(own_redis_url)
            cache.set("a", b"1", 60)
            admin.config_set("maxmemory", "0")
        assert cache.get("a") is None
