"""Published prices of commitments and their bands, from `data/contract_prices.toml`."""

from __future__ import annotations

import functools
from typing import Any

from service.domain.procurement.contract_prices import (
    BandComparison,
    ContractBand,
    ContractTerm,
    PublishedPrice,
    SellerClass,
)
from service.engine.procurement.contract_bands import compare_with_band, find_band, make_bands
from service.presets.documents import build, load_document


def contract_band(accelerator: str, term_hours: float, provider: str | None = None) -> ContractBand | None:
    """The published band of commitments of a term.

    Parameters
    ----------
    accelerator : str
        Canonical name.
    term_hours : float
        Length of the commitment, above 0 [h].
    provider : str, optional
        Seller; one that is no hyperscaler, or is not stated, counts as a specialist.

    Returns
    -------
    ContractBand or None
        None where nothing is published of the accelerator for this term, nor without a term.
    """
    return find_band(load_contract_bands(), accelerator, contract_term(term_hours), seller_class(provider))


def compare_with_published(usd_per_accelerator_hour: float, accelerator: str, term_hours: float, provider: str) -> BandComparison | None:
    """A price [USD per accelerator-hour] of a commitment [h] beside its published band; None where there is no band."""
    band = contract_band(accelerator, term_hours, provider)
    return None if band is None else compare_with_band(usd_per_accelerator_hour, band, _document()["far"]["share"])


def contract_term(term_hours: float) -> ContractTerm:
    """Term under which a commitment of so many hours is published."""
    found: ContractTerm = next(row["term"] for row in _document()["term"] if term_hours <= row["to_hours"])
    return found


def seller_class(provider: str | None) -> SellerClass:
    """Class of a seller; one that is not known is a specialist."""
    return "hyperscaler" if provider in _document()["hyperscalers"]["names"] else "specialist"


@functools.cache
def load_contract_bands() -> tuple[ContractBand, ...]:
    """All bands, by accelerator, term and class of sellers."""
    return make_bands(_published(row) for row in _document()["price"])


def _published(row: dict[str, Any]) -> PublishedPrice:
    absent = {"mid_usd_per_accelerator_hour": None, "upfront": None, "term_months": None}
    return build(PublishedPrice, {**absent, **row}, seller=seller_class(row["provider"]))


def _document() -> dict[str, Any]:
    return load_document("contract_prices")
