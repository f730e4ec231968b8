"""The command `python -m tools.snapshot_build`."""

from __future__ import annotations

from pathlib import Path

import click

import providers
from service.presets.hardware.accelerators import canonical_accelerator
from tools.snapshot_build.build import build


@click.command()
@click.argument("source_dir", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for the files; default: providers/data.")
@click.option("--rejected", is_flag=True, help="List every rejected row with its reason.")
def main(source_dir: Path, out: Path | None, *, rejected: bool) -> None:
    """Build the price snapshot from a folder of catalogue files."""
    try:
        result = build(source_dir, canonical_accelerator)
    except FileNotFoundError as error:
        raise click.ClickException(str(error)) from error
    folder = out or Path(providers.__file__).parent / "data"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        result.write(folder)
    except OSError as error:
        raise click.ClickException(f"{folder} cannot be written: {error.strerror}") from error
    if rejected:
        for row in result.rejected:
            click.echo(f"{row.row}: {row.reason}")
    click.echo(f"{result.rows} offers, {len(result.rejected)} rows rejected, {sum(result.skipped.values())} left out -> {folder}")
    for missing in result.missing:
        click.echo(f"not found: {missing}", err=True)


if __name__ == "__main__":
    main()
