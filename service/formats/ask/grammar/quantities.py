"""Counts, prices and budgets: what figures with their units say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from service.formats.ask.grammar.slots import Slot, plain
from service.formats.ask.lexing.names import Chosen
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.tokens import Piece
from service.formats.ask.lexing.vocabulary import Name

Pieces = Sequence[Piece]
MOST_PER_HOUR_USD = 200
"""An accelerator-hour costs less than this, and an accelerator more [USD]."""
APART = 20
"""7B and 1T tokens are not two numbers of tokens; 1B tokens or 50B tokens are."""
TERABYTES = "terabytes"
LEAST_LISTED, ALIKE = 3, 8
"""Figures of a list that commas part too, and the most that one is times another."""
ANSWERS = "answers"
TO_EACH = "answers to each"
LEAST_PER_HOUR_USD = Fraction(1, 5)
"""Below it a sum that does not say of what may as well be that of a kilowatt-hour [USD]."""
LEAST_CAPEX_USD = 500
HELD = "what "
MOST_INSTANCES = 100_000
MOST_COUNT = 10**6
"""So many accelerators nobody has: 64,128,256 are three numbers."""
K = 1024
LENGTHS = frozenset(2**power for power in range(1, 10))
"""Thousands of tokens that sequences have: 2k to 512k."""
LEAST_FLOPS = 10**17
"""A bare number from here on can only be of arithmetic: nobody has as many tokens or dollars."""
BILLION = 10**9
MOST_TOKENS_PER_PARAMETER = 100_000
MOST_SAMPLE_TOKENS = 2**20
"""No sample is longer [tokens]."""
LEAST_TOKENS = 1000
"""A run has more tokens than this: a smaller number is of something else."""


def figures(pieces: Pieces) -> list[Figure]:
    """The figures among pieces."""
    return [piece.value for piece in pieces if isinstance(piece.value, Figure)]


def span_of(pieces: Pieces) -> tuple[int, int]:
    """The tokens of pieces: the first, and the one after the last."""
    return pieces[0].first, pieces[-1].last


def accelerator_hours(pieces: Pieces) -> Iterator[Slot]:
    """100k GPU-hours, 100k H100 hours."""
    hours = figures(pieces)[0]
    if any(before.last != after.first for before, after in pairwise(pieces)):  # will 64 H100 take hours
        return
    if hours.value > 24 * 365 or len(pieces) == 3 or pieces[-1].last - pieces[-1].first > 1:
        yield Slot("accelerator_hours", plain(hours.value), *span_of(pieces))
        yield from accelerator_slots(pieces)


def price_per_hour(pieces: Pieces) -> Iterator[Slot]:
    """$2 an hour, 1.89/h, under $2 per GPU-hour."""
    price = figures(pieces)[0]
    if pieces[-1].kind == "h" and pieces[-2].last != pieces[-1].first:
        return
    if price.scale > 1 or price.value > MOST_PER_HOUR_USD:
        return
    limited = pieces[0].kind == "l"
    name = "max_price_per_hour" if limited else "price_per_hour"
    yield Slot(name, plain(price.value), *span_of(pieces), note="" if price.unit else "read as dollars")
    yield from accelerator_slots(pieces)


def capex(pieces: Pieces) -> Iterator[Slot]:
    """$32k each: what one accelerator costs to buy, or an hour of one, by size."""
    if pieces[0].kind == "K" and pieces[0].value != "capex":
        return
    money = figures(pieces)[0]
    if money.scale > 10**6:
        return
    if money.value >= LEAST_CAPEX_USD:
        exact = pieces[-1].value == "each accelerator"
        yield Slot("capex", plain(money.value), *span_of(pieces), note="" if money.unit else "read as dollars", implied=exact)
    elif money.unit and pieces[0].kind != "K" and money.value >= LEAST_PER_HOUR_USD:
        yield Slot("price_per_hour", plain(money.value), *span_of(pieces), note="read as the price of an accelerator-hour")


def capex_of_all(pieces: Pieces) -> Iterator[Slot]:
    """$4M for all of them: what the accelerators of a purchase cost together."""
    if pieces[-1].value == "all" and figures(pieces)[0].value >= LEAST_CAPEX_USD:
        yield Slot("capex_of_all", plain(figures(pieces)[0].value), *span_of(pieces))


def capex_of_machine(pieces: Pieces) -> Iterator[Slot]:
    """$420k per node: what a machine costs to buy."""
    figure = figures(pieces)[0]
    if pieces[-1].value == "per machine" and figure.value >= LEAST_CAPEX_USD and figure.scale <= 10**6:
        note = "" if figure.unit else "read as dollars"
        yield Slot("capex_of_machine", plain(figure.value), *span_of(pieces), note=note)


def tokens(pieces: Pieces) -> Iterator[Slot]:
    """15T tokens; several numbers are several runs, of which an estimate has one."""
    yield from _alternatives("tokens", pieces)


def tokens_per_parameter(pieces: Pieces) -> Iterator[Slot]:
    """20 tokens per parameter; 1T tokens, parameters … are no ratio."""
    figure = figures(pieces)[0]
    if figure.scale == 1 and figure.value <= MOST_TOKENS_PER_PARAMETER:
        yield Slot("tokens_per_parameter", plain(figure.value), *span_of(pieces))


def params(pieces: Pieces) -> Iterator[Slot]:
    """7B parameters."""
    yield from _alternatives("params", pieces)


def _alternatives(name: str, pieces: Pieces) -> Iterator[Slot]:
    """A slot for each of `1T or 2T tokens`; what stands before a comma and without a noun has a meaning of its own."""
    last = figures(pieces)[-1].value
    commas = [at for at, piece in enumerate(pieces) if piece.value in ("comma", "slash") and pieces[at - 1].kind == "n"]
    begin = 0 if not commas or _is_one_list(pieces) else commas[-1] + 1
    while begin < len(pieces) - 1 and pieces[begin + 1].kind == "," and figures(pieces[begin:])[0].value * APART < last:
        begin += 2
    for figure in figures(pieces[begin:]):
        if figure.value < LEAST_TOKENS:
            return
        yield Slot(name, plain(figure.value), *span_of(pieces[begin:]))


def _is_one_list(pieces: Pieces) -> bool:
    """Whether three figures or more are so alike that they are of one thing: 1T, 2T and 4T tokens."""
    found = figures(pieces)
    values = [figure.value for figure in found]
    return len(found) >= LEAST_LISTED and len({figure.scale for figure in found}) == 1 and max(values) <= ALIKE * min(values)


def rule_of_thumb(pieces: Pieces) -> Iterator[Slot]:
    """Chinchilla tokens: so many for each parameter; chinchilla optimal: of the size, or it is asked for."""
    words = str(pieces[0].value).split()
    name = "optimal_ratio" if words[0] == "optimal" else "tokens_per_parameter"
    yield Slot(name, int(words[-1]), *span_of(pieces), note="the rule of thumb of Hoffmann et al. 2022")


def samples_of(pieces: Pieces) -> Iterator[Slot]:
    """60k pairs of 1,000 tokens: all their tokens."""
    samples, length = figures(pieces)
    if pieces[1].value not in ("samples", "sequences", ANSWERS, "documents", "help"):  # examples: alone they are a question for help
        return
    if length.value.denominator == 1 and length.value <= MOST_SAMPLE_TOKENS and length.scale <= 1000:
        note = f"{plain(samples.value):,} of {plain(length.value):,} tokens each"
        yield Slot("tokens", plain(samples.value * length.value), *span_of(pieces), note=note)


def samples_of_few(pieces: Pieces) -> Iterator[Slot]:
    """10M pairs, 512 tokens: fewer tokens than samples are those of each."""
    samples, length = figures(pieces)
    if length.value < samples.value:
        yield from samples_of(pieces)


def samples(pieces: Pieces) -> Iterator[Slot]:
    """40k images; of 34B with sequences of 16k, the 34B is a size."""
    figure = figures(pieces)[0]
    if figure.scale < BILLION or pieces[0].last == pieces[1].first:
        yield Slot("samples", plain(figure.value), *span_of(pieces))


def answers(pieces: Pieces) -> Iterator[Slot]:
    """20k prompts, 16 samples each: prompts, and the answers to each of them."""
    first, second = (at for at, piece in enumerate(pieces) if isinstance(piece.value, Figure))
    names = ("answers_to_each", "prompts") if pieces[-1].value == "prompts" else ("prompts", "answers_to_each")
    if any(piece.value == "prompts" for piece in pieces) and not any(piece.value == "sequences" for piece in pieces):
        for name, part in zip(names, (pieces[first:second], pieces[second:]), strict=True):
            yield Slot(name, plain(figures(part)[0].value), *span_of(part))


def examples(pieces: Pieces) -> Iterator[Slot]:
    """200k examples: samples, where alone they are a question for help."""
    if pieces[-1].value == "help":
        yield Slot("samples", plain(figures(pieces)[0].value), *span_of(pieces), note="examples read as samples")


def mixture(pieces: Pieces) -> Iterator[Slot]:
    """30B-A3B: all parameters, and those of a token."""
    sizes = pieces[0].value
    assert isinstance(sizes, tuple)
    total, active = sizes
    yield Slot("params", total, *span_of(pieces))
    yield Slot("active_params", active, *span_of(pieces))


def counted(name: str) -> Callable[[Pieces], Iterator[Slot]]:
    """A number of what its unit says."""

    def make(pieces: Pieces) -> Iterator[Slot]:
        yield Slot(name, plain(figures(pieces)[0].value), *span_of(pieces))

    return make


def flops(pieces: Pieces) -> Iterator[Slot]:
    """1e24 FLOPs, 300 exaflop-days."""
    unit = str(pieces[-1].value)
    of_days = unit != "flops"
    value = figures(pieces)[0].value * (Fraction(unit) if of_days else 1)
    yield Slot("flops", plain(value), *span_of(pieces), note=f"{float(value):g} FLOPs" if of_days else "")


def product(pieces: Pieces) -> Iterator[Slot]:
    """64 x 8 H100."""
    first, second = figures(pieces)
    if first.value * second.value > MOST_COUNT:
        return
    note = f"{plain(first.value):,} times {plain(second.value):,}"
    yield Slot("count", int(first.value * second.value), *span_of(pieces), note=note)


def accelerators(pieces: Pieces) -> Iterator[Slot]:
    """2k H100s, 64 or 128 H100, H100 and H200 x 64,128."""
    found = count_slots(pieces)
    if found is None:
        return
    yield from found
    yield from accelerator_slots(pieces)


def owned(pieces: Pieces) -> Iterator[Slot]:
    """512 on-prem H100, 64 spot H100: the number of them."""
    yield from count_slots(pieces) or ()


def other_count(pieces: Pieces) -> Iterator[Slot]:
    """64 H100 or 128: another number of the same."""
    if pieces[-2].value == "list":
        yield from accelerators(pieces)


def rising_counts(pieces: Pieces) -> Iterator[Slot]:
    """H100 x 64 128 256: a list without commas, where the numbers rise."""
    numbers = [figure.value for figure in figures(pieces)]
    if numbers == sorted(set(numbers)) and all(figure.scale <= 1000 for figure in figures(pieces)):
        yield from accelerators(pieces)


def counts_of_run(pieces: Pieces) -> Iterator[Slot]:
    """7B 1T x 64,128: numbers of accelerators behind what is trained, where none are named."""
    trained, *numbers = figures(pieces)
    if trained.scale >= 10**6 and all(figure.scale <= 1000 for figure in numbers):
        for slot in count_slots(pieces[1:]) or ():
            yield replace(slot, note=slot.note or "read as the number of accelerators")


def listed_count(pieces: Pieces) -> Iterator[Slot]:
    """7B, 1T, 64, H100 or H100, 64: the number beside a comma."""
    number, named = sorted((pieces[0], pieces[-1]), key=lambda piece: piece.kind, reverse=True)
    for slot in count_slots([number]) or ():
        yield replace(slot, note="read as the number of accelerators")
        yield from accelerator_slots([named])


def accelerators_and_list(pieces: Pieces) -> Iterator[Slot]:
    """[H100, H200], [64,128]: a comma within the figure says that it is a list of numbers."""
    if figures(pieces)[0].several:
        yield from accelerators(pieces)


def bounded(make: Callable[[Pieces], Iterator[Slot]]) -> Callable[[Pieces], Iterator[Slot]]:
    """At most 64 H100, at least 1T tokens: so many of them, which is said."""

    def read(pieces: Pieces) -> Iterator[Slot]:
        note = "a lower limit, read as the number" if pieces[0].kind == "z" else "a limit or a range, read as the numbers"
        for slot in make(pieces):
            yield slot if slot.name == "accelerator" else replace(slot, note=note)

    return read


def instances(pieces: Pieces) -> Iterator[Slot]:
    """16 p5.48xlarge: their accelerators, at the provider that has them."""
    name = chosen_of(pieces)[0].name
    number = next((figure.value for figure in figures(pieces)), None)
    if number is not None and (number.denominator != 1 or number > MOST_INSTANCES):
        return
    count = int(number or 1) * name.per_node
    note = f"{int(number or 1):,} {name.value} of {name.per_node} each"
    yield Slot("count", count, *span_of(pieces), note=note, implied=number is None)
    yield Slot("accelerator", replace(name, kind="A", value=name.accelerator), *span_of(pieces), note=f"{HELD}{name.value} has")
    yield Slot("provider", Name("P", name.provider, ()), *span_of(pieces), note=f"{name.value} is an instance type of {name.provider}")


def of_each(pieces: Pieces) -> Iterator[Slot]:
    """512 of each: as many of every accelerator that is weighed."""
    figure = figures(pieces)[0]
    if pieces[-1].value == "each" and figure.scale == 1 and figure.value.denominator == 1 and figure.value >= 1:
        yield Slot("count_of_each", int(figure.value), *span_of(pieces))


def lower_bound(pieces: Pieces) -> Iterator[Slot]:
    """Over $1M: more than a sum, which no request can say."""
    yield Slot("lower_bound", plain(figures(pieces)[0].value), *span_of(pieces))


def other_units(pieces: Pieces) -> Iterator[Slot]:
    """3 billion words: how many tokens they are is asked back."""
    if pieces[-1].value in ("prompts", "steps", TERABYTES, "hours of audio"):
        yield Slot(str(pieces[-1].value), plain(figures(pieces)[0].value), *span_of(pieces))
    else:
        yield Slot("other_unit", pieces[-1].value, *span_of(pieces))


def counts(pieces: Pieces) -> Iterator[Slot]:
    """64 or 128 GPUs."""
    yield from count_slots(pieces) or ()


MOST_FALL = 50


def count_slots(pieces: Pieces) -> list[Slot] | None:
    """Numbers of accelerators; None where a figure can be none, or the first is in thousands and falls to a few: 4k, 16 H100."""
    found = []
    listed_figures = [piece.value for piece in pieces if isinstance(piece.value, Figure)]
    if len(listed_figures) > 1 and listed_figures[0].scale > listed_figures[-1].scale and _falls(listed_figures[0], listed_figures[-1]):
        return None
    for piece in pieces:
        if not isinstance(piece.value, Figure):
            continue
        figure = piece.value
        if figure.value.denominator != 1 or figure.scale >= 10**6 or figure.value < 1:
            return None
        crossed = any(other.kind in "x=" or other.value == "counts" for other in pieces) or len([p for p in pieces if p.kind == "A"]) > 1
        listed = figure.several and (crossed or figure.value >= MOST_COUNT)
        note = _comma_note(figure) if figure.several and not listed else ""
        found += [Slot("count", int(value), *span_of(pieces), note=note) for value in (figure.several if listed else (figure.value,))]
    return found


def _falls(first: Figure, last: Figure) -> bool:
    return first.value > MOST_FALL * last.value


def _comma_note(figure: Figure) -> str:
    return f"its comma could part a list ({', '.join(str(value) for value in figure.several)}) or thousands ({figure.value})"


def chosen_of(pieces: Pieces) -> list[Chosen]:
    return [piece.value for piece in pieces if isinstance(piece.value, Chosen)]


def accelerator_slots(pieces: Pieces) -> Iterator[Slot]:
    """The accelerators among pieces."""
    for piece in pieces:
        if isinstance(piece.value, Chosen):
            chosen = piece.value
            yield Slot("accelerator", chosen.name, *span_of(pieces), note=chosen.name.why, others=chosen.others)


def budget(pieces: Pieces) -> Iterator[Slot]:
    """Under $300k; under $3 is the price of an hour."""
    money = figures(pieces)[0]
    if money.value < LEAST_PER_HOUR_USD:
        return
    if money.value < MOST_PER_HOUR_USD and money.scale == 1:
        limited = any(piece.kind == "l" for piece in pieces)
        note = "read as the price of an accelerator-hour"
        yield Slot("max_price_per_hour" if limited else "price_per_hour", plain(money.value), *span_of(pieces), note=note)
    else:
        yield Slot("budget_usd", plain(money.value), *span_of(pieces))


def money(pieces: Pieces) -> Iterator[Slot]:
    """$2M, at $2: a sum, or by its size the price of an accelerator-hour."""
    value = figures(pieces)[0].value
    if value < LEAST_PER_HOUR_USD:
        return
    if value < MOST_PER_HOUR_USD:
        yield Slot("price_per_hour", plain(value), *span_of(pieces), note="read as the price of an accelerator-hour")
    else:
        yield Slot("money_at" if pieces[0].kind == "t" else "money", plain(value), *span_of(pieces))


def bare(pieces: Pieces) -> Iterator[Slot]:
    """7B, 1T: what it counts follows from the rest of the sentence."""
    figure = figures(pieces)[0]
    if figure.scale >= 10**6:
        yield Slot("quantity", figure.value, *span_of(pieces))
    elif figure.scale == 1000 and figure.value / 1000 in LENGTHS:
        yield Slot("bare_length", int(figure.value / 1000 * K), *span_of(pieces))
    elif figure.value >= LEAST_FLOPS:
        yield Slot("flops", plain(figure.value), *span_of(pieces), note="read as FLOPs: so many can be nothing else")
    elif figure.value == 1 and figure.spoken:
        yield Slot("one", 1, *span_of(pieces))
