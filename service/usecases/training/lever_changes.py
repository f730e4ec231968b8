"""The single changes of a request that are tried as levers, by kind. Texts and figures are in `service.presets.training.levers`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from providers.offer import Offer
from service.context import AppContext
from service.domain.training.hardware import Accelerator
from service.domain.training.model import Model, Transformer
from service.domain.training.run import Cluster
from service.engine.training.parameters import total_parameters
from service.presets.hardware.accelerators import find_accelerator, load_accelerators
from service.presets.hardware.regions import region_of_offer
from service.presets.training.levers import LeverKind
from service.prices.catalog import PriceBook
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.cluster import resolve_cluster
from service.usecases.resolution.model import resolve_model
from service.usecases.resolution.offer_choice import choose_offer, connected_offers, is_outdated
from service.usecases.resolution.price import Price, find_cheapest, find_eligible_offers, require_priced
from service.usecases.resolution.training import stated_ranks
from service.usecases.training.estimate import EstimateAnswer

Given = Mapping[str, Any]
Change = dict[str, Any]
COMMITMENTS = ("reserved_1y", "reserved_3y", "reserved")
# Fields that belong to one machine, model or region.
MACHINE_FIELDS = ("hardware.accelerators_per_node", "hardware.inter_node_gbps", "hardware.power_limit_w", "energy.watts_per_accelerator")
MODEL_FIELDS = ("training.seq_len", "training.global_batch_tokens")
REGION_FIELDS = ("energy.region", "energy.grid_gco2_per_kwh", "energy.pue")


@dataclass(frozen=True)
class LeverBase:
    """The request and estimate that levers start from."""

    context: AppContext
    request: Given
    answer: EstimateAnswer

    @cached_property
    def model(self) -> Model:
        """The trained model."""
        ranks = stated_ranks(self.request.get("training", {}))
        return resolve_model(self.request["model"], AssumptionLog(), ranks=ranks)[0]

    @cached_property
    def accelerator(self) -> Accelerator:
        """The accelerator."""
        return find_accelerator(self.request["hardware"]["accelerator"]).accelerator

    @property
    def book(self) -> PriceBook:
        """The price book of the estimate."""
        return self.context.book(self.answer.price_snapshot)

    @property
    def price(self) -> Price:
        """The price of the estimate, which has one."""
        return require_priced(self.answer.price)

    @property
    def rents(self) -> bool:
        """Whether the price is an offer's, not the caller's own."""
        return self.price.provider is not None

    @property
    def pretrains_text(self) -> bool:
        """Whether a language model is trained from scratch: published savings of tokens are of these."""
        text = isinstance(self.model, Transformer) and self.model.kind == "transformer"
        return text and self.chosen("training.method") == "pretrain"

    @property
    def dense(self) -> bool:
        """Whether the model has no experts."""
        return isinstance(self.model, Transformer) and self.model.experts is None

    def given(self, path: str) -> Any:
        """The caller's value at a path of two names, or None."""
        section, _, name = path.partition(".")
        return self.request.get(section, {}).get(name)

    def chosen(self, path: str) -> Any:
        """The run's value at that path: stated, else assumed."""
        stated = self.given(path)
        return next((each.value for each in self.answer.assumptions if each.field == path), None) if stated is None else stated

    def unset(self, *paths: str) -> Change:
        """The change that unsets what the caller stated at these paths."""
        return dict.fromkeys(path for path in paths if self.given(path) not in (None, "auto"))

    def tokens(self, share: float) -> Change:
        """The change to a share of the training data."""
        name = next(name for name in ("tokens", "raw_tokens", "samples") if name in self.request["data"])
        return {f"data.{name}": max(1, round(self.request["data"][name] * share))}

    def offers(self, accelerator: str, **filters: str | None) -> list[Offer]:
        """Offers of an accelerator that match the caller's filter with these changes."""
        return find_eligible_offers({**self.request.get("price", {}), **filters}, accelerator, self.book)

    @cached_property
    def cluster(self) -> Cluster:
        """The machine, in the data sheet's network."""
        return resolve_cluster(find_accelerator(self.request["hardware"]["accelerator"]), self.request["hardware"], AssumptionLog())

    def fresh(self, offers: Sequence[Offer]) -> Sequence[Offer]:
        """Those whose prices are not stale; all where there is none."""
        now = self.context.clock()
        return [offer for offer in offers if not is_outdated(offer, self.book, now)] or offers

    def least_costly(self, offers: Sequence[Offer]) -> Offer:
        """The offer on which the run costs least."""
        return choose_offer(self.context, self.request, self.cluster, offers, self.book).offer


Changes = Callable[[LeverBase, LeverKind], Iterator[Change]]


def changes(base: LeverBase, kind: LeverKind) -> Iterator[Change]:
    """Candidate changes of a kind: values by path, None to unset. Whether one saves anything is judged by its estimate."""
    if kind.modelled and any(value is not None for value in base.request.get("efficiency", {}).values()):
        return iter(())
    return _CHANGES[kind.name](base, kind)


def _precision(base: LeverBase, kind: LeverKind) -> Iterator[Change]:
    """Precisions in which the accelerator has a higher peak."""
    peaks = base.accelerator.peak_tflops
    for precision in kind.figures["precisions"]:
        if peaks.get(precision, 0) > peaks[base.chosen("training.precision")]:
            yield {"training.precision": precision}


def _unset(*paths: str) -> Changes:
    """Unset the fields that the caller stated."""

    def change(base: LeverBase, kind: LeverKind) -> Iterator[Change]:
        del kind
        found = base.unset(*paths)
        if found:
            yield found

    return change


def _batch(base: LeverBase, kind: LeverKind) -> Iterator[Change]:
    tokens = base.chosen("training.global_batch_tokens")
    if tokens:  # a step of reinforcement learning is stated by its answers
        yield {"training.global_batch_tokens": int(tokens * kind.figures["factor"])}


def _optimizer(base: LeverBase, kind: LeverKind) -> Iterator[Change]:
    if base.pretrains_text and base.chosen("training.optimizer") in ("adamw", "adamw_8bit"):
        yield {"training.optimizer": "muon"} | base.tokens(kind.figures["tokens_share"])


def _optimizer_memory(base: LeverBase, kind: LeverKind) -> Iterator[Change]:
    del kind
    if base.chosen("training.optimizer") == "adamw":
        yield {"training.optimizer": "adamw_8bit"}


def _asynchronous_checkpoints(base: LeverBase, kind: LeverKind) -> Iterator[Change]:
    if base.chosen("failures.checkpoint_blocking_share") > kind.figures["blocking_share"]:
        yield {"failures.checkpoint_blocking_share": kind.figures["blocking_share"]}


def _spot(base: LeverBase, kind: LeverKind) -> Iterator[Change]:
    del kind
    if base.rents and base.price.pricing != "spot":
        yield {"price.pricing": "spot"} | base.unset("failures.preemptions_per_node_hour")


def _commitment(base: LeverBase, kind: LeverKind) -> Iterator[Change]:
    del kind
    for pricing in COMMITMENTS:
        if base.rents and base.price.pricing != pricing:
            yield {"price.pricing": pricing}


def _region(base: LeverBase, kind: LeverKind) -> Iterator[Change]:
    """The offer on which the run costs least anywhere, and that on the cleanest grid, of fresh prices while there are any."""
    del kind
    if not base.rents:
        return
    offers = base.fresh(base.offers(base.accelerator.name, provider=None, region=None))
    grids = [region_of_offer(offer.provider, offer.region).grid_gco2_per_kwh for offer in offers]
    clean = [offer for offer, grid in zip(offers, grids, strict=True) if grid == min(grids)]
    for offer in (base.least_costly(each) for each in (offers, clean)):
        if (offer.provider, offer.region) != (base.price.provider, base.price.region):
            yield {"price.provider": offer.provider, "price.region": offer.region} | base.unset(*REGION_FIELDS)


def _accelerator(base: LeverBase, kind: LeverKind) -> Iterator[Change]:
    """The priced accelerators with the highest peak per dollar, and with the highest peak."""
    if not base.rents:
        return
    precision, count = base.chosen("training.precision"), base.request["hardware"]["count"]
    rates: dict[str, tuple[float, float]] = {}
    for name, accelerator in load_accelerators().items():
        offer = find_cheapest(connected_offers(base.offers(name), replace(base.cluster, accelerator=accelerator)), count)
        if offer is not None and name != base.accelerator.name and precision in accelerator.peak_tflops:
            peak = accelerator.peak_tflops[precision]
            rates[name] = (peak / float(offer.usd_per_accelerator_hour), peak)
    promising = [name for by in (0, 1) for name in sorted(rates, key=lambda name: -rates[name][by])[: kind.figures["tried"]]]
    for name in dict.fromkeys(promising):
        yield {"hardware.accelerator": name} | base.unset(*MACHINE_FIELDS)


def _experts(base: LeverBase, kind: LeverKind) -> Iterator[Change]:
    """A mixture of experts on the same sequences and batch."""
    if not (base.pretrains_text and base.dense):
        return
    params = total_parameters(base.model)
    if params >= kind.figures["least_params"]:
        whole, active = (int(params * kind.figures[name]) for name in ("params_factor", "active_share"))
        assumed = {path: base.chosen(path) for path in MODEL_FIELDS if base.given(path) is None}
        yield {"model": {"params": whole, "active_params": active}} | assumed


def _distillation(base: LeverBase, kind: LeverKind) -> Iterator[Change]:
    """Distillation with a share of the tokens, but not below the published minimum."""
    if not base.pretrains_text:
        return
    params, figures = total_parameters(base.model), kind.figures
    share = max(figures["tokens_share"], figures["least_tokens"] / base.answer.estimate.tokens.trained)
    if params <= figures["most_params"] and share < 1:
        teacher = {"params": int(params * figures["teacher_factor"])}
        yield {"training.method": "distill", "training.teacher": teacher} | base.tokens(share)


def _adapters(method: str) -> Changes:
    def change(base: LeverBase, kind: LeverKind) -> Iterator[Change]:
        del kind
        if base.given("training.method") in ("full_finetune", "lora") and base.given("training.method") != method:
            yield {"training.method": method}

    return change


def _progressive_growing(base: LeverBase, kind: LeverKind) -> Iterator[Change]:
    if base.pretrains_text and base.dense and total_parameters(base.model) <= kind.figures["most_params"]:
        yield base.tokens(kind.figures["tokens_share"])


_CHANGES: Mapping[str, Changes] = {
    "precision": _precision,
    "precision_16_bit": _precision,
    "recomputation": _unset("training.activation_recompute"),
    "layout": _unset("training.parallelism", "training.micro_batch", "training.zero_stage"),
    "batch": _batch,
    "optimizer": _optimizer,
    "optimizer_memory": _optimizer_memory,
    "checkpoint_interval": _unset("failures.checkpoint_interval_minutes"),
    "checkpoint_asynchronous": _asynchronous_checkpoints,
    "spot": _spot,
    "commitment": _commitment,
    "region": _region,
    "accelerator": _accelerator,
    "experts": _experts,
    "distillation": _distillation,
    "adapters": _adapters("lora"),
    "adapters_quantised": _adapters("qlora"),
    "progressive_growing": _progressive_growing,
}
