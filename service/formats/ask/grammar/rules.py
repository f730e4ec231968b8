"""The grammar: patterns over the kinds of pieces, each with what it says.

The kinds of a sentence's pieces, fillers left out, are a text of one letter each; a rule is a regular expression over it and a function
that makes slots of the matched pieces, or nothing where they do not fit. Rules are tried in order, and what one has read is gone for the
later ones. Letters are those of `data/words.toml` and of the names: M model, A accelerator, P provider, R region, J jurisdiction, G
program, n number, m money, p percentage, D day or period, U duration, @ the
time that a price is of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from service.formats.ask.grammar import attributes, keyed, quantities
from service.formats.ask.grammar.days import times
from service.formats.ask.grammar.denials import exclusions
from service.formats.ask.grammar.machines import cards, count_lists, nodes, own_machines, preemptions, priced_machines, spares
from service.formats.ask.grammar.money import bare_sums, quoted, rates, reservations, storage
from service.formats.ask.grammar.runs import batches, data_said, images, lengths, reinforcement, rollouts
from service.formats.ask.grammar.slots import ALL_OFFERS, HOURLY, Slot
from service.formats.ask.lexing.names import Chosen, read_as
from service.formats.ask.lexing.tokens import Piece
from service.formats.ask.lexing.vocabulary import Name

Maker = Callable[[Sequence[Piece]], "Iterable[Slot] | None"]
READ = " "
WEAKLY = " weakly"
"""How the value of words ends that may ask for a kind of question, and say other things too."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern of kinds and what it says."""

    pattern: re.Pattern[str]
    make: Maker


def _rule(pattern: str, make: Maker) -> Rule:
    return Rule(re.compile(pattern), make)


def _single(name: str) -> Maker:
    """A slot of the last piece's value."""

    def make(pieces: Sequence[Piece]) -> Iterator[Slot]:
        yield Slot(name, pieces[-1].value, pieces[0].first, pieces[-1].last)

    return make


def _intent(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """What is asked for; words of other senses too are weak."""
    asked = str(pieces[-1].value)
    note = HOURLY if asked.endswith(HOURLY) else ""
    plain = asked.removesuffix(WEAKLY).removesuffix(HOURLY)
    yield Slot("intent", plain, pieces[0].first, pieces[-1].last, note, implied=asked.endswith(WEAKLY))


def _all_offers(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """All accelerators you have prices for: a question about prices, whose filters may be none."""
    for name, value in (("intent", pieces[0].value), (ALL_OFFERS, True)):
        yield Slot(name, value, pieces[0].first, pieces[0].last)


def _objective(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """What offers are ordered by; words that ask for that figure of one run too are weak."""
    by = str(pieces[-1].value)
    yield Slot("objective", by.removesuffix(WEAKLY), pieces[0].first, pieces[-1].last, implied=by.endswith(WEAKLY))


def _named(name: str) -> Maker:
    """A slot of the name in the last piece."""

    def make(pieces: Sequence[Piece]) -> Iterator[Slot]:
        chosen = pieces[-1].value
        assert isinstance(chosen, Chosen)
        yield Slot(name, chosen.name, pieces[0].first, pieces[-1].last, chosen.name.why or read_as(chosen), chosen.others)

    return make


def _group(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """Hyperscalers: the providers that they are."""
    yield from (Slot("provider", name, pieces[0].first, pieces[0].last, implied=True) for name in exclusions.providers_of(pieces[0]))


def _countries(pieces: Sequence[Piece]) -> Iterator[Slot]:
    """The Nordics, Asia: the countries that they are."""
    codes = str(pieces[0].value).split()
    note = f"read as {', '.join(codes)}"
    yield from (
        Slot("jurisdiction", Name("J", code, (code,)), pieces[0].first, pieces[0].last, "" if at else note) for at, code in enumerate(codes)
    )


RULES: tuple[Rule, ...] = (
    # numbers of what no request counts, before attributes take them
    _rule("nW", rates.bystanders),
    # hours, prices
    _rule("l?t?[mn]E?[@U]E?l?", rates.money_per_time),
    _rule("(?:K|(?<!K))U[U@](?!K)", rates.used_hours),
    _rule("nA?h", quantities.accelerator_hours),
    _rule("A?h=n(?:A|(?!A))(?![TQVsefhHEKNxLgWp])", keyed.accelerator_hours),
    _rule("t?(?:mL|[mn]HL|[mn]LH)", priced_machines.price_of_machine),
    _rule("l?t?[mn](?:E?H|A?h)", quantities.price_per_hour),
    _rule("nx?NA,?nx?g?E", nodes.nodes_of_each),
    _rule("(?<![t=K])nE(?!H)", quantities.of_each),
    _rule("t?[mn]L", rates.colocation),
    _rule("t?mL", quantities.capex_of_all),
    _rule("t?[mn]Lng", priced_machines.capex_of_sized_machine),
    _rule("t?[mn]L", quantities.capex_of_machine),
    _rule("K?t?[mn]E|K[t=]?[mn]", quantities.capex),
    # attributes before the counts, so that a figure is theirs
    _rule("K[tb=]?p[@U]", attributes.yearly_share),
    _rule("pK?oK", attributes.share_of_restarts),
    _rule("nKE", rates.network_of_each),
    _rule("[np]K[@U]L|[np]KL[@U]|K[=t]?[np]x?(?:[@U]L|L[@U])|[np][Ng]K[@U]|LK[=t]?[np]x?[@U]", preemptions.per_node_time),
    _rule("K[=t]*UL|K[=t]?[np]x?L|[np]KL|[np]LK", preemptions.per_node),
    _rule("n?K[=t]*nL|LKU", preemptions.per_node_hours),
    _rule("K[=t]*U", preemptions.of_something),
    _rule("[aq]?[ti]?[DU]Φ|Φ[ti]?[DU]", times.passed),
    _rule("nxn(?!x?[AgnN])", images.square),
    _rule("nΩT", data_said.part_of_dataset),
    _rule("Ω", data_said.of_dataset),
    _rule("nxnWg|n?nWg|nx?gnW|gnW(?!T)", cards.of_memory),
    _rule("(?<=A)nW(?!T)|nW(?=A)", cards.of_named),
    _rule("K[=tb]?nW", storage.of_size),
    _rule("K=?nW|nWK", reinforcement.batch_of_prompts),
    _rule("K=?n(?:s[xt]?|x)n(?:TE?|(?![TQVsefhHEKNxALgWnp]))", batches.sequences_of),
    _rule("(?<!n)sn(?![Txs])|(?<=n)sn(?=,)", attributes.sequences_of),
    _rule("K=?ns(?![n=])", batches.sequences),
    _rule("K=?nE", batches.of_each_accelerator),
    _rule("K[tb=]?U[@U]|UK[@U]|UUK|K=?@[ot=,]?U|@UK|U@K", attributes.maintenance),
    _rule("KUE|KE[=t]?U", attributes.of_each_accelerator),
    _rule("p[Ng]K", attributes.share_of_machines),
    _rule("(?<![K=])n[gN]?K(?!A)", spares.of_number),
    _rule("nst?nT?[KW]|nx?nT?s[KW]", lengths.of_batches),
    _rule("nKxn(?![sTWAg])", rollouts.prompts_of_step),
    _rule("[lz]nK|K=?[lz]n(?!T)", quantities.bounded(reinforcement.limited_length)),
    _rule("nK(?=n[sW])", attributes.attributes),
    _rule("z?[npmUK](?:[tb,=v]?[npmUK])*", attributes.attributes),
    # key before value: tokens=1T, params 7B tokens 1T
    _rule("T=n", keyed.keyed("tokens")),
    _rule("Q=n", keyed.keyed("params")),
    _rule("s=n", keyed.samples_after),
    _rule("V=n", keyed.keyed("active_params")),
    _rule("(?:nx?A|A)?N=n(?:,n)*(?:x?A)?|n(?:,n)+x?(?:N(?:x?A)?|AN)", nodes.listed_nodes),
    _rule("N=n|(?<=,)Nn(?=,|$)|^Nn(?=,|$)", nodes.nodes),
    _rule("e=n|(?<=,)en(?=,|$)", keyed.counted_after("epochs")),
    _rule("W=n|(?<=,)Wn(?=,|$)", keyed.steps_after),
    _rule("l=n(?![hTQAxNIs]|g(?!=))", bare_sums.keyed_budget),
    _rule("(?<!n)Qn(?=T=?n(?!T))|(?<=  )Qn(?!Q)", keyed.keyed("params")),
    _rule("(?<!n)Tn(?=Q=?n(?!Q))|(?<=  )Tn(?!T)", keyed.keyed("tokens")),
    _rule("(?<=,)Tn(?![TQ])", keyed.keyed("tokens")),
    _rule("(?<=,)Qn(?![TQ])", keyed.keyed("params")),
    _rule("(?<!n)g=n(?:,n)*", quantities.counts),
    _rule("S[o=t]?(?:[Un],)*U(?:,U)*", reservations.terms_after),
    _rule("n,S", reservations.number_and_term),
    _rule("S(?:,U)+", reservations.reservations),
    _rule("U(?:,U)*,U?S", reservations.terms),
    _rule("(?<![ovlbwuiaq])U(?:,U)*,S", reservations.terms_and_others),
    _rule("US|So?U", reservations.reserved_for),
    _rule("[ovl]?U§|§[ov=]?U", reservations.contracts),
    # counts of things
    _rule("nx?TQ|n%", quantities.tokens_per_parameter),
    _rule("~", quantities.rule_of_thumb),
    _rule("nW,?x?nsE?,?t?nTE?", reinforcement.prompts_and_answers),
    _rule("n[sIW]t?x?nTE?|n[sIW],t?nTE|n[sIW],EnT", quantities.samples_of),
    _rule("n[sI],?(?:Es|δ),?nTE?|n[sI]EnT", keyed.samples_of_each),
    _rule("n[sI][x,]?nTδ", quantities.samples_of),
    _rule("n[sI],nT(?!E)", quantities.samples_of_few),
    _rule("nI", quantities.examples),
    _rule("W=?n[o,]?s=?n(?![TsW])", rollouts.lengths_of_both),
    _rule("ns,?W", rollouts.answers_of_step),
    _rule("nW,?x?nsE?|ns(?:E|,|x)*nW", quantities.answers),
    _rule("nWxn(?=,|$)", reinforcement.prompts_times),
    _rule("nWt?x?nTE?", keyed.steps_of),
    _rule("nW,?nTE?|WnTE?|nTEW", reinforcement.prompt_length),
    _rule("[lz]nTE?s|s[ul]+nTE?|unTs", quantities.bounded(reinforcement.response_length)),
    _rule("nTs|st?nT", lengths.of_tokens),
    _rule("nTE?s|s,?t?nTE?|δ,?t?nT|nT[tb]?δ|(?<=,)nTE", reinforcement.response_length),
    _rule("nls(?![=n])|nls(?=nW)|ls=?n(?=$|[, ])|(?<![nE])s=?n(?=$|[, ])", reinforcement.bare_length),
    _rule("nsE", reinforcement.answers_to_each),
    _rule("[lz]n(?:,n)*T", quantities.bounded(quantities.tokens)),
    _rule("n(?:,n)*T(?:,n(?:,n)*T)*", quantities.tokens),
    _rule("n(?=[?]{1,2}T)", quantities.tokens),
    _rule("n(?:,n)*Q(?:,n(?:,n)*Q)*", quantities.params),
    _rule("B", quantities.mixture),
    _rule("nW", quantities.other_units),
    _rule("nV", quantities.counted("active_params")),
    _rule("ns", quantities.samples),
    _rule("ne", quantities.counted("epochs")),
    _rule("nf", quantities.flops),
    _rule("nx?NC", quantities.instances),
    _rule("A=n(?=,?A=)", quantities.accelerators),
    _rule("(?:n,)+nnx?AN", nodes.listed_machines),
    _rule("(?<!K)nn(?:x|gx?)?AN?", nodes.machines_of),
    _rule("nN,nN,?nx?A", nodes.alternative_nodes),
    _rule("nN,?Ex?nx?A", nodes.nodes),
    _rule("nN,?nx?g[EL],?A?|nx?AN,?nx?gE", nodes.nodes),
    _rule("nx?AL", keyed.of_each_node),
    _rule("nx?NNA", nodes.nodes),
    _rule("nx?N(?:t?x?n?x?A?(?:g?N)?)", nodes.nodes),
    _rule("C[x=]n", quantities.instances),
    _rule("nx?C", quantities.instances),
    _rule("C", quantities.instances),
    _rule("nxn(?=x?[Ag])", quantities.product),
    _rule("nAN", nodes.nodes),
    _rule("nxAN", nodes.times_machines),
    _rule("tn,nx?A", bare_sums.sum_before_count),
    _rule("nx?Ag?,n(?=$|,)", quantities.other_count),
    _rule("nnn+x?(?:Ag?(?:,A)*|g)|(?<=A,)n(?:,n)+(?=$|,)|(?<=,)nnn+(?=$|,)", count_lists.rising),
    _rule("(?:[la]n(?:,n)*|zn)x?(?:Ag?(?:,A)*|g)", quantities.bounded(quantities.accelerators)),
    _rule("n(?:,n)*x?Ag?(?:,A)*", quantities.accelerators),
    _rule("n(?=[ISr]A)", quantities.owned),
    _rule("A(?:,A)*[x=]nn+(?![TQVsefhHEKNxA])", quantities.rising_counts),
    _rule("A(?:,A)*[x=]?n(?:,n)*(?![TQVsefhHEKNxA])", quantities.accelerators),
    _rule("A[x=]n(?![TQVsefhHEKNxA])", quantities.accelerators),
    _rule("(?<!n)(?<!x)A(?:,A)*tn(?:,n)*(?![TQVsefhHEKNxALmpg])", keyed.counts_at),
    _rule("A(?:,A)*,n(?![TQVsefhHEKNxA])", quantities.accelerators_and_list),
    _rule("n,A(?![,gxn])", quantities.listed_count),
    _rule("A,n(?=$|,)", quantities.listed_count),
    _rule("A(?:,A)*g=?n(?:,n)*(?![TQVsefhHEKNxA])", quantities.accelerators),
    _rule("A(?:,A)*g?", quantities.accelerators),
    _rule("nxn(?:,n)*(?![TQVsefhHEKNxALmpgW%C@UIS])", quantities.counts_of_run),
    _rule("n(?:,n)*x?g(?!=A)", quantities.counts),
    _rule("gn(?:,n)*", quantities.counts),
    # money
    _rule("nI", bare_sums.sum_in_question),
    _rule("vm", quantities.lower_bound),
    _rule("l[o]?m|ml|ol?m", quantities.budget),
    _rule("l=?n", bare_sums.bare_budget),
    _rule("I=n", bare_sums.keyed_price),
    _rule("t?m", quantities.money),
    _rule("tn", bare_sums.bare_price),
    _rule("nl(?![=nmpUKTQWsgAHDeVf])", bare_sums.sum_before_limit),
    _rule("n(?=S)|(?<=S)n(?![TQVsefhHEKNxALpgW%C@U])", bare_sums.price_of_term),
    _rule("on(?![?])|In(?![?IS])", bare_sums.sum_for),
    _rule("[,r][t=]?n", bare_sums.bare_rate),
    _rule("z?I[t=]?p|z?pI", attributes.chance),
    _rule("t?p", attributes.share),
    # dates
    _rule("a[tio]?D[ub,]?D", times.between),
    _rule("D[ab](?![tiob=]?[DU])", times.named_after),
    _rule("[aq][tio=]?D", times.start),
    _rule("a[tio]?U", times.start_after),
    _rule("vD", times.later_than),
    _rule("[bwuilt]+=?D", times.deadline),
    _rule("[bw][?]{1,2}D", times.named_deadline),
    _rule("b,D", times.deadline_apart),
    _rule("D", times.day),
    _rule("[ilbw]+o?=?U|Ul|o[li]U", times.limit),
    _rule("qU", times.span_after),
    _rule("vU", times.longer_than),
    _rule("(?<!t)[ov]?U", times.span),
    # the rest
    _rule("M", _named("model")),
    _rule("P", _named("provider")),
    _rule("π", _group),
    _rule("R", _named("region")),
    _rule("J", _named("jurisdiction")),
    _rule("κ", _countries),
    _rule("G", _named("program")),
    _rule("Y", _single("method")),
    _rule("y", _single("tuning")),
    _rule("X", _single("precision")),
    _rule("Z", _single("optimizer")),
    _rule("#", attributes.settings),
    _rule("S", _single("pricing")),
    _rule("τ", _single(quoted.QUOTE_TERM)),
    _rule("β", quoted.named),
    _rule(own_machines.LETTER, own_machines.own_machine),
    _rule("ε", _single("expires")),
    _rule("O", _objective),
    _rule("I", _intent),
    _rule("∀", _all_offers),
    _rule("r", _single("rent")),
    _rule("(?<![mnpUDT])@(?![mnp])", times.paid_time),
    _rule("j", times.to_date),
    _rule("n", quantities.bare),
)
# Words that join others: alone they say nothing.
JOINING = frozenset("biowatqulv,xHEgNhTQ=§Φδ")


def apply_rules(pieces: Sequence[Piece]) -> tuple[list[Slot], list[Piece]]:
    """Slots of the pieces (fillers left out), and the pieces that no rule reads."""
    kinds = "".join(piece.kind for piece in pieces)
    slots: list[Slot] = []
    for rule in RULES:
        at = 0
        while (match := rule.pattern.search(kinds, at)) is not None:
            first, last = match.span()
            made = rule.make(pieces[first:last])
            found = [] if made is None else list(made)
            if found:
                read = _read_of(found, pieces, first, last)
                kinds = "".join(READ if index in read else kind for index, kind in enumerate(kinds))
                slots += found
            at = last if found else first + 1
    slots.sort(key=lambda slot: slot.first)
    return slots, [piece for piece, kind in zip(pieces, kinds, strict=True) if kind != READ and kind not in JOINING]


def _read_of(slots: Iterable[Slot], pieces: Sequence[Piece], first: int, last: int) -> set[int]:
    """Positions of the pieces that the slots are made of."""
    spans = [(slot.first, slot.last) for slot in slots]
    return {at for at in range(first, last) if any(begin <= pieces[at].first and pieces[at].last <= end for begin, end in spans)}
