"""Sessions of browsers. Only the digest of a session's token is stored."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, insert, select

from service.domain.web_sessions import WebSession
from service.store.database import Database
from service.store.tables import web_sessions


class WebSessionRows(Database):
    """Statements for sessions."""

    def create_web_session(self, session: WebSession) -> None:
        """Store a session, and delete those that have ended."""
        values = {column.name: getattr(session, column.name) for column in web_sessions.c}
        with self._write() as connection:
            connection.execute(delete(web_sessions).where(web_sessions.c.expires_at <= session.created_at))
            connection.execute(insert(web_sessions).values(values))

    def web_session(self, digest: str, now: datetime) -> WebSession | None:
        """The session of a token's digest; None where there is none, or where it has ended."""
        query = select(web_sessions).where(web_sessions.c.digest == digest, web_sessions.c.expires_at > now)
        return self._find(WebSession, query)

    def delete_web_session(self, digest: str) -> None:
        """End one session."""
        self._change(delete(web_sessions).where(web_sessions.c.digest == digest))

    def delete_web_sessions(self, key: str) -> int:
        """End every session that was begun with a key; returns their number."""
        return self._change(delete(web_sessions).where(web_sessions.c.key == key))
