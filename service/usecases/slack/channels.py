"""Slack channels: map them to teams, and find on whose behalf a channel's members ask."""

from __future__ import annotations

import re
from collections.abc import Sequence

from service.context import AppContext
from service.domain.errors import InvalidRequest, NotFound
from service.domain.slack import WHOLE_WORKSPACE, SlackChannel
from service.domain.teams import Principal, Scope, checked_name, checked_scopes
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


def map_team_channel(
    context: AppContext, who: Principal, workspace: str, channel: str | None, scopes: Sequence[str], webhook: str | None
) -> SlackChannel:
    """Let a channel, or the rest of a workspace, act for the caller's team; in place of the team's earlier mapping of it.

    Raises InvalidRequest, also for a channel of another team.
    """
    known = _mapping(context, workspace, channel)
    if known is not None and known.team != who.team:
        raise InvalidRequest("this acts for another team; who runs the service can change that: `outlay slack map`", "/channel")
    if beyond := [scope for scope in checked_scopes(scopes) if not who.may(scope)]:
        raise InvalidRequest(f"your own key has no scope {', '.join(beyond)}, so it gives none to a channel", "/scopes")
    return map_channel(context, workspace, channel, who.team_name, scopes, webhook)


def unmap_team_channel(context: AppContext, who: Principal, workspace: str, channel: str | None) -> None:
    """Delete a mapping of the caller's team. Raises NotFound, also for those of other teams."""
    known = _mapping(context, workspace, channel)
    if known is None or known.team != who.team:
        raise NotFound("the team has no such mapping")
    unmap_channel(context, workspace, channel)


def list_team_channels(context: AppContext, who: Principal) -> list[SlackChannel]:
    """The mappings of the caller's team."""
    return [mapped for mapped in list_channels(context) if mapped.team == who.team]


def _mapping(context: AppContext, workspace: str, channel: str | None) -> SlackChannel | None:
    """The very mapping of a channel, or of the rest of a workspace; None where there is none."""
    place = workspace, channel or WHOLE_WORKSPACE
    return next((mapped for mapped in list_channels(context) if (mapped.workspace, mapped.channel) == place), None)


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
