"""An estimate with the evaluation of its run: the cost of it, and the time in which the run's machine waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from service.domain.quantities import Range
from service.domain.training.estimate import CostBlock, Estimate, LineBlock, TimeBlock
from service.domain.training.run import Run
from service.engine.numerics.money import sum_usd
from service.engine.numerics.ranges import comonotone_sum
from service.engine.training.cost import COMMITMENT_LINE, unused_commitment, with_overhead
from service.engine.training.estimate import deadline_probability, finish_dates

PERCENTILES = ("p10", "p50", "p90")


@dataclass(frozen=True, slots=True)
class EvaluationHours:
    """Time of an evaluation.

    Attributes
    ----------
    waited : Range
        In which the run's machine waits for suites [h].
    elapsed : Range
        Until its end: that, and the approval of people after it [h].
    """

    waited: Range
    elapsed: Range


def add_evaluation(run: Run, found: Estimate, hours: EvaluationHours, lines: Sequence[LineBlock], usd: Range) -> Estimate:
    """The estimate with its run's evaluation. Time on the clock stays the run's own, as with overhead: the dates have all of it.

    Parameters
    ----------
    run : Run
        The run, on the machine of its longest phase.
    found : Estimate
        Estimate of the run alone.
    hours : EvaluationHours
        Slow where the run is slow, on the same machine.
    lines : sequence of LineBlock
        Lines of the evaluation.
    usd : Range
        Their cost; the p50 is their sum [USD].

    Returns
    -------
    Estimate
        With these lines, their cost in the total, and the finish after them. A reservation's term is used by suites that the machine waits
        for, as by overhead; of a run in several phases, whose terms are counted by machine, they are paid beside it.
    """
    worked = with_overhead(run, found.time.wall_clock_hours)
    finish = finish_dates(run, comonotone_sum((worked, hours.elapsed)))
    time = replace(found.time, finish=finish, deadline_probability=deadline_probability(run, worked, hours.elapsed))
    several = found.phases is not None and len(found.phases) > 1
    unused = [None if several else _unused(run, found.time, hours.waited, percentile) for percentile in PERCENTILES]
    return replace(found, time=time, cost=_cost(found, lines, usd, unused))


def _unused(run: Run, time: TimeBlock, waited: Range, percentile: str) -> tuple[LineBlock | None, LineBlock | None] | None:
    """The unused rest of a term without the evaluation and with it; None where there is no term."""
    if not run.billing.term_hours:
        return None
    held = getattr(time.accelerator_hours, percentile) / run.cluster.count
    return unused_commitment(run, held), unused_commitment(run, held, getattr(waited, percentile))


def _cost(
    found: Estimate, lines: Sequence[LineBlock], usd: Range, unused: Sequence[tuple[LineBlock | None, LineBlock | None] | None]
) -> CostBlock:
    changes = [Decimal(0) if pair is None else _usd(pair[1]) - _usd(pair[0]) for pair in unused]
    kept, median = found.cost.lines, unused[1]
    if median is not None:
        kept = tuple(line for line in kept if line.line != COMMITMENT_LINE) + (() if median[1] is None else (median[1],))
    bill = (*kept, *lines)
    before = found.cost.total_usd
    if before is None:
        return replace(found.cost, lines=bill)
    whole = comonotone_sum((before, usd))
    total = Range(whole.p10 + float(changes[0]), float(sum_usd(line.usd for line in bill)), whole.p90 + float(changes[2]))
    ordered = Range(min(total.p10, total.p50), total.p50, max(total.p50, total.p90))
    return replace(found.cost, lines=bill, total_usd=ordered, usd_per_million_tokens=ordered.p50 / found.tokens.trained * 1e6)


def _usd(line: LineBlock | None) -> Decimal:
    return Decimal(0) if line is None else line.usd
