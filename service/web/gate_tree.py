"""The gate tree of a plan on a page: its picture, drawn from figures that stand in its address, and the table behind it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from werkzeug.exceptions import NotFound

from service.api.http.auth import app_context
from service.domain.programs.tiers import TIERS
from service.domain.tracking.records import ProgramRecord
from service.formats.documents.program.endings import ending_table, endings_left, tree_finding
from service.usecases.tracking.versions import followed_plan

Ending = Mapping[str, Any]
FIELD = "ending"
LONGEST_NAME = 200
ROW_PX, ABOVE_PX, WIDE_PX = 58, 60, 400
"""Size of the picture: of a row, of the title above, and across [px]."""
COMPLETED = "completed"


def open_endings(program: ProgramRecord, status: Mapping[str, Any]) -> list[Ending]:
    """Where the plan that a program follows may still end; empty where that is not known, and after a pivot."""
    followed = followed_plan(app_context(), program)
    if followed is None or program.body.get("pivoted"):
        return []
    decided = {gate["tier"]: gate["decided"] for gate in status["tier_gates"] if gate["decided"]}
    return endings_left(followed["answer"].get("endings") or (), decided)


def gate_tree(endings: Sequence[Ending]) -> dict[str, Any] | None:
    """What a page shows of a gate tree: the finding, the picture's query and size, and its figures; None where no gate can be failed."""
    if len(endings) < 2:
        return None
    return {
        "finding": tree_finding(endings),
        "query": urlencode([(FIELD, _said(ending)) for ending in endings]),
        "width": WIDE_PX,
        "height": ABOVE_PX + ROW_PX * len(endings),
        "table": ending_table(endings),
    }


def endings_of(said: Sequence[str]) -> list[Ending]:
    """The endings that an address says. Raises NotFound where it says none that can be drawn."""
    if not 1 <= len(said) <= len(TIERS) + 1:
        raise NotFound
    endings = [_read(text) for text in said]
    if any(ending["stopped_at"] is None for ending in endings[:-1]) or endings[-1]["stopped_at"] is not None:
        raise NotFound
    return endings


def _said(ending: Ending) -> str:
    usd = "" if ending["usd"] is None else f"{ending['usd']:.2f}"
    return ",".join((ending["stopped_at"] or COMPLETED, f"{ending['probability']:.6f}", usd, ending["pivot"] or ""))


def _read(text: str) -> Ending:
    tier, *figures = text.split(",", 3)
    if len(figures) != 3 or tier not in (*TIERS, COMPLETED):
        raise NotFound
    probability, usd, pivot = figures
    share = _number(probability)
    if share > 1:
        raise NotFound
    return {
        "stopped_at": None if tier == COMPLETED else tier,
        "probability": share,
        "usd": _number(usd) if usd else None,
        "pivot": pivot[:LONGEST_NAME] or None,
    }


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError as error:
        raise NotFound from error
    if not math.isfinite(found) or found < 0:
        raise NotFound
    return found
