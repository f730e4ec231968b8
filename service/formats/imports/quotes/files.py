"""Vendors' files: which are read, and by what."""

from __future__ import annotations

from service.domain.errors import InvalidRequest
from service.formats.imports.quotes.sheets import MAX_FILE_BYTES, VendorFile, read_csv
from service.formats.imports.quotes.workbook import read_workbook

NOT_TAKEN = {
    b"\xd0\xcf\x11\xe0": "it is a workbook in the old binary format or with a password: save it as .xlsx without a password",
    b"%PDF": "it is a PDF: ask the vendor for the table as .xlsx or .csv",
    b"\x1f\x8b": "it is compressed: unpack it first",
}
"""Files that are refused, by their first bytes."""


def read_file(content: bytes) -> VendorFile:
    """The tables of a CSV or XLSX file; its name does not matter. Raises InvalidRequest for any other, and above the limits."""
    if not content:
        raise InvalidRequest("the file is empty", "/content_base64")
    if len(content) > MAX_FILE_BYTES:
        raise InvalidRequest(f"the file has {len(content):,} bytes; at most {MAX_FILE_BYTES:,} are taken", "/content_base64")
    reason = next((reason for start, reason in NOT_TAKEN.items() if content.startswith(start)), None)
    if reason is not None:
        raise InvalidRequest(f"the file cannot be read: {reason}", "/content_base64")
    if content.startswith(b"PK"):
        return read_workbook(content)
    return read_csv(content)
