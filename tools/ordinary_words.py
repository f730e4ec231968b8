"""Write the ordinary words that questions may hold and that look like misspelt words of the lexicon.

`python -m tools.ordinary_words FILE` reads a list of English words, one a line, and writes service/formats/ask/lexing/data/ordinary.txt.
The list is SCOWL's small one (size 35), by Kevin Atkinson (NOTICE has its terms), as Debian's package wamerican-small has it:
/usr/share/dict/american-english-small. Run it again when the lexicon has new words.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from unittest.mock import patch

from bench.harness import offline_context
from service.formats.ask.lexing import spelling
from service.formats.ask.lexing.vocabulary import ORDINARY, Vocabulary
from service.usecases.ask.vocabulary import vocabulary_of

WORD = re.compile(r"[a-z]+")
WIDTH = 140


def ordinary_words(words: Iterable[str], vocabulary: Vocabulary) -> list[str]:
    """Those of the words, in lower case and sorted, that would be corrected to a word that a question may be about."""
    plain = {word.lower() for word in words if WORD.fullmatch(word.lower())}
    with patch.object(spelling, "load_ordinary_words", frozenset):
        return sorted(word for word in plain if spelling.correct_spelling(word, vocabulary))


def main(source: Path) -> None:
    """Write the words of the list that matter."""
    with offline_context() as context:
        found = ordinary_words(source.read_text(encoding="utf-8").split(), vocabulary_of(context))
    ORDINARY.write_text("\n".join(textwrap.wrap(" ".join(found), WIDTH)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
