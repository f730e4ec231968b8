"""`outlay slack`: which team a Slack workspace or channel acts for. Heavy modules are imported by the commands that need them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from service.cli.terminal.context import make_database, opened_context, report_errors
from service.cli.terminal.options import json_option, split_list
from service.cli.terminal.request_io import show
from service.cli.terminal.server import here_only
from service.cli.terminal.tables import columns

if TYPE_CHECKING:
    from service.domain.slack import SlackChannel

workspace_option = click.option("--workspace", required=True, metavar="ID", help="The workspace, such as T0123ABCD.")
channel_option = click.option(
    "--channel", metavar="ID", help="A channel, such as C0123ABCD; left out: all that have no mapping of their own."
)
HERE = here_only("channels are mapped in the database itself", "Run it on the service's machine")


@click.group("slack")
def slack() -> None:
    """Map Slack workspaces and channels to teams; see docs/how-to/slack.md."""


@slack.command("map")
@workspace_option
@channel_option
@click.option("--team", required=True, help="The team whose data is asked for; made if there is none of that name.")
@click.option(
    "--scope", default="read", show_default=True, help="read, write, with a comma between both; write keeps answers and makes alerts."
)
@click.option("--webhook", metavar="URL", help="The channel's incoming webhook, which alerts go to; left out: none.")
@HERE
def map_channel(workspace: str, channel: str | None, team: str, scope: str, webhook: str | None) -> None:
    """Let a channel, or the rest of a workspace, act for a team; replaces its earlier mapping."""
    from service.usecases.slack import channels

    scopes = [word for word in split_list(scope) if word]
    with opened_context() as context, report_errors():
        make_database(context)
        made = channels.map_channel(context, workspace, channel, team, scopes, webhook)
    click.echo(f"{_place(made)} acts for the team {made.team_name}: {', '.join(made.scopes)}")


@slack.command("list")
@json_option("As JSON.")
@HERE
def list_channels(*, as_json: bool) -> None:
    """List all mappings."""
    from service.usecases.slack import channels

    with opened_context() as context, report_errors():
        entries = [_entry(mapped) for mapped in ([] if context.store.absent() else channels.list_channels(context))]
    head = ("workspace", "channel", "team", "scopes", "alerts")
    show(entries, lambda: columns([head, *(tuple(str(entry[name]) for name in head) for entry in entries)]), as_json=as_json)


@slack.command("unmap")
@workspace_option
@channel_option
@HERE
def unmap(workspace: str, channel: str | None) -> None:
    """Delete a mapping; alert rules that were made in the channel remain."""
    from service.usecases.slack import channels

    with opened_context() as context, report_errors():
        make_database(context)
        channels.unmap_channel(context, workspace, channel)
    click.echo(f"{channel or 'the rest'} of {workspace} acts for no team any more")


def _entry(mapped: SlackChannel) -> dict[str, Any]:
    """A mapping as it is listed; an incoming webhook is a secret."""
    alerts = "yes" if mapped.webhook else "no"
    scopes = ",".join(mapped.scopes)
    return {"workspace": mapped.workspace, "channel": mapped.channel or "all", "team": mapped.team_name, "scopes": scopes, "alerts": alerts}


def _place(mapped: SlackChannel) -> str:
    return f"channel {mapped.channel} of {mapped.workspace}" if mapped.channel else f"workspace {mapped.workspace}"
