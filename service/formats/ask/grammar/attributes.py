"""Attributes with their figures: seq len 8192, 8k context, 70% utilisation, MFU 0.4, batch of 4M tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

from service.formats.ask.grammar.slots import Slot, plain
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.fields import Field, load_fields
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece

OVERHEADS = ("overhead_evaluation", "overhead_debugging", "overhead_reruns")
OVERHEAD = "overhead"
"""One of no kind."""
CONTINGENCY = "contingency"
OF_OWNING = ("tax_rate", "opex_share_per_year", "upfront_share", CONTINGENCY)
"""Shares that an owner, a quote or a budget states."""
PRICE_FALL, PRICE_RISE = "list_price_fall", "list_price_rise"
YEARLY = (PRICE_FALL, PRICE_RISE, "opex_share_per_year", "growth_per_year", "cost_of_capital")
"""Shares of each year."""
SHARES = frozenset(
    {
        "utilisation",
        "mfu",
        "cost_of_capital",
        "growth_per_year",
        PRICE_FALL,
        PRICE_RISE,
        "residual_share",
        "probability",
        "share_done",
        "share_left",
        OVERHEAD,
        *OVERHEADS,
        *OF_OWNING,
    }
)
USE = "use"
"""A word of utilisation that is a verb too: of `use 96 H100` the number is not its."""
QUEUE, MTBF, MTTF = "queue_hours", "mtbf_hours", "mttf_hours_per_accelerator"
WRITE, DETECTION = "checkpoint_write_minutes", "detection_minutes"
SPARES = "failures.spare_share"
MAINTENANCE, OPEX_SHARE = "maintenance_hours_per_week", "opex_share_per_year"
HOURS_PER_DAY, DAYS_PER_WEEK = 24, 7
LEAD_TIME, DEPRECIATION = "lead_time_months", "depreciation_years"
TIMES = frozenset({QUEUE, MTBF, MTTF, LEAD_TIME, DEPRECIATION, WRITE, DETECTION, "restart_minutes", "checkpoint_interval_minutes"})
"""Attributes whose figure is a time."""
IN_MINUTES = frozenset({WRITE, DETECTION, "restart_minutes", "checkpoint_interval_minutes"})
"""Those whose figure may be one of minutes, with an m behind it: ckpt every 30m."""
MILLION, MOST_MINUTES = 10**6, 1440
LOOSE = frozenset({*OF_OWNING, LEAD_TIME, DEPRECIATION, WRITE, DETECTION})
"""Attributes whose words are of any sense where no figure stands beside them."""
OWN_TIMES = frozenset({QUEUE, "restart_minutes"})
"""Those that `a day` is not the time of, but how often they are: 3 restarts a day."""
SPEED, SPEED_OF_ALL = "tokens_per_s", "tokens_per_s_of_all"
"""Measured tokens per second, of a number of accelerators that is not said, or of all."""
UNIQUE_TOKENS = "max_unique_tokens"
COUNTS = frozenset({SPEED, SPEED_OF_ALL, "response_tokens", "lifetime_inference_tokens", UNIQUE_TOKENS, "batch_tokens"})
APART = 3
"""Words between an attribute and a figure behind it from which one right before it is nearer."""
LENGTHS = frozenset({"batch", "batch_tokens", "seq_len"})
BATCH_SIZE, BATCH_SEQUENCES = "batch_size", "batch_sequences"
"""A batch without a unit, and one in sequences or samples."""
HYPERPARAMETER = "hyperparameter"
EP = "ep"
"""Expert-parallel ranks before their number, epochs after it."""
DURATIONS = {"limit_days": ("limit", "days"), "span_years": ("span", "years")}
"""Attributes of so many days or years, by the slot that they are."""
USD_KEYS = frozenset({"budget_usd", "price_per_hour"})
"""Attributes that are dollars, by a name that says so."""
FIGURES = "npmU"
BESIDE = f"{FIGURES}@"
"""What an attribute has beside it: its figure, or how often it is."""
CAPEX, LEAST_CAPEX_USD = "capex", 500
"""An accelerator costs more than this: a smaller number behind the word is of something else [USD]."""
POWER_WORDS = "usd_per_energy"
"""Words of electricity that have other senses: a sum beside them is the price of a kilowatt-hour, a number is not."""
DECIMALS = frozenset({"pue", "kw_per_accelerator", "kw_of_machine", "max_tco2e"})
MOST_USD_PER_KWH = 2
"""A number above it is in cents, or of something else."""
K = 1024
LONGEST_SEQ_LEN = 2**27
LEAST_SEQ_LEN = 16
MOST_BATCH_TOKENS = 10**9
"""A figure from here on is of a size or of data."""
LEAST_BATCH_TOKENS = 100_000
"""Fewer than this are sequences, or samples, in some sentences and tokens in others."""


def without_loose(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces with a noun of owning or failing that has no figure beside it as a word of any sense: support-assistant."""
    said = [piece for piece in pieces if piece.kind != FILLER]
    loose = {piece.first for at, piece in enumerate(said) if piece.kind == "K" and piece.value in LOOSE and not _has_figure(said, at)}
    return [replace(piece, kind=UNKNOWN) if piece.first in loose else piece for piece in pieces]


def _has_figure(said: Sequence[Piece], at: int) -> bool:
    """Whether a figure stands before an attribute, or after it and a preposition."""
    after = _after(said, at)
    return (at > 0 and said[at - 1].kind in BESIDE) or (after > 0 and said[after].kind in BESIDE)


def attributes(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """Each attribute with the figure before or after it: the one that fits, the later one where both do and none is glued to it."""
    free = {at for at, piece in enumerate(pieces) if piece.kind in FIGURES}
    keys = [at for at, piece in enumerate(pieces) if piece.kind == "K"]
    for key in keys:
        places = (key - 1,) if _stands_after(pieces, key) else (_after(pieces, key), key - 1)[: 1 + (pieces[key].value != HYPERPARAMETER)]
        choices = [at for at in places if at in free and _read(str(pieces[key].value), pieces[at]) is not None]
        if choices[1:] and pieces[key + 1].kind == "=" and pieces[key].value != UNIQUE_TOKENS:  # 200B unique tokens: 7B
            choices = choices[:1]
        if len(choices) == 2 and pieces[key].value == EP:  # 3ep 8 H100
            choices = choices[::-1]
        elif len(choices) == 2 and _is_beside(pieces, key, choices[1]) and pieces[choices[0]].first - pieces[key].last >= APART:
            choices = choices[::-1]  # 8k context? Data is 15M tokens
        elif len(choices) == 2:
            swapped = _belongs_to_next(pieces, choices[0], keys) or _counts_what_follows(pieces[key], *(pieces[at] for at in choices))
            choices = choices[::-1] if swapped else choices
        if choices:
            at = choices[0]
            free.discard(at)
            slot = _read(str(pieces[key].value), pieces[at])
            if slot is not None:
                first, last = min(key, at), max(key, at)
                name, value, note = slot
                if name == EP:
                    name, note = ("expert", "") if at > key else ("epochs", "ep after a number read as epochs")
                first -= name == "probability" and first > 0 and pieces[first - 1].kind == "z"  # at least 90% sure
                yield Slot(name, value, pieces[first].first, pieces[last].last, note)


def _is_beside(pieces: Sequence[Piece], key: int, at: int) -> bool:
    """Whether a figure stands right before an attribute, with nothing between them."""
    return pieces[at].last == pieces[key].first


def yearly_share(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """List prices fall 20% per year, opex 6% a year."""
    every = pieces[-1].value
    unit = every.unit if isinstance(every, Duration) and every.article else every
    slot = _read(str(pieces[0].value), pieces[-2]) if pieces[0].value in YEARLY else None
    if slot is not None and unit == "years":
        yield Slot(slot[0], slot[1], pieces[0].first, pieces[-1].last)


def share_of_restarts(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """5% for restarts, 5% overhead for restarts: what is run again."""
    slot = _share(OVERHEADS[-1], pieces[0].value) if isinstance(pieces[0].value, Figure) else None
    if slot is not None and pieces[-1].value == "restart_minutes" and all(piece.value == OVERHEAD for piece in pieces[1:-2]):
        yield Slot(*slot[:2], pieces[0].first, pieces[-1].last, "restarts read as reruns")


def settings(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """FSDP, flash attention, hourly checkpoints: words that are a setting with its value, and a note after a blank."""
    name, _, rest = str(pieces[0].value).partition("=")
    value, _, note = rest.partition(" ")
    found: object = value
    if name in TIMES:
        found = Duration(Fraction(value), "minutes")
    elif name in SHARES:
        found = float(value)
    elif value in ("true", "false"):
        found = value == "true"
    elif value.isdigit():
        found = int(value)
    yield Slot(name, found, pieces[0].first, pieces[0].last, note)


def _after(pieces: Sequence[Piece], key: int) -> int:
    """The figure after an attribute, a preposition between them or none; -1 where none follows."""
    at = key + 1
    while at < len(pieces) and pieces[at].kind in "tb=v":
        at += 1
    return at if at < len(pieces) else -1


def _stands_after(pieces: Sequence[Piece], key: int) -> bool:
    """Whether an attribute is a unit, which stands after its figure: 8 g/kWh; per_tb=80 is none."""
    field = load_fields().get(str(pieces[key].value))
    if pieces[key].value not in (SPEED, SPEED_OF_ALL) and not (field is not None and field.before):
        return False
    named = key + 1 < len(pieces) and pieces[key + 1].kind == "="
    return not named or (key > 0 and pieces[key - 1].kind in FIGURES)  # 100 TB of storage: 20B model


def _belongs_to_next(pieces: Sequence[Piece], at: int, keys: Sequence[int]) -> bool:
    """Whether the next attribute follows right after the figure and fits it: of `8k context 4M batch`, the 4M."""
    for key in keys:
        if key == at + 1 and _read(str(pieces[key].value), pieces[at]) is not None:
            own = _after(pieces, key)
            return own < 0 or own + 1 in keys or pieces[own].kind not in FIGURES or _read(str(pieces[key].value), pieces[own]) is None
    return False


def _counts_what_follows(key: Piece, after: Piece, before: Piece) -> bool:
    """Whether the figure after an attribute counts something else: 2M token batch on 128 H200, 100B unique tokens for a 7B."""
    fewer = scale_of(before) > 1 and scale_of(after) == 1
    return (key.value in LENGTHS and fewer) or (key.value == UNIQUE_TOKENS and scale_of(before) >= MILLION)


def scale_of(piece: Piece) -> int:
    """What the suffix of a figure multiplies it by; 0 of a piece that is none."""
    return piece.value.scale if isinstance(piece.value, Figure) else 0


def _read(key: str, piece: Piece) -> tuple[str, object, str] | None:
    """Name, value and note of a slot; None where the figure is none for the attribute."""
    figure = piece.value
    if isinstance(figure, Duration):
        return (key, figure, "") if key in TIMES and not figure.of_calendar and not (figure.article and key in OWN_TIMES) else None
    assert isinstance(figure, Figure)
    too_many = key == "batch_tokens" and figure.value >= MOST_BATCH_TOKENS
    if key in IN_MINUTES and figure.scale == MILLION and not figure.unit and figure.value <= MILLION * MOST_MINUTES:
        return key, Duration(figure.value / MILLION, "minutes"), "its m read as minutes"
    if key in TIMES or too_many:
        return None
    if key in DURATIONS:
        name, unit = DURATIONS[key]
        return (name, Duration(figure.value, unit), "") if not figure.unit and figure.scale == 1 else None
    field = load_fields().get(key)
    if key == HYPERPARAMETER or key in USD_KEYS:
        return (key, plain(figure.value), "") if figure.unit in ("", "usd" if key in USD_KEYS else "percent") else None
    return _read_number(key, figure) if field is None else _read_field(field, figure)


def of_each_accelerator(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """MTBF of 50000 hours per GPU: the time to a failure of one accelerator, which MTTF says without it."""
    time = next(piece.value for piece in pieces if piece.kind == "U")
    if pieces[0].value in (MTBF, MTTF) and isinstance(time, Duration):
        yield Slot(MTTF, time, pieces[0].first, pieces[-1].last)


def share_of_machines(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """5% of the nodes as hot spares: the share of them."""
    field = load_fields().get(str(pieces[-1].value))
    slot = _read_field(field, pieces[0].value) if field is not None and isinstance(pieces[0].value, Figure) else None
    if slot is not None and slot[0] == SPARES:
        yield Slot(*slot[:2], pieces[0].first, pieces[-1].last)


def maintenance(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """Maintenance of 4 hours per week, every Tuesday 6h, 2 hours a day for maintenance: the time a week without work."""
    keys = [piece for piece in pieces if piece.value in (MAINTENANCE, OPEX_SHARE)]
    times = [piece.value for piece in pieces if isinstance(piece.value, Duration)]
    times.sort(key=lambda time: time.article)  # fortnightly maintenance of 12 hours
    every = [Duration(Fraction(1), str(piece.value), article=True) for piece in pieces if piece.kind == "@"] or times[1:]
    if not keys or not every[0].article or times[0].article:
        return
    hours = round(times[0].days * HOURS_PER_DAY * DAYS_PER_WEEK / every[0].days, 2)
    if hours >= HOURS_PER_DAY * DAYS_PER_WEEK:
        return
    weekly = every[0].days == DAYS_PER_WEEK
    note = "" if weekly else f"{float(times[0].value):g} {times[0].unit} each {every[0].days:g} days"
    yield Slot(MAINTENANCE, hours, pieces[0].first, pieces[-1].last, note)


def _read_number(key: str, figure: Figure) -> tuple[str, object, str] | None:
    """Of an attribute that a number is of."""
    if key in SHARES or key == USE:
        return _share(key, figure)
    if key == "seq_len":
        return None if figure.unit else seq_len_of(figure)
    if (key == POWER_WORDS and figure.unit != "usd") or (key == CAPEX and figure.value < LEAST_CAPEX_USD):
        return None
    if key in ("usd_per_kwh", POWER_WORDS):
        return ("usd_per_kwh", plain(figure.value), "") if figure.unit in ("", "usd") and figure.value <= MOST_USD_PER_KWH else None
    if figure.unit == "usd":
        return None
    whole = figure.value.denominator == 1
    if key == "batch":
        enough = figure.value >= LEAST_BATCH_TOKENS and whole
        key, fits, note = ("batch_tokens", True, "read as tokens") if enough else (BATCH_SIZE, True, "")
    else:
        fits, note = (whole if key in COUNTS else figure.scale == 1 and (whole or key in DECIMALS)), ""
    return (key, plain(figure.value), note) if fits and figure.unit != "percent" else None


def _read_field(field: Field, figure: Figure) -> tuple[str, object, str] | None:
    """Of a field that is stated by its name."""
    if field.unit == "share":
        return _share(field.path, figure)
    if figure.unit not in ("", "usd" if field.unit == "usd" else ""):
        return None
    if field.unit in ("usd", "number"):
        return field.path, plain(figure.value), ""
    if field.unit == "count" and figure.scale >= MILLION:
        return None
    binary = field.unit == "width" and figure.scale == 1000
    value, note = (figure.value / 1000 * K, f"its k read as {K:,}") if binary else (figure.value, "")
    return (field.path, plain(value), note) if value.denominator == 1 else None


def _share(key: str, figure: Figure) -> tuple[str, object, str] | None:
    """Name, value and note of a part of a whole; None of what is none."""
    if key == USE and figure.unit != "percent" and figure.value >= 1:
        return None
    key = "utilisation" if key == USE else key
    if figure.unit == "percent":
        return key, float(figure.value / 100), ""
    if figure.unit:  # an amount of money is no share
        return None
    if figure.value <= 1 and figure.scale == 1 and not figure.spoken:
        return key, float(figure.value), ""
    likely = figure.scale == 1 and 1 < figure.value <= 100 and key in ("mfu", "utilisation") and not figure.spoken
    return (key, float(figure.value / 100), "read as a percentage") if likely else None


def seq_len_of(figure: Figure) -> tuple[str, object, str] | None:
    """A plain number of tokens; 8k is 8192 of them, as models' contexts are."""
    value, note = figure.value, ""
    if figure.scale == 1000:
        value, note = value / 1000 * K, f"its k read as {K:,}"
    elif figure.scale == 10**6:
        value, note = value / 10**6 * K * K, f"its M read as {K * K:,}"
    elif figure.scale > 1:
        return None
    fits = value.denominator == 1 and LEAST_SEQ_LEN <= value <= LONGEST_SEQ_LEN
    return ("seq_len", int(value), note) if fits else None


def sequences_of(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """Sequences of 16k: their length."""
    figure = pieces[-1].value
    assert isinstance(figure, Figure)
    found = seq_len_of(figure) if pieces[0].value == "sequences" and not figure.unit else None
    if found is not None:
        yield Slot(*found[:2], pieces[0].first, pieces[-1].last, found[2])


def share(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """At 70%: a utilisation, where that is asked for."""
    figure = pieces[-1].value
    assert isinstance(figure, Figure)
    if Fraction(0) < figure.value <= 100:
        yield Slot("share", float(figure.value / 100), pieces[0].first, pieces[-1].last)


def chance(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """A 70% chance, chance 70%: the probability that is wanted."""
    figure = next(piece.value for piece in pieces if isinstance(piece.value, Figure))
    asked = any(piece.kind == "I" and piece.value == "chance" for piece in pieces)
    if asked and Fraction(0) < figure.value < 100:
        yield Slot("probability", float(figure.value / 100), pieces[0].first, pieces[-1].last, "read as the probability that is wanted")
