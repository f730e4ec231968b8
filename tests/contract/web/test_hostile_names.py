"""Names that mean harm, through every page and every file in which somebody's name stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from service.formats.documents.render import PACK_FORMATS, REPORT_FORMATS
from service.web.program_tabs import TABS
from tests.contract.tracking.tracked_program import told
from tests.contract.web.test_buy_or_rent_page import FIELDS
from tests.contract.web.test_quotes_page import read
from tests.contract.web.visitor import text_of
from tests.support.hostile import CHECKS, LONG, NAMES, PIECES, check_page, check_svg
from tests.support.service import served

USUAL_EXAMPLES = 20
MANY = settings.default.max_examples > USUAL_EXAMPLES  # type: ignore[union-attr]
FEW = settings(max_examples=20) if MANY else settings(phases=[Phase.explicit])
"""Each example asks for dozens of pages and files: the stated one alone in a usual run."""
HARMFUL = ["".join(PIECES[place::7]).strip()[:60] for place in range(7)]
"""Names with every harmful piece."""
STORY = ("program", "main", "cause", "text", "line", "metric")
RUN = {"model": "1B", "data.tokens": "20B", "hardware.accelerator": "H100", "hardware.count": "8"}
PICTURE = re.compile(r'src="(/[a-z][^"]*\.svg[^"]*)"')


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """A service without keys, whose programs and results are those of this module."""
    with served(tmp_path_factory.mktemp("hostile")) as made:
        yield made


def check_file(client: FlaskClient, address: str, format: str) -> None:  # noqa: A002 - the name of what it is
    """The file at an address is there, and no name in it does harm."""
    answer = client.get(address)
    assert answer.status_code == 200, (address, answer.status_code)
    CHECKS[format](answer.get_data())


def check_shown(client: FlaskClient, address: str, status: int = 200) -> str:
    """The page at an address with its pictures."""
    answer = client.get(address)
    assert answer.status_code == status, (address, answer.status_code)
    text = text_of(answer)
    check_page(text)
    for picture in PICTURE.findall(text):
        drawn = client.get(unescape(picture))
        assert drawn.status_code == 200, picture
        check_svg(drawn.get_data(as_text=True))
    return text


@FEW
@example(names=dict(zip(STORY, HARMFUL, strict=False)))
@given(names=st.fixed_dictionaries(dict.fromkeys(STORY, NAMES)))
def test_names_of_a_program(client: FlaskClient, names: dict[str, str]) -> None:
    """Its own, those of runs, causes, notes, lines and metrics: on its page with all pictures, and in its report in every format."""
    program = told(client, names)
    for tab in TABS:
        check_shown(client, f"/programs/{program['id']}?tab={tab}")
    for format_ in REPORT_FORMATS if MANY else set(REPORT_FORMATS) - {"html"}:  # whose pictures are those of the page
        check_file(client, f"/programs/{program['id']}/report.{format_}?as_of=2025-08-31T00:00:00Z", format_)
    check_shown(client, "/")
    check_shown(client, "/programs")
    rule = {"kind": "budget", "shares": [0.5], "targets": [{"webhook": "https://example.com/x"}]}
    client.post(f"/v1/track/programs/{program['id']}/alert-rules", json=rule)
    check_shown(client, "/settings")


@FEW
@example(fleet=HARMFUL[0], quote=HARMFUL[1])
@example(fleet=HARMFUL[2], quote=HARMFUL[3])
@given(fleet=NAMES, quote=NAMES)
def test_names_of_fleets_and_quotes(client: FlaskClient, fleet: str, quote: str) -> None:
    """On the page with its pictures, in the evidence pack, and kept: its page and its files. Slow ones with the stated names."""
    fields = FIELDS | {"own.0.name": fleet, "rent.quotes.0.name": f"{quote[:58]} 2"}
    stated = fleet in HARMFUL
    check_shown(client, f"/buy-or-rent?{urlencode(fields)}")
    for format_ in PACK_FORMATS if stated else set(PACK_FORMATS) - {"pdf"}:
        check_file(client, f"/buy-or-rent?{urlencode(fields)}&format={format_}", format_)
    kept = client.post(f"/buy-or-rent/keep?{urlencode(fields)}")
    assert kept.status_code == 303
    for format_ in PACK_FORMATS if stated else ("md",):
        check_file(client, f"{kept.headers['Location']}?format={format_}", format_)
    check_shown(client, "/")


@FEW
@example(vendor=HARMFUL[0], region=HARMFUL[1], heading=HARMFUL[2], file=HARMFUL[3])
@example(vendor=HARMFUL[4], region=HARMFUL[5], heading=HARMFUL[6], file=HARMFUL[0])
@given(vendor=NAMES, region=NAMES, heading=NAMES, file=NAMES)
def test_names_of_a_vendors_file(client: FlaskClient, vendor: str, region: str, heading: str, file: str) -> None:
    """Of the file, its headings, vendors and regions."""
    quoted = ['"' + name.replace('"', '""') + '"' for name in (vendor, region, heading)]
    csv = f"Vendor,Region,GPU,Price per GPU-hour (USD),Term,{quoted[2]}\n{quoted[0]},{quoted[1]},8x H100 SXM5 80GB,2.35,1 year,x\n"
    page = read(client, csv, file.replace("\\", ""))
    assert page.status_code in (200, 422)
    check_page(text_of(page))


@given(name=NAMES)
@settings(max_examples=200 if MANY else 5)
@pytest.mark.parametrize("page", ["/", "/estimate", "/compare", "/buy-or-rent", "/prices", "/scenarios"])
def test_what_is_typed(client: FlaskClient, page: str, name: str) -> None:
    """In any field, known or not, on any page: never markup, whether it is taken or refused."""
    for fields in ({"text": name}, RUN | {"model": name}, RUN | {"price.provider": name}, {name: name}, {"accelerator": name}):
        check_page(text_of(client.get(f"{page}?{urlencode(fields)}")))


@pytest.mark.parametrize("page", ["/", "/estimate", "/compare", "/buy-or-rent", "/prices"])
def test_ten_thousand_characters_are_answered(client: FlaskClient, page: str) -> None:
    """Refused or shortened, never an error of the service."""
    for fields in ({"text": LONG}, RUN | {"model": LONG}, RUN | {"own.0.name": LONG}, {LONG: "1"}, {"accelerator": LONG}):
        answer = client.get(f"{page}?{urlencode(fields)}")
        assert answer.status_code in (200, 422)
        check_page(text_of(answer))


@pytest.mark.parametrize(
    "make",
    [
        lambda client: client.post("/v1/track/programs", json={"name": LONG}),
        lambda client: client.post("/v1/buy-or-rent", json={"demand": {"accelerator": LONG, "count": 1, "years": 1}}),
        lambda client: client.post("/settings/keys", data={"name": LONG, "scope": "read"}),
    ],
    ids=["program", "fleet", "key"],
)
def test_names_of_ten_thousand_characters_are_refused(client: FlaskClient, make: Callable[[FlaskClient], Any]) -> None:
    """Before anything is kept."""
    assert 400 <= make(client).status_code < 500
