"""`python -m bench.tracking`: the figures of tracking only."""

from bench.tracking.report import tracking

tracking()
