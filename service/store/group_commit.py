"""One commit for what several threads of a process write at the same time: each costs a synchronisation of the disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from service.domain.errors import StoreUnavailable

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class GroupRefusedError(Exception):
    """A group that cannot be written in one transaction; nothing of it was."""


@dataclass(slots=True, eq=False)
class _Entry(Generic[_Item, _Result]):
    item: _Item
    result: _Result | None = None


class GroupCommit(Generic[_Item, _Result]):
    """Writes items one group at a time: the thread whose turn it is writes those of all that wait, and they return after its commit.

    Parameters
    ----------
    write_all
        Writes items in one transaction; returns the result of each, none of them None. Where it raises, nothing was written, and each
        thread writes its own item alone.
    """

    def __init__(self, write_all: Callable[[Sequence[_Item]], Sequence[_Result]]) -> None:
        self._write_all = write_all
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._waiting: list[_Entry[_Item, _Result]] = []

    def write(self, item: _Item) -> _Result:
        """The result of an item, which is committed when this returns. Raises what writing it alone raises."""
        entry: _Entry[_Item, _Result] = _Entry(item)
        with self._lock:
            self._waiting.append(entry)
        with self._turn:
            if entry.result is None:
                self._write_group(entry)
        if entry.result is None:
            raise RuntimeError("a group was written without a result for each of its items")
        return entry.result

    def _write_group(self, own: _Entry[_Item, _Result]) -> None:
        group = self._group_of(own)
        if len(group) > 1:
            try:
                self._commit(group)
            except (GroupRefusedError, StoreUnavailable):
                pass  # the others find no result, and write theirs alone
            else:
                return
        self._commit([own])

    def _group_of(self, own: _Entry[_Item, _Result]) -> list[_Entry[_Item, _Result]]:
        """All that wait; the entry alone where it was part of a group that was not written."""
        with self._lock:
            if own not in self._waiting:
                return [own]
            group, self._waiting = self._waiting, []
        return group

    def _commit(self, group: Sequence[_Entry[_Item, _Result]]) -> None:
        for entry, result in zip(group, self._write_all([entry.item for entry in group]), strict=True):
            entry.result = result
