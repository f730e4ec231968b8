"""What tools answer keeps to the schemas that they state: the SDK's client refuses an answer that does not."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from service.mcp.tools import TOOLS, output_schema

EXAMPLES = json.loads((Path(__file__).parents[3] / "service" / "api" / "http" / "data" / "examples.json").read_text(encoding="utf-8"))
OPERATIONS = {
    "estimate": "estimateRun",
    "compare": "compareOptions",
    "buy_or_rent": "compareBuyingRenting",
    "optimal": "findOptimum",
    "program_status": "getProgramStatus",
    "ask": "askQuestion",
}


@pytest.mark.parametrize("tool", [name for name in TOOLS if name != "explain"])
def test_a_recorded_answer_keeps_to_the_schema_of_its_tool(tool: str) -> None:
    jsonschema.validate(EXAMPLES[OPERATIONS[tool]]["200"], output_schema(tool))


@pytest.mark.parametrize("tool", [name for name in TOOLS if name != "explain"])
def test_another_answer_does_not(tool: str) -> None:
    answer = EXAMPLES[OPERATIONS[tool]]["200"] | {"summary": 7}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(answer, output_schema(tool))
