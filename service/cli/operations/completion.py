"""`outlay completion`: the script with which a shell completes commands and options."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")
PROGRAM, VARIABLE = "outlay", "_OUTLAY_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of `outlay` for a shell.

    bash: eval "$(outlay completion bash)" in ~/.bashrc; zsh: the same with zsh in ~/.zshrc; fish: outlay completion fish >
    ~/.config/fish/completions/outlay.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    if found is None:
        raise click.ClickException(f"this release of click completes nothing in {shell}")
    click.echo(found(context.find_root().command, {}, PROGRAM, VARIABLE).source())
