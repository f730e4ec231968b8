"""`outlay diff`: what changed between two runs, programs or kept results, and what it costs."""

from __future__ import annotations

import click

from service.cli.planning.questions import answer_of
from service.cli.terminal.options import team_option
from service.cli.terminal.server import server_options
from service.cli.terminal.tables import columns
from service.formats.differences import Difference, compare_answers, render_difference

FORMATS = ("text", "md", "github")


@click.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="github folds the cost lines.")
@team_option("The team whose kept results they are.")
@server_options
def diff(before: str, after: str, *, form: str, team: str) -> None:
    """Show what changed from A to B, and what it costs.

    Each is a JSON or YAML file with a run's or a program's request, an answer to one, or the id of a kept result.
    """
    first, second = answer_of(before, team=team), answer_of(after, team=team)
    if first.kind != second.kind:
        raise click.UsageError(f"{first.name} is of kind {first.kind} and {second.name} of kind {second.kind}; compare two of one kind")
    requests = None if first.request is None or second.request is None else (first.request, second.request)
    difference = compare_answers(first.answer, second.answer, requests)
    click.echo(_text(difference) if form == "text" else render_difference(difference, form, (first.name, second.name)))


def _text(difference: Difference) -> str:
    tables = (("", difference.figures), ("changed", difference.fields), ("line", difference.lines))
    parts = [columns([(title, "before", "after", "change"), *rows]) for title, rows in tables if rows]
    return "\n".join([difference.headline, *parts, *difference.notes])
