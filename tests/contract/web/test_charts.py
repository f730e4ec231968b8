"""Charts that answer: the bundle's address, and the specification that each picture is drawn from."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import unquote, urlencode

import pytest
from flask.testing import FlaskClient

from service.formats.documents.charts import draw_svg
from service.web.assets import FOREVER
from tests.contract.web.test_buy_or_rent_page import FIELDS as PURCHASE
from tests.contract.web.test_compare_page import FIELDS as COMPARISON
from tests.contract.web.test_estimate_page import RUN

ADDRESSES = [
    "/estimate/cost.svg?" + urlencode(RUN),
    "/estimate/memory.svg?" + urlencode(RUN),
    "/compare/options.svg?" + urlencode(COMPARISON),
    "/buy-or-rent/curves.svg?" + urlencode(PURCHASE),
    "/buy-or-rent/grid.svg?" + urlencode(PURCHASE),
]
LARGEST_BYTES = 350_000


def scripts_of(client: FlaskClient) -> dict[str, str]:
    """Addresses of the scripts that a page leads to, each by its name."""
    found, to_read = {}, re.findall(r'src="(/assets/[^"]+)"', client.get("/").text)
    while to_read:
        address = to_read.pop()
        found[address.partition("?")[0].rpartition("/")[2]] = address
        if "vega" not in address:
            to_read += re.findall(r'import\("(/assets/[^"]+)"\)', client.get(address).text)
    return found


def test_the_bundle_is_ours_compressed_once_and_kept_for_ever(client: FlaskClient) -> None:
    """Scripts lead to it by an address with its version; it is a module, and nothing in it needs another host."""
    addresses = scripts_of(client)
    assert sorted(addresses) == ["charts.js", "outlay.js", "vega.js"]
    bundle = client.get(addresses["vega.js"], headers={"Accept-Encoding": "gzip"})
    assert (bundle.status_code, bundle.content_type) == (200, "text/javascript; charset=utf-8")
    assert bundle.headers["Cache-Control"] == FOREVER
    assert bundle.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert bundle.headers["Content-Encoding"] == "gzip"
    assert len(bundle.data) < LARGEST_BYTES
    assert gzip.decompress(bundle.data).decode().endswith(" as default};")
    assert client.get(addresses["vega.js"], headers={"If-None-Match": bundle.headers["ETag"]}).status_code == 304
    assert client.get(addresses["vega.js"], headers={"Accept-Encoding": "identity"}).data == gzip.decompress(bundle.data)


def test_a_page_names_no_chart_script_before_it_has_a_chart(client: FlaskClient) -> None:
    """Charts cost nothing where there are none."""
    assert "vega" not in client.get("/").text


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_picture_is_drawn_from_its_specification(client: FlaskClient, address: str) -> None:
    """The same in both forms and both themes, with words for what is under the pointer, as people read them."""
    for theme in ("light", "dark"):
        picture = client.get(f"{address}&theme={theme}")
        stated = client.get(f"{address}&theme={theme}&format=vega")
        assert (picture.status_code, stated.status_code, stated.content_type) == (200, 200, "application/json")
        assert draw_svg(stated.get_json()) == picture.text
        assert "<a " not in picture.text
        assert "unsafe" not in stated.headers["Content-Security-Policy"]
        assert client.get(f"{address}&theme={theme}&format=vega", headers={"If-None-Match": stated.headers["ETag"]}).status_code == 304
    tips = list(tips_in(stated.get_json()))
    assert tips
    assert not [tip for tip in tips if re.search(r"\d\.\d{4}|\bNone\b|\bnan\b", tip)]


def tips_in(specification: Any) -> Iterator[str]:
    """What the marks of a chart say, of those that say anything."""
    if isinstance(specification, dict):
        yield from ([specification["tip"]] if "tip" in specification else [])
        specification = list(specification.values())
    for below in specification if isinstance(specification, list) else ():
        yield from tips_in(below)


def test_an_option_leads_to_its_row(client: FlaskClient) -> None:
    """A point of the chart has the address of the option's row in the table."""
    page = client.get("/compare?" + urlencode(COMPARISON)).text
    specification = client.get(ADDRESSES[2] + "&format=vega").text
    rows = {unquote(row) for row in re.findall(r'"row":"#([^"]+)"', specification)}
    assert rows
    assert rows <= {unescape(row) for row in re.findall(r'<tr [^>]*id="([^"]+)"', page)}


def test_buy_or_rent_says_all_options_by_the_month(client: FlaskClient) -> None:
    """The cheapest by then first."""
    tips = list(tips_in(client.get(ADDRESSES[3] + "&format=vega").get_json()))
    assert [tip.partition("\n")[0] for tip in tips] == [f"by month {month}" for month in range(len(tips))]
    assert len(tips) == 37
    assert tips[-1].count(": $") == tips[0].count(": $") > 1


def test_the_front_of_a_comparison_falls(client: FlaskClient) -> None:
    """What is sooner costs more: options that only emit less are not joined."""
    specification = client.get(ADDRESSES[2] + "&format=vega").get_json()
    front = [(row["days"], row["usd"]) for row in specification["datasets"][specification["layer"][0]["data"]["name"]]]
    assert front == sorted(front)
    assert [usd for _, usd in front] == sorted((usd for _, usd in front), reverse=True)


@pytest.mark.parametrize("address", [ADDRESSES[0], ADDRESSES[2], ADDRESSES[3]])
def test_axes_have_money_as_sentences_do(client: FlaskClient, address: str) -> None:
    """$140,000 and $1.4M: thousands are written out."""
    shown = re.findall(r">(-?\$[^<]+)</text>", client.get(address).text)
    assert len(shown) > 2
    assert [text for text in shown if not re.fullmatch(r"-?\$[\d,.]+[MBT]?(?:[–-]\$[\d,.]+[MBT]?)?", text)] == []


def test_an_axis_of_small_amounts_writes_them_out(client: FlaskClient) -> None:
    """The letter k stands in no sentence."""
    small = client.get("/estimate/cost.svg?" + urlencode(RUN | {"data.tokens": "50B"})).text
    assert re.search(r">\$\d{1,3},000</text>", small)
