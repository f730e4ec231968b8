"""Tokens of a sentence, and the typed pieces that they are read into."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}(?!\d)"  # a day of ISO 8601
    r"|\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)"  # thousands
    r"|\d{1,3}(?:'\d{3})+(?!\d)"  # thousands as the Swiss write them
    r"|\d{1,3}(?: \d{3})* 000(?!\d)"  # round thousands with blanks; other figures side by side are several
    r"|(?<=\$)\d{1,3}(?: \d{3})+(?!\d)"
    r"|\d{1,3}(?: \d{3})+(?= ?(?:usd|dollars?|\$)(?![^\W\d_]))"
    r"|10\^\d{1,2}(?!\d)"
    r"|\d{1,3}(?:\.\d{3}){2,}(?![.\d])"  # thousands as most of Europe writes them
    r"|(?<![^\W\d_])\d+(?:\.\d+)?e-\d{1,2}(?!\d)"  # 2e-4, but v5e-64
    r"|\d+(?:\.\d+)?(?:e\+?\d{1,2}(?!\d))?"
    r"|(?<![\w.])\.\d+(?![.\d])"  # .09
    r"|(?<=\d)x(?=[a-z]{1,8}[- ]?\d)"  # 8xH100
    r"|(?<=\d)s(?=x\d)"  # L40Sx8
    r"|[kmbgt](?=tok(?:ens?|s)?(?![^\W\d_]))"  # 500 Gtokens
    r"|(?<=\d)k(?=h(?:rs?|ours)?(?![^\W\d_]))"  # 40kh
    r"|[^\W\d_]+(?:'[^\W\d_]+)?"
    r"|\S",
    re.IGNORECASE,
)
_FLAG = re.compile(r"(?<!\S)--(?=[a-z])", re.IGNORECASE)
"""What begins the name of an option: --tokens 1T."""
_NODES_FLAG = re.compile(r"(?<!\S)-N ?(\d+)(?!\S)")
"""The option of srun and sbatch for the number of nodes."""
_TAG = re.compile(r"(?<=\d):(?=\d+(?:\.\d+)?[bm](?![^\W_]))|(?<=\d)\.{2,3}(?=\d)", re.IGNORECASE)
"""What parts a model and its size (llama3.1:8b), or the ends of a range (64..128)."""
_POSSESSIVE = re.compile(
    r"(?:(?<=\d[bmt])|(?<=\b[qh]\d)|(?<=day)(?<!\btoday)|(?<=week)|(?<=month)|(?<=quarter)|(?<=year))'s(?!\w)", re.IGNORECASE
)
"""What follows a name that ends in its size, or a time that is over: opt-175b's, last Friday's, Q3's."""
_IS = re.compile(
    r"\b(budget|price|rate|deadline|due date|mfu|mtbf|mttf|pue|batch|batch size|context|seq len|capex|utili[sz]ation|wacc|quote|limit|cap|"
    r"queue|lead time|tax rate|residual)'s(?= (?:about |around |roughly |only |just |now |currently |at )?(?:~ ?)?[$€£\d])"
    r"|\b(deadline|due date|start date)'s(?= )",
    re.IGNORECASE,
)
"""What is said of a noun, in short: budget's 2 million."""
_MENTION = re.compile(r"<[@!][^<>\s][^<>]*>")
"""A person, an app or a group that is addressed, as Slack writes it: <@U04ABCD>, <@U04ABCD|outlay>, <!here>."""
_LISTED = re.compile(r"^[ \t]*(?:\d{1,2}[.)]|[a-h]\)|[•▪◦‣·*-])[ \t]+", re.IGNORECASE | re.MULTILINE)
"""What a line of a list begins with: 1. 7B, 2) 1T tokens, • 256 H100."""
_CARDS = re.compile(
    r",?\s*\(?(?<!\bin )\bthe (40|80|94|96|141)(?:s| ?(?:gb|gigs?) (?:ones?|cards?|versions?|variants?))\b\)?"
    r"|[,(]\s*(?:all |with )?(40|80|94|96|141)[ -]?(?:gb|gigs?) (?:ones?|cards?|gpus?|versions?|variants?|models?|parts?)\b\)?",
    re.IGNORECASE,
)
"""Cards by their memory: 16 A100s, the 80s; 64 A100s, 40 gig ones; not an MFU in the 40s."""
_TOKENS = re.compile(r"(?<=\d)([bt])t(?!\w)", re.IGNORECASE)
"""A number of tokens as data sets are named by it: 100BT."""
_ARROW = re.compile(r"→|[-=]>")
MOST_GROWTH = 2
_HYPHENS = str.maketrans({"’": "'", "‘": "'", "‐": "-", "‑": "-", "–": "-", "—": " ", "−": "-", "_": "-"})  # noqa: RUF001 - typographic forms


@dataclass(frozen=True, slots=True)
class Token:
    """A number, word or sign: in lower case, as written, and where it stands. `glued`: nothing or a hyphen stands before it."""

    text: str
    written: str
    start: int
    end: int
    glued: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens `first` to before `last` as one typed phrase. `kind` is the letter that rules know it by."""

    kind: str
    value: object
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence in tokens. `lower`: its text in lower case; `texts`: those of its tokens."""

    text: str
    tokens: tuple[Token, ...]
    lower: str = field(init=False)
    texts: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Prepare what rules ask for again and again."""
        object.__setattr__(self, "lower", _lower(self.text))
        object.__setattr__(self, "texts", tuple(token.text for token in self.tokens))

    def part(self, first: int, last: int) -> str:
        """Tokens as they were written; empty where there are none."""
        return "" if last <= first else self.text[self.tokens[first].start : self.tokens[last - 1].end]

    def words(self, piece: Piece) -> str:
        """What a piece was written as, in lower case; empty where it stands for no token."""
        return "" if piece.last <= piece.first else self.lower[self.tokens[piece.first].start : self.tokens[piece.last - 1].end]


def _lower(text: str) -> str:
    """The text in lower case, each sign as one: the capital of a Turkish i has two."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(sign.lower()[:1] for sign in text)


def by_first_word(phrases: Iterable[tuple[str, ...]]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Phrases by their first word, in their order."""
    found: dict[str, tuple[tuple[str, ...], ...]] = {}
    for phrase in phrases:
        found[phrase[0]] = (*found.get(phrase[0], ()), phrase)
    return found


def phrase_at(texts: Sequence[str], at: int, phrases: Mapping[str, tuple[tuple[str, ...], ...]]) -> tuple[str, ...]:
    """The first of the phrases, by their first word, that begins at a token; empty where none does, or the text is over."""
    for phrase in phrases.get(texts[at], ()) if at < len(texts) else ():
        if tuple(texts[at : at + len(phrase)]) == phrase:
            return phrase
    return ()


def normalise(text: str) -> str:
    """The text in one form of Unicode, its hyphens and quotes in one form each, blanks as single blanks.

    Compatibility forms are resolved (full-width figures) where they do not blow the text up: one sign can stand for eighteen.
    """
    compatible = unicodedata.normalize("NFKC", text)
    plain = compatible if len(compatible) <= MOST_GROWTH * len(text) else text
    plain = _LISTED.sub(", ", plain) if len(_LISTED.findall(plain)) > 1 else plain
    plain = _TOKENS.sub(r"\1 tokens", _CARDS.sub(lambda match: f" {match[1] or match[2]} GB", plain))
    marked = _TAG.sub("-", _FLAG.sub(", ", _NODES_FLAG.sub(r", \1 nodes,", _ARROW.sub(" to ", _MENTION.sub(" ", plain)))))
    plain = _POSSESSIVE.sub("", _IS.sub(_spelt_out, marked.translate(_HYPHENS)))
    return " ".join(plain.split())


def _spelt_out(match: re.Match[str]) -> str:
    return f"{match[1] or match[2]} is"


def tokenise(text: str) -> tuple[Token, ...]:
    """Tokens of a normalised text. A hyphen between two of them is dropped; one before a figure alone stays, as a minus."""
    found: list[Token] = []
    matches = list(_TOKEN.finditer(text))
    for index, match in enumerate(matches):
        start, end = match.span()
        follows = index + 1 < len(matches) and matches[index + 1].start() == end
        minus = follows and matches[index + 1].group()[0].isdigit() and not (found and found[-1].end == start)
        if match.group() == "-" and not minus:
            continue
        glued = start > 0 and not text[start - 1].isspace()
        found.append(Token(_plain_text(match.group().lower(), text[end:]), match.group(), start, end, glued))
    return tuple(found)


def _plain_text(text: str, rest: str) -> str:
    """A token without the marks of thousands that are blanks or apostrophes, a zero before a point; giga- before tokens as billions."""
    if text == "g" and rest[:3].lower() == "tok":
        return "b"
    if text[0] == "." and len(text) > 1:
        return f"0{text}"
    return re.sub(r"[ ']", "", text) if text[0].isdigit() else text
