"""Whether this web process is about to end: readiness goes first, so that load balancers send nothing more."""

from __future__ import annotations

import threading

IS_DRAINING = threading.Event()
"""Set once this process was asked to stop: /readyz answers 503 from then on."""
