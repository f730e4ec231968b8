"""A program's plan as documents: every format says the same amounts, and nothing in a name is taken for markup or a formula."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from icalendar import Calendar

from service.domain.programs.program import Program, Tier
from service.formats.documents.csv_table import FORMULA_SIGNS
from service.formats.documents.program.charts import gantt_chart
from service.formats.documents.render import PROGRAM_FORMATS, render
from tests.support.servers import DEADLINE_S, missing
from tests.unit.engine.program_builders import planned, program, programs
from tests.unit.formats.documents.program.program_answers import HOSTILE, answer_of, complete

MANDATORY = {
    *("BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart"),
    *("ChargeCategory", "ChargeClass", "ChargeDescription", "ChargePeriodEnd", "ChargePeriodStart", "ContractedCost", "EffectiveCost"),
    *("InvoiceIssuerName", "ListCost", "PricingQuantity", "PricingUnit", "ProviderName", "PublisherName", "ServiceCategory", "ServiceName"),
}  # fmt: skip
"""The 21 columns that FOCUS 1.2 calls mandatory (its specification, 29 May 2025)."""


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    return answer_of(complete())


def document(answer: dict[str, Any], wanted: str) -> str:
    return render("program", answer, wanted)[0].decode()


def rows(answer: dict[str, Any], wanted: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(document(answer, wanted), newline="")))


def summed(found: list[dict[str, str]], column: str) -> Decimal:
    return sum((Decimal(row[column]) for row in found), Decimal(0))


def cents(usd: float) -> Decimal:
    return Decimal(f"{usd:.2f}")


class TestEveryFormat:
    @pytest.mark.parametrize("wanted", PROGRAM_FORMATS)
    def test_the_smallest_program_has_a_document(self, wanted: str) -> None:
        """One run without gate, outcome, overhead, risk or deadline is a plan like any other."""
        bare = answer_of(program(Tier("production", (planned(),))))
        bare["schedule"] |= {"deadline": None, "deadline_probability": None, "latest_start": None, "deadline_options": []}
        written, media_type = render("program", bare, wanted)
        assert len(written) > 100
        assert "/" in media_type

    @given(programs())
    def test_tables_add_up_to_the_budget_whatever_the_program(self, asked: Program) -> None:
        """Lines and weeks of the CSV, and the forecast's rows, are the budget to the cent."""
        made = answer_of(asked)
        budget = cents(made["total_usd"]["p50"])
        table = rows(made, "csv")
        for section in ("line", "burn_plan"):
            assert summed([row for row in table if row["section"] == section], "usd") == budget
        assert summed(rows(made, "focus"), "BilledCost") == budget


class TestReading:
    def test_warnings_and_assumptions_stand_in_full(self, answer: dict[str, Any]) -> None:
        """Nothing that a reader should worry about is left out of what is read."""
        long = answer | {"warnings": ["a warning " * 40 + "to its end"]}
        for wanted in ("md", "html"):
            said = document(long, wanted)
            assert long["warnings"][0] in said
            assert answer["assumptions"][0]["source"] in said

    def test_ranges_are_p50_with_their_ends(self, answer: dict[str, Any]) -> None:
        """The budget is written as its median with the 10th and 90th percentile."""
        total = answer["total_usd"]
        said = f"{total['p50']:,.2f} ({total['p10']:,.0f} to {total['p90']:,.0f})"
        assert said in document(answer, "md")
        assert said in document(answer, "html")

    def test_markdown_tables_are_whole(self, answer: dict[str, Any]) -> None:
        """Every row of a table has its head's cells, whatever bars a name has in it."""
        blocks = [block for block in document(answer, "md").split("\n\n") if block.startswith("|")]
        assert len(blocks) > 5
        for block in blocks:
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in block.splitlines()}) == 1

    def test_a_name_is_no_markup(self, answer: dict[str, Any]) -> None:
        """A script in a name is shown, not run, in text and in plots."""
        assert "<script" not in document(answer, "html")
        assert "<script" not in document(answer, "md").replace("\\<", "")


class TestPage:
    def test_nothing_is_fetched(self, answer: dict[str, Any]) -> None:
        """No address but the names of XML's own vocabularies, no script and no style attribute stand in the page."""
        page = document(answer, "html").replace("http://www.w3.org/", "").replace("http://evil", "")
        assert not re.search(r"https?://|url\((?!#)|<link|<img|<iframe|@import|\sstyle=|\son\w+=", page)
        assert page.count("<svg") == 4

    def test_chromium_shows_it_under_its_own_policy(self, answer: dict[str, Any], tmp_path: Path) -> None:
        """The browser blocks nothing of the page, and would block a style that is not the page's."""
        page = document(answer, "html")
        assert self.complaints(page, tmp_path) == ""
        assert "Content Security Policy" in self.complaints(page.replace("<style>", "<style>body { color: red }"), tmp_path)

    def complaints(self, page: str, folder: Path) -> str:
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        if program is None:
            missing("Chromium")
        file, picture = folder / "page.html", folder / "page.png"
        file.write_text(page)
        flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}", "--enable-logging=stderr"]
        done = subprocess.run(
            [str(program), *flags, f"--screenshot={picture}", file.as_uri()], check=True, capture_output=True, timeout=DEADLINE_S, text=True
        )
        assert picture.read_bytes().startswith(b"\x89PNG")
        return "\n".join(line for line in done.stderr.splitlines() if ":CONSOLE" in line)


class TestTables:
    @pytest.mark.parametrize("wanted", ["csv", "focus"])
    def test_no_field_is_a_formula(self, answer: dict[str, Any], wanted: str) -> None:
        """Text that a spreadsheet would calculate is quoted; negative numbers stay numbers."""
        fields = [field for row in rows(answer, wanted) for field in row.values() if field.startswith(FORMULA_SIGNS)]
        assert all(re.fullmatch(r"-[\d.]+", field) for field in fields)
        assert any(field == f"'{HOSTILE}" for row in rows(answer, wanted) for field in row.values())

    def test_the_forecast_has_all_mandatory_columns(self, answer: dict[str, Any]) -> None:
        """What FOCUS 1.2 demands is there, and what may not be null is not empty."""
        found = rows(answer, "focus")
        assert set(found[0]) >= MANDATORY
        nullable = {"ChargeClass", "PricingQuantity", "PricingUnit"}
        assert all(row[column] for row in found for column in MANDATORY - nullable)
        assert {json.loads(row["Tags"])["program"] for row in found} == {HOSTILE}

    def test_each_line_is_forecast_to_the_cent(self, answer: dict[str, Any]) -> None:
        """A line's rows add up to the line."""
        for line in answer["lines"]:
            mine = [row for row in rows(answer, "focus") if row["ServiceName"] == line["line"]]
            assert summed(mine, "EffectiveCost") == cents(line["usd"])

    def test_weeks_are_forecast_as_the_burn_plan_has_them(self, answer: dict[str, Any]) -> None:
        """All rows of a week add up to its burn plan but for a cent a row, a week over a month's end in two billing periods."""
        found = rows(answer, "focus")
        for week in answer["burn_plan"]:
            monday = date.fromisoformat(week["monday"]).toordinal()
            mine = [row for row in found if monday <= date.fromisoformat(row["ChargePeriodStart"][:10]).toordinal() < monday + 7]
            assert abs(summed(mine, "BilledCost") - cents(week["usd"])) <= Decimal("0.01") * len(mine)
        assert all(
            row["BillingPeriodStart"] <= row["ChargePeriodStart"] < row["ChargePeriodEnd"] <= row["BillingPeriodEnd"] for row in found
        )

    def test_production_is_not_forecast_before_its_time(self, answer: dict[str, Any]) -> None:
        """Tiers are spent one after another, as they are run."""
        first = {
            tier: min(row["ChargePeriodStart"] for row in rows(answer, "focus") if row["ServiceName"] == tier)
            for tier in ("prototype", "production")
        }
        assert first["prototype"] < first["production"]


class TestCalendar:
    @pytest.fixture
    def events(self, answer: dict[str, Any]) -> list[Any]:
        return list(Calendar.from_ical(render("program", answer, "ics")[0]).walk("VEVENT"))

    def test_everything_with_a_date_is_an_event(self, answer: dict[str, Any], events: list[Any]) -> None:
        """Runs, gates, the midpoint gate, the end and the deadline are read back with their days, ends exclusive."""
        found = {str(event["summary"]).removeprefix(f"{HOSTILE}: "): (event.decoded("dtstart"), event.decoded("dtend")) for event in events}
        assert len(found) == len(events) == len(answer["schedule"]["calendar"]) + 3
        assert found["production: main"] == (date(2027, 2, 15), date(2027, 3, 8))
        assert found["deadline"] == (date(2027, 3, 20), date(2027, 3, 21))

    def test_a_gate_says_what_it_decides_and_costs(self, answer: dict[str, Any], events: list[Any]) -> None:
        """The event of a gate carries its decision, its price and its evidence."""
        gate = next(event for event in events if str(event["summary"]).endswith("gate: prototype"))
        cost = answer["tiers"][0]["gate"]["cost_to_decide_usd"]
        assert {"Decides: data mixture", f"Cost to decide: {cost:,.2f} USD", "Evidence: +3 points"} <= set(
            str(gate["description"]).splitlines()
        )

    def test_a_moved_run_keeps_its_identity(self, answer: dict[str, Any], events: list[Any]) -> None:
        """Brought in again, a calendar moves its events and doubles none."""
        again = [str(event["uid"]) for event in Calendar.from_ical(render("program", answer, "ics")[0]).walk("VEVENT")]
        assert again == [str(event["uid"]) for event in events]
        assert len(set(again)) == len(again)


def test_the_calendar_is_drawn_with_uncertainty_gates_and_deadline(answer: dict[str, Any]) -> None:
    """A bar an activity, a whisker each, a diamond for what takes no time, and the chance of the deadline as the title."""
    drawn = gantt_chart(answer).to_dict()
    bars, whiskers, diamonds, deadline = drawn["layer"]
    rows, days = (drawn["datasets"][layer["data"]["name"]] for layer in (bars, deadline))
    assert [row["what"] for row in rows] == [entry["what"] for entry in answer["schedule"]["calendar"]]
    assert all(row["low"] <= row["high"] for row in rows)
    assert whiskers["mark"]["type"] == "rule"
    assert {row["what"] for row in rows if row["moment"]} >= {f"gate: {tier['tier']}" for tier in answer["tiers"] if tier["gate"]}
    assert diamonds["mark"]["shape"] == "diamond"
    assert [*days] == [{"day": str(date.fromisoformat(answer["schedule"]["deadline"]) + timedelta(days=1))}], "by the end of that day"
    assert f"{answer['schedule']['deadline_probability']:.0%} to meet" in drawn["title"]["text"]
