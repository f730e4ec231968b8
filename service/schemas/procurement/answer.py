"""Answer schema of buying or renting."""

from __future__ import annotations

from service.domain.procurement.answer import BuyOrRent
from service.schemas.derive import derive
from service.schemas.training.answer import EstimateAnswerSchema  # noqa: F401  (describes estimates first)

BuyOrRentAnswerSchema = derive(BuyOrRent)
