"""Reports events of a training run to Outlay. Standard library only; see docs/reference/tracking-client.md."""

from outlay_client.tracker import Tracker

__all__ = ["Tracker"]
