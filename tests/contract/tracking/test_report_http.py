"""The report of a tracked program over HTTP: every format says the same figures, and nothing in a name is markup or a formula."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from icalendar import Calendar
from openpyxl import Workbook, load_workbook

from service import create_app
from service.config import load_settings
from service.formats.documents.csv_table import FORMULA_SIGNS
from service.formats.documents.render import MEDIA_TYPES, REPORT_FORMATS
from service.formats.headline import day, money
from service.schemas.tracking.report import TrackReportSchema
from tests.contract.tracking.tracked_program import AS_OF, PROGRAM, Body, made, told
from tests.support.libreoffice import recalculate
from tests.support.servers import DEADLINE_S, missing

HOSTILE = '=HYPERLINK("http://evil") <script>alert(1)</script> | *x* \'é'
STORY = Path(__file__).parents[3] / "examples" / "tracking" / "program-1b-64.json"
EXAMPLE = Path(__file__).parents[3] / "examples" / "program-1b-64.json"
NAMES = dict.fromkeys(("program", "main", "cause", "text", "line", "metric"), HOSTILE)


@pytest.fixture
def client(tracking_app: Flask) -> FlaskClient:
    """A client of the service on each database."""
    return tracking_app.test_client()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> FlaskClient:
    """A client of a service on SQLite, for documents that are the same on every database."""
    app = create_app(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("data")), "OUTLAY_OFFLINE": "1"}))
    app.extensions["context"].store.migrate()
    return app.test_client()


@pytest.fixture(scope="module")
def hostile(alone: FlaskClient) -> str:
    """A program whose names mean harm, by its id."""
    return str(told(alone, NAMES)["id"])


@pytest.fixture(scope="module")
def calculated(alone: FlaskClient, hostile: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Workbook]:
    """What LibreOffice makes of the formulas, their saved values dropped before; `changed` has half of the budget."""
    saved, changed = (load_workbook(io.BytesIO(written(alone, hostile, "xlsx"))) for _ in range(2))
    changed["Report"]["B5"] = PROGRAM["budget_usd"] / 2
    return recalculate({"report": saved, "changed": changed}, tmp_path_factory.mktemp("workbooks"))


def address(program: str, wanted: str) -> str:
    return f"/v1/track/programs/{program}/report?as_of={AS_OF}&format={wanted}"


def written(client: FlaskClient, program: str, wanted: str) -> bytes:
    answer = client.get(address(program, wanted))
    assert answer.status_code == 200, answer.text
    return answer.get_data()


def body_of(client: FlaskClient, program: str) -> Body:
    found: Body = json.loads(written(client, program, "json"))
    return found


class TestReport:
    """What the report says, on both databases."""

    def test_it_says_what_the_status_says(self, client: FlaskClient) -> None:
        """With the ends of the losses, and valid by the specification's schema."""
        program = told(client)
        report = body_of(client, program["id"])
        status = client.get(f"/v1/track/programs/{program['id']}/status?as_of={AS_OF}&project_losses=true").get_json()
        assert report["status"] == status
        assert TrackReportSchema().validate(report) == {}
        assert report.keys() == {field.data_key or name for name, field in TrackReportSchema().fields.items()}

    def test_the_headline_is_in_figures(self, client: FlaskClient) -> None:
        """The forecast less the budget, and the days from the deadline to its end."""
        report = body_of(client, told(client)["id"])
        forecast, headline = report["status"]["forecast"], report["headline"]
        assert headline["health"] in ("on_track", "at_risk", "off_track")
        assert headline["over_usd"] == pytest.approx(forecast["cost_usd"]["p50"] - PROGRAM["budget_usd"])
        late = date.fromisoformat(forecast["finish"]["p50"]) - date.fromisoformat(PROGRAM["deadline"])
        assert headline["late_days"] == late.days
        assert f"forecast {money(forecast['cost_usd']['p50'])}" in headline["text"]
        assert f"forecast end {day(date.fromisoformat(forecast['finish']['p50']))}" in headline["text"]

    def test_curves_end_where_the_status_stands(self, client: FlaskClient) -> None:
        """The last sums of what happened are what is spent and earned, those planned by then the planned value; nothing happens later."""
        report = body_of(client, told(client)["id"])
        (now,) = [moment for moment in report["time_series"] if moment["at"] == AS_OF]
        assert now["spent_usd"] == pytest.approx(report["status"]["spend"]["usd"])
        assert now["tokens"] == report["status"]["spend"]["tokens"]
        assert now["planned_usd"] == pytest.approx(report["status"]["earned_value"]["pv_usd"])
        later = [moment for moment in report["time_series"] if moment["at"] > AS_OF]
        assert later
        assert {(moment["spent_usd"], moment["tokens"]) for moment in later} == {(None, None)}
        planned = [moment["planned_usd"] for moment in report["time_series"]]
        assert planned == sorted(planned)
        assert planned[-1] == pytest.approx(PROGRAM["budget_usd"])

    def test_interruptions_decisions_and_notes_are_listed(self, client: FlaskClient) -> None:
        """The newest first, each with its run, what was decided in words."""
        report = body_of(client, told(client)["id"])
        (stop,) = report["interruptions"]
        assert (stop["run"], stop["cause"], stop["ended"]) == ("main", "hardware", True)
        assert stop["downtime_hours"] == pytest.approx(6.0)
        assert [(said["type"], said["text"]) for said in report["log"]] == [
            ("note", "two switches replaced"),
            ("rollback", "to step 4,750, loss spike"),
            ("decision", "prototype: continue, two switches replaced"),
        ]

    def test_a_metric_that_fell_is_in_every_table(self, client: FlaskClient) -> None:
        """0.71 to 0.45: in the status, with its way back, and in the documents' tables."""
        program = told(client)["id"]
        report = body_of(client, program)
        (metric,) = report["status"]["quality"]
        assert (metric["metric"], metric["state"], metric["last"], metric["level"]) == ("helpdesk", "regressed", 0.45, 0.71)
        assert metric["going_back"]["usd"] > 0
        assert [point["value"] for point in report["evaluations"]] == [0.7, 0.71, 0.45]
        assert "helpdesk has dropped from 0.71 to 0.45" in written(client, program, "md").decode()
        rows = [row for row in csv.DictReader(io.StringIO(written(client, program, "csv").decode())) if row["section"] == "quality"]
        assert [(row["name"], row["value"], row["text"][:9]) for row in rows] == [("helpdesk", "0.45", "regressed")]

    def test_losses_that_have_not_ended_are_extrapolated(self, client: FlaskClient) -> None:
        """Those of a run that is done have."""
        main, small = body_of(client, told(client)["id"])["status"]["runs"]
        assert main["loss"]["projection"]["planned_loss"] == 2.0
        assert (small["state"], small["loss"]["last"], small["loss"]["projection"]) == ("finished", 4.0, None)

    def test_a_loss_whose_end_cannot_be_told_is_said_with_its_reason(self, client: FlaskClient) -> None:
        """Five days are too few."""
        program = told(client)["id"]
        early = client.get(f"/v1/track/programs/{program}/report?as_of=2025-08-06T00:00:00Z").get_json()
        (reason,) = [each["reason"] for each in early["unknown"] if (each["run"], each["field"]) == ("main", "loss.projection")]
        assert "at least 8 are needed" in reason

    def test_an_earlier_moment_knows_nothing_of_later_events(self, client: FlaskClient) -> None:
        """As of the tenth day there was no interruption yet."""
        program = told(client)
        early = client.get(f"/v1/track/programs/{program['id']}/report?as_of=2025-08-11T00:00:00Z").get_json()
        assert early["interruptions"] == []
        assert early["status"]["spend"]["usd"] == pytest.approx(10 * 3000 + 4500)
        assert [said["type"] for said in early["log"]] == ["decision"]

    def test_what_is_not_known_is_said_with_its_reason(self, client: FlaskClient) -> None:
        """A program with nothing but a name has a report: it knows nothing, and says why."""
        program = made(client, "/v1/track/programs", {"name": "bare"})
        report = body_of(client, program["id"])
        assert report["headline"]["health"] == "unknown"
        assert "not known" in report["headline"]["text"]
        assert {each["field"] for each in report["unknown"]} >= {"earned_value.cpi", "forecast.cost_usd", "forecast.finish"}
        assert all(each["reason"] for each in report["unknown"])
        assert report["time_series"] == []

    @pytest.mark.parametrize("wanted", REPORT_FORMATS)
    def test_every_program_has_every_document(self, client: FlaskClient, wanted: str) -> None:
        """The one that knows nothing too."""
        program = made(client, "/v1/track/programs", {"name": "bare"})
        answer = client.get(address(program["id"], wanted))
        assert (answer.status_code, answer.content_type.partition(";")[0]) == (200, MEDIA_TYPES[wanted])
        assert len(answer.get_data()) > 100

    @pytest.mark.parametrize("wanted", REPORT_FORMATS)
    @pytest.mark.parametrize(
        ("begun", "deadline"), [("0001-01-01", "9999-12-31"), ("0001-01-01", "0001-01-02"), ("9999-12-31", "9999-12-31")]
    )
    def test_no_date_is_too_far_for_a_document(self, alone: FlaskClient, begun: str, deadline: str, wanted: str) -> None:
        """From the first day there is to the last, planned and told."""
        program = made(alone, "/v1/track/programs", PROGRAM | {"start": begun, "deadline": deadline})["id"]
        run = made(alone, f"/v1/track/programs/{program}/runs", {"name": "main", "planned": {"tokens": "1T", "usd": 1000}})["id"]
        early = {"id": "1", "type": "interruption", "at": "0001-01-01T00:00:00Z", "cause": "x", "tokens_done": 1, "cost_usd": 1}
        later = {"id": "2", "type": "progress", "at": "2025-08-01T00:00:00Z", "tokens_done": 10**11, "cost_usd": 100}
        made(alone, f"/v1/track/runs/{run}/events", {"events": [early, later]})
        assert len(written(alone, program, wanted)) > 100

    def test_accept_chooses_the_format(self, client: FlaskClient) -> None:
        """JSON where it does not say, a 406 where it takes nothing there is, `format` above it."""
        url = f"/v1/track/programs/{made(client, '/v1/track/programs', {'name': 'bare'})['id']}/report"
        assert client.get(url).content_type == "application/json"
        assert client.get(url, headers={"Accept": "text/markdown"}).content_type.startswith("text/markdown")
        assert client.get(f"{url}?format=csv", headers={"Accept": "text/html"}).content_type.startswith("text/csv")
        assert client.get(url, headers={"Accept": "image/png"}).status_code == 406
        assert client.get(url, headers={"Accept": "application/pdf"}).get_data().startswith(b"%PDF-")
        assert client.get(f"{url}?format=docx").status_code == 422

    def test_a_program_that_is_not_there_has_none(self, client: FlaskClient) -> None:
        """404, whatever the format."""
        assert client.get("/v1/track/programs/none/report?format=html").status_code == 404


@pytest.fixture(scope="module")
def planned(alone: FlaskClient) -> Body:
    """The report of a planned program a third of whose budget is spent, by its author."""
    dates = {"start": "2026-01-05", "deadline": "2026-05-01"}
    program = made(alone, "/v1/track/programs", {"name": "base model", "plan": json.loads(EXAMPLE.read_text(encoding="utf-8")), **dates})
    run = made(alone, f"/v1/track/programs/{program['id']}/runs", {"name": "main", "tier": "production"})
    done = {"type": "progress", "tokens_done": 500_000_000_000, "accelerator_hours": 8000, "cost_usd": 18_300}
    events = [{"id": "0", "type": "progress", "at": "2026-01-30T00:00:00Z", "tokens_done": 0, "cost_usd": 0, "accelerator_hours": 0}]
    evaluated = [
        {
            "id": f"e{place}",
            "type": "evaluation",
            "at": f"2026-02-0{place + 1}T00:00:00Z",
            "metric": "mean of 10 English benchmarks",
            "value": value,
        }
        for place, value in enumerate((0.47, 0.48, 0.49))
    ]
    made(
        alone,
        f"/v1/track/runs/{run['id']}/events",
        {"events": [*events, {"id": "1", "at": "2026-02-05T00:00:00Z", **done}, *evaluated]},
    )
    found: Body = alone.get(f"/v1/track/programs/{program['id']}/report?as_of=2026-02-05T00:00:00Z&author=A.%20Lead").get_json()
    return found


@pytest.fixture(scope="module")
def document(alone: FlaskClient, planned: Body) -> Callable[[str], bytes]:
    """The report in another format."""
    url = f"/v1/track/programs/{planned['program']['id']}/report?as_of=2026-02-05T00:00:00Z&author=A.%20Lead"
    return lambda wanted: alone.get(f"{url}&format={wanted}").get_data()


@pytest.fixture(scope="module")
def example(alone: FlaskClient) -> Body:
    """The report of the example, sent as docs/reference/tracking.md says."""
    story = json.loads(STORY.read_text(encoding="utf-8"))
    plan = json.loads((STORY.parent / story["plan"]).read_text(encoding="utf-8"))
    program = made(alone, "/v1/track/programs", {**story["program"], "plan": plan})["id"]
    for run in story["runs"]:
        tracked = made(alone, f"/v1/track/programs/{program}/runs", {"name": run["name"], "tier": run["tier"]})["id"]
        taken = made(alone, f"/v1/track/runs/{tracked}/events", {"events": run["events"]})
        assert taken == {"accepted": len(run["events"]), "duplicates": 0, "rejected": []}
    answer = alone.get(f"/v1/track/programs/{program}/report", query_string={"as_of": story["as_of"], "author": story["author"]})
    found: Body = answer.get_json()
    return found


def test_the_example_shows_what_a_report_is_for(example: Body) -> None:
    """A guardrail broken, a risk that draws on the reserve, gates decided, energy beside the plan; ranges of days in order."""
    status = example["status"]
    assert [each["breached"] for each in status["guardrails"]] == [True]
    assert status["reserve"]["drawn_usd"] == 500
    assert any("still unspent, which is enough for the overrun" in note for note in example["headline"]["notes"])
    assert {part["part"] for part in status["budget"]["parts"]} == {"compute", "around the runs", "people", "reserve"}
    assert status["energy"]["mwh"]["used"] > status["energy"]["mwh"]["planned_to_date"]
    finishes = [list(entry["finish"].values()) for entry in example["calendar"] if entry["finish"]]
    assert all(days == sorted(days) for days in finishes)
    assert [entry["what"] for entry in example["calendar"] if entry["kind"] == "gate" and entry["done"]] == [
        "gate: prototype",
        "gate: validation",
    ]


class TestForFinance:
    """A program of a plan: one bridge, one forecast, its calendar and its charts."""

    def test_the_bridge_has_people_apart_from_the_reserve(self, planned: Body) -> None:
        """25,200 USD of people are people's; the parts add up to the budget and to the forecast."""
        parts = {part["part"]: part for part in planned["status"]["budget"]["parts"]}
        assert parts["people"]["budget_usd"] == pytest.approx(25_200)
        assert sum(part["budget_usd"] for part in parts.values()) == pytest.approx(planned["program"]["budget_usd"])
        cost = planned["status"]["forecast"]["cost_usd"]
        assert all(
            sum(part["forecast_usd"][name] for part in parts.values()) == pytest.approx(cost[name]) for name in ("p10", "p50", "p90")
        )

    def test_a_third_of_the_budget_is_not_all_of_it(self, planned: Body) -> None:
        """The runs' part is spent out, and TCPI says so."""
        assert 0.3 < planned["status"]["spend"]["share_of_budget"] < 0.38
        (reason,) = [each["reason"] for each in planned["unknown"] if (each["run"], each["field"]) == (None, "earned_value.tcpi")]
        assert "of the whole budget is spent, but the part for compute" in reason

    def test_the_calendar_has_runs_gates_and_the_end(self, planned: Body) -> None:
        """With planned and forecast days; what nobody tracks has planned ones alone."""
        entries = {entry["what"]: entry for entry in planned["calendar"]}
        assert {"production: main", "gate: production", "gate: prototype", "validation: scale check", "program"} <= entries.keys()
        assert entries["production: main"]["start"] == "2026-01-30"
        assert entries["program"]["finish"] == planned["status"]["forecast"]["finish"]
        assert entries["validation: scale check"]["finish"] is None
        assert planned["calendar"][-1]["kind"] == "end"

    def test_the_s_curve_earns_as_the_status_does(self, planned: Body) -> None:
        """Planned and earned value and cost at the report's day are the status's."""
        (now,) = [moment for moment in planned["time_series"] if moment["at"] == "2026-02-05T00:00:00Z"]
        earned = planned["status"]["earned_value"]
        assert [now[f"{name}_usd"] for name in ("planned", "earned", "spent")] == pytest.approx(
            [earned[f"{name}_usd"] for name in ("pv", "ev", "ac")]
        )

    def test_text_has_one_forecast_with_author_and_day(self, planned: Body, document: Callable[[str], bytes]) -> None:
        """EAC stands in one sentence, which says that it is none; energy and target are there."""
        said = document("md").decode()
        assert "as of 2026-02-05 00:00 UTC, by A. Lead" in said
        assert said.count("EAC") == 1
        assert "A check, not a second forecast" in said
        assert "| energy, MWh" in said
        assert "is to go from 0.46 to 0.52: now 0.49" in said
        assert planned["status"]["budget"]["method"] in said.replace("\\", "")

    def test_the_page_has_a_chart_for_each_question(self, document: Callable[[str], bytes]) -> None:
        """Bridge, tornado, Gantt, S-curve, months, metric, energy and tokens, each titled by what it shows."""
        page = document("html").decode()
        assert page.count("<svg") == 8
        for words in ("the budget; compute", "moves the forecast most", "Work worth", "February 2026 takes", "was planned by now", "Used "):
            assert words in page

    def test_pdf_has_pages(self, document: Callable[[str], bytes]) -> None:
        """With the same charts."""
        assert document("pdf").startswith(b"%PDF-")

    def test_the_workbook_has_native_charts_and_prints_whole(self, document: Callable[[str], bytes]) -> None:
        """Charts on the sheets of figures; every sheet has a print area that holds its charts."""
        book = load_workbook(io.BytesIO(document("xlsx")))
        drawn = {sheet.title: len(sheet._charts) for sheet in book if sheet._charts}
        assert drawn == {"Report": 1, "Budget": 1, "Forecast": 1, "Calendar": 1, "Energy": 1, "Months": 1, "Quality": 1}
        assert all(sheet.print_area for sheet in book)
        assert [cell.value for cell in book["Budget"]["A"] if cell.value in ("compute", "around the runs", "people", "reserve")] == [
            "compute", "around the runs", "people", "reserve",
        ]  # fmt: skip


class Text(HTMLParser):
    """What a page says, and which elements it is made of."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.said: list[str] = []
        self.elements: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        """Count the element."""
        self.elements.add(tag)

    def handle_data(self, data: str) -> None:
        """Keep the text."""
        self.said.append(data)


class TestPage:
    """HTML."""

    def test_names_are_text(self, alone: FlaskClient, hostile: str) -> None:
        """A script in a name is shown, not run, in text and in plots."""
        page = Text(written(alone, hostile, "html").decode())
        assert "script" not in page.elements
        assert sum(HOSTILE in said for said in page.said) >= 5

    def test_nothing_is_fetched(self, alone: FlaskClient, hostile: str) -> None:
        """No address but the names of XML's own vocabularies, no style attribute and no handler stand in the page."""
        page = written(alone, hostile, "html").decode().replace("http://www.w3.org/", "").replace("http://evil", "")
        assert not re.search(r"https?://|url\((?!#)|<link|<img|<iframe|@import|\sstyle=|\son\w+=", page)
        assert page.count("<svg") == 8

    def test_chromium_shows_it_under_its_own_policy(self, alone: FlaskClient, hostile: str, tmp_path: Path) -> None:
        """The answer's header and the page state the same policy, and the browser blocks nothing of the page."""
        answer = alone.get(address(hostile, "html"))
        policy = answer.headers["Content-Security-Policy"].removesuffix("; frame-ancestors 'none'")
        assert f'content="{policy}"'.replace("'", "&#39;") in answer.text
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        if program is None:
            missing("Chromium")
        page, picture = tmp_path / "page.html", tmp_path / "page.png"
        page.write_bytes(answer.get_data())
        flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr"]
        done = subprocess.run(
            [str(program), *flags, f"--screenshot={picture}", page.as_uri()], check=True, capture_output=True, timeout=DEADLINE_S, text=True
        )
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert [line for line in done.stderr.splitlines() if ":CONSOLE" in line] == []


class TestMarkdown:
    """For a terminal and a page."""

    def test_names_are_no_markup(self, alone: FlaskClient, hostile: str) -> None:
        """No tag, emphasis or cell of its own comes of a name."""
        said = written(alone, hostile, "md").decode()
        assert "<script" not in said.replace("\\<", "")
        assert "\\*x\\*" in said
        for block in (block for block in said.split("\n\n") if block.startswith("|")):
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in block.splitlines()}) == 1

    def test_it_begins_with_the_headline(self, alone: FlaskClient) -> None:
        """Name and standing, then the sentence in figures."""
        program = told(alone)["id"]
        said, report = written(alone, program, "md").decode(), body_of(alone, program)
        assert said.startswith(f"# {PROGRAM['name']}: ")
        assert report["headline"]["text"] in said
        assert report["engine_version"] in said


class TestCsv:
    """One table."""

    @pytest.fixture
    def rows(self, alone: FlaskClient, hostile: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(written(alone, hostile, "csv").decode(), newline="")))

    def test_no_field_is_a_formula(self, rows: list[dict[str, str]]) -> None:
        """Text that a spreadsheet would calculate is quoted; negative numbers stay numbers."""
        fields = [field for row in rows for field in row.values() if field.startswith(FORMULA_SIGNS)]
        assert all(re.fullmatch(r"-[\d.]+(e[-+]\d+)?", field) for field in fields)
        assert sum(field == f"'{HOSTILE}" for row in rows for field in row.values()) >= 5

    def test_lines_add_up_to_what_is_spent(self, rows: list[dict[str, str]]) -> None:
        """The program's, and each run's."""
        for run in ("", f"'{HOSTILE}", "ablations"):
            prefix = "run " if run else ""
            mine = [row for row in rows if row["run"] == run]
            (spent,) = [float(row["value"]) for row in mine if (row["section"], row["name"]) == (f"{prefix}spend", "usd")]
            assert sum(float(row["value"]) for row in mine if row["section"] == f"{prefix}line") == pytest.approx(spent)


class TestCalendar:
    """ICS."""

    def test_gate_end_deadline_and_reports_are_events(self, alone: FlaskClient, hostile: str) -> None:
        """A calendar library reads them with their days and the name as it is; the reports are weekly until the end."""
        events = Calendar.from_ical(written(alone, hostile, "ics")).walk("VEVENT")
        found = {str(event["summary"]).removeprefix(f"{HOSTILE}: "): event for event in events}
        report = body_of(alone, hostile)
        finish = report["status"]["forecast"]["finish"]["p50"]
        assert {name: event.decoded("dtstart").isoformat() for name, event in found.items()} == {
            "half-spend gate": report["gate_date"],
            "forecast end": finish,
            "deadline": PROGRAM["deadline"],
            "report": "2025-09-07",
        }
        assert found["report"]["rrule"] == {"FREQ": ["WEEKLY"], "UNTIL": [date.fromisoformat(max(finish, PROGRAM["deadline"]))]}

    def test_a_later_report_moves_its_events(self, alone: FlaskClient, hostile: str) -> None:
        """They keep their identity."""
        later = alone.get(f"/v1/track/programs/{hostile}/report?format=ics&as_of=2025-09-02T00:00:00Z").get_data()
        first, second = (
            {str(event["uid"]) for event in Calendar.from_ical(file).walk("VEVENT")} for file in (written(alone, hostile, "ics"), later)
        )
        assert first == second
        assert len(first) == 4


class TestWorkbook:
    """XLSX."""

    def test_libreoffice_calculates_what_the_report_says(self, alone: FlaskClient, hostile: str, calculated: dict[str, Workbook]) -> None:
        """Earned value, the runs' sums and what is over budget come out of the formulas; no cell is an error."""
        report, made_of = body_of(alone, hostile), calculated["report"]
        earned = report["status"]["earned_value"]
        names = ("bac_usd", "tokens_share", "pv_usd", "ac_usd", "ev_usd", "cpi", "spi", "eac_usd", "vac_usd", "tcpi")
        found = [made_of["Report"].cell(row, 2).value for row in range(5, 5 + len(names))]
        assert found == pytest.approx([earned[name] for name in names])
        over = next(row[1] for row in made_of["Report"].iter_rows(values_only=True) if row[0] == "over budget, USD")
        assert over == pytest.approx(report["headline"]["over_usd"])
        assert made_of["Spending"].cell(made_of["Spending"].max_row, 2).value == pytest.approx(report["status"]["spend"]["usd"])
        runs = [[made_of["Runs"].cell(row, column).value for column in (9, 10)] for row in (5, 6)]
        assert runs == [pytest.approx([run["earned_value"][name] for name in ("ev_usd", "cpi")]) for run in report["status"]["runs"]]
        assert [cell.coordinate for sheet in made_of for row in sheet.iter_rows() for cell in row if cell.data_type == "e"] == []

    def test_another_budget_changes_what_is_earned(self, alone: FlaskClient, hostile: str, calculated: dict[str, Workbook]) -> None:
        """Half of it: half of the earned value and of the CPI, the same cost."""
        earned = body_of(alone, hostile)["status"]["earned_value"]
        sheet = calculated["changed"]["Report"]
        assert [sheet.cell(row, 2).value for row in (8, 9, 10)] == pytest.approx(
            [earned["ac_usd"], earned["ev_usd"] / 2, earned["cpi"] / 2]
        )

    def test_what_shows_without_calculation_is_the_report(self, alone: FlaskClient, hostile: str) -> None:
        """Programs that only show a workbook have the figures saved with its formulas."""
        saved = load_workbook(io.BytesIO(written(alone, hostile, "xlsx")), data_only=True)["Report"]
        assert saved["B10"].value == pytest.approx(body_of(alone, hostile)["status"]["earned_value"]["cpi"])

    def test_names_are_text(self, alone: FlaskClient, hostile: str) -> None:
        """No cell with a caller's words is calculated."""
        sheets = load_workbook(io.BytesIO(written(alone, hostile, "xlsx")))
        cells = [cell for sheet in sheets for row in sheet.iter_rows() for cell in row if cell.value == HOSTILE]
        assert len(cells) >= 5
        assert {cell.data_type for cell in cells} == {"s"}
