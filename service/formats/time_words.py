"""Where a run's time goes, in words: each part, what makes it less, and the finding of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Part = Mapping[str, Any]
ARITHMETIC = "arithmetic"
LEAST_SHOWN = 0.0005
"""Parts below this are not drawn: 0.0 % [1]."""
WORDS: Mapping[str, tuple[str, str]] = {
    ARITHMETIC: ("the model's arithmetic at the peak", "fewer tokens or a smaller model; a lower precision has a higher peak"),
    "kernels": ("arithmetic below the peak", "larger micro-batches and fewer tensor ranks make larger products"),
    "recompute": ("activations computed again", "a higher ZeRO stage, an 8-bit optimizer or more memory leave room to keep them"),
    "memory": ("memory traffic", "fused kernels, a lower precision, an accelerator with more bandwidth"),
    "launch": ("waiting for the host", "larger micro-batches; kernels captured as graphs"),
    "tensor": ("exchanges of tensor ranks", "fewer tensor ranks; faster links within a node"),
    "context": ("exchanges of context ranks", "fewer context ranks, or shorter sequences"),
    "expert": ("exchanges of experts", "fewer expert ranks, within a node where they fit; a faster network"),
    "stage": ("handovers between pipeline stages", "fewer stages or virtual stages; a faster network"),
    "gradient": ("exchanges of gradients", "a larger global batch; a faster network between nodes; a lower ZeRO stage"),
    "pipeline": ("the pipeline's bubble", "a larger global batch, more virtual stages, or fewer stages"),
    "input": ("waiting for data", "a data pipeline that feeds more tokens a second to each node"),
    "layout": ("a layout that is not the fastest", "the layout that the search finds, measured and stated"),
    "whole_run": ("evaluation, logging and slow nodes", "recent software, fewer evaluations within the run, nodes that are tested"),
    "checkpoints": ("checkpoint writes", "checkpoints that block less of the run, or a faster file system"),
    "failures": ("failures and restarts", "faster detection and restarts; accelerators that fail less often"),
    "maintenance": ("maintenance", "shorter maintenance windows"),
    "capacity": ("waiting for capacity", "on-demand or reserved capacity"),
}
"""By name: what it is, and what makes it less."""


def in_order(split: Sequence[Part]) -> list[Part]:
    """The parts that can be seen: the model's arithmetic, then what is lost, the most first."""
    seen = [part for part in split if part["share"] >= LEAST_SHOWN]
    return sorted(seen, key=lambda part: (part["part"] != ARITHMETIC, -part["share"]))


def time_finding(split: Sequence[Part]) -> str:
    """What takes most of the time beside the model's arithmetic."""
    useful = next((part["share"] for part in split if part["part"] == ARITHMETIC), 0.0)
    largest = largest_loss(split)
    first = f"{useful:.0%} of the time is the model's arithmetic at the peak"
    return f"{first}; most is lost to {WORDS[largest['part']][0]}: {largest['share']:.0%}"


def largest_loss(split: Sequence[Part]) -> Part:
    """The part that takes most of the time beside the model's arithmetic."""
    return max((part for part in split if part["part"] != ARITHMETIC), key=lambda part: float(part["share"]))
