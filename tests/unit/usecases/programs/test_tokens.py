"""First token targets: levels and anchors of the data file, by the default scaling law."""

from __future__ import annotations

import pytest

from service.domain.errors import UnknownName
from service.presets.programs import complexities, generalisations
from service.presets.scaling.laws import default_law
from service.usecases.programs.tokens import suggest_tokens

LAW = default_law().law


@pytest.mark.parametrize("params", [1e9, 7e9, 70e9])
def test_more_generalisation_and_wider_domains_take_more_tokens(params: float) -> None:
    """Levels rise in the order of the file."""
    by_level = [suggest_tokens(params, "open_domain", level, LAW)[0].tokens.p50 for level in generalisations()]
    by_domain = [suggest_tokens(params, domain, "broad", LAW)[0].tokens.p50 for domain in complexities()]
    assert by_level == sorted(by_level)
    assert by_domain == sorted(by_domain)


@pytest.mark.parametrize("name", generalisations())
def test_the_targets_range_holds_what_its_models_were_trained_on(name: str) -> None:
    """At each model's own size, its own tokens lie in the range."""
    for anchor in generalisations()[name].anchors:
        found = suggest_tokens(anchor.params, "open_domain", name, LAW)[0].tokens
        assert found.p10 * (1 - 1e-9) <= anchor.tokens <= found.p90 * (1 + 1e-9)


def test_a_target_says_its_basis() -> None:
    """The models it goes by, and what the domain's share is taken from."""
    target, basis = suggest_tokens(7e9, "technical_domain", "broad", LAW)
    assert "Llama 2 7B" in basis
    assert "25.0% of that, as Code Llama" in basis
    assert target.tokens_per_param == pytest.approx(target.tokens.p50 / 7e9)


def test_a_level_that_is_not_there_is_refused_with_those_that_are() -> None:
    """And with the nearest."""
    with pytest.raises(UnknownName, match="in_distribution, broad, open_ended") as refused:
        suggest_tokens(7e9, "open_domain", "open_end", LAW)
    assert (refused.value.pointer, refused.value.near) == ("/data/generalisation", ("open_ended",))
