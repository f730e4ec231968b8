"""/buy-or-rent/quotes: a vendor's file read, corrected, and its prices as quotes of the question or as the team's own."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from html import unescape
from io import BytesIO
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from flask.testing import FlaskClient

from service.config import load_settings
from service.formats.imports.quotes.sheets import MAX_FILE_BYTES
from tests.contract.doors import House, house
from tests.contract.web.visitor import Visitor, text_of, words_of
from tests.unit.formats.imports.quotes.vendor_sheets import SHEETS

PAGE = "/buy-or-rent/quotes"
CSV = (
    "Vendor,Region,GPU,Min GPUs,12 months,36 months,Valid until\n"
    "Nimbus,us-east,8x H100 SXM5 80GB,64,$2.35 per GPU-hour,$1.95 per GPU-hour,2030-11-30\n"
    "Nimbus,us-east,HGX H200 node,64,$2.90 per GPU-hour,$2.45 per GPU-hour,2030-11-30\n"
    "Nimbus,us-west,H100,8,$2.50 per GPU-hour,on request,2030-11-30\n"
)
QUESTION = {"demand.accelerator": "H100", "demand.count": "256", "demand.years": "3"}
HOSTILE = "<script>alert(1)</script>\"'&\u202e.csv"
ERROR = '<p class="error" id="e-{}">'


def sent(content: bytes, name: str = "nimbus.csv") -> dict[str, Any]:
    """A form with a file, as a browser sends it."""
    head = f'--part\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return {"data": head.encode() + content + b"\r\n--part--\r\n", "content_type": "multipart/form-data; boundary=part"}


def read(client: FlaskClient, content: str | bytes = CSV, name: str = "nimbus.csv", question: dict[str, str] | None = None) -> Any:
    """The page with a file as it is read."""
    body = content.encode() if isinstance(content, str) else content
    return client.post(f"{PAGE}?{urlencode(QUESTION if question is None else question)}", **sent(body, name.replace('"', "%22")))


def form_of(page: Any) -> dict[str, str]:
    """What the form of a reading sends as it is."""
    text = text_of(page)
    hidden = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', text)
    stated = re.findall(r'<input name="(mapping[^"]+)" value="([^"]*)"', text)
    chosen = [(name, "yes") for name in re.findall(r'name="(quote\.[A-Z0-9]+)" value="yes"[^>]* checked', text)]
    return {unescape(name): unescape(value) for name, value in (*hidden, *stated, *chosen)}


def send(client: FlaskClient, page: Any, do: str, question: dict[str, str] | None = None, **changes: str | None) -> Any:
    """The answer to the form of a reading with changes; None takes a field out. Two underscores stand for a point."""
    sent = form_of(page) | {name.replace("__", "."): value for name, value in changes.items()} | {"do": do}
    fields = {name: value for name, value in sent.items() if value is not None}
    return client.post(f"{PAGE}?{urlencode(QUESTION if question is None else question)}", data=fields, content_type="multipart/form-data")


def asked(answer: Any) -> dict[str, str]:
    """The question to which an answer leads."""
    assert answer.status_code == 303, text_of(answer)
    parts = urlsplit(answer.headers["Location"])
    assert parts.path == "/buy-or-rent"
    return dict(parse_qsl(parts.query))


def test_a_file_is_shown_as_it_is_read(client: FlaskClient) -> None:
    """Every price with its cell and what becomes of it, every column with what it is taken for, and what is not told."""
    page = read(client)
    assert page.status_code == 200
    text = words_of(page)
    assert "4 prices of nimbus.csv can be used, 1 cannot. 1 thing is not told." in text
    assert re.search(r"E2 12 months H100-80GB Nimbus us-east reserved for 1 year 2.35 2030-11-30", text)
    assert "G Valid until" in text
    assert "'H100' may be NVIDIA-H100-80GB-SXM or" in text
    assert 'name="mapping.accelerators.H100"' in text_of(page)


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_every_kind_of_sheet_has_a_page(client: FlaskClient, sheet: Any) -> None:
    """With as many prices to choose as the API offers, or what is wrong beside the file."""
    encoded = base64.b64encode(sheet.content).decode()
    answer = client.post("/v1/price-files", json={"content_base64": encoded, "file_name": sheet.file_name})
    page = read(client, sheet.content, sheet.file_name)
    if answer.status_code != 200:
        assert page.status_code == 422
        assert ERROR.format("file") in text_of(page)
        return
    offers = [row for row in answer.get_json()["proposal"]["rows"] if row["fate"] == "offer"]
    assert text_of(page).count('name="quote.') == len(offers)


def test_chosen_prices_become_quotes_of_the_question(client: FlaskClient) -> None:
    """Those of the demanded accelerator are chosen; each says its cell, its terms and its end; the question answers."""
    found = asked(send(client, read(client), "use"))
    assert {name: found[name] for name in QUESTION} == QUESTION
    assert found["rent.quotes.0.name"] == "Nimbus reserved for 1 year (E2)"
    assert found["rent.quotes.1.usd_per_accelerator_hour"] == "1.95"
    assert (found["rent.quotes.1.expires"], found["rent.quotes.1.minimum_accelerators"]) == ("2030-11-30", "64")
    assert not [name for name in found if name.startswith("rent.quotes.2.")]
    page = client.get("/buy-or-rent?" + urlencode(found | {"trials": "200"}))
    assert page.status_code == 200
    assert "Nimbus reserved for 3 years (F2)" in words_of(page)


def test_quotes_of_the_question_stay(client: FlaskClient) -> None:
    """Read prices take the free places; without an accelerator the question is about theirs."""
    question = {"rent.quotes.0.name": "ours", "rent.quotes.0.pricing": "spot", "rent.quotes.0.usd_per_accelerator_hour": "2"}
    page = read(client, question=question)
    found = asked(send(client, page, "use", question, quote__F2=None))
    assert (found["rent.quotes.0.name"], found["rent.quotes.1.name"]) == ("ours", "Nimbus reserved for 1 year (E2)")
    assert found["demand.accelerator"] == "NVIDIA-H100-80GB-SXM"


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"quote__E2": None, "quote__F2": None}, "Choose at least one price."),
        ({"quote__E3": "yes"}, "choose those of one accelerator"),
        ({"quote__E2": None, "quote__F2": None, "quote__E3": "yes"}, "and the question is about H100"),
    ],
)
def test_prices_that_are_no_quotes_of_the_question_are_refused(client: FlaskClient, changes: dict[str, Any], wrong: str) -> None:
    """With what to change; the choice stays."""
    page = send(client, read(client), "use", **changes)
    assert page.status_code == 422
    assert wrong in words_of(page)
    assert ("quote.E3" in form_of(page)) == ("quote__E3" in changes)


def test_what_is_not_told_is_answered_on_the_page(client: FlaskClient) -> None:
    """The answer stays with the form while more is corrected."""
    once = send(client, read(client), "read", mapping__accelerators__H100="NVIDIA-H100-80GB-PCIe")
    assert "5 prices of nimbus.csv can be used." in words_of(once)
    again = send(client, once, "read", mapping__columns__F="none")
    assert "3 prices of nimbus.csv can be used." in words_of(again)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mapping.settings.valid_until", "soon"),
        ("mapping.settings.upfront_share", "25"),
        ("mapping.header_row", "0"),
        ("mapping.settings.pricing", "monthly"),
        ("mapping.header_row", "4000"),
    ],
)
def test_a_wrong_correction_is_named_beside_its_field(client: FlaskClient, name: str, value: str) -> None:
    """The prices are shown as they are read without it, and none is used."""
    page = send(client, read(client), "use", **{name.replace(".", "__"): value})
    assert page.status_code == 422
    assert ERROR.format(name) in text_of(page)
    assert "4 prices of nimbus.csv can be used" in words_of(page)


def test_labels_and_headings_are_names_whatever_they_hold(client: FlaskClient) -> None:
    """A label with points is one name; a vendor that is a number is text; odd names are refused, not obeyed."""
    csv = CSV.replace("us-west,H100,", "us-west,GPU v5.1,")
    page = send(client, read(client, csv), "read", **{"mapping.accelerators.GPU v5.1": "NVIDIA-H100-80GB-SXM"})
    assert "5 prices of nimbus.csv can be used." in words_of(page)
    assert send(client, page, "read", mapping__settings__provider="2026").status_code == 200
    for odd in ("mapping", "mapping.", "mapping.settings", "mapping.rates.EUR", "mapping.columns.", "mapping.0", "mapping.settings.x.y"):
        assert send(client, page, "use", **{odd: "5"}).status_code in (303, 422)


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (b"%PDF-1.7 ...", "it is a PDF: ask the vendor for the table as .xlsx or .csv"),
        (b"\xd0\xcf\x11\xe0" + bytes(600), "save it as .xlsx without a password"),
        (b"", "Choose the vendor's file"),
        (b"PK\x03\x04" + bytes(100), "can"),
        (b"nothing,that\nis,a price\n", "no row names columns"),
        (b"x" * (MAX_FILE_BYTES + 1), "at most 8,388,608 are taken"),
    ],
)
def test_a_file_that_cannot_be_read_says_what_would_do(client: FlaskClient, content: bytes, wrong: str) -> None:
    """Beside the field of the file."""
    page = read(client, content, "quote.pdf")
    assert page.status_code == 422
    assert ERROR.format("file") in text_of(page)
    assert wrong in words_of(page)


def test_uploads_are_bounded(client: FlaskClient) -> None:
    """Larger ones are refused before they are read; of other addresses too; forms have a bounded number of fields."""
    assert read(client, bytes(17 * 2**20)).status_code == 413
    assert client.post("/prices/refresh", **sent(bytes(2**21))).status_code == 413
    assert client.post(PAGE, data={f"f{number}": "x" for number in range(400)}, content_type="multipart/form-data").status_code == 400
    assert client.post(PAGE, data=b"--x--", content_type="multipart/form-data").status_code == 400
    assert client.post(PAGE, data=b"{}", content_type="application/json").status_code == 415


def test_names_of_the_sheet_are_text(client: FlaskClient) -> None:
    """File, headers, labels and vendors: neither markup nor order of reading leaves its cell."""
    header = "Vendor,Region,GPU,Price per GPU-hour (USD),Term,<i>note"
    csv = f"{header}\n<b>Nimbus,\u202eus-east,8x H100 SXM5 80GB,2.35,1 year,x\n<b>Nimbus,us-west,<img src=x>,2.35,1 year,x\n"
    page = read(client, csv, HOSTILE)
    text = text_of(page)
    assert page.status_code == 200
    assert not [part for part in ("<script>alert", "<b>", "<i>", "<img src=x>") if part in text]
    assert "<bdi>\ufffdus-east</bdi>" in text
    assert "\u202e" not in text


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A service with two teams and keys of every kind."""
    with house(load_settings({"OUTLAY_DATA_DIR": str(tmp_path_factory.mktemp("quotes") / "data"), "OUTLAY_OFFLINE": "1"})) as made:
        yield made


def test_prices_are_kept_for_the_team_alone(doors: House) -> None:
    """By who may write, with the token of the session; the page lists the team's files."""
    visitor, other, reader = Visitor(doors), Visitor(doors), Visitor(doors)
    for who, key in ((visitor, "ours"), (other, "theirs"), (reader, "we may read")):
        who.sign_in(key)
    fields: dict[str, Any] = {"file": (BytesIO(CSV.encode()), "nimbus.csv")}
    assert visitor.send(PAGE, fields).status_code == 403
    fields = {"file": (BytesIO(CSV.encode()), "nimbus.csv"), "csrf_token": visitor.form_token()}
    form = form_of(visitor.send(PAGE, fields))
    kept = visitor.send(PAGE, form | {"do": "keep"}, content_type="multipart/form-data")
    assert (kept.status_code, kept.headers["Location"]) == (303, f"{PAGE}#kept")
    assert "nimbus.csv" in words_of(visitor.open(PAGE))
    assert "nimbus.csv" not in words_of(other.open(PAGE))
    assert "needs a key with the scope write" in words_of(reader.open(PAGE))
    refused = reader.send(PAGE, {"do": "read", "csrf_token": reader.form_token()}, content_type="multipart/form-data")
    assert refused.status_code == 403


def test_nothing_is_compared_before_a_price_can_be_used(client: FlaskClient) -> None:
    """What is missing is asked in plain words; with it the prices can be compared."""
    nameless = "GPU,Term,Price per GPU-hour (USD)\nNVIDIA H100 SXM 80GB,On demand,2.99\n"
    page = read(client, nameless)
    assert "0 prices of nimbus.csv can be used, 1 cannot." in words_of(page)
    assert "No price can be used yet: answer what is asked above" in words_of(page)
    assert "Compare the chosen prices" not in words_of(page)
    assert "state mapping" not in words_of(page)
    again = send(client, page, "read", mapping__settings__provider="Nimbus")
    assert "Compare the chosen prices" in words_of(again)


def test_what_the_verdict_needs_is_asked_with_the_prices(client: FlaskClient) -> None:
    """Where the question does not say it: who comes with a file alone gets a verdict. It is kept while the file is read."""
    alone = read(client, question={})
    assert 'name="demand.count"' in text_of(alone)
    assert 'name="demand.count"' not in text_of(read(client))
    again = send(client, alone, "read", {}, demand__count="256")
    assert 'name="demand.count"' not in text_of(again)
    assert "demand.count=256" in text_of(again)
    question = asked(send(client, alone, "use", {}, demand__count="256", demand__years="3", own__0__capex_usd_per_accelerator="32000"))
    assert (question["demand.count"], question["own.0.capex_usd_per_accelerator"]) == ("256", "32000")
    assert "costs least" in words_of(client.get(f"/buy-or-rent?{urlencode(question)}"))


def test_the_first_page_leads_to_it(client: FlaskClient) -> None:
    assert f'<a href="{PAGE}">' in text_of(client.get("/"))
