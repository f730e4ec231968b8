"""Full samples of the sources' answers, where the reference folder lies beside the project."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from providers.row_parsing import OfferCollector
from service.presets.hardware.accelerators import canonical_accelerator

FOLDER = Path(__file__).parents[4] / "shared" / "prices"
AT = datetime(2026, 11, 21, 12, tzinfo=UTC)


def sample(path: str) -> Path:
    """A file of the reference prices; the test is skipped by name where they are absent."""
    if not FOLDER.is_dir():
        pytest.skip("needs the reference prices beside the project (../shared/prices)")
    return FOLDER / path


def recorded(path: str) -> Any:
    """A recorded answer as the HTTP session would give it: numbers with a fraction as Decimal."""
    return json.loads(sample(f"recorded/{path}").read_text(encoding="utf-8"), parse_float=Decimal)


def collector(provider: str) -> OfferCollector:
    """An empty reading of a sample."""
    return OfferCollector(provider, "sample", AT, canonical_accelerator)
