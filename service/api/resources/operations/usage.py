"""/v1/usage: what a team uses of its budgets."""

from __future__ import annotations

from flask import Response

from service.api.http import budgets
from service.api.http.auth import app_context, principal
from service.api.http.blueprint import Blueprint, json_response
from service.domain.budgets import TeamUsage
from service.schemas.usage import TeamUsageSchema
from service.serialization import to_builtins
from service.usecases.storage import storage_budgets

blueprint = Blueprint("usage", __name__, description="What a team uses of its budgets")


@blueprint.route("/v1/usage", methods=["GET"])
@blueprint.response(200, TeamUsageSchema)
@budgets.unbudgeted
def get_usage() -> Response:
    """Use of the team's budgets

    Each budget under the name that a refusal gives it (429, 507): what is used of it now, the whole of it, and when it is whole again. A
    service without API keys limits the storage alone. Answered also where a budget is used up, but for the requests of the key.
    """
    context, who = app_context(), principal()
    usage = TeamUsage(who.team_name or who.team, (*budgets.standing(context, who), *storage_budgets(context, who.team)))
    return json_response(to_builtins(usage))
