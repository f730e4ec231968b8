"""Places by names that are neither a country's nor a region's own: the Nordics, Asia, Dublin."""

from __future__ import annotations

from service.formats.ask.lexing.pieces import COUNTRIES
from service.formats.ask.lexing.vocabulary import Vocabulary, load_lexicon
from service.presets.comparison.defaults import countries_of
from service.presets.hardware.regions import load_regions, region_cities


def test_countries_by_other_names_are_known_jurisdictions() -> None:
    groups = {value for kind, value in load_lexicon().by_phrase.values() if kind == COUNTRIES}
    assert groups
    for group in groups:
        codes = group.split()
        assert len(codes) == len(set(codes)) > 0
        assert all(countries_of(code) for code in codes)


def test_cities_stand_for_regions_that_are_known() -> None:
    assert all(key in load_regions() for keys in region_cities().values() for key in keys)


def test_a_city_is_that_of_each_provider_with_a_region_there(vocabulary: Vocabulary) -> None:
    assert {(name.provider, name.value) for name in vocabulary.places["dublin"]} == {("aws", "eu-west-1"), ("azure", "northeurope")}
    assert {name.value for name in vocabulary.places["n.virginia"]} <= {name.value for name in vocabulary.places["virginia"]}
