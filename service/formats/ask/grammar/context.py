"""Words of context around a question that is complete without them: each is named, and none of them blocks the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from service.formats.ask.grammar.asking.asked_words import with_asked_words, with_fit_asked
from service.formats.ask.grammar.asking.help_asked import with_help_asked
from service.formats.ask.grammar.asking.not_done import with_not_done
from service.formats.ask.grammar.clauses import STOPS, clauses, is_count
from service.formats.ask.grammar.days.asked_times import with_asked_times
from service.formats.ask.grammar.days.fiscal import with_fiscal_years
from service.formats.ask.grammar.days.made_days import with_made_days
from service.formats.ask.grammar.days.of_others import (
    with_events,
    with_peoples_times,
    with_runways,
    with_weekends,
    without_answers_due,
)
from service.formats.ask.grammar.days.recurring import with_recurring
from service.formats.ask.grammar.days.starts import (
    with_latest_starts,
    with_starts_of_others,
    without_events,
    without_meetings,
    without_senders,
)
from service.formats.ask.grammar.denials.corrections import with_changes, with_corrections, without_defaults
from service.formats.ask.grammar.denials.left_open import (
    WAIVED,
    with_most,
    with_ranked_offers,
    without_asides,
    without_every,
    without_faster,
)
from service.formats.ask.grammar.denials.preferences import with_emissions_beside, with_preferences
from service.formats.ask.grammar.joining_words import with_joining_words
from service.formats.ask.grammar.laws import with_laws
from service.formats.ask.grammar.machines.additions import with_added, with_renewals, without_remaining
from service.formats.ask.grammar.machines.bare_numbers import with_bare_number
from service.formats.ask.grammar.machines.cards import without_least_memory
from service.formats.ask.grammar.machines.fractions import with_fractions, with_parts_of_sums
from service.formats.ask.grammar.machines.kept import kept_checkpoints
from service.formats.ask.grammar.machines.kilohours import with_bare_hours, with_kilohours, with_unit_times
from service.formats.ask.grammar.machines.lost_nodes import with_lost_nodes
from service.formats.ask.grammar.machines.nationalities import with_adjectives
from service.formats.ask.grammar.machines.needed import with_needed
from service.formats.ask.grammar.machines.own_machines import with_own_machines
from service.formats.ask.grammar.machines.preemptions import with_times
from service.formats.ask.grammar.machines.pronouns import with_limits, with_multiples, with_pronouns
from service.formats.ask.grammar.machines.rack_units import without_rack_units
from service.formats.ask.grammar.machines.regions import with_wider_places
from service.formats.ask.grammar.machines.single_machines import with_sets, with_single_machines
from service.formats.ask.grammar.money.allowed import with_allowed
from service.formats.ask.grammar.money.commitments import with_commitments, with_tenders
from service.formats.ask.grammar.money.credits import with_credits
from service.formats.ask.grammar.money.depreciation import with_depreciation
from service.formats.ask.grammar.money.overruns import with_overruns
from service.formats.ask.grammar.money.paying_off import with_commitment_asked
from service.formats.ask.grammar.money.people import with_crews, with_numbers_of_people, with_people
from service.formats.ask.grammar.money.price_nouns import with_prices_to, without_days_of_change, without_rates_of_others
from service.formats.ask.grammar.money.prices_of_others import with_prices_of_others
from service.formats.ask.grammar.money.purposes import without_other_purposes
from service.formats.ask.grammar.money.renting import with_held_times, with_used_parts, without_purchase
from service.formats.ask.grammar.money.said_sums import with_changed_rates, with_prices_of_one, with_runs_in_full, with_sums_put
from service.formats.ask.grammar.money.single_quotes import with_term_behind, with_term_of_quote, with_validity, without_free_times
from service.formats.ask.grammar.money.termed_quotes import with_termed_quotes
from service.formats.ask.grammar.money.terse_sums import with_terse_sums
from service.formats.ask.grammar.money.thresholds import without_thresholds
from service.formats.ask.grammar.money.unsigned_sums import (
    with_afforded,
    with_bought,
    with_costs,
    with_hours_bought,
    with_rates,
    with_totals,
)
from service.formats.ask.grammar.money.upfront import with_upfront
from service.formats.ask.grammar.nouns_apart import with_nouns_apart
from service.formats.ask.grammar.numbered_names import with_numbered_names
from service.formats.ask.grammar.runs.answer_limits import with_longest_answers
from service.formats.ask.grammar.runs.audio import with_audio
from service.formats.ask.grammar.runs.averages import with_averages, with_items
from service.formats.ask.grammar.runs.data_said import with_languages, with_repetitions
from service.formats.ask.grammar.runs.examples import with_examples
from service.formats.ask.grammar.runs.families import with_families
from service.formats.ask.grammar.runs.generation import with_generation
from service.formats.ask.grammar.runs.lengths_told import with_lengths_told
from service.formats.ask.grammar.runs.raw_data import with_raw_data
from service.formats.ask.grammar.runs.reinforcement import with_directions
from service.formats.ask.grammar.runs.repeated import with_numbers_of_runs
from service.formats.ask.grammar.runs.rollouts import with_groups
from service.formats.ask.grammar.runs.routing import with_routing
from service.formats.ask.grammar.runs.splits import with_split_machines
from service.formats.ask.grammar.runs.step_times import with_step_times
from service.formats.ask.grammar.runs.tuned_parts import with_full_tuning, with_models_made
from service.formats.ask.grammar.scaling import scaling_questions
from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.grammar.told_values import with_told_values
from service.formats.ask.lexing.durations import Duration
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence, by_first_word, phrase_at

Settled = tuple[list[Piece], list[Doubt]]
NOT_UNDERSTOOD = "not understood"
NAME_OF_DAY = "read as the name of the day that is said"
ORDERED = frozenset({"order", "book", "provision", "reserve"})
"""What is asked to be done, but in a question of how many it says what they are for."""
BEFORE_ORDER = frozenset({"to", "i", "we", "you", "should", "must"})
CHANGING = frozenset(
    (
        *("extra", "additional", "more", "fewer", "less", "further", "other", "another", "spare", "broken", "failed", "dead", "non", "ex"),
        *("different", "distinct", "various", "separate", "virtual", "fractional", "partial", "almost", "nearly", "per", "pre", "mini"),
    )
)
"""Words between a number and an accelerator that say of another number."""
WAIVERS = by_first_word(
    (
        *(("dont", "care"), ("don't", "care"), ("do", "not", "care"), ("dont", "mind"), ("don't", "mind")),
        *(("doesnt", "matter"), ("doesn't", "matter"), ("does", "not", "matter"), ("no", "preference"), ("up", "to", "you")),
        *(("whatever",), ("you", "choose"), ("you", "pick"), ("no", "preferences")),
        *(("not", word) for word in ("picky", "fussy", "fussed", "particular", "choosy", "bothered")),
    )
)
NAMING = frozenset({"about", "on", "with", "which", "where", "what", "who"})
"""Words behind a waiver that what is left open follows: not picky about the cloud."""
AFTER_CONDITION = frozenset({"how", "what", "when", "by", "which", "why", "where", "then", ",", ".", "?"})
"""Words behind `if not` that begin another question."""
LEFT_OPEN = "read as left open: the default holds"
YEARS_OF_VIEW = 1
VIEWS = frozenset({"view", "perspective", "basis", "lens", "outlook"})
"""What a time of years before it is that of."""


def settle_context(sentence: Sentence, pieces: Sequence[Piece]) -> Settled:
    """The pieces without what is context alone, and what is said of that."""
    found: list[Piece] = list(pieces)
    doubts: list[Doubt] = []
    for settle in SETTLERS:
        found, more = settle(sentence, found)
        doubts += more
    return found, doubts


def _asked_numbers(sentence: Sentence, pieces: Sequence[Piece]) -> Settled:
    """How many H100s do I need to order: a question of a number, and no order."""
    found = list(pieces)
    for begin, end in clauses(sentence, pieces):
        texts = list(sentence.texts[pieces[begin].first : pieces[end - 1].last])
        first = pieces[begin].first
        for at in range(begin, end):
            here = pieces[at].first - first
            asked = any(pair == ("how", "many") for pair in pairwise(texts[:here]))
            if pieces[at].kind == "d" and sentence.words(pieces[at]) in ORDERED and asked and texts[here - 1] in BEFORE_ORDER:
                found[at] = replace(pieces[at], kind=FILLER)
    return found, []


def _described_machines(sentence: Sentence, pieces: Sequence[Piece]) -> Settled:
    """1,000 refurbished A100s, 64 liquid-cooled H100: the number of them, and a word that is named."""
    found: list[Piece] = []
    doubts: list[Doubt] = []
    at = 0
    while at < len(pieces):
        end = _end_of_word(sentence, pieces, at)
        if _describes(sentence, pieces, at, end):
            doubts.append(Doubt(sentence.part(pieces[at].first, pieces[end - 1].last), (), NOT_UNDERSTOOD, blocking=False))
        else:
            found += pieces[at:end]
        at = end
    return found, doubts


def _end_of_word(sentence: Sentence, pieces: Sequence[Piece], at: int) -> int:
    """The piece after an unknown word and what a hyphen joins to it."""
    end = at + 1
    while end < len(pieces) and pieces[at].kind == pieces[end].kind == UNKNOWN and sentence.tokens[pieces[end].first].glued:
        end += 1
    return end


def _describes(sentence: Sentence, pieces: Sequence[Piece], at: int, end: int) -> bool:
    """Whether a word that is not known stands between a number and its accelerator."""
    if not 0 < at < end < len(pieces) or pieces[at].kind != UNKNOWN or pieces[end].kind != "A":
        return False
    number = at - 2 if at > 1 and pieces[at - 1].kind == "x" else at - 1
    words = [sentence.words(piece) for piece in pieces[at:end]]
    alone = all(word.isalpha() and word not in CHANGING for word in words) and not sentence.tokens[pieces[end].first].glued
    return alone and is_count(pieces[number]) and not (number > 0 and pieces[number - 1].kind in "K=")


def _waived(sentence: Sentence, pieces: Sequence[Piece]) -> Settled:
    """LoRA rank? don't care: a setting that is left open; the method that its name says stays."""
    texts = list(sentence.texts)
    for first in range(len(texts)):
        words = phrase_at(texts, first, WAIVERS)
        if not words or any(piece.value == WAIVED and piece.first <= first < piece.last for piece in pieces):
            continue
        begin, end = _around(sentence, pieces, first, first + len(words))
        within = pieces[begin:end]
        if not within or any(piece.kind not in (FILLER, UNKNOWN, "K", "!", "r") for piece in within):
            continue
        methods = [
            Piece("Y", "lora", piece.first, piece.first + 1)
            for piece in within
            if piece.value == "lora_rank" and texts[piece.first] == "lora" and piece.last - piece.first > 1
        ]
        text = sentence.part(within[0].first, within[-1].last)
        return [*pieces[:begin], *methods, *pieces[end:]], [Doubt(text, (), LEFT_OPEN, blocking=False)]
    return list(pieces), []


def _around(sentence: Sentence, pieces: Sequence[Piece], first: int, last: int) -> tuple[int, int]:
    """The pieces of a waiver with what is waived: from the mark before it, or the one before that where it answers a question."""
    here = next((at for at, piece in enumerate(pieces) if piece.first <= first < piece.last), len(pieces))
    begin = here
    names = any(token.text in NAMING for token in sentence.tokens[last : last + 1])
    if begin and sentence.words(pieces[begin - 1]) == "?" and not names:
        begin -= 1
    while begin and pieces[begin - 1].kind != "," and sentence.words(pieces[begin - 1]) not in STOPS:
        begin -= 1
    end = next((at for at in range(here, len(pieces)) if pieces[at].first >= last), len(pieces))
    while end < len(pieces) and pieces[end].kind != "," and sentence.words(pieces[end]) not in STOPS:
        end += 1
    return begin, end


def _named_deadlines(sentence: Sentence, pieces: Sequence[Piece]) -> Settled:
    """Deadline for the camera ready is 15 March, the NeurIPS deadline, 15 May: that day, whatever is due on it."""
    found = list(pieces)
    for at, piece in enumerate(pieces):
        if piece.kind != "b" or piece.value != "deadline":
            continue
        day = next((here for here in range(at + 1, len(pieces)) if pieces[here].kind not in (FILLER, UNKNOWN, "o", ",")), len(pieces))
        between = [sentence.words(each) for each in pieces[at + 1 : day]]
        named = day < len(pieces) and pieces[day].kind == "D" and between[-1:] == ["is"] and not STOPS & set(between)
        if named and len(between) > 1:
            found[at] = replace(piece, kind=FILLER)
            found.insert(day, replace(piece, first=pieces[day].first, last=pieces[day].first))
            return found, []
        dated = day < len(pieces) and [each.kind for each in pieces[at + 1 : day + 1] if each.kind != FILLER] in (["D"], [",", "D"])
        if dated and at > 0 and pieces[at - 1].kind == UNKNOWN:
            found[at - 1] = replace(pieces[at - 1], kind=FILLER)
            return found, [Doubt(sentence.part(pieces[at - 1].first, piece.last), (), NAME_OF_DAY, blocking=False)]
    return found, []


def _conditions(sentence: Sentence, pieces: Sequence[Piece]) -> Settled:
    """And if not, how short are we: a condition, and nothing that is left out."""
    texts = list(sentence.texts)
    found = [
        replace(piece, kind=FILLER)
        if piece.kind == "!"
        and sentence.words(piece) == "not"
        and texts[max(piece.first - 1, 0)] == "if"
        and set(texts[piece.last : piece.last + 1]) <= AFTER_CONDITION
        else piece
        for piece in pieces
    ]
    return found, []


def _views(sentence: Sentence, pieces: Sequence[Piece]) -> Settled:
    """Three-year view: the time alone."""
    found = list(pieces)
    for at, (before, piece) in enumerate(pairwise(pieces), 1):
        years = before.value.years if isinstance(before.value, Duration) else 0
        if years >= YEARS_OF_VIEW and piece.kind == UNKNOWN and sentence.words(piece) in VIEWS:
            found[at] = replace(piece, kind=FILLER)
    return found, []


SETTLERS: tuple[Callable[[Sentence, Sequence[Piece]], Settled], ...] = (
    with_help_asked,
    with_not_done,
    without_rack_units,
    with_credits,
    without_asides,
    with_corrections,
    with_changes,
    with_parts_of_sums,
    with_wider_places,
    without_defaults,
    without_free_times,
    with_ranked_offers,
    without_every,
    without_faster,
    with_most,
    with_times,
    _asked_numbers,
    with_numbers_of_people,
    with_numbered_names,
    with_asked_words,
    with_weekends,
    with_fit_asked,
    with_numbers_of_runs,
    with_laws,
    with_joining_words,
    _described_machines,
    scaling_questions,
    with_nouns_apart,
    with_told_values,
    _waived,
    _named_deadlines,
    _conditions,
    _views,
    with_families,
    with_fiscal_years,
    with_depreciation,
    with_upfront,
    without_thresholds,
    without_other_purposes,
    without_purchase,
    with_held_times,
    with_used_parts,
    with_asked_times,
    without_answers_due,
    with_events,
    without_days_of_change,
    without_rates_of_others,
    with_prices_to,
    with_latest_starts,
    without_meetings,
    without_events,
    with_starts_of_others,
    without_senders,
    with_made_days,
    with_preferences,
    with_emissions_beside,
    with_allowed,
    with_commitments,
    with_tenders,
    with_raw_data,
    with_examples,
    with_lengths_told,
    with_items,
    with_averages,
    with_audio,
    with_kilohours,
    with_bare_hours,
    with_unit_times,
    with_languages,
    with_adjectives,
    with_repetitions,
    with_step_times,
    with_split_machines,
    with_generation,
    with_own_machines,
    with_routing,
    with_multiples,
    with_limits,
    with_fractions,
    with_lost_nodes,
    kept_checkpoints,
    with_prices_of_others,
    with_crews,
    with_people,
    with_peoples_times,
    with_runways,
    with_pronouns,
    without_least_memory,
    with_recurring,
    with_renewals,
    with_added,
    without_remaining,
    with_runs_in_full,
    with_sums_put,
    with_prices_of_one,
    with_changed_rates,
    with_costs,
    with_totals,
    with_overruns,
    with_rates,
    with_bare_number,
    with_bought,
    with_afforded,
    with_hours_bought,
    with_commitment_asked,
    with_termed_quotes,
    with_terse_sums,
    with_groups,
    with_directions,
    with_longest_answers,
    with_sets,
    with_single_machines,
    with_full_tuning,
    with_models_made,
    with_needed,
    with_validity,
    with_term_of_quote,
    with_term_behind,
)
