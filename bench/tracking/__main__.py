"""`python -m bench.tracking`: the figures of tracking alone."""

from bench.harness import report
from bench.tracking.report import tracking

tracking(report)
