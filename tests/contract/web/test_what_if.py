"""What a change does on /estimate: cost and days before and now, of any fields, by a link."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from flask.testing import FlaskClient

from service.formats.headline import money
from tests.contract.web.test_estimate_page import HOSTILE, RUN
from tests.contract.web.visitor import text_of, words_of

LONGER = RUN | {"training.seq_len": "32768"}


def page_of(client: FlaskClient, fields: dict[str, str], before: str) -> Any:
    """The page after a change."""
    return client.get("/estimate?" + urlencode(fields | {"before": before}))


def test_two_context_lengths_stand_side_by_side(client: FlaskClient) -> None:
    """With the difference in dollars and days, which are those of the two answers."""
    words = words_of(page_of(client, LONGER, urlencode(RUN)))
    before, now = (client.get("/estimate?" + urlencode(fields | {"format": "json"})).get_json() for fields in (RUN, LONGER))
    assert "training: sequence length not stated 32768" in words
    was, usd = (answer["cost"]["total_usd"]["p50"] for answer in (before, now))
    assert f"cost, p50 {money(was)} {money(usd)} {money(abs(usd - was))} {'more' if usd > was else 'less'}" in words
    hours = now["time"]["wall_clock_hours"]["p50"] - before["time"]["wall_clock_hours"]["p50"]
    assert f"{abs(hours) / 24:.3g} days {'later' if hours > 0 else 'sooner'}" in words
    assert "After the change" in words


def test_the_page_remembers_what_is_changed_from(client: FlaskClient) -> None:
    """Its form sends the fields of the first answer on; links lead back, and on from here."""
    first = text_of(client.get("/estimate?" + urlencode(RUN)))
    assert "After the change" not in first
    held = re.search(r'<input type="hidden" form="estimate" name="before" value="([^"]*)">', first)
    assert held is not None
    assert dict(parse_qsl(unescape(held[1]))) == RUN
    changed = text_of(page_of(client, LONGER, unescape(held[1])))
    assert held[0] in changed
    links = [dict(parse_qsl(urlsplit(unescape(link)).query)) for link in re.findall(r'href="(/estimate\?[^"]+)">(?:Back|Compare)', changed)]
    assert links == [RUN, LONGER]


@pytest.mark.parametrize("before", ["", urlencode(RUN), urlencode({"model": "no such"}), "training.colour=blue", 5000 * "x", HOSTILE])
def test_nothing_is_compared_with_what_has_no_answer(client: FlaskClient, before: str) -> None:
    """Nor with itself: the page is as without it."""
    page = page_of(client, RUN, before)
    assert page.status_code == 200
    assert "After the change" not in text_of(page)
    assert "<script>alert" not in text_of(page)


def test_a_change_that_changes_nothing_says_so(client: FlaskClient) -> None:
    """As where an assumption is stated as it was assumed."""
    words = words_of(page_of(client, RUN | {"training.seq_len": "8192"}, urlencode(RUN)))
    assert "After the change: the same cost and the same time" in words
