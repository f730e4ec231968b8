"""A typed client of Outlay, which plans, prices and tracks the compute of AI training programs.

`Outlay` asks and waits; `outlay_sdk.generated` holds every operation and every schema of the specification.
"""

from outlay_sdk import notebook
from outlay_sdk.client import Outlay
from outlay_sdk.errors import (
    InvalidRequest,
    NotAllowed,
    NotFound,
    OutlayError,
    Refused,
    ScenarioFailed,
    ScenarioRunning,
    Unavailable,
    Unreachable,
)

notebook.install()

__all__ = [
    "InvalidRequest",
    "NotAllowed",
    "NotFound",
    "Outlay",
    "OutlayError",
    "Refused",
    "ScenarioFailed",
    "ScenarioRunning",
    "Unavailable",
    "Unreachable",
]
