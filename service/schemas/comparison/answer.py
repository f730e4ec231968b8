"""Answer schema of comparisons."""

from __future__ import annotations

from service.schemas.comparison.request import MOST_OPTIONS, MOST_PLANTS, MOST_VARIANTS
from service.schemas.derive import derive
from service.usecases.comparison.compare import Comparison

# The requested number, owned hardware in every variant, the best of each variant and kind of pricing, one fresh, one nearest.
MOST_SHOWN = MOST_OPTIONS + MOST_VARIANTS * (MOST_PLANTS + 3) + 2

CompareAnswerSchema = derive(
    Comparison,
    limits={
        "options": {"max_items": MOST_SHOWN},
        "variants": {"max_items": MOST_VARIANTS},
        "on_prem": {"max_items": MOST_PLANTS},
        "break_even": {"max_items": MOST_SHOWN * MOST_PLANTS},
    },
)
