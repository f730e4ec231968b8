"""Every command with its arguments and options, from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from service.cli import main
from tools.reference.tables import table

HEAD = """# Commands

Every command of `outlay` with its options. `outlay COMMAND --help` prints the same. With `--server URL`, or `OUTLAY_SERVER`, most
commands ask a running service instead of this machine ([the terminal](../how-to/terminal.md)).

"""


def page() -> str:
    """All commands, those of a group below it."""
    parts = [_section(context) for context in _commands(click.Context(main, info_name="outlay"))]
    return HEAD + "\n".join(parts)


def _commands(context: click.Context) -> Iterator[click.Context]:
    """The commands below a group, in the order in which it lists them."""
    group = context.command
    if not isinstance(group, click.Group):
        return
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None and not command.hidden:
            below = click.Context(command, parent=context, info_name=name, terminal_width=10_000)
            yield below
            yield from _commands(below)


def _section(context: click.Context) -> str:
    command = context.command
    level = "##" if context.parent is not None and context.parent.parent is None else "###"
    usage = " ".join((context.command_path, *command.collect_usage_pieces(context)))
    text = inspect.cleandoc((command.help or command.short_help or "").replace("\b\n", "").replace("\b", ""))
    records = [record for param in command.get_params(context) if (record := _record(param, context))]
    options = "\n" + table(("option", "what it does"), records) if records else ""
    return f"{level} {context.command_path}\n\n```\n{usage}\n```\n\n{text}\n{options}"


def _record(param: click.Parameter, context: click.Context) -> tuple[str, str] | None:
    """An option as its help names it; arguments stand in the usage, and every command has --help."""
    found = param.get_help_record(context)
    return None if found is None or isinstance(param, click.Argument) or "--help" in param.opts else (f"`{found[0]}`", found[1])
