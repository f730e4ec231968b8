"""The form of a vendor's file: how it is read, and which of its prices become quotes of the question whether to buy or to rent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count, islice
from typing import Any

from service.domain.errors import UnknownName
from service.formats.field_words import choice_words
from service.formats.imports.quotes.vocabulary import FIELDS
from service.schemas.fields import Text
from service.schemas.price_files import PriceFileSchema
from service.usecases.prices.known_names import find_accelerators
from service.web.buy_or_rent_form import QUOTES
from service.web.forms import Fields, FormField, choices_at, field_at, places_of, request_of

REQUEST = PriceFileSchema()
Body = dict[str, Any]
MAPPING, COLUMNS, LABELS, SETTINGS, RATES = "mapping.", "mapping.columns.", "mapping.accelerators.", "mapping.settings.", "mapping.rates."
CHOSEN = "quote."
"""Before the cell of a price that becomes a quote."""
NOT_USED = "none"
"""As the field of a column: the column is not used."""
MOST_QUOTES = 10
"""Quotes that the address of a question takes besides its other fields."""
LONGEST_NAME = 60
HOURS_PER_MONTH = 730.0
SETTING_LABELS: Mapping[str, tuple[str, str]] = {
    "provider": ("Vendor", ""),
    "region": ("Region", ""),
    "country": ("Country", "ISO code"),
    "accelerator": ("Accelerator", ""),
    "accelerator_count": ("Accelerators of an instance", ""),
    "pricing": ("Pricing", ""),
    "term_hours": ("Term", "hours"),
    "term_unit": ("Unit of bare terms", ""),
    "upfront_share": ("Paid at the start", "share of the term"),
    "valid_until": ("Taken by", ""),
    "observed_at": ("Prices of", ""),
    "minimum_accelerators": ("At least", "accelerators"),
    "committed_usd": ("Committed spend", "USD"),
    "currency": ("Currency", ""),
    "price_basis": ("A price is for one", ""),
    "price_period": ("A price is for a", ""),
    "decimal_mark": ("Decimal mark", ""),
    "date_order": ("Order of dates", ""),
}
DAYS = ("valid_until", "observed_at")


def _setting_field(name: str) -> FormField:
    label, unit = SETTING_LABELS[name]
    known = "accelerators" if name == "accelerator" else ""
    kind = "date" if name in DAYS else "text"
    return FormField(f"{SETTINGS}{name}", label, unit=unit, kind=kind, choices=choices_at(REQUEST, f"{SETTINGS}{name}"), known=known)


SETTING_FIELDS = tuple(map(_setting_field, SETTING_LABELS))
TEXTS = tuple(name for name in (f"{MAPPING}sheet", *(field.name for field in SETTING_FIELDS)) if isinstance(field_at(REQUEST, name), Text))
"""Fields whose value is text, also where it looks like a number."""


def mapping_of(fields: Fields) -> Body:
    """The corrections that the form's fields say; labels and columns are names of the sheet, whatever they hold."""
    corrections = {name: text for name, text in fields.items() if name.startswith(MAPPING) and not name.startswith((COLUMNS, LABELS))}
    found = request_of(corrections).get("mapping", {})
    made: Body = found if isinstance(found, dict) else {}
    settings = made.get("settings")
    for name in TEXTS:
        part = made if name == f"{MAPPING}sheet" else settings
        if name in fields and isinstance(part, dict):
            part[name.rpartition(".")[2]] = fields[name]
    columns = {name: None if text == NOT_USED else text for name, text in _below(fields, COLUMNS).items()}
    return made | {name: part for name, part in (("columns", columns), ("accelerators", _below(fields, LABELS))) if part}


def _below(fields: Fields, above: str) -> dict[str, str]:
    return {name.removeprefix(above): text for name, text in fields.items() if name.startswith(above)}


def question_fields(question: Mapping[str, Any]) -> Iterator[FormField]:
    """The fields that answer what a sheet does not tell: none where a column has to be named, which is a field of its own."""
    about, candidates = question["about"], tuple(question["candidates"])
    if about.startswith(RATES):
        code = about.removeprefix(RATES)
        yield FormField(f"{about}.usd", f"1 {code} is", "1.08", "USD")
        yield FormField(f"{about}.at", "on", kind="date")
    elif about.startswith(LABELS):
        label = about.removeprefix(LABELS)
        yield FormField(about, f"{label} is", choices=candidates, known="" if candidates else "accelerators")
    for field in SETTING_FIELDS:
        if field.name.removeprefix(SETTINGS) in about.removeprefix(SETTINGS).split(" and ") and about.startswith(SETTINGS):
            yield field


def correction_fields(proposal: Mapping[str, Any]) -> Iterator[FormField]:
    """The fields that say of the whole sheet what it does not, each with what was read as its hint."""
    if len(proposal["sheets"]) > 1:
        yield FormField(f"{MAPPING}sheet", "Sheet", choices=tuple(sheet["name"] for sheet in proposal["sheets"]))
    yield FormField(f"{MAPPING}header_row", "Row of headings", hint=str(proposal["header_rows"][-1]))
    taken = {entry["setting"]: entry["value"] for entry in proposal["settings"]}
    for field in SETTING_FIELDS:
        yield replace(field, hint=taken.get(field.name.removeprefix(SETTINGS), ""))


def column_field(column: Mapping[str, Any]) -> FormField:
    """The field that says what a column is taken for."""
    return FormField(f"{COLUMNS}{column['column']}", f"Column {column['column']} is", choices=(*FIELDS, NOT_USED))


def offered(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows of a reading that are offers."""
    return [row for row in rows if row["fate"] == "offer"]


def cell_of(row: Mapping[str, Any]) -> str:
    """The cell of a price as spreadsheets name it; of a row without one the row."""
    return f"{row['column'] or ''}{row['row']}"


def usual_choice(rows: Iterable[Mapping[str, Any]], demanded: str) -> set[str]:
    """Cells of the prices that are taken where nobody has chosen: those of the demanded accelerator, else of that with most prices."""
    prices = offered(rows)
    names = [row["offer"]["accelerator"] for row in prices]
    wanted = canonical(demanded) if demanded else max(names, key=names.count, default="")
    return set(islice((cell_of(row) for row in prices if row["offer"]["accelerator"] == wanted), MOST_QUOTES))


def canonical(accelerator: str) -> str:
    """The canonical name of an accelerator, the text itself where it is none's."""
    try:
        return find_accelerators({"accelerator": accelerator})[0].name
    except UnknownName:
        return accelerator


def wrong_choice(chosen: Collection[Mapping[str, Any]], fields: Fields) -> str:
    """What is wrong with the chosen prices; empty where they can be quotes of the question."""
    found = sorted({row["offer"]["accelerator"] for row in chosen})
    demanded = fields.get("demand.accelerator", "")
    if not chosen:
        return "Choose at least one price."
    if len(chosen) + len(places_of(fields, QUOTES)) > MOST_QUOTES:
        return f"A question takes at most {MOST_QUOTES} quotes: choose fewer, or keep all prices for the team."
    if len(found) > 1:
        return f"The prices are of {', '.join(found)}: choose those of one accelerator."
    if demanded and found[0] != canonical(demanded):
        return f"The prices are of {found[0]}, and the question is about {demanded}: change one of them."
    return ""


def with_quotes(fields: Fields, chosen: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The question's fields with the chosen prices in its free places of quotes."""
    filled = places_of(fields, QUOTES)
    free = (str(place) for place in count() if str(place) not in filled)
    made = dict(fields)
    for place, row in zip(free, chosen, strict=False):
        made.setdefault("demand.accelerator", row["offer"]["accelerator"])
        made |= {f"{QUOTES}.{place}.{name}": text for name, text in _quote(row)}
    return made


def _quote(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The fields of a quote, whose name says from which cell it is."""
    offer, terms = row["offer"], row["offer"].get("terms") or {}
    pricing, cell = offer["pricing"], cell_of(row)
    about = f"{offer['provider']} {choice_words(pricing)}"[: LONGEST_NAME - len(cell) - 3]
    yield "name", f"{about} ({cell})"
    yield "pricing", pricing
    yield "usd_per_accelerator_hour", f"{offer['usd_per_accelerator_hour']:.6g}"
    if pricing == "reserved" and terms.get("term_hours"):
        yield "term_months", str(max(1, round(terms["term_hours"] / HOURS_PER_MONTH)))
    if pricing.startswith("reserved") and terms.get("upfront_share"):
        yield "upfront_share", f"{terms['upfront_share']:.6g}"
    for name, term in (("expires", "valid_until"), ("minimum_accelerators", "minimum_accelerators")):
        if terms.get(term):
            yield name, str(terms[term])
