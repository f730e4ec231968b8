"""Slack channels on every database: a channel's own mapping counts before its workspace's."""

from __future__ import annotations

from datetime import UTC, datetime

from service.domain.slack import WHOLE_WORKSPACE, SlackChannel
from service.domain.teams import Scope
from service.store import Store

NOW = datetime(2026, 11, 23, tzinfo=UTC)


def mapped(store: Store, workspace: str, channel: str, team: str, scopes: tuple[Scope, ...] = ("read",)) -> SlackChannel:
    """A mapping that is stored."""
    owner = store.team(team, NOW)
    made = SlackChannel(workspace, channel, owner.id, owner.name, scopes, "https://hooks.slack.com/services/1", NOW)
    store.map_slack_channel(made)
    return made


def test_a_channel_is_found_before_the_rest_of_its_workspace(store: Store) -> None:
    rest, own = mapped(store, "T1", WHOLE_WORKSPACE, "plain"), mapped(store, "T1", "C1", "vision", ("read", "write"))
    assert store.slack_channel("T1", "C1") == own
    assert store.slack_channel("T1", "C2") == rest
    assert store.slack_channel("T2", "C1") is None
    assert store.slack_channels() == [rest, own]


def test_a_new_mapping_takes_the_place_of_the_earlier_one(store: Store) -> None:
    mapped(store, "T1", "C1", "vision")
    later = mapped(store, "T1", "C1", "speech")
    assert store.slack_channels() == [later]


def test_a_mapping_is_deleted_once(store: Store) -> None:
    mapped(store, "T1", "C1", "vision")
    assert store.unmap_slack_channel("T1", "C1", NOW)
    assert not store.unmap_slack_channel("T1", "C1", NOW)
    assert store.slack_channel("T1", "C1") is None
