"""The command line: the same use cases as over HTTP. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

from importlib import import_module

import click

COMMANDS = {
    "accelerators": "prices.catalog:accelerators",
    "ask": "planning.ask:ask",
    "audit": "operations.audit:audit",
    "backup": "operations.backup:backup",
    "buy-or-rent": "planning.procurement:buy_or_rent",
    "calibrate": "operations.calibration:calibrate",
    "check": "planning.check:check",
    "compare": "planning.compare:compare",
    "completion": "operations.completion:completion",
    "diff": "planning.diff:diff",
    "doctor": "operations.doctor:doctor",
    "estimate": "planning.estimate:estimate",
    "fit": "planning.scaling:fit",
    "keys": "operations.keys:keys",
    "login": "operations.login:login",
    "logout": "operations.login:logout",
    "loss-curve": "planning.scaling:loss_curve",
    "mcp": "operations.mcp:mcp",
    "models": "prices.catalog:models",
    "offers": "prices.catalog:offers",
    "openapi": "operations.serve:openapi",
    "optimal": "planning.optimum:optimal",
    "plan": "planning.program:plan",
    "prices": "prices.prices:prices",
    "reprice": "planning.repricing:reprice",
    "restore": "operations.backup:restore",
    "results": "results:results",
    "scenario": "planning.scenario:scenario",
    "secrets": "operations.secrets:secrets",
    "serve": "operations.serve:serve",
    "serving": "planning.serving:serving",
    "slack": "operations.slack:slack",
    "track": "tracking:track",
    "verify": "results:verify",
}
"""By a command's name its module and its function, imported when it is called or listed."""


class LazyGroup(click.Group):
    """A group whose commands are imported one by one, as they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f"{__name__}.{module}"), name)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="outlay")
def main() -> None:
    """Plans, prices and tracks the compute of AI training programs."""
