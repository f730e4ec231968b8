"""Bands of published contract prices, and a price beside its band."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import attrgetter
from statistics import median

from service.domain.procurement.contract_prices import (
    CONTRACT_PRICE_KINDS,
    BandComparison,
    ContractBand,
    ContractTerm,
    PublishedPrice,
    SellerClass,
)

HALF_A_DIGIT_USD = 0.00005
"""Published prices are rounded to four digits: less is no distance [USD per accelerator-hour]."""


def make_bands(prices: Iterable[PublishedPrice]) -> tuple[ContractBand, ...]:
    """Bands of the prices by accelerator, term and class of sellers, in this order.

    Parameters
    ----------
    prices : iterable of PublishedPrice
        Published prices [USD per accelerator-hour].

    Returns
    -------
    tuple of ContractBand
        Low and high ends are the extremes of the published prices. The middle is the newest market level, because levels of different
        dates are a trend and not a spread; without one it is the median of the sellers' medians.
    """
    groups: dict[tuple[str, str, str], list[PublishedPrice]] = defaultdict(list)
    for price in prices:
        groups[price.accelerator, price.term, price.seller].append(price)
    return tuple(_band(sorted(groups[key], key=attrgetter("observed_at"), reverse=True)) for key in sorted(groups))


def find_band(bands: Sequence[ContractBand], accelerator: str, term: ContractTerm, seller: SellerClass) -> ContractBand | None:
    """The band of a term, else that of prices whose term is not published; None where neither is known."""
    known = {(band.accelerator, band.term, band.seller): band for band in bands}
    return known.get((accelerator, term, seller)) or known.get((accelerator, "other", seller))


def compare_with_band(usd_per_accelerator_hour: float, band: ContractBand, far_share: float) -> BandComparison:
    """A price beside a band.

    Parameters
    ----------
    usd_per_accelerator_hour : float
        Price, above 0 [USD per accelerator-hour].
    band : ContractBand
        Band of the same accelerator and term.
    far_share : float
        Distance from which on the price lies far outside, as a share of the nearest end of the band [1].

    Returns
    -------
    BandComparison
        A distance within the rounding of published prices counts as none.
    """
    low, high = band.low_usd_per_accelerator_hour, band.high_usd_per_accelerator_hour
    nearest = min(max(usd_per_accelerator_hour, low), high)
    beyond = usd_per_accelerator_hour / nearest - 1 if abs(usd_per_accelerator_hour - nearest) > HALF_A_DIGIT_USD else 0.0
    return BandComparison(beyond, abs(beyond) > far_share, low, high, band.observed_at, _describe(beyond, band))


def _band(prices: Sequence[PublishedPrice]) -> ContractBand:
    """Band of prices of one accelerator, term and class of sellers, the newest first."""
    levels = [price for price in prices if price.kind == "market_level"]
    mids = [price.mid_usd_per_accelerator_hour for price in levels[:1] or prices if price.mid_usd_per_accelerator_hour is not None]
    kinds = {price.kind for price in prices}
    return ContractBand(
        record="band",
        accelerator=prices[0].accelerator,
        term=prices[0].term,
        seller=prices[0].seller,
        low_usd_per_accelerator_hour=min(price.low_usd_per_accelerator_hour for price in prices),
        mid_usd_per_accelerator_hour=round(median(mids), 4) if mids else None,
        high_usd_per_accelerator_hour=max(price.high_usd_per_accelerator_hour for price in prices),
        kinds=tuple(kind for kind in CONTRACT_PRICE_KINDS if kind in kinds),
        observed_at=prices[0].observed_at,
        oldest_observed_at=prices[-1].observed_at,
        published=tuple(prices),
    )


def _describe(beyond: float, band: ContractBand) -> str:
    where = "within" if beyond == 0 else f"{abs(beyond):.0%} {'under' if beyond < 0 else 'over'}".replace("%", " %")
    term = "contracts without a published term" if band.term == "other" else f"{band.term.replace('_', ' ')} contracts"
    ends = f"{band.low_usd_per_accelerator_hour:.2f} to {band.high_usd_per_accelerator_hour:.2f} USD per accelerator-hour"
    return f"{where} the published band of {term} of {band.seller}s: {ends} ({_dates(band)}; {', '.join(band.kinds)})"


def _dates(band: ContractBand) -> str:
    oldest, newest = band.oldest_observed_at, band.observed_at
    return newest if oldest == newest else f"{oldest} to {newest}"
