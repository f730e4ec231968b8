"""Charts written as SVG. The drawing code is imported only when a chart is requested."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click


def write_svg(file: Path, draw: Callable[[], str]) -> None:
    """Write the result of `draw`. Raises ClickException where there is nothing to draw or the file cannot be written."""
    try:
        file.write_text(draw(), encoding="utf-8")
    except (ValueError, OSError) as error:
        raise click.ClickException(f"{file} is not drawn: {error}") from error
