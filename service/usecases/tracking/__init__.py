"""Tracked programs: events, status, reports, alerts, imports."""
