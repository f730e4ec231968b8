"""The accelerators that a program's runs share: stated pools, and the effect of more accelerators where runs wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date

from service.domain.errors import InvalidRequest
from service.domain.programs.program import Program, Tier
from service.domain.programs.schedule import PoolEffect, PoolUse, RunWait
from service.domain.schedule import AcceleratorPool, ActivityNetwork, PoolShare
from service.engine.scheduling.activity_network import order_network
from service.engine.scheduling.calendar import HOURS_PER_DAY
from service.engine.scheduling.critical_path import forward_pass, median_durations, network_end
from service.engine.scheduling.resource_levelling import LevelledNetwork, level_resources
from service.presets.hardware.accelerators import find_accelerator
from service.usecases.programs.estimates import Request
from service.usecases.resolution.assumption_log import AssumptionLog


def resolve_pools(request: Request, tiers: Sequence[Tier], notes: AssumptionLog) -> tuple[AcceleratorPool, ...]:
    """The stated pools, and one as large as the largest machine of the program for each accelerator that none is stated for.

    Raises InvalidRequest for a pool that ends before it begins, and for runs that name no pool of theirs.
    """
    stated = dict(_stated_pools(request))
    runs = [(index, place, run) for index, tier in enumerate(tiers) for place, run in enumerate(tier.runs)]
    for index, place, run in runs:
        if run.pool not in stated and run.pool != run.accelerator:
            names = ", ".join(stated) or "none is stated"
            raise InvalidRequest(f"no pool is called {run.pool!r}; pools: {names}", f"/tiers/{index}/runs/{place}/pool")
    usual = _usual_machine(request)
    for name in dict.fromkeys(run.pool for _, _, run in runs if run.pool not in stated):
        largest = max([usual.get(name, 0), *(run.occupied for _, _, run in runs if run.pool == name)])
        stated[name] = AcceleratorPool(name, (PoolShare(largest),), find_accelerator(name).accelerator.accelerators_per_node)
        if _may_overlap(request):
            notes.assume(f"pools.{name}.count", largest, "not stated: the largest machine of the program; runs that do not fit wait")
    return tuple(stated.values())


def pool_uses(program: Program, levelled: LevelledNetwork, notes: AssumptionLog) -> tuple[PoolUse, ...]:
    """Each pool with its waits and what more accelerators save; warns of every pool that is waited for."""
    end = _median_end(levelled.network)
    uses = [_pool_use(pool, program, levelled, end) for pool in program.pools]
    for use in uses:
        _warn_of_waits(use, notes)
    for activity, pool in levelled.after_end:
        notes.warn(f"{activity} is still running when its accelerators of pool {pool} end: extend the pool, or start earlier")
    return tuple(uses)


def _stated_pools(request: Request) -> Iterator[tuple[str, AcceleratorPool]]:
    by_name: dict[str, tuple[str, list[PoolShare]]] = {}
    for index, pool in enumerate(request.get("pools", ())):
        accelerator = find_accelerator(pool["accelerator"]).accelerator.name
        first, last = pool.get("from_day"), pool.get("to_day")
        if first is not None and last is not None and last < first:
            raise InvalidRequest(f"the pool ends on {last}, before it begins on {first}", f"/pools/{index}/to")
        known, shares = by_name.setdefault(pool.get("name", accelerator), (accelerator, []))
        if known != accelerator:
            raise InvalidRequest(
                f"the pool is of {known}, not of {accelerator}: one pool holds one accelerator", f"/pools/{index}/accelerator"
            )
        shares.append(PoolShare(pool["count"], first, last))
    for name, (accelerator, shares) in by_name.items():
        yield name, AcceleratorPool(name, tuple(shares), find_accelerator(accelerator).accelerator.accelerators_per_node)


def _usual_machine(request: Request) -> Mapping[str, int]:
    """Accelerators that the program's defaults state, by name."""
    hardware = request.get("defaults", {}).get("hardware", {})
    if hardware.get("accelerator") is None or hardware.get("count") is None:
        return {}
    return {find_accelerator(hardware["accelerator"]).accelerator.name: hardware["count"]}


def _may_overlap(request: Request) -> bool:
    """Whether runs say what they wait for: others follow each other."""
    return any("after" in run for tier in request["tiers"] for run in tier["runs"])


def _pool_use(pool: AcceleratorPool, program: Program, levelled: LevelledNetwork, end_hours: float) -> PoolUse:
    waits = [wait for wait in levelled.waits if wait.pool == pool.name]

    def effect(added: int) -> PoolEffect:
        enlarged = replace(pool, shares=(*pool.shares, PoolShare(added)))
        pools = [enlarged if known is pool else known for known in program.pools]
        saved = end_hours - _median_end(level_resources(levelled.stated, pools).network)
        return PoolEffect(added, round(saved / HOURS_PER_DAY, 2))

    return PoolUse(
        pool=pool.name,
        accelerators=most_at_a_time(pool),
        waits=tuple(RunWait(wait.activity, wait.waits_for, round(wait.hours / HOURS_PER_DAY, 2)) for wait in waits),
        one_more_node=effect(pool.node) if waits else None,
        least_useful=effect(_whole_nodes(min(wait.missing for wait in waits), pool)) if waits else None,
    )


def _warn_of_waits(use: PoolUse, notes: AssumptionLog) -> None:
    if use.least_useful is None:
        return
    longest = max(use.waits, key=lambda wait: wait.days)
    others = f", and {len(use.waits) - 1} more wait" if len(use.waits) > 1 else ""
    saved = use.least_useful.days_saved
    effect = f"the program ends {saved:,.1f} days earlier" if saved > 0 else "the program ends no earlier"
    notes.warn(
        f"{longest.run} waits {longest.days:,.1f} days for {', '.join(longest.waits_for) or 'its accelerators'}{others}: they share"
        f" {use.accelerators:,} accelerators of pool {use.pool}; with {use.least_useful.added:,} more {effect}"
    )


def _whole_nodes(accelerators: int, pool: AcceleratorPool) -> int:
    return -(-accelerators // pool.node) * pool.node


def most_at_a_time(pool: AcceleratorPool) -> int:
    """The most accelerators on any day; shares may follow each other."""
    days = [share.first or date.min for share in pool.shares]
    return max(sum(one.count for one in pool.shares if (one.first or date.min) <= day and (one.last or date.max) >= day) for day in days)


def _median_end(network: ActivityNetwork) -> float:
    """End of the network with every duration at its median [h]."""
    net = order_network(network)
    return float(network_end(forward_pass(net, median_durations(net)))[0])
