"""A question with a candidate of what is asked back put into it."""

from __future__ import annotations


def completed(question: str, unclear: str, candidate: str) -> str | None:
    """The question with the candidate in place of the unclear words, at its end where something lacks; None: not written as they are."""
    if not unclear:
        return f"{question.rstrip(' ?.!')} {candidate}"
    place = question.lower().find(unclear.lower())
    return None if place < 0 else f"{question[:place]}{candidate}{question[place + len(unclear) :]}"
