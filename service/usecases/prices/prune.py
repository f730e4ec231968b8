"""Pruning of prices: what no kept result, scenario or tracked program names is kept once a day."""

from __future__ import annotations

import re
from datetime import timedelta

from service.context import AppContext
from service.prices.snapshots import END_SEPARATOR, TEAM_SEPARATOR
from service.store import PrunedPrices

KEPT = timedelta(days=30)
"""Prices of this age are all kept: answers that were not kept may be asked for again against them."""
_SEPARATORS = re.compile(f"[{re.escape(TEAM_SEPARATOR)}{re.escape(END_SEPARATOR)}]")


def prune_prices(context: AppContext, older_than: timedelta = KEPT) -> PrunedPrices:
    """Delete price books and snapshots older than this that nothing names and that are not the last of their day.

    Price history is not touched: it has every change of a price.
    """
    named = {part for name in context.store.named_prices() for part in (name, *_SEPARATORS.split(name))}
    return context.store.prune_prices(named, context.clock() - older_than)
