"""Which source's price counts where several sell the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from providers.offer import Discount, Fetched, Offer
from service.prices.precedence import BookPart, add_team_prices, apply_discounts, merge_parts

NOW = datetime(2027, 1, 4, tzinfo=UTC)
OLD = NOW - timedelta(days=100)


def offer(usd: str, **changes: Any) -> Offer:
    row: dict[str, Any] = {
        "provider": "aws",
        "region": "us-east-1",
        "instance_type": "p5",
        "accelerator": "NVIDIA-H100-80GB-SXM",
        "accelerator_count": 8,
        "pricing": "on_demand",
        "usd_per_hour": Decimal(usd),
        "observed_at": NOW,
        "source": "list",
    }
    return Offer(**row | changes)


def part(asked: str, *offers: Offer, at: datetime = NOW, discounts: tuple[Discount, ...] = ()) -> BookPart:
    return BookPart(asked, at, offers, discounts)


def prices(*parts: BookPart) -> list[str]:
    return sorted(str(found.usd_per_hour) for found in merge_parts(parts))


class TestOneSourceEach:
    def test_a_providers_own_prices_replace_the_shipped_ones(self) -> None:
        """Also those of regions it does not name: an old price must not undercut what is asked today."""
        shipped = part("snapshot", offer("55"), offer("20", region="eu-west-1"), at=OLD)
        assert prices(shipped, part("aws", offer("60"))) == ["60"]

    def test_kinds_of_pricing_it_does_not_bring_stay(self) -> None:
        """A source without reserved prices says nothing about them."""
        shipped = part("snapshot", offer("55"), offer("30", pricing="reserved_3y"), at=OLD)
        assert prices(shipped, part("aws", offer("60"))) == ["30", "60"]

    def test_its_own_interface_stands_above_those_that_list_others(self) -> None:
        """Whichever was read last."""
        assert prices(part("aws", offer("60"), at=OLD), part("skypilot", offer("61"))) == ["60"]

    def test_of_those_the_one_read_last_counts_and_any_above_the_shipped(self) -> None:
        """Their rows are not mixed: they are of different ages."""
        older = part("gpuhunt", offer("61"), offer("62", region="eu-west-1"), at=OLD)
        shipped = part("snapshot", offer("55"), at=NOW)
        assert prices(shipped, older, part("skypilot", offer("63"))) == ["63"]
        assert prices(shipped, older) == ["61", "62"]

    def test_the_order_of_the_parts_does_not_matter(self) -> None:
        """The same parts make the same book."""
        parts = [part("snapshot", offer("55"), at=OLD), part("gpuhunt", offer("61")), part("skypilot", offer("63"))]
        assert prices(*parts) == prices(*parts[::-1])

    def test_one_thing_has_one_price(self) -> None:
        """Also where a source brings it twice."""
        assert prices(part("aws", offer("60"), offer("61"))) == ["61"]


class TestPriceFiles:
    def test_they_stand_above_everything_for_the_same_thing_alone(self) -> None:
        """However old they are; what they do not name stays as it is."""
        files = part("file", offer("41"), at=OLD)
        assert prices(part("aws", offer("60"), offer("62", region="eu-west-1")), files) == ["41", "62"]

    def test_a_price_stated_in_a_file_is_final(self) -> None:
        """Its own discounts are off the others' list prices."""
        files = part("file", offer("41"), discounts=(Discount("volume", Decimal("0.5")),))
        assert prices(part("aws", offer("60"), offer("62", region="eu-west-1")), files) == ["31.0", "41"]


class TestDiscounts:
    def test_they_apply_in_their_order_each_to_what_is_left(self) -> None:
        """The answer says what the list price was and which they are."""
        found = apply_discounts(offer("100"), [Discount("volume", Decimal("0.1")), Discount("loyalty", Decimal("0.2"))])
        assert found.usd_per_hour == Decimal(72)
        assert found.extras == {"list_usd_per_hour": "100", "discounts": "volume 10 %, loyalty 20 %"}

    @pytest.mark.parametrize("only", [{"provider": "AWS"}, {"region": "us-east-1"}, {"pricing": "on_demand"}, {}])
    def test_they_match_by_what_they_name(self, only: dict[str, Any]) -> None:
        """Case-blind; what they do not name may be anything."""
        assert apply_discounts(offer("100"), [Discount("d", Decimal("0.5"), **only)]).usd_per_hour == 50

    @pytest.mark.parametrize("other", [{"provider": "gcp"}, {"region": "x"}, {"pricing": "spot"}, {"accelerator": "AMD-MI300X"}])
    def test_others_are_left_alone(self, other: dict[str, Any]) -> None:
        """Nothing is added to them either."""
        assert apply_discounts(offer("100"), [Discount("d", Decimal("0.5"), **other)]) == offer("100")

    def test_only_list_prices_have_discounts(self) -> None:
        """Hosts of a marketplace have no contract with anybody."""
        host = offer("100", market="marketplace")
        assert apply_discounts(host, [Discount("d", Decimal("0.5"))]) is host


class TestATeamsOwn:
    def test_its_prices_stand_above_everybodys(self) -> None:
        """Also above those of other files; what it does not state stays, what nobody else has is added."""
        shared = [offer("55"), offer("60", region="eu-west-1"), offer("50", provider="gcp", source="contract")]
        own = Fetched((offer("40"), offer("30", provider="gcp"), offer("9", provider="own")), "o")
        found = add_team_prices(shared, own, lambda each: each.source == "contract")
        assert sorted(str(each.usd_per_hour) for each in found) == ["30", "40", "60", "9"]

    def test_its_discounts_come_off_what_everybodys_have_left(self) -> None:
        """Named together, with the price before all of them; prices that a file states are final."""
        enterprise, team = Discount("enterprise", Decimal("0.1")), Discount("team", Decimal("0.5"))
        shared = [apply_discounts(offer("100"), [enterprise]), offer("50", provider="gcp", source="contract")]
        found = {
            each.provider: each
            for each in add_team_prices(shared, Fetched((), "o", discounts=(team,)), lambda each: each.source == "contract")
        }
        assert (found["aws"].usd_per_hour, found["gcp"].usd_per_hour) == (45, 50)
        assert found["aws"].extras == {"list_usd_per_hour": "100", "discounts": "enterprise 10 %, team 50 %"}
        assert found["gcp"].extras == {}
