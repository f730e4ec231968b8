"""CPU time of a million trials of a program, compared with SimPy and with drawing their random numbers alone."""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Iterator
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import numpy as np
import simpy

from bench.harness import offline_context, read_request, report, timed
from service.context import AppContext
from service.domain.scenarios import ProgramModel, RunModel
from service.engine.numerics.quantiles import range_quantiles
from service.engine.scenarios.costs import usd_per_hour
from service.engine.scenarios.program import OrderedProgram, draw_inputs
from service.engine.scenarios.trials import Sampler, block_streams
from service.schemas.scenarios.request import ScenarioRequestSchema, build_request
from service.usecases.scenarios import monte_carlo

TRIALS, SIMPY_TRIALS = 1_000_000, 30
MEMORY_PROMISED_MB = 500.0
# 1,000 nodes of 8: the whole machine fails every 6 hours.
NODES_1000 = read_request("program-1000-nodes")


def scenarios() -> None:
    """Report the figures of scenarios that need no worker."""
    with offline_context() as context:
        trials_s, sampler, mean_usd = monte_carlo_s(context)
    model = sampler.models[()]
    if not isinstance(model, OrderedProgram):
        raise TypeError("the program was modelled as a run")
    report("scenario_1m_trials_3_tiers_1000_nodes.cpu_s", trials_s, "s")
    report("scenario_1m_trials.over_random_numbers", trials_s, "s", "random numbers alone", random_numbers_s(sampler))
    simpy_s, simpy_usd, error_usd = simulated(model.model)
    report("scenario_1m_trials.faster_than_simpy", simpy_s, "s of SimPy, scaled", "1m trials", trials_s)
    report("scenario_mean_usd.standard_errors_from_simpy", abs(mean_usd - simpy_usd) / error_usd, "standard errors of SimPy's mean")
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    report("scenario_1m_trials.peak_memory", peak_mb, "MB", "promised", MEMORY_PROMISED_MB)


def monte_carlo_s(context: AppContext) -> tuple[float, Sampler, float]:
    """CPU seconds of a million trials from the first chunk to the result, with a built model; the sampler; mean USD, all gates passed."""
    loaded = ScenarioRequestSchema().load({"kind": "monte_carlo", "base": NODES_1000, "trials": TRIALS, "early_stop": False})
    prepared = replace(monte_carlo.prepare(context, build_request(loaded)), key="bench")
    monte_carlo.run_chunk(context, replace(prepared, units_per_chunk=1000), 0, noop)

    def evaluated() -> dict[str, Any]:
        tallies = [monte_carlo.run_chunk(context, prepared, index, noop) for index in range(prepared.chunks)]
        return monte_carlo.finish(context, prepared, tallies)

    spent_s, result = timed(evaluated, time.process_time)
    return spent_s, monte_carlo.load_sampler(context, prepared, noop)[0], result["completed"]["cost_usd"]["mean"]


def random_numbers_s(sampler: Sampler) -> float:
    """CPU seconds of drawing the random numbers of a million trials."""
    begun = time.process_time()
    for block in range(math.ceil(TRIALS / sampler.block)):
        draw_inputs(sampler.random_spec, sampler.block, block_streams(sampler.seed, block)[0])
    return time.process_time() - begun


def simulated(model: ProgramModel) -> tuple[float, float, float]:
    """CPU seconds of a million trials in SimPy, scaled from fewer; mean USD with all gates passed, and its standard error."""
    chances = np.random.default_rng(1)
    spent_s, usd = timed(lambda: [_one_trial(model, chances) for _ in range(SIMPY_TRIALS)], time.process_time)
    return spent_s / SIMPY_TRIALS * TRIALS, fmean(usd), stdev(usd) / math.sqrt(SIMPY_TRIALS)


def _one_trial(model: ProgramModel, chances: np.random.Generator) -> float:
    """One trial of a program in SimPy [USD]: runs in sequence with node failures, overheads and risks."""
    environment = simpy.Environment()
    usd: list[float] = []
    common = chances.standard_normal(2)
    environment.process(_program(environment, model, common, chances, usd))
    environment.run()
    return sum(usd)


def _program(
    environment: simpy.Environment, model: ProgramModel, common: Any, chances: np.random.Generator, usd: list[float]
) -> Iterator[simpy.Event]:
    share, rest = math.sqrt(model.correlation), math.sqrt(1 - model.correlation)
    for at, tier in enumerate(model.tiers):
        struck = sum(risk.cost_share for risk in model.risks if risk.tier == at and chances.random() < risk.probability)
        for run in tier.runs:
            scores = share * common + rest * chances.standard_normal(2)
            yield environment.timeout(float(range_quantiles(run.queue_hours, chances.standard_normal(1))[0]))
            begun = environment.now
            yield environment.process(_run(environment, run, scores, chances))
            hours = environment.now - begun
            usd.append(hours * usd_per_hour(run) * (1 + tier.overhead_share + model.reserve_share + struck))


def _run(environment: simpy.Environment, run: RunModel, scores: Any, chances: np.random.Generator) -> Iterator[simpy.Event]:
    """A run in SimPy: each segment is repeated until it passes, each failure adds a recovery."""
    failures = run.run.failures
    slow = float(range_quantiles(run.slowdown, scores[:1])[0])
    mttf = float(range_quantiles(failures.mttf_hours_per_accelerator, -scores[1:])[0]) / run.run.cluster.count
    recovery = (failures.detection_minutes + failures.restart_minutes) / 60
    left = run.useful_hours * run.run_equivalents * slow
    while left > 0:
        segment = min(left, run.interval_hours) + failures.checkpoint_write_minutes / 60
        until = chances.exponential(mttf)
        if until >= segment:
            yield environment.timeout(segment)
            left -= run.interval_hours
            continue
        yield environment.timeout(until)
        while (again := chances.exponential(mttf)) < recovery:
            yield environment.timeout(again)
        yield environment.timeout(recovery)


def noop() -> None:
    """The step of chunks that are never stopped."""


if __name__ == "__main__":
    scenarios()
