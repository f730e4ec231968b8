"""What to check of a cost: idle accelerators of whole instances, the unused rest of a reservation's term, overhead that is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from service.domain.quantities import Range
from service.domain.training.estimate import CostBlock
from service.domain.training.run import Run
from service.engine.training.cost import COMMITMENT_LINE, SPARES_LINE, idle_accelerators, overhead_share
from service.formats.headline import money
from service.presets.defaults import default

# Idle accelerators are the larger part of the bill: another instance size is the first thing to look for.
MOST_OF_THE_BILL = 0.5
# A reservation is rarely used to the last hour; a tenth of the bill is more than is saved by planning its end.
WORTH_SAYING = 0.1


def unused_capacity(run: Run, cost: CostBlock) -> Iterator[str]:
    """Sentences on what makes up much of the cost and is not used; none without a price."""
    if cost.total_usd is None:
        return
    usd = {line.line: float(line.usd) for line in cost.lines}
    total = cost.total_usd.p50
    idle, unused = usd.get(SPARES_LINE, 0.0), usd.get(COMMITMENT_LINE, 0.0)
    if idle > MOST_OF_THE_BILL * total:
        yield f"{_idle(run)} stand idle: {_of_total(idle, cost.total_usd)}; smaller instances cost less where they are sold."
    if unused > WORTH_SAYING * total:
        yield (
            f"{_of_total(unused, cost.total_usd)} pay for the part of the commitment that the run does not use: terms of"
            f" {run.billing.term_hours:,.0f} h are paid in full."
        )


def overhead_warnings(request: Mapping[str, Any], run: Run, total_usd: Range | None) -> Iterator[str]:
    """The warning that a request states no overhead, where the run costs enough for it to matter or its cost is not known."""
    least = default("overhead.worth_a_warning_from_usd").value
    if not request.get("overhead") and not overhead_share(run) and (total_usd is None or total_usd.p50 >= least):
        yield "the cost is that of the run alone: evaluation, debugging, re-runs and people come on top; state overhead and personnel"


def _idle(run: Run) -> str:
    """The idle accelerators of those rented."""
    idle, size = idle_accelerators(run), run.billing.instance_size
    rented = run.cluster.count + idle
    return f"{idle:,} of the instance's {size:,} accelerators" if rented == size else f"{idle:,} of {rented:,} rented accelerators"


def _of_total(usd: float, total: Range) -> str:
    return f"{money(usd)} of {money(total.p50)}"
