"""Tables of a comparison."""

from __future__ import annotations

from service.formats.documents.cells import Column
from service.formats.documents.results.tables import POINTS, Answer, NamedRange, RangeBars, ResultTable, Value, named_range, offer_cells
from service.formats.field_words import choice_words
from service.formats.headline import short_name

OPTION_COLUMNS = (
    *(Column("rank", 8, "whole"), Column("provider", 18), Column("region", 18), Column("instance type", 26)),
    *(Column("pricing", 18, "choice"), Column("USD per accelerator-hour", 14, "usd"), Column("accelerator", 16)),
    *(Column("count", 10, "whole"), Column("hours, p50", 14, "number"), *(Column(f"USD, {point}", 16, "whole") for point in POINTS)),
    Column("feasible", 12, "choice"),
)
OWNED_COLUMNS = (
    *(Column("owned", 24), Column("accelerator", 26), Column("count", 10, "whole"), Column("capex, USD", 18, "usd")),
    Column("USD per delivered accelerator-hour", 18, "usd"),
)
MOST_BARS = 10


def tables(answer: Answer) -> list[ResultTable]:
    """Options and owned hardware."""
    owned = [
        (
            *(site["name"], site["accelerator"], site["count"], site["capex_usd"]),
            site["usd_per_delivered_accelerator_hour"],
        )
        for site in answer["on_prem"]
    ]
    return [
        ResultTable("options", "Options", OPTION_COLUMNS, [_option(option) for option in answer["options"]]),
        ResultTable("owned", "Owned hardware", OWNED_COLUMNS, owned),
    ]


def _option(option: Answer) -> tuple[Value, ...]:
    offer, hours, usd = option["offer"], option["time"]["wall_clock_hours"], option["cost_usd"]
    cost = [None if usd is None else usd[point] for point in POINTS]
    return (
        *(option["rank"], *offer_cells(offer), short_name(offer["accelerator"]), option["count"]),
        *(None if hours is None else hours["p50"], *cost),
        "yes" if option["feasible"] else ", ".join(option["reasons"]) or "no",
    )


def range_bars(answer: Answer) -> RangeBars:
    """The costs of the first options."""
    bars: list[NamedRange] = []
    for option in answer["options"][:MOST_BARS]:
        offer = option["offer"]
        place = " ".join(filter(None, (offer["provider"], offer["region"], choice_words(offer["pricing"]))))
        bars += named_range(f"{option['rank']}. {place}, {option['count']} {short_name(offer['accelerator'])}", option["cost_usd"])
    return RangeBars("USD", tuple(bars))
