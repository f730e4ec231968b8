"""Rules of what finished runs change in later estimates; every estimate imports them, and none of the status's other rules."""

from __future__ import annotations

import functools

from service.domain.tracking.feedback import FeedbackRules
from service.presets.documents import load_document


@functools.cache
def feedback_rules() -> FeedbackRules:
    """Weight of finished runs in later estimates."""
    return FeedbackRules(**load_document("tracking_status")["feedback"])
