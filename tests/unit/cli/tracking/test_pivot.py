"""`outlay track pivot`: as PATCH with `pivot_at`, from the database itself."""

from __future__ import annotations

import json

from flask.testing import FlaskClient

from tests.contract.tracking.test_gates_http import PIVOT, TRACK, changed, decide, run_of, tracked
from tests.unit.cli.tracking.test_commands import client, complaint, environment, output

__all__ = ["client", "environment"]


def test_a_program_goes_on_with_its_pivot_as_over_http(environment: dict[str, str], client: FlaskClient) -> None:
    """Once it is decided; then the program is that of the interface, and a second time is refused."""
    program = tracked(client)
    run = run_of(client, program, "validation", "scale check", 0.5)
    asked = ("pivot", str(program["id"]), "--at", "validation", "--from", "2027-03-02")
    assert "decide first" in complaint(environment, *asked)
    decide(client, run, "validation", "pivot")
    words = output(environment, *asked)
    assert words.startswith(f"goes on with {PIVOT['name']} from 2027-03-02, decided at the gate validation")
    kept = client.get(f"{TRACK}/{program['id']}").get_json()
    assert kept["pivoted"] == {"gate": "validation", "program": PIVOT["name"], "from": "2027-03-02"}
    assert "already" in complaint(environment, *asked)
    assert changed(client, program, pivot_at="validation").status_code == 422


def test_the_answer_is_that_of_the_interface(environment: dict[str, str], client: FlaskClient) -> None:
    """As JSON."""
    program = tracked(client)
    decide(client, run_of(client, program, "validation", "scale check", 0.5), "validation", "pivot")
    answered = json.loads(output(environment, "pivot", str(program["id"]), "--at", "validation", "--json"))
    assert answered == client.get(f"{TRACK}/{program['id']}").get_json()
