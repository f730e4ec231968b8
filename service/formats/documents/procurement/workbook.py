"""The evidence pack as a workbook: unchanged, its net present values and totals are the answer's to the cent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from service.formats.documents.cells import FIRST_ROW, Book, Cell, Column, Formula, Sheet, new_book
from service.formats.documents.procurement.model import KIND_WORDS, Answer, CashModel, cash_model
from service.formats.documents.procurement.sections import value_words
from service.formats.documents.procurement.words import curve_finding, title, value_text, variable_text, verdict_sentence
from service.formats.documents.procurement.workbook_charts import CHART_ROWS, write_charts
from service.formats.documents.procurement.workbook_inputs import write_inputs
from service.formats.documents.procurement.workbook_months import DISCOUNT, GAP, HOURS, OptionSheet, write_demand, write_gap, write_option
from service.formats.field_words import choice_words
from service.formats.option_words import name_words, option_words

VERDICT_COLUMNS = (
    *(Column("option", 46, "wrapped"), Column("kind", 12), Column("accelerators", 13, "whole"), Column("NPV, USD", 17, "cash")),
    *(Column("NPV as answered, USD", 17, "cash"), Column("changed by, USD", 15, "cash"), Column("USD per used hour", 12, "price")),
    *(
        Column("p10 as answered, USD", 16, "whole"),
        Column("p90 as answered, USD", 16, "whole"),
        Column("best with probability", 12, "share"),
    ),
    Column("sheet", 12),
)
OTHER_COLUMNS = (
    *(Column("rank", 7, "whole"), Column("option", 60, "wrapped"), Column("kind", 12), Column("accelerators", 13, "whole")),
    *(Column("NPV, USD", 17, "cash"), Column("p10, USD", 16, "whole"), Column("p90, USD", 16, "whole")),
    *(
        Column("USD per used hour", 12, "price"),
        Column("best with probability", 12, "share"),
        Column("takes no part because", 60, "wrapped"),
    ),
)
QUOTE_COLUMNS = (
    *(
        Column("option", 56, "wrapped"),
        Column("provider", 18, "wrapped"),
        Column("pricing", 13),
        Column("USD per accelerator-hour", 13, "price"),
    ),
    *(Column("term, hours", 9, "whole"), Column("paid upfront", 9, "share"), Column("fixed by contract", 10), Column("observed", 11)),
    *(Column("valid until", 11), Column("stale", 7), Column("takes part", 8), Column("source", 64, "wrapped")),
)
FLIP_COLUMNS = (
    Column("input", 40),
    Column("field", 44),
    Column("taken", 14, "price"),
    Column("turns at", 14, "price"),
    Column("in words", 40),
)
NOTE_COLUMNS = (Column("", 34, "wrapped"), Column("value", 30, "wrapped"), Column("source", 110, "wrapped"))
CREATED = datetime(2000, 1, 1)  # noqa: DTZ001 - a workbook has no time zone; fixed, so that the same answer has the same bytes


def write(answer: Answer) -> bytes:
    """The workbook."""
    model, book = cash_model(answer), new_book()
    comments = f"{answer['price_snapshot']}, {answer['engine_version']}"
    book.workbook.set_properties({"title": title(answer), "comments": comments, "created": CREATED})
    # the row above the head is free: the sentence is long
    verdict = book.sheet("Verdict", (title(answer), verdict_sentence(answer)), VERDICT_COLUMNS)
    years = book.sheet("Years", ("Money by year", "In USD; sums of the monthly sheets."), _year_columns(model))
    quotes = book.sheet("Quotes", ("Prices and quotes", "Who asks what, since when and until when."), QUOTE_COLUMNS)
    inputs = write_inputs(book, model)
    demand = write_demand(book, model)
    sheets = [write_option(book, model, shown, inputs, at) for at, shown in enumerate(model.options, 1)]
    by_name = {each.shown.name: each for each in sheets}
    _options(verdict, model, demand, sheets)
    _gap(verdict, model, demand, by_name)
    cash_rows = _years(years, model, sheets)
    write_charts(book, (verdict, years), model, by_name, cash_rows)
    _quotes(quotes, answer)
    _flips(book, answer)
    _grid(book, answer)
    _others(book, answer)
    _notes(book, answer)
    return book.finished({verdict.name: CHART_ROWS})


def _options(verdict: Sheet, model: CashModel, demand: Sheet, sheets: Sequence[OptionSheet]) -> None:
    """Net present values from the monthly sheets, beside those of the answer."""
    last = FIRST_ROW + model.last_month
    used = f"SUMPRODUCT({demand.down(FIRST_ROW, last, HOURS)},{demand.down(FIRST_ROW, last, DISCOUNT)})"
    for row, made in enumerate(sheets, FIRST_ROW):
        option, npv = made.shown.option, float(made.shown.cash @ model.discount)
        per_hour = "nothing used" if option["usd_per_used_accelerator_hour"] is None else option["usd_per_used_accelerator_hour"]
        usd = verdict.at(row, 3)
        cells: list[Cell] = [option_words(option), KIND_WORDS[option["kind"]], option["count"]]
        cells += [
            Formula(f"=SUMPRODUCT({made.column(made.tail, model.last_month)},{made.column(2, model.last_month)})", npv),
            option["npv_usd"]["p50"],
            Formula(f"=ROUND({usd}-{verdict.at(row, 4)},2)", 0.0),
            Formula(f'=IF({used}<1,"nothing used",{usd}/{used})', per_hour),
        ]
        verdict.row(row, [*cells, option["npv_usd"]["p10"], option["npv_usd"]["p90"], option["probability_best"], made.sheet.name])


def _gap(verdict: Sheet, model: CashModel, demand: Sheet, by_name: Mapping[str, OptionSheet]) -> None:
    """The month from which owning has cost less, and the sentence that is the chart's title, below the options."""
    own, rent = model.sides
    row = FIRST_ROW + len(model.options) + 1
    if own is None or rent is None:
        verdict.cell(row, 0, curve_finding(model), "text")
        return
    write_gap(demand, model, by_name[own.name], by_name[rent.name])
    last = FIRST_ROW + model.last_month
    gap, months = demand.down(FIRST_ROW, last, GAP), demand.down(FIRST_ROW, last, 0)
    paid_back = f'IF({demand.at(last, GAP)}>0,"never",SUMPRODUCT(MAX(({gap}>0)*({months}+1))))'
    month = own.option["break_even_month"]
    value: float | str = "never" if month is None else float(month)
    names = verdict.at(FIRST_ROW + model.options.index(own), 0), verdict.at(FIRST_ROW + model.options.index(rent), 0)
    verdict.cell(row + 1, 0, "month from which owning has cost less, discounted", "text")
    verdict.cell(row + 1, 3, Formula(f"={paid_back}", value), "whole")
    at = verdict.at(row + 1, 3)
    never = f'"Buying "&{names[0]}&" is not paid back against "&{names[1]}'
    sentence = f'=IF({at}="never",{never},"Buying "&{names[0]}&" has cost less than "&{names[1]}&" from month "&{at}&" on")'
    told = f"is not paid back against {rent.words}" if month is None else f"has cost less than {rent.words} from month {month} on"
    verdict.cell(row, 0, Formula(sentence, f"Buying {own.name} {told}"), "text")
    curve = by_name[own.name].column(by_name[own.name].tail + 3, model.last_month)
    crossing = float(model.cumulative(own)[month]) if month is not None else 0.0
    formula = Formula(f'=IF({at}="never",NA(),INDEX({curve},{at}+1))', crossing if month is not None else "#N/A")
    verdict.cell(row + 2, 0, "cumulative cost there, USD (#N/A: never)", "text")
    verdict.cell(row + 2, 3, formula, "cash")


def _year_columns(model: CashModel) -> tuple[Column, ...]:
    years = (Column(f"year {year + 1}", 17, "cash") for year in range(-(-model.last_month // 12)))
    return (Column("option", 40), Column("line", 18), *years, Column("all", 18, "cash"))


def _years(sheet: Sheet, model: CashModel, sheets: Sequence[OptionSheet]) -> dict[str, int]:
    """Lines of each option by year; returns the row of each option's cash."""
    count, row, rows = -(-model.last_month // 12), FIRST_ROW, {}
    for made in sheets:
        years = made.column(1, model.last_month)
        lines = [(name, column) for name, column in made.lines.items()]
        for name, column in (*lines, ("cash", made.tail), ("discounted", made.tail + 1)):
            source = made.column(column, model.last_month)
            values = _by_year(model, made, name, count)
            cells = [Formula(f"=SUMIF({years},{year + 1},{source})", values[year]) for year in range(count)]
            total = Formula(f"=SUM({sheet.at(row, 2)}:{sheet.at(row, 1 + count).partition('!')[2]})", sum(values))
            sheet.row(row, (made.shown.words, name, *cells, total), "total: " if name in ("cash", "discounted") else "")
            if name == "cash":
                rows[made.shown.name] = row
            row += 1
        row += 1
    return rows


def _by_year(model: CashModel, made: OptionSheet, name: str, count: int) -> list[float]:
    shown = made.shown
    flows = {"cash": shown.cash, "discounted": shown.cash * model.discount}.get(name, shown.lines.get(name))
    if flows is None:
        return [0.0] * count
    return [float(flows[(12 * year + 1 if year else 0) : 12 * year + 13].sum()) for year in range(count)]


def _quotes(sheet: Sheet, answer: Answer) -> None:
    """Every price of the answer, those that take part in the verdict first."""
    priced = [option for option in answer["options"] if option["offer"] and option["kind"] != "mix"]
    for row, option in enumerate(sorted(priced, key=lambda option: option["ruled_out"] is not None), FIRST_ROW):
        offer, term = option["offer"], option["offer"]["term_hours"]
        seen, until = (offer["observed_at"] or "not known")[:10], offer["valid_until"] or "not known"
        paid = (term or None, offer["upfront_share"] if term else None, _yes(offer["contract"]))
        part = (seen, until, _yes(offer["stale"]), _yes(option["ruled_out"] is None))
        source = "stated in the request" if offer["source"] == "caller" else offer["source"]
        head = (option_words(option), offer["provider"], choice_words(offer["pricing"]), offer["usd_per_accelerator_hour"])
        sheet.row(row, (*head, *paid, *part, source))


def _yes(fact: object) -> str:
    return "yes" if fact else "no"


def _flips(book: Book, answer: Answer) -> None:
    """What turns the verdict, one input at a time."""
    sheet = book.sheet(
        "Flips", ("What would change the verdict", "One input at a time, the smallest change first. As answered."), FLIP_COLUMNS
    )
    for row, flip in enumerate(answer["verdict"]["flips"], FIRST_ROW):
        name, before, after = flip["variable"], flip["from"], flip["to"]
        words = f"{value_text(name, before)} → {value_text(name, after)}"
        sheet.row(row, (variable_text(name), name, before, after, words))


def _grid(book: Book, answer: Answer) -> None:
    """What owning saves at other utilisations and prices, in the colours of the sides."""
    grid = answer["verdict"]["grid"]
    if grid is None:
        return
    prices = grid["usd_per_accelerator_hour"]
    caption = "Utilisation down, rent in USD per accelerator-hour across; below 0 it loses. As answered: it does not follow changes."
    columns = (Column("utilisation", 12, "share"), *(Column(f"{usd:,.2f}", 14, "whole") for usd in prices))
    title_ = f"What {grid['own']} saves against {name_words(answer, grid['against'])}, USD"
    sheet = book.sheet("Utilisation and rent", (title_, caption), columns)
    for row, (used, saved) in enumerate(zip(grid["utilisation"], grid["npv_saved_usd"], strict=True), FIRST_ROW):
        sheet.row(row, (used, *saved))
    area = (FIRST_ROW, 1, FIRST_ROW + len(grid["utilisation"]) - 1, len(prices))
    owned, rented = (book.workbook.add_format({"bg_color": colour}) for colour in ("#CCE3F0", "#CCECE3"))
    for criterion, look in ((">", owned), ("<=", rented)):
        sheet.worksheet.conditional_format(*area, {"type": "cell", "criteria": criterion, "value": 0, "format": look})


def _others(book: Book, answer: Answer) -> None:
    """All options of the answer, as answered."""
    shown = f"{len(answer['options'])} of {answer['considered']} that were computed, the cheapest first"
    caption = f"{shown}. As answered: they do not follow changes."
    sheet = book.sheet("All options", ("All options", caption), OTHER_COLUMNS)
    for row, option in enumerate(answer["options"], FIRST_ROW):
        npv = option["npv_usd"]
        sheet.row(
            row,
            (
                *(option["rank"], option_words(option), KIND_WORDS[option["kind"]], option["count"], npv["p50"], npv["p10"], npv["p90"]),
                *(option["usd_per_used_accelerator_hour"], option["probability_best"], option["ruled_out"]),
            ),
        )


def _notes(book: Book, answer: Answer) -> None:
    """Warnings, assumptions with their sources, prices and engine."""
    sheet = book.sheet(
        "Assumptions", ("Assumptions and sources", "What to check first, and what was assumed because nobody said."), NOTE_COLUMNS
    )
    rows = [("check first", "", warning) for warning in answer["warnings"]]
    rows += [(entry["field"], value_words(entry["value"]), entry["source"]) for entry in answer["assumptions"]]
    rows += [("price_snapshot", answer["price_snapshot"], ""), ("engine_version", answer["engine_version"], "")]
    rows += [("trials, seed", f"{answer['trials']:,}, {answer['seed']}", "")]
    for row, cells in enumerate(rows, FIRST_ROW):
        sheet.row(row, cells)
