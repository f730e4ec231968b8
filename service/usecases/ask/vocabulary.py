"""The names that a question may hold, from presets, prices and the team's programs."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Set
from dataclasses import replace

from providers.offer import Offer
from service.context import AppContext
from service.domain.prices import PROVIDER_SYNONYMS
from service.domain.teams import Principal
from service.domain.training.model import GenericNetwork
from service.formats.ask.lexing.vocabulary import Name, Vocabulary, add_programs, compact, make_vocabulary
from service.presets.comparison.defaults import jurisdiction_groups
from service.presets.hardware.accelerators import find_accelerator, load_accelerators
from service.presets.hardware.regions import country_names, load_regions, region_cities
from service.presets.procurement.ownership import published_purchases
from service.presets.training.models import ModelPreset, load_models, unmodelled_families

FAMILIES = {
    "aws": re.compile(r"((?:p|g|trn|dl)\d+[a-z]*)\.\w+"),
    "gcp": re.compile(r"(a\d-[a-z]+gpu)-\d+g"),
    "azure": re.compile(r"Standard_(ND)\d+[a-z]+_(?:[A-Za-z]+_)?([A-Z]+\d+X?)_(v\d)"),
}
"""How providers name their instance types, with what people call a family of them."""
NODE_NAMES = ("dgx", "hgx")
"""Names of whole machines: a number before them counts machines."""
MOST_PER_RACK = 144
"""Accelerators that one link domain has within a rack (GB200 NVL72); larger domains are pods of several."""
MOST_PROGRAMS = 1000
AZURE_PREFIX = "Standard_"
"""What Azure begins the names of its instance types with, and people leave out."""
SHORTEST_INSTANCE = 6
EUROPE = "EU"
PLAIN_REGION = re.compile(r"[a-z]+[a-z0-9-]*")
NORTHERN = "Northern "
"""What people leave out of the name of a state: Northern Virginia."""
IMAGE = "image"
EXPERTS = re.compile(r"\d+x\d+(?:\.\d+)?b$")
"""The shape of a mixture of experts at the end of its name: 8x22b."""
MOST_PREPARED = 8
_prepared: OrderedDict[str, Vocabulary] = OrderedDict()
"""Vocabularies by the name of their price book, which identifies its prices."""


def vocabulary_of(context: AppContext) -> Vocabulary:
    """Models, accelerators, sellers, regions and jurisdictions, prepared once for a state of the prices."""
    book = context.book()
    found = _prepared.get(book.name)
    if found is None:
        places = tuple(sorted(set(map(_place, book.offers))))
        found = _prepared[book.name] = _vocabulary(places, tuple(sorted(set(map(_instance, book.offers)))))
        while len(_prepared) > MOST_PREPARED:
            _prepared.popitem(last=False)
    return found


def with_programs(context: AppContext, who: Principal, vocabulary: Vocabulary) -> Vocabulary:
    """The vocabulary with the team's programs, the newest thousand of them. Raises StoreUnavailable."""
    if context.store.absent():
        return vocabulary
    found = context.store.programs(who.team, 0, MOST_PROGRAMS)
    return add_programs(
        vocabulary, [Name("G", str(program.body["name"]), (str(program.body["name"]),), id=program.id) for program in found]
    )


def _instance(offer: Offer) -> tuple[str, str, str, int]:
    return offer.provider, offer.instance_type, offer.accelerator, offer.accelerator_count


def _place(offer: Offer) -> tuple[str, str]:
    return offer.provider, offer.region


@functools.lru_cache(maxsize=MOST_PREPARED)
def _vocabulary(places: tuple[tuple[str, str], ...], instances: tuple[tuple[str, str, str, int], ...]) -> Vocabulary:
    """The vocabulary of sellers and their regions; prices change more often than these."""
    providers = tuple(dict.fromkeys(provider for provider, _ in places))
    return make_vocabulary(
        (*_models(), *_accelerators(), *_providers(providers), *_regions(places), *_jurisdictions(), *_instances(instances)),
        {compact(prefix): near for prefix, near in unmodelled_families().items()},
        _cities(places),
    )


def _models() -> Iterator[Name]:
    """Presets by their names; a shape that one mixture of experts alone has, 8x22b, is its name too."""
    presets = load_models().values()
    of_shape = Counter(_shape(preset.name) for preset in presets)
    for preset in presets:
        shape, active = _shape(preset.name), preset.active_params or preset.params
        named = Name(
            "M",
            preset.name,
            (preset.name, *preset.aliases),
            params=preset.params,
            active_params=active,
            tokens=preset.training_tokens or 0,
            seq_len=preset.seq_len or 0,
            sample_unit=_sample_unit(preset),
        )
        yield named
        if shape and of_shape[shape] == 1:
            yield replace(named, labels=(shape,), why=f"the shape of {preset.name} alone")


def _sample_unit(preset: ModelPreset) -> str:
    """What the data of a model are counted in where it is not tokens."""
    if preset.architecture == "vit":
        return IMAGE
    counted = preset.model.sample_unit if isinstance(preset.model, GenericNetwork) else ""
    return "" if counted == "token" else counted


def _shape(model: str) -> str:
    """Experts and their size at the end of a name; empty where there are none."""
    found = EXPERTS.search(model)
    return found.group() if found else ""


def _accelerators() -> Iterator[Name]:
    """A name for each way to call a part: requests keep the caller's, so that its doubt is the endpoint's too."""
    for accelerator in load_accelerators().values():
        plain = accelerator.name.partition("-")[2]  # without the vendor
        for label in dict.fromkeys((accelerator.name, *accelerator.aliases, plain)):
            if not label.lower().startswith(NODE_NAMES):
                found = find_accelerator(label)
                per_node, domain = found.accelerator.accelerators_per_node, found.accelerator.link_domain
                per_rack = domain if per_node < domain <= MOST_PER_RACK else 0
                name = Name("A", label, (label,), found.ambiguous_with, found.why, per_node=per_node, per_rack=per_rack)
                published = published_purchases().get(found.accelerator.name)
                purchase = (published.usd, published.source) if published else None
                yield replace(name, memory_gb=found.accelerator.memory_gb, purchase=purchase)


def _providers(names: tuple[str, ...]) -> Iterator[Name]:
    synonyms: dict[str, list[str]] = {}
    for other, name in PROVIDER_SYNONYMS.items():
        synonyms.setdefault(name, []).append(other)
    for name in names:
        yield Name("P", name, (name, *synonyms.get(name, ())))


def _regions(places: tuple[tuple[str, str], ...]) -> Iterator[Name]:
    for provider, region in places:
        if any(character.isdigit() for character in region) or region.islower():
            yield Name("R", region, (region,), provider=provider)


def _cities(places: tuple[tuple[str, str], ...]) -> Mapping[str, tuple[Name, ...]]:
    """Regions by the city or state that they lie in, and by the code of their country, whose names are jurisdictions."""
    countries = {compact(label) for names in country_names().values() for label in names}
    found: dict[str, list[Name]] = {}
    for name in _regions(places):
        key = f"{name.provider}:{name.value}".casefold()
        for place in _places_of(key, countries) if PLAIN_REGION.fullmatch(name.value.casefold()) else ():
            for label in {compact(each) for each in _spellings(place)}:
                found.setdefault(label, []).append(replace(name, why=f"{place} is its place"))
    of_places = {label: tuple(names) for label, names in found.items() if label not in countries}  # Georgia
    return {**of_places, **_of_countries(places)}


def _of_countries(places: tuple[tuple[str, str], ...]) -> Mapping[str, tuple[Name, ...]]:
    """Regions by the code of their country."""
    found: dict[str, list[Name]] = {}
    for name in _regions(places):
        region = load_regions().get(f"{name.provider}:{name.value}".casefold())
        if region is not None and region.country and PLAIN_REGION.fullmatch(name.value.casefold()):
            found.setdefault(region.country, []).append(name)
    return {code: tuple(names) for code, names in found.items()}


def _places_of(key: str, countries: Set[str]) -> Iterator[str]:
    """The city or state of a region, and the cities that it is known by besides."""
    region = load_regions().get(key)
    if region is not None and compact(region.place) not in countries and "," not in region.place:
        yield region.place
    yield from (city for city, keys in region_cities().items() if key in keys)


def _spellings(place: str) -> Iterator[str]:
    """A place as it is written: with its accents and without, N. Virginia or Virginia of Northern Virginia."""
    plain = unicodedata.normalize("NFKD", place).encode("ascii", "ignore").decode()
    state = plain.removeprefix(NORTHERN)
    yield from (place, plain, state, *((f"N. {state}", f"N {state}", f"North {state}") if state != plain else ()))


def _instances(sold: tuple[tuple[str, str, str, int], ...]) -> Iterator[Name]:
    """Instance types that hold one kind and number of accelerators, by names that cannot be read as an accelerator's."""
    machines = [compact(name.value) for name in _accelerators()]
    of_type = Counter((provider, instance) for provider, instance, _, _ in sold)
    for provider, instance, accelerator, count in sold:
        label = instance.removeprefix(AZURE_PREFIX)
        named = len(label) >= SHORTEST_INSTANCE and any(sign in label for sign in ".-_") and any(letter.isdigit() for letter in label)
        plain = (
            label[0].isalpha() and not compact(label).startswith((*machines, *NODE_NAMES)) and not any(letter in label for letter in " /")
        )
        if named and plain and of_type[provider, instance] == 1:
            yield Name("C", instance, (instance, label), per_node=count, provider=provider, accelerator=accelerator)
    yield from _families(sold)


def _families(sold: tuple[tuple[str, str, str, int], ...]) -> Iterator[Name]:
    """Families of instance types, as people call them (p5, a3-megagpu, ND H100 v5), of one kind of accelerator: their largest type."""
    members: dict[tuple[str, str], list[tuple[int, str, str]]] = {}
    for provider, instance, accelerator, count in sold:
        pattern = FAMILIES.get(provider)
        if pattern is not None and (found := pattern.fullmatch(instance)):
            members.setdefault((provider, " ".join(found.groups())), []).append((count, instance, accelerator))
    for (provider, family), types in members.items():
        if len({accelerator for _, _, accelerator in types}) == 1:
            count, instance, accelerator = max(types)
            yield Name("C", instance, (family, family.removesuffix("gpu")), per_node=count, provider=provider, accelerator=accelerator)


def _jurisdictions() -> Iterator[Name]:
    for group in jurisdiction_groups():
        yield Name("J", group, (group, "European Union") if group == EUROPE else (group,))
    yield Name("J", EUROPE, ("Europe",), why=f"Europe read as the {EUROPE}")
    for code, names in country_names().items():
        yield Name("J", code, (code, *names))
