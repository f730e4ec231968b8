"""The offer on which a run costs least in all: each offer's run is timed on the network of its instances, as comparisons time it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from providers.offer import Offer
from service.context import AppContext
from service.domain.prices import offer_key
from service.domain.training.run import Cluster, Run
from service.engine.comparison.offer_costs import FloatArray, OfferPrices, price_offers
from service.engine.training.energy import mwh_at
from service.engine.training.estimate import checkpoint_tb
from service.engine.training.run_time import infeasible, predict_run_times_in
from service.engine.training.search.layout_search import choose_layouts
from service.formats.headline import money
from service.presets.hardware.networks import InstanceNetwork, find_network, node_gbit_per_s
from service.presets.training.utilisation import plan_calibration
from service.prices.book import PriceBook
from service.prices.precedence import FILE_PROVIDER
from service.usecases.resolution.assumption_log import AssumptionLog
from service.usecases.resolution.cluster import data_sheet_inter_node_gbps
from service.usecases.resolution.price import describe_offer, find_cheapest
from service.usecases.resolution.run import TrainedModel, assemble_run, resolve_trained_model
from service.usecases.resolution.utilisation import resolve_utilisation

Request = Mapping[str, Any]

# What is true of the chosen offer, by whether no offer is cheaper.
_LEAST = {True: "with the lowest total cost of this run", False: "with a fresh price and the lowest total cost of this run"}

# A network that makes the run this much slower than the fastest one on offer is worth a warning.
SLOW_NETWORK = 1.1
# A stated network this far from the offer's own contradicts it.
CONTRADICTION = 1.25


@dataclass(frozen=True, slots=True)
class CheaperStale:
    """The offer with an old price on which the run would cost least, less than on the chosen one: `cost_ratio` [1] of that one's cost.

    `offers` are all that are cheaper and old.
    """

    offer: Offer
    age_days: int
    cost_ratio: float
    usd: float
    offers: int


@dataclass(frozen=True, slots=True)
class OfferChoice:
    """The offer a run is priced with, and what others would cost.

    `cost_by_provider` is the least cost of the run at each provider over that at the chosen offer [1], the chosen provider's first; stale
    prices of others are left out while there are fresh ones, so that the same providers are compared whichever is chosen.
    `cheaper_stale` is None where no stale price is lower, and where the chosen one is stale.
    `slowdown` is the run's time on the chosen offer over that on the offer of the fastest network, `fastest` [1]. `trained` is what the
    offers were timed with.
    """

    offer: Offer
    cost_by_provider: Mapping[str, float]
    slowdown: float
    fastest: Offer
    offers: int
    trained: TrainedModel
    cheaper_stale: CheaperStale | None = None


@dataclass(frozen=True, slots=True)
class _PricedOffers:
    """Offers with the run's hours [h] and cost [USD] on each; arrays have one item an offer."""

    offers: Sequence[Offer]
    gbit_per_s: FloatArray
    hours: FloatArray
    usd: FloatArray


def choose_offer(
    context: AppContext, request: Request, cluster: Cluster, offers: Sequence[Offer], book: PriceBook, others: Sequence[Offer] = ()
) -> OfferChoice:
    """The offer on which the request's run costs least at the median: fresh prices before stale, of equals the faster network.

    A price of the caller's own files is as good as a fresh one: it is what was agreed, however old its file. Instances without a cluster
    network, and parts of nodes, are taken for a job on several nodes only where nothing else is offered.

    `cluster` is the machine in the data sheet's network; `offers` are eligible, at least one; `others` are only compared with, where the
    caller's filter leaves them out. Raises DomainErrors where the request has no run.
    """
    notes, now = AssumptionLog(), context.clock()
    trained = TrainedModel(*resolve_trained_model(context, request, cluster, notes), notes)
    run = assemble_run(context, request, trained.model, trained.training, cluster, None, AssumptionLog())
    stated_gbps, own = request["hardware"].get("inter_node_gbps"), connected_offers(offers, cluster)
    priced = _price(context, run, [*own, *(connected_offers(others, cluster) if others else ())], stated_gbps)
    if priced is None:  # no layout fits: the estimate says so
        cheapest = find_cheapest(offers, cluster.count) or offers[0]
        return OfferChoice(cheapest, {cheapest.provider: 1.0}, 1.0, cheapest, len(offers), trained)
    stale = [is_outdated(offer, book, now) for offer in priced.offers]
    compared = [at for at, old in enumerate(stale) if not old] or list(range(len(stale)))
    chosen = min(range(len(own)), key=lambda at: (stale[at], *_order(priced, at)))
    fastest = min(range(len(priced.offers)), key=lambda at: (float(priced.hours[at]), *_order(priced, at)))
    return OfferChoice(
        offer=priced.offers[chosen],
        cost_by_provider=_cost_by_provider(priced, chosen, compared),
        slowdown=float(priced.hours[chosen] / priced.hours[fastest]),
        fastest=priced.offers[fastest],
        offers=len(offers),
        trained=trained,
        cheaper_stale=None if stale[chosen] else _cheaper_stale(priced, chosen, stale, now),
    )


def is_outdated(offer: Offer, book: PriceBook, now: datetime) -> bool:
    """Whether the price is stale. One of the caller's own files never is: it is what was agreed, however old its file."""
    return book.is_stale(offer, now) and book.source_provider(offer) != FILE_PROVIDER


def _cheaper_stale(priced: _PricedOffers, chosen: int, stale: Sequence[bool], now: datetime) -> CheaperStale | None:
    """The least costly of the stale offers that cost less than the chosen one; None where none does."""
    whole = round(float(priced.usd[chosen]), 2)
    cheaper = [at for at, old in enumerate(stale) if old and round(float(priced.usd[at]), 2) < whole]
    if not cheaper:
        return None
    least = min(cheaper, key=lambda at: _order(priced, at))
    offer, usd = priced.offers[least], float(priced.usd[least])
    return CheaperStale(offer, (now - offer.observed_at).days, usd / whole, usd, len(cheaper))


def _price(context: AppContext, run: Run, offers: Sequence[Offer], stated_gbps: float | None) -> _PricedOffers | None:
    """Hours and cost of the run on each offer; None where no layout fits."""
    networks = np.array([offer_gbit_per_s(offer, run.cluster, stated_gbps) for offer in offers])
    distinct, network = np.unique(networks, return_inverse=True)
    utilisation = resolve_utilisation(context, run, AssumptionLog())
    choices = choose_layouts(run.model, run.training, run.cluster, utilisation, tuple(distinct.tolist()))
    if infeasible(run, choices[0]):
        return None
    timed = predict_run_times_in(run, choices, utilisation, plan_calibration())
    hours = np.array([[[getattr(each.held_hours, name) for each in timed]] for name in ("p10", "p50", "p90")])
    prices = OfferPrices(
        usd_per_accelerator_hour=np.array([float(offer.usd_per_accelerator_hour) for offer in offers]),
        accelerators_per_instance=np.array([offer.accelerator_count for offer in offers]),
        term_hours=np.array([offer.term_hours for offer in offers]),
        network=network,
    )
    on_offers = hours[1].take(network, axis=-1)
    usd = price_offers(
        [run], hours, mwh_at(on_offers * run.cluster.count, run.energy, np.array(run.energy.pue)), checkpoint_tb(run), prices
    )
    return _PricedOffers(offers, networks, on_offers[0], usd.p50[0])


def _order(priced: _PricedOffers, at: int) -> tuple[Any, ...]:
    """Cost to the cent, then the faster network, the newer price, and the key so that nothing is left to chance."""
    offer = priced.offers[at]
    return (round(float(priced.usd[at]), 2), -float(priced.gbit_per_s[at]), -offer.observed_at.timestamp(), offer_key(offer))


def _cost_by_provider(priced: _PricedOffers, chosen: int, compared: Sequence[int]) -> dict[str, float]:
    """Least cost of each provider among the compared offers over the chosen offer's, the chosen provider first, then by cost."""
    own, whole = priced.offers[chosen].provider, float(priced.usd[chosen]) or 1.0
    least = {own: 1.0}
    for at in compared:
        provider, ratio = priced.offers[at].provider, float(priced.usd[at]) / whole
        if provider != own:
            least[provider] = min(least.get(provider, ratio), ratio)
    return dict(sorted(least.items(), key=lambda item: (item[0] != own, item[1])))


def note_choice(choice: OfferChoice, cluster: Cluster, stated_gbps: float | None, notes: AssumptionLog) -> None:
    """Records why the offer was chosen and what the other providers would cost; warns of a network that binds or contradicts."""
    offer, others = choice.offer, list(choice.cost_by_provider.values())[1:]
    why = f"of {choice.offers} known {offer.pricing} offers the one {_LEAST[choice.cheaper_stale is None]}, each on its own network"
    if others:
        why += f"; at {len(others)} other providers the run costs {min(others):.2f} to {max(others):.2f} times as much"
    if choice.cheaper_stale is not None:
        why += f"; {_cheaper_stale_text(choice.cheaper_stale)}"
    notes.assume("price", describe_offer(offer), why)
    if cluster.nodes == 1:
        return
    if stated_gbps is not None:
        _warn_contradiction(offer, cluster, stated_gbps, notes)
    elif not has_cluster_network(offer) or choice.slowdown > SLOW_NETWORK:
        _warn_slow_network(choice, cluster, notes)


def _cheaper_stale_text(old: CheaperStale) -> str:
    many = "1 cheaper offer has an old price" if old.offers == 1 else f"{old.offers} cheaper offers have old prices, the cheapest"
    return f"{many}: {old.offer.provider}, {money(old.usd)} in all at a price read {old.age_days} days ago"


def _warn_contradiction(offer: Offer, cluster: Cluster, stated_gbps: float, notes: AssumptionLog) -> None:
    """Warns where the stated network of a node is not that of the offer."""
    network, sold = _network(offer), _sold_gbit_per_s(offer, cluster)
    if network is None or sold is None:
        return
    if max(sold, stated_gbps) > CONTRADICTION * min(sold, stated_gbps):
        notes.warn(
            f"hardware.inter_node_gbps says {stated_gbps:g} Gbit/s a node, but {offer.provider} {offer.instance_type} has {sold:g}"
            f" ({network.source}): leave it out, or choose the price of the machine that you mean"
        )


def _warn_slow_network(choice: OfferChoice, cluster: Cluster, notes: AssumptionLog) -> None:
    """Warns that the offer's network makes the run slower than the fastest one on offer."""
    offer, per_node = choice.offer, cluster.accelerators_per_node
    gbps = offer_gbit_per_s(offer, cluster) * per_node
    fabric = "" if has_cluster_network(offer) else ", without a network made for exchanges between them"
    slower = f": {choice.slowdown:.2g} times slower than at {choice.fastest.provider}" if choice.slowdown > SLOW_NETWORK else ""
    notes.warn(f"at {offer.provider} the nodes are linked by {gbps:g} Gbit/s{fabric}{slower}")


def connected_offers(offers: Sequence[Offer], cluster: Cluster) -> Sequence[Offer]:
    """For a job on several nodes the offers of whole nodes with a cluster network between them; all offers where there are none.

    Offers whose network is not known count as connected. For a job within a node, instances that hold it or a whole node.
    """
    whole = [offer for offer in offers if offer.accelerator_count >= cluster.linked_accelerators] or offers
    if cluster.nodes == 1:
        return whole
    return [offer for offer in whole if has_cluster_network(offer)] or whole


def has_cluster_network(offer: Offer) -> bool:
    """Whether the offer's instances have a network made for exchanges between them, as far as is known."""
    network = _network(offer)
    return network is None or network.is_fast_fabric


def offer_gbit_per_s(offer: Offer, cluster: Cluster, stated_gbps: float | None = None) -> float:
    """Network of one accelerator on that offer [Gbit/s]: the stated node's, else that of the instance type, else the data sheet's."""
    per_node = cluster.accelerators_per_node
    rate = _sold_gbit_per_s(offer, cluster) if stated_gbps is None else stated_gbps
    if rate is None:
        rate = data_sheet_inter_node_gbps(cluster.accelerator, per_node)[0]
    return rate / per_node


def _sold_gbit_per_s(offer: Offer, cluster: Cluster) -> float | None:
    """Network of a node of the offer's instances [Gbit/s]; None where it is not known."""
    network = _network(offer)
    return (
        None
        if network is None
        else node_gbit_per_s(network.gbit_per_s_per_instance, offer.accelerator_count, cluster.accelerators_per_node)
    )


def _network(offer: Offer) -> InstanceNetwork | None:
    return find_network(offer.provider, offer.instance_type, offer.accelerator)
