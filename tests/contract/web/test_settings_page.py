"""/settings: who is signed in, the team's keys, its budgets, its alert rules and its Slack channels."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient

from service.config import load_settings
from service.usecases.keys import hash_secret
from service.usecases.slack.channels import map_channel
from tests.contract.doors import KEYS, House, house, key_id, secret
from tests.contract.web.visitor import Visitor, text_of, words_of

HOSTILE = "<script>alert(1)</script>\"'&\u202e"
RULE = {"kind": "budget", "shares": [0.5, 0.8], "targets": [{"webhook": "https://example.com/path-of-ours"}]}


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A service with two teams and keys of every kind."""
    with house(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("settings") / "data"), "OUTLAY_OFFLINE": "1"})) as made:
        yield made


def signed_in(doors: House, key: str) -> Visitor:
    """Somebody with that key."""
    made = Visitor(doors)
    made.sign_in(key)
    return made


def test_it_says_who_is_signed_in(doors: House) -> None:
    """The team, the key's name, and what it may."""
    text = words_of(signed_in(doors, "we may read").open("/settings"))
    assert "You act for the team ours with the key we may read, which may read." in text


def test_an_administrator_sees_the_keys_of_the_team(doors: House) -> None:
    """Ended ones too, with what they may, those of other teams never; others see none."""
    text = words_of(signed_in(doors, "ours").open("/settings"))
    for name, (team, _) in KEYS.items():
        assert (key_id(doors.tokens[name]) in text) == (team == "ours"), name
    assert "was revoked at" in text
    assert "expired at" in text
    plain = words_of(signed_in(doors, "we may all but admin").open("/settings"))
    assert not [name for name in KEYS if key_id(doors.tokens[name]) in plain]
    assert "A key with the scope admin sees the team's keys here." in plain


def test_no_secret_is_shown(doors: House) -> None:
    """Neither of keys nor their digests, nor the paths of webhooks."""
    program = doors.ask("ours", "POST", "/v1/track/programs", json={"name": "told"}).get_json()["id"]
    rule = doors.ask("ours", "POST", f"/v1/track/programs/{program}/alert-rules", json=RULE).get_json()
    text = text_of(signed_in(doors, "ours").open("/settings"))
    hidden = [secret(token) for token in doors.tokens.values()]
    hidden += [*map(hash_secret, hidden), "path-of-ours", rule["targets"][0]["secret"]]
    assert not [part for part in hidden if part in text]
    assert "webhook example.com" in text


def test_budgets_stand_as_over_the_api(doors: House) -> None:
    """Each with its state in words."""
    budgets = doors.ask("ours", "GET", "/v1/usage").get_json()["budgets"]
    text = text_of(signed_in(doors, "ours").open("/settings"))
    for budget in budgets:
        assert f'<th scope="row">{budget["name"].replace("-", " ")}</th>' in text
        assert f"{budget['limit']:,}" in text
    assert "No budget is used up" in text


def test_alert_rules_are_those_of_the_teams_programs(doors: House) -> None:
    """With what they wait for; what a program is called is text."""
    program = doors.ask("ours", "POST", "/v1/track/programs", json={"name": HOSTILE}).get_json()["id"]
    doors.ask("ours", "POST", f"/v1/track/programs/{program}/alert-rules", json=RULE)
    ours, theirs = signed_in(doors, "ours").open("/settings"), signed_in(doors, "theirs").open("/settings")
    assert "at 50%, 80% of the budget" in words_of(ours)
    assert "<script>alert" not in text_of(ours)
    assert "None yet, as no program is tracked." in words_of(theirs)


def test_slack_channels_are_those_of_the_team(doors: House) -> None:
    """Without their webhooks."""
    map_channel(doors.context, "T0123ABCD", "C0123ABCD", "ours", ["read"], None)
    assert "C0123ABCD" in words_of(signed_in(doors, "ours").open("/settings"))
    assert "C0123ABCD" not in words_of(signed_in(doors, "theirs").open("/settings"))


def test_all_sessions_of_the_key_end_from_here(doors: House) -> None:
    """Those in other browsers too."""
    here, elsewhere = signed_in(doors, "they may read"), signed_in(doors, "they may read")
    text = text_of(here.open("/settings"))
    form = re.search(r'<form class="row" action="(/sign-out)" method="post">.*?name="(everywhere)" value="(yes)"', text, re.DOTALL)
    assert form is not None
    here.send(form[1], {"csrf_token": here.form_token(), form[2]: form[3]})
    assert [who.open("/settings").status_code for who in (here, elsewhere)] == [303, 303]


def test_without_keys_it_says_how_to_make_one(client: FlaskClient) -> None:
    """And has no sessions to end."""
    page = client.get("/settings")
    assert "This service has no keys" in words_of(page)
    assert "/sign-out" not in text_of(page)
