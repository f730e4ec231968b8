"""`python -m bench.tracking`: the figures of tracking only."""

from bench.harness import report
from bench.tracking.report import tracking

tracking(report)
