"""What stands at an answer's fields, inside `Annotated`: their meaning and unit, and how they are laid out in JSON.

The dataclass of an answer is its one definition: `service.schemas.derive` makes the schema and so the OpenAPI description of it,
`service.serialization` its JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints


class Older(Enum):
    """What a field is in an answer that was kept before the field was there."""

    REQUIRED = "it was always there, or has the default of its dataclass"


@dataclass(frozen=True, slots=True)
class SameAs:
    """The value of another member of the same object."""

    member: str


@dataclass(frozen=True, slots=True)
class Doc:
    """The meaning of a field in a few words, its unit ("1" for a share or a ratio), and the bounds that its values keep to.

    `maximum`, `minimum` and `max_length` of a list are those of its entries. `choices` are all texts that it may be, where its type does
    not say so. A field that is `optional` has the default None, and is left out of the JSON where it is None. One that is `nullable` has
    a value in the dataclass, and may be null in an answer that a presenter makes of it. `name` is the member's name in the JSON where it is
    a word that Python reserves. `older` is what an answer stands for that was kept before the field was there; left out, that is the
    dataclass's default, and without one the field has always been there.
    """

    text: str
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    max_items: int | None = None
    choices: tuple[str, ...] = ()
    lines: bool = False
    optional: bool = False
    nullable: bool = False
    name: str = ""
    older: Any = Older.REQUIRED

    @property
    def description(self) -> str:
        """The text with its unit."""
        return f"{self.text} [{self.unit}]" if self.unit else self.text


class Layout(Enum):
    """A field that is no member of its own in the JSON."""

    HIDDEN = "not part of the answer"
    MERGED = "its members stand in the place of the field"


HIDDEN, MERGED = Layout.HIDDEN, Layout.MERGED


def share(text: str) -> Doc:
    """The documentation of a part of a whole or a probability, 0 to 1."""
    return Doc(text, "1", minimum=0.0, maximum=1.0)


@cache
def annotated_fields(kind: Any) -> Mapping[str, tuple[Any, tuple[Any, ...]]]:
    """Type and annotations of each field of a dataclass, by name.

    The types are evaluated once, which takes long, and set at the dataclass's fields, where cattrs looks for them.
    """
    hints = get_type_hints(kind, include_extras=True)
    split = {name: get_args(hint) if get_origin(hint) is Annotated else (hint,) for name, hint in hints.items()}
    for field in fields(kind):
        field.type = split[field.name][0]
    return {field.name: (split[field.name][0], split[field.name][1:]) for field in fields(kind)}
