"""Trials beside what is known of them in closed form: each figure within three standard errors, from fixed seeds."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from datetime import date
from statistics import NormalDist

import numpy as np
import pytest

from service.domain.quantities import Range
from service.domain.scenarios import (
    Distribution,
    Floats,
    LogNormal,
    Percentiles,
    Pert,
    ProgramModel,
    QueueWait,
    Regimes,
    RiskModel,
    TierModel,
    Triangular,
    Uniform,
)
from service.domain.schedule import Activity, ActivityNetwork
from service.engine.scenarios.costs import draw_price_factor, scarce_share_moments
from service.engine.scenarios.distributions import correlation_factor, quantile_at_score, waiting_probability
from service.engine.scenarios.failures import CheckpointPolicy, draw_lost_hours
from service.engine.scenarios.program import draw_inputs, order_program, random_spec, simulate_program
from service.engine.scenarios.trials import block_streams
from tests.unit.engine.scenario_builders import certain_run

TRIALS = 200_000


def within_three_errors(found: Floats, mean: float, variance: float | None = None) -> None:
    """The sample's mean, and its variance where one is known, are no farther than three standard errors from what they should be."""
    error = float(np.std(found)) / math.sqrt(found.size)
    assert abs(float(np.mean(found)) - mean) <= 3 * error + 1e-9 * abs(mean)
    if variance is not None:
        squares = (found - np.mean(found)) ** 2
        assert abs(float(np.mean(squares)) - variance) <= 3 * float(np.std(squares)) / math.sqrt(found.size)


def run_hours(useful: float, rate: float, rhythm: CheckpointPolicy, seed: int = 1) -> Floats:
    fixed_rng, variable_rng = block_streams(seed, 0)
    z = fixed_rng.standard_normal(TRIALS, dtype=np.float32)
    return useful + draw_lost_hours(np.full(TRIALS, useful), np.full(TRIALS, rate), rhythm, z, variable_rng)[0]


@pytest.mark.parametrize(
    ("useful_hours", "mttf_hours", "interval_hours", "write_hours", "recovery_hours"),
    [
        (10.0, 100.0, 2.0, 0.05, 0.5),
        (100.0, 50.0, 1.6, 0.03, 0.5),
        (1000.0, 6.0, 0.6, 0.03, 0.4),
        (30.0, 4.0, 3.0, 0.1, 2.0),
        (2000.0, 3.0, 2.0, 0.2, 1.0),
    ],
)
def test_the_mean_hours_with_failures_are_those_of_daly(
    useful_hours: float, mttf_hours: float, interval_hours: float, write_hours: float, recovery_hours: float
) -> None:
    """A segment takes exp(rate R) (exp(rate (tau + delta)) - 1) / rate on average, whether failures are few or many."""
    rate = 1 / mttf_hours
    segment = math.exp(rate * recovery_hours) * math.expm1(rate * (interval_hours + write_hours)) / rate
    hours = run_hours(useful_hours, rate, CheckpointPolicy(interval_hours, write_hours, recovery_hours))
    within_three_errors(hours, useful_hours / interval_hours * segment)


@pytest.mark.parametrize(("segments", "length", "rate"), [(5, 2.0, 0.2), (400, 1.0, 0.3)])
def test_the_variance_of_repeated_segments_is_that_of_their_closed_form(segments: int, length: float, rate: float) -> None:
    """Without recovery a segment's variance is (exp(2 x) - 2 x exp(x) - 1) / rate^2 with x = rate L (from its Laplace transform)."""
    x = rate * length
    one = (math.exp(2 * x) - 2 * x * math.exp(x) - 1) / rate**2
    hours = run_hours(segments * length, rate, CheckpointPolicy(length, 0.0, 0.0), seed=2)
    within_three_errors(hours, segments * math.expm1(x) / rate, segments * one)


@pytest.mark.parametrize("failures", [2.0, 60.0])
def test_rare_failures_of_short_segments_are_a_compound_poisson_process(failures: float) -> None:
    """Each failure then takes a recovery and a uniform part of a segment: mean m E[x], variance m E[x^2]."""
    length, recovery, rate = 1.0, 0.7, 1e-4
    hours = run_hours(failures / rate, rate, CheckpointPolicy(length, 0.0, recovery), seed=3)
    mean, square = recovery + length / 2, recovery**2 + recovery * length + length**2 / 3
    within_three_errors(hours - failures / rate, failures * mean * (1 + rate), failures * square)


def drawn(distributions: Sequence[Distribution], seed: int, correlations: Floats | None = None) -> list[Floats]:
    z = block_streams(seed, 0)[0].standard_normal((len(distributions), TRIALS))
    rows = z if correlations is None else correlation_factor(correlations) @ z
    return [quantile_at_score(distribution, row) for distribution, row in zip(distributions, rows, strict=True)]


@pytest.mark.parametrize(
    "tasks",
    [
        [Pert(1, 2, 6)],
        [Pert(10, 12, 30), Pert(1, 5, 6), Pert(0, 0, 4)],
        [Pert(float(at), at + 1.5, at + 5.0) for at in range(8)],
    ],
)
def test_sums_of_pert_durations_have_their_mean_and_variance(tasks: list[Pert]) -> None:
    """(low + 4 mode + high) / 6 and (mean - low)(high - mean) / 7, added up."""
    means = [(task.low + 4 * task.mode + task.high) / 6 for task in tasks]
    variances = [(mean - task.low) * (task.high - mean) / 7 for mean, task in zip(means, tasks, strict=True)]
    within_three_errors(sum(drawn(tasks, 4), start=np.zeros(TRIALS)), sum(means), sum(variances))


def test_sums_of_triangular_and_uniform_durations_have_their_mean_and_variance() -> None:
    """(a + m + b) / 3 and (a^2 + m^2 + b^2 - am - ab - mb) / 18; (a + b) / 2 and (b - a)^2 / 12."""
    total = sum(drawn([Triangular(1, 2, 6), Uniform(3, 7)], 5), start=np.zeros(TRIALS))
    within_three_errors(total, 3 + 5, (1 + 4 + 36 - 2 - 6 - 12) / 18 + 16 / 12)


@pytest.mark.parametrize("correlation", [0.0, 0.6, -0.5])
def test_products_of_log_normal_factors_are_log_normal(correlation: float) -> None:
    """Sigma^2 = s^2 + 2 r s t + t^2, correlated by their scores: mean and variance of the product."""
    one, other = LogNormal(2.0, 0.3), LogNormal(5.0, 0.5)
    values = drawn([one, other], 6, np.array([[1.0, correlation], [correlation, 1.0]]))
    sigma2 = one.sigma**2 + 2 * correlation * one.sigma * other.sigma + other.sigma**2
    mean = 10 * math.exp(sigma2 / 2)
    within_three_errors(values[0] * values[1], mean, mean**2 * math.expm1(sigma2))


def test_a_range_is_drawn_with_its_percentiles() -> None:
    """As many draws as the percentiles say lie below 2, 3 and 9."""
    (found,) = drawn([Percentiles(Range(2.0, 3.0, 9.0))], 7)
    for limit, share in ((2.0, 0.1), (3.0, 0.5), (9.0, 0.9)):
        within_three_errors((found <= limit).astype(np.float64), share)


@pytest.mark.parametrize("queue", [QueueWait(1, 0.8, 1.0), QueueWait(5, 4.0, 1.1), QueueWait(64, 0.6, 100.0)])
def test_queue_waits_are_those_of_erlang(queue: QueueWait) -> None:
    """The mean wait is C / (c mu - lambda), and C is the sum that Erlang wrote down."""
    offered = queue.arrivals_per_hour * queue.mean_hours
    terms = [offered**places / math.factorial(places) for places in range(queue.slots)]
    last = offered**queue.slots / math.factorial(queue.slots) / (1 - offered / queue.slots)
    waits = last / (sum(terms) + last)
    assert waiting_probability(queue) == pytest.approx(waits, rel=1e-9)
    (found,) = drawn([queue], 8)
    freed = queue.slots / queue.mean_hours - queue.arrivals_per_hour
    within_three_errors(found, waits / freed, waits * (2 - waits) / freed**2)


def test_queue_waits_are_those_of_a_simulated_pool() -> None:
    """Jobs come to four places as a Poisson process and take exponential times: 400 independent days of 500 jobs, each begun busy."""
    queue, chances = QueueWait(4, 3.0, 1.0), np.random.default_rng(9)
    means = np.array([_mean_wait(queue, chances) for _ in range(400)])
    freed = queue.slots / queue.mean_hours - queue.arrivals_per_hour
    within_three_errors(means, waiting_probability(queue) / freed)


def _mean_wait(queue: QueueWait, chances: np.random.Generator) -> float:
    """The mean wait of 500 jobs after 500 others, first come first served."""
    free, now, waits = [0.0] * queue.slots, 0.0, []
    for gap, hours in zip(chances.exponential(1 / queue.arrivals_per_hour, 1000), chances.exponential(queue.mean_hours, 1000), strict=True):
        now += gap
        begins = max(now, heapq.heappop(free))
        heapq.heappush(free, begins + hours)
        waits.append(begins - now)
    return float(np.mean(waits[500:]))


def gated(*passes: float, risks: tuple[RiskModel, ...] = ()) -> ProgramModel:
    """Three tiers of certain runs that cost 1,000, 5,000 and 20,000 USD but for failures, which are rare."""
    names = ("prototype", "validation", "production")
    runs = [certain_run(name, hours=hours) for name, hours in zip(names, (50.0, 250.0, 1000.0), strict=True)]
    activities = tuple(Activity(name, Range.exactly(1.0), predecessors=names[at - 1 : at] if at else ()) for at, name in enumerate(names))
    tiers = tuple(TierModel((run,), (name,), 0.1, 0.0, 0.0, 1 / 3, share) for run, name, share in zip(runs, names, passes, strict=True))
    return ProgramModel(tiers, ActivityNetwork(date(2027, 1, 4), activities), 0.0, 0.0, 300.0, 0.0, risks)


def usd_of(model: ProgramModel, seed: int) -> Floats:
    program = order_program(model)
    fixed_rng, variable_rng = block_streams(seed, 0)
    drawn_chances = draw_inputs(random_spec(program), TRIALS, fixed_rng)
    return simulate_program(program, drawn_chances, {}, variable_rng, causes=False).usd


def tier_usd(model: ProgramModel) -> list[float]:
    return [1.1 * tier.runs[0].useful_hours * 8 * tier.runs[0].run.billing.usd_per_accelerator_hour + 100.0 for tier in model.tiers]


@pytest.mark.parametrize("passes", [(0.6, 0.7, 0.8), (1.0, 0.2, 1.0)])
def test_the_expected_cost_is_that_of_the_gate_tree(passes: tuple[float, float, float]) -> None:
    """A tier is paid with the probability that all gates before it are passed."""
    model = gated(*passes)
    first, second, third = tier_usd(model)
    within_three_errors(usd_of(model, 10), first + passes[0] * (second + passes[1] * third))


def test_the_expected_loss_of_a_risk_is_its_probability_times_its_cost() -> None:
    """A tenth of production and 5,000 USD with a probability of 0.3; with all gates passed."""
    model = gated(1.0, 1.0, 1.0, risks=(RiskModel(0.3, 0.1, 5000.0, 2),))
    production = model.tiers[2].runs[0]
    loss = 0.1 * production.useful_hours * 8 * production.run.billing.usd_per_accelerator_hour + 5000.0
    within_three_errors(usd_of(model, 11), sum(tier_usd(model)) + 0.3 * loss, 0.21 * loss**2)


def test_the_mean_price_of_two_regimes_is_that_of_their_stationary_share() -> None:
    """Mean and variance of the share of time of a two-state Markov process, here simulated switch by switch."""
    regimes, hours, chances = Regimes(1.0, 2.0, 30.0, 10.0), 100.0, np.random.default_rng(12)
    simulated = np.array([_scarce(regimes, hours, chances) for _ in range(20_000)])
    share, variance = scarce_share_moments(regimes, np.array([hours]))
    within_three_errors(simulated, share, float(variance[0]))
    within_three_errors(draw_price_factor(regimes, np.full(TRIALS, hours), chances), 1 + share, float(variance[0]))


def _scarce(regimes: Regimes, hours: float, chances: np.random.Generator) -> float:
    """The share of the hours that is scarce, begun in the stationary state."""
    scarce = bool(chances.random() < regimes.scarce_hours / (regimes.scarce_hours + regimes.calm_hours))
    now = spent = 0.0
    while now < hours:
        lasts = min(hours - now, chances.exponential(regimes.scarce_hours if scarce else regimes.calm_hours))
        spent += lasts * scarce
        now, scarce = now + lasts, not scarce
    return spent / hours


def test_table_values_are_exact_to_a_millionth_of_the_spread() -> None:
    """The tables that uniform and PERT values are read from, beside the exact inverse of the uniform one."""
    z = np.linspace(-4, 4, 1001)
    exact = np.array([NormalDist().cdf(float(each)) for each in z])
    assert np.max(np.abs(quantile_at_score(Uniform(0.0, 1.0), z) - exact)) < 1e-6
