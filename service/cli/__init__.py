"""The command line: the same use cases as over HTTP. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from importlib import import_module

import click

COMMANDS: Mapping[str, tuple[str, str]] = {
    "accelerators": ("prices.catalog:accelerators", "List known accelerators with their dense peaks."),
    "archive": (
        "operations.archive:archive",
        "Move the single events of a closed PROGRAM into a verified file, which frees storage of the team.",
    ),
    "ask": ("planning.ask:ask", 'Ask in words, for example: outlay ask "llama 3 70b, 15T tokens on 2k h100s by next june".'),
    "audit": (
        "operations.audit:audit",
        "Show who changed what, and when, the newest first. On a server this needs a key with the scope admin.",
    ),
    "backup": (
        "operations.backup:backup",
        "Write a backup of one state of the database and of the signing keys to FILE, while the service runs.",
    ),
    "buy-or-rent": (
        "planning.procurement:buy_or_rent",
        "Decide whether to own, reserve or rent a fleet for years, from flags or from a JSON or YAML FILE as sent to POST /v1/buy-or-rent.",
    ),
    "calibrate": ("operations.calibration:calibrate", "Measure your own machine, so that your estimates use its figures."),
    "check": (
        "planning.check:check",
        "Exit 0 if the run or program of REQUEST keeps its limits, 1 if it exceeds one, 2 if that is not known.",
    ),
    "compare": (
        "planning.compare:compare",
        "Compare a workload on every matching offer, from flags or from a JSON or YAML FILE as sent to POST /v1/compare.",
    ),
    "completion": ("operations.completion:completion", "Print the completion script of `outlay` for a shell."),
    "diff": ("planning.diff:diff", "Show what changed from A to B, and what it costs."),
    "doctor": (
        "operations.doctor:doctor",
        "Check configuration, database, Redis, price sources, clock and disk; exit 1 if something is bad.",
    ),
    "estimate": (
        "planning.estimate:estimate",
        "Estimate one training run, from flags or from a JSON or YAML FILE as sent to POST /v1/estimate.",
    ),
    "fit": ("planning.scaling:fit", "Fit a scaling law to the runs in FILE."),
    "inverse": (
        "planning.inverse:inverse",
        "Find the most runs, sweep points or context within a budget, from flags or from a JSON or YAML FILE.",
    ),
    "keys": ("operations.keys:keys", "Manage API keys of teams. As soon as one exists, every HTTP request needs one."),
    "login": ("operations.login:login", "Store the API key of a server, typed or from standard input, after the server has accepted it."),
    "logout": (
        "operations.login:logout",
        "Delete the stored API key of a server. The key stays valid: `outlay keys revoke` there ends it.",
    ),
    "loss-curve": ("planning.scaling:loss_curve", "Predict where a run will end."),
    "mcp": (
        "operations.mcp:mcp",
        "Serve the Model Context Protocol on standard input and output, for assistants; needs the extra outlay[mcp].",
    ),
    "migrate": (
        "operations.migration:migrate",
        "Create the database or migrate it to this release; with --to, to the schema of an older release.",
    ),
    "models": ("prices.catalog:models", "List model presets with their published sizes."),
    "offers": ("prices.catalog:offers", "List known prices, the cheapest first."),
    "openapi": ("operations.serve:openapi", "Print the OpenAPI description in YAML."),
    "optimal": (
        "planning.optimum:optimal",
        "Find what to train with a budget, from flags or from a JSON or YAML FILE as sent to POST /v1/optimal.",
    ),
    "plan": ("planning.program:plan", "Plan the whole training program of a JSON or YAML FILE as sent to POST /v1/estimate/program."),
    "portfolio": (
        "planning.portfolio:portfolio",
        "Plan the programs of a JSON or YAML FILE on shared accelerators, as sent to POST /v1/portfolio.",
    ),
    "prices": ("prices.prices:prices", "Show, fetch and import prices."),
    "reprice": ("planning.repricing:reprice", "Show what changed since an earlier estimate of the run in the JSON or YAML file REQUEST."),
    "restore": (
        "operations.backup:restore",
        "Restore the backup in FILE into an empty database, SQLite or PostgreSQL, and check that it is complete.",
    ),
    "results": ("results:results", "Keep answers that do not change and have a signed record."),
    "scenario": (
        "planning.scenario:scenario",
        "Run Monte Carlo, sensitivity, sweeps and optimisation, on the background workers, or here if there are none.",
    ),
    "secrets": ("operations.secrets:secrets", "Manage the key that encrypts secrets in the database (of webhooks and Slack)."),
    "serve": ("operations.serve:serve", "Serve the API and its background worker in the foreground; settings are OUTLAY_ variables."),
    "serving": (
        "planning.serving:serving",
        "Find the hardware and cost to serve a model, from flags or from a JSON or YAML FILE as sent to POST /v1/serving.",
    ),
    "slack": ("operations.slack:slack", "Map Slack workspaces and channels to teams; see docs/how-to/slack.md."),
    "track": ("tracking:track", "Track programs: status, reports, and imports from other tools."),
    "unarchive": (
        "operations.archive:unarchive",
        "Put the events of an archived program back from FILE, after verifying it.",
    ),
    "usage": (
        "operations.usage:usage",
        "Show how much the team uses of its budgets: all of them on a server, its storage without one.",
    ),
    "verify": (
        "results:verify",
        "Check the signed record in FILE, by default against the keys of the data directory; no network is needed.",
    ),
}
"""By a command's name its place, imported when it is called, and the beginning of its help, which the list of commands shows."""


class LazyGroup(click.Group):
    """A group whose commands are imported one by one, as they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(f"{__name__}.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """List the commands without importing them, which takes longer than all else."""
        room = formatter.width - 6 - max(map(len, COMMANDS))
        with formatter.section("Commands"):
            formatter.write_dl([(name, textwrap.shorten(COMMANDS[name][1], room, placeholder="...")) for name in sorted(COMMANDS)])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="outlay")
def main() -> None:
    """Plans, prices and tracks the compute of AI training programs."""
