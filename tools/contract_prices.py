"""The project's table of published contract prices, written from a survey's rows: `python -m tools.contract_prices contract_prices.csv`.

Rows of one seller, accelerator, term, date and source become one with their lowest, median and highest price. Left out are rows that nobody
read in their source (`verified` is not `seen`), rows without a price or an accelerator, and prices off a list price that no longer holds.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

FILE = Path(__file__).parents[1] / "service" / "presets" / "data" / "contract_prices.toml"
ROWS_BEGIN = "# Rows: written by `python -m tools.contract_prices`, not by hand.\n"
SUPERSEDED = ("unspecified_hyperscaler",)
"""Sellers whose rows are left out: a price of 2025 off AWS's list price of 98.32 USD, which held until June 2025."""
TERMS: Mapping[str, str] = {"12": "1y", "36": "3y"}
PRESS = ("SECONDARY", "administraciondesistemas.com", "neowin.net")
QUOTED = re.compile(r'(?:[:\s]+|(?<=\())"[^"]*"(?:;\s*)?')
QUARTER = re.compile(r"(\d{4})-Q([1-4])")

Row = Mapping[str, str]
Key = tuple[str, ...]


def published_rows(rows: Iterable[Row]) -> Iterator[dict[str, object]]:
    """The rows of the table, by accelerator, term, seller and date."""
    groups: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        if is_usable(row):
            groups[_key(row)].append(row)
    for key in sorted(groups):
        yield _summed_up(key, groups[key])


def is_usable(row: Row) -> bool:
    """Whether the row was read in its source, and has an accelerator and a price that still says something."""
    priced = any(row[name] for name in ("usd_per_accelerator_hour", "usd_low", "usd_high"))
    return bool(row["verified"] == "seen" and row["accelerator"] and priced and row["provider"] not in SUPERSEDED)


def write(rows: Iterable[Mapping[str, object]], file: Path) -> None:
    """Write the rows after the head of the table."""
    head, _, _ = file.read_text(encoding="utf-8").partition(ROWS_BEGIN)
    tables = ("[[price]]\n" + "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in row.items()) for row in rows)
    file.write_text(head + ROWS_BEGIN + "\n" + "\n".join(tables), encoding="utf-8", newline="\n")


def _key(row: Row) -> Key:
    term = "capacity_block" if row["pricing"] == "capacity_block" else TERMS.get(row["term_months"], "other")
    dated, source = _date(row["observed_at"]), QUOTED.sub("", row["source"]).strip()
    return row["accelerator"], term, row["provider"], dated, _kind(row), row["term_months"], row["upfront"], source


def _kind(row: Row) -> str:
    if row["notes"].startswith("DERIVED"):
        return "derived"
    if row["provider"] == "neocloud_survey":
        return "market_level"
    return "press" if any(word in f"{row['source']} {row['notes']}" for word in PRESS) else "reserved_list"


def _date(text: str) -> str:
    """The date; of a quarter its first month."""
    return QUARTER.sub(lambda found: f"{found[1]}-{3 * int(found[2]) - 2:02}", text)


def _summed_up(key: Key, rows: Sequence[Row]) -> dict[str, object]:
    accelerator, term, provider, observed_at, kind, months, upfront, source = key
    exact = sorted(float(row["usd_per_accelerator_hour"]) for row in rows if row["usd_per_accelerator_hour"])
    ends = [float(row[name]) for row in rows for name in ("usd_low", "usd_high") if row[name]]
    return {
        "provider": provider,
        "accelerator": accelerator,
        "term": term,
        **({"term_months": float(months)} if months else {}),
        "kind": kind,
        "low_usd_per_accelerator_hour": min(exact + ends),
        **({"mid_usd_per_accelerator_hour": round(median(exact), 4)} if exact else {}),
        "high_usd_per_accelerator_hour": max(exact + ends),
        "prices": len(rows),
        **({"upfront": upfront} if upfront else {}),
        "observed_at": observed_at,
        "source": source,
    }


def main(path: str) -> None:
    """Write the table from a survey's CSV."""
    with Path(path).open(encoding="utf-8", newline="") as file:
        write(published_rows(csv.DictReader(file)), FILE)


if __name__ == "__main__":
    main(sys.argv[1])
