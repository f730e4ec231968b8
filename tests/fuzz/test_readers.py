"""Readers of foreign bytes refuse what they cannot read, with a reason: good inputs changed here and there, and what fuzzing has found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from tests.fuzz.readers import READERS, Reader, read_in_its_process

IN_THIS_PROCESS = sorted(READERS.keys() - {"parquet"})
PIECES = st.binary(max_size=12) | st.sampled_from(
    [b"", b"\x00", b"\xff" * 8, b"-", b'"', b"null", b"[" * 100, b"9" * 40, b"1e999", b"\n", b",,", b"<a>"]
)


@st.composite
def changed(draw: st.DrawFn, reader: Reader) -> bytes:
    """A good input with one to three pieces of it replaced, in a part of it where it is packed."""
    content = draw(st.sampled_from(reader.seeds()))
    parts = draw(st.sampled_from([reader.unpack, lambda whole: [whole]]))(content)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(parts) - 1))
        begin = draw(st.integers(0, len(parts[at])))
        end = begin + draw(st.integers(0, 20))
        parts[at] = parts[at][:begin] + draw(PIECES) + parts[at][end:]
    return reader.pack(parts) if len(parts) > 1 else parts[0]


@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")  # in favour of a name that few issuers have
@pytest.mark.parametrize("name", IN_THIS_PROCESS)
@given(data=st.data())
def test_a_changed_input_is_read_or_refused(name: str, data: st.DataObject) -> None:
    """Never an error of ours."""
    READERS[name].check(data.draw(changed(READERS[name])))


@pytest.mark.soak
@given(data=st.data())
def test_a_changed_parquet_file_is_read_or_refused(data: st.DataObject) -> None:
    """Also where the library ends its process."""
    content = data.draw(changed(READERS["parquet"]))
    try:
        read_in_its_process(content)
    except InvalidRequest:
        return


@pytest.mark.parametrize("name", [b"xl/workbook.xml", b"xl/_rels/workbook.xml.rels"])
def test_names_of_a_workbooks_parts_may_be_in_capitals(name: bytes) -> None:
    """Found by fuzzing: a KeyError."""
    workbook = READERS["workbook"]
    content = workbook.seeds()[0]
    renamed = workbook.pack([name.upper() if part == name else part for part in workbook.unpack(content)])
    assert renamed != content
    assert workbook.read(renamed) == workbook.read(content)
