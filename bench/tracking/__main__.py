"""`python -m bench.tracking`: the figures of tracking alone."""

from bench.__main__ import report
from bench.tracking.report import tracking

tracking(report)
