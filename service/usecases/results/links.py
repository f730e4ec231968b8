"""Links that open one kept result to whoever has them: made by a member, listed, revoked."""

from __future__ import annotations

import secrets
import uuid
from datetime import timedelta

from service.context import AppContext
from service.domain.errors import InvalidRequest, NotFound
from service.domain.idempotency import IdempotencyRecord
from service.domain.results import MOST_LINKS, ResultDetail, ResultLink
from service.domain.teams import Principal
from service.usecases.keys import hash_secret
from service.usecases.results.keep import check_result
from service.usecases.tracking.programs import NOT_OURS

_TOKEN_BYTES = 32


def new_token() -> str:
    """The token of a link to be made."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def make_link(
    context: AppContext,
    who: Principal,
    result_id: str,
    token: str,
    expires_in_days: int | None,
    idempotency: IdempotencyRecord | None = None,
) -> ResultLink:
    """A link that opens a result of the caller's team with this token, of which only a digest is stored.

    Raises NotFound, InvalidRequest where the result has all the links it may have, IdempotentReplay and IdempotencyKeyReused.
    """
    check_result(context, who, result_id)
    now = context.clock()
    link = ResultLink(str(uuid.uuid4()), now, None if expires_in_days is None else now + timedelta(days=expires_in_days))
    if not context.store.create_link(who.team, result_id, link, hash_secret(token), idempotency):
        raise InvalidRequest(f"a result has at most {MOST_LINKS} links; revoke one")
    return link


def list_links(context: AppContext, who: Principal, result_id: str) -> list[ResultLink]:
    """The links that open a result of the caller's team, oldest first. Raises NotFound."""
    check_result(context, who, result_id)
    return context.store.links(result_id, context.clock())


def revoke_link(context: AppContext, who: Principal, result_id: str, link_id: str) -> None:
    """Delete a link; it opens nothing from now on. Raises NotFound."""
    check_result(context, who, result_id)
    if not context.store.delete_link(who.team, result_id, link_id, context.clock()):
        raise NotFound(NOT_OURS.format(what="link"))


def open_link(context: AppContext, result_id: str, token: str) -> ResultDetail:
    """The result that a token opens. Raises NotFound for an unknown, revoked or expired link, and for another result's."""
    found = context.store.linked_result(result_id, hash_secret(token), context.clock())
    if found is None:
        raise NotFound(NOT_OURS.format(what="result"))
    return found
