"""Tiers of a program by name."""

from __future__ import annotations

from typing import Literal

TierName = Literal["prototype", "validation", "production"]
TIERS: tuple[TierName, ...] = ("prototype", "validation", "production")
"""In the order in which they are run and decided."""
EXPLORATION_TIERS: tuple[TierName, ...] = ("prototype", "validation")
