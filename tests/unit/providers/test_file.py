"""Price sheets and negotiated price books, as files on this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from providers.file import PriceFiles
from providers.file.sheets import file_id
from providers.offer import Fetched, OfferTerms, ProviderError
from providers.testing import NOW
from tests.unit.providers.conformance import Conformance

ROW: Mapping[str, Any] = {
    "provider": "coreweave",
    "region": "us-east-04",
    "instance_type": "gd-8xh100ib",
    "accelerator": "H100-80GB",
    "accelerator_count": 8,
    "pricing": "reserved_1y",
    "usd_per_accelerator_hour": "2.13",
}
BOOK: Mapping[str, Any] = {
    "book": "framework agreement 2026",
    "source": "contract 4711",
    "observed_at": "2026-10-01",
    "currency": "USD",
    "prices": [ROW, {**ROW, "pricing": "on_demand", "usd_per_hour": 24, "usd_per_accelerator_hour": None}],
    "discounts": [
        {"name": "enterprise", "percent": 12.5, "provider": "aws"},
        {"name": "volume", "percent": "3", "provider": "aws", "region": "us-east-1", "pricing": "spot", "accelerator": "a100-80gb"},
    ],
}
CSV = """provider,region,instance_type,accelerator,accelerator_count,pricing,usd_per_hour,observed_at,source
lambda,us-east-1,gpu_8x_h100_sxm5,H100-80GB,8,on_demand,23.92,2026-11-01,quote of 1 November
azure,westeurope,"ND, 96",A100-80GB,8,reserved_3y,14.69,,
"""
YAML = """
book: research
team: vision
prices:
  - {provider: gcp, region: us-central1, instance_type: a3-highgpu-8g, accelerator: NVIDIA-H100-80GB-SXM, accelerator_count: 8,
     pricing: spot, usd_per_hour: 19.10, observed_at: 2026-11-02}
"""


class TestPriceFiles(Conformance):
    """What the operator's files become."""

    provider = PriceFiles

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        """A folder with one file of each kind."""
        self.path = tmp_path
        self.write("book.json", json.dumps(BOOK))
        self.write("list.csv", CSV)
        self.write("team.yaml", YAML)
        self.write("notes.txt", "not a price file")
        self.env = {"OUTLAY_PRICE_FILES": str(tmp_path)}  # type: ignore[misc]  # of this test alone

    def write(self, name: str, content: str) -> Path:
        """A file in the folder."""
        path = self.path / name
        path.write_text(content, encoding="utf-8")
        return path

    def of(self, *paths: Path) -> Fetched:
        """What these files alone bring."""
        return self.make({"OUTLAY_PRICE_FILES": os.pathsep.join(map(str, paths))}).fetch()

    def of_rows(self, *rows: object) -> Fetched:
        """What a sheet of these rows brings."""
        return self.of(self.write("rows.json", json.dumps(rows)))

    def reason(self, row: object) -> str:
        """Why the row is refused, beside a good one."""
        (rejected,) = self.of_rows({**ROW, "region": "elsewhere"}, row).rejected
        assert rejected.row == "rows.json: row 2"
        return rejected.reason

    def test_a_folder_brings_all_price_files_in_it(self) -> None:
        """CSV, JSON and YAML; other files are none of ours."""
        assert sorted({offer.provider for offer in self.fetched().offers}) == ["azure", "coreweave", "lambda"]
        assert [(team, [offer.provider for offer in own.offers]) for team, own in self.fetched().teams.items()] == [("vision", ["gcp"])]
        assert self.fetched().rejected == ()

    def test_files_and_folders_stand_one_after_the_other(self) -> None:
        """Separated as paths are on this system."""
        fetched = self.of(self.path / "list.csv", self.path / "book.json")
        assert [offer.provider for offer in fetched.offers] == ["lambda", "azure", "coreweave", "coreweave"]

    def test_prices_are_of_the_instance_or_of_one_accelerator(self) -> None:
        """Both exactly."""
        fetched = self.of(self.path / "book.json")
        assert {offer.pricing: offer.usd_per_hour for offer in fetched.offers} == {
            "reserved_1y": Decimal("17.04"),
            "on_demand": Decimal(24),
        }

    def test_a_row_is_dated_and_sourced_by_itself_else_by_its_book_else_by_its_file(self) -> None:
        """Every price can be traced."""
        found = {offer.provider: (offer.observed_at, offer.source) for offer in self.fetched().offers}
        changed = datetime.fromtimestamp((self.path / "list.csv").stat().st_mtime, UTC)
        assert found == {
            "lambda": (datetime(2026, 11, 1, tzinfo=UTC), "quote of 1 November"),
            "coreweave": (datetime(2026, 10, 1, tzinfo=UTC), "contract 4711"),
            "azure": (min(changed, NOW), "list.csv"),
        }

    def test_the_offers_of_a_book_say_which_it_is(self) -> None:
        """And in which file it stands; a sheet is no book."""
        found = {offer.provider: offer.extras for offer in self.fetched().offers}
        book, sheet = (file_id(self.path / name) for name in ("book.json", "list.csv"))
        assert found["coreweave"] == {"file": book, "book": "framework agreement 2026"}
        assert found["lambda"] == {"file": sheet}
        assert {discount.file for discount in self.fetched().discounts} == {book}

    def test_files_of_one_name_are_told_apart_without_showing_their_folders(self) -> None:
        """By a mark behind the name, which is text whatever bytes the name has."""
        here, there, odd = (file_id(self.path / name) for name in ("a/book.json", "b/book.json", os.fsdecode(b"b\xffok.json")))
        assert here != there
        assert here.partition("#")[0] == there.partition("#")[0] == "book.json"
        assert str(self.path) not in here
        assert odd.encode().startswith(b"b?ok.json#")

    def test_discounts_keep_the_order_of_their_book(self) -> None:
        """Percents become shares, aliases canonical names; what is not said holds for all."""
        first, second = self.fetched().discounts
        assert (first.name, first.share, first.provider, first.region, first.pricing) == ("enterprise", Decimal("0.125"), "aws", None, None)
        assert (second.name, second.share, second.region, second.pricing) == ("volume", Decimal("0.03"), "us-east-1", "spot")
        assert second.accelerator == "NVIDIA-A100-80GB-SXM"

    def test_a_book_of_discounts_alone_is_enough(self) -> None:
        """Many contracts are a percentage."""
        fetched = self.of(self.write("discounts.json", json.dumps({"discounts": BOOK["discounts"]})))
        assert (fetched.offers, len(fetched.discounts)) == ((), 2)

    def test_another_discount_is_another_snapshot(self) -> None:
        """An estimate that names it can be repeated."""
        names = set()
        for percent in (10, 20):
            book = {"discounts": [{"name": "a", "percent": percent}]}
            names.add(self.of(self.write("discounts.json", json.dumps(book))).snapshot)
        assert len(names) == 2

    @pytest.mark.parametrize("percent", [0, 100, -5, "ten", None, True])
    def test_a_discount_that_is_none_is_named(self, percent: object) -> None:
        """The others stand."""
        book = {**BOOK, "discounts": [{"name": "odd", "percent": percent}, {"name": "good", "percent": 5}]}
        fetched = self.of(self.write("odd.json", json.dumps(book)))
        assert [discount.name for discount in fetched.discounts] == ["good"]
        assert [rejected.row for rejected in fetched.rejected] == ["odd.json: discounts 1"]

    def test_a_teams_prices_and_discounts_are_apart_from_everybodys(self) -> None:
        """Also rows that are wrong, and where nothing is everybody's."""
        wrong = {**BOOK, "team": "vision", "prices": [ROW, {**ROW, "region": ""}]}
        fetched = self.of(self.write("team.json", json.dumps(wrong)))
        assert (fetched.offers, fetched.discounts, fetched.rejected) == ((), (), ())
        own = fetched.teams["vision"]
        assert ([offer.usd_per_hour for offer in own.offers], [one.name for one in own.discounts]) == (
            [Decimal("17.04")],
            ["enterprise", "volume"],
        )
        assert [rejected.row for rejected in own.rejected] == ["team.json: prices 2"]

    def test_teams_may_have_other_prices_of_the_same_thing(self) -> None:
        """A second book of the same team may not."""
        for name, team, usd in (("a", None, 1), ("b", "vision", 2), ("c", "speech", 3), ("d", "vision", 4)):
            book = {"prices": [{**ROW, "usd_per_accelerator_hour": usd}]} | ({"team": team} if team else {})
            self.write(f"{name}.json", json.dumps(book))
        fetched = self.of(*(self.path / f"{name}.json" for name in "abcd"))
        assert [offer.usd_per_hour for offer in fetched.offers] == [8]
        found = {team: [offer.usd_per_hour for offer in own.offers] for team, own in fetched.teams.items()}
        assert found == {"vision": [16], "speech": [24]}
        assert [rejected.row for rejected in fetched.teams["vision"].rejected] == ["d.json: prices 1"]

    @pytest.mark.parametrize("code", ["DE", "DEU", "de"])
    def test_a_row_may_say_in_which_country_it_stands(self, code: str) -> None:
        """By either code of ISO 3166-1: names of regions do not tell."""
        (offer,) = self.of_rows({**ROW, "country": code}).offers
        assert offer.extras["country"] == "DEU"

    def test_a_row_may_state_the_terms_of_its_commitment(self) -> None:
        """Any length, what is paid at once, until when it can be had, from how many on, and whether capacity is held."""
        terms = {"term_hours": 4380, "upfront_share": "0.25", "valid_until": "2027-01-31", "minimum_accelerators": 64, "capacity": "yes"}
        (offer,) = self.of_rows({**ROW, "pricing": "reserved", **terms}).offers
        assert offer.term_hours == 4380
        assert offer.terms == OfferTerms(4380.0, 0.25, date(2027, 1, 31), 64, None, capacity=True)

    def test_prices_of_other_terms_stand_side_by_side(self) -> None:
        """A tier and a longer term are other things to buy, not second prices of the same."""
        rows = [
            {**ROW, "pricing": "reserved", "term_hours": hours, "minimum_accelerators": least}
            for hours, least in ((730, 8), (730, 64), (4380, 8))
        ]
        assert len(self.of_rows(*rows).offers) == 3

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"pricing": "reserved"}, "reserved needs the length of its term"),
            ({"pricing": "spot", "term_hours": 10}, "spot is a price by the hour and has no term"),
            ({"term_hours": 0}, "a term is above 0"),
            ({"upfront_share": 25}, "an upfront share is between 0 and 1, not 25"),
            ({"valid_until": "2026-01-31"}, "valid_until is 2026-01-31: the price has ended"),
            ({"valid_until": "31.01.2027"}, "valid_until is '31.01.2027' where a date was expected"),
            ({"committed_usd": -1}, "a committed spend is above zero"),
            ({"capacity": "maybe"}, "capacity is 'maybe' where true or false was expected"),
            ({"usd_per_accelerator_hour": 0}, "unknown, not free"),
            ({"usd_per_accelerator_hour": -1}, "unknown, not free"),
            ({"usd_per_accelerator_hour": "2,13"}, "where a number was expected"),
            ({"usd_per_accelerator_hour": None}, "one of usd_per_hour and usd_per_accelerator_hour"),
            ({"usd_per_hour": 17.04}, "one of usd_per_hour and usd_per_accelerator_hour"),
            ({"accelerator": "Z9000"}, "accelerator 'Z9000' names none that is known"),
            ({"accelerator": "H100"}, "or more than one: write it like NVIDIA-H100-80GB-SXM"),
            ({"accelerator_count": 0}, "accelerator_count is 0"),
            ({"pricing": "monthly"}, "pricing is 'monthly'; known: on_demand, spot, reserved_1y, reserved_3y"),
            ({"region": ""}, "region is missing"),
            ({"country": "Germany"}, "country is 'Germany' where a code of ISO 3166-1 was expected"),
            ({"country": "XX"}, "country is 'XX' where a code"),
            ({"observed_at": "last week"}, "observed_at is 'last week' where a date was expected"),
            ({"observed_at": "2027-01-01"}, "still to come"),
            ({"usd_per_huor": 1}, "unknown field 'usd_per_huor'; known: provider, region"),
            ({"region": "elsewhere"}, "the same thing is listed twice, at 17.04 and at 17.04"),
        ],
    )
    def test_a_wrong_row_is_named_with_its_reason(self, change: dict[str, object], said: str) -> None:
        """Nothing is guessed, and the others stand."""
        assert said in self.reason({**ROW, **change})

    def test_a_row_that_is_no_object_is_named(self) -> None:
        """As a number in the place of a row."""
        assert self.reason(17) == "an object of named fields was expected"

    def test_a_wrong_line_of_a_csv_file_is_named_by_its_number(self) -> None:
        """As an editor shows it, whatever stands in quotes before."""
        text = (
            CSV.replace('"ND, 96"', '"ND\n96"')
            + "lambda,us-east-1,gpu_1x,H100-80GB,1,on_demand,0,,\nlambda,a,b,H100-80GB,1,spot,1,,,surplus\n"
        )
        fetched = self.of(self.write("list.csv", text))
        assert [rejected.row for rejected in fetched.rejected] == [f"list.csv: line {number}" for number in (4, 5, 6)]
        assert "instance_type holds a character that no text may have" in fetched.rejected[0].reason
        assert "unknown field 'a cell too many'" in fetched.rejected[2].reason

    def test_a_second_price_of_the_same_thing_is_refused(self) -> None:
        """Which one holds must not depend on chance."""
        for book, usd in (("old", 2), ("new", 3)):
            self.write(f"{book}.json", json.dumps({"book": book, "prices": [{**ROW, "usd_per_accelerator_hour": usd}]}))
        fetched = self.of(self.path / "old.json", self.path / "new.json")
        assert [offer.extras["book"] for offer in fetched.offers] == ["old"]
        assert [(rejected.row, rejected.reason) for rejected in fetched.rejected] == [
            ("new.json: prices 1", "the same thing is listed twice, at 16 and at 24")
        ]

    def test_a_teams_book_without_a_price_is_as_none(self) -> None:
        """What it agreed on has ended."""
        fetched = self.of(self.write("a.json", json.dumps({"team": "vision", "prices": []})))
        assert (fetched.offers, fetched.teams) == ((), {})

    def test_the_same_price_file_twice_gives_one_price(self) -> None:
        """Whichever file comes first holds, and the other row is named."""
        fetched = self.of(self.path / "list.csv", self.path / "list.csv")
        assert (len(fetched.offers), len(fetched.rejected)) == (2, 2)

    @pytest.mark.parametrize(
        ("name", "content", "said"),
        [
            ("list.json", "[{", "is no JSON"),
            ("list.json", '[{"usd_per_hour": NaN}]', "NaN is no JSON"),
            ("list.json", "17", "a number where a list was expected"),
            ("list.yaml", "prices: [", "is no YAML"),
            ("list.yaml", "a: b", "unknown field 'a'; known: book, team"),
            ("list.yaml", "prices: 17", "a number where a list was expected"),
            ("list.yaml", "{currency: EUR, prices: []}", "its currency is EUR: prices are stated in USD"),
            ("list.yaml", "{observed_at: soon, prices: []}", "observed_at is 'soon'"),
            ("list.yaml", f"{{team: {'x' * 101}, prices: []}}", "no team's name has more than 100 characters"),
            ("list.csv", 'provider\n"open', "is no CSV"),
            ("list.csv", "provider,provider\na,b\n", "two of its columns have the same name"),
            ("list.xlsx", "", "price files end in .csv, .json, .yaml, .yml"),
            ("list.csv", "", "the price files hold no price"),
        ],
    )
    def test_a_file_that_is_no_price_file_is_an_error_that_names_it(self, name: str, content: str, said: str) -> None:
        """The last good prices stay in use."""
        with pytest.raises(ProviderError) as caught:
            self.of(self.write(name, content))
        assert said in str(caught.value)
        assert name in str(caught.value) or "hold no price" in said

    def test_bytes_that_are_no_text_are_an_error(self) -> None:
        """As a spreadsheet saved under the wrong name."""
        (self.path / "list.csv").write_bytes(b"PK\x03\x04\xff\xfe")
        with pytest.raises(ProviderError, match=r"list\.csv is no CSV"):
            self.of(self.path / "list.csv")

    def test_a_missing_file_is_an_error_that_names_it(self) -> None:
        """Prices that were agreed on must not vanish silently."""
        with pytest.raises(ProviderError, match=r"gone\.csv cannot be read: No such file or directory"):
            self.of(self.path / "gone.csv")

    def test_a_file_that_cannot_be_read_is_named_and_the_others_count(self) -> None:
        """A slip in one must not cost the prices of all."""
        fetched = self.of(self.path / "list.csv", self.path / "gone.csv", self.write("cut.json", "[{"), self.path / "team.yaml")
        assert ([offer.provider for offer in fetched.offers], list(fetched.teams)) == (["lambda", "azure"], ["vision"])
        gone, cut = fetched.unread
        assert (gone.row, cut.row) == (file_id(self.path / "gone.csv"), file_id(self.path / "cut.json"))
        assert "gone.csv cannot be read: No such file or directory" in gone.reason
        assert "cut.json is no JSON" in cut.reason

    def test_what_is_wrong_with_each_is_told_where_nothing_is_left(self) -> None:
        """Of files as of rows."""
        wrong = self.write("rows.json", json.dumps([{**ROW, "pricing": "free"}]))
        with pytest.raises(ProviderError, match=r"gone\.csv cannot be read: .*; none of 1 rows was .*: rows\.json: row 1"):
            self.of(self.path / "gone.csv", wrong)

    def test_an_old_sheet_is_told_by_its_date(self) -> None:
        """A contract's prices hold for a year."""
        assert PriceFiles.fresh_for == timedelta(days=365)
        (offer,) = self.of_rows({**ROW, "observed_at": "2024-05-01T12:00:00+02:00"}).offers
        assert offer.observed_at == datetime(2024, 5, 1, 10, tzinfo=UTC)
