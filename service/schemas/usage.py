"""What a team uses of the service."""

from __future__ import annotations

from service.domain.budgets import TeamUsage
from service.schemas.derive import derive

TeamUsageSchema = derive(TeamUsage)
