"""Limits beyond which a run is a slip of the pen."""

from __future__ import annotations

# Several times the world's yearly product (about 1.1e14 USD, World Bank 2024); a century of every accelerator made (some 1e7).
MAX_USD = 1e15
MAX_ACCELERATOR_HOURS = 1e14
BEYOND_LIMITS_TEXT = (
    f"the run would take more than {MAX_ACCELERATOR_HOURS:g} accelerator-hours or {MAX_USD:g} USD: check its size, rates and prices"
)
