"""The published laws: every figure with a source and a date, and draws from what is published of their uncertainty."""

from __future__ import annotations

import re

import numpy as np
import pytest

from service.domain.errors import UnknownName
from service.domain.scaling.laws import PARAMETERS, ParametricLaw
from service.engine.scaling.laws import loss
from service.engine.scaling.optimum import optimum_for_flops
from service.presets.scaling.laws import default_law, find_law, load_laws, load_mixture_law, repetition_decay
from service.usecases.scaling.optimum_request import draw_published_laws

LAWS = load_laws()
UNCERTAIN = [name for name, known in LAWS.items() if known.covariance is not None or known.exponents is not None]


@pytest.mark.parametrize("name", LAWS)
def test_every_law_says_where_it_comes_from(name: str) -> None:
    """A title, a source with an arXiv number, a date, and which parameters it counts."""
    known = LAWS[name]
    assert known.name == name
    assert re.search(r"\d{4}, [a-z]|et al\. 20\d\d|Llama 3", known.title)
    assert re.search(r"arXiv \d{4}\.\d{5}", known.source)
    assert re.fullmatch(r"20\d\d-\d\d", known.date)
    assert known.counts in {"all", "non-embedding", "active non-embedding"}


@pytest.mark.parametrize("name", LAWS)
def test_every_law_gives_a_sensible_optimum(name: str) -> None:
    """For 1e22 FLOPs every law wants 1 to 100 billion parameters, and more of everything for ten times as much."""
    small, large = (optimum_for_flops(LAWS[name].law, flops) for flops in (1e22, 1e23))
    assert 1e9 < small.params < 1e11
    assert large.params > small.params
    assert large.tokens > small.tokens


def test_the_contracts_laws_are_there_and_besiroglus_is_taken() -> None:
    """By the names of the API's contract."""
    assert {"hoffmann-1", "hoffmann-2", "hoffmann-3", "besiroglu", "kaplan"} <= set(LAWS)
    assert default_law() is find_law("besiroglu")


def test_an_unknown_law_is_refused_with_the_known_ones() -> None:
    """The message lists them all, and the nearest come apart."""
    with pytest.raises(UnknownName, match="besiroglu, hoffmann-1") as refused:
        find_law("hofmann-3")
    assert refused.value.pointer == "/law"
    assert refused.value.near[0] == "hoffmann-3"


@pytest.mark.parametrize("name", UNCERTAIN)
def test_draws_lie_around_the_law_and_repeat_with_the_seed(name: str) -> None:
    """Half of the drawn optima are larger than the law's own; the same seed gives the same draws."""
    known = LAWS[name]
    first, again = (optimum_for_flops(draw_published_laws(known, np.random.default_rng(5), 4_000), 1e24).params for _ in range(2))
    assert np.mean(first > optimum_for_flops(known.law, 1e24).params) == pytest.approx(0.5, abs=0.05)
    assert np.array_equal(first, again)


@pytest.mark.parametrize("name", sorted(set(LAWS) - set(UNCERTAIN)))
def test_a_law_of_unknown_uncertainty_has_no_draws(name: str) -> None:
    """Nothing is invented where nothing is published."""
    assert draw_published_laws(LAWS[name], np.random.default_rng(5), 10) is None


def test_besiroglus_draws_have_the_published_standard_errors() -> None:
    """Table 1 prints 0.03, 124.58, 1293.23, 0.02 and 0.02, to one digit where small; B's draws are skewed, so it is held to 30 %."""
    known = find_law("besiroglu")
    law = draw_published_laws(known, np.random.default_rng(11), 20_000)
    assert isinstance(law, ParametricLaw)
    for name in PARAMETERS:
        deviation, published = float(np.std(getattr(law, name))), known.standard_errors[name]
        assert deviation == pytest.approx(published, rel=0.3 if name != "A" else 0.05), name


def test_drawn_losses_are_surer_than_drawn_parameters() -> None:
    """A and alpha err together: inside the measured sizes drawn laws agree on the loss to 0.2 %."""
    law = draw_published_laws(find_law("besiroglu"), np.random.default_rng(11), 2_000)
    assert law is not None
    assert float(np.std(loss(law, 1e9, 2e10))) < 0.002 * 2.53


def test_the_mixture_is_of_the_granularity_asked_for() -> None:
    """The file's own where none is stated; finer experts do better."""
    assert load_mixture_law().at_granularity(16.0) == find_law("krajewski-moe").law
    assert loss(load_mixture_law().at_granularity(64.0), 1e9, 1e11) < loss(load_mixture_law().at_granularity(16.0), 1e9, 1e11)


def test_repeats_decay_as_published() -> None:
    """R*_D of 15.4 epochs and R*_N of 5.3 sizes, with their source."""
    decay, source = repetition_decay()
    assert (round(decay.tokens, 1), round(decay.params, 1)) == (15.4, 5.3)
    assert "2305.16264" in source
