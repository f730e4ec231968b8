"""Time to read a question in words: every sentence of the tests, several times."""

from __future__ import annotations

import json
import statistics
import time
from datetime import date

from bench.harness import ROOT, offline_context, report, timed
from service.formats.ask.parse import parse
from service.usecases.ask.vocabulary import vocabulary_of

PROMISED_MS = 5.0
ROUNDS = 5


def reading() -> None:
    """CPU time of the sentences, median and worst, each by its median, and the vocabulary that is prepared once."""
    lines = (ROOT / "tests" / "data" / "ask" / "sentences.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [str(json.loads(line)["text"]) for line in lines]
    with offline_context() as context:
        context.book()
        prepared_s, vocabulary = timed(lambda: vocabulary_of(context))
    today = date(2026, 11, 23)
    rounds = [[timed(lambda text=text: parse(text, vocabulary, today), time.process_time)[0] for text in texts] for _ in range(ROUNDS)]  # type: ignore[misc]
    each_ms = [1000 * statistics.median(times) for times in zip(*rounds, strict=True)]
    report("ask_read.p50_ms", statistics.median(each_ms), "ms", "promised", PROMISED_MS)
    report("ask_read.worst_ms", max(each_ms), "ms", "promised", PROMISED_MS)
    report("ask_vocabulary.ms", 1000 * prepared_s, "ms")
