"""What those are told whose candidates nobody sells, and prices of a certain age."""

from __future__ import annotations

from typing import Any

import pytest

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.errors import NoOffer, UnknownName
from tests.unit.usecases.comparison.comparing import A100, compared, offer, selling

SOLD = (
    offer("2.00", days=10),
    offer("1.50", "nebius", "eu-north1", pricing="spot", days=40),
    offer("1.00", "gcp", "europe-west4", accelerator=A100, pricing="reserved_1y", days=40),
)


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context with few offers."""
    return selling(build_context(settings), SOLD)


@pytest.mark.parametrize(
    ("candidates", "pointer", "near"),
    [
        ({"providers": ["nebuis"]}, "/candidates/providers/0", "nebius"),
        ({"providers": ["gpc", "awss"]}, "/candidates/providers/0", "gcp"),
        ({"regions": ["us-east1"]}, "/candidates/regions/0", "us-east-1"),
    ],
)
def test_names_that_are_all_unknown_are_an_error_with_near_ones(
    context: AppContext, candidates: dict[str, Any], pointer: str, near: str
) -> None:
    """At the first of them."""
    with pytest.raises(UnknownName, match=f"did you mean {near}") as caught:
        compared(context, candidates)
    assert (caught.value.pointer, caught.value.near[0]) == (pointer, near)


@pytest.mark.parametrize(
    ("candidates", "told"),
    [
        (
            {"accelerators": ["H100"], "pricing": ["reserved_1y"]},
            [
                "NVIDIA-H100-80GB-SXM has no pricing reserved_1y here, known are on_demand, spot (candidates.pricing)",
                "there are offers of NVIDIA-A100-80GB-SXM, but none of NVIDIA-H100-80GB-SXM (candidates.accelerators)",
            ],
        ),
        ({"accelerators": ["A100-80GB"], "regions": ["us-east-1"]}, ["has no regions us-east-1 here, known are europe-west4"]),
        ({"providers": ["gcp"], "max_age_days": 30.0}, ["the newest matching price was read 40 days ago (candidates.max_age_days)"]),
        ({"accelerators": ["MI300X"], "providers": ["aws"], "pricing": ["spot"]}, ["no single filter rules out all offers"]),
    ],
)
def test_where_no_offer_answers_the_filter_to_drop_is_named(context: AppContext, candidates: dict[str, Any], told: list[str]) -> None:
    """With what there is without it."""
    with pytest.raises(NoOffer) as caught:
        compared(context, candidates)
    assert caught.value.pointer == "/candidates"
    assert [part for part in told if part not in caught.value.message] == []


def test_only_prices_of_a_certain_age_where_that_is_asked_for(context: AppContext) -> None:
    """Those read within so many days."""
    assert {option.offer.provider for option in compared(context, {"max_age_days": 30.0}).options} == {"aws"}
    assert compared(context, {"max_age_days": 40.0}).considered == compared(context).considered == len(SOLD)


def test_the_best_option_with_a_fresh_price_is_named_where_that_of_the_first_is_stale(settings: Settings) -> None:
    """And shown however few options are; where the first is fresh there is nothing to say."""
    market = (offer("1.00", "lambda", "us-west-1", days=200), offer("2.00", "nebius", "eu-north1", days=190), offer("3.00"))
    found = compared(selling(build_context(settings), market), limit=1)
    assert [(option.rank, option.offer.provider) for option in found.options] == [(1, "lambda"), (3, "aws")]
    assert "64 H100-80GB at aws us-east-1, on demand, $" in found.warnings[0]
    assert "the best option with a fresh price" in found.warnings[0]
    fresh = compared(selling(build_context(settings), market[2:]))
    assert not any("stale" in text for text in fresh.warnings)
