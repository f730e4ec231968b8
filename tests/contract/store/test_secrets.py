"""Secrets at rest: whoever has the database alone reads none; the key is rotated, missed and mistaken without a loss."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text, update

from service import create_app
from service.config import Settings
from service.container import build_context
from service.context import AppContext
from service.domain.audit import AuditFilter
from service.domain.errors import SecretsUnavailable
from service.store import LostSecrets
from service.store.secret_box import PREFIX
from service.store.secret_keys import FILE, new_key, read_keys
from service.store.secret_loss import DROPPED
from service.store.tracking.tables import alert_rules
from service.usecases.backup import encode_row
from service.usecases.secrets import drop_lost, find_lost, rotate_key, seal_plain
from service.usecases.slack.channels import list_channels, map_channel
from tests.contract.scenarios.test_scenarios_http import SMALL

HOOK = "https://example.com/path-that-is-a-secret"
SLACK = "https://hooks.slack.com/services/T00000000/B00000000/token-that-is-a-secret"
RULE = {"kind": "budget", "shares": [0.5], "targets": [{"webhook": HOOK}, {"slack": SLACK}]}


@pytest.fixture
def context(settings: Settings, url: str) -> Iterator[AppContext]:
    """A migrated installation on each kind of database."""
    made = build_context(replace(settings, database_url=url))
    with closing(made.store) as store:
        store.migrate()
        yield made


def make_rule(context: AppContext, **headers: str) -> dict[str, Any]:
    """A rule's answer, over HTTP."""
    with closing(create_app(context.settings).extensions["context"].store):
        client = create_app(context.settings).test_client()
        program = client.post("/v1/track/programs", json={"name": "p"}).get_json()["id"]
        answer = client.post(f"/v1/track/programs/{program}/alert-rules", json=RULE, headers=headers)
    assert answer.status_code == 201, answer.get_data(as_text=True)
    found: dict[str, Any] = answer.get_json()
    return found


def dump(context: AppContext) -> str:
    """Everything that the database holds."""
    with context.store.all_rows() as tables:
        return "".join(encode_row(row).decode() for _, rows in tables for row in rows)


def targets(context: AppContext, rule: dict[str, Any]) -> list[Any]:
    """A rule's targets as deliveries see them."""
    found = context.store.rule("default", rule["id"])
    assert found is not None
    return list(found.body["targets"])


def test_the_database_alone_holds_no_secret(context: AppContext) -> None:
    """Neither webhooks' secrets and addresses, nor Slack's, nor the answer that is remembered for a repeat."""
    rule = make_rule(context, **{"Idempotency-Key": "k"})
    map_channel(context, "T0123ABCD", None, "default", ["read"], SLACK)
    asked = SMALL | {"notify": {"url": HOOK}}
    scenario = create_app(context.settings).test_client().post("/v1/scenarios", json=asked, headers={"Idempotency-Key": "s"}).get_json()
    secret = rule["targets"][0]["secret"]
    content = dump(context)
    for hidden in (secret, scenario["notify"]["secret"], "path-that-is-a-secret", "token-that-is-a-secret"):
        assert hidden not in content
    assert [target["url"] for target in targets(context, rule)] == [HOOK, SLACK]
    assert targets(context, rule)[0]["secret"] == secret
    assert list_channels(context)[0].webhook == SLACK
    stored = context.store.scenario("default", scenario["id"])
    assert stored is not None
    assert stored.target == {**(stored.target or {}), "url": HOOK, "secret": scenario["notify"]["secret"]}
    file = context.settings.data_dir / FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_keys(file)[0] not in content


def test_a_repeat_gets_the_secret_once_more(context: AppContext) -> None:
    """The remembered answer is sealed, and opened for who repeats the request."""
    client = create_app(context.settings).test_client()
    program = client.post("/v1/track/programs", json={"name": "p"}).get_json()["id"]
    path, headers = f"/v1/track/programs/{program}/alert-rules", {"Idempotency-Key": "k"}
    first, again = (client.post(path, json=RULE, headers=headers) for _ in range(2))
    assert (again.status_code, again.get_json()) == (201, first.get_json())


def test_rotation_seals_everything_anew_while_others_go_on(context: AppContext) -> None:
    """A process with the earlier key reads what is sealed under the new one, and is read; two rotations leave nothing of a key."""
    rule = make_rule(context)
    running = build_context(context.settings)
    with closing(running.store):
        before, file = targets(running, rule), context.settings.data_dir / FILE
        first = read_keys(file)
        assert rotate_key(context) == 1
        assert read_keys(file)[1:] == first
        assert targets(running, rule) == before
        map_channel(running, "T0123ABCD", None, "default", ["read"], SLACK)
        assert rotate_key(context) == 2
        assert first[0] not in read_keys(file)
        assert (targets(running, rule), list_channels(running)[0].webhook) == (before, SLACK)


def test_secrets_of_a_release_before_sealing_are_read_and_sealed(context: AppContext) -> None:
    """They work as they are; the next start seals them, once."""
    rule = make_rule(context)
    plain = {**RULE, "targets": targets(context, rule)}
    with context.store.engine.begin() as connection:
        connection.execute(update(alert_rules).values(body={**context.store.rule("default", rule["id"]).body, **plain}))  # type: ignore[union-attr]
    assert "path-that-is-a-secret" in dump(context)
    assert targets(context, rule) == plain["targets"]
    assert [seal_plain(context), seal_plain(context)] == [1, 0]
    assert "path-that-is-a-secret" not in dump(context)
    assert targets(context, rule) == plain["targets"]


@pytest.mark.parametrize("fault", ["missing", "wrong", "mangled"])
def test_another_key_is_refused_with_the_name_of_its_file(context: AppContext, fault: str) -> None:
    """Nothing is sealed under a second key that would hide it from the others; the service does not start."""
    rule = make_rule(context)
    file = context.settings.data_dir / FILE
    right = file.read_text()
    if fault == "missing":
        file.unlink()
    else:
        file.write_text(new_key() if fault == "wrong" else "no key")
    other = build_context(context.settings)
    with closing(other.store):
        for attempt in (lambda: seal_plain(other), lambda: targets(other, rule), lambda: rotate_key(other)):
            with pytest.raises(SecretsUnavailable, match=str(file)):
                attempt()
        answer = create_app(context.settings).test_client().get(f"/v1/track/alert-rules/{rule['id']}")
        assert (answer.status_code, str(file) in answer.get_data(as_text=True)) == (503, False)
        file.write_text(right)
        assert [target["url"] for target in targets(other, rule)] == [HOOK, SLACK]


def test_the_key_may_come_from_the_environment(context: AppContext) -> None:
    """The same on every machine; no file is made. A new key before the old one takes its place."""
    old, new = new_key(), new_key()
    keyed = build_context(replace(context.settings, secrets_key=(old,)))
    both = build_context(replace(context.settings, secrets_key=(new, old)))
    only = build_context(replace(context.settings, secrets_key=(new,)))
    with closing(keyed.store), closing(both.store), closing(only.store):
        seal_plain(keyed)
        map_channel(keyed, "T0123ABCD", None, "default", ["read"], SLACK)
        assert not (context.settings.data_dir / FILE).exists()
        with pytest.raises(SecretsUnavailable, match="OUTLAY_SECRETS_KEY"):
            list_channels(only)
        assert rotate_key(both) == 1
        assert list_channels(only)[0].webhook == SLACK
    with context.store.engine.connect() as connection:
        assert str(connection.scalar(text("SELECT webhook FROM slack_channels"))).startswith(PREFIX)


def test_a_lost_key_costs_what_it_sealed_and_no_more(context: AppContext) -> None:
    """Rules end and addresses are forgotten; the trail has the rules' ends, a second drop finds none, and a new key seals what follows."""
    rule = make_rule(context, **{"Idempotency-Key": "k"})
    map_channel(context, "T0123ABCD", None, "default", ["read"], SLACK)
    asked = SMALL | {"notify": {"url": HOOK}}
    scenario = create_app(context.settings).test_client().post("/v1/scenarios", json=asked).get_json()
    (context.settings.data_dir / FILE).unlink()
    stranger = build_context(context.settings)
    with closing(stranger.store):
        with pytest.raises(SecretsUnavailable):
            stranger.store.check_secrets()
        assert drop_lost(stranger) == LostSecrets(1, 1, 1, 1)
        assert find_lost(stranger) == LostSecrets(0, 0, 0, 0)
        found = stranger.store.scenario("default", scenario["id"])
        assert found is not None
        assert (found.target or {})["url"] == DROPPED
        assert list_channels(stranger)[0].webhook is None
        ended = stranger.store.audit_entries("default", 0, 1, AuditFilter(operation="alert_rule.end"))
        assert [entry.object for entry in ended] == [rule["id"]]
    again = make_rule(context)
    assert find_lost(build_context(context.settings)) == LostSecrets(0, 0, 0, 0)
    assert [target["host"] for target in again["targets"]] == [target["host"] for target in rule["targets"]]


def test_what_can_be_opened_is_not_dropped(context: AppContext) -> None:
    """Where no key is lost nothing changes."""
    rule = make_rule(context)
    before = dump(context)
    assert drop_lost(context) == LostSecrets(0, 0, 0, 0)
    assert dump(context) == before
    assert [target["url"] for target in targets(context, rule)] == [HOOK, SLACK]
