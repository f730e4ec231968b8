"""A warning of a stated batch that is too small for the accelerators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from service.domain.errors import DoesNotFit
from service.domain.training.estimate import Estimate
from service.domain.training.run import Run
from service.domain.training.utilisation import Utilisation
from service.engine.training import estimate as engine
from service.presets.training.utilisation import plan_calibration
from service.usecases.resolution.training import least_batch, usual_batch

# Below this share of the usual batch's speed, other batches are worth naming.
SLOW_SHARE = 0.5


def batch_warnings(stated: Mapping[str, Any], run: Run, utilisation: Utilisation, found: Estimate) -> Iterator[str]:
    """A warning of a stated batch that leaves accelerators without a sequence, or less than half of the usual batch's speed."""
    training, count = run.training, run.cluster.count
    if stated.get("global_batch_tokens") is None or training.rl is not None or run.efficiency.stated or not found.memory.fits:
        return
    sequences, least = training.global_batch, least_batch(run.model, run.cluster)
    usual = int(usual_batch(run.model, training.method, training.seq_len, run.cluster).value)
    if sequences >= usual * SLOW_SHARE and sequences >= least:
        return
    share = found.throughput.tokens_per_s / _tokens_per_s(replace(run, training=replace(training, global_batch=usual)), utilisation)
    if sequences < least or share < SLOW_SHARE:
        tokens, better = sequences * training.seq_len, usual * training.seq_len
        yield (
            f"training.global_batch_tokens {tokens:,} gives {_counted(sequences)} a step to {count:,} accelerators. They train at"
            f" {share:.0%} of the speed that they reach with the usual {better:,}: state a larger batch or fewer accelerators"
        )


def _counted(sequences: int) -> str:
    return f"{sequences:,} sequence" + ("s" if sequences != 1 else "")


def _tokens_per_s(run: Run, utilisation: Utilisation) -> float:
    """Speed of a run [tokens/s]; infinite where it does not fit, which no batch can be compared with."""
    try:
        return engine.estimate(run, utilisation, plan_calibration()).throughput.tokens_per_s
    except DoesNotFit:
        return float("inf")
