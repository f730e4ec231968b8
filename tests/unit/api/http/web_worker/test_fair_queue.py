"""Clients take turns, and none takes all threads or all places."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.api.http.web_worker.fair_queue import FairQueue


def test_a_client_leaves_a_thread_to_the_others() -> None:
    """Of four threads one client runs three; another client's request starts at once."""
    queue: FairQueue[int] = FairQueue(4, 16)
    assert [queue.offer("noisy", number) for number in range(6)] == [True] * 6
    assert [queue.take() for _ in range(4)] == [("noisy", 0), ("noisy", 1), ("noisy", 2), None]
    queue.offer("quiet", 0)
    assert queue.take() == ("quiet", 0)
    assert queue.is_busy


def test_clients_take_turns() -> None:
    """A request does not wait for all that another client sent before it."""
    queue: FairQueue[int] = FairQueue(1, 16)
    for number in range(3):
        queue.offer("noisy", number)
    queue.offer("quiet", 0)
    order = []
    while taken := queue.take():
        order.append(taken)
        queue.done(taken[0])
    assert order == [("noisy", 0), ("quiet", 0), ("noisy", 1), ("noisy", 2)]


def test_a_client_fills_half_of_the_places() -> None:
    """What it sends beyond is refused; another client's requests still find a place."""
    queue: FairQueue[int] = FairQueue(1, 8)
    assert [queue.offer("noisy", number) for number in range(5)] == [True] * 4 + [False]
    assert [queue.offer("quiet", number) for number in range(5)] == [True] * 4 + [False]
    assert queue.offer("third", 0) is False


def test_items_that_are_late_leave_their_places() -> None:
    """Of every client; the rest keep their order."""
    queue: FairQueue[int] = FairQueue(1, 8)
    for client, number in (("a", 1), ("a", 5), ("b", 2), ("c", 6)):
        queue.offer(client, number)
    assert queue.drop(lambda number: number < 5) == [1, 2]
    assert queue.waiting == 2
    assert queue.take() == ("a", 5)
    assert queue.drop(lambda number: number < 7) == [6]


@given(st.integers(1, 5), st.integers(1, 8), st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=60))
def test_whatever_is_accepted_is_served_once(threads: int, places: int, steps: list[tuple[str, bool]]) -> None:
    """Never more at a time than there are threads; in the order in which a client sent them."""
    queue: FairQueue[int] = FairQueue(threads, places)
    accepted: list[tuple[str, int]] = []
    served: list[tuple[str, int]] = []
    running: list[str] = []
    for number, (client, ends) in enumerate(steps):
        accepted += [(client, number)] if queue.offer(client, number) else []
        while taken := queue.take():
            served.append(taken)
            running.append(taken[0])
        assert len(running) <= threads
        if ends and running:
            queue.done(running.pop(0))
    while taken := queue.take():
        served.append(taken)
        queue.done(taken[0])
    while running:
        queue.done(running.pop(0))
        while taken := queue.take():
            served.append(taken)
            running.append(taken[0])
    assert sorted(served) == sorted(accepted)
    for client in "abc":
        assert [item for item in served if item[0] == client] == [item for item in accepted if item[0] == client]
