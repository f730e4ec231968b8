"""The machine of a request: accelerators, nodes and the network between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.domain.errors import InvalidRequest
from service.domain.training.hardware import Accelerator
from service.domain.training.run import Cluster
from service.presets.defaults import default
from service.presets.hardware.accelerators import ResolvedAccelerator
from service.presets.hardware.networks import find_network, network_note, node_gbit_per_s
from service.presets.hardware.power_limits import load_power_limits
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.price import Price

Section = Mapping[str, Any]


def resolve_cluster(found: ResolvedAccelerator, given: Section, notes: AssumptionLog, price: Price | None = None) -> Cluster:
    """The cluster of `hardware`. Its network is the stated one, else that of the priced instance, else the data sheet's."""
    accelerator = found.accelerator
    if found.ambiguous_with:
        notes.assume("hardware.accelerator", accelerator.name, ambiguity_text(found))
    per_node = notes.take(given, "hardware.accelerators_per_node", accelerator.accelerators_per_node, accelerator.source)
    rate = given.get("inter_node_gbps")
    if rate is None:
        rate, source = _inter_node_gbps(accelerator, per_node, price)
        if rate and given["count"] > per_node:
            notes.assume("hardware.inter_node_gbps", rate, source)
    return Cluster(accelerator, given["count"], per_node, rate / per_node, power_share(accelerator, given))


def power_share(accelerator: Accelerator, given: Section) -> float:
    """Power limit of `hardware` over the accelerator's TDP [1]. Raises InvalidRequest where it is not between what is measured and 1."""
    limit, tdp = given.get("power_limit_w"), accelerator.tdp_w
    if limit is None:
        return 1.0
    if tdp is None:
        raise InvalidRequest(f"no TDP of {accelerator.name} is published: what a limit does to it is not known", "/hardware/power_limit_w")
    least = load_power_limits()[0].share
    if not least * tdp <= limit <= tdp:
        raise InvalidRequest(
            f"{limit:g} W cannot be the limit of {accelerator.name}: take {least * tdp:g} W, the lowest share of the TDP that is measured,"
            f" to {tdp:g} W, the TDP",
            "/hardware/power_limit_w",
        )
    return float(limit / tdp)


def ambiguity_text(found: ResolvedAccelerator) -> str:
    """Text of what else an accelerator's name may mean, and why this meaning is taken."""
    return f"{found.requested} may also mean {', '.join(found.ambiguous_with)}; {found.why}"


def _inter_node_gbps(accelerator: Accelerator, per_node: int, price: Price | None) -> tuple[float, str]:
    """Network of a node [Gbit/s] and its source: the priced instance's, scaled to the node, else the data sheet's."""
    rate, source = data_sheet_inter_node_gbps(accelerator, per_node)
    if price is None or price.provider is None or price.instance_type is None:
        return rate, source
    sold = find_network(price.provider, price.instance_type, accelerator.name)
    note = network_note(price.provider, price.instance_type, sold)
    if sold is None:
        return rate, f"{note} ({source})"
    return node_gbit_per_s(sold.gbit_per_s_per_instance, price.accelerators_per_instance, per_node), note


def data_sheet_inter_node_gbps(accelerator: Accelerator, per_node: int) -> tuple[float, str]:
    """Network of a node by the data sheet [Gbit/s] and its source; 0 where only a link that spans nodes is published.

    Without either, the default card of `defaults.toml` is assumed.
    """
    if accelerator.internode_gbit_per_s is not None:
        return accelerator.internode_gbit_per_s * per_node, accelerator.source
    if accelerator.link_gb_per_s is not None:
        return 0.0, accelerator.source
    usual = default("hardware.inter_node_gbit_per_s_per_accelerator")
    return usual.value * per_node, usual.source
