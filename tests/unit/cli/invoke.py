"""The command line as a test calls it, to be held against HTTP."""

from __future__ import annotations

from click.testing import CliRunner, Result

from service.cli import main
from service.config import Settings


def run(settings: Settings, *arguments: str) -> Result:
    """`outlay` with these arguments, on the data directory of the settings, asking nobody."""
    environment = {"OUTLAY_DATA_DIR": str(settings.data_dir), "OUTLAY_OFFLINE": "1"}
    return CliRunner().invoke(main, arguments, env=environment)


def output_of(settings: Settings, *arguments: str) -> str:
    """What it prints, having ended well."""
    result = run(settings, *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout
