"""Who is served next: clients take turns, and none may take all threads or fill the queue."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """Items that wait, by client; those taken and not yet done count as running.

    One client runs at most all but one of `threads`, and has at most half of the places to wait.

    Parameters
    ----------
    threads : int
        Items that may run at a time.
    places : int
        Items that may wait.
    """

    def __init__(self, threads: int, places: int) -> None:
        self._threads = threads
        self._threads_of_one = max(threads - 1, 1)
        self._places = places
        self._places_of_one = max(places // 2, 1)
        self._waiting: OrderedDict[str, deque[Item]] = OrderedDict()
        self._running: Counter[str] = Counter()

    @property
    def is_busy(self) -> bool:
        """Whether no further item may run."""
        return self.running >= self._threads

    @property
    def running(self) -> int:
        """Items that run."""
        return self._running.total()

    @property
    def waiting(self) -> int:
        """Items that wait."""
        return sum(map(len, self._waiting.values()))

    def offer(self, client: str, item: Item) -> bool:
        """Let an item wait; False where the client, or all together, have too many waiting. Follow it with `take`."""
        own = self._waiting.get(client, ())
        if len(own) >= self._places_of_one or self.waiting >= self._places:
            return False
        self._waiting.setdefault(client, deque()).append(item)
        return True

    def take(self) -> tuple[str, Item] | None:
        """The next client with its first item, which now runs; None where none waits that may run."""
        if self.is_busy:
            return None
        client = next((client for client in self._waiting if self._running[client] < self._threads_of_one), None)
        if client is None:
            return None
        waiting = self._waiting.pop(client)
        item = waiting.popleft()
        if waiting:
            self._waiting[client] = waiting  # at the end: the others are first next time
        self._running[client] += 1
        return client, item

    def drop(self, is_late: Callable[[Item], bool]) -> list[Item]:
        """Items that are too late no longer wait; of each client those that came first."""
        dropped = []
        for client, waiting in list(self._waiting.items()):
            while waiting and is_late(waiting[0]):
                dropped.append(waiting.popleft())
            if not waiting:
                del self._waiting[client]
        return dropped

    def done(self, client: str) -> None:
        """One of the client's items no longer runs."""
        self._running[client] -= 1
        if not self._running[client]:
            del self._running[client]
