"""What a sentence leaves out: providers and kinds of pricing; of anything else what is wanted is asked back."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.denials.ruled_out import GROUP, with_ruled_out
from service.formats.ask.grammar.slots import Doubt, Slot
from service.formats.ask.lexing.names import Chosen
from service.formats.ask.lexing.pieces import FILLER
from service.formats.ask.lexing.tokens import Piece, Sentence
from service.formats.ask.lexing.vocabulary import Name

WITHOUT = {"P": "without_provider", GROUP: "without_provider", "S": "without_pricing"}
"""Slots of what can be left out, by the kind of its piece."""
SKIPPED = "_biotawu"
BETWEEN = frozenset({"be", "on", "in", "at", "from", "to", "use", "using", "the", "any", "a", "for", "with", "by", "run", "want"})
"""Words between a negation and what it leaves out; another one (not only aws) makes another meaning."""
EXCESS = frozenset({"longer than", "more than", "above", "exceeding", "greater than", ">", "beyond"})
TAKING = frozenset({"need", "needs", "take", "takes", "last", "lasts", "require", "requires"})
"""Words of a run and its time."""
INSTEAD = frozenset({"instead of", "rather than"})
WEIGHING = ("saving", "compare")
"""Values of pieces that ask what one way is to another."""
COMPARATIVES = frozenset(
    {"if", "sooner", "earlier", "later", "diff", "differ", "longer", "faster", "slower", "cheaper", "more", "less", "impact", "effect"}
)
"""Words that do."""
OPPOSED = "PSAXZYMRJn"
"""Kinds of pieces of which one can stand in the place of another."""
ACCELERATOR = "A"
FIGURES = "nmpU"
FOR_NUMBERS = frozenset("nUpm")
"""Kinds of figures that a plain number may stand in the place of."""
MOST_BETWEEN = 4
"""Words back from `instead of` in which a figure is looked for."""
COUNTED = "gTQN"
"""Nouns that figures have behind them."""
LEFT_OUT = "left out: what stands before it is read"
CLASSES = frozenset({"marketplaces", "marketplace", "providers", "clouds", "cloud", "sellers", "vendors", "resellers", "neoclouds"})
NAMING = frozenset({"such", "as", "like", "e", "g", ".", "eg", "e.g", "e.g.", "namely"})
"""Words between a class and names of it."""
JOINING = frozenset({"and", "or", "nor", "&", "/"})
PERCENTILES = frozenset({"average", "p50", "p80", "p90", "worst", "best"})
"""Figures of an answer, all of which it has."""
HISTORY = frozenset({"history", "historical", "trend"})
PAST_WORDS = HISTORY | {"past", "last", "previous"}
PAST = "an answer is of now; prices of the past are those of GET /v1/offers/history"
NAMES = "PSARJCMπ"
LISTED = "PSARJπ"
"""Names of which several are left out at a time: no China or US."""
NAMED_ALONE = "the sellers that are named are left out, and no others of their kind"
EMPTY = "_?biot"
"""Kinds of pieces that say nothing of a request: fillers, unknown words and prepositions."""
CLAUSE_ENDS = frozenset({".", "?", "!", ";", ")"})
NOT_UNDERSTOOD = "not understood"
OPPOSING = frozenset({"not", "don't", "dont", "never", "isn't"})
"""Negations of what somebody does or is; `no failures` and `without restarts` leave out a part of the answer."""
COUNTING = frozenset({"include", "including", "count", "counting", "add", "adding", "consider", "assume", "assuming", "want"})
"""Words of what an answer has, which cannot be left out of it unsaid."""
ATTITUDES = frozenset(
    {
        "sure",
        "certain",
        "picky",
        "fussy",
        "bothered",
        "urgent",
        "clear",
        "idea",
        "rush",
        "hurry",
        "decided",
        "mind",
        "hard",
        "strict",
        "fixed",
    }
)
"""What somebody is not, or has not, who leaves something open: not sure, no idea, no rush."""
UNSURE = frozenset({"sure", "certain", "clear", "decided"})
"""Attitudes before a choice that is open: not sure if 64 or 128 H100."""
UNSAID = "_?biotKIO"
"""Kinds of pieces that say no value: fillers, unknown words, prepositions, nouns without a figure, words that ask."""
TYING = frozenset({"tied", "married", "attached", "fixed", "religious", "wedded"})
"""Attitudes to the sellers and places that are named behind them: not tied to aws or gcp."""
SELLING = "PRJπκ"
"""Kinds of names of sellers and places."""
EMPHASIS = frozenset({"too", "so", "that", "really", "very", "particularly", "entirely", "yet", "in", "a", "any", "overly", "super"})
LEFT_OPEN = "read as left open"
QUESTION = "what is left out is not understood: say what is wanted instead"


def split_denied(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Slot], list[Doubt]]:
    """The pieces without what a `not` or `without` denies, what that leaves out, and what of it is not understood."""
    pieces = with_ruled_out(sentence, pieces)
    kept: list[Piece] = []
    slots: list[Slot] = []
    doubts: list[Doubt] = []
    at = 0
    while at < len(pieces):
        if _is_excess(sentence, pieces, at):
            kept.append(replace(pieces[at], kind="v", value="over"))
            at += 1
            continue
        if _is_longer(sentence, pieces, at):
            kept.append(replace(pieces[at], kind="v", value="past"))
            at += 1
            continue
        plainly = _is_instead(sentence, kept, pieces, at)
        if plainly or _replaces_figure(sentence, kept, pieces, at):
            weighed = ((plainly or _is_machine(pieces, at)) and _is_weighed(sentence, pieces)) or _are_priced(kept, pieces, at)
            at = _with_joint(kept, pieces, at) if weighed else _after_instead(kept, pieces, at, sentence, doubts)
            continue
        if pieces[at].kind != "!":
            kept.append(pieces[at])
            at += 1
            continue
        if pieces[at].value == "exclude" and (figure := _figure_after(pieces, at)):
            doubts.append(Doubt(sentence.part(pieces[at].first, pieces[figure].last), (), LEFT_OUT, blocking=False))
            at = figure + 1
            continue
        if after := _after_attitude(sentence, pieces, at):
            doubts.append(Doubt(sentence.part(pieces[at].first, pieces[after - 1].last), (), LEFT_OPEN, blocking=False))
            at = after
            continue
        past = _past_time(sentence, pieces, at)
        end, found = (past, []) if past else _denied(sentence, pieces, at)
        if found:
            slots += found
            within = [piece for piece in pieces[at:end] if sentence.words(piece) in CLASSES and not _is_left_out(piece, found)]
            doubts += [Doubt(sentence.part(piece.first, piece.last), (), NAMED_ALONE, blocking=False) for piece in within]
        else:
            text = sentence.part(pieces[at].first, pieces[end - 1].last)
            empty = not past and _denies_nothing(sentence, pieces, at)
            doubts.append(Doubt(text, (), NOT_UNDERSTOOD if empty else PAST if past else QUESTION, blocking=not empty))
        at = end
    return kept, slots, doubts


def _denies_nothing(sentence: Sentence, pieces: Sequence[Piece], at: int) -> bool:
    """Whether no name, figure or word that is known follows a negation in its clause: not picky, if not how short we are."""
    rest = list(itertools.takewhile(lambda piece: not (piece.kind == "," or sentence.words(piece) in CLAUSE_ENDS), pieces[at + 1 :]))
    opposed = sentence.words(pieces[at]) in OPPOSING and not {sentence.words(piece) for piece in rest} & COUNTING
    return opposed and all(piece.kind in EMPTY for piece in rest)


def _after_attitude(sentence: Sentence, pieces: Sequence[Piece], at: int) -> int:
    """The piece after a negation and a word of attitude, which denies nothing: not sure, not tied to aws; 0 where none follows."""
    here = at + 1
    while here < len(pieces) and sentence.words(pieces[here]) in EMPHASIS:
        here += 1
    word = sentence.words(pieces[here]) if here < len(pieces) else ""
    if pieces[at].value != "exclude" or word not in ATTITUDES | TYING:
        return 0
    rest = list(itertools.takewhile(lambda piece: not _ends_clause(sentence, piece), pieces[here + 1 :]))
    if word in TYING and (end := _after_ties(sentence, pieces, here + 1)):
        return end
    open_choice = word in UNSURE and any(piece.kind == "," for piece in rest)
    return here + 1 if open_choice or all(piece.kind in UNSAID for piece in rest) else 0


def _ends_clause(sentence: Sentence, piece: Piece) -> bool:
    return (piece.kind == "," and piece.value != "list") or sentence.words(piece) in CLAUSE_ENDS | {":"}


def _after_ties(sentence: Sentence, pieces: Sequence[Piece], first: int) -> int:
    """The piece after the sellers and places of a list that somebody is not tied to; 0 where something else follows."""
    end = here = first
    while here < len(pieces) and pieces[here].kind in SELLING + EMPTY + "," and sentence.words(pieces[here]) not in CLAUSE_ENDS | {":"}:
        here += 1
        end = here if pieces[here - 1].kind in SELLING else end
    ended = end == len(pieces) or pieces[end].kind == "," or sentence.words(pieces[end]) in CLAUSE_ENDS | {":"}
    return end if end > first and ended else 0


def _is_left_out(group: Piece, slots: Sequence[Slot]) -> bool:
    """Whether all providers of a group are left out, and none is named besides it."""
    names = {slot.value.value for slot in slots if isinstance(slot.value, Name)}
    return group.kind == GROUP and {name.value for name in providers_of(group)} <= names


def _is_excess(sentence: Sentence, pieces: Sequence[Piece], at: int) -> bool:
    """Whether more than a sum is said, as `over` says it."""
    rest = [piece.kind for piece in pieces[at + 1 : at + 3] if piece.kind != "_"]
    return pieces[at].kind == "!" and sentence.words(pieces[at]) in EXCESS and rest[:1] == ["m"]


def _is_longer(sentence: Sentence, pieces: Sequence[Piece], at: int) -> bool:
    """Whether more than a time is asked about: the chance to need more than 6 weeks, will it take longer than 40 days."""
    rest = [piece.kind for piece in pieces[at + 1 : at + 3] if piece.kind != "_"]
    if pieces[at].kind != "!" or sentence.words(pieces[at]) not in EXCESS or rest[:1] != ["U"]:
        return False
    before = sentence.texts[pieces[at].first - 1] if pieces[at].first else ""
    return before in TAKING or any(piece.kind == "I" and piece.value == "chance" for piece in pieces)


def _is_instead(sentence: Sentence, kept: Sequence[Piece], pieces: Sequence[Piece], at: int) -> bool:
    """Whether one thing stands against another of its kind: muon instead of adamw, 2,000 GPUs instead of 1,000."""
    if pieces[at].kind != "!" or sentence.words(pieces[at]) not in INSTEAD:
        return False
    before = [piece.kind for piece in kept if piece.kind != FILLER]
    after = [piece.kind for piece in pieces[at + 1 :] if piece.kind not in SKIPPED]
    return bool(before and after) and (before[-1] == after[0] in OPPOSED or (before[-1] in COUNTED and before[-2:-1] == after[:1] == ["n"]))


def _replaces_figure(sentence: Sentence, kept: Sequence[Piece], pieces: Sequence[Piece], at: int) -> bool:
    """Whether a figure stands in the place of another that is said a few words before it: an MTTF of 10k hours instead of 50k."""
    denied = sentence.words(pieces[at]) == "not" and [piece.kind for piece in pieces[at + 1 : at + 2]] in (["n"], ["p"])
    if pieces[at].kind != "!" or not (denied or sentence.words(pieces[at]) in INSTEAD):
        return False
    before = {piece.kind for piece in [piece for piece in kept if piece.kind != FILLER][-MOST_BETWEEN:]}
    first = next((piece for piece in pieces[at + 1 :] if piece.kind not in SKIPPED), None)
    year = first is not None and first.kind == "D" and sentence.words(first).isdigit()  # 4096 H100 instead of 2048
    after = "n" if year else first.kind if first else ""
    return after in FIGURES and bool(before & (FOR_NUMBERS if after == "n" else {after}))


def _is_machine(pieces: Sequence[Piece], at: int) -> bool:
    """Whether a number of one accelerator follows: instead of 256 H100."""
    return [piece.kind for piece in pieces[at + 1 :] if piece.kind not in SKIPPED][:2] == ["n", ACCELERATOR]


def _are_priced(kept: Sequence[Piece], pieces: Sequence[Piece], at: int) -> bool:
    """Whether each of two accelerators has its own price: $3.10 for B200 instead of $2.20 for H100."""
    before = [piece.kind for piece in kept if piece.kind not in SKIPPED + "tH"][-2:]
    after = [piece.kind for piece in pieces[at + 1 :] if piece.kind not in SKIPPED + "tH"][:2]
    return sorted(before) == sorted(after) == [ACCELERATOR, "m"]


def _is_weighed(sentence: Sentence, pieces: Sequence[Piece]) -> bool:
    """Whether a question asks what the one is against the other: how much do we save with spot instead of on demand, what if."""
    words = set(sentence.texts)
    return bool(words & COMPARATIVES) or any(piece.value in WEIGHING for piece in pieces)


def _with_joint(kept: list[Piece], pieces: Sequence[Piece], at: int) -> int:
    """Joins what stands before `instead of` with what follows as a list, and the noun of its figures at the end; the piece to read next."""
    end = _first_said(pieces, at + 1)
    nouns = [piece for piece in kept if piece.kind != FILLER][-1:]
    noun = nouns[0] if pieces[end].kind == "n" and nouns[0].kind in COUNTED else None
    own = pieces[end + 1 : end + 2]
    if noun is not None and not (own and own[0].kind == noun.kind):
        kept.remove(noun)
        kept += [replace(pieces[at], kind=",", value="list"), pieces[end], replace(noun, first=pieces[end].last, last=pieces[end].last)]
        return end + 1
    kept.append(replace(pieces[at], kind=",", value="list"))
    return at + 1


def _after_instead(kept: Sequence[Piece], pieces: Sequence[Piece], at: int, sentence: Sentence, doubts: list[Doubt]) -> int:
    """The piece after what is replaced, which is named as left out."""
    end = _first_said(pieces, at + 1) + 1
    nouns = [piece for piece in kept if piece.kind != FILLER][-1:]
    end += end < len(pieces) and nouns[0].kind in COUNTED + ACCELERATOR and pieces[end].kind in COUNTED + ACCELERATOR
    doubts.append(Doubt(sentence.part(pieces[at].first, pieces[end - 1].last), (), LEFT_OUT, blocking=False))
    return end


def _figure_after(pieces: Sequence[Piece], at: int) -> int:
    """The figure of an answer that is not asked for, of two: p80, not the median; 0 where it is something else, or the only one."""
    figures = [here for here, piece in enumerate(pieces) if piece.kind == FILLER and piece.value in PERCENTILES]
    after = next((here for here in range(at + 1, len(pieces)) if pieces[here].kind != FILLER or pieces[here].value), 0)
    return after if after in figures and len(figures) > 1 else 0


def _first_said(pieces: Sequence[Piece], at: int) -> int:
    """The next piece that is more than a filler or a preposition."""
    return next(here for here in range(at, len(pieces)) if pieces[here].kind not in SKIPPED)


def _past_time(sentence: Sentence, pieces: Sequence[Piece], at: int) -> int:
    """The piece after what is said of the past: price history past 6 months, over the last year; 0 where it is something else."""
    words = [here for here in range(at, len(pieces)) if pieces[here].kind == "!"]
    last = next((here for here in range(at, len(pieces)) if pieces[here].kind not in "!_ivotqu"), len(pieces))
    of_past = all(sentence.words(pieces[here]) in PAST_WORDS for here in words if here < last)
    if not of_past:
        return 0
    history = any(sentence.words(pieces[here]) in HISTORY for here in words if here < last)
    timed = last < len(pieces) and pieces[last].kind in "UD"
    return last + timed if history or (timed and pieces[last].kind == "U") else 0


def _denied(sentence: Sentence, pieces: Sequence[Piece], at: int) -> tuple[int, list[Slot]]:
    """The piece after what a negation denies, and slots of it where all of it can be left out."""
    first = at + 1
    while first < len(pieces) and (pieces[first].kind in SKIPPED or sentence.words(pieces[first]) in BETWEEN):
        first += 1
    plain = pieces[at].value == "exclude" and all(sentence.words(piece) in BETWEEN for piece in pieces[at + 1 : first])
    first = _after_class(sentence, pieces, first) if plain else first
    names, joints, end = _listed(sentence, pieces, first)
    runs_on = end < len(pieces) and pieces[end].kind in NAMES
    if not plain or not names or names[0].kind not in WITHOUT or runs_on or (joints and joints[-1] == ","):
        alone = bool(names) and names[0].kind not in WITHOUT and set(joints) == {","}  # not in the US, EU only
        return first + 1 if alone else min(end + runs_on, len(pieces)), []
    name = WITHOUT[names[0].kind]
    values = [value for piece in names for value in _values(piece)]
    return end, [Slot(name, value, pieces[at].first, names[-1].last) for value in values]


def _values(piece: Piece) -> Sequence[object]:
    """What a name stands for: itself, or the providers of a group."""
    if piece.kind == GROUP:
        return providers_of(piece)
    return (piece.value.name if isinstance(piece.value, Chosen) else piece.value,)


def _after_class(sentence: Sentence, pieces: Sequence[Piece], first: int) -> int:
    """The first name behind a class of sellers and `such as`, else the piece itself: marketplaces such as vast, providers like runpod."""
    here = first
    while here < len(pieces) and (sentence.words(pieces[here]) in CLASSES | NAMING or pieces[here].kind == "_"):
        here += 1
    words = {sentence.words(piece) for piece in pieces[first:here]}
    return here if here < len(pieces) and pieces[here].kind == "P" and words & NAMING else first


def providers_of(group: Piece) -> list[Name]:
    """The providers that one name stands for: hyperscalers."""
    return [Name("P", value, (value,)) for value in str(group.value).split()]


def _listed(sentence: Sentence, pieces: Sequence[Piece], first: int) -> tuple[list[Piece], list[str], int]:
    """Names of one kind from a piece on, what joins them, and the piece after them; no names where there is something else."""
    if first >= len(pieces) or pieces[first].kind not in LISTED:
        return [], [], min(first + 1, len(pieces))
    names, at = [pieces[first]], first + 1
    joints: list[str] = []
    while True:
        after = at
        while after < len(pieces) and pieces[after].kind == ",":
            after += 1
        if after == at or after >= len(pieces) or _of_kind(pieces[after]) != _of_kind(pieces[first]):
            return names, joints, at
        joint = sentence.words(pieces[after - 1])
        if joint not in JOINING and joint != ",":
            return names, joints, at
        names.append(pieces[after])
        joints.append(joint)
        at = after + 1


def _of_kind(piece: Piece) -> str:
    return WITHOUT.get(piece.kind, piece.kind)
