"""Tells Outlay what a training run does, from within its script. Standard library only; see docs/tracking-client.md."""

from outlay_client.tracker import Tracker

__all__ = ["Tracker"]
