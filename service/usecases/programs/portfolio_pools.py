"""Pools of a portfolio: those that all programs share, the own ones of a program, and which pool each run takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from service.domain.errors import InvalidRequest, UnknownName
from service.domain.schedule import AcceleratorPool, ActivityNetwork
from service.presets.hardware.accelerators import find_accelerator
from service.usecases.programs.estimates import Request
from service.usecases.programs.resolve import ResolvedProgram
from service.usecases.programs.runs import merge_requests


def name_pools(pools: Sequence[Request]) -> list[dict[str, Any]]:
    """The stated pools, each with a name: its own, else the accelerator with provider and region. Raises UnknownName."""
    for index, pool in enumerate(pools):
        try:
            find_accelerator(pool["accelerator"])
        except UnknownName as problem:
            raise UnknownName(problem.message, f"/pools/{index}/accelerator", problem.near) from problem
    return [{**pool, "name": pool.get("name") or _default_name(pool)} for pool in pools]


def place_runs(program: Request, pools: Sequence[Request], pointer: str) -> dict[str, Any]:
    """The program's request with the shared pools, and with the pool of every run that a quota decides.

    Raises InvalidRequest for a pool of the program that is called as a shared one, and for runs that could take several quotas.
    """
    own = program.get("pools", ())
    names = {pool["name"] for pool in pools}
    for index, pool in enumerate(own):
        if _pool_name(pool) in names:
            raise InvalidRequest(
                "a pool of the portfolio has this name: give the program's own pool another name", f"{pointer}/pools/{index}"
            )
    shared = [{name: value for name, value in pool.items() if name not in ("provider", "region")} for pool in pools]
    tiers = [
        {**tier, "runs": [_placed(program, run, pools, f"{pointer}/tiers/{at}/runs/{place}") for place, run in enumerate(tier["runs"])]}
        for at, tier in enumerate(program["tiers"])
    ]
    together = [*shared, *own]
    return {**program, "tiers": tiers, **({"pools": together} if together else {})}


def join_pools(
    programs: Mapping[str, ResolvedProgram], shared: Sequence[Request]
) -> tuple[dict[str, AcceleratorPool], dict[str, dict[str, str]]]:
    """All pools by name, and by program the name of each of its pools among them.

    A pool that a program states itself is its alone. Of one that nobody states the largest machine of any program is shared.
    """
    pools: dict[str, AcceleratorPool] = {}
    names: dict[str, dict[str, str]] = {}
    stated = {pool["name"] for pool in shared}
    for program, resolved in programs.items():
        own = {_pool_name(pool) for pool in resolved.request.get("pools", ())} - stated
        names[program] = {pool.name: f"{program}: {pool.name}" if pool.name in own else pool.name for pool in resolved.program.pools}
        for pool in resolved.program.pools:
            joint = names[program][pool.name]
            known = pools.get(joint)
            if known is None or _size(pool) > _size(known):
                pools[joint] = replace(pool, name=joint)
    return pools, names


def rename_pools(network: ActivityNetwork, names: Mapping[str, str]) -> ActivityNetwork:
    """The network with its activities on the portfolio's pools."""
    return replace(network, activities=tuple(replace(one, pool=names[one.pool]) if one.pool else one for one in network.activities))


def _placed(program: Request, run: Request, pools: Sequence[Request], pointer: str) -> Request:
    """The run with its pool, where quotas of its accelerator are stated and it names none."""
    whole = merge_requests(program.get("defaults", {}), run["estimate"])
    accelerator = whole.get("hardware", {}).get("accelerator")
    if "pool" in run or accelerator is None:
        return run
    try:
        known = find_accelerator(accelerator).accelerator.name
    except UnknownName:
        return run  # Its estimate says so, with the place.
    own = {find_accelerator(pool["accelerator"]).accelerator.name for pool in program.get("pools", ())}
    fitting = {pool["name"]: pool for pool in pools if find_accelerator(pool["accelerator"]).accelerator.name == known}
    price = whole.get("price", {})
    exact = [name for name, pool in fitting.items() if _is_quota_of(pool, price)]
    found = exact or [name for name, pool in fitting.items() if "provider" not in pool and "region" not in pool]
    if not fitting or known in own:
        return run
    if len(found or fitting) > 1:
        text = f"pools {', '.join(found or fitting)} hold {known}: state pool, or price.provider and price.region"
        raise InvalidRequest(text, f"{pointer}/pool")
    return {**run, "pool": next(iter(found or fitting))}


def _is_quota_of(pool: Request, price: Request) -> bool:
    """Whether a pool states the provider or region that the run is priced in, and nothing else."""
    stated = [name for name in ("provider", "region") if name in pool]
    return bool(stated) and all(pool[name] == price.get(name) for name in stated)


def _pool_name(pool: Request) -> str:
    """The name of a program's own pool."""
    return pool.get("name") or find_accelerator(pool["accelerator"]).accelerator.name


def _default_name(pool: Request) -> str:
    accelerator = find_accelerator(pool["accelerator"]).accelerator.name
    return " ".join([accelerator, *(pool[name] for name in ("provider", "region") if name in pool)])


def _size(pool: AcceleratorPool) -> int:
    return sum(share.count for share in pool.shares)
