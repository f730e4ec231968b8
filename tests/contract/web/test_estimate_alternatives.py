"""/estimate: the same run at each provider, with another layout, and with another context length."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from flask.testing import FlaskClient

from service.formats.headline import money
from service.web.alternatives import layouts_finding
from tests.contract.web.visitor import text_of, words_of

RUN = "model=llama-3-8b&data.tokens=1T&hardware.accelerator=H100&hardware.count=256"
ROW = re.compile(r'<th role="rowheader" scope="row">([^<]+)<br>(.*?)</tr>', re.DOTALL)


def links(page: object, pattern: str) -> list[str]:
    """Addresses of the page that have it in their text or name."""
    return [unescape(found) for found in re.findall(rf'<a href="([^"]+)"{pattern}', text_of(page))]


def test_each_provider_has_its_cheapest_offer(client: FlaskClient) -> None:
    """As /v1/compare has them, fresh prices before old ones; the estimate's own is marked, any other is a link to its estimate."""
    request = {
        "workload": {"model": {"preset": "llama-3-8b"}, "data": {"tokens": "1T"}},
        "candidates": {"accelerators": ["H100"], "counts": [256], "pricing": ["on_demand"]},
        "limit": 1000,
    }
    options = [each for each in client.post("/v1/compare", json=request).get_json()["options"] if each["feasible"]]
    best: dict[str, tuple[bool, float]] = {}
    for option in options:
        place = option["offer"]["stale"], option["cost_usd"]["p50"]
        best[option["offer"]["provider"]] = min(place, best.get(option["offer"]["provider"], (True, 1e99)))
    page = client.get(f"/estimate/providers?{RUN}")
    rows = ROW.findall(text_of(page))
    assert [provider for provider, _ in rows] == sorted(best, key=best.__getitem__)
    assert all(money(best[provider][1]) in row for provider, row in rows)
    own = client.get(f"/estimate?{RUN}&format=json").get_json()["price"]["provider"]
    assert [provider for provider, row in rows if "this one" in row] == [own]
    other = next(unescape(link) for link in re.findall(r'href="(/estimate\?[^"]+)"', text_of(page)))
    there = client.get(f"{other}&format=json").get_json()["price"]["provider"]
    assert there == parse_qs(urlsplit(other).query)["price.provider"][0] != own


def test_the_page_leads_to_all_offers_without_scripts(client: FlaskClient) -> None:
    """By a link to the comparison of the same run; with scripts the providers take its place."""
    page = client.get(f"/estimate?{RUN}")
    assert 'data-fragment="/estimate/providers?' in text_of(page)
    (leads,) = links(page, ">Compare every offer<")
    compared = words_of(client.get(leads))
    assert "Cheapest of" in compared
    assert "256 H100-80GB" in compared


def test_an_own_price_is_compared_with_what_is_sold(client: FlaskClient) -> None:
    """No provider is then the estimate's."""
    page = words_of(client.get(f"/estimate/providers?{RUN}&price.usd_per_accelerator_hour=2"))
    assert "On demand, the cheapest offer of each" in page
    assert "this one" not in page


def test_a_machine_that_nobody_sells_says_so(client: FlaskClient) -> None:
    page = words_of(client.get("/estimate/providers?model=7B&data.tokens=1T&hardware.accelerator=H800&hardware.count=64"))
    assert "Nobody sells this machine on demand." in page


def test_nothing_is_compared_without_an_estimate(client: FlaskClient) -> None:
    assert client.get("/estimate/providers").status_code == 404


def test_another_layout_is_compared_with_the_chosen_one(client: FlaskClient) -> None:
    """Both stated, so that both are timed alike: the slower layout is later, by as much as the table says."""
    page = client.get(f"/estimate?{RUN}")
    answer = client.get(f"/estimate?{RUN}&format=json").get_json()
    others = answer["throughput"]["alternatives"]
    leads = links(page, ' aria-label="Compare with')
    assert len(leads) == len(others)
    at = next(place for place, other in enumerate(others) if other["fits"] and other["slower_by"] > 0.01)
    compared = words_of(client.get(leads[at]))
    assert re.search(r"After the change: \$[\d,.]+ more and [\d.]+ days later", compared)
    assert "training: micro-batch" in compared or "parallelism:" in compared


def test_other_layouts_are_said_where_the_taken_one_is(client: FlaskClient) -> None:
    """Next to the answer, with a link to their table."""
    page = client.get(f"/estimate?{RUN}")
    others = client.get(f"/estimate?{RUN}&format=json").get_json()["throughput"]["alternatives"]
    top = text_of(page).partition("<h2>")[0]
    assert f'<a href="#layouts">{layouts_finding(others)}</a>' in top
    assert text_of(page).count('id="layouts"') == 1
    assert "Layout: " in top


@pytest.mark.parametrize(
    ("others", "finding"),
    [
        ([(0.0213, True), (0.3, True), (-0.1, False)], "3 other layouts, the best 2.1% slower"),
        ([(0.0001, True), (0.3, True)], "2 other layouts, the best as fast"),
        ([(-0.04, True)], "1 other layout, 4.0% faster"),
        ([(0.1, False), (-0.1, False)], "2 other layouts, none of which fits"),
        ([(0.1, False)], "1 other layout, which does not fit"),
    ],
)
def test_the_best_of_other_layouts_is_one_that_fits(others: list[tuple[float, bool]], finding: str) -> None:
    """By how much it is slower than the one taken."""
    assert layouts_finding([{"slower_by": slower_by, "fits": fits} for slower_by, fits in others]) == finding


def test_context_lengths_are_compared(client: FlaskClient) -> None:
    """Half, and the double and more of what is assumed; a longer context takes longer."""
    page = client.get(f"/estimate?{RUN}")
    leads = links(page, r">[\d,]+ tokens<")
    assert [parse_qs(urlsplit(link).query)["training.seq_len"][0] for link in leads] == ["4096", "16384", "32768", "65536"]
    compared = words_of(client.get(leads[1]))
    assert re.search(r"After the change: \$[\d,.]+ more and [\d.]+ days later", compared)
    assert "training: sequence length not stated 16384" in compared
