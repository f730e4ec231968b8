"""Tables of a served model."""

from __future__ import annotations

from service.formats.documents.cells import Column
from service.formats.documents.results.tables import (
    POINTS,
    Answer,
    NamedRange,
    RangeBars,
    ResultTable,
    Value,
    named_range,
    offer_cells,
    quantities,
    quantity_row,
)
from service.formats.headline import short_name

OPTION_COLUMNS = (
    *(Column("rank", 8, "whole"), Column("accelerator", 16), Column("of a replica", 10, "whole"), Column("format", 10)),
    *(Column("provider", 18), Column("region", 18), Column("instance type", 26), Column("pricing", 18, "choice")),
    *(Column("USD per accelerator-hour", 14, "usd"), Column("first token, s", 12, "number"), Column("later tokens, ms", 12, "number")),
    *(Column(f"USD per million tokens, {point}", 14, "number") for point in POINTS),
)
UNPRICED: Answer = {"usd_per_million_tokens": None, "usd_per_month": None}


def tables(answer: Answer) -> list[ResultTable]:
    """Main figures of the best option, and all options."""
    best = answer["best"]
    cost, fleet = best["cost"] or UNPRICED, best["fleet"]
    rows = [
        quantity_row("cost of a million tokens", cost["usd_per_million_tokens"], "USD"),
        quantity_row("cost of a month", cost["usd_per_month"], "USD"),
        quantity_row("accelerators", fleet and fleet["accelerators"], ""),
        quantity_row("output tokens of a replica", best["throughput"]["output_tokens_per_s"], "1/s"),
        quantity_row("time to the first token", best["latency"]["time_to_first_token_s"], "s"),
        quantity_row("time for each later token", best["latency"]["time_per_output_token_ms"], "ms"),
    ]
    options = [_option(option) for option in (best, *answer["alternatives"])]
    return [quantities(rows), ResultTable("options", "Options", OPTION_COLUMNS, options)]


def _option(option: Answer) -> tuple[Value, ...]:
    configuration, latency = option["configuration"], option["latency"]
    usd = (option["cost"] or UNPRICED)["usd_per_million_tokens"]
    return (
        *(option["rank"], short_name(configuration["accelerator"]), configuration["accelerators"], configuration["format"]),
        *offer_cells(option["price"] or {}),
        *(latency[name]["p50"] for name in ("time_to_first_token_s", "time_per_output_token_ms")),
        *(None if usd is None else usd[point] for point in POINTS),
    )


def range_bars(answer: Answer) -> RangeBars:
    """The costs of a million tokens."""
    bars: list[NamedRange] = []
    for option in (answer["best"], *answer["alternatives"]):
        configuration = option["configuration"]
        name = f"{option['rank']}. {configuration['accelerators']} {short_name(configuration['accelerator'])}, {configuration['format']}"
        bars += named_range(name, (option["cost"] or UNPRICED)["usd_per_million_tokens"])
    return RangeBars("USD per million tokens", tuple(bars))
