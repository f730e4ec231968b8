"""How probable a goal is, as pages say it: in words, with the class of its shape."""

from __future__ import annotations

from service.usecases.programs.summary import deadline_verdict

SHAPES = {"on track": "good", "at risk": "warning", "off track": "bad"}


def chance_verdict(chance: float) -> tuple[str, str]:
    """Class and words for the probability of a goal."""
    words = deadline_verdict(chance)
    return SHAPES[words], words
