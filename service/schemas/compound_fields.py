"""Strict fields that hold other fields: a word or a value, a number or an object, lists, parts."""

from __future__ import annotations

from copy import copy
from typing import Any

from marshmallow import Schema as MarshmallowSchema
from marshmallow import ValidationError, fields

from service.schemas.fields import MESSAGES, Number, OwnField


class OrWord(OwnField):
    """A word such as "auto", returned as it is, or a value of `inner`."""

    def __init__(self, inner: fields.Field[Any], word: str = "auto", **options: Any) -> None:
        super().__init__(**options)
        self.inner, self.word = inner, word

    def _bind_to_schema(self, field_name: str, parent: Any) -> None:
        super()._bind_to_schema(field_name, parent)
        self.inner = copy(self.inner)
        self.inner._bind_to_schema(field_name, self)  # noqa: SLF001 - as marshmallow's List does

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        if value == self.word:
            return value
        try:
            return self.inner.deserialize(value)
        except ValidationError as error:
            of_an_item = isinstance(error.messages, dict) and not isinstance(self.inner, fields.Nested)
            if isinstance(value, dict) or of_an_item:
                raise
            raise ValidationError(f'{self._taken(error)}, or "{self.word}"') from None

    def _taken(self, error: ValidationError) -> str:
        """What `inner` accepts; of an object, its members."""
        if isinstance(self.inner, fields.Nested):
            return f"must be an object with any of {', '.join(self.inner.schema.load_fields)}"
        return str(error.messages[0])

    def _serialize(self, value: Any, attr: str | None, obj: Any, **kwargs: Any) -> Any:
        return value if value == self.word else self.inner._serialize(value, attr, obj, **kwargs)  # noqa: SLF001 - as List does


class OrNumber(OwnField):
    """A number, or an object of `inner`."""

    def __init__(self, number: Number, inner: Part, **options: Any) -> None:
        super().__init__(**options)
        self.number, self.inner = number, inner

    def _bind_to_schema(self, field_name: str, parent: Any) -> None:
        super()._bind_to_schema(field_name, parent)
        self.inner = copy(self.inner)
        self.inner._bind_to_schema(field_name, self)  # noqa: SLF001 - as marshmallow's List does

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        if isinstance(value, dict):
            return self.inner.deserialize(value)
        try:
            return self.number.deserialize(value)
        except ValidationError as error:
            members = ", ".join(self.inner.schema.load_fields)
            raise ValidationError(f"{error.messages[0]}, or an object with any of {members}") from None


class Items(fields.List[Any]):
    """A list of bounded length; the length is checked before the items."""

    default_error_messages = MESSAGES | {"invalid": "must be a list"}

    def __init__(self, inner: Any, *, max_items: int, min_items: int = 0, description: str = "", **options: Any) -> None:
        super().__init__(inner, metadata={"description": description} if description else {}, **options)
        self.max_items, self.min_items = max_items, min_items

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[Any]:
        if isinstance(value, list) and not self.min_items <= len(value) <= self.max_items:
            raise ValidationError(f"must have {self.min_items:,} to {self.max_items:,} entries, not {len(value):,}")
        return super()._deserialize(value, attr, data, **kwargs)

    def openapi(self) -> dict[str, Any]:
        """Bounds of the length; apispec describes the items."""
        return {"minItems": self.min_items, "maxItems": self.max_items}


class Part(fields.Nested):
    """A nested object with a schema of its own."""

    default_error_messages = MESSAGES | {"type": "must be an object"}

    def __init__(self, nested: type[MarshmallowSchema] | MarshmallowSchema, *, description: str = "", **options: Any) -> None:
        super().__init__(nested, metadata={"description": description} if description else {}, **options)


class FreeObject(OwnField):
    """An object with members that are not checked (a Hugging Face config.json), returned unchanged."""

    def __init__(self, *, max_members: int = 1000, **options: Any) -> None:
        super().__init__(**options)
        self.max_members = max_members

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> dict[str, Any]:  # noqa: ARG002
        if not isinstance(value, dict):
            raise ValidationError("must be an object")
        if len(value) > self.max_members:
            raise ValidationError(f"must have at most {self.max_members:,} members")
        return value

    def openapi(self) -> dict[str, Any]:
        """An object with any members."""
        return {"type": "object", "maxProperties": self.max_members, "additionalProperties": True}


class AnyValue(OwnField):
    """Any JSON value; in answers only."""
