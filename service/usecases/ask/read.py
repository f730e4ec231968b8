"""A question in words, read into the request of an endpoint."""

from __future__ import annotations

from service.context import AppContext
from service.domain.ask import EXAMPLES, Reading
from service.domain.errors import InvalidRequest, StoreUnavailable
from service.domain.teams import Principal
from service.formats.ask.parse import parse
from service.usecases.ask.vocabulary import vocabulary_of, with_programs

OF_PROGRAMS = ("status", "chance")


def read_question(context: AppContext, who: Principal, text: str) -> Reading:
    """What a question is read as, by today's date of the clock. Raises InvalidRequest with examples where nothing of it is understood,
    StoreUnavailable where it may be about a program.

    The team's programs are looked up only where a question can be about one; without a database the others are read all the same.
    """
    vocabulary, today = vocabulary_of(context), context.clock().date()
    reading = parse(text, vocabulary, today)
    if reading is None or reading.unclear or reading.understood.kind in OF_PROGRAMS:
        try:
            reading = parse(text, with_programs(context, who, vocabulary), today)
        except StoreUnavailable:
            if reading is None or reading.understood.kind in OF_PROGRAMS:
                raise
    if reading is None:
        raise InvalidRequest(f"nothing of this is understood; ask such as: {'; '.join(EXAMPLES)}", "/text")
    return reading
