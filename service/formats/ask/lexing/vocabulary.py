"""The names that a sentence may hold: models, accelerators, providers, regions, jurisdictions, programs; and the words around them.

Names are passed in, the words are in `data/words.toml`. A vocabulary is prepared once and used for many sentences.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

from service.formats.ask.lexing.alternatives import spelt_out
from service.formats.ask.lexing.datasets import load_datasets
from service.formats.ask.lexing.dates import DATE_WORDS
from service.formats.ask.lexing.fields import load_fields
from service.formats.ask.lexing.numbers import NUMBER_WORDS, SMALL_NUMBERS
from service.formats.ask.lexing.tokens import Token, normalise, tokenise

Kind = Literal["M", "A", "C", "P", "R", "J", "G"]
WORDS = Path(__file__).parent / "data" / "words.toml"
ORDINARY = Path(__file__).parent / "data" / "ordinary.txt"
"""Words of English that are a letter or two from a word of questions, and no slips of it: committee, layer, Virginia."""
Phrase = tuple[str, ...]
# Families of models that are words of their own: only with a figure after them.
WORDS_TOO = frozenset(
    (
        "bloom",
        "command",
        "falcon",
        "granite",
        "inception",
        "mobile",
        "nemo",
        "opt",
        "palm",
        "phi",
        "poro",
        "stable",
        "vit",
        "whisper",
        "wide",
        "yi",
    )
)
SHORTEST_LIKE = 3
"""Letters of the shortest name that a word may be like."""
MOST_TOKENS = 12
"""Tokens of the longest name that is looked for."""
_PLAIN = re.compile(r"[a-z]+(?: [a-z]+)*")
_SIZED = re.compile(r"\d(?:\.\d+)?[bmt](?:-|$)")


@dataclass(frozen=True, slots=True)
class Name:
    """What a name stands for, as requests have it.

    `also`: what it could mean too, `why` the reason for what is taken. Of models `params`, `active_params`, `tokens` (of the published
    training) and `seq_len` (0 where not known) and `sample_unit` (empty: tokens), of accelerators `memory_gb`, `per_node` and `per_rack`
    (accelerators of a usual node and rack, 0 where racks differ) and `purchase` (a published price with its source), of regions
    `provider`, of programs `id`; of instance types (C) the accelerator is `accelerator`.
    """

    kind: Kind
    value: str
    labels: tuple[str, ...]
    also: tuple[str, ...] = ()
    why: str = ""
    params: float = 0.0
    active_params: float = 0.0
    tokens: int = 0
    seq_len: int = 0
    sample_unit: str = ""
    memory_gb: float = 0.0
    per_node: int = 0
    per_rack: int = 0
    purchase: tuple[float, str] | None = None
    provider: str = ""
    accelerator: str = ""
    id: str = ""

    @property
    def has_size(self) -> bool:
        """Whether the name of a model says its size."""
        return _SIZED.search(self.value) is not None


@dataclass(frozen=True, slots=True, repr=False)
class Vocabulary:
    """Names by their compact form, models by family, programs, labels to look like names in, and words that a misspelt one may be.

    `unmodelled`: models that are near a family whose layers are not modelled, by the beginning of its names. `places`: regions by the
    city or state that they lie in, and by the code of their country in capitals; `place_beginnings`: what names of places begin with.
    `program_ends`: the last words of names of programs.
    """

    names: Mapping[str, tuple[Name, ...]]
    families: Mapping[str, tuple[Name, ...]]
    programs: tuple[Name, ...]
    providers: tuple[Name, ...]
    labels: tuple[str, ...]
    spellings: tuple[str, ...]
    known_words: frozenset[str]
    longest: int
    unmodelled: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    places: Mapping[str, tuple[Name, ...]] = field(default_factory=dict)
    place_beginnings: frozenset[str] = frozenset()
    program_ends: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Phrases by their first word: the longest first, each with its kind and value. Fillers have the kind `_`.

    `by_phrase`: kind and value of each; `lengths`: how many tokens phrases of a first word have, the most first.
    """

    by_first: Mapping[str, tuple[tuple[Phrase, str, str], ...]]
    words: frozenset[str]
    by_phrase: Mapping[Phrase, tuple[str, str]]
    lengths: Mapping[str, tuple[int, ...]]


def compact(label: str) -> str:
    """A name without what its spellings differ in: `Llama-3 70B` and `llama3-70b` are the same."""
    return re.sub(r"[\s\-_/()]+", "", normalise(label).lower())


def has_numbers(name: Name, tokens: Sequence[Token]) -> bool:
    """Whether numbers that stand side by side are so in a label of the name: 9-10B is a range, and no 910B."""
    if not any(one.text[-1].isdigit() and other.text[0].isdigit() for one, other in pairwise(tokens)):
        return True
    numbers = [token.text for token in tokens if token.text[0].isdigit()]
    return any([token.text for token in tokenise(normalise(label)) if token.text[0].isdigit()] == numbers for label in name.labels)


def make_vocabulary(names: Iterable[Name], unmodelled: Mapping[str, tuple[str, ...]], places: Mapping[str, tuple[Name, ...]]) -> Vocabulary:
    """The vocabulary of names, with the first of several that share a label and a kind; regions and programs keep all."""
    index: dict[str, list[Name]] = {}
    families: dict[str, list[Name]] = {}
    programs, providers, words, longest = [], [], {*load_lexicon().words, *NUMBER_WORDS, *DATE_WORDS}, 1
    of_regions: set[str] = set()
    for name in names:
        for label in name.labels:
            tokens = tokenise(normalise(label))
            longest = max(longest, len(tokens))
            entries = index.setdefault(compact(label), [])
            if name.kind in ("R", "G") or not entries:
                entries.append(name)
            plain = {token.text for token in tokens if token.text.isalpha()}
            of_regions.update(plain if name.kind == "R" else ())
            words.update(plain if name.kind not in "RC" else ())
        if name.kind == "M" and not name.why:
            families.setdefault(_family(name.value), []).append(name)
        elif name.kind == "G":
            programs.append(name)
        elif name.kind == "P":
            providers.append(name)
    return Vocabulary(
        names={label: tuple(found) for label, found in index.items() if label},
        families={family: tuple(found) for family, found in families.items() if family},
        programs=tuple(programs),
        providers=tuple(providers),
        labels=tuple(label for label, found in index.items() if len(label) >= SHORTEST_LIKE and found[0].kind not in "JC"),
        spellings=tuple(sorted(word for word in words if len(word) >= 4 and word not in SMALL_NUMBERS)),
        known_words=frozenset((*words, *of_regions, *places)),
        longest=min(longest, MOST_TOKENS),
        unmodelled=unmodelled,
        places=places,
        place_beginnings=frozenset(place[:end] for place in places for end in range(1, len(place) + 1)),
    )


def add_programs(vocabulary: Vocabulary, programs: Iterable[Name]) -> Vocabulary:
    """The vocabulary with names of programs, before all others of the same words."""
    found = tuple(programs)
    names, longest = dict(vocabulary.names), vocabulary.longest
    ends: set[str] = set()
    for name in found:
        label = compact(name.value)
        known = names.get(label, ())
        same = tuple(other for other in known if other.kind == "G")
        names[label] = (*same, name, *(other for other in known if other.kind != "G"))
        tokens = tokenise(normalise(name.value))
        longest = max(longest, len(tokens))
        ends.update(token.text for token in tokens[-1:])
    return replace(vocabulary, names=names, programs=found, longest=min(longest, MOST_TOKENS), program_ends=frozenset(ends))


def without_programs(vocabulary: Vocabulary, labels: Iterable[str]) -> Vocabulary:
    """The vocabulary where some labels are not those of programs, but of what else is called so."""
    names = dict(vocabulary.names)
    for label in labels:
        others = tuple(name for name in names.pop(label, ()) if name.kind != "G")
        names |= {label: others} if others else {}
    return replace(vocabulary, names=names)


def _family(model: str) -> str:
    first = tokenise(normalise(model))[0].text
    return first if first.isalpha() else ""


@cache
def load_lexicon() -> Lexicon:
    """The words of `data/words.toml`, and the names of `data/fields.toml` and `data/datasets.toml`."""
    document = tomllib.loads(WORDS.read_text(encoding="utf-8"))
    rows: list[tuple[Phrase, str, str]] = [(_phrase(words), "_", "") for words in document["filler"]]
    rows += [(_phrase(words), "K", name) for name, field in load_fields().items() for words in field.words]
    rows += [(_phrase(words), "Ω", dataset.name) for dataset in load_datasets().values() for words in dataset.labels]
    rows += [(_phrase(words), row["kind"], row["value"]) for row in document["phrase"] for words in spelt_out(row["words"])]
    by_first: dict[str, dict[Phrase, tuple[Phrase, str, str]]] = {}
    for row in rows:  # a word that means something comes after the fillers, and in their place
        by_first.setdefault(row[0][0], {})[row[0]] = row
    words = frozenset(word for row in rows for word in row[0] if word.isalpha())
    ordered = {first: tuple(sorted(found.values(), key=_length, reverse=True)) for first, found in by_first.items()}
    by_phrase = {phrase: (kind, value) for found in ordered.values() for phrase, kind, value in found}
    lengths = {first: tuple(dict.fromkeys(len(row[0]) for row in found)) for first, found in ordered.items()}
    return Lexicon(ordered, words, by_phrase, lengths)


@cache
def load_ordinary_words() -> frozenset[str]:
    """The words of `data/ordinary.txt`."""
    return frozenset(ORDINARY.read_text(encoding="utf-8").split())


def _length(row: Sequence[Phrase | str]) -> int:
    return len(row[0])


def _phrase(words: str) -> Phrase:
    if _PLAIN.fullmatch(words):  # as most of forty thousand are: nothing to normalise, and a second less
        return tuple(words.split(" "))
    return tuple(token.text for token in tokenise(normalise(words)))
