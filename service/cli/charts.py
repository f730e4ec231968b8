"""Where a chart is asked for: written as SVG. Those that ask import what draws, and only then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click


def write_svg(file: Path, draw: Callable[[], str]) -> None:
    """Write what `draw` draws. ClickException where there is nothing to draw, or nowhere."""
    try:
        file.write_text(draw(), encoding="utf-8")
    except (ValueError, OSError) as error:
        raise click.ClickException(f"{file} is not drawn: {error}") from error
