"""Request and answer schemas of kept results and their links."""

from __future__ import annotations

from functools import partial
from typing import Any

from marshmallow import ValidationError, post_load

from service.context import AppContext
from service.domain.errors import DomainError
from service.domain.results import MOST_LINKS, ResultDetail, ResultLink, ResultRecord
from service.schemas.base import SentRequestSchema, make_schema
from service.schemas.compound_fields import FreeObject, Items, Part
from service.schemas.derive import derive
from service.schemas.fields import Choice, Count, Moment, Schema, Text
from service.schemas.paging import PageQuerySchema
from service.schemas.results.kinds import KINDS, Body, Loaded, ResultKind
from service.usecases.results.keep import Question

MOST_DAYS = 3650


class RequestField(FreeObject):
    """A request of one of the kinds; read by the kind's own schema."""

    def openapi(self) -> dict[str, Any]:
        """Any of the kinds' schemas."""
        names = (type(kind.schema).__name__.removesuffix("Schema") for kind in KINDS.values())
        return {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in names]}


class KeepRequestSchema(Schema):
    """A question whose answer is kept."""

    kind = Choice(tuple(KINDS), required=True, description="Kind of question")
    request = RequestField(required=True, description="Request as the kind's own address takes it")
    title = Text(description="Title; left out: the answer's summary, cut to 200 characters")
    expires_in_days = Count(maximum=MOST_DAYS, suffixes=False, description="Days until it is deleted; left out: kept until deleted")

    @post_load
    def _read(self, data: Body, **_: Any) -> Question:
        kind = KINDS[data["kind"]]
        try:
            loaded = kind.schema.load(data["request"])
        except ValidationError as error:
            raise ValidationError({"request": error.messages}) from None
        return Question(data["kind"], data["request"], partial(_answer, kind, loaded), data.get("title"), data.get("expires_in_days"))


def _answer(kind: ResultKind, loaded: Loaded, context: AppContext) -> Body:
    """The kind's answer. Raises DomainErrors with pointers below /request."""
    try:
        return kind.answer(context, loaded)
    except DomainError as error:
        raise error.below("/request") from error


class ResultQuerySchema(PageQuerySchema):
    """Which kept results are listed."""

    kind = Choice(tuple(KINDS), description="Only results of this kind")
    title = Text(description="Only results with this text in their title, in any case")
    expires_before = Moment(description="Only results that expire before this time")


class LinkRequestSchema(Schema):
    """A link to be made."""

    expires_in_days = Count(maximum=MOST_DAYS, suffixes=False, description="Days until it opens nothing; left out: until it is revoked")


URL = {"url": Text(required=True, max_length=2000, description="Address of its page, for members of the team; others need a link")}
ResultEntrySchema = derive(ResultRecord, "ResultEntry", extra=URL)
ResultSchema = derive(
    ResultDetail,
    "Result",
    parts={"request": SentRequestSchema},
    extra=URL | {"answer": FreeObject(required=True, description="Answer as kept, as the kind's own address gives it")},
)
ResultLinkSchema = derive(ResultLink, "ResultLink")


NEW_URL = Text(
    required=True,
    allow_none=True,
    max_length=2000,
    description="Address that opens the result's page to whoever has it, shown once; null in a repeat under an Idempotency-Key",
)
NewLinkSchema = make_schema("NewLink", {"url": NEW_URL}, ResultLinkSchema)


class ResultLinksSchema(Schema):
    """The links of a result."""

    items = Items(Part(ResultLinkSchema), required=True, max_items=MOST_LINKS, description="Links that open it, oldest first")


class JwkSetSchema(Schema):
    """A JWK set (RFC 7517)."""

    keys = Items(FreeObject(), required=True, max_items=10_000, description="Public keys, the newest first")
