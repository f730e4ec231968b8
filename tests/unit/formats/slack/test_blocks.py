"""Messages keep to the lengths that Slack documents, whatever stands in them, and notify nobody."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from service.domain.quantities import Range
from service.formats.slack.alerts import alert_message, program_blocks
from service.formats.slack.blocks import button, card_message, escaped, text_message
from service.formats.slack.cards import Card
from service.formats.slack.references import Reference
from tests.support.hostile import REORDERING
from tests.support.slack import checked

words = st.text(st.sampled_from("ab <>&*!@#|_`~…ß漢\n\u202e\u2066"), min_size=1, max_size=40).flatmap(
    lambda text: st.integers(1, 300).map(lambda times: text * times)
)


@given(sentence=words, name=words, value=words, warning=words, reading=words)
def test_a_card_of_any_texts_is_one_that_slack_takes(sentence: str, name: str, value: str, warning: str, reading: str) -> None:
    card = Card(sentence, ((name, value),) * 3, Range(1.0, 2.0, 3.0), 4.0, warning, reading)
    message = checked(card_message(card, "https://outlay.example/a.png", [button("Why", "why", "v")], shared_by="U1"))
    marked = json.dumps(message, ensure_ascii=False).replace("Shared by <@U1>", "")
    assert "<" not in marked
    assert ">" not in marked
    assert not REORDERING.search(marked)


@given(title=words, text=words)
def test_an_alert_of_any_texts_is_one_that_slack_takes(title: str, text: str) -> None:
    blocks = program_blocks("p" * 36, Range(1.0, 2.0, 3.0), "https://outlay.example/a.png")
    message = alert_message({"title": title, "text": text, "figures": {"spent_usd": 1.0, "budget_usd": None, "run": "x"}}, blocks)
    checked({"response_type": "in_channel"} | message)
    assert not REORDERING.search(json.dumps(message, ensure_ascii=False))


@given(text=words, most=st.integers(8, 200))
def test_an_escaped_text_is_cut_between_characters(text: str, most: int) -> None:
    found = escaped(text, most)
    assert len(found) <= most
    assert not re.search(r"&(?!amp;|lt;|gt;)", found)


def test_a_text_that_fits_is_kept() -> None:
    assert escaped("a < b & c", 100) == "a &lt; b &amp; c"
    assert checked(text_message("x" * 3000))["blocks"][0]["text"]["text"] == "x" * 3000


def test_a_question_that_is_too_long_for_a_button_gets_none() -> None:
    assert Reference(question="x" * 1000).value() is not None
    assert Reference(question='"' * 1000).value() is None
