"""The section of electricity of one run, and the place whose grid its carbon is of."""

from __future__ import annotations

from service.formats.ask.grammar.asking.intents import GRID
from service.formats.ask.grammar.machines.grid_places import GRID_PLACE
from service.formats.ask.lexing.vocabulary import Name
from service.formats.ask.requests.draft import Draft, Request, stated
from service.formats.ask.requests.fields import stated_fields

CARBON = "energy.tco2e"
"""The field of an estimate's answer that is noted where carbon is asked for."""
REGION = "energy.region"


def energy_section(draft: Draft, *, carbon: bool) -> Request:
    """Electricity as it is stated, with the place of the grid where carbon or power is asked for."""
    place = draft.one(GRID_PLACE, REGION)
    region = _place_of_grid(draft) if carbon and place is None else None
    if isinstance(place, Name):
        if carbon:
            draft.note(CARBON, place.value, "carbon is asked for: the answer has it")
        region = f"{place.provider}:{place.value}" if place.provider else f"country:{place.value}"
    return stated(
        region=region,
        pue=draft.one("pue", "energy.pue"),
        usd_per_kwh=draft.one("usd_per_kwh", "energy.usd_per_kwh"),
    ) | stated_fields(draft, "energy")


def _place_of_grid(draft: Draft) -> str | None:
    """A country, or the one region in a city that is named without a seller: its carbon needs no price there."""
    country = draft.one("jurisdiction", REGION)
    region = draft.slots.peek("region")
    _note_carbon(draft, country)
    if country is not None:
        return f"country:{country.value}"
    if not isinstance(region, Name) or not region.why or draft.slots.has("provider"):
        return None
    draft.slots.all = tuple(slot for slot in draft.slots.all if slot.name != "region")
    draft.note(REGION, f"{region.provider}:{region.value}", region.why)
    return f"{region.provider}:{region.value}"


def _note_carbon(draft: Draft, country: Name | None) -> None:
    """That the answer has the carbon asked for, and of which grid: a country's, a stated one, the region's or offer's, the world's."""
    grid, region = draft.slots.peek(GRID), draft.slots.peek("region")
    of_offer = region.value if isinstance(region, Name) else "the region of the offer" if draft.slots.has("provider") else "world"
    place = country.value if country else of_offer if grid is None else f"{grid} gCO2e/kWh"
    draft.note(CARBON, place, "carbon is asked for: the answer has it")
