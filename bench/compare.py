"""Comparisons: over the shipped prices as users ask for them, over a large catalogue, at the edge of what is allowed; beside gpuhunt."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from bench.harness import SERVICE, loaded, median_s, offline_client, offline_context, post_cpu_s, report
from providers.offer import Offer

if TYPE_CHECKING:
    from flask.testing import FlaskClient

WORKLOAD: dict[str, Any] = {
    "model": {"params": "7B"},
    "data": {"tokens": "1T"},
    "training": {"method": "pretrain", "seq_len": 4096, "precision": "bf16"},
}
# Every matching offer of three accelerators in four counts.
NAMES = ("NVIDIA-H100-80GB-SXM", "NVIDIA-A100-80GB-SXM", "NVIDIA-H200-141GB-SXM")
COUNTS = (32, 64, 128, 256)
REQUEST: dict[str, Any] = {"workload": WORKLOAD, "candidates": {"accelerators": list(NAMES), "counts": list(COUNTS)}}
# As many rows as gpuhunt's published catalogues had on the machine these benchmarks were written on.
LARGE_ROWS = 41_722
# Rows a second of gpuhunt 0.1.34 there, each query the median of 15: over the shipped prices (675 of 5,841 rows found, 12.6 ms), over the
# large catalogue (all 41,722 found, 116 ms). Taken where gpuhunt is not installed.
GPUHUNT_OFFERS_PER_S = {"shipped": 53_700.0, "large": 361_000.0}
DENSE, EXPERTS = {"preset": "llama-2-7b"}, {"preset": "deepseek-v3"}
MANY_EXPERTS = {
    "layers": 720,
    "hidden_size": 7680,
    "attention_heads": 240,
    "experts": 720,
    "experts_per_token": 8,
    "expert_ffn_hidden_size": 256,
}
PLANT = {"accelerator": "H100", "count": 128, "capex_usd_per_accelerator": 32000}


@dataclass(frozen=True)
class Book:
    """A catalogue of one book."""

    current: Any

    def book(self, name: str | None = None, team: str | None = None) -> Any:
        """That book, by whatever name and for whatever team."""
        del name, team
        return self.current


def compare(environment: dict[str, str]) -> None:
    """All of it; the service with one worker and one client, so that it has one core."""
    served = {
        "compare": itertools.repeat(json.dumps(REQUEST).encode()),
        "compare_other_tokens": varied("data", "tokens", 10**12),
        "compare_never_asked_before": varied("training", "input_tokens_per_s_per_node", 10**11),
    }
    for name, bodies in served.items():
        result = loaded(SERVICE, "/v1/compare", environment, [bodies], workers=1)
        report(f"{name}.p50_ms", result["p50_ms"], "ms, one worker, one client")
        report(f"{name}.p99_ms", result["p99_ms"], "ms")
        report(f"{name}.cpu_ms", result["cpu_ms"], "ms")
    rates()
    worst_cases()


def varied(section: str, field: str, above: int) -> Iterator[bytes]:
    """The request again and again, each time with another figure: other tokens, or other pipelines, for which layouts are searched anew."""
    while True:
        changed = WORKLOAD[section] | {field: above + time.monotonic_ns() % above}
        yield json.dumps(REQUEST | {"workload": WORKLOAD | {section: changed}}).encode()


def rates() -> None:
    """Offers a second without the service around it, and those of gpuhunt over the same rows."""
    from service.prices.book import make_price_book
    from service.schemas.comparison.request import CompareRequestSchema
    from service.usecases.comparison.compare import compare as usecase

    request = CompareRequestSchema().load(REQUEST)
    with offline_context() as context:
        shipped = context.catalog.current
        books = {"shipped": shipped, "large": make_price_book("large", repeated(shipped.offers), timedelta(days=180))}
        for name, book in books.items():
            at = replace(context, catalog=Book(book))
            considered = usecase(at, request).considered
            offers_per_s = considered / median_s(lambda at=at: usecase(at, request))
            report(f"compare_{name}.considered", considered, "offers in counts")
            report(f"compare_{name}.rows", len(book.offers), "offers in the book")
            by_one, by_many = gpuhunt_offers_per_s(name, book.offers)
            report(f"compare_{name}.offers_per_s", offers_per_s, "1/s", "gpuhunt, one query", by_one)
            if name == "shipped":
                report(f"compare_{name}.offers_per_s", offers_per_s, "1/s", "gpuhunt, a query for each accelerator and count", by_many)


def repeated(offers: Sequence[Offer]) -> list[Offer]:
    """The list prices of the three accelerators, again and again in other regions, until they are as many as in a large catalogue."""
    own = [offer for offer in offers if offer.accelerator in NAMES and offer.market == "list"]
    rounds = (replace(offer, region=f"{offer.region}-{again}") for again in itertools.count() for offer in own)
    return list(itertools.islice(rounds, LARGE_ROWS))


def gpuhunt_offers_per_s(name: str, offers: Sequence[Offer]) -> tuple[float, float]:
    """Offers that gpuhunt finds a second: in one query for all accelerators, and in one for each accelerator and count.

    The second finds each offer once for each count, as a comparison does.
    """
    with suppress(ImportError):
        find = gpuhunt_query(offers)
        found = len(find(list(NAMES)))
        by_one = found / median_s(lambda: find(list(NAMES)))
        return by_one, len(COUNTS) * found / median_s(lambda: [find([accelerator]) for accelerator in NAMES for _ in COUNTS])
    return GPUHUNT_OFFERS_PER_S[name], GPUHUNT_OFFERS_PER_S[name] / len(NAMES)


def gpuhunt_query(offers: Sequence[Offer]) -> Callable[[list[str]], list[Any]]:
    """gpuhunt's own query over these offers as its catalogues hold them, sorted by price and spread over its providers; no network."""
    from gpuhunt import AcceleratorVendor, Catalog, CatalogItem
    from gpuhunt._internal.catalog import OFFLINE_PROVIDERS, ProviderCatalog

    held: dict[str, list[Any]] = {name: [] for name in OFFLINE_PROVIDERS}
    sellers = {name: at % len(held) for at, name in enumerate(sorted({offer.provider for offer in offers}))}
    for offer in sorted(offers, key=lambda offer: offer.usd_per_hour):
        provider = OFFLINE_PROVIDERS[sellers[offer.provider]]
        held[provider].append(
            CatalogItem(
                provider=provider,
                instance_name=offer.instance_type,
                location=offer.region,
                price=float(offer.usd_per_hour),
                cpu=0,
                memory=0.0,
                gpu_count=offer.accelerator_count,
                gpu_name=offer.accelerator,
                gpu_memory=80.0,
                spot=offer.pricing == "spot",
                disk_size=None,
                gpu_vendor=AcceleratorVendor.NVIDIA,
            )
        )
    catalog = Catalog(auto_reload=False)
    catalog.catalog = {name: ProviderCatalog("1", items) for name, items in held.items()}
    catalog.loaded_at = time.monotonic()
    return lambda names: catalog.query(gpu_name=names)


def worst_cases() -> None:
    """CPU of the costliest comparisons that are taken, with nothing searched before."""
    with offline_client() as client:
        for name, request in worst_requests(client).items():
            spent_s, answer = post_cpu_s(client, "/v1/compare", request)
            report(f"compare_worst_case.{name}.cpu_ms", spent_s * 1e3, "ms")
            report(f"compare_worst_case.{name}.considered", answer["considered"], "offers in counts")


def worst_requests(client: FlaskClient) -> dict[str, dict[str, Any]]:
    """The costliest comparisons by name."""
    from service.usecases.comparison.compare import MAX_WORK
    from service.usecases.comparison.timed_configurations import resolve_workload, search_weight

    known = sorted({offer.accelerator for offer in client.application.extensions["context"].catalog.current.offers})
    many_experts = resolve_workload(None, {"model": MANY_EXPERTS, "data": {"tokens": 1}}, "").model[0]
    plants = [PLANT | {"name": f"plant {index}"} for index in range(20)]
    variants = [{"name": f"variant {index}", "workload": {"data": {"tokens": 10**12 + index}}} for index in range(8)]
    return {
        "all_accelerators": asked(DENSE, {}),
        "all_accelerators_of_experts": asked(EXPERTS, {}),
        "most_experts": asked(MANY_EXPERTS, {"accelerators": known[: MAX_WORK // search_weight(many_experts)], "counts": [20160]}),
        "many_counts": asked(DENSE, {"accelerators": ["H100"], "counts": [720 * size for size in range(1, 33)]}) | {"variants": variants},
        "limit_1000_20_plants": asked(DENSE, {"accelerators": list(NAMES)}) | {"limit": 1000, "on_prem": plants},
    }


def asked(model: dict[str, Any], candidates: dict[str, Any]) -> dict[str, Any]:
    """A request at the edge: long sequences, on these candidates."""
    training = {"seq_len": 131_072, "global_batch_tokens": 2**27}
    return {"workload": {"model": model, "data": {"tokens": "10T"}, "training": training}, "candidates": candidates}
