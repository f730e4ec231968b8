"""Licences of a bill of materials: whichever way a component states them."""

from __future__ import annotations

from tools.licences import licences


def test_every_component_is_listed_by_name() -> None:
    """Expressions, ids and names; one without a licence is unknown, one stated twice is listed once."""
    bill = {
        "components": [
            {"name": "b", "version": "2", "licenses": [{"expression": "MIT OR Apache-2.0"}]},
            {"name": "a", "version": "1", "licenses": [{"license": {"id": "MIT"}}, {"license": {"id": "MIT"}}]},
            {"name": "c", "licenses": [{"license": {"name": "BSD\n License"}}, {"license": {"id": "ISC"}}]},
            {"name": "d", "version": "4"},
        ]
    }
    assert licences(bill) == [("a", "1", "MIT"), ("b", "2", "MIT OR Apache-2.0"), ("c", "", "BSD License AND ISC"), ("d", "4", "unknown")]
    assert licences({}) == []
