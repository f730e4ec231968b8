"""The form of buying or renting: its fields, the request that they say, and where of the form an error or an assumption belongs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count, islice
from typing import Any

from service.formats.field_words import field_words
from service.schemas.procurement.request import BuyOrRentRequestSchema
from service.web.assumptions import Assumption, assumptions_of
from service.web.forms import Fields, FormField, choices_at, places_of, request_of, split_lists

REQUEST = BuyOrRentRequestSchema()
Body = dict[str, Any]
FLEETS, QUOTES = "own", "rent.quotes"
"""Lists of parts: each place of one has fields of its own."""
USUAL_NAMES: Mapping[str, str] = {FLEETS: "our own", QUOTES: "quote 1"}
"""What the first of a list is called where it has no name; those after it have a number."""
LEAST_SHOWN: Mapping[str, int] = {FLEETS: 1, QUOTES: 3}
"""Places that the form has at least; one more than are filled besides."""
MOST_SHOWN = 20
"""Places of a list that the form has at most where the address says how many."""
_NUMBER = re.compile(r"\d{1,3}", re.ASCII)
LISTS = frozenset({"rent.providers", "rent.regions", "rent.pricing"})
"""Fields that take several values, with commas between them."""
NOBODY = "none"
"""As the providers: the quotes alone."""
PROVIDERS = "rent.providers"
DEMAND_FIELDS = (
    FormField("demand.accelerator", "Accelerator", "H100", known="accelerators"),
    FormField("demand.count", "How many", "256"),
    FormField("demand.years", "For", "3", "years"),
    FormField("demand.utilisation", "Used", "0.7", "share of all hours"),
    FormField("demand.start", "From", kind="date"),
)
FLEET_FIELDS = (
    FormField("name", "Name", "our own"),
    FormField("capex_usd_per_accelerator", "Hardware", "32,000", "USD per accelerator"),
    FormField("residual_share", "Sold for in the end", "0.25", "share of its price"),
    FormField("kw_per_accelerator", "Power", "1.3", "kW per accelerator"),
    FormField("usd_per_kwh", "Energy", "0.09", "USD per kWh"),
    FormField("opex_share_per_year", "Operation", "0.06", "share of its price a year"),
    FormField("lead_time_months", "Comes after", "4", "months"),
)
MORE_FLEET_FIELDS = (
    FormField("count", "How many", "as demanded"),
    FormField("lease_usd_per_month", "Lease of all", "", "USD per month"),
    FormField("pue", "PUE", "1.3"),
    FormField("colo_usd_per_kw_month", "Colocation", "", "USD per kW and month"),
    FormField("network_share", "Network", "0.19", "share of the cluster's price"),
    FormField("installation_share", "Installation", "0.1", "share on top"),
    FormField("maintenance_share_per_year", "Maintenance", "0.1", "share of its price a year"),
    FormField("staff_fte", "Staff", "", "full-time equivalents"),
    FormField("usd_per_fte_year", "Each of them", "", "USD per year"),
    FormField("tax_rate", "Tax on profits", "", "share"),
    FormField("depreciation_years", "Depreciation", "", "years"),
)
RENT_FIELDS = (
    FormField(PROVIDERS, "Providers", "all; none: quotes alone"),
    FormField("rent.regions", "Regions", "all"),
    FormField("rent.pricing", "Pricing", "reserved_3y; all"),
)
QUOTE_FIELDS = (
    FormField("name", "From", "who quotes"),
    FormField("pricing", "Pricing", choices=choices_at(REQUEST, f"{QUOTES}.0.pricing")),
    FormField("usd_per_accelerator_hour", "Price", "1.89", "USD per accelerator-hour"),
    FormField("term_months", "Term", "that of its pricing", "months"),
    FormField("upfront_share", "Paid at the start", "0", "share of the term"),
    FormField("minimum_accelerators", "At least", "", "accelerators"),
    FormField("expires", "Taken by", kind="date"),
)
MORE_FIELDS = (
    FormField("cost_of_capital", "Cost of capital", "0.08", "share a year"),
    FormField("list_price_change_per_year", "List prices change by", "as they have", "share a year"),
    FormField("demand.growth_per_year", "Demand grows by", "0", "share a year"),
    FormField("demand.peak_utilisation", "Busiest", "1", "share in use at a time"),
    FormField("demand.tracked_program", "Demand of a program", "its id"),
)


def buy_or_rent_request(fields: Fields) -> Body:
    """The request that the form's fields say; who has no name gets one."""
    alone = fields.get(PROVIDERS, "").lower() == NOBODY
    body = request_of(split_lists({name: value for name, value in fields.items() if not (alone and name == PROVIDERS)}, LISTS))
    if FLEETS in body:
        body[FLEETS] = _named(body[FLEETS], fields, FLEETS)
    rent = body.get("rent", {})
    if isinstance(rent, dict) and "quotes" in rent:
        body["rent"] = rent = rent | {"quotes": _named(rent["quotes"], fields, QUOTES)}
    return body | {"rent": rent | {"providers": []}} if alone and isinstance(rent, dict) else body


def _named(entries: Any, fields: Fields, above: str) -> Any:
    """The parts of a list, each with its name as text; what is no list of parts is left for the schema to refuse."""
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return entries
    stated = [fields.get(f"{above}.{place}.name") for place in places_of(fields, above)]
    return [entry | {"name": name or usual_name(above, at)} for at, (entry, name) in enumerate(zip(entries, stated, strict=False))]


def usual_name(above: str, at: int) -> str:
    """The name of a list's part that has none."""
    first = USUAL_NAMES[above]
    return f"{first.removesuffix(' 1')} {at + 1}" if at else first


def parts_of(above: str, members: tuple[FormField, ...], place: str) -> tuple[FormField, ...]:
    """The fields of one place of a list."""
    return tuple(replace(field, name=f"{above}.{place}.{field.name}") for field in members)


def places_shown(fields: Fields, above: str, wanted: str = "") -> list[str]:
    """The places of a list that the form has: those that are filled and one more, and as many as are wanted."""
    filled = places_of(fields, above)
    free = (str(at) for at in count() if str(at) not in filled)
    least = max(LEAST_SHOWN[above], min(int(wanted), MOST_SHOWN) if _NUMBER.fullmatch(wanted) else 0)
    return sorted([*filled, *islice(free, max(least - len(filled), 1))], key=int)


def more_places(shown: int) -> int:
    """How many places a form with so many has with one more; 0 where it has the most."""
    return shown + 1 if shown < MOST_SHOWN else 0


def without_place(fields: Fields, place: str) -> dict[str, str]:
    """The fields without those of a place such as `rent.quotes.1`."""
    return {name: value for name, value in fields.items() if not name.startswith(f"{place}.")}


def field_of_error(name: str, fields: Fields) -> str:
    """The form's field of an error's: the request has the filled places of a list without gaps; a list's entry is its field's."""
    for above in (FLEETS, QUOTES):
        at, _, below = name.removeprefix(f"{above}.").partition(".")
        places = places_of(fields, above)
        if name.startswith(f"{above}.") and at.isdecimal() and int(at) < len(places):
            return f"{above}.{places[int(at)]}.{below or 'name'}"
    above = name.rpartition(".")[0]
    return above if above in LISTS else name


def form_assumptions(answer: Mapping[str, Any], request: Body, fields: Fields) -> Iterator[Assumption]:
    """The answer's assumptions; it names fleets, where the form has places."""
    fleets = request.get(FLEETS, [])
    places = {f"{FLEETS}.{fleet['name']}.": place for fleet, place in zip(fleets, places_of(fields, FLEETS), strict=False)}
    for entry in answer["assumptions"]:
        above = next((above for above in places if entry["field"].startswith(above)), None)
        if above is None:
            found = next(assumptions_of([entry], REQUEST))
            yield found if found.label else replace(found, section="all options", label=found.section)
            continue
        below = entry["field"].removeprefix(above)
        found = next(assumptions_of([entry | {"field": f"{FLEETS}.{places[above]}.{below}"}], REQUEST))
        yield replace(found, section=f"own: {above.removeprefix(f'{FLEETS}.').removesuffix('.')}", label=field_words(below))
