"""What can be had of an offer: quotas, and counts above what a provider lets without a contract."""

from __future__ import annotations

import pytest

from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.comparison.options import Option
from service.domain.errors import UnknownName
from service.usecases.training.estimate import estimate
from tests.unit.usecases.comparison.comparing import A100, H100, MARKET, WORKLOAD, by_id, compared, offer, selling
from tests.unit.usecases.requests import pointer_of


@pytest.fixture
def context(settings: Settings) -> AppContext:
    """A context that sells the market."""
    return selling(build_context(settings))


def of_provider(options: tuple[Option, ...], provider: str) -> list[Option]:
    return [option for option in options if option.offer.provider == provider]


def test_options_above_a_quota_are_not_feasible_and_say_so(context: AppContext) -> None:
    """At its provider alone, spares counted; within it nothing changes."""
    asked = {"counts": [64, 128], "quotas": [{"provider": "aws", "count": 100}]}
    found = compared(context, asked)
    above = [option for option in of_provider(found.options, "aws") if option.count == 128]
    assert found.infeasible["over_quota"] == len(above) > 0
    for option in above:
        assert not option.feasible
        assert any("more than the quota of 100 at aws" in reason for reason in option.reasons)
    without = by_id(compared(context, {"counts": [64, 128]}))
    others = [option for option in found.options if option not in above]
    assert all(option.feasible == without[option.id].feasible for option in others)


@pytest.mark.parametrize(
    ("quota", "hit"),
    [
        ({"provider": "aws", "region": "eu-central-1", "count": 8}, {("aws", "eu-central-1")}),
        ({"provider": "nebius", "accelerator": "H200", "count": 8}, {("nebius", "eu-north1")}),
        ({"provider": "gcp", "accelerator": "H100", "count": 8}, set()),
    ],
)
def test_a_quota_holds_for_its_region_and_accelerator(context: AppContext, quota: dict[str, object], hit: set[tuple[str, str]]) -> None:
    """And for nothing else of the provider."""
    found = compared(context, {"quotas": [quota]})
    assert {(option.offer.provider, option.offer.region) for option in found.options if "quota" in " ".join(option.reasons)} == hit


def test_of_several_quotas_the_smallest_holds(context: AppContext) -> None:
    """A quota of all regions and one of a region are both kept."""
    for quotas in ([8, 640], [640, 8]):
        found = compared(context, {"quotas": [{"provider": "aws", "count": count} for count in quotas]})
        assert not any(option.feasible for option in of_provider(found.options, "aws"))


def test_quotas_that_match_nothing_are_said(context: AppContext) -> None:
    """A provider that sells nothing here, and an accelerator that does not exist."""
    found = compared(context, {"quotas": [{"provider": "nobody", "count": 8}]})
    assert any("the quota of nobody matches no offer" in warning for warning in found.warnings)
    wrong = [{"provider": "aws", "count": 8}, {"provider": "aws", "accelerator": "H1000", "count": 8}]
    assert pointer_of(lambda: compared(context, {"quotas": wrong}), UnknownName) == "/candidates/quotas/1/accelerator"


def test_counts_above_what_a_provider_lets_need_a_contract(context: AppContext) -> None:
    """On demand, spot and reservations that are a discount, not where a quota is granted: a text at the option and one warning."""
    found = compared(context, {"counts": [512, 1024], "providers": ["aws"]})
    needing = {(option.count, option.offer.pricing) for option in found.options if option.needs_contract}
    assert 512 not in {count for count, _ in needing}
    assert (1024, "on_demand") in needing
    assert (1024, "spot") in needing
    assert (1024, "reserved_1y") in needing
    assert any("more than about 512 accelerators at aws need a contract" in warning for warning in found.warnings)
    granted = compared(context, {"counts": [1024], "providers": ["aws"], "quotas": [{"provider": "aws", "count": 2048}]})
    assert not any(option.needs_contract for option in granted.options)


def test_it_rules_out_only_where_options_must_be_available(context: AppContext) -> None:
    """A price that nobody can order at is still the best guess of one, unless the caller asks for what can be ordered."""
    asked = {"counts": [1024], "providers": ["nebius"], "accelerators": [H100]}
    free = compared(context, asked)
    assert all(option.feasible and option.needs_contract for option in free.options)
    strict = compared(context, asked, constraints={"require_available": True})
    assert strict.infeasible["needs_contract"] == len(strict.options)


def test_a_kind_of_price_that_nobody_has_is_said(context: AppContext) -> None:
    """By accelerator; kinds that are not asked for are not missed."""
    found = compared(context, {"accelerators": [H100, A100], "pricing": ["on_demand", "reserved_1y"]})
    (text,) = (warning for warning in found.warnings if "reserved_1y price" in warning)
    assert text.startswith(f"no reserved_1y price of {A100} is known among these candidates: a vendor's quote is needed to compare it;")
    assert "aws, azure, gcp, runpod, verda publish commitments" in text
    assert not any("price of" in warning and "is known" in warning for warning in compared(context).warnings)


def test_an_estimate_at_a_list_price_warns_of_counts_that_need_a_contract(context: AppContext) -> None:
    """Not at the caller's own price."""
    request = WORKLOAD | {"hardware": {"accelerator": "H100", "count": 1024}}
    listed = estimate(selling(context, [offer("3.90"), *MARKET[:2]]), request | {"price": {"provider": "aws"}})
    assert any("more than about 512 accelerators at aws need a contract" in warning for warning in listed.warnings)
    at_most = request | {"hardware": {"accelerator": "H100", "count": 512}, "price": {"provider": "aws"}}
    assert not any("need a contract" in warning for warning in estimate(context, at_most).warnings)
    stated = estimate(context, request | {"price": {"usd_per_accelerator_hour": 2.0}})
    assert not any("need a contract" in warning for warning in stated.warnings)
