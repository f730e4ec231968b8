"""What the buttons of a message refer to: an answer, a scenario or a program."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from service.formats.slack.blocks import BUTTON_VALUE
from service.serialization import to_json

REPORT, GATE = "report", "gate"
"""Actions of buttons about a program."""
WHY, SHARE, PROGRESS = "why", "share", "progress"
"""Actions of buttons about an answer, and of a scenario that runs."""


class BadReference(ValueError):
    """A button's value that is none of this version."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A kept result with the token of its link, a question where nothing may be kept, or the id of a program or scenario."""

    result: str | None = None
    token: str | None = None
    question: str | None = None
    program: str | None = None
    scenario: str | None = None

    def value(self) -> str | None:
        """The reference as a button's value; None where it is too long for one."""
        text = to_json({name: part for name, part in asdict(self).items() if part is not None})
        return text if len(text) <= BUTTON_VALUE else None


def read_reference(value: str) -> Reference:
    """The reference in a button's value. Raises BadReference."""
    try:
        reference = Reference(**json.loads(value))
    except (ValueError, TypeError) as error:
        raise BadReference from error
    if not all(part is None or isinstance(part, str) for part in asdict(reference).values()):
        raise BadReference
    return reference
