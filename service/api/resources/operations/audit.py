"""/v1/audit: who changed what of the team, and when."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response

from service.api.http.auth import app_context, needs, principal
from service.api.http.blueprint import Blueprint
from service.api.http.paging import numbered_page
from service.domain.audit import AuditFilter, entry_body
from service.schemas.audit import AuditEntrySchema, AuditQuerySchema
from service.schemas.paging import page_schema
from service.usecases import audit as usecase

blueprint = Blueprint("audit", __name__, description="The audit trail: who changed what, and when")


@blueprint.route("/v1/audit", methods=["GET"])
@needs("admin")
@blueprint.arguments(AuditQuerySchema, location="query")
@blueprint.response(200, page_schema(AuditEntrySchema))
def list_audit_entries(query: dict[str, Any]) -> Response:
    """Changes of the team's objects, the newest first

    An entry is written in the transaction of its change and never changed; its digest covers the one before. Tracked events are not among
    them: they are a log of their own.
    """
    wanted = AuditFilter(**{name: query[name] for name in AuditFilter.__dataclass_fields__ if name in query})
    return numbered_page(query, partial(usecase.list_entries, app_context(), principal(), wanted), entry_body)
