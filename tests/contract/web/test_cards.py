"""Wide tables whose rows become cards on phones: each cell names its column, and the roles of a table stay."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient

from tests.contract.web.test_compare_page import FIELDS as COMPARISON
from tests.contract.web.visitor import text_of

ROLES = {"table": "table", "thead": "rowgroup", "tbody": "rowgroup", "tr": "row", "td": "cell"}
HEADS = {"col": "columnheader", "row": "rowheader"}
ADDRESSES = ["/compare?" + urlencode(COMPARISON), "/prices", "/prices?accelerator=H100"]


class Tables(HTMLParser):
    """The tables of class `cards`: titles of columns, what each cell says is its column, and elements whose role is not their own."""

    def __init__(self) -> None:
        super().__init__()
        self.heads: list[list[str]] = []
        self.rows: list[list[str | None]] = []
        self.wrong: list[str] = []
        self._open = self._head = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag says."""
        given = dict(attrs)
        if tag == "table" and "cards" in (given.get("class") or "").split():
            self._open = True
            self.heads.append([])
        if not self._open:
            return
        role = HEADS[str(given["scope"])] if tag == "th" else ROLES.get(tag)
        if role and given.get("role") != role:
            self.wrong.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag == "th" and given["scope"] == "col":
            self._head = True
            self.heads[-1].append("")
        elif tag in ("td", "th"):
            column = self.heads[-1][len(self.rows[-1])]
            self.rows[-1].append(column)
            if tag == "td" and given.get("data-label") != column:
                self.wrong.append(f"{given.get('data-label')} in the column {column}")

    def handle_endtag(self, tag: str) -> None:
        """Note where a table and a head end."""
        self._open &= tag != "table"
        self._head &= tag != "th"

    def handle_data(self, data: str) -> None:
        """The words of a head."""
        if self._head:
            self.heads[-1][-1] += data.strip()


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_cell_names_its_column_and_keeps_its_role(client: FlaskClient, address: str) -> None:
    """Where the style takes a table's own roles away, those that are stated stay."""
    tables = Tables()
    tables.feed(text_of(client.get(address)))
    assert tables.heads
    assert [len(row) for row in tables.rows if len(row) > 1]
    assert tables.wrong == []
