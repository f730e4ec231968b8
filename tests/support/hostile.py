"""Names that mean harm, and what has to hold of everything in which they stand."""

from __future__ import annotations

import csv
import io
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

from hypothesis import strategies as st
from openpyxl import load_workbook

MARK = "xmark"
"""In every harmful piece, so that what a page, a picture or a workbook makes of it is found again."""
RUNNING = re.compile(rb"/S\s*/JavaScript|/URI\s*\(\s*javascript", re.IGNORECASE)
"""Actions of a PDF that run code (ISO 32000-2, 12.6.4)."""
REORDERING = re.compile("[\u202a-\u202e\u2066-\u2069]")
PIECES = (
    *(f"<{MARK}>", f'" {MARK}="', f"' on{MARK}='1", f"</title></textarea></script><{MARK}>", f"]]><{MARK}/>", f"<!--{MARK}"),
    *("\u202e", "\u2066", "\u2069", "\u05d0\u05d1", "\u200f"),
    *(f"={MARK}(1)", f"+{MARK}", f"-{MARK}", f"@{MARK}", f"|{MARK}|", f"`{MARK}`", f"[{MARK}](javascript:{MARK})", f"*{MARK}*"),
    *(f"<!channel|{MARK}>", f"<@{MARK}>", f"{{{{ {MARK} }}}}", f"{{% {MARK} %}}", "%s", "\\", "&lt;", "#let x = 1", "é", "漢字", "a" * 40),
)
NAMES = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map(lambda parts: "".join(parts).strip()[:60]).filter(bool)
LONG = "W" * 10_000


class _Elements(HTMLParser):
    """All that a browser would take for markup."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.comments: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, attrs))

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def check_page(text: str) -> None:
    """No name is an element, an attribute, a comment or an address that runs; none turns the order of reading around."""
    page = _Elements(text)
    assert not [tag for tag, _ in page.found if MARK in tag]
    assert not [comment for comment in page.comments if MARK in comment]
    for tag, attributes in page.found:
        for name, value in attributes:
            assert MARK not in name, (tag, name)
            assert not (name in ("href", "src", "action") and (value or "").lower().lstrip().startswith(("javascript:", "data:text"))), tag
            assert name not in ("onclick", "onerror", "onload"), tag
    assert not REORDERING.search(text)


def check_svg(text: str) -> None:
    """Well-formed, and no name is an element or an attribute."""
    for element in ET.fromstring(text).iter():
        assert MARK not in str(element.tag)
        assert not [name for name in element.attrib if MARK in name]
    assert not REORDERING.search(text)


def check_markdown(text: str) -> None:
    """No name is an element or a link."""
    assert not re.search(rf"(?<!\\)<[/!@]?[a-z|]*{MARK}", text)
    assert not re.search(rf"(?<!\\)\]\(javascript:{MARK}", text)
    assert not REORDERING.search(text)


def check_csv(text: str) -> None:
    """No field begins like a formula."""
    fields = [field for row in csv.reader(io.StringIO(text, newline="")) for field in row]
    assert not [field for field in fields if field.startswith(("=", "@", "\t", "\r")) or re.match(rf"[+-].*{MARK}", field)]
    assert not REORDERING.search(text)


def check_workbook(content: bytes) -> None:
    """No name is a formula or a link."""
    for sheet in load_workbook(io.BytesIO(content)):
        for row in sheet.iter_rows():
            for cell in row:
                assert not (cell.data_type == "f" and MARK in str(cell.value).replace(f'"{MARK}', "")), cell.coordinate
                assert cell.hyperlink is None or MARK not in str(cell.hyperlink.target)
                assert not REORDERING.search(str(cell.value))


def check_calendar(text: str) -> None:
    """No line is longer than a calendar's."""
    assert all(len(line.encode()) <= 75 for line in text.split("\r\n"))
    assert not REORDERING.search(text)


def check_pdf(content: bytes) -> None:
    """A document without addresses of its own making: a name may stand in its title, and is no link and no action."""
    assert content.startswith(b"%PDF")
    assert not RUNNING.search(content)


CHECKS = {
    "html": lambda content: check_page(content.decode()),
    "svg": lambda content: check_svg(content.decode()),
    "md": lambda content: check_markdown(content.decode()),
    "csv": lambda content: check_csv(content.decode()),
    "ics": lambda content: check_calendar(content.decode()),
    "xlsx": check_workbook,
    "pdf": check_pdf,
}
