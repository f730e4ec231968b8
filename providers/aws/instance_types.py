"""Accelerators of EC2 instance types: from the project's table first, then from EC2's description.

The table comes first because the description has errors: p5e and p5en named their GPU "NVIDIA", fractional GPUs count 0 or 1, and
Trainium2's memory is five times too large.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from providers.aws.model import Hardware
from providers.catalog_files.naming import shape_of
from providers.row_parsing import OfferCollector, SkippedRow, get_count, get_first, get_list, get_object, get_text, parse_decimal

MIB_PER_GIB = 1024


def accelerator_of(instance_type: str, described: Mapping[str, Hardware], collector: OfferCollector) -> tuple[str, int]:
    """Canonical accelerator of an instance type and their number. Raises SkippedRow where it has none that is known."""
    shape = shape_of("aws", instance_type)
    if shape is not None and shape.reason:
        raise SkippedRow(shape.reason)
    if shape is not None:
        return collector.accelerator(shape.accelerator), int(shape.count)
    if instance_type not in described:
        raise SkippedRow(f"accelerator not known: {instance_type}")
    hardware = described[instance_type]
    return collector.accelerator(hardware.label, hardware.memory_gib), hardware.count


def is_known(instance_type: str, described: Mapping[str, Hardware]) -> bool:
    """Whether the table or EC2 describes the type."""
    return instance_type in described or shape_of("aws", instance_type) is not None


def parse(rows: Iterable[object], collector: OfferCollector) -> dict[str, Hardware]:
    """Hardware of `DescribeInstanceTypes` by type, without types that have neither GPU nor Neuron device."""
    found: dict[str, Hardware] = {}
    for row in rows:
        with collector.row(f"DescribeInstanceTypes {_named(row)}"):
            if _has(row, "GpuInfo") or _has(row, "NeuronInfo"):
                found[get_text(row, "InstanceType")] = _hardware(row)
    return found


def parse_offerings(rows: Iterable[object], collector: OfferCollector) -> dict[str, tuple[str, ...]]:
    """Zones of `DescribeInstanceTypeOfferings` by type: where it can be ordered, which is not yet stock."""
    zones: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        with collector.row(f"DescribeInstanceTypeOfferings {_named(row)}"):
            name, zone = get_text(row, "InstanceType"), get_text(row, "Location")
            zones[name].add(zone)
    return {name: tuple(sorted(found)) for name, found in zones.items()}


def _hardware(row: object) -> Hardware:
    has_capacity_blocks = "capacity-block" in get_list(row, "SupportedUsageClasses")
    if _has(row, "GpuInfo"):
        device = get_first(get_object(row, "GpuInfo"), "Gpus")
        memory = float(parse_decimal(get_object(device, "MemoryInfo").get("SizeInMiB"), "SizeInMiB") / MIB_PER_GIB)
        return Hardware(get_text(device, "Name"), memory, get_count(device, "Count"), has_capacity_blocks)
    device = get_first(get_object(row, "NeuronInfo"), "NeuronDevices")
    return Hardware(get_text(device, "Name"), None, get_count(device, "Count"), has_capacity_blocks)


def _has(row: object, name: str) -> bool:
    return isinstance(row, dict) and bool(row.get(name))


def _named(row: object) -> str:
    return str(row.get("InstanceType", "")) if isinstance(row, dict) else ""
