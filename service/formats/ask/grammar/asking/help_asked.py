"""Questions of the service itself: what it can do, what to enter, how to word a question, which figures it needs, examples."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from service.formats.ask.grammar.slots import Doubt
from service.formats.ask.lexing.numbers import Figure
from service.formats.ask.lexing.pieces import FILLER, UNKNOWN
from service.formats.ask.lexing.tokens import Piece, Sentence

HELP = "help"
FACTS = "nmp€UDMACPRJGκπBΩ∀"
"""Kinds of pieces of a question that has facts of its own: a figure, a day, a name."""
NAMED = "XYyZ"
QUESTIONS = frozenset({"question", "questions", "query", "queries", "bot", "tool", "command"})
OF_ALL_KINDS = "help has an example of each kind of question, and none of this alone"

TOOL = r"(?:slash command|bot|tool|thing|service|app|assistant|api|command|cli)"
YOU = rf"(?:you|u|outlay|(?:(?:the|this|that|your) )?(?:outlay |ask )?(?<![\w-]){TOOL})"
IT = rf"(?:it|this|{YOU})"
WE = r"(?:i|we|one|people|someone|somebody)"
MUST = r"(?:have to|need to|must|should|ought to)"
DATA = r"(?:inputs?|fields?|numbers?|figures?|infos?|information|data|details?|param(?:eter)?s?|values?|arguments?|facts?|things?|stuff)"
WHAT = rf"(?:what|which)(?: (?:kinds?|sorts?|types?) of)?(?: {DATA})?(?: (?:else|all|exactly))?"
PLANS = r"(?:the|our|my|a) (?:budget|plan|deck|forecast|po)"
GIVE = r"(?:enter|type|write|give|tell|say|state|provide|supply|specify|input|fill in|send|submit|include|mention)"
ENTER = rf"(?:put(?: in(?:to)?)?(?! {PLANS})|{GIVE})"
PUT = r"(?:use|enter|add|state|give|set|import|upload|input|put in|register|supply|provide)"
OWN = r"(?:our|my|a|an)(?: own)?(?: \w+)?"
WORD = r"(?:phrase|word|formulate|type|write|enter|ask|say|express|state|specify|talk to|tell|(?:start|begin)(?= ?(?:\?|$|here)))"
LINK = r"(?:support|read|import|ingest|export|pull|track|monitor|connect|integrate)"
KNOWN = rf"(?:{LINK}|know|understand|handle|cover|accept|answer|deal with|work with|speak|help(?: \w+)? with)"
KNOW = rf"(?:{KNOWN}|do(?! (?:an?|the|some) ))"
COMPUTE = r"(?:be used for|compute|calculate|estimate|price|compare|plan|show|tell|help|find|work out|figure out|do)"
ASKED = r"(?:questions?|quer(?:y|ies))"
ABOUT = r"(?: (?:about|on|for|of) [\w-]+(?: [\w-]+)?)?"
END = r"(?= ?(?:\?|$))"
FORMS = re.compile(
    "|".join(
        (
            # what is given
            rf"\b{WHAT} (?:do|does|would|will|should) {IT} (?:really |actually )?(?:need|want|require|expect|accept|(?<!it )take)\b",
            rf"\b{WHAT} (?:do|can|could|should|would|must|shall|may|might) {WE} (?:have to |need to |best )?{ENTER}\b",
            rf"\bwhat (?:to|{WE} {MUST}) {ENTER}\b",
            r"\b(?:what|which)(?: are| is|'s)? (?:the )?(?:inputs?|fields|arguments) (?:of|for|to|do|does|are|is|needed|required)\b",
            # how it is said
            rf"\bhow (?:to|(?:do|can|could|should|would|must) {WE})(?: have to| need to| best)? (?:{WORD}|(?:use|work with) {IT})\b",
            rf"\bhow (?:to|(?:do|can|could|should|would|must) {WE}) (?:put(?=.*\b{ASKED}\b)|get [\w ]+ from {YOU})\b",
            rf"\b(?:what|how)(?: [\w-]+){{0,6}} {ASKED}{ABOUT} (?:looks?|goes|works?|needs?)\b",
            rf"\b(?:how|where)(?: to| (?:do|can|would|should) {WE}) {PUT} {OWN} (?:price|rate|quote|discount)s?\b",
            r"\b(?:syntax|wording|phrasing|template|format) (?:of|for|to)\b",
            r"\b(?:docs|documentation|user guide|cheat ?sheet|tutorial|quick ?start|faq)\b",
            rf"(?<!for )\b(?:\d+ )?(?:examples?|samples?)(?: of| for| on)?(?: [\w-]+){{0,4}} (?:{ASKED}|requests?|inputs?)\b",
            r"(?<!for )(?<!\w )\bexamples? (?:of|for|on|about)\b",
            # what can be asked
            rf"\b{WHAT}(?: \w+)?(?: is it that)? (?:can|could) {IT} (?:also |actually )?(?:{COMPUTE}|{KNOW})\b",
            rf"\bwhat(?: \w+)?(?: is it that)? (?:do|does) {IT} (?:also |actually )?(?:do|{KNOW})\b",
            rf"\b(?:is it that|what(?: else)?|everything|anything|all|things?) (?:that )?{YOU} (?:can(?:'t|not)?|could) (?:tell|{KNOW})\b",
            rf"\b(?:can|could|does|do|will) {YOU} (?:also |even |actually )?{KNOW}\b",
            rf"\b(?:can|does) it {LINK}\b",
            rf"\b(?:what|which)(?: [\w-]+){{0,3}} (?:can|could|may) {WE} (?:ask|send|(?:do|use)(?= (?:{IT}|here)\b))\b",
            rf"\b(?:things?|stuff|topics?|{ASKED}) {WE} (?:can|could|may) ask\b",
            rf"\bwhat(?: is|'s|s) possible(?: here| with {IT})?{END}",
            # what it is
            rf"\bwhat(?: is|'s|s| are)(?: {IT})? (?:really |actually )?(?:good |meant |used |made |there )?for{END}",
            rf"\b(?:what|who)(?: is|'s| are) {YOU}(?: able to do| capable of| about)?{END}",
            rf"\bhow (?:do|does) {IT} (?:really |actually )?work\b",
        )
    ),
    re.IGNORECASE,
)


def with_help_asked(sentence: Sentence, pieces: Sequence[Piece]) -> tuple[list[Piece], list[Doubt]]:
    """The pieces of a question of the service as one for help, whatever it is about; beside facts it is a question of these."""
    facts = [piece for piece in pieces if piece.kind in FACTS and not _is_article(piece)]
    match = None if any(piece.kind != "n" for piece in facts) else FORMS.search(sentence.text)
    if match is None or any(sentence.tokens[piece.first].start != match.start() for piece in facts):  # but 3 example questions
        return list(pieces), []
    asked = [piece for piece in pieces if _meets(sentence, piece, match)]
    found = [Piece("I", HELP, asked[0].first, asked[-1].last), *(_topic(sentence, piece) for piece in pieces if piece not in asked)]
    named = [piece for piece in pieces if piece.kind in NAMED or piece in facts]
    doubts = [Doubt(sentence.part(piece.first, piece.last), (), OF_ALL_KINDS, blocking=False) for piece in named]
    return sorted(found, key=lambda piece: piece.first), doubts


def _meets(sentence: Sentence, piece: Piece, match: re.Match[str]) -> bool:
    """Whether a part of a piece is in a match."""
    before = piece.last > piece.first and sentence.tokens[piece.first].start < match.end()
    return before and match.start() < sentence.tokens[piece.last - 1].end


def _topic(sentence: Sentence, piece: Piece) -> Piece:
    """What help is asked for: words of other kinds of questions ask nothing of their own, unknown ones stay."""
    return piece if piece.kind == UNKNOWN and sentence.words(piece) not in QUESTIONS else replace(piece, kind=FILLER, value="")


def _is_article(piece: Piece) -> bool:
    """Whether a number is the word one."""
    return isinstance(piece.value, Figure) and piece.value.spoken and piece.value.value == 1
