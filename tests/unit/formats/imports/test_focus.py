"""Bills become costs of the runs their tags name; what cannot be read is named with its row, and reading again tells the same."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain.errors import InvalidRequest
from service.domain.tracking.events import Event
from service.domain.tracking.imports import RunReference, make_restatement, make_retraction
from service.formats.imports import parquet, rows
from service.formats.imports.focus import IDENTITY, WANTED, read_focus
from tests.unit.formats.imports.track_data import assert_takable, data, of_run, reasons

SAMPLE = Path(__file__).parents[5] / "shared" / "prices" / "focus-sample"
TAGS = '{"outlay_run": "main-7b"}'
ROW: Mapping[str, Any] = {
    "BilledCost": "55.04",
    "EffectiveCost": "38.528",
    "BillingCurrency": "USD",
    "BillingPeriodStart": "2027-02-01T00:00:00Z",
    "ChargePeriodStart": "2027-02-01T00:00:00Z",
    "ChargePeriodEnd": "2027-02-01T01:00:00Z",
    "ChargeCategory": "Usage",
    "ResourceId": "i-0aa1",
    "ServiceCategory": "Compute",
    "Tags": TAGS,
}


def bill(*rows: Mapping[str, Any], line_end: str = "\r\n") -> bytes:
    """A bill in CSV, each row stated as its difference from the usual one."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(ROW | {name: "" for row in rows for name in row}), lineterminator=line_end)
    writer.writeheader()
    writer.writerows(ROW | row for row in rows)
    return text.getvalue().encode()


def parquet_bill(columns: Mapping[str, Any], **options: Any) -> bytes:
    """A bill in Parquet."""
    out = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), out, **options)
    return out.getvalue()


def reason(row: Mapping[str, Any]) -> str:
    """Why a row, alone in its bill, is not taken."""
    imported = read_focus(bill(row))
    assert not imported.events
    return reasons(imported)[2]


def only(content: bytes) -> Event:
    """The event of a bill of one row."""
    (found,) = read_focus(content).events
    return found.event


class TestBill:
    def test_of_version_1_0(self) -> None:
        """Use, storage, a correction, a credit, tax, a covered purchase and an unused commitment of the run are taken, nothing else is."""
        imported = read_focus(data("focus-1.0.csv"))
        assert_takable(imported)
        events = of_run(imported, "main-7b")
        assert [(event.micro_usd, event.line) for event in events] == [
            *[(38_528_000, "compute")] * 3,
            *((3_287_671, "storage"), (0, "network"), (-38_528_000, "compute"), (-100_000_000, "compute")),
            *((9_632_000, "tax"), (0, "compute"), (22_831_050, "unused_commitment")),
        ]
        assert events[3].text == "Amazon FSx · FSx for Lustre, SSD, 125 MB/s per TiB"
        assert list(reasons(imported)) == [13, 14, 15, 16]
        assert [each.row for each in imported.events if not each.reference.is_stated] == [12]

    def test_why_rows_are_not_taken(self) -> None:
        """Each reason says what is wrong in its row."""
        found = reasons(read_focus(data("focus-1.0.csv")))
        for row, words in {13: "EUR", 14: "JSON", 15: "ISO 8601", 16: "EffectiveCost"}.items():
            assert words in found[row]

    def test_of_version_1_3(self) -> None:
        """Renamed providers, allocated tags, a prefixed tag and tags as a list of pairs are read."""
        imported = read_focus(data("focus-1.3.csv"))
        assert_takable(imported)
        assert [each.reference for each in imported.events] == [
            RunReference("main-7b"),
            RunReference("ablations", "support-assistant"),
            RunReference("", "support-assistant"),
            RunReference("main-7b"),
        ]

    def test_the_same_charge_in_a_later_version_is_the_same(self) -> None:
        """The hour of i-0aa1, exported as 1.3 after 1.0, is a restatement and not a second charge."""
        before, after = (read_focus(data(name)).events[0].event for name in ("focus-1.0.csv", "focus-1.3.csv"))
        assert before.id == after.id
        correction = make_restatement(after, before)
        assert correction is not None
        assert (correction.type, correction.supersedes, correction.micro_usd, correction.at) == (
            *("correction", before.id, 40_000_000),
            before.at,
        )

    def test_what_is_billed_instead(self) -> None:
        """BilledCost is what invoices say: the purchase is there, and its unused part costs nothing more."""
        events = of_run(read_focus(data("focus-1.0.csv"), "billed"), "main-7b")
        assert [event.micro_usd for event in events][-2:] == [200_000_000_000, 0]

    def test_a_purchase_pays_for_no_use_of_its_own(self) -> None:
        """Only use says until when a run's compute is billed: a year's commitment would hide a year of the run's own costs."""
        events = of_run(read_focus(data("focus-1.0.csv")), "main-7b")
        assert events[0].billed_until == datetime(2027, 2, 1, 1, tzinfo=UTC)
        assert [event.billed_until for event in events[6:9]] == [None] * 3

    def test_the_basis_is_said(self) -> None:
        """Which of the two costs was summed stands in the notes."""
        assert "EffectiveCost" in read_focus(bill({})).notes[0]
        assert "BilledCost" in read_focus(bill({}), "billed").notes[0]


class TestReadingAgain:
    def test_the_same_file_tells_the_same(self) -> None:
        """Ids and contents are those of the first reading."""
        assert read_focus(data("focus-1.0.csv")) == read_focus(data("focus-1.0.csv"))

    @given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.randoms(use_true_random=False))
    def test_the_order_of_rows_does_not_matter(self, costs: list[int], shuffle: random.Random) -> None:
        """Charges equal in everything but their cost are numbered by it, so that a shuffled export has the same events."""
        rows = [{"EffectiveCost": str(cost)} for cost in costs]
        events = {each.event for each in read_focus(bill(*rows)).events}
        shuffle.shuffle(rows)
        assert {each.event for each in read_focus(bill(*rows)).events} == events
        assert sum(event.micro_usd or 0 for event in events) == sum(costs) * 10**6

    @pytest.mark.parametrize("column", sorted(set(IDENTITY) & set(ROW)))
    def test_another_charge_is_another_event(self, column: str) -> None:
        """Whatever tells charges apart changes the id."""
        other = {"ChargePeriodStart": "2027-01-31T00:00:00Z", "ChargePeriodEnd": "2027-02-02T00:00:00Z"}
        other |= {"BillingPeriodStart": "2027-01-01T00:00:00Z"}
        assert only(bill({column: other.get(column, "other")})).id != only(bill({})).id

    @pytest.mark.parametrize("change", [{"EffectiveCost": "1"}, {"Tags": '{"outlay_run": "other"}'}, {"InvoiceId": "INV-1"}])
    def test_what_comes_later_does_not_change_the_charge(self, change: dict[str, str]) -> None:
        """A cost restated, a tag moved, an invoice written: the same charge."""
        assert only(bill(change)).id == only(bill({})).id

    def test_times_may_be_written_otherwise(self) -> None:
        """Without a zone, or in another one, the moment is the same."""
        other = {"ChargePeriodStart": "2027-02-01 00:00:00", "ChargePeriodEnd": "2027-02-01T02:00:00+01:00"}
        assert only(bill(other)) == only(bill({}))


class TestCorrections:
    def test_nothing_new_is_no_correction(self) -> None:
        """An unchanged event needs none."""
        event = only(bill({}))
        assert make_restatement(event, event) is None

    def test_a_second_restatement_supersedes_the_first(self) -> None:
        """Corrections follow one another, back to the first cost included, each with an id of its own."""
        first, other = only(bill({})), only(bill({"EffectiveCost": "40"}))
        second = make_restatement(other, first)
        assert second is not None
        assert make_restatement(other, second) is None
        third = make_restatement(first, second)
        assert third is not None
        assert (third.supersedes, third.micro_usd) == (second.id, first.micro_usd)
        assert len({first.id, second.id, third.id}) == 3

    def test_the_same_restatement_is_one(self) -> None:
        """Told twice, a restatement has one id."""
        first, other = only(bill({})), only(bill({"EffectiveCost": "40"}))
        assert make_restatement(other, first) == make_restatement(other, first)

    def test_a_loss_that_is_no_number_equals_itself(self) -> None:
        """Importing a diverged loss again corrects nothing."""
        event = Event("a", "progress", datetime(2027, 2, 1, tzinfo=UTC), loss=float("nan"))
        again = Event("a", "progress", datetime(2027, 2, 1, tzinfo=UTC), loss=float("nan"))
        assert make_restatement(again, event) is None

    def test_a_charge_that_moved_is_taken_back(self) -> None:
        """A correction without content takes back what was kept of the run it was tagged with before."""
        event = only(bill({}))
        back = make_retraction(event)
        assert (back.type, back.supersedes, back.micro_usd, back.at) == ("correction", event.id, None, event.at)


class TestRows:
    @pytest.mark.parametrize(
        ("row", "words"),
        [
            ({"Tags": "7"}, "no object"),
            ({"Tags": '[["outlay_run"]]'}, "pair"),
            ({"Tags": "[" * 100_000}, "characters"),
            ({"Tags": '{"outlay_run": "' + "x" * 300 + '"}'}, "at most 200"),
            ({"BillingCurrency": ""}, "no currency"),
            ({"ChargePeriodEnd": "2027-02-01T00:00:00Z"}, "not after"),
            ({"ChargePeriodStart": "1027-02-01T00:00:00Z"}, "year 1027"),
            ({"ChargePeriodStart": "0001-01-01T00:00:00+23:00"}, "ISO 8601"),
            ({"EffectiveCost": "NaN"}, "no number"),
            ({"EffectiveCost": "1_0"}, "no number"),
            ({"EffectiveCost": "1e999"}, "no number"),
            ({"EffectiveCost": "12345678901"}, "more than a row can cost"),
            ({"EffectiveCost": "٣"}, "no number"),
        ],
    )
    def test_that_are_refused(self, row: dict[str, str], words: str) -> None:
        """A row that cannot be taken says why, and harms no other."""
        assert words in reason(row)

    @pytest.mark.parametrize(
        "tags",
        [
            '{"user:Outlay-Run": "main-7b"}',
            '{"resourceTags/user:outlay_run": "main-7b"}',
            '{"OUTLAY.RUN": "main-7b", "other": null}',
            '[{"Key": "outlay_run", "Value": "main-7b"}]',
            '{"outlay:run": " main-7b "}',
        ],
    )
    def test_tags_are_read_as_providers_write_them(self, tags: str) -> None:
        """Prefixes, separators and case of a provider's tags do not matter."""
        assert read_focus(bill({"Tags": tags})).events[0].reference == RunReference("main-7b")

    def test_costs_are_rounded_to_the_even_micro_dollar(self) -> None:
        """Half a millionth goes to the even side, so that sums do not drift."""
        costs = ["0.0000005", "0.0000015", "-0.0000025", "1E-7", "+.5"]
        events = [only(bill({"EffectiveCost": cost})) for cost in costs]
        assert [event.micro_usd for event in events] == [0, 2, -2, 0, 500_000]


class TestFiles:
    def test_with_a_byte_order_mark_and_line_ends_of_every_kind(self) -> None:
        """CRLF, LF, and line ends within a quoted cell."""
        row = {"ServiceName": "Größe\nund Art"}
        assert only(b"\xef\xbb\xbf" + bill(row)) == only(bill(row, line_end="\n"))
        assert only(bill(row)).text == "Größe und Art"

    def test_column_names_are_case_blind(self) -> None:
        """Query engines write them in lower case."""
        head, _, rest = bill({}).partition(b"\r\n")
        assert only(head.lower() + b"\r\n" + rest) == only(bill({}))

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "no column BillingCurrency"),
            (b"a,b\n1,2\n", "EffectiveCost"),
            (b"\x1f\x8b\x08", "not UTF-8"),
            ("A,B".encode("utf-16"), "not UTF-8"),
            (b"a\x00b", "byte 0"),
            (bill({}) + b'"open', "row 3"),
            (b"," * 600, "601 columns"),
            (bill({}).replace(b"ResourceId", b"EffectiveCost", 1), "twice"),
        ],
    )
    def test_that_are_no_bills(self, content: bytes, words: str) -> None:
        """What is no bill at all is an error that says what is wrong, and where."""
        with pytest.raises(InvalidRequest, match=words):
            read_focus(content)

    def test_a_row_that_is_cut_off(self) -> None:
        """A row with too few cells is named; the others are taken."""
        imported = read_focus(bill({}) + b"1,2\r\n\r\n")
        assert len(imported.events) == 1
        assert "2 cells" in reasons(imported)[3]

    def test_too_many_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Above the bound the file is refused whole."""
        monkeypatch.setattr(rows, "MAX_ROWS", 2)
        assert len(read_focus(bill({}, {})).events) == 2
        with pytest.raises(InvalidRequest, match="more than 2 rows"):
            read_focus(bill({}, {}, {}))

    @given(st.binary(max_size=200))
    def test_anything_is_read_or_refused(self, content: bytes) -> None:
        """Whatever bytes come, the answer is an import or an error of the caller's."""
        for file in (b"-" + content, bill({}) + content):
            with suppress(InvalidRequest):
                assert_takable(read_focus(file))


class TestParquet:
    def test_tells_what_csv_tells(self) -> None:
        """Text columns as they are in CSV."""
        columns = {name: [value] for name, value in ROW.items()}
        assert only(parquet_bill(columns)) == only(bill({}))

    def test_typed_columns(self) -> None:
        """Decimals, times of any unit, maps and nulls, in several row groups."""
        start = datetime(2027, 2, 1)  # noqa: DTZ001 - as exports write it, without a zone
        columns = {
            "billedcost": pa.array([Decimal("55.04"), None], pa.decimal128(38, 10)),
            "effectivecost": pa.array([38.528, 1.5], pa.float64()),
            "BillingCurrency": ["USD", "USD"],
            "BillingPeriodStart": pa.array([start] * 2, pa.timestamp("ns")),
            "ChargePeriodStart": pa.array([start] * 2, pa.timestamp("s", "UTC")),
            "ChargePeriodEnd": pa.array([start.replace(hour=1)] * 2, pa.timestamp("ns", "Europe/Berlin")),
            "ChargeCategory": pa.array(["Usage", "Usage"]).dictionary_encode(),
            "ResourceId": ["i-0aa1", None],
            "ServiceCategory": ["Compute", None],
            "Tags": pa.array([[("outlay_run", "main-7b")], None], pa.map_(pa.string(), pa.string())),
        }
        columns["ChargePeriodEnd"] = pa.array([start.replace(hour=1)] * 2, pa.timestamp("ms", "UTC"))
        imported = read_focus(parquet_bill(columns, row_group_size=1))
        assert imported.events[0].event == only(bill({}))
        assert not imported.events[1].reference.is_stated

    def test_columns_that_nobody_needs_are_not_unpacked(self) -> None:
        """Hundreds of megabytes in a column of the provider do no harm."""
        columns = {name: [value] * 3 for name, value in ROW.items()} | {"x_Blob": ["b" * 10_000_000] * 3}
        assert len(read_focus(parquet_bill(columns, compression="zstd", use_dictionary=False)).events) == 3

    @pytest.mark.parametrize("nested", [False, True])
    def test_a_bomb_is_refused_before_it_is_unpacked(self, nested: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        """A small file that says it unpacks to more than is taken is not."""
        monkeypatch.setattr(parquet, "MAX_UNPACKED_BYTES", 2**20)
        cell: Any = [("outlay_run", "x" * 2**21)] if nested else "x" * 2**21
        kind = pa.map_(pa.string(), pa.string()) if nested else pa.string()
        columns = {name: [value] for name, value in ROW.items()} | {"Tags": pa.array([cell], kind)}
        content = parquet_bill(columns, compression="zstd", use_dictionary=False)
        assert len(content) < 50_000
        with pytest.raises(InvalidRequest, match="unpacks to"):
            read_focus(content)

    def test_one_long_cell_told_a_thousand_times_is_not_repeated(self) -> None:
        """A dictionary of one long text behind many rows is refused by the text's length, not unpacked row by row."""
        columns = {name: [value] * 2000 for name, value in ROW.items()} | {"Tags": ["x" * 200_000] * 2000}
        content = parquet_bill(columns, compression="zstd")
        assert len(content) < 50_000
        with pytest.raises(InvalidRequest, match="200,000 bytes"):
            read_focus(content)

    def test_too_many_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The number of rows is known before any is read."""
        monkeypatch.setattr(rows, "MAX_ROWS", 2)
        with pytest.raises(InvalidRequest, match="more than 2 rows"):
            read_focus(parquet_bill({name: [value] * 3 for name, value in ROW.items()}))

    @pytest.mark.parametrize("content", [b"PAR1", b"PAR1PAR1", b"PAR1" + b"\xff" * 100 + b"PAR1"])
    def test_what_only_begins_like_one(self, content: bytes) -> None:
        """Four letters make no Parquet file."""
        with pytest.raises(InvalidRequest, match="Parquet file cannot be read"):
            read_focus(content)

    def test_a_reader_that_dies_is_the_files_fault(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Some damaged files abort the process that reads them: that is not ours."""
        monkeypatch.setattr(parquet, "READER", "tests.unit.formats.imports.dying_reader")
        with pytest.raises(InvalidRequest, match="its reader gave up"):
            read_focus(parquet_bill({}))

    def test_a_reader_that_does_not_come_to_an_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nor does a file hold an import up for ever."""
        monkeypatch.setattr(parquet, "MAX_SECONDS", 0.001)
        with pytest.raises(InvalidRequest, match="longer than"):
            read_focus(parquet_bill({}))

    @pytest.mark.parametrize("seed", range(6))
    def test_a_damaged_file_is_read_or_refused(self, seed: int) -> None:
        """Three bytes changed anywhere: an import or an error of the caller's."""
        whole = bytearray(parquet_bill({name: [value] for name, value in ROW.items()}))
        damage = random.Random(seed)
        for _ in range(3):
            whole[damage.randrange(4, len(whole))] = damage.randrange(256)
        with suppress(InvalidRequest):
            assert len(read_focus(bytes(whole)).events) <= 1


class TestFullSample:
    @pytest.fixture
    def sample(self) -> bytes:
        """The thousand rows of three providers, their first tag renamed to the one that names a run."""
        if not SAMPLE.is_dir():
            pytest.skip("needs the FOCUS sample beside the project (../shared/prices/focus-sample)")
        content = (SAMPLE / "focus_1.0_sample_1000.csv").read_bytes()
        return content.replace(b'""application"": ', b'""outlay_run"": ')

    def test_adds_up_to_the_cent(self, sample: bytes) -> None:
        """What is taken is what its rows cost, by both costs, and every row is taken or named."""
        rows: Sequence[Mapping[str, str]] = list(csv.DictReader(io.StringIO(sample.decode())))
        for basis, column in (("effective", "EffectiveCost"), ("billed", "BilledCost")):
            imported = read_focus(sample, "effective" if basis == "effective" else "billed")
            assert_takable(imported)
            assert len(imported.events) + len(imported.unmatched) == len(rows) == 1000
            taken = sum(Decimal(rows[each.row - 2][column]) for each in imported.events)
            assert sum(each.event.micro_usd or 0 for each in imported.events) == pytest.approx(float(taken * 10**6), abs=500)
            assert sum(each.reference.is_stated for each in imported.events) == sum("outlay_run" in row["Tags"] for row in rows)

    def test_every_charge_is_told_apart(self, sample: bytes) -> None:
        """No two of its rows are one charge."""
        assert {each.event.id.rpartition("-")[2] for each in read_focus(sample).events} == {"0"}

    def test_the_columns_that_are_read_are_the_specifications(self) -> None:
        """Every column looked for is one of FOCUS 1.2, or one that 1.3 added."""
        if not SAMPLE.is_dir():
            pytest.skip("needs the FOCUS sample beside the project (../shared/prices/focus-sample)")
        with (SAMPLE / "FOCUS_1.2_columns.csv").open(newline="") as file:
            known = {row["ColumnId"] for row in csv.DictReader(file)}
        assert known >= WANTED - {"AllocatedTags", "AllocatedMethodId", "AllocatedResourceId"}
