"""A program's risk register over HTTP: mitigations, states, correlations, and what the documents say of them."""

from __future__ import annotations

import copy
from io import BytesIO
from typing import Any

import pytest
from flask.testing import FlaskClient
from openpyxl import load_workbook

from service.api.resources.programs import EXAMPLE
from tests.contract.programs.test_programs_http import added_up, ask, told

SPIKE = {
    "name": "loss spike",
    "probability": 0.3,
    "cost_share_of_tier": 0.2,
    "tier": "production",
    "owner": "Ada",
    "trigger": "loss rises 3 %",
}
LEAK = {"name": "leak", "probability": 0.1, "cost_usd": 40_000, "days": 5}
CLIPPING = {"usd": 500, "days": 2, "probability_after": 0.05, "cost_share_after": 0.1}


def with_risks(*risks: dict[str, Any], **sections: Any) -> dict[str, Any]:
    return copy.deepcopy(EXAMPLE) | {"risks": list(risks)} | sections


def test_a_mitigation_is_recommended_before_it_is_taken(client: FlaskClient) -> None:
    """It changes no line and no date until it is taken; then it is a line, an activity, and a smaller contingency."""
    plain = ask(client, with_risks(SPIKE, LEAK))
    weighed = ask(client, with_risks(SPIKE | {"mitigation": CLIPPING}, LEAK))
    taken = ask(client, with_risks(SPIKE | {"mitigation": {**CLIPPING, "taken": True}}, LEAK))
    assert weighed["lines"] == plain["lines"]
    assert weighed["schedule"]["calendar"] == plain["schedule"]["calendar"]
    assert weighed["risks"][0]["effect"]["pays"] is True
    assert {"field": "risks.mitigation.taken", "value": False} in [
        {name: one[name] for name in ("field", "value")} for one in weighed["assumptions"]
    ]
    assert "mitigation: loss spike" in [line["line"] for line in taken["lines"]]
    assert [entry["kind"] for entry in taken["schedule"]["calendar"] if entry["what"] == "mitigation: loss spike"] == ["mitigation"]
    assert taken["risks"][0]["expected_loss_usd"] < plain["risks"][0]["expected_loss_usd"]
    added_up(taken)
    # But for the storage of its two days.
    assert weighed["risk_register"]["budget_with_paying_mitigations_usd"] == pytest.approx(taken["risk_register"]["budget_usd"], rel=1e-3)
    assert taken["risk_register"]["budget_without_mitigations_usd"] == pytest.approx(plain["total_usd"]["p50"], rel=1e-3)


def test_a_closed_risk_neither_costs_nor_takes_time(client: FlaskClient) -> None:
    """It stays in the register."""
    body = ask(client, with_risks(SPIKE | {"state": "closed"}, LEAK))
    alone = ask(client, with_risks(LEAK))
    assert body["total_usd"] == alone["total_usd"]
    assert body["schedule"]["finish"] == alone["schedule"]["finish"]
    assert (body["risks"][0]["state"], body["risks"][0]["owner"], body["risks"][0]["expected_loss_usd"]) == ("closed", "Ada", 0)


def test_correlated_risks_widen_the_register(client: FlaskClient) -> None:
    """The mean stays; losses at 90 % do not fall. The contingency line says that it is simulated."""
    apart, together = (ask(client, with_risks(SPIKE, LEAK, risk_correlation=rho)) for rho in (0, 0.9))
    assert apart["risk_register"]["expected_loss_usd"] == together["risk_register"]["expected_loss_usd"]
    assert together["risk_register"]["deviation_usd"] > apart["risk_register"]["deviation_usd"]
    assert "simulated" in next(line["basis"] for line in together["lines"] if line["line"] == "contingency")
    added_up(together)
    pair = [{"risks": ["loss spike", "leak"], "correlation": 0.9}]
    assert ask(client, with_risks(SPIKE, LEAK, risk_correlation=pair))["risk_register"] == together["risk_register"]


def test_an_unknown_risk_of_a_pair_is_named(client: FlaskClient) -> None:
    """With the pointer to it."""
    pair = [{"risks": ["loss spike", "flood"], "correlation": 0.9}]
    assert "/risk_correlation/0/risks/1" in told(client, with_risks(SPIKE, LEAK, risk_correlation=pair))


@pytest.mark.parametrize("form", ["md", "html", "csv"])
def test_documents_show_the_register(client: FlaskClient, form: str) -> None:
    """Who watches, what is done against it and whether that pays."""
    asked = with_risks(SPIKE | {"mitigation": CLIPPING}, LEAK)
    page = client.post(f"/v1/estimate/program?format={form}", json=asked).get_data(as_text=True)
    assert "pays: it avoids" in page
    if form != "csv":
        assert "Ada" in page
        assert "every one that pays" in page


def test_a_workbook_has_mitigations_and_what_gates_are_worth(client: FlaskClient) -> None:
    """Expected losses of its formulas are those planned with: after a state and a mitigation."""
    asked = with_risks(SPIKE | {"mitigation": {**CLIPPING, "taken": True}}, LEAK | {"state": "occurred"})
    asked["outcome"]["value_usd_per_point"] = 50_000
    content = client.post("/v1/estimate/program?format=xlsx", json=asked).data
    book = load_workbook(BytesIO(content), data_only=True)
    texts = {name: str(list(book[name].values)) for name in ("Mitigations", "Gate worth", "Risks")}
    assert "pays: it avoids" in texts["Mitigations"]
    assert "worth running" in texts["Gate worth"]
    likely = [row[2] for row in book["Risks"].values if row[0] in ("loss spike", "leak")]
    assert likely == [0.05, 1]
