"""Flask's JSON, made strict."""

from __future__ import annotations

from typing import Any

from flask.json.provider import JSONProvider

from service.schemas import strict_json


class StrictProvider(JSONProvider):
    """Provider for `jsonify` and other uses of Flask's JSON."""

    def dumps(self, obj: Any, **kwargs: Any) -> str:  # noqa: ARG002 - Flask's signature
        """Compact text, keys in order, no NaN."""
        return strict_json.dumps(obj)

    def loads(self, s: str | bytes, **kwargs: Any) -> Any:  # noqa: ARG002 - Flask's signature
        """The strictly parsed value. Raises BadJson."""
        return strict_json.parse(s.encode() if isinstance(s, str) else s)
