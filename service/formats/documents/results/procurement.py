"""Tables of buying or renting."""

from __future__ import annotations

from service.formats.documents.cells import Column
from service.formats.documents.results.tables import POINTS, Answer, RangeBars, ResultTable, Value, named_range, quantities, quantity_row

OPTION_COLUMNS = (
    *(Column("rank", 8, "whole"), Column("option", 40), Column("kind", 12), Column("accelerators", 12, "whole")),
    *(Column(f"NPV, USD, {point}", 18, "whole") for point in POINTS),
    *(Column("USD per used accelerator-hour", 14, "usd"), Column("probability best", 12, "share")),
    *(Column("price, USD per accelerator-hour", 14, "usd"), Column("valid until", 12), Column("ruled out", 40)),
)
YEAR_COLUMNS = (
    *(Column("option", 40), Column("year", 8, "whole"), Column("cash, USD", 18, "usd"), Column("discounted, USD", 18, "usd")),
    Column("used accelerator-hours", 20, "whole"),
)
FLIP_COLUMNS = (Column("input", 40), Column("taken", 18, "number"), Column("turns the verdict at", 18, "number"))
MOST_SHOWN = 10
"""Options whose years and ranges are shown."""


def tables(answer: Answer) -> list[ResultTable]:
    """The verdict, all options, the years of the first, and what turns the verdict."""
    verdict = answer["verdict"]
    rows = [
        quantity_row(f"saved by {verdict['choice']} against {verdict['against']}", verdict["npv_saved_usd"], "USD"),
        quantity_row(f"probability that {verdict['choice']} is best", verdict["probability_best"], "share"),
        quantity_row("probability that owning is best", verdict["probability_owning_best"], "share"),
        quantity_row("break-even utilisation", verdict["break_even_utilisation"], "share"),
        quantity_row("break-even month", verdict["break_even_month"], "months"),
    ]
    flips = [(flip["variable"], flip["from"], flip["to"]) for flip in verdict["flips"]]
    return [
        quantities(rows),
        ResultTable("options", "Options", OPTION_COLUMNS, [_option(option) for option in answer["options"]]),
        ResultTable("years", "Cash by year", YEAR_COLUMNS, _years(answer)),
        ResultTable("flips", "What turns the verdict", FLIP_COLUMNS, flips),
    ]


def _option(option: Answer) -> tuple[Value, ...]:
    offer = option["offer"] or {"usd_per_accelerator_hour": None, "valid_until": None}
    return (
        *(option["rank"], option["name"], option["kind"], option["count"]),
        *(option["npv_usd"][point] for point in POINTS),
        *(option["usd_per_used_accelerator_hour"], option["probability_best"]),
        *(offer["usd_per_accelerator_hour"], offer["valid_until"], option["ruled_out"]),
    )


def _years(answer: Answer) -> list[tuple[Value, ...]]:
    names = ("year", "cash_usd", "discounted_usd", "used_accelerator_hours")
    return [(option["name"], *(year[name] for name in names)) for option in _in_verdict(answer) for year in option["years"]]


def range_bars(answer: Answer) -> RangeBars:
    """The net present costs of the first options of the verdict."""
    bars = [bar for option in _in_verdict(answer) for bar in named_range(option["name"], option["npv_usd"])]
    return RangeBars("USD, present value", tuple(bars))


def _in_verdict(answer: Answer) -> list[Answer]:
    """The first options that take part in the verdict."""
    return [option for option in answer["options"] if option["ruled_out"] is None][:MOST_SHOWN]
