"""The evidence pack as sections of text and tables, in the order in which a budget owner reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import shorten

from service.formats.documents.procurement.model import KIND_WORDS, Answer, CashModel, DetailedOption
from service.formats.documents.procurement.words import (
    bands_sentence,
    certainty,
    curve_finding,
    grid_title,
    horizon,
    other_side,
    price_text,
    value_text,
    variable_text,
)
from service.formats.documents.sections import DocumentSection, DocumentTable, filled_sections
from service.formats.documents.text import text
from service.formats.headline import money
from service.formats.option_words import name_words, option_words

HOURS_PER_MONTH = 730
MONTHS_PER_YEAR = 12


def sections(model: CashModel) -> tuple[DocumentSection, ...]:
    """Everything but the verdict's sentence; empty sections are left out."""
    answer = model.answer
    return filled_sections(
        DocumentSection("curves", curve_finding(model), tuple(filter(None, [bands_sentence(model)])), (options_table(model),)),
        DocumentSection("years", "The money by year, USD", tables=(years_table(model, 1.0),)),
        DocumentSection("flips", "What would change the verdict", _grid_sentence(answer), (flips_table(answer), *_grid_tables(answer))),
        DocumentSection("certainty", "How sure this is", certainty_sentences(answer)),
        DocumentSection("warnings", "Check first", tuple(answer["warnings"])),
        DocumentSection("quotes", "Who asks what, and until when", tables=(quotes_table(model),)),
        DocumentSection("assumptions", "What was assumed", tables=(assumptions_table(answer),)),
    )


def footer(answer: Answer) -> str:
    """Prices and engine that the figures were made with."""
    made = f"Prices: {answer['price_snapshot']}. Engine: {answer['engine_version']}. {answer['trials']:,} trials, seed {answer['seed']}."
    return f"{made} Ranges are p10 to p90. Amounts are discounted monthly to the start unless they say otherwise."


def options_table(model: CashModel) -> DocumentTable:
    """The verdict's options and the best of each kind."""
    rows = [
        (
            shown.words,
            KIND_WORDS[shown.kind],
            f"{shown.option['count']:,}",
            money(shown.option["npv_usd"]["p50"]),
            _likely(shown.option["npv_usd"]),
            _per_hour(shown.option["usd_per_used_accelerator_hour"]),
            f"{shown.option['probability_best']:.0%}",
        )
        for shown in model.shown
    ]
    head = ("option", "kind", "accelerators", "cost, discounted", "likely", "USD per used hour", "cheapest in")
    return DocumentTable(head, rows, frozenset(range(2, len(head))))


def _likely(npv: Answer) -> str:
    low, high = money(npv["p10"]), money(npv["p90"])
    return "fixed" if low == high else f"{low}–{high}"


def _per_hour(usd: float | None) -> str:
    return "nothing used" if usd is None else f"{usd:.2f}"


def years_table(model: CashModel, unit_usd: float) -> DocumentTable:
    """Cash by year of the same options in a unit, and the hours that are served."""
    count = max(len(shown.option["years"]) for shown in model.shown)
    rows = [_year_row(shown, count, unit_usd) for shown in model.shown]
    hours = [year["accelerator_hours"] for year in model.answer["demand"]["years"]]
    cells = [*(_amount(each, unit_usd) for each in hours), *[""] * (count - len(hours)), _amount(sum(hours), unit_usd), ""]
    rows.append(("accelerator-hours demanded", *cells))
    head = ("paid less received", *(f"year {year + 1}" for year in range(count)), "in all", "discounted")
    return DocumentTable(head, rows, frozenset(range(1, len(head))))


def curves_table(model: CashModel) -> DocumentTable:
    """Discounted cash paid by the end of each year, of the options that the chart of it has, with the ends of its bands."""
    ends = [*range(0, model.last_month, MONTHS_PER_YEAR), model.last_month]
    rows = [(shown.words, *(f"{model.cumulative(shown)[month]:,.0f}" for month in ends)) for shown in model.shown]
    for curve in model.bands:
        words = name_words(model.answer, curve["option"])
        rows += [(f"{words}, {end}", *(f"{curve[f'{end}_usd'][month]:,.0f}" for month in _within(ends, curve))) for end in ("p10", "p90")]
    head = ("paid by the end of month, USD", *map(str, ends))
    return DocumentTable(head, rows, frozenset(range(1, len(head))))


def _within(months: Sequence[int], curve: Answer) -> Iterable[int]:
    """The months, none beyond the curve's last: nothing is paid after it."""
    return (min(month, len(curve["p50_usd"]) - 1) for month in months)


def _amount(amount: float, unit: float) -> str:
    return f"{amount / unit:,.2f}" if unit > 1 else f"{amount:,.0f}"


def _year_row(shown: DetailedOption, count: int, unit_usd: float) -> tuple[str, ...]:
    years = shown.option["years"]
    cash = [year["cash_usd"] for year in years] + [0.0] * (count - len(years))
    discounted = sum(year["discounted_usd"] for year in years)
    return (shown.words, *(_amount(usd, unit_usd) for usd in (*cash, sum(cash), discounted)))


def flips_table(answer: Answer) -> DocumentTable:
    """One input at a time, the least change first."""
    rows = [
        (variable_text(flip["variable"]), value_text(flip["variable"], flip["from"]), value_text(flip["variable"], flip["to"]))
        for flip in answer["verdict"]["flips"]
    ]
    return DocumentTable((f"{other_side(answer)} costs less where", "is taken as", "reaches"), rows, frozenset({1, 2}))


def _grid_sentence(answer: Answer) -> tuple[str, ...]:
    words = "by utilisation (down) and rent in USD per accelerator-hour (across); below 0 it loses"
    return (f"{grid_title(answer)}, {words}.",) if answer["verdict"]["grid"] else ()


def _grid_tables(answer: Answer) -> tuple[DocumentTable, ...]:
    """What owning saves at other utilisations and prices, in millions."""
    grid = answer["verdict"]["grid"]
    if grid is None:
        return ()
    head = ("utilisation", *map(_price, grid["usd_per_accelerator_hour"]))
    rows = [
        (f"{used:.0%}", *(f"{usd / 1e6:+.2f}" for usd in saved))
        for used, saved in zip(grid["utilisation"], grid["npv_saved_usd"], strict=True)
    ]
    return (DocumentTable(head, rows, frozenset(range(len(head)))),)


def certainty_sentences(answer: Answer) -> tuple[str, ...]:
    """How sure the verdict is, and what it was simulated over."""
    verdict, inputs = answer["verdict"], answer["inputs"]
    sentences = [certainty(answer)[1]]
    at, used = verdict["break_even_utilisation"], answer["demand"]["utilisation"]
    if at is not None:
        sentences.append(f"Owning and renting cost the same at a utilisation of {at:.0%}; {used:.0%} is taken.")
    drift = inputs["list_price_change_per_year"]
    held = "Prices under contract are held for their term, list prices"
    sentences.append(f"{held} change by {drift:+.1%} a year at the median; cost of capital {inputs['cost_of_capital']:.1%}.")
    return tuple(sentences)


def quotes_table(model: CashModel) -> DocumentTable:
    """The prices that the options pay, and those that take no part because a quote ended or is too large."""
    priced: list[Answer] = [shown.option for shown in model.options if shown.option["offer"] and shown.kind != "mix"]
    priced += [option for option in _refused_quotes(model.answer) if option not in priced]
    rows = [_quote_row(option) for option in priced]
    head = ("who", "pricing", "USD per hour", "term, months", "seen", "until", "source")
    return DocumentTable(head, rows, frozenset({2, 3}), frozenset({4, 5}))


def _refused_quotes(answer: Answer) -> Iterable[Answer]:
    return (each for each in answer["options"] if each["offer"] and each["offer"]["source"] == "caller" and each["ruled_out"])


def _quote_row(option: Answer) -> tuple[str, ...]:
    offer = option["offer"]
    source = "stated in the request" if offer["source"] == "caller" else offer["source"]
    until = offer["valid_until"] or "not known"
    return (
        *(option_words(option), price_text(offer), _price(offer["usd_per_accelerator_hour"])),
        f"{offer['term_hours'] / HOURS_PER_MONTH:.0f}" if offer["term_hours"] else "by the hour",
        *((offer["observed_at"] or "not known")[:10] + (", stale" if offer["stale"] else ""), until),
        f"{source}; {option['ruled_out']}" if option["ruled_out"] else source,
    )


def _price(usd: float) -> str:
    """Cents, or as many more digits as it has, up to four."""
    whole, _, digits = f"{usd:,.4f}".partition(".")
    return f"{whole}.{digits[:2]}{digits[2:].rstrip('0')}"


def assumptions_table(answer: Answer) -> DocumentTable:
    """What was assumed because nobody said."""
    rows = [(entry["field"], value_words(entry["value"]), entry["source"]) for entry in answer["assumptions"]]
    return DocumentTable(("field", "value", "source"), rows)


def value_words(value: object) -> str:
    """A value of an assumption as text."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {text(each)}" for name, each in value.items())
    return "not known" if value is None else text(value)


def clipped(table: DocumentTable, rows: int, widths: Sequence[int]) -> tuple[DocumentTable, int]:
    """A table of at most so many rows with cells of at most so many characters, and the number of rows left out."""
    kept = [tuple(shorten(cell, width, placeholder="…") for cell, width in zip(row, widths, strict=True)) for row in table.rows[:rows]]
    return DocumentTable(table.head, kept, table.numeric, table.dated, table.total), max(0, len(table.rows) - rows)


def subtitle(answer: Answer) -> str:
    """What is demanded, in a line."""
    demand = answer["demand"]
    hours = sum(year["accelerator_hours"] for year in demand["years"])
    return f"{hours / 1e6:,.2f}M accelerator-hours of {demand['accelerator']} over {horizon(demand['months'])} from {demand['start']}"
