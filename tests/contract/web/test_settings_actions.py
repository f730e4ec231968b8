"""/settings as a place to act: keys, alert rules and Slack channels of one's own team, within one's own scopes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from service.config import load_settings
from service.usecases.keys import list_team_keys
from service.usecases.slack.channels import list_channels, map_channel
from tests.contract.doors import House, house, key_id
from tests.contract.web.visitor import Visitor, text_of, words_of

TOKEN = re.compile(r"outlay_[0-9a-f]{16}_[A-Za-z0-9_-]{43}")
MAY_ALL = {"scopes.read": "yes", "scopes.write": "yes", "scopes.admin": "yes"}
HOOK = "https://example.com/path-of-ours"


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A service with two teams and keys of every kind."""
    with house(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("acts") / "data"), "OUTLAY_OFFLINE": "1"})) as made:
        yield made


class Member(Visitor):
    """Somebody who is signed in, and sends forms of the page."""

    def __init__(self, doors: House, key: str) -> None:
        super().__init__(doors)
        self.sign_in(key)

    def act(self, path: str, **fields: str) -> Any:
        """The answer to a form of the page; two underscores stand for a point."""
        named = {name.replace("__", "."): value for name, value in fields.items()}
        return self.send(path, {"csrf_token": self.form_token("/settings"), **named})


@pytest.fixture
def us(doors: House) -> Member:
    """An administrator of a team."""
    return Member(doors, "ours")


def beside(page: Any, field: str) -> str:
    """What stands beside a field as wrong."""
    assert page.status_code == 422
    found = re.search(rf'id="e-{re.escape(field)}">([^<]*)<', text_of(page))
    assert found is not None, field
    return found[1]


def only_key(page: Any) -> str:
    """The key that the page shows."""
    assert (page.status_code, page.headers["Cache-Control"]) == (201, "no-store")
    return str(TOKEN.search(text_of(page))[0])  # type: ignore[index]  # fails where there is none


class TestKeys:
    """Made, rotated and revoked."""

    def test_a_key_is_shown_once_and_opens_the_team(self, doors: House, us: Member) -> None:
        """With the scopes that were ticked, and its end."""
        token = only_key(us.act("/settings/keys", name="ci", expires="90d", scopes__read="yes"))
        assert token not in text_of(us.open("/settings"))
        made = next(key for key in list_team_keys(doors.context, _principal(doors)) if key.id == key_id(token))
        assert (made.name, made.scopes, (made.expires_at - made.created_at).days) == ("ci", ("read",), 90)  # type: ignore[operator]
        assert Visitor(doors).send("/sign-in", {"api_key": token}).status_code == 303

    @pytest.mark.parametrize(
        ("fields", "field", "words"),
        [
            ({"scopes__read": "yes"}, "name", "a name has"),
            ({"name": "<b>", "scopes__read": "yes"}, "name", "a name has"),
            ({"name": "fine"}, "scopes", "scopes are read, write, admin"),
            ({"name": "fine", "scopes__read": "yes", "expires": "soon"}, "expires", "such as 90d or 12h"),
            ({"name": "we may read", "scopes__read": "yes"}, "name", "a valid key of the team already has this name"),
        ],
    )
    def test_what_is_wrong_stands_beside_its_field(self, us: Member, fields: dict[str, str], field: str, words: str) -> None:
        """And what was typed stays in the form."""
        page = us.act("/settings/keys", **fields)
        assert words in beside(page, field)
        assert f'value="{fields.get("expires", "")}"' in text_of(page)

    def test_a_form_that_is_sent_twice_makes_one_key(self, us: Member) -> None:
        """As a browser does that loads the page with the new key again."""
        only_key(us.act("/settings/keys", name="twice", scopes__read="yes"))
        assert us.act("/settings/keys", name="twice", scopes__read="yes").status_code == 422

    def test_nobody_gives_more_than_he_may(self, doors: House) -> None:
        """Neither by a new key nor by rotating a stronger one."""
        admin = Member(doors, "we may all but write")
        text = text_of(admin.open("/settings"))
        assert 'name="scopes.admin"' in text
        assert 'name="scopes.write"' not in text
        assert "does not have the scope write" in beside(admin.act("/settings/keys", name="more", **MAY_ALL), "scopes")
        stronger = key_id(doors.tokens["ours"])
        assert f"/settings/keys/{stronger}/rotate" not in text
        refused = admin.act(f"/settings/keys/{stronger}/rotate")
        assert (refused.status_code, TOKEN.search(text_of(refused))) == (422, None)

    @pytest.mark.parametrize("path", ["", "/{id}/rotate", "/{id}/revoke"])
    def test_it_takes_the_scope_admin(self, doors: House, path: str) -> None:
        """Others have no such forms, and are refused."""
        member = Member(doors, "we may all but admin")
        assert 'action="/settings/keys' not in text_of(member.open("/settings"))
        path = f"/settings/keys{path}".format(id=key_id(doors.tokens["we may read"]))
        assert member.act(path, name="more", scopes__read="yes").status_code == 403

    def test_a_rotated_key_goes_on_for_a_while(self, doors: House, us: Member) -> None:
        """Its successor has its name and scopes; it is rotated once."""
        first = only_key(us.act("/settings/keys", name="turn", scopes__read="yes"))
        page = us.act(f"/settings/keys/{key_id(first)}/rotate", overlap="2h")
        second = only_key(page)
        assert second != first
        for token in (first, second):
            assert Visitor(doors).send("/sign-in", {"api_key": token}).status_code == 303
        again = us.act(f"/settings/keys/{key_id(first)}/rotate", overlap="2h")
        assert (again.status_code, "was already rotated" in words_of(again)) == (422, True)

    def test_a_revoked_key_opens_nothing(self, doors: House, us: Member) -> None:
        """And the page leads back to itself."""
        token = only_key(us.act("/settings/keys", name="gone", scopes__read="yes"))
        led = us.act(f"/settings/keys/{key_id(token)}/revoke")
        assert (led.status_code, led.headers["Location"]) == (303, "/settings#keys")
        assert Visitor(doors).send("/sign-in", {"api_key": token}).status_code == 422

    def test_keys_of_another_team_are_not_known(self, doors: House, us: Member) -> None:
        """As keys that there are not."""
        for key in (key_id(doors.tokens["they may read"]), "0" * 16):
            assert us.act(f"/settings/keys/{key}/revoke").status_code == 404
            assert us.act(f"/settings/keys/{key}/rotate").status_code == 404
        assert Member(doors, "they may read").open("/settings").status_code == 200

    def test_it_is_in_the_audit_trail(self, doors: House, us: Member) -> None:
        """With the administrator's key."""
        token = only_key(us.act("/settings/keys", name="traced", scopes__read="yes"))
        entry = doors.ask("ours", "GET", "/v1/audit?limit=1").get_json()["items"][0]
        assert (entry["operation"], entry["object"]) == ("key.create", key_id(token))
        assert entry["key"] == key_id(doors.tokens["ours"])


def _principal(doors: House) -> Any:
    return doors.app.extensions["authenticator"].admit(doors.tokens["ours"])


class TestAlertRules:
    """Made, tried, changed and ended."""

    @pytest.fixture
    def program(self, doors: House) -> str:
        """A program of the team."""
        return str(doors.ask("ours", "POST", "/v1/track/programs", json={"name": "watched"}).get_json()["id"])

    def make(self, us: Member, program: str, **fields: str) -> Any:
        """The answer to the form of a new rule."""
        return us.act("/settings/alert-rules", program=program, **{"kind": "budget", "shares": "0.5, 0.8", **fields})

    def rules(self, doors: House, program: str) -> list[dict[str, Any]]:
        """The program's rules, as the API has them."""
        found: list[dict[str, Any]] = doors.ask("ours", "GET", f"/v1/track/programs/{program}/alert-rules").get_json()["items"]
        return found

    def test_a_rule_with_a_webhook_shows_its_secret_once(self, doors: House, us: Member, program: str) -> None:
        """One with Slack alone has none."""
        page = self.make(us, program, targets__0__webhook=HOOK)
        assert (page.status_code, page.headers["Cache-Control"]) == (201, "no-store")
        secret = re.search(r"whsec_[A-Za-z0-9+/=]+", text_of(page))
        assert secret is not None
        later = text_of(us.open("/settings"))
        assert (secret[0] in later, "path-of-ours" in later, "webhook example.com" in later) == (False, False, True)
        assert self.rules(doors, program)[0]["shares"] == [0.5, 0.8]
        led = self.make(us, program, targets__1__slack="https://hooks.slack.com/services/T0/B0/x")
        assert (led.status_code, led.headers["Location"]) == (303, "/settings#alert-rules")

    @pytest.mark.parametrize(
        ("fields", "field", "words"),
        [
            ({"targets__0__webhook": HOOK, "shares": ""}, "shares", "needs it"),
            ({"targets__0__webhook": HOOK, "shares": "0.5, much"}, "shares", "number"),
            ({"targets__0__webhook": HOOK, "hours": "6"}, "hours", "not taken by a rule of kind budget"),
            ({"targets__0__webhook": "https://127.0.0.1/x"}, "targets.0.webhook", "127.0.0.1"),
            ({"targets__1__slack": HOOK}, "targets.1.slack", "must be a Slack incoming webhook"),
            ({}, "targets.0.webhook", ""),
            ({"targets__0__webhook": HOOK, "kind": "weather"}, "kind", "budget"),
            ({"targets__0__webhook": HOOK, "program": ""}, "program", "choose"),
        ],
    )
    def test_what_is_wrong_stands_beside_its_field(self, us: Member, program: str, fields: dict[str, str], field: str, words: str) -> None:
        """Addresses of this machine among it."""
        assert words in beside(self.make(us, fields.pop("program", program), **fields), field)

    def test_a_test_message_is_followed_on_the_page(self, us: Member, doors: House, program: str) -> None:
        """By the program's alerts."""
        self.make(us, program, targets__0__webhook=HOOK)
        rule = self.rules(doors, program)[0]["id"]
        led = us.act(f"/settings/alert-rules/{rule}/test")
        assert (led.status_code, led.headers["Location"]) == (303, f"/settings?tested={program}.1#alert-rules")
        assert "The test message is on its way to example.com." in words_of(us.open(f"/settings?tested={program}.1"))
        ((_, _, (delivery,)),) = doors.context.store.alerts(program, 0, 1)
        doors.context.store.settle_delivery(delivery, "failed", doors.context.clock(), error="nobody answers")
        assert "The test message has not reached example.com: nobody answers" in words_of(us.open(f"/settings?tested={program}.1"))
        for other in (f"{program}.2", f"{program}.x", "x.1", f"{program}.{'9' * 40}"):
            assert "The test message" not in words_of(us.open(f"/settings?tested={other}"))
        theirs = words_of(Member(doors, "theirs").open(f"/settings?tested={program}.1"))
        assert "The test message" not in theirs

    def test_a_changed_rule_keeps_its_targets_and_their_secrets(self, doors: House, us: Member, program: str) -> None:
        """Another is in its place; where a webhook is stated, it replaces them."""
        self.make(us, program, targets__0__webhook=HOOK)
        rule = self.rules(doors, program)[0]["id"]
        form = text_of(us.open(f"/settings/alert-rules/{rule}"))
        assert 'value="0.5, 0.8"' in form
        assert "path-of-ours" not in form
        before = doors.context.store.rule(_principal(doors).team, rule)
        assert us.act(f"/settings/alert-rules/{rule}", kind="stalled", hours="6").status_code == 303
        (changed,) = self.rules(doors, program)
        after = doors.context.store.rule(_principal(doors).team, changed["id"])
        assert before is not None
        assert after is not None
        assert (changed["kind"], changed["hours"], changed["shares"]) == ("stalled", 6.0, [])
        assert (after.id != rule, after.body["targets"]) == (True, before.body["targets"])
        wrong = us.act(f"/settings/alert-rules/{changed['id']}", kind="stalled", hours="-6")
        assert beside(wrong, "hours")
        moved = us.act(f"/settings/alert-rules/{changed['id']}", kind="drift", targets__0__webhook="https://example.org/x")
        assert moved.status_code == 201
        assert [target["host"] for target in self.rules(doors, program)[0]["targets"]] == ["example.org"]
        assert us.act(f"/settings/alert-rules/{rule}", kind="drift").status_code == 404

    def test_an_ended_rule_is_gone(self, doors: House, us: Member, program: str) -> None:
        """From page and API."""
        self.make(us, program, targets__0__webhook=HOOK)
        assert us.act(f"/settings/alert-rules/{self.rules(doors, program)[0]['id']}/end").status_code == 303
        assert self.rules(doors, program) == []

    @pytest.mark.parametrize("path", ["", "/test", "/end"])
    def test_it_takes_what_the_api_takes(self, doors: House, us: Member, program: str, path: str) -> None:
        """The scope write; of another team's rule nothing is known."""
        self.make(us, program, targets__0__webhook=HOOK)
        address = f"/settings/alert-rules/{self.rules(doors, program)[0]['id']}"
        assert Member(doors, "we may read").act(f"{address}{path}").status_code == 403
        assert Member(doors, "they may read").act(f"{address}{path}").status_code == 404
        assert Member(doors, "theirs").act(f"{address}{path}").status_code == 404
        assert Member(doors, "we may read").act("/settings/alert-rules", program=program).status_code == 403
        assert Member(doors, "theirs").act("/settings/alert-rules", program=program).status_code == 404
        assert len(self.rules(doors, program)) == 1


class TestSlackChannels:
    """Mapped and unmapped."""

    def mapped(self, doors: House) -> dict[tuple[str, str], str]:
        """Team by workspace and channel."""
        return {(channel.workspace, channel.channel): channel.team_name for channel in list_channels(doors.context)}

    def test_a_channel_is_mapped_to_the_team_and_unmapped(self, doors: House, us: Member) -> None:
        """One of its own, or the rest of a workspace; its webhook is not shown."""
        hook = "https://hooks.slack.com/services/T1/B1/secret"
        for channel in ("C0AAA", ""):
            led = us.act("/settings/slack-channels", workspace="T0AAA", channel=channel, channel_scopes="read,write", webhook=hook)
            assert (led.status_code, led.headers["Location"]) == (303, "/settings#slack-channels")
            assert self.mapped(doors)["T0AAA", channel] == "ours"
        page = us.open("/settings")
        assert ("C0AAA" in text_of(page), "B1/secret" in text_of(page)) == (True, False)
        for channel in ("C0AAA", ""):
            assert us.act("/settings/slack-channels/unmap", workspace="T0AAA", channel=channel).status_code == 303
        assert not [place for place in self.mapped(doors) if place[0] == "T0AAA"]

    def test_a_channel_of_another_team_stays_its_own(self, doors: House, us: Member) -> None:
        """Neither taken over nor unmapped; one's own is mapped again."""
        map_channel(doors.context, "T0BBB", "C0BBB", "theirs", ["read"], None)
        taken = us.act("/settings/slack-channels", workspace="T0BBB", channel="C0BBB")
        assert "another team" in beside(taken, "channel")
        assert us.act("/settings/slack-channels/unmap", workspace="T0BBB", channel="C0BBB").status_code == 404
        assert self.mapped(doors)["T0BBB", "C0BBB"] == "theirs"
        for _ in range(2):
            assert Member(doors, "theirs").act("/settings/slack-channels", workspace="T0BBB", channel="C0BBB").status_code == 303

    @pytest.mark.parametrize(
        ("fields", "field"),
        [({"workspace": "x"}, "workspace"), ({"channel": "#general"}, "channel"), ({"webhook": "https://example.com/x"}, "webhook")],
    )
    def test_what_is_wrong_stands_beside_its_field(self, us: Member, fields: dict[str, str], field: str) -> None:
        """Nothing is mapped."""
        assert beside(us.act("/settings/slack-channels", **{"workspace": "T0CCC", **fields}), field)

    def test_it_takes_the_scope_admin_and_gives_no_more_than_one_may(self, doors: House) -> None:
        """The scope write of a channel takes one's own."""
        path, place = "/settings/slack-channels", {"workspace": "T0DDD", "channel": "C0DDD"}
        assert Member(doors, "we may all but admin").act(path, **place).status_code == 403
        assert Member(doors, "we may all but admin").act(f"{path}/unmap", **place).status_code == 403
        assert Member(doors, "we may all but write").act(path, **place, channel_scopes="read,write").status_code == 422
        assert ("T0DDD", "C0DDD") not in self.mapped(doors)
