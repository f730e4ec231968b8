"""Answers that were kept before newer fields were there: what they lack stands for its default, and nothing else is made up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from service.domain.answer_fields import MERGED, Doc, SameAs
from service.schemas.derive import derive
from service.schemas.older import complete_older


@dataclass(frozen=True, slots=True)
class Cause:
    """Something with a probability."""

    name: Annotated[str, Doc("Name")]
    probability: Annotated[float, Doc("Probability", "1")]
    state: Annotated[str, Doc("State")] = "open"


@dataclass(frozen=True, slots=True)
class PlannedCause:
    """The same as planned."""

    cause: Annotated[Cause, MERGED]
    planned: Annotated[float, Doc("Planned probability", "1", older=SameAs("probability"))]


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """A plan of them."""

    first: Annotated[Cause | None, Doc("First; null: none")]
    causes: Annotated[tuple[PlannedCause, ...], Doc("All", max_items=10)]
    notes: Annotated[tuple[str, ...], Doc("Notes", max_items=10, older=())]
    comment: Annotated[str | None, Doc("Comment; left out where there is none", optional=True)] = None


SCHEMA = derive(KeptPlan)()


def test_each_newer_field_has_its_value_at_every_depth() -> None:
    """The dataclass's default, a stated value, or another member's; what is optional stays left out."""
    older = {"first": {"name": "a", "probability": 0.1}, "causes": [{"name": "b", "probability": 0.2}]}
    assert complete_older(SCHEMA, older) == {
        "first": {"name": "a", "probability": 0.1, "state": "open"},
        "causes": [{"name": "b", "probability": 0.2, "state": "open", "planned": 0.2}],
        "notes": [],
    }
    assert older == {"first": {"name": "a", "probability": 0.1}, "causes": [{"name": "b", "probability": 0.2}]}


def test_what_was_always_there_is_not_made_up() -> None:
    """A missing one is still an error, and what is wrong stays wrong; a whole answer stays as it is."""
    assert SCHEMA.validate(complete_older(SCHEMA, {"first": None, "causes": [{"name": "b"}]})).keys() == {"causes"}
    assert complete_older(SCHEMA, {"first": 3, "causes": "x", "notes": None}) == {"first": 3, "causes": "x", "notes": None}
    whole = {"first": None, "causes": [{"name": "b", "probability": 0.2, "state": "closed", "planned": 0.0}], "notes": ["n"]}
    assert complete_older(SCHEMA, whole) == whole
