"""Vultr: plans of virtual machines and of bare metal, with the places where each can be ordered.

GET /v2/plans and /v2/plans-metal (https://www.vultr.com/api/) answer without a key. A plan of type `vcg` states its GPU and memory, which
may be a fraction of one; `vdm` and bare metal may state neither and are known by their names: data/vultr_plans.csv.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from providers.base import RemoteProvider
from providers.common import MAX_PAGES, isolate_part
from providers.offer import Fetched, Pricing, ProviderError
from providers.row_parsing import (
    BadRow,
    OfferCollector,
    SkippedRow,
    expect_object,
    get_count,
    get_decimal,
    get_text,
    get_texts,
    get_usd,
    list_at,
)
from providers.tables import read_table

PARTS = (("plans", {"type": "all", "per_page": "500"}), ("plans-metal", {"per_page": "500"}))
PRICES: tuple[tuple[Pricing, str, str], ...] = (
    ("on_demand", "hourly_cost", "deploy_ondemand"),
    ("spot", "hourly_cost_preemptible", "deploy_preemptible"),
)


class Vultr(RemoteProvider):
    """Vultr's cloud GPUs and bare metal."""

    name = "vultr"
    home = "https://api.vultr.com"
    fresh_for = timedelta(hours=6)

    def fetch(self) -> Fetched:
        """All plans with accelerators. Raises ProviderError."""
        collector = self.collector()
        for path, params in PARTS:
            with isolate_part(collector, path):
                self._read_pages(path, params, collector)
        return collector.fetched()

    def _read_pages(self, path: str, params: Mapping[str, str], collector: OfferCollector) -> None:
        cursor = ""
        for _ in range(MAX_PAGES):
            answer = self.get_json(f"/v2/{path}", **params, **({"cursor": cursor} if cursor else {}))
            read(answer, path.replace("-", "_"), collector)
            cursor = _next(answer)
            if not cursor:
                return
        raise ProviderError(f"vultr: {path} has more than {MAX_PAGES} pages")


def read(answer: object, key: str, collector: OfferCollector) -> None:
    """Add the offers of one page, whose plans are under `key`."""
    for plan in list_at(answer, key):
        with collector.row(plan.get("id") if isinstance(plan, dict) else plan):
            name = get_text(plan, "id")
            gpu_type, count = _gpus(plan, name)
            model = _models().get(gpu_type, {"model": gpu_type.partition("_")[2], "memory_gb": ""})
            accelerator = collector.accelerator(model["model"], float(model["memory_gb"]) if model["memory_gb"] else None)
            for pricing, cost, flag in PRICES:
                with collector.row(f"{name} {pricing}"):
                    sold = (name, accelerator, count, pricing, _price(plan, cost, flag))
                    collector.add_in_regions(get_texts(plan, "locations"), *sold, availability="offered")


def _next(answer: object) -> str:
    """Cursor of the next page, empty on the last; short answers have no `meta`."""
    links = expect_object(expect_object(expect_object(answer, "the answer").get("meta", {}), "meta").get("links", {}), "meta.links")
    cursor = links.get("next") or ""
    if not isinstance(cursor, str):
        raise ProviderError("vultr: meta.links.next is no text")
    return cursor


def _gpus(plan: Mapping[str, Any], name: str) -> tuple[str, int]:
    """Vultr's name of the GPU, and the number of whole GPUs."""
    known = _plans().get(name)
    if plan.get("gpu_type"):
        gpu_type = get_text(plan, "gpu_type")
        return gpu_type, get_count(plan, "gpu_count") if "gpu_count" in plan else _whole_gpus(plan, gpu_type)
    if known:
        return known["gpu_type"], int(known["count"])
    if plan.get("type") in ("vcg", "vdm") or "gpu" in name:
        raise BadRow("states no gpu_type, and the name is not in vultr_plans.csv")
    raise SkippedRow("no accelerator")


def _whole_gpus(plan: Mapping[str, Any], gpu_type: str) -> int:
    """Number of GPUs by memory: a plan with less memory than one GPU has a fraction of it."""
    if gpu_type not in _models():
        raise BadRow(f"{gpu_type} is not in vultr_models.csv, so the number of GPUs of the plan is unknown")
    total, one = get_decimal(plan, "gpu_vram_gb"), Decimal(_models()[gpu_type]["memory_gb"])
    if 0 < total < one:
        raise SkippedRow("a fraction of a GPU")
    if total <= 0 or total % one:
        raise BadRow(f"gpu_vram_gb is {total}, no multiple of the {one} GB of one {gpu_type}")
    return int(total / one)


def _price(plan: Mapping[str, Any], cost: str, flag: str) -> Decimal:
    if plan.get(flag) is False:
        raise SkippedRow(f"{flag} is false")
    if cost != "hourly_cost" and not plan.get(cost):
        raise SkippedRow("not sold as spot")
    return get_usd(plan, cost, get_usd(plan, "hourly_cost"))


@functools.cache
def _models() -> Mapping[str, Mapping[str, str]]:
    return {row["gpu_type"]: row for row in read_table("vultr_models.csv")}


@functools.cache
def _plans() -> Mapping[str, Mapping[str, str]]:
    return {row["plan"]: row for row in read_table("vultr_plans.csv")}
