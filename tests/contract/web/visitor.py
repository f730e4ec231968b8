"""A browser as far as pages need one: cookies, forms with what is hidden in them, addresses on the way."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from flask.testing import FlaskClient

from tests.contract.doors import House

HTTPS = "https://localhost"
_TOKEN = re.compile(r'name="csrf_token" value="([0-9a-f]*)"')


class Visitor:
    """Somebody at a browser of their own."""

    def __init__(self, house: House) -> None:
        self._tokens = house.tokens
        self._client: FlaskClient = house.app.test_client()

    def open(self, path: str, **more: Any) -> Any:
        """The answer to a GET, redirects not followed."""
        return self._client.get(path, base_url=HTTPS, **more)

    def send(self, path: str, fields: dict[str, str] | None = None, **more: Any) -> Any:
        """The answer to a form."""
        return self._client.post(path, base_url=HTTPS, data={"sent": "yes"} | (fields or {}), **more)

    def sign_in(self, key: str, to: str = "/") -> Any:
        """Sign in with the key that the tests call so."""
        return self.send("/sign-in", {"api_key": self._tokens[key], "next": to})

    def form_token(self, path: str = "/") -> str:
        """What a form of this session carries; the page has one in each of its forms."""
        found = set(_TOKEN.findall(text_of(self.open(path))))
        assert len(found) == 1, found
        return str(found.pop())


def text_of(page: Any) -> str:
    """The page as it was sent."""
    assert page.content_type == "text/html; charset=utf-8"
    return str(page.get_data(as_text=True))


def words_of(page: Any) -> str:
    """The page as it is read: without markup, spaces as one."""
    text = re.sub(r'<span title="[^"]*">([^<]*)</span>', r"\1", text_of(page))
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", text)).split())
