"""The command line: the same use cases as over HTTP. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from importlib import import_module

import click

COMMANDS: Mapping[str, tuple[str, str]] = {
    "accelerators": ("prices.catalog:accelerators", "Known accelerators with their dense peaks."),
    "archive": (
        "operations.archive:archive",
        "Move the single events of a closed PROGRAM into a file, verify it, and free the team's storage of them.",
    ),
    "ask": ("planning.ask:ask", 'Ask in words, such as: outlay ask "llama 3 70b, 15T tokens on 2k h100s by next june".'),
    "audit": ("operations.audit:audit", "Show who changed what, and when, the newest first; on a server with a key of scope admin."),
    "backup": (
        "operations.backup:backup",
        "Write a backup of one state of the database and of the signing keys to FILE, while the service runs.",
    ),
    "buy-or-rent": (
        "planning.procurement:buy_or_rent",
        "Own, reserve or rent a fleet for years, from flags, or from a JSON or YAML FILE as sent to POST /v1/buy-or-rent.",
    ),
    "calibrate": ("operations.calibration:calibrate", "Measure your own machine, so that your estimates use its figures."),
    "check": (
        "planning.check:check",
        "Exit 0 where the run or program of REQUEST keeps its limits, 1 where it exceeds one, 2 where that cannot be said.",
    ),
    "compare": (
        "planning.compare:compare",
        "The same workload on every matching offer, from flags, or from a JSON or YAML FILE as sent to POST /v1/compare.",
    ),
    "completion": ("operations.completion:completion", "Print what completes `outlay` in a shell, for its start-up file."),
    "diff": ("planning.diff:diff", "What changed from A to B and what it costs."),
    "doctor": (
        "operations.doctor:doctor",
        "Check configuration, database, Redis, price sources, clock and disk; exit 1 where something is bad.",
    ),
    "estimate": (
        "planning.estimate:estimate",
        "Estimate one training run, from flags, or from a JSON or YAML FILE as sent to POST /v1/estimate.",
    ),
    "fit": ("planning.scaling:fit", "A scaling law from FILE."),
    "inverse": (
        "planning.inverse:inverse",
        "The most runs, sweep points or context within a budget, from flags, or from a JSON or YAML FILE.",
    ),
    "keys": ("operations.keys:keys", "API keys of teams. As soon as one exists, every HTTP request needs one."),
    "login": ("operations.login:login", "Keep the API key of a server, typed or from standard input, once the server has accepted it."),
    "logout": ("operations.login:logout", "Forget the kept API key of a server. The key stays valid: `outlay keys revoke` there ends it."),
    "loss-curve": ("planning.scaling:loss_curve", "Where a run will end."),
    "mcp": (
        "operations.mcp:mcp",
        "Serve the Model Context Protocol on standard input and output, for assistants; needs the extra outlay[mcp].",
    ),
    "migrate": (
        "operations.migration:migrate",
        "Create the database or migrate it to this release; with --to, to the schema of an older release.",
    ),
    "models": ("prices.catalog:models", "Model presets with their published sizes."),
    "offers": ("prices.catalog:offers", "Known prices, cheapest first."),
    "openapi": ("operations.serve:openapi", "Print the OpenAPI description in YAML."),
    "optimal": (
        "planning.optimum:optimal",
        "What to train with a budget, from flags, or from a JSON or YAML FILE as sent to POST /v1/optimal.",
    ),
    "plan": ("planning.program:plan", "Plan the whole training program of a JSON or YAML FILE as sent to POST /v1/estimate/program."),
    "portfolio": (
        "planning.portfolio:portfolio",
        "Plan the programs of a JSON or YAML FILE on shared accelerators, as sent to POST /v1/portfolio.",
    ),
    "prices": ("prices.prices:prices", "Prices of the clouds, as their own interfaces state them."),
    "reprice": ("planning.repricing:reprice", "What moved since an earlier estimate of the run in the JSON or YAML file REQUEST."),
    "restore": (
        "operations.backup:restore",
        "Restore the backup in FILE into an empty database, SQLite or PostgreSQL, and check that all of it is there.",
    ),
    "results": ("results:results", "Answers that are kept: they do not change, and have a signed record."),
    "scenario": (
        "planning.scenario:scenario",
        "Monte Carlo, sensitivity, sweeps and optimisation, by the background workers, or by this command where none is alive.",
    ),
    "secrets": ("operations.secrets:secrets", "The key that secrets in the database (of webhooks, of Slack) are sealed with."),
    "serve": ("operations.serve:serve", "Serve the API and its background worker in the foreground; settings are OUTLAY_ variables."),
    "serving": (
        "planning.serving:serving",
        "What a model takes and costs to serve, from flags, or from a JSON or YAML FILE as sent to POST /v1/serving.",
    ),
    "slack": ("operations.slack:slack", "Teams that Slack workspaces and channels act for; see docs/how-to/slack.md."),
    "track": ("tracking:track", "Tracked programs: status, reports, and imports from other tools."),
    "unarchive": (
        "operations.archive:unarchive",
        "Put the events of an archived program back from FILE, after verifying it.",
    ),
    "usage": (
        "operations.usage:usage",
        "Show what the team uses of its budgets: on a server all of them, here, without one, what it has stored.",
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
