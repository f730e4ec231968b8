"""Vendors' price sheets over HTTP: proposed, corrected, confirmed, used, ended, deleted; each team's own."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import StoreUnavailable
from tests.contract.teams.team_books import NOW, Teams, opened
from tests.unit.formats.imports.quotes.vendor_sheets import SHEETS

FILES = "/v1/price-files"
CSV = (
    b"Vendor,Region,GPU,Price per GPU-hour (USD),Term,Valid until\n"
    b"Lambda,us-east-1,H100 SXM,1.11,1 year,2026-12-10\n"
    b"Lambda,us-east-1,H200 SXM 141GB,2.22,6 months,2027-03-01\n"
)
RESERVED = {
    "model": {"params": "1B"},
    "data": {"tokens": "20B"},
    "hardware": {"accelerator": "H100", "count": 8},
    "price": {"provider": "lambda", "pricing": "reserved_1y"},
}


def sent(content: bytes = CSV, **more: Any) -> dict[str, Any]:
    """The request with a file."""
    return {"content_base64": base64.b64encode(content).decode(), "file_name": "lambda.csv", **more}


def confirmed(content: bytes = CSV, **more: Any) -> dict[str, Any]:
    """The request that keeps its offers."""
    return sent(content, confirm=True, sha256=hashlib.sha256(content).hexdigest(), **more)


@pytest.fixture
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Teams]:
    """A service with two teams, at the time of `NOW`."""
    made = opened(tmp_path_factory.mktemp("quotes"), ("vision", "speech"))
    yield made
    made.context.store.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Teams]:
    """A service for what keeps nothing."""
    made = opened(tmp_path_factory.mktemp("proposals"), ("vision",))
    yield made
    made.context.store.close()


def later(service: Teams, days: int) -> None:
    """So many days after `NOW`."""
    context = replace(service.context, clock=lambda: NOW + timedelta(days=days))
    service.app.extensions["context"] = context


def kept(service: Teams, team: str = "vision", **more: Any) -> dict[str, Any]:
    """A kept file."""
    answer = service.ask(team, FILES, confirmed(**more))
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.get_json()
    return found


def delete(service: Teams, team: str, name: str) -> Any:
    """The answer to a deletion."""
    return service.app.test_client().delete(f"{FILES}/{name}", headers={"Authorization": f"Bearer {service.tokens[team]}"})


class TestProposal:
    def test_nothing_is_kept_before_it_is_confirmed(self, service: Teams) -> None:
        """The proposal shows what would be kept, and the team's offers are as before."""
        answer = service.ask("vision", FILES, sent()).get_json()
        assert (answer["kept"], answer["proposal"]["counts"]) == (False, {"offer": 2, "refused": 0, "skipped": 0})
        assert answer["sha256"] == hashlib.sha256(CSV).hexdigest()
        assert service.good("vision", FILES)["items"] == []
        assert service.good("vision", "/v1/offers?provider=lambda&pricing=reserved_1y")["items"] == []

    def test_a_confirmation_needs_the_digest_of_what_was_proposed(self, service: Teams) -> None:
        """Another file is not kept by mistake."""
        answer = service.ask("vision", FILES, sent(confirm=True, sha256="0" * 64))
        assert (answer.status_code, answer.get_json()["errors"][0]["pointer"]) == (422, "/sha256")
        assert service.good("vision", FILES)["items"] == []

    def test_a_file_without_an_offer_is_not_kept(self, service: Teams) -> None:
        """And every reason is said."""
        answer = service.ask("vision", FILES, confirmed(b"GPU,Price\nH100,2.50\n") | {"file_name": "quote.csv"})
        assert answer.status_code == 422
        detail = answer.get_json()["detail"]
        assert "names the vendor" in detail
        assert "in which currency" in detail
        assert "on demand, spot" in detail
        assert "'H100' may be" in detail

    @pytest.mark.parametrize(
        ("mapping", "pointer"),
        [
            ({"columns": {"Z": "price"}}, "/mapping/columns"),
            ({"columns": {"A": "colour"}}, "/mapping/columns/A"),
            ({"sheet": "none"}, "/mapping/sheet"),
            ({"header_row": 4000}, "/mapping/header_row"),
            ({"rates": {"EUR": {"usd": 1.1, "at": "2026-12-24"}}}, "/mapping/rates/EUR/at"),
            ({"rates": {"XXX": {"usd": 1.1, "at": "2026-11-24"}}}, "/mapping/rates/XXX"),
            ({"accelerators": {"H100": "H100"}}, "/mapping/accelerators"),
            ({"settings": {"date_order": "ydm"}}, "/mapping/settings/date_order"),
        ],
    )
    def test_a_correction_that_fits_nothing_is_refused(self, shared: Teams, mapping: dict[str, Any], pointer: str) -> None:
        """With a pointer at it."""
        answer = shared.ask("vision", FILES, sent(mapping=mapping))
        assert answer.status_code == 422, answer.text
        assert answer.get_json()["errors"][0]["pointer"] == pointer

    @pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
    def test_every_vendor_sheet_is_answered(self, shared: Teams, sheet: Any) -> None:
        """With as many rows as it has."""
        answer = shared.ask("vision", FILES, sent(sheet.content))
        assert answer.status_code == 200, answer.text


class TestKeptFile:
    def test_its_offers_are_the_teams_own(self, service: Teams) -> None:
        """Another team does not see them, and gets 404 for the file."""
        kept(service)
        assert service.rate("vision", RESERVED) == pytest.approx(1.11)
        assert service.ask("speech", "/v1/estimate", RESERVED).status_code == 422
        assert service.good("speech", FILES)["items"] == []
        assert service.ask("speech", f"{FILES}/lambda").status_code == 404
        assert delete(service, "speech", "lambda").status_code == 404
        assert service.rate("vision", RESERVED) == pytest.approx(1.11)

    def test_two_teams_may_use_one_name(self, service: Teams) -> None:
        """Each has its own file under it."""
        kept(service)
        kept(service, "speech", content=CSV.replace(b"1.11", b"1.33"))
        assert [service.rate(team, RESERVED) for team in ("vision", "speech")] == [pytest.approx(1.11), pytest.approx(1.33)]

    def test_a_term_of_any_length_is_listed_with_its_terms(self, service: Teams) -> None:
        """As the sheet states them."""
        kept(service)
        (offer,) = service.good("vision", "/v1/offers?pricing=reserved")["items"]
        assert offer["terms"] == {"term_hours": 4380.0, "valid_until": "2027-03-01"}
        assert offer["extras"] == {"file": "lambda", "team": "vision"}

    def test_a_new_upload_of_the_name_is_a_new_version(self, service: Teams) -> None:
        """The old one is listed and not used."""
        assert kept(service)["entry"]["version"] == 1
        assert kept(service, content=CSV.replace(b"1.11", b"1.22"))["entry"]["version"] == 2
        assert service.rate("vision", RESERVED) == pytest.approx(1.22)
        found = service.good("vision", f"{FILES}/lambda")
        assert [(entry["version"], entry["state"]) for entry in found["versions"]] == [(2, "current"), (1, "superseded")]
        assert [quote["usd_per_accelerator_hour"] for quote in found["quotes"]] == [1.22, 2.22]

    def test_a_repeated_confirmation_makes_no_further_version(self, service: Teams) -> None:
        """As after a lost answer."""
        assert [kept(service)["entry"]["version"] for _ in range(2)] == [1, 1]

    def test_a_quote_that_ends_soon_is_said_in_answers_that_use_it(self, service: Teams) -> None:
        """With the number of days."""
        kept(service)
        assert "the quote of lambda ends in 9 days, on 2026-12-10" in service.good("vision", "/v1/estimate", RESERVED)["warnings"]
        candidates = {"accelerators": ["H100"], "counts": [8], "providers": ["lambda"], "pricing": ["reserved_1y"]}
        compared = service.good(
            "vision", "/v1/compare", {"workload": {"model": RESERVED["model"], "data": RESERVED["data"]}, "candidates": candidates}
        )
        assert any("ends in 9 days" in warning for warning in compared["warnings"])
        rented = {"demand": {"accelerator": "H100-80GB", "count": 8, "years": 1}, "rent": {"providers": ["lambda"]}}
        assert any("ends in 9 days" in warning for warning in service.good("vision", "/v1/buy-or-rent", rented)["warnings"])
        served = {"model": {"params": "1B"}, "traffic": {"prompt_tokens": 100, "output_tokens": 10, "requests_per_s": 1}}
        served |= {"hardware": {"accelerators": ["H100-80GB"]}, "price": RESERVED["price"]}
        assert any("ends in 9 days" in warning for warning in service.good("vision", "/v1/serving", served)["warnings"])

    def test_a_quote_that_has_ended_is_not_used(self, service: Teams) -> None:
        """And the answer says so; the snapshot of that time can still be named."""
        kept(service)
        then = service.good("vision", "/v1/estimate", RESERVED)["price_snapshot"]
        later(service, 10)
        assert service.ask("vision", "/v1/estimate", RESERVED).status_code == 422
        on_demand = RESERVED | {"price": {"pricing": "on_demand"}}
        warnings = service.good("vision", "/v1/estimate", on_demand)["warnings"]
        assert any("quotes of lambda have ended, the last on 2026-12-10" in warning for warning in warnings)
        entry = service.good("vision", FILES)["items"][0]
        assert (entry["ended"], entry["first_end"]) == (1, "2027-03-01")
        named = RESERVED | {"price": RESERVED["price"] | {"snapshot": then}}  # type: ignore[operator]
        assert service.rate("vision", named) == pytest.approx(1.11)
        later_name = service.good("vision", "/v1/estimate", on_demand)["price_snapshot"]
        again = on_demand | {"price": {"pricing": "on_demand", "snapshot": later_name}}
        assert service.good("vision", "/v1/estimate", again)["price_snapshot"] == later_name

    def test_a_deleted_file_is_not_used_and_what_it_priced_can_be_repeated(self, service: Teams) -> None:
        """Its name is free again."""
        kept(service)
        then = service.good("vision", "/v1/estimate", RESERVED)["price_snapshot"]
        assert delete(service, "vision", "lambda").get_json()["state"] == "deleted"
        assert service.ask("vision", "/v1/estimate", RESERVED).status_code == 422
        assert service.ask("vision", f"{FILES}/lambda").status_code == 404
        assert delete(service, "vision", "lambda").status_code == 404
        named = RESERVED | {"price": RESERVED["price"] | {"snapshot": then}}  # type: ignore[operator]
        assert service.rate("vision", named) == pytest.approx(1.11)
        assert service.ask("speech", "/v1/estimate", named).status_code == 422
        assert kept(service)["entry"]["version"] == 2

    def test_files_of_the_operator_and_of_the_team_stand_side_by_side(self, service: Teams) -> None:
        """The team's own quote has precedence, and a refresh of the operator's files leaves it."""
        row = {"provider": "lambda", "region": "us-east-1", "instance_type": "H100 SXM", "accelerator": "NVIDIA-H100-80GB-SXM"}
        operators = {**row, "accelerator_count": 8, "pricing": "reserved_1y", "usd_per_hour": 5, "observed_at": "2026-10-01"}
        kept(service)
        service.write(
            vision={"book": "b", "team": "vision", "prices": [operators, {**operators, "region": "us-west-2", "usd_per_hour": 1}]}
        )
        offers = service.good("vision", "/v1/offers?provider=lambda&pricing=reserved_1y")["items"]
        assert sorted(offer["usd_per_hour"] for offer in offers if offer["extras"].get("team")) == [1.0, 8.88]

    def test_two_files_with_a_price_of_one_thing_count_as_the_one_kept_last(self, service: Teams) -> None:
        """Whatever their names are."""
        kept(service)
        later(service, 0)
        service.app.extensions["context"] = replace(service.context, clock=lambda: NOW + timedelta(minutes=1))
        kept(service, content=CSV.replace(b"1.11", b"1.05"), name="another")
        assert service.rate("vision", RESERVED) == pytest.approx(1.05)

    def test_the_mapping_is_kept_as_it_was_sent(self, service: Teams) -> None:
        """So that the next version can be read the same way."""
        content = CSV.replace(b"(USD)", b"(EUR)")
        mapping = {"rates": {"EUR": {"usd": 1.1, "at": "2026-11-20"}}, "settings": {"capacity": True}}
        kept(service, content=content, mapping=mapping)
        found = service.good("vision", f"{FILES}/lambda")
        assert found["mapping"] == mapping
        assert found["quotes"][0]["usd_per_accelerator_hour"] == pytest.approx(1.221)
        assert found["quotes"][0]["terms"]["capacity"] is True


def xlsx(**parts: bytes) -> bytes:
    """A package of these parts, with the two that make it a workbook."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as package:
        for name, content in {"xl/workbook.xml": b"<workbook/>", "xl/_rels/workbook.xml.rels": b"<Relationships/>", **parts}.items():
            package.writestr(name, content)
    return body.getvalue()


WORDS = (b"$2.10", b"1.234,5", b"9" * 20, b"99m", b"12 months", b"31/12/2026", b"8x H100", b"-1", b"inf", b"%", b"\x00", b'"', b";")
SHEET = b'<worksheet><sheetData><row r="1"><c r="%s"><v>1</v></c></row></sheetData></worksheet>'


class TestHostileFiles:
    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"", "the file is empty"),
            (b"PK\x03\x04 and nothing more", "no .xlsx that can be read"),
            (b"\xd0\xcf\x11\xe0 old", "old binary format"),
            (b"%PDF-1.7", "it is a PDF"),
            (b"\x00\x01\x02\x03", "neither .xlsx nor text"),
            (xlsx(**{"xl/vbaProject.bin": b"macro"}), "has macros, which are never run"),
            (xlsx(**{"xl/workbook.bin": b"x"}), "is binary"),
            (xlsx(**{"xl/worksheets/sheet1.xml": b"<a>" + b" " * 40_000_000}), "times its size"),
            (xlsx(**{"xl/worksheets/sheet1.xml": SHEET % b"XFD1048576"}), "at most 5,000 rows and 100 columns"),
            (xlsx(**{"xl/worksheets/sheet1.xml": b'<!DOCTYPE a [<!ENTITY b "c">]><worksheet/>'}), "declares entities"),
            (xlsx(**{"xl/worksheets/sheet1.xml": b"<worksheet><"}), "is damaged"),
            (xlsx(), "cannot be read"),
            (b"a,b\n" * 5_001, "at most 5,000 rows"),
            (b"," * 200, "at most 5,000 rows and 100 columns"),
            (b'GPU,Price\n"H100', "no row names columns"),
            (b"nothing,here\nthat,is a quote\n", "no row names columns"),
        ],
    )
    def test_a_file_that_is_no_price_sheet_is_refused_with_the_reason(self, shared: Teams, content: bytes, said: str) -> None:
        """Before anything is unpacked or allocated that it only claims to need."""
        answer = shared.ask("vision", FILES, sent(content))
        assert answer.status_code == 422, answer.text
        assert said in answer.get_json()["detail"]

    def test_what_is_no_base64_is_refused(self, shared: Teams) -> None:
        """With its pointer."""
        answer = shared.ask("vision", FILES, sent() | {"content_base64": "not base64!"})
        assert (answer.status_code, answer.get_json()["errors"][0]["pointer"]) == (422, "/content_base64")

    @given(st.binary(max_size=400))
    def test_any_bytes_are_answered(self, shared: Teams, content: bytes) -> None:
        """Never with an error of the service."""
        assert shared.ask("vision", FILES, sent(content)).status_code in (200, 422)

    @given(st.sampled_from(SHEETS), st.data())
    def test_a_sheet_with_any_bytes_changed_is_answered(self, shared: Teams, sheet: Any, data: st.DataObject) -> None:
        """Also inside of a workbook."""
        content = bytearray(sheet.content)
        for _ in range(data.draw(st.integers(1, 8))):
            place = data.draw(st.integers(0, len(content) - 1))
            content[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(min_size=1, max_size=2) | st.sampled_from(WORDS))
        assert shared.ask("vision", FILES, sent(bytes(content))).status_code in (200, 422)

    @given(
        st.lists(
            st.lists(
                st.sampled_from(
                    ["Vendor", "GPU", "Price", "Term", "$2.10", "1.234", "1,5", "H100 SXM", "8x", "12 months", "31/12/2026", "1e400", ""]
                )
                | st.text(max_size=12),
                max_size=8,
            ),
            max_size=10,
        ),
        st.dictionaries(
            st.sampled_from("ABCDE"), st.sampled_from(["price", "term", "upfront", "minimum", "valid_until", None]), max_size=5
        ),
    )
    def test_any_cells_under_any_mapping_are_answered(self, shared: Teams, rows: list[list[str]], columns: dict[str, Any]) -> None:
        """Whatever stands where."""
        lines = (",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)
        content = "\n".join(lines).encode("utf-8", "replace")
        answer = shared.ask("vision", FILES, sent(content, mapping={"columns": columns, "header_row": 1}))
        assert answer.status_code in (200, 422), answer.text


def test_a_store_that_is_away_keeps_nothing(service: Teams, monkeypatch: pytest.MonkeyPatch) -> None:
    """503, and the proposal can still be read."""

    def away(*_: object) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(type(service.context.store), "keep_price_file", away)
    assert service.ask("vision", FILES, confirmed()).status_code == 503
    assert service.ask("vision", FILES, sent()).status_code == 200
