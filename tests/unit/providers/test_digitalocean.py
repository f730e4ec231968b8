"""DigitalOcean: small answers in the shape of https://docs.digitalocean.com/reference/api, prices as listed in 2025."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from providers.digitalocean import DigitalOcean
from providers.testing import mock_answers
from tests.unit.providers.conformance import Conformance, RecordedAnswer

URL = "https://api.digitalocean.com/v2/sizes"


def droplet(
    slug: str, model: str, gpus: int, memory: int, price: float, regions: tuple[str, ...] = ("nyc1",), available: bool = True
) -> dict[str, Any]:
    """A droplet with GPUs as the API writes it; the memory is that of all."""
    info = {"count": gpus, "vram": {"amount": memory, "unit": "gib"}, "model": model}
    return {"slug": slug, "price_hourly": price, "regions": list(regions), "available": available, "gpu_info": info}


SIZES = [
    {"slug": "s-1vcpu-1gb", "price_hourly": 0.00744, "regions": ["nyc1"], "available": True},
    droplet("gpu-h100x8-640gb", "nvidia_h100", 8, 640, 23.92, ("nyc1", "tor1")),
    droplet("gpu-mi300x8-1536gb", "amd_mi300x", 8, 1536, 15.92, ()),
    droplet("gpu-l40sx1-48gb", "nvidia_l40s", 1, 48, 1.57, available=False),
    droplet("gpu-mi300x8-1536gb-contracted", "amd_mi300x", 8, 1536, 13.52),
]


class TestDigitalOcean(Conformance):
    """What the sizes become."""

    provider = DigitalOcean
    env = {"DIGITALOCEAN_TOKEN": "token"}
    answers = (RecordedAnswer(URL, {"sizes": SIZES, "links": {}, "meta": {"total": len(SIZES)}}),)

    def test_a_droplet_can_be_ordered_in_its_regions(self) -> None:
        """The price is for all GPUs, and so is the memory."""
        found = [offer for offer in self.fetched().offers if offer.instance_type == "gpu-h100x8-640gb"]
        assert {(o.region, o.usd_per_hour, o.accelerator, o.accelerator_count, o.availability) for o in found} == {
            ("nyc1", Decimal("23.92"), "NVIDIA-H100-80GB-SXM", 8, "offered"),
            ("tor1", Decimal("23.92"), "NVIDIA-H100-80GB-SXM", 8, "offered"),
        }

    def test_without_regions_or_not_available_the_price_is_only_listed(self) -> None:
        """It cannot be ordered anywhere."""
        found = {offer.instance_type: offer for offer in self.fetched().offers if offer.availability == "listed"}
        assert set(found) == {"gpu-mi300x8-1536gb", "gpu-l40sx1-48gb"}
        assert {offer.region for offer in found.values()} == {"any"}

    def test_processors_alone_and_contracts_are_left_out(self) -> None:
        """The one trains nothing, the other is not for everybody."""
        assert self.fetched().skipped == {"no accelerator": 1, "sold by contract only": 1}

    def test_further_pages_are_asked_for_at_the_same_place(self) -> None:
        """The token goes nowhere else, whatever the link to the next page says."""
        links = {"pages": {"next": "https://elsewhere.example/v2/sizes?page=2"}}
        pages = ({"sizes": SIZES[:2], "links": links}, {"sizes": SIZES[2:], "links": {"pages": {"prev": "x"}}})
        answers = tuple(RecordedAnswer(f"{URL}?per_page=200&page={number}", body) for number, body in enumerate(pages, 1))
        with mock_answers(answers) as mock:
            fetched = self.make().fetch()
            assert [call.request.headers["Authorization"] for call in mock.calls] == ["Bearer token"] * 2
        assert len(fetched.offers) == 4

    def test_a_later_page_that_fails_is_named(self) -> None:
        """What the earlier pages brought stays."""
        first = RecordedAnswer(URL, {"sizes": SIZES, "links": {"pages": {"next": f"{URL}?page=2"}}})
        fetched = self.fetched((first, replace(first, status=500, body="oops")))
        assert [rejected.row for rejected in fetched.rejected] == ["further pages"]
        assert len(fetched.offers) == 4
