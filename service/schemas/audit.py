"""The audit trail: query parameters and entries."""

from __future__ import annotations

from service.domain.audit import AuditEntry
from service.schemas.derive import derive
from service.schemas.fields import Moment, Text
from service.schemas.paging import PageQuerySchema


class AuditQuerySchema(PageQuerySchema):
    """Which entries are listed."""

    object = Text(description="Only changes of the object with this id")
    key = Text(description="Only changes made with the API key of this id")
    operation = Text(description="Only this operation, such as program.create")
    since = Moment(description="Only changes at this time or later")
    until = Moment(description="Only changes before this time")


AuditEntrySchema = derive(AuditEntry)
