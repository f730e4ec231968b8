"""`outlay track`: tracked programs, directly on the database."""

from service.cli.tracking.commands import FORMATS, KINDS, track

__all__ = ["FORMATS", "KINDS", "track"]
