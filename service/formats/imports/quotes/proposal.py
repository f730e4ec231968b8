"""How a vendor's file is read: the proposal with every price's fate. Nothing is kept here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from providers.offer import Offer, OfferTerms
from service.domain.errors import InvalidRequest
from service.domain.price_files import (
    PRICE_BASES,
    PRICE_PERIODS,
    QuoteColumn,
    QuoteCorrections,
    QuoteCounts,
    QuoteOffer,
    QuoteProposal,
    QuoteQuestion,
    QuoteRow,
    QuoteSetting,
    QuoteSheet,
)
from service.domain.prices import commitment_terms
from service.formats.imports.quotes.cells import CellError, OpenQuestionError, text_of
from service.formats.imports.quotes.drafts import read_drafts
from service.formats.imports.quotes.files import read_file
from service.formats.imports.quotes.labels import QuoteReference
from service.formats.imports.quotes.layout import Table, TableColumn, field_of, find_table, letter_of
from service.formats.imports.quotes.money import USD
from service.formats.imports.quotes.reading import PriceDraft, Reading
from service.formats.imports.quotes.settings import resolve_settings
from service.formats.imports.quotes.sheets import VendorFile, VendorSheet
from service.formats.imports.quotes.units import BASES, IMPOSSIBLE, Unit, UnitSample, guess_unit, usd_per_instance_hour

MAX_PRICES = 5_000
MAX_QUESTIONS = 200
MAX_WARNINGS = 200
UNUSUAL = 4.0
"""A price this many times above or below the usual one is worth a second look."""
ANY_REGION = "any"
STANDARD_TERMS: Mapping[str, float] = {"reserved_1y": 8760.0, "reserved_3y": 26280.0}


@dataclass(frozen=True, slots=True)
class ReadQuote:
    """A proposal, and the offers it would keep by row of it."""

    proposal: QuoteProposal

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The offers, in the order of the sheet."""
        return tuple(row.kept for row in self.proposal.rows if row.kept is not None)


def propose(content: bytes, file_name: str, corrections: QuoteCorrections, reference: QuoteReference) -> ReadQuote:
    """How a vendor's file is read with these corrections.

    Raises InvalidRequest for a file that cannot be read or holds no table, and for corrections that fit nothing in it.
    """
    file = read_file(content)
    table, others = _choose_table(file, corrections, reference)
    settings = resolve_settings(table, corrections, reference, file_name)
    reading = Reading(table, settings, corrections, reference)
    prices = _priced_cells(table)
    if prices > MAX_PRICES:
        raise InvalidRequest(f"the sheet has {prices:,} prices; at most {MAX_PRICES:,} are taken: import it in parts", "/content_base64")
    found = list(read_drafts(reading))
    drafts = [each for each in found if isinstance(each, PriceDraft)]
    units = {column.index: _resolve_unit(reading, [draft for draft in drafts if draft.column is column]) for column in table.columns}
    rows = _rows(reading, found, units, file_name)
    questions = _questions(table, drafts)
    counts = QuoteCounts(*(sum(row.fate == fate for row in rows) for fate in ("offer", "refused", "skipped")))
    return ReadQuote(
        QuoteProposal(
            format=file.format,
            sheets=[QuoteSheet(sheet.name, len(sheet.rows), sheet.hidden, sheet is table.sheet) for sheet in file.sheets],
            header_rows=[row + 1 for row in table.header],
            columns=[_present_column(table, column) for column in table.columns],
            settings=[*settings.shown, *_unit_settings(table, drafts, units)],
            questions=questions,
            counts=counts,
            rows=rows,
            warnings=[*file.notes, *others, *_unread(settings.unread), *_empty_prices(table), *_warnings(rows)][:MAX_WARNINGS],
        )
    )


def _choose_table(file: VendorFile, corrections: QuoteCorrections, reference: QuoteReference) -> tuple[Table, list[str]]:
    """The table of the stated sheet, else of the visible one with most prices; and warnings about the others."""
    if corrections.sheet is not None:
        named = [sheet for sheet in file.sheets if sheet.name.casefold() == corrections.sheet.casefold()]
        if not named:
            known = ", ".join(repr(sheet.name) for sheet in file.sheets)[:500]
            raise InvalidRequest(f"no sheet is called {corrections.sheet[:80]!r}; there are {known}", "/mapping/sheet")
        sheets: Sequence[VendorSheet] = named[:1]
    else:
        sheets = [sheet for sheet in file.sheets if not sheet.hidden]
    fitting = [sheet for sheet in sheets if len(sheets) == 1 or len(sheet.rows) >= (corrections.header_row or 0)]
    read = [table for sheet in fitting if (table := find_table(sheet, reference, corrections.header_row, {})) is not None]
    if not read:
        text = "no row names columns of a price list, with prices below: state mapping.header_row and mapping.columns"
        raise InvalidRequest(text, "/mapping/header_row")
    best = max(read, key=_priced_cells)
    names = [table.sheet.name for table in read if table is not best and _priced_cells(table)]
    hidden = [sheet.name for sheet in file.sheets if sheet.hidden]
    warnings = [f"{len(names)} other sheets hold prices ({', '.join(names)[:300]}): import each with mapping.sheet"] if names else []
    mapped = find_table(best.sheet, reference, corrections.header_row, corrections.columns) or best
    return mapped, [*warnings, *([f"hidden sheets are not read: {', '.join(hidden)[:300]}"] if hidden and not corrections.sheet else [])]


def _unread(notes: Sequence[str]) -> list[str]:
    """What stands around the table and told nothing."""
    return [f"not read: {note[:200]!r}" for note in notes]


def _priced_cells(table: Table) -> int:
    return sum(len(table.values(column)) for column in table.columns if column.field == "price")


def _present_column(table: Table, column: TableColumn) -> QuoteColumn:
    examples = [text_of(value) for value in table.values(column)[:3]]
    return QuoteColumn(letter_of(column.index), column.header, column.field, column.reason, examples)


def _resolve_unit(reading: Reading, drafts: Sequence[PriceDraft]) -> tuple[Unit | None, str]:
    """The unit of a column's prices whose texts do not say it, by what is usual; None where it is not told."""
    open_drafts = [draft for draft in drafts if draft.basis is None or draft.period is None]
    if not open_drafts:
        return None, ""
    bases = {draft.basis for draft in open_drafts}
    periods = {draft.period for draft in open_drafts}
    samples = [sample for draft in open_drafts if (sample := _sample(reading, draft)) is not None]
    return guess_unit(
        samples,
        BASES if None in bases else sorted(basis for basis in bases if basis),
        PRICE_PERIODS if None in periods else sorted(period for period in periods if period),
    )


def _sample(reading: Reading, draft: PriceDraft) -> UnitSample | None:
    values = draft.values
    usual = reading.reference.typical_usd.get(values["accelerator"])
    if usual is None or values["usd"] is None or values["count"] is None:
        return None
    return UnitSample(float(values["usd"]), values["count"], values["term_hours"], usual)


def _unit_settings(table: Table, drafts: Sequence[PriceDraft], units: Mapping[int, tuple[Unit | None, str]]) -> list[QuoteSetting]:
    """Units of price columns, said or told by their prices."""
    shown: list[QuoteSetting] = []
    for column in table.columns:
        of = [draft for draft in drafts if draft.column is column]
        if column.field != "price" or not of:
            continue
        unit, reason = units[column.index]
        said = sorted({f"per {draft.basis} and {draft.period}" for draft in of if draft.basis and draft.period})
        where = f"column {letter_of(column.index)} ({column.header[:60]})"
        if said:
            shown.append(QuoteSetting("price_unit", ", ".join(said), f"{where}: as its texts, the notes or you say"))
        if reason:
            shown.append(QuoteSetting("price_unit", str(unit or "?"), f"{where}: {reason}"))
    return shown


def _rows(
    reading: Reading, found: Sequence[PriceDraft | tuple[int, str]], units: Mapping[int, tuple[Unit | None, str]], source: str
) -> list[QuoteRow]:
    """Every price's fate, in the order of the sheet; the second price of one thing is refused."""
    rows: list[QuoteRow] = []
    seen: dict[tuple[object, ...], int] = {}
    for each in found:
        if not isinstance(each, PriceDraft):
            rows.append(QuoteRow(each[0] + 1, None, "skipped", [each[1]]))
            continue
        offer = _offer(reading, each, units[each.column.index], source)
        if offer is not None and offer.identity in seen:
            each.faults.append(CellError(f"row {seen[offer.identity]} has a price of the same thing under the same terms"))
        if offer is None or each.faults:
            rows.append(QuoteRow(each.row + 1, letter_of(each.column.index), "refused", _reasons(each.faults)))
        else:
            seen[offer.identity] = each.row + 1
            rows.append(QuoteRow(each.row + 1, letter_of(each.column.index), "offer", each.notes, present_offer(offer), offer))
    return rows


def _reasons(faults: Sequence[CellError]) -> list[str]:
    return list(dict.fromkeys(f"{fault}: state {fault.about}" if isinstance(fault, OpenQuestionError) else str(fault) for fault in faults))


def present_offer(offer: Offer) -> QuoteOffer:
    """An offer as a proposal and a kept file show it."""
    return QuoteOffer(
        provider=offer.provider,
        region=offer.region,
        instance_type=offer.instance_type,
        accelerator=offer.accelerator,
        accelerator_count=offer.accelerator_count,
        pricing=offer.pricing,
        usd_per_hour=offer.usd_per_hour,
        usd_per_accelerator_hour=offer.usd_per_accelerator_hour,
        observed_at=offer.observed_at,
        terms=commitment_terms(offer),
    )


def _offer(reading: Reading, draft: PriceDraft, guessed: tuple[Unit | None, str], source: str) -> Offer | None:
    """The offer of a draft; None with the faults noted."""
    values, today = draft.values, reading.reference.today
    unit = draft.attempt(lambda: _unit(draft, guessed))
    if values["valid_until"] is not None and values["valid_until"] < today:
        draft.faults.append(CellError(f"the quote ended on {values['valid_until']}"))
    observed = values["observed_at"] or today
    if observed > today:
        draft.faults.append(CellError(f"the price holds from {observed} on, which is still to come"))
    if draft.faults or unit is None:
        return None
    if unit.period == "term" and not values["term_hours"]:
        draft.faults.append(CellError("a price of the whole term needs the length of the term"))
        return None
    price = draft.attempt(
        lambda: _plausible(reading, draft, usd_per_instance_hour(values["usd"], unit, values["count"], values["term_hours"]))
    )
    if price is None:
        return None
    try:
        return _make_offer(draft, unit, price, datetime.combine(observed, time(), UTC), source)
    except ValueError as error:
        draft.faults.append(CellError(str(error)))
        return None


def _unit(draft: PriceDraft, guessed: tuple[Unit | None, str]) -> Unit:
    """The unit of a price. Raises OpenQuestionError where nothing tells it."""
    unit, reason = guessed
    if draft.basis and draft.period:
        return Unit(draft.basis, draft.period)
    if unit is None:
        about = "price_basis" if draft.basis is None else "price_period"
        raise OpenQuestionError(
            f"the unit of the price is not told: {reason}",
            f"mapping.settings.{about}",
            PRICE_BASES if draft.basis is None else PRICE_PERIODS,
        )
    draft.notes.append(f"unit: {Unit(draft.basis or unit.basis, draft.period or unit.period)}, as {reason}")
    return Unit(draft.basis or unit.basis, draft.period or unit.period)


def _plausible(reading: Reading, draft: PriceDraft, usd_per_hour: Decimal) -> Decimal:
    """The price itself. Raises CellError where it is that of another unit, unless the caller has stated the unit."""
    usual = reading.reference.typical_usd.get(draft.values["accelerator"])
    each = usd_per_hour / draft.values["count"]
    if each < Decimal("0.0001") or each > 10**5:
        raise CellError(f"{each:g} USD per accelerator-hour is no price: check the unit")
    if usual is None:
        return usd_per_hour
    ratio = float(each) / usual
    stated: Mapping[str, Any] = reading.corrections.settings
    if not 1 / IMPOSSIBLE < ratio < IMPOSSIBLE and not (stated.get("price_basis") and stated.get("price_period")):
        text = f"{each:.6g} USD per accelerator-hour is {ratio:.2g} times the usual price: check the unit"
        raise OpenQuestionError(text, "mapping.settings.price_basis and price_period")
    if not 1 / UNUSUAL < ratio < UNUSUAL:
        draft.notes.append(f"{each:.4g} USD per accelerator-hour is {ratio:.2g} times the usual price: check it")
    return usd_per_hour


def _make_offer(draft: PriceDraft, unit: Unit, usd_per_hour: Decimal, observed_at: datetime, source: str) -> Offer:
    """Raises ValueError for terms that no offer can have."""
    values = draft.values
    if values["region"] is None or not values["region"]:
        draft.notes.append("region: any, as nothing names one")
    extras = {**({"country": str(values["country"])} if values["country"] else {}), **values.get("currency", {})}
    return Offer(
        provider=values["provider"],
        region=str(values["region"] or ANY_REGION)[:200],
        instance_type=str(values["instance_type"] or f"{values['count']}x {values['accelerator']}")[:200],
        accelerator=values["accelerator"],
        accelerator_count=values["count"],
        pricing=values["pricing"],
        usd_per_hour=usd_per_hour,
        observed_at=observed_at,
        source=source[:500],
        extras=extras,
        terms=_terms(values, unit),
    )


def _terms(values: Mapping[str, Any], unit: Unit) -> OfferTerms:
    hours, pricing = values["term_hours"], values["pricing"]
    until: date | None = values["valid_until"]
    minimum = values["minimum"]
    least = None
    if minimum is not None:
        number, counted = minimum
        whole = counted == "instance" or (not counted and unit.basis == "instance")
        least = number * values["count"] if whole else number
    return OfferTerms(
        term_hours=hours if hours and STANDARD_TERMS.get(pricing) != hours else None,
        upfront_share=values["upfront"],
        valid_until=until,
        minimum_accelerators=least,
        committed_usd=values["committed"],
        capacity=values["capacity"],
    )


def _questions(table: Table, drafts: Sequence[PriceDraft]) -> list[QuoteQuestion]:
    """Each open question with the number of prices that wait for its answer."""
    found: dict[str, tuple[OpenQuestionError, int]] = {}
    for draft in drafts:
        for fault in {fault.about: fault for fault in draft.faults if isinstance(fault, OpenQuestionError)}.values():
            first, number = found.get(fault.about, (fault, 0))
            found[fault.about] = first, number + 1
    asked = [QuoteQuestion(about, str(fault)[:1000], list(fault.candidates)[:20], number) for about, (fault, number) in found.items()]
    if not any(column.field == "price" for column in table.columns):
        letters = [letter_of(column.index) for column in table.columns if column.header][:20]
        asked.insert(0, QuoteQuestion("mapping.columns", "no column is taken for the price: say which is", letters))
    return asked[:MAX_QUESTIONS]


def _empty_prices(table: Table) -> list[str]:
    """Columns that would be prices and hold no value."""
    empty = [column for column in table.columns if field_of(column.header) == "price" and not table.values(column)]
    why = "formulas without saved values are empty: open the file in a spreadsheet and save it"
    return [f"column {letter_of(column.index)} ({column.header[:60]}) names a price and holds no value; {why}" for column in empty]


def _warnings(rows: Sequence[QuoteRow]) -> list[str]:
    """What to check in the offers before they are kept."""
    offers = [row.kept for row in rows if row.kept is not None]
    codes = sorted({offer.extras["currency"] for offer in offers if "currency" in offer.extras} - {USD})
    warnings = [f"prices in {', '.join(codes)} are converted at the rates that you state: they do not move with the rate"] if codes else []
    if any(offer.terms.committed_usd is not None for offer in offers):
        warnings.append("a committed spend is kept with the offers and not checked against what a run spends")
    unusual = sum(any("usual price: check" in note for note in row.reasons) for row in rows if row.kept is not None)
    return [*warnings, *([f"{unusual} prices are far from usual ones: their rows say by how much"] if unusual else [])]
