"""Slack channels: map them to teams, and find on whose behalf a channel's members ask."""

from __future__ import annotations

import re
from collections.abc import Sequence

from service.context import AppContext
from service.domain.errors import InvalidRequest
from service.domain.slack import WHOLE_WORKSPACE, SlackChannel
from service.domain.teams import Scope, checked_name, checked_scopes
from service.runtime.webhooks import Forbidden
from service.usecases.slack.addresses import slack_destination

WORKSPACE = re.compile(r"[TE][A-Z0-9]{1,30}")
ALLOWED: tuple[tuple[Scope, ...], ...] = (("read",), ("read", "write"))
"""Scopes of a channel."""
CHANNEL = re.compile(r"[CGD][A-Z0-9]{1,30}")
USER = re.compile(r"[UW][A-Z0-9]{1,30}")


def map_channel(
    context: AppContext, workspace: str, channel: str | None, team: str, scopes: Sequence[str], webhook: str | None
) -> SlackChannel:
    """Let a channel, or without one the rest of a workspace, act for a team, which is created if needed. Raises InvalidRequest."""
    _check_ids(workspace, channel)
    allowed = checked_scopes(scopes)
    if allowed not in ALLOWED:
        raise InvalidRequest("a channel may read, or read,write; what is the whole service's is not asked for in Slack", "/scopes")
    if webhook is not None:
        _check_webhook(context, webhook)
    now = context.clock()
    owner = context.store.team(checked_name(team, "/team"), now)
    mapped = SlackChannel(workspace, channel or WHOLE_WORKSPACE, owner.id, owner.name, allowed, webhook, now)
    context.store.map_slack_channel(mapped)
    return mapped


def unmap_channel(context: AppContext, workspace: str, channel: str | None) -> None:
    """Delete a mapping. Raises InvalidRequest where there is none."""
    _check_ids(workspace, channel)
    if not context.store.unmap_slack_channel(workspace, channel or WHOLE_WORKSPACE, context.clock()):
        raise InvalidRequest("this is not mapped; `outlay slack list` shows what is", "/channel")


def list_channels(context: AppContext) -> list[SlackChannel]:
    """All mappings."""
    return context.store.slack_channels()


def find_channel(context: AppContext, workspace: str, channel: str) -> SlackChannel:
    """The mapping that a channel's members ask under. Raises InvalidRequest, which says how to make one."""
    found = None if context.store.absent() else context.store.slack_channel(workspace, channel)
    if found is None:
        command = f"outlay slack map --workspace {workspace} --channel {channel} --team TEAM --scope read,write"
        raise InvalidRequest(f"This channel acts for no team yet. Ask who runs Outlay to run there: {command}")
    return found


def _check_ids(workspace: str, channel: str | None) -> None:
    if not WORKSPACE.fullmatch(workspace):
        raise InvalidRequest(
            "the id of a workspace begins with T or E, such as T0123ABCD: it is in the address of Slack's web app", "/workspace"
        )
    if channel and not CHANNEL.fullmatch(channel):
        raise InvalidRequest("the id of a channel begins with C, G or D, such as C0123ABCD: it ends the page with its details", "/channel")


def _check_webhook(context: AppContext, url: str) -> None:
    try:
        slack_destination(context, url)
    except Forbidden as error:
        raise InvalidRequest(str(error), "/webhook") from None
