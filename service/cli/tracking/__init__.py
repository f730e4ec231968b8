"""`outlay track`: tracked programs, directly on the database."""

from service.cli.tracking.commands import FORMATS, track
from service.cli.tracking.imports import KINDS

__all__ = ["FORMATS", "KINDS", "track"]
