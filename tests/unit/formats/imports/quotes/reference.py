"""What reading a quote knows of the world in these tests, and short forms of what is read."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import openpyxl

from providers.offer import Offer
from service.domain.price_files import CurrencyRate, QuoteCorrections, QuoteProposal
from service.domain.prices import PROVIDER_SYNONYMS
from service.formats.imports.quotes.labels import QuoteReference
from service.formats.imports.quotes.proposal import ReadQuote, propose
from service.presets.hardware.accelerators import accelerator_candidates, load_accelerators

TODAY = date(2026, 11, 23)
H100, H200, B200 = "NVIDIA-H100-80GB-SXM", "NVIDIA-H200-141GB-SXM", "NVIDIA-B200-SXM"
A100, L40S, MI300X = "NVIDIA-A100-80GB-SXM", "NVIDIA-L40S", "AMD-MI300X"
PROVIDERS = ("aws", "azure", "gcp", "lambda", "coreweave", "nebius", "crusoe", "oci", "together")
REFERENCE = QuoteReference(
    candidates=accelerator_candidates,
    accelerators_per_node={name: part.accelerators_per_node for name, part in load_accelerators().items()},
    typical_usd={H100: 3.0, H200: 3.8, B200: 5.0, A100: 1.8, L40S: 1.2, MI300X: 3.0},
    providers={name: name for name in PROVIDERS} | PROVIDER_SYNONYMS,
    instances={"p5.48xlarge": (H100, 8), "a3-highgpu-8g": (H100, 8)},
    today=TODAY,
)
EURO = {"EUR": CurrencyRate(Decimal("1.10"), date(2026, 11, 20))}


@dataclass(frozen=True)
class Sold:
    """What an offer has to say; None is not compared."""

    accelerator: str
    count: int
    pricing: str
    usd: float
    """USD per accelerator-hour."""
    hours: float | None = None
    upfront: float | None = None
    until: date | None = None
    least: int | None = None
    provider: str | None = None

    def matches(self, offer: Offer) -> bool:
        """Whether the offer says so."""
        terms = offer.terms
        said = {"hours": offer.term_hours, "upfront": terms.upfront_share, "until": terms.valid_until, "least": terms.minimum_accelerators}
        said["provider"] = offer.provider
        alike = all(getattr(self, name) in (None, value) for name, value in said.items())
        sold = (offer.accelerator, offer.accelerator_count, offer.pricing) == (self.accelerator, self.count, self.pricing)
        return sold and alike and abs(float(offer.usd_per_accelerator_hour) - self.usd) < 1e-6


def read(content: bytes | str, file_name: str = "quote.csv", **corrections: Any) -> ReadQuote:
    """How a file is read with these corrections."""
    body = content.encode() if isinstance(content, str) else content
    return propose(body, file_name, QuoteCorrections(**corrections), REFERENCE)


def reasons(proposal: QuoteProposal, row: int) -> str:
    """Reasons of the refused prices of a row."""
    return "; ".join(reason for each in proposal.rows if each.row == row and each.fate == "refused" for reason in each.reasons)


def fields(proposal: QuoteProposal) -> Mapping[str, str | None]:
    """Field of each column, by its letter."""
    return {column.column: column.field for column in proposal.columns}


def setting(proposal: QuoteProposal, name: str) -> list[str]:
    """Values of a setting."""
    return [each.value for each in proposal.settings if each.setting == name]


def workbook(sheets: Mapping[str, Sequence[Sequence[Any]]], arrange: Any = None) -> bytes:
    """An XLSX file of these sheets; `arrange` changes the workbook before it is written."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(list(row))
    if arrange is not None:
        arrange(book)
    body = io.BytesIO()
    book.save(body)
    return body.getvalue()
