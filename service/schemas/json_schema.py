"""JSON schemas of the schemas that validate requests, for the HTTP interface's specification and for tools of assistants."""

from __future__ import annotations

from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.common import resolve_schema_instance
from apispec.ext.marshmallow.openapi import OpenAPIConverter

from service.schemas.compound_fields import Items, OrNumber, OrWord
from service.schemas.fields import OwnField, Schema

DIALECT = "3.1.0"
COMPONENTS, DEFINITIONS = "#/components/schemas/", "#/$defs/"


def json_schema(schema: Schema) -> dict[str, Any]:
    """The JSON schema of a request by itself: what it refers to stands in `$defs`."""
    from service.schemas import strict_json

    plugin = Plugin(schema_name_resolver=schema_name)
    spec = APISpec("", "", DIALECT, plugins=[plugin])
    name = schema_name(schema)
    spec.components.schema(name, schema=schema)
    text = strict_json.dumps(spec.to_dict()["components"]["schemas"]).replace(COMPONENTS, DEFINITIONS)
    parts: dict[str, Any] = strict_json.parse(text.encode())
    return {**parts.pop(name), **({"$defs": parts} if parts else {})}


def schema_name(schema: Any) -> str:
    """The name of a schema's component."""
    return type(resolve_schema_instance(schema)).__name__.removesuffix("Schema")


class Converter(OpenAPIConverter):
    """apispec's converter for this service's fields."""

    def init_attribute_functions(self) -> None:
        """Apply this service's fields last, so that they have precedence."""
        super().init_attribute_functions()  # type: ignore[no-untyped-call]
        self.attribute_functions.append(self.own_properties)

    def own_properties(self, field: Any, ret: dict[str, Any], **_: Any) -> dict[str, Any]:
        """JSON schema of one of this service's fields, nullable where it allows null."""
        if isinstance(field, OrWord):
            properties: dict[str, Any] = {"anyOf": [{"type": "string", "const": field.word}, self.field2property(field.inner)]}
        elif isinstance(field, OrNumber):
            properties = {"anyOf": [field.number.openapi(), self.field2property(field.inner)]}
        elif isinstance(field, OwnField | Items):
            properties = field.openapi()
        else:
            return {}
        if field.allow_none and isinstance(field, OwnField):
            ret.pop("type", None)
            properties = _nullable(properties)
        return properties


class Plugin(MarshmallowPlugin):
    """apispec's plugin with our converter."""

    Converter = Converter


def _nullable(properties: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in properties:
        return properties | {"anyOf": [*properties["anyOf"], {"type": "null"}]}
    if "type" in properties:
        more = {"enum": [*properties["enum"], None]} if "enum" in properties else {}
        return properties | {"type": [properties["type"], "null"]} | more
    return properties
