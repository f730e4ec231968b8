"""Options of buying or renting in words: nothing of their names is left that only an API reads, and no two of them become one."""

from __future__ import annotations

from typing import Any

import pytest

from service.formats.option_words import name_words, option_words

OFFER: dict[str, Any] = {
    "provider": "aws",
    "region": "us-east-1",
    "instance_type": "p5.48xlarge",
    "pricing": "on_demand",
    "term_hours": 0.0,
    "upfront_share": 0.0,
}


def option(rest: str = "", **changed: Any) -> dict[str, Any]:
    offer = OFFER | changed
    name = " ".join((offer["provider"], offer["region"], offer["instance_type"], offer["pricing"])) + rest
    return {"name": name, "offer": offer}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (option(), "aws on demand (p5.48xlarge in us-east-1)"),
        (option(region="any", pricing="spot"), "aws spot (p5.48xlarge)"),
        (option(pricing="reserved_3y", upfront_share=0.5), "aws reserved for 3 years, 50% upfront (p5.48xlarge in us-east-1)"),
        (option(pricing="reserved", term_hours=4380.0), "aws reserved for 6 months (p5.48xlarge in us-east-1)"),
        (
            option(" term_hours=8760,minimum_accelerators=64,committed_usd=100000", pricing="reserved_1y"),
            "aws reserved for 1 year (p5.48xlarge in us-east-1, at least 64 accelerators, 100000 USD committed)",
        ),
        (option(" auction_floor"), "aws on demand (p5.48xlarge in us-east-1, auction floor)"),
        (option(" with peaks on demand", pricing="reserved_1y"), "aws reserved for 1 year (p5.48xlarge in us-east-1) with peaks on demand"),
        ({"name": "lambda_3y", "offer": OFFER | {"instance_type": None, "region": None}}, "lambda_3y"),
        ({"name": "our own", "offer": None}, "our own"),
    ],
)
def test_an_option_says_who_sells_what_where(found: dict[str, Any], words: str) -> None:
    """What its caller named keeps its name; a region that is none is left out."""
    assert option_words(found) == words


def test_a_name_is_looked_up_in_the_answer() -> None:
    """One that no option has stays as it is."""
    answer = {"options": [option()]}
    assert name_words(answer, option()["name"]) == "aws on demand (p5.48xlarge in us-east-1)"
    assert name_words(answer, "x") == "x"
