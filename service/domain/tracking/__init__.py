"""Tracked programs: events, status, imports, alerts, feedback."""
