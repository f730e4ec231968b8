"""The gate tree as a picture, a sentence and a table."""

from __future__ import annotations

import re
from typing import Any

import pytest

from service.formats.documents.charts import svg
from service.formats.documents.program.charts import gantt_chart
from service.formats.documents.program.endings import ending_table, endings_left, share_words, tree_finding
from service.formats.documents.program.gate_tree import LEAF, gate_tree_chart
from service.formats.documents.render import render
from tests.unit.formats.documents.program.program_answers import answer_of, complete


def ending(tier: str | None, probability: float, usd: float | None, pivot: str | None = None) -> dict[str, Any]:
    """An ending as an answer has it."""
    return {"stopped_at": tier, "probability": probability, "usd": usd, "pivot": pivot}


ENDINGS = [ending("prototype", 0.3, 4210.55), ending("validation", 0.2, 30_000, "3B"), ending(None, 0.5, 150_000)]


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    """A plan of three tiers with two gates."""
    return answer_of(complete())


def drawn(endings: list[dict[str, Any]]) -> tuple[dict[str, Any], list[list[dict[str, Any]]]]:
    """The specification, and the rows of its layers: ways, gates, endings, their words and figures, what passes."""
    chart = gate_tree_chart(endings)
    assert chart is not None
    found = chart.to_dict()
    return found, [found["datasets"][layer["data"]["name"]] for layer in found["layer"]]


def test_every_gate_and_ending_is_drawn_and_named() -> None:
    """Endings with their share and spend, gates with who passes; a pivot is neither a stop nor completion."""
    specification, (ways, gates, leaves, *_) = drawn(ENDINGS)
    assert [(row["words"], row["spent"]) for row in leaves] == [
        ("30%: stop after prototype", "$4,210 spent"),
        ("20%: 3B after validation", "$30,000 spent, the pivot included"),
        ("50%: completed", "$150,000 spent"),
    ]
    assert [row["kind"] for row in leaves] == ["stopped", "pivoted", "completed"]
    assert [row["passed"] for row in gates] == ["70% pass the gate", "71% pass the gate"]
    assert gates[1]["tip"] == "Gate after validation\nreached in 70% of cases; 71% pass the gate"
    assert " ".join(specification["title"]["text"]) == "Stop after prototype in 30% of cases, complete in 50%"
    to_endings = [row["thick"] for row in ways if row["x2"] == LEAF]
    assert to_endings[2] > to_endings[0] > to_endings[1]


def test_a_plan_that_ends_in_one_way_has_no_tree() -> None:
    """Neither picture nor table."""
    assert gate_tree_chart([ending(None, 1.0, 10)]) is None
    assert ending_table([ending(None, 1.0, 10)]).rows == ()


def test_the_likeliest_ending_before_completion_is_the_finding() -> None:
    """A pivot by its name."""
    assert tree_finding([ENDINGS[0], ending("validation", 0.4, 1.0, "3B"), ending(None, 0.3, 2.0)]) == (
        "Go on with 3B after validation in 40% of cases, complete in 30%"
    )


@pytest.mark.parametrize(
    ("decided", "left"),
    [
        ({}, [0.3, 0.2, 0.5]),
        ({"prototype": "continue"}, [0.2 / 0.7, 0.5 / 0.7]),
        ({"prototype": "continue", "validation": "continue"}, [1.0]),
        ({"prototype": "stop"}, [1.0]),
        ({"prototype": "continue", "validation": "pivot"}, [1.0]),
    ],
)
def test_what_is_decided_can_no_longer_happen_otherwise(decided: dict[str, str], left: list[float]) -> None:
    """The other endings share the whole, as likely to each other as before."""
    assert [each["probability"] for each in endings_left(ENDINGS, decided)] == pytest.approx(left)


@pytest.mark.parametrize(
    ("share", "words"), [(0.0, "0%"), (0.001, "under 1%"), (0.3, "30%"), (0.994, "99%"), (0.999, "over 99%"), (1.0, "100%")]
)
def test_what_is_possible_is_not_rounded_away(share: float, words: str) -> None:
    """Neither to never nor to always."""
    assert share_words(share) == words


def test_a_name_is_text_and_an_unknown_amount_is_said() -> None:
    """Whatever a pivot is called."""
    name = '<script>alert(1)</script> " \u202e' + 180 * "x"
    picture = svg(gate_tree_chart([ending("prototype", 0.5, None, name), ending(None, 0.5, None)]))  # type: ignore[arg-type]
    assert "<script" not in picture
    assert "an amount not known spent" in picture


def test_documents_have_the_tree_and_its_figures(answer: dict[str, Any]) -> None:
    """The page the picture, every readable document the table."""
    page, text = (render("program", answer, kind)[0].decode() for kind in ("html", "md"))
    assert "Stop after prototype in 40% of cases" in page
    assert re.search(r"\| stop after prototype +\| +40% \|", text)


def test_days_of_the_calendar_are_drawn_at_one_place(answer: dict[str, Any]) -> None:
    """A gate whose day is sure stands on its whisker, which has no length, and a bar ends where the whisker of its day does."""
    found = gantt_chart(answer).to_dict()
    rows = {row["what"]: row for row in next(iter(found["datasets"][layer["data"]["name"]] for layer in found["layer"]))}
    for entry in answer["schedule"]["calendar"]:
        row, days = rows[entry["what"]], entry["finish_range"]
        assert (row["low"] == row["finish"], row["high"] == row["finish"]) == (days["p10"] == days["p50"], days["p90"] == days["p50"])
        assert row["low"] <= row["finish"] <= row["high"]
