"""The words of the documentation: plain technical English, no metaphors of our own and no advertising."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.rows import for_each

ROOT = Path(__file__).parents[2]
INSTEAD = {
    r"bell": "say what is sent",
    r"desk|shelf|shelves|pantry": "context, store, snapshots",
    r"doorkeeper": "authentication",
    r"foretells?|foretold": "predict",
    r"lifeline": "process guard",
    r"mailbox": "filesystem broker",
    r"told": "reported, stated, known",
    r"so many|so much": "this number of",
    r"simply|just|obviously|of course|easily|effortless(?:ly)?|seamless(?:ly)?": "nothing: who is stuck does not find it simple",
    r"powerful|blazing(?:ly)?|cutting-edge|state-of-the-art|awesome|magic(?:al)?": "a figure",
    r"utili[sz]e[sd]?|leverage[sd]?|in order to": "use, to",
    r"(?<!-)alike": "equally, in the same way",
    r"beside|besides(?=\s*(?:[.,;:)|]|$))": "next to, with, during, in addition to: which of them",
    r"doors?": "interface",
    r"for want of|in vain|at hand|not any more": "because there is none, without success, installed, no longer",
    r"click here|see here|this link": "the title of what is linked",
}
"""By words that a reader from the field would have to guess, or that say nothing: what to write."""
CODE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)|<!--.*?-->|^> [^\n]*$", flags=re.DOTALL | re.MULTILINE)
"""With what is quoted of the product's answers."""
OF_DATA = (ROOT / "docs" / "explanation" / "accuracy" / "model-cards.md", ROOT / "docs" / "reference" / "data.md")
"""Pages with texts of data files, whose words are part of the engine's version."""
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *(ROOT / "docs").rglob("*.md")])
NOT_SENTENCES = re.compile(r"```.*?```|<!--.*?-->|^(?:\||> |#|<|    )[^\n]*$", flags=re.DOTALL | re.MULTILINE)
"""Code, tables, quotes, headings, markup and formulas."""
ADDRESS = re.compile(r"\]\([^)]*\)")
PARAGRAPH = re.compile(r"\n\s*\n|\n(?=\s*(?:- |\d+\. ))")
SENTENCE = re.compile(r"(?<=[.:?;])[*)\"]*\s+(?=[\w`*\[(])")
MOST_WORDS = 50


def complaints(text: str) -> Iterator[str]:
    """Each banned word with its line and what to write instead; code and addresses do not count."""
    prose = CODE.sub(lambda found: "\n" * found[0].count("\n"), text)
    for words, instead in INSTEAD.items():
        for found in re.finditer(rf"\b(?:{words})\b", prose, flags=re.IGNORECASE):
            yield f"line {prose.count(chr(10), 0, found.start()) + 1}: '{found[0]}': {instead}"


@for_each("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_has_plain_words(page: Path) -> None:
    """And begins with its title and what a reader can do with it."""
    text = page.read_text(encoding="utf-8")
    if page not in OF_DATA:
        assert list(complaints(text)) == []
    assert re.match(r"# \S.*\n\n+(?!#)\S", text)


def long_sentences(text: str) -> Iterator[str]:
    """Sentences, or parts between semicolons, with more than MOST_WORDS words."""
    for paragraph in PARAGRAPH.split(NOT_SENTENCES.sub("\n\n", ADDRESS.sub("]", text))):
        yield from (sentence for sentence in SENTENCE.split(" ".join(paragraph.split())) if len(sentence.split()) > MOST_WORDS)


@for_each("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_has_sentences_that_can_be_followed(page: Path) -> None:
    """What has more parts is a list."""
    assert list(long_sentences(page.read_text(encoding="utf-8"))) == []


def test_a_long_sentence_is_found_in_a_list_but_not_in_code() -> None:
    """By its words, across lines."""
    words = "word " * MOST_WORDS
    assert list(long_sentences(f"# A\n\n```\n{words}more\n```\n\n- short\n- {words}\n  more\n")) == [f"- {words}more"]
    assert list(long_sentences(f"{words.strip()}. {words.strip()}.")) == []


def test_a_metaphor_is_named_with_its_line() -> None:
    """Code may say what it likes."""
    assert list(complaints("A `desk`.\n\n```\nbell\n```\nIt simply works.\n")) == [
        "line 6: 'simply': nothing: who is stuck does not find it simple"
    ]
